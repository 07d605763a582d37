"""A call counts as one operation only if its cost does not depend on the size of what it is given. This table says which
library calls keep that promise, which do not, and how large their arguments are.

What is in neither table is judged by what it is given: a library call that receives or returns something with a size is
flagged with the law "?".
"""

from __future__ import annotations

import bisect
import collections
import copy
import functools
import heapq
import math
import random
from collections.abc import Iterator, Sized
from types import ModuleType
from typing import Any

import numpy as np

CONSTANT: frozenset[Any] = frozenset({
    bool, callable, delattr, enumerate, filter, getattr, hasattr, hash, id, isinstance, issubclass, iter, len, map, next,
    object, print, range, reversed, setattr, slice, super, type, zip, random.Random.choice, np.shape, np.ndim, np.size,
    list.append, dict.get, dict.setdefault, dict.pop, dict.popitem, dict.keys, dict.values, dict.items,
    set.add, set.discard, set.remove, set.pop, collections.deque.append, collections.deque.appendleft,
    collections.deque.pop, collections.deque.popleft, np.ndarray.reshape, np.ndarray.view, np.ndarray.transpose,
    np.ndarray.item,
})  # fmt: skip

LAWS: dict[Any, str] = {
    **dict.fromkeys((all, any, bytearray, bytes, dict, frozenset, list, max, min, set, sum, tuple), "n"),
    **dict.fromkeys((list.copy, list.count, list.extend, list.index, list.insert, list.remove, list.reverse), "n"),
    **dict.fromkeys((dict.copy, dict.update, set.copy, set.update, str.join, bytes.join, str.split, str.replace), "n"),
    **dict.fromkeys((str.find, str.index, str.count, str.lower, str.upper, str.strip, copy.copy, copy.deepcopy), "n"),
    **dict.fromkeys((collections.deque, collections.deque.extend, collections.Counter, functools.reduce), "n"),
    **dict.fromkeys((math.fsum, math.prod, math.dist, heapq.heapify, np.sum, np.min, np.max, np.mean), "n"),
    **dict.fromkeys((np.arange, np.array, np.empty, np.full, np.ones, np.zeros, np.linalg.norm), "n"),
    **dict.fromkeys((sorted, list.sort, np.sort, np.argsort), "n log n"),
    **dict.fromkeys((heapq.heappush, heapq.heappop, bisect.bisect_left, bisect.bisect_right), "log n"),
    np.dot: "n for vectors, mnp for matrices",
    np.matmul: "n for vectors, mnp for matrices",
    np.ndarray.dot: "n for vectors, mnp for matrices",
}

# Their cost is the size of what they are given; the size of what they belong to does not matter.
OF_ARGUMENTS: frozenset[Any] = frozenset({
    list.extend, str.join, bytes.join, set.update, dict.update, collections.deque.extend,
})  # fmt: skip

# These take items from an iterator that they are given, and do nothing else with it.
CONSUMERS: frozenset[Any] = OF_ARGUMENTS | {
    all, any, bytearray, bytes, dict, frozenset, list, max, min, set, sorted, sum, tuple, collections.deque,
    collections.Counter, functools.reduce, math.fsum, math.prod,
}  # fmt: skip

# `x in c` looks at one place of these, and may look at all places of any other container.
HASHED: tuple[type, ...] = (dict, set, frozenset, range, type({}.keys()), type({}.items()))


class Taken(Iterator[Any]):
    """An iterator that knows how many items were taken from it."""

    def __init__(self, source: Iterator[Any]) -> None:
        self.source, self.items = source, 0

    def __next__(self) -> Any:
        item = next(self.source)
        self.items += 1
        return item


def size(value: Any) -> int | None:
    """How much there is of a value: the items of a container, the numbers of an array, the 64-bit words of an integer too
    long for one. None for what takes constant room."""
    if isinstance(value, int):
        return (value.bit_length() + 63) // 64 if value.bit_length() > 64 else None
    if isinstance(value, Taken):
        return value.items
    if isinstance(value, np.ndarray):
        return value.size if value.ndim else None
    if isinstance(value, type) or not isinstance(value, Sized):
        return None
    try:
        return len(value)
    except Exception:  # an object without dimensions that could have had some, a range beyond what `len` counts to
        return None


def plain(function: Any) -> Any:
    """A method as its class holds it, the rest as it is: `xs.append` becomes `list.append`."""
    owner = getattr(function, "__self__", None)
    if owner is None or isinstance(owner, type | ModuleType):
        return function
    return getattr(type(owner), getattr(function, "__name__", ""), function)


def known(function: Any, table: Any) -> bool:
    """Whether a table names the function; what cannot be hashed is in no table."""
    try:
        return function in table
    except TypeError:
        return False


def constant(function: Any, args: tuple[Any, ...]) -> bool:
    """Whether the function takes the same time whatever the size of its arguments. Popping the end of a list does, popping
    another place does not."""
    found = plain(function)
    if found is list.pop:
        return not args or args[0] == -1
    return known(found, CONSTANT)


def law(function: Any) -> str:
    """How the cost of a call grows with the size of its arguments: "n", "n log n", …; "?" where no table says."""
    found = plain(function)
    if isinstance(found, np.ufunc) or found is list.pop:
        return "n"
    return LAWS[found] if known(found, LAWS) else "?"


def mathematical(function: Any) -> bool:
    """Whether the function is one of a number, like sqrt: a floating-point operation, though Python calls it."""
    if isinstance(function, np.ufunc) or function is abs or function is pow or function is round:
        return True
    return getattr(function, "__module__", None) in ("math", "cmath")
