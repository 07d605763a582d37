"""How many operations does a function execute? `count_operations` runs it and counts: by kind, by line, and with a warning
wherever a single call hides work that grows with its input.

The kinds are those of the notes of CMU 10-607: arithmetic, comparisons, logical operations, access to structures,
assignments, calls, control; `rosenblatt.counting.rewriting` says which syntax is which. Beside them stand the steps, which
are the statements executed, each test of a loop among them, and the flops, which are the arithmetic operations and the
calls of functions of a number, such as sqrt.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
import linecache
import textwrap
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from types import CodeType, FunctionType, MethodType
from typing import Any, NamedTuple, cast

from rosenblatt.counting.meter import KINDS, Flag, Meter
from rosenblatt.counting.rewriting import Uncountable, Version, bind, rewrite
from rosenblatt.errors import InvalidParameter, InvalidParameterType


class Counts(NamedTuple):
    """Operations by kind, and the steps and the functions of a number (these are among the calls)."""

    arithmetic: int = 0
    comparison: int = 0
    logical: int = 0
    indexing: int = 0
    assignment: int = 0
    calls: int = 0
    control: int = 0
    steps: int = 0
    maths: int = 0

    @property
    def total(self) -> int:
        """All operations of the seven kinds."""
        return sum(self[: len(KINDS)])

    @property
    def flops(self) -> int:
        """Arithmetic operations and functions of a number. Arithmetic on indices is arithmetic too, where it is written
        out: `i = i + 1` counts, `for i in range(n)` does not."""
        return self.arithmetic + self.maths

    def plus(self, kinds: Collection[str], times: int) -> Counts:
        """These and `times` more of each kind named; a kind named twice counts twice."""
        return Counts(*(old + times * list(kinds).count(kind) for kind, old in self._asdict().items()))


class Line(NamedTuple):
    """A line of a source and what was counted on it."""

    function: str
    number: int
    text: str
    counts: Counts


@dataclass(frozen=True, repr=False)
class Operations:
    """The operations that a function executed, line by line.

    Attributes
    ----------
    name : str
        Of the function.
    value : object
        What it returned.
    lines : tuple of Line
        Its lines and those of the functions that were followed, each with its counts.
    flags : tuple of Flag
        Calls and operators counted as one although their cost depends on a size: `law` says how where that is known,
        `size` is the largest that they met.

    Examples
    --------
    >>> def total(values):
    ...     found = 0
    ...     for value in values:
    ...         found += value
    ...     return found
    >>> done = count_operations(total, [3, 1, 4])
    >>> done.value, done.total, done.flops, done.counts.assignment
    (8, 15, 3, 7)
    """

    name: str
    value: Any
    lines: tuple[Line, ...]
    flags: tuple[Flag, ...]

    @property
    def counts(self) -> Counts:
        """The operations of all lines, by kind."""
        return Counts(*map(sum, zip(*(line.counts for line in self.lines), strict=True)))

    @property
    def total(self) -> int:
        """All operations."""
        return self.counts.total

    @property
    def steps(self) -> int:
        """The statements executed, each test of a loop among them."""
        return self.counts.steps

    @property
    def flops(self) -> int:
        """The arithmetic operations and the functions of a number."""
        return self.counts.flops

    def __repr__(self) -> str:
        counts = self.counts
        kinds = ", ".join(f"{kind} {getattr(counts, kind)}" for kind in KINDS if getattr(counts, kind))
        rows = [f"{self.name}: {counts.total} operations ({kinds}), {counts.steps} steps, {counts.flops} flops", ""]
        rows.append(f"{'steps':>8} {'operations':>11}")
        for line in self.lines:
            here = line.counts
            rows.append(f"{here.steps or '':>8} {here.total or '':>11}  {line.text}".rstrip())
        if self.flags:
            rows += ["", "Counted as one operation, though the cost depends on a size:"]
            rows += [f"  {flag}" for flag in self.flags]
        return "\n".join(rows)


def count_operations(
    function: Callable[..., Any] | str, /, *args: Any, follow: bool | Collection[Callable[..., Any]] = True, **named: Any
) -> Operations:
    """Run `function(*args, **named)` and count the operations that it executes.

    The function is run once, on the arguments themselves: what it returns, raises and changes is what it would have. It is
    rewritten from its source, so Python must know the source: a file, a notebook and a doctest will do.

    Parameters
    ----------
    function : function, method or str
        Or source text, whose last function is counted: for a prompt that does not keep its source.
    *args, **named
        What it is called with.
    follow : bool or collection of functions, default=True
        Functions whose operations count when the function calls them: all of its module, none but itself, or itself and
        these. Nested functions and lambdas always count; properties and operators defined by a class do not. A function
        of the same module that is not followed is flagged.

    Returns
    -------
    Operations
        The counts by kind and by line, and what the function returned.

    Raises
    ------
    Uncountable
        A TypeError, for what is not a function of Python with a source: built-ins, classes, lambdas, generators,
        coroutines, and functions behind a decorator.

    Examples
    --------
    Linear search, as the notes of CMU 10-607 ask: for x not among n numbers, 3n + 3 statements are executed, 4n + 3
    with the n accesses to A.

    >>> def search(x, A, n):
    ...     i = 0
    ...     while i < n:
    ...         if A[i] == x:
    ...             return i
    ...         i = i + 1
    ...     return -1
    >>> done = count_operations(search, 7, [3, 1, 4, 1, 5], 5)
    >>> done.value, done.steps, done.steps + done.counts.indexing
    (-1, 18, 23)
    >>> print(done)
    search: 39 operations (arithmetic 5, comparison 11, indexing 5, assignment 6, control 12), 18 steps, 5 flops
    <BLANKLINE>
       steps  operations
                          def search(x, A, n):
           1           1      i = 0
           6          12      while i < n:
           5          15          if A[i] == x:
                                      return i
           5          10          i = i + 1
           1           1      return -1
    """
    if isinstance(function, str):
        function = from_text(function)
    plain, args = bare(function, args)
    if not isinstance(follow, bool | Iterable):
        raise InvalidParameterType("follow", follow, "True, False or a collection of functions, such as [dot]")
    chosen = set() if isinstance(follow, bool) else {bare(each, ())[0].__code__ for each in follow}
    versions: dict[CodeType, Version | None] = {}

    def is_nested(code: CodeType) -> bool:
        """Whether a counted function made it, so that it counts as it is."""
        return any(version is not None and code in version.nested for version in versions.values())

    def near(each: FunctionType) -> bool:
        return each.__globals__ is plain.__globals__

    def counted_version(each: FunctionType) -> FunctionType | None:
        code = each.__code__
        if is_nested(code):
            return each
        if code not in versions:
            wanted = code is plain.__code__ or code in chosen or (follow is True and near(each))
            versions[code] = attempt(each) if wanted else None
        version = versions[code]
        return None if version is None else bind(version, each, meter)

    def attempt(each: FunctionType) -> Version | None:
        try:
            return rewrite(each, meter)
        except Uncountable:
            if each is plain:
                raise
            return None
        except RecursionError:
            problem = f"{each.__qualname__} holds an expression nested too deeply to be rewritten"
            raise Uncountable(problem, hint="split it into several statements") from None

    def owns(each: object) -> bool:
        inner: object = inspect.unwrap(cast(Any, getattr(each, "__func__", each)))
        return isinstance(inner, FunctionType) and near(inner)

    meter = Meter(counted_version, owns)
    run = cast(Callable[..., Any], counted_version(plain))  # the function itself is always followed
    value = run(*args, **named)
    lines = [line for version in versions.values() if version is not None for line in listing(version, meter)]
    return Operations(plain.__name__, value, tuple(lines), meter.all_flags())


def listing(version: Version, meter: Meter) -> list[Line]:
    """The lines of a function, each with what was counted on it."""
    counts = dict.fromkeys(range(version.first, version.first + len(version.lines)), Counts())
    for site in version.sites:
        place = meter.sites[site]
        counts[place.line] = counts[place.line].plus(place.kinds, meter.times[site])
    texts = textwrap.dedent("".join(version.lines)).splitlines()
    name = meter.sites[version.sites[0]].function if version.sites else ""
    return [Line(name, number, text, here) for (number, here), text in zip(counts.items(), texts, strict=True)]


def bare(function: Any, args: tuple[Any, ...]) -> tuple[FunctionType, tuple[Any, ...]]:
    """A function of Python and its arguments: a method takes its object as the first."""
    if isinstance(function, MethodType):
        return bare(function.__func__, (function.__self__, *args))
    name = getattr(function, "__qualname__", repr(function))
    if isinstance(function, str):
        raise Uncountable(
            f"{function!r} is text; only the first argument of count_operations may be source text",
            hint="pass the function itself",
        )
    if not callable(function):
        raise Uncountable(f"{function!r} is of type {type(function).__name__}, and only a function can be counted")
    if isinstance(function, type):
        raise Uncountable(f"{name} is a class", hint="count one of its methods, or a function that uses it")
    if hasattr(function, "__wrapped__"):
        hint = f"count {name}.__wrapped__, or remove the decorator"
        raise Uncountable(f"{name} is wrapped by a decorator ({type(function).__name__})", hint=hint)
    if isinstance(function, functools.partial):
        raise Uncountable(f"{function!r} is a partial", hint=f"count {function.func!r} with all of its arguments")
    if not isinstance(function, FunctionType):
        if isinstance(type(function).__call__, FunctionType):
            return bare(type(function).__call__, (function, *args))
        raise Uncountable(
            f"{name} is not written in Python ({type(function).__name__}), so it has no source to count: a call of it is "
            "one operation of the function that makes it, flagged if its cost depends on a size"
        )
    if inspect.isgeneratorfunction(function):
        raise Uncountable(
            f"{name} is a generator function, which executes nothing until it is iterated",
            hint=f"count a function that iterates it, such as one that returns list({name}(...))",
        )
    return function, args


def from_text(source: str) -> FunctionType:
    """The last function that a source defines, with its lines kept where tracebacks look for them."""
    file = f"<counted {hashlib.sha256(source.encode()).hexdigest()[:12]}>"
    names = [node.name for node in ast.parse(source, file).body if isinstance(node, ast.FunctionDef)]
    if not names:
        raise InvalidParameter("function", source[:60], "a source with a def, like 'def f(n): return n'")
    linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
    namespace: dict[str, Any] = {"__name__": file}
    exec(compile(source, file, "exec", dont_inherit=True), namespace)
    return namespace[names[-1]]
