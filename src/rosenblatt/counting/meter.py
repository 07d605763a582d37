"""A meter stands in a rewritten function and counts while the function runs. Every operation stays where it was written;
an operand or a result of it passes through the meter, which hands it on unchanged.

A call is handed on too, in one of three forms: the counted version of a function that is followed, a library function
whose arguments are measured on the way in, or the function itself.
"""

from __future__ import annotations

import functools
import inspect
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from types import FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from rosenblatt.counting import costs

# These read the frame that calls them, and must be called from there.
FRAMES = frozenset({
    super, locals, globals, vars, dir, eval, exec, breakpoint, warnings.warn, sys._getframe, inspect.currentframe,
})  # fmt: skip

# These call the functions that they are given, and keep none.
CALLERS = frozenset({map, filter, sorted, min, max, list.sort, functools.reduce})

KINDS = ("arithmetic", "comparison", "logical", "indexing", "assignment", "calls", "control")


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

    def __init__(self, follows: Callable[[Any], Any], owns: Callable[[Any], bool]) -> None:
        self.follows = follows  # the counted version of a function, or None if it is not followed
        self.owns = owns  # whether a function is one of the module whose function is counted
        self.sites: list[Site] = []
        self.times: list[int] = []
        self.flags: dict[tuple[int, str], tuple[int, int]] = {}  # by site and law: (largest size, times)

    def site(self, *place: Any) -> int:
        self.sites.append(Site(*place))
        self.times.append(0)
        return len(self.sites) - 1

    def flag(self, site: int, law: str, size: int) -> None:
        largest, times = self.flags.get((site, law), (0, 0))
        self.flags[site, law] = max(largest, size), times + 1

    def hit(self, site: int, value: Any = None) -> Any:
        """Count what the site stands for."""
        self.times[site] += 1
        return value

    def made(self, site: int, value: Any) -> Any:
        """Count an operation by its result, whose size is its cost."""
        self.times[site] += 1
        return self.weigh(site, value)

    def weigh(self, site: int, value: Any, law: str = "n") -> Any:
        """Flag what has a size."""
        if (size := self.size(value)) is not None:
            self.flag(site, law, size)
        return value

    def size(self, value: Any) -> int | None:
        """The size of a value; but a `__len__` of the module that is counted is called by nobody but its owner."""
        return None if self.owns(getattr(type(value), "__len__", None)) else costs.size(value)

    def product(self, site: int, law: str, value: Any) -> Any:
        """Flag a factor of a matrix product."""
        return self.weigh(site, value, law)

    def weigh_array(self, site: int, value: Any) -> Any:
        """Flag an array; a string compared with a literal costs no more than the literal."""
        return self.weigh(site, value) if isinstance(value, np.ndarray) else value

    def weigh_container(self, site: int, value: Any) -> Any:
        """Flag a container that `in` searches from end to end."""
        return value if isinstance(value, costs.HASHED) else self.weigh(site, value)

    def weigh_list(self, site: int, value: Any) -> Any:
        """Flag a list, all of whose items may have to move."""
        return self.weigh(site, value) if isinstance(value, list | bytearray) else value

    def weigh_copy(self, site: int, value: Any) -> Any:
        """Flag a slice, unless it is a view of an array."""
        return value if isinstance(value, np.ndarray | range | memoryview) else self.weigh(site, value)

    def weigh_sum(self, site: int, value: Any) -> Any:
        """Flag what an augmented assignment made, unless it is a list, which grows by what was added."""
        return value if isinstance(value, list) else self.weigh(site, value)

    def index(self, site: int, index: Any) -> Any:
        """Count an access; an array or a list of places is as many accesses as it is long."""
        self.times[site] += 1
        return self.weigh(site, index) if isinstance(index, np.ndarray | list) else index

    def reach(self, site: int, owner: Any) -> Any:
        """Count an access to an attribute of an object. A module is no structure: `math.pi` is a name."""
        self.times[site] += not isinstance(owner, ModuleType)
        return owner

    def loop(self, ask: int, bind: int, items: Any) -> Loop:
        return Loop(self, ask, bind, items)

    def unseen(self, name: str, names: Any) -> Any:
        """The names that a frame has, and their values, without the meter's own."""
        if isinstance(names, dict) and names.get(name) is self:
            del names[name]
        elif isinstance(names, list) and name in names:
            names.remove(name)
        return names

    def flagged(self) -> tuple[Flag, ...]:
        """What was flagged, by function and line. An operator with two long operands was still executed once."""
        found: dict[tuple[str, int, str, str], tuple[int, int]] = {}
        for (site, law), (size, times) in self.flags.items():
            function, line, _, text = self.sites[site]
            times = min(times, self.times[site]) or times
            largest, before = found.get((function, line, text, law), (0, 0))
            found[function, line, text, law] = max(largest, size), before + times
        return tuple(sorted(Flag(*place, size, times) for place, (size, times) in found.items()))

    def call(self, site: int, maths: int, function: Any) -> Any:
        """Count a call, and give what is to be called in place of the function."""
        self.times[site] += 1
        self.times[maths] += costs.mathematical(function)
        counted = self.counted(function)
        if counted is not None:
            return counted
        if costs.known(function, FRAMES):
            return function
        return self.constructor(function) or Measured(self, site, function)

    def constructor(self, owner: Any) -> Any:
        """What stands for a class whose __init__ is followed, and makes an instance as `type` does. None for others."""
        if not isinstance(owner, type) or type(owner).__call__ is not type.__call__ or owner.__new__ is not object.__new__:
            return None
        start = self.counted(owner.__init__)  # type: ignore[misc]  # of this very class, whose `make` is below
        if start is None:
            return None

        def make(*args: Any, **named: Any) -> Any:
            made: Any = object.__new__(owner)
            if start(made, *args, **named) is not None:
                raise TypeError("__init__() should return None")
            return made

        return make

    def counted(self, function: Any) -> Any:
        """The counted version of a function, a method or an object with a `__call__` that is followed; None for others."""
        if isinstance(function, FunctionType):
            return self.follows(function)
        if isinstance(function, MethodType):
            inner = self.counted(function.__func__)
            return inner and MethodType(inner, function.__self__)
        call = getattr(type(function), "__call__", None)  # noqa: B004  the function itself is wanted, not whether it is there
        return self.counted(MethodType(call, function)) if isinstance(call, FunctionType) else None


class Measured:
    """A library function that is about to be called: it tells the meter the largest size that it meets."""

    def __init__(self, meter: Meter, site: int, function: Any) -> None:
        self.meter, self.site, self.function = meter, site, function

    def __call__(self, *args: Any, **named: Any) -> Any:
        meter, function = self.meter, self.function
        found = costs.plain(function)
        if costs.known(found, CALLERS):
            args = tuple(meter.counted(value) or value for value in args)
            named = {name: meter.counted(value) or value for name, value in named.items()}
        if costs.constant(function, args):
            return function(*args, **named)
        if costs.known(found, costs.CONSUMERS):
            args = tuple(costs.Taken(value) if isinstance(value, Iterator) else value for value in args)
        met = [*args, *named.values()]
        if found is not function and not costs.known(found, costs.OF_ARGUMENTS):
            met.append(function.__self__)
        before = [meter.size(value) for value in met]
        result = function(*args, **named)
        after = [meter.size(value) for value in (result, *args) if value is result or isinstance(value, costs.Taken)]
        sizes = [size for size in before + after if size is not None]
        if sizes or meter.owns(function):
            meter.flag(self.site, costs.law(function), max(sizes, default=0))
        return result
