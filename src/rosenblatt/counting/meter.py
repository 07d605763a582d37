"""A meter stands in a rewritten function and counts while the function runs. Every operation stays where it was written;
an operand or a result of it passes through the meter, which hands it on unchanged.

A call is handed on too, in one of three forms: the counted version of a function that is followed, a library function
whose arguments are measured on the way in, or the function itself. A call of a library counts as one operation only if its
cost does not depend on the size of what it is given. Two tables say which calls keep that promise, which do not, and how
their cost grows; what is in neither is judged by what it is given: a call that receives or returns something with a size is
flagged with the law "?".
"""

from __future__ import annotations

import bisect
import collections
import copy
import functools
import heapq
import inspect
import math
import random
import sys
import warnings
from collections.abc import Callable, Container, Iterable, Iterator, Sized
from types import FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

import numpy as np

KINDS = ("arithmetic", "comparison", "logical", "indexing", "assignment", "calls", "control")

# These read the frame that calls them, and must be called from there.
FRAMES = frozenset({
    super, locals, globals, vars, dir, eval, exec, breakpoint, warnings.warn, sys._getframe, inspect.currentframe,
})  # fmt: skip

# These call the functions that they are given, and keep none.
CALLERS = frozenset({map, filter, sorted, min, max, list.sort, functools.reduce})

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


class Site(NamedTuple):
    """A place in a source where something is counted: one of each kind, each time it is passed."""

    function: str
    line: int
    kinds: tuple[str, ...]
    text: str


class Flag(NamedTuple):
    """A call or an operator that was counted as one operation, though its cost depends on a size."""

    function: str
    line: int
    text: str
    law: str  # how its cost grows with the size; "?" where that is not known
    size: int  # the largest that it met
    times: int

    def __str__(self) -> str:
        cost = "may cost more than one operation" if self.law == "?" else f"costs {self.law}"
        times = "once" if self.times == 1 else f"{self.times} times"
        return f"{self.function}, line {self.line}: {self.text} {cost}, n ≤ {self.size}, {times}"


class Loop(Iterator[Any]):
    """The items of a `for`: each question for the next one passes one site, each answer another."""

    def __init__(self, meter: Meter, ask: int, bind: int, items: Iterable[Any]) -> None:
        self.meter, self.ask, self.bind, self.items = meter, ask, bind, iter(items)

    def __next__(self) -> Any:
        self.meter.times[self.ask] += 1
        item = next(self.items)
        self.meter.times[self.bind] += 1
        return item


class Meter:
    """How often each site was passed, and what was flagged there."""

    slice = slice  # for a source in which the name is taken

    def __init__(self, follows: Callable[[Any], Any], owns: Callable[[object], bool]) -> None:
        self.follows = follows  # the counted version of a function, or None if it is not followed
        self.owns = owns  # whether a function is one of the module whose function is counted
        self.sites: list[Site] = []
        self.times: list[int] = []
        self.flags: dict[tuple[int, str], tuple[int, int]] = {}  # by site and law: (largest size, times)

    def site(self, site: Site) -> int:
        """The number of a new site."""
        self.sites.append(site)
        self.times.append(0)
        return len(self.sites) - 1

    def flag(self, site: int, law: str, size: int) -> None:
        largest, times = self.flags.get((site, law), (0, 0))
        self.flags[site, law] = max(largest, size), times + 1

    def hit(self, site: int, value: object = None) -> Any:
        """Count what the site stands for."""
        self.times[site] += 1
        return value

    def result(self, site: int, value: object) -> Any:
        """Count an operation by its result, whose size is its cost."""
        self.times[site] += 1
        return self.weigh(site, value)

    def weigh(self, site: int, value: object, law: str = "n") -> Any:
        """Flag what has a size."""
        if (size := self.size(value)) is not None:
            self.flag(site, law, size)
        return value

    def size(self, value: object) -> int | None:
        """The size of a value; but a `__len__` of the module that is counted is called by nobody but its owner."""
        return None if self.owns(getattr(type(value), "__len__", None)) else size_of(value)

    def product(self, site: int, law: str, value: object) -> Any:
        """Flag a factor of a matrix product."""
        return self.weigh(site, value, law)

    def weigh_array(self, site: int, value: object) -> Any:
        """Flag an array; a string compared with a literal costs no more than the literal."""
        return self.weigh(site, value) if isinstance(value, np.ndarray) else value

    def weigh_container(self, site: int, value: object) -> Any:
        """Flag a container that `in` searches from end to end."""
        return value if isinstance(value, HASHED) else self.weigh(site, value)

    def weigh_list(self, site: int, value: object) -> Any:
        """Flag a list, all of whose items may have to move."""
        return self.weigh(site, value) if isinstance(value, list | bytearray) else value

    def weigh_copy(self, site: int, value: object) -> Any:
        """Flag a slice, unless it is a view of an array."""
        return value if isinstance(value, np.ndarray | range | memoryview) else self.weigh(site, value)

    def weigh_sum(self, site: int, value: object) -> Any:
        """Flag what an augmented assignment made, unless it is a list, which grows by what was added."""
        return value if isinstance(value, list) else self.weigh(site, value)

    def index(self, site: int, index: object) -> Any:
        """Count an access; an array or a list of places is as many accesses as it is long."""
        self.times[site] += 1
        return self.weigh(site, index) if isinstance(index, np.ndarray | list) else index

    def reach(self, site: int, owner: object) -> Any:
        """Count an access to an attribute of an object. A module is no structure: `math.pi` is a name."""
        self.times[site] += not isinstance(owner, ModuleType)
        return owner

    def loop(self, ask: int, bind: int, items: Iterable[Any]) -> Loop:
        return Loop(self, ask, bind, items)

    def hide(self, name: str, names: object) -> Any:
        """The names that a frame has, and their values, without the meter's own."""
        if isinstance(names, dict) and names.get(name) is self:
            del names[name]
        elif isinstance(names, list) and name in names:
            names.remove(name)
        return names

    def all_flags(self) -> tuple[Flag, ...]:
        """What was flagged, by function and line. An operator with two long operands was still executed once."""
        found: dict[tuple[str, int, str, str], tuple[int, int]] = {}
        for (site, law), (size, times) in self.flags.items():
            function, line, _, text = self.sites[site]
            times = min(times, self.times[site]) or times
            largest, before = found.get((function, line, text, law), (0, 0))
            found[function, line, text, law] = max(largest, size), before + times
        return tuple(sorted(Flag(*place, size, times) for place, (size, times) in found.items()))

    def call(self, site: int, maths: int, function: object) -> Any:
        """Count a call, and give what is to be called in place of the function."""
        self.times[site] += 1
        self.times[maths] += is_mathematical(function)
        counted = self.counted_version(function)
        if counted is not None or in_table(function, FRAMES):
            return counted or function
        return self.constructor(function) or self.measured(site, function)

    def measured(self, site: int, function: Any) -> Callable[..., Any]:
        """A library function that is about to be called: it tells the meter the largest size that it meets."""
        bare = unbound(function)

        def run(*args: Any, **named: Any) -> Any:
            if in_table(bare, CALLERS):
                args = tuple(self.counted_version(value) or value for value in args)
                named = {name: self.counted_version(value) or value for name, value in named.items()}
            if is_constant(function, args):
                return function(*args, **named)
            if in_table(bare, CONSUMERS):
                args = tuple(CountedIterator(value) if isinstance(value, Iterator) else value for value in args)
            met = [*args, *named.values()]
            if bare is not function and not in_table(bare, OF_ARGUMENTS):
                met.append(function.__self__)
            before = [self.size(value) for value in met]
            result = function(*args, **named)
            after = [self.size(value) for value in (result, *args) if value is result or isinstance(value, CountedIterator)]
            sizes = [size for size in before + after if size is not None]
            if sizes or self.owns(function):
                self.flag(site, law_of(function), max(sizes, default=0))
            return result

        return run

    def constructor(self, owner: object) -> Any:
        """What stands for a class whose __init__ is followed, and makes an instance as `type` does. None for others."""
        if not isinstance(owner, type) or type(owner).__call__ is not type.__call__ or owner.__new__ is not object.__new__:
            return None
        start = self.counted_version(owner.__init__)  # type: ignore[misc]  # of this very class, whose `make` is below
        if start is None:
            return None

        def make(*args: Any, **named: Any) -> Any:
            made: Any = object.__new__(owner)
            if start(made, *args, **named) is not None:
                raise TypeError("__init__() should return None")
            return made

        return make

    def counted_version(self, function: object) -> Any:
        """The counted version of a function, a method or an object with a `__call__` that is followed; None for others."""
        if isinstance(function, FunctionType):
            return self.follows(function)
        if isinstance(function, MethodType):
            inner = self.counted_version(function.__func__)
            return inner and MethodType(inner, function.__self__)
        call = getattr(type(function), "__call__", None)  # noqa: B004  the function itself is wanted, not whether it is there
        return self.counted_version(MethodType(call, function)) if isinstance(call, FunctionType) else None


class CountedIterator(Iterator[Any]):
    """An iterator that knows how many items were taken from it."""

    def __init__(self, source: Iterator[Any]) -> None:
        self.source, self.items = source, 0

    def __next__(self) -> Any:
        item = next(self.source)
        self.items += 1
        return item


def size_of(value: object) -> int | None:
    """How much there is of a value: the items of a container, the numbers of an array, the 64-bit words of an integer too
    long for one. None for what takes constant room."""
    if isinstance(value, int):
        return (value.bit_length() + 63) // 64 if value.bit_length() > 64 else None
    if isinstance(value, CountedIterator):
        return value.items
    if isinstance(value, np.ndarray):
        return value.size if value.ndim else None
    if isinstance(value, type) or not isinstance(value, Sized):
        return None
    try:
        return len(value)
    except Exception:  # an object without dimensions that could have had some, a range beyond what `len` counts to
        return None


def unbound(function: Any) -> Any:
    """A method as its class holds it, the rest as it is: `xs.append` becomes `list.append`."""
    owner = getattr(function, "__self__", None)
    if owner is None or isinstance(owner, type | ModuleType):
        return function
    return getattr(type(owner), getattr(function, "__name__", ""), function)


def in_table(function: object, table: Container[object]) -> bool:
    """Whether a table names the function; what cannot be hashed is in no table."""
    try:
        return function in table
    except TypeError:
        return False


def is_constant(function: object, args: tuple[object, ...]) -> bool:
    """Whether the function takes the same time whatever the size of its arguments. Popping the end of a list does, popping
    another place does not."""
    found = unbound(function)
    if found is list.pop:
        return not args or args[0] == -1
    return in_table(found, CONSTANT)


def law_of(function: object) -> str:
    """How the cost of a call grows with the size of its arguments: "n", "n log n", …; "?" where no table says."""
    found = unbound(function)
    if isinstance(found, np.ufunc) or found is list.pop:
        return "n"
    return LAWS[found] if in_table(found, LAWS) else "?"


def is_mathematical(function: object) -> bool:
    """Whether the function is one of a number, like sqrt: a floating-point operation, though Python calls it."""
    if isinstance(function, np.ufunc) or function is abs or function is pow or function is round:
        return True
    return getattr(function, "__module__", None) in ("math", "cmath")
