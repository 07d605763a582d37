"""`rosenblatt count`: the operations of a function in a file, and how they grow."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rosenblatt.cli import options as opts
from rosenblatt.cli.console import Console, round_digits
from rosenblatt.cli.errors import Code, Failure
from rosenblatt.cli.files import check_plot, save_plot
from rosenblatt.cli.user_code import UserCode, check_call, running, split_target

if TYPE_CHECKING:
    from rosenblatt.counting import Growth, Operations

MAKER = "make_input"  # the function of a file that makes its inputs, unless --make names another
_ADVICE = f"--input with the kind of each argument, such as --input vector,vector; or write {MAKER}(n) in the file"
_DEFAULTS = {  # what an error of the code is told where no --input was given
    "number": "--input list; without --input the argument is the number n",
    "list": "--input number; without --input the argument is the list 1, …, n",
}
_PATIENCE = 10.0  # seconds after which a count that is not done says where it is
_LARGEST_SIZE = 10**7  # beyond it a size is a slip of the hand


class Measure(StrEnum):
    """Those of `counting.growth`."""

    total = "total"
    steps = "steps"
    flops = "flops"
    arithmetic = "arithmetic"
    comparison = "comparison"
    logical = "logical"
    indexing = "indexing"
    assignment = "assignment"
    calls = "calls"
    control = "control"


def count(
    context: typer.Context,
    target: Annotated[str, typer.Argument(metavar="FILE.py::FUNCTION", help="A Python file and a function in it.")],
    sizes: Annotated[
        str, opts.option("--sizes", "SIZES", "Sizes to count at: 1-8, 8-64:8 in steps of 8, or 1,2,4,8,16,32.")
    ] = "1-8",
    input: Annotated[opts.Text, opts.option(
        "--input", "KINDS",
        "What each argument is at size n, separated by commas: number (n itself), list (1 to n), falling (n to 1), vector "
        "and matrix (numpy arrays of n and of n × n numbers), or a number such as 0. By default one list, or the number "
        "if the argument is called n or is an int.",
    )] = None,
    make: Annotated[opts.Text, opts.option(
        "--make", "NAME",
        f"Function of the file that returns the arguments for size n; by default {MAKER}, if the file has it.",
    )] = None,
    measure: Annotated[Measure, opts.option(
        "--measure", "WHAT",
        "What the law is about: total (all operations), steps, flops, arithmetic, comparison, logical, indexing, "
        "assignment, calls or control.",
    )] = Measure.total,
    resources: Annotated[
        bool, opts.option("--resources", None, "Measure time and memory too; it then runs up to 22 times at each size.")
    ] = False,
    lines: Annotated[bool, opts.option("--lines", None, "Show the counts of each line at the largest size.")] = False,
    plot: opts.Plot = None,
    json: opts.Json = False,
    quiet: opts.Quiet = False,
) -> int:  # fmt: skip
    """Count the operations of a Python function at several sizes, and name the law of their growth.

    It runs the code of the file, as importing it would, and the function at each size: use it only on code that you
    trust. What the code prints goes to standard error.

    Exit code 0: a law of growth fits the counts. 1: none does at these sizes; try more, or larger ones.
    """
    console = Console(json, quiet)
    check_plot(plot)
    path, name = split_target(target)
    each_size = parse_sizes(sizes)
    if make is not None:
        opts.refuse_options(context, ("input",), "it has no effect with --make")
    if input is not None:
        parse_kinds(input)  # wrong ones are an error before any code runs

    from rosenblatt.counting import count_operations, growth

    with running(path, quiet) as code, _told_to_wait(console, code):
        function = code.function(name)
        maker = make or (MAKER if input is None and hasattr(code.module, MAKER) else None)
        own = code.function(maker) if maker is not None else None
        chosen = input or ("number" if takes_size(function) else "list")
        kinds = parse_kinds(chosen)
        if input is None and own is None:
            code.hint = _DEFAULTS[chosen]

        def arguments(n: int) -> tuple[Any, ...]:
            code.size = n
            if own is None:
                made, made_by = tuple(kind(n) for kind in kinds), f"--input {chosen}"
            else:
                check_call(own, (n,), "a size", "a function of the size alone")
                made, made_by = own(n), f"what {maker} returns"
            made = made if isinstance(made, tuple) else (made,)
            check_call(function, made, made_by, _ADVICE)
            return made

        found = growth(function, each_size, make=arguments, measure=measure.value, resources=resources)
        largest = count_operations(function, *arguments(found.sizes[-1])) if lines else None
    if plot is not None:
        from rosenblatt.plot import growth as draw_growth

        save_plot(draw_growth(found), plot)
        console.note(f"the plot is saved in {plot}")
    console.result({"function": name, **_count_facts(found, largest)}, _text(found, largest, console))
    if not found.formula:
        console.note("try: sizes that double, such as --sizes 1,2,4,8,16,32,64, or an input that is not random")
    return Code.DONE if found.formula else Code.NO


@contextmanager
def _told_to_wait(console: Console, code: UserCode) -> Iterator[None]:
    """Say once, while a block runs, that it takes long: a function may never end."""

    def tell() -> None:
        console.note(f"still counting, at size {code.size}; Ctrl-C ends it" if code.size is not None else "still reading")

    timer = threading.Timer(_PATIENCE, tell)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def takes_size(function: Callable[..., Any]) -> bool:
    """Return whether the only argument that a function needs is its size: it is called n, or annotated as an int."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    needed = [
        one
        for one in parameters
        if one.default is one.empty and one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)
    ]
    return len(needed) == 1 and (needed[0].name == "n" or needed[0].annotation in (int, "int"))


def parse_sizes(text: str) -> list[int]:
    """Return the sizes that are written as 1-8, 8-64:8 or 1,2,4,8."""
    found: list[int] = []
    for part in text.split(","):
        span, colon, step = part.strip().partition(":")
        low, dash, high = span.partition("-")
        numbers = [low, high if dash else low, step if colon else "1"]
        if not all(number.isascii() and number.isdecimal() for number in numbers) or (colon and not dash):
            allowed = "whole numbers and ranges, such as 1-8, 8-64:8 or 1,2,4,8,16,32"
            raise Failure(f"--sizes must be {allowed}; got {text}", Code.USAGE)
        first, last, by = map(int, numbers)
        if not (first <= last <= _LARGEST_SIZE and by >= 1):
            raise Failure(f"--sizes must rise, to {_LARGEST_SIZE:,} at most; got {part.strip()}", Code.USAGE)
        found += range(first, last + 1, by)
    return found


def parse_kinds(text: str) -> list[Callable[[int], Any]]:
    """Return what makes each argument from the size."""
    import numpy as np

    known: dict[str, Callable[[int], Any]] = {
        "number": lambda n: n,
        "list": lambda n: list(range(1, n + 1)),
        "falling": lambda n: list(range(n, 0, -1)),
        "vector": lambda n: np.arange(1.0, n + 1),
        "matrix": lambda n: np.arange(1.0, n * n + 1).reshape(n, n),
    }
    kinds = [kind.strip() for kind in text.split(",")]
    return [known[kind] if kind in known else _constant(kind, text, ", ".join(known)) for kind in kinds]


def _constant(kind: str, text: str, known: str) -> Callable[[int], Any]:
    for parse in (int, float):
        try:
            value = parse(kind)
        except ValueError:
            continue
        return lambda n: value
    raise Failure(f"--input must be made of {known} and numbers, with commas between; got {text}", Code.USAGE)


def _count_facts(found: Growth, largest: Operations | None) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "measure": found.unit, "law": found.law, "formula": found.formula, "exact": found.exact,
        "sizes": found.sizes, "counts": found.counts,
        "kinds": {kind: [getattr(counts, kind) for counts in found.kinds] for kind in _kinds(found)},
        "flags": [flag._asdict() for flag in found.flags],
    }  # fmt: skip
    if found.memory is not None:
        facts |= {"seconds": [cost.seconds for cost in found.resources], "peak_bytes": found.memory.counts}
        facts |= {"memory": {"law": found.memory.law, "formula": found.memory.formula, "exact": found.memory.exact}}
    if largest is not None:
        names = ("steps", "total")
        facts["lines"] = [
            {"line": line.number, "text": line.text, **{name: getattr(line.counts, name) for name in names}}
            for line in largest.lines
        ]
    return facts


def _kinds(found: Growth) -> list[str]:
    """The kinds of operations that there are."""
    from rosenblatt.counting.meter import KINDS

    return [kind for kind in KINDS if any(getattr(counts, kind) for counts in found.kinds)]


def _text(found: Growth, largest: Operations | None, console: Console) -> str:
    by_kind = [] if found.resources else _kinds(found)  # all of them and the resources would be wider than a terminal
    kinds = [*by_kind, "total", *([found.unit] if found.unit not in ("operations", *by_kind) else [])]
    headings = ["n", *("operations" if kind == "total" else kind for kind in kinds)]
    rows: list[list[object]] = [
        [n, *(getattr(counts, kind) for kind in kinds)] for n, counts in zip(found.sizes, found.kinds, strict=True)
    ]
    if found.resources:
        headings += ["time", "peak bytes"]
        for row, cost in zip(rows, found.resources, strict=True):
            row += [f"{round_digits(cost.seconds * 1e6)} µs", cost.peak_bytes]
    parts = [console.table(headings, rows), _law_text(found)]
    if found.memory is not None:
        parts[-1] += f"\n{_law_text(found.memory)}"
    if found.flags:
        parts.append("\n".join(["Not in these counts, and growing with n:", *(f"  {flag}" for flag in found.flags)]))
    if largest is not None:
        parts.append(f"At n = {found.sizes[-1]}:\n\n{largest}")
    return "\n\n".join(parts)


def _law_text(found: Growth) -> str:
    if not found.formula:
        return f"{found.unit}: undecided"
    if not found.exact:
        return f"{found.unit}: {found.formula}, O({found.law}), fitted within 2 %"
    c, start = found.witness()
    most = f"({c})" if c.denominator > 1 else f"{c}"
    bound = f": at most {most}·{found.law} from n = {start} on" if len(found.terms) > 1 else ""
    return f"{found.unit}: {found.formula}, O({found.law}){bound}"
