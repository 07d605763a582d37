"""`rosenblatt trace`: a run of the perceptron with its proof beside it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rosenblatt.cli import options as opts
from rosenblatt.cli.console import Console
from rosenblatt.cli.errors import Code, Failure
from rosenblatt.cli.files import check_plot, check_writable, save_plot
from rosenblatt.cli.proofs import Examples, read_examples

if TYPE_CHECKING:
    from rosenblatt.theory import Trace

# Do e-mails contain the words? An example of lecture notes of the University of Waterloo.
WORDS = ["and", "viagra", "the", "of", "nigeria"]
EMAILS = [[1, 1, 0, 1, 1], [0, 0, 1, 1, 0], [0, 1, 1, 0, 0], [1, 0, 0, 1, 0], [1, 0, 1, 0, 1], [1, 0, 1, 1, 0]]
KINDS = ["spam", "ham", "spam", "ham", "spam", "ham"]
_WIDE = 8  # weights that are shown


class RowOrder(StrEnum):
    """Those of `theory.trace`."""

    cyclic = "cyclic"
    shuffle = "shuffle"
    random = "random"
    most_violated = "most-violated"
    most_violated_normalised = "most-violated-normalised"


class Mistake(StrEnum):
    """Those of `theory.trace`."""

    margin = "margin"
    prediction = "prediction"


class ZeroSign(StrEnum):
    """Those of `theory.trace`."""

    positive = "1"
    negative = "-1"


@opts.expand_groups
def trace(
    context: typer.Context,
    columns: opts.DataOptions,
    data: Annotated[
        list[str] | None,
        typer.Argument(metavar="DATA", help="Files of labelled rows; without files, an example of six e-mails."),
    ] = None,
    order: Annotated[RowOrder, opts.option("--order", None, "Order in which rows are visited.")] = RowOrder.cyclic,
    constant: Annotated[
        float, opts.option("--constant", "K", "Value of the constant feature (intercept) of each row; 0 for none.")
    ] = 1.0,
    delta: Annotated[float, opts.option("--delta", "D", "Update on a row if its margin is at most this.", min=0)] = 0.0,
    mistake: Annotated[
        Mistake,
        opts.option(
            "--mistake", None, "Update on a row by its margin (see --delta), or only if its predicted label is wrong."
        ),
    ] = Mistake.margin,
    zero_sign: Annotated[
        ZeroSign,
        opts.option(
            "--zero-sign", None, "With --mistake prediction: predict the second (1) or first (-1) label at score 0."
        ),
    ] = ZeroSign.positive,
    rate: Annotated[float, opts.option("--rate", "R", "Learning rate.")] = 1.0,
    max_updates: Annotated[int, opts.option("--max-updates", "N", "Stop after this many updates.", min=1)] = 100_000,
    rows: Annotated[int, opts.option("--rows", "N", "Number of updates to show, at most.", min=2)] = 40,
    plot: opts.Plot = None,
    html: Annotated[opts.Text, opts.option("--html", "FILE", "Save the run as a page to step through.")] = None,
    axes: Annotated[
        opts.Text, opts.option("--axes", "A,B", "The two columns that --html draws; needed if there are more than two.")
    ] = None,
    seed: opts.Seed = 0,
    max_line: opts.MaxLine = "64M",
    json: opts.Json = False,
    quiet: opts.Quiet = False,
) -> int:
    """Trace the perceptron update by update, with the bounds of its convergence theorem.

    Each update adds at least γ to w·u, where u is the unit vector with the largest margin γ, and at most R² to |w|²,
    where R is the length of the longest row. So w·u grows like k and |w| like √k, and as w·u ≤ |w| there are at most R²/γ²
    updates.

    Exit code 0: the run converged. 1: it did not, or nothing separates the rows.
    """
    console = Console(json, quiet)
    check_plot(plot)
    if html is not None and not html.lower().endswith((".html", ".htm")):
        raise Failure(f"--html must be a file that ends in .html; got {html}", Code.USAGE)
    check_writable(html, *(data or []))
    if axes is not None and html is None:
        raise Failure("--axes: it has no effect without --html", Code.USAGE)
    if rate <= 0:
        raise Failure(f"--rate must be above 0; got {rate:g}", Code.USAGE)
    if mistake is Mistake.margin:
        opts.refuse_options(context, ("zero_sign",), "it has no effect without --mistake prediction")
    else:
        opts.refuse_options(context, ("delta",), "it has no effect with --mistake prediction, which has no margin")
    if not data:
        opts.refuse_options(context, columns._fields, "there are no files to read; give DATA")
    examples = read_examples(data, columns) if data else Examples(EMAILS, KINDS, "", lambda column: WORDS[column])
    examples = examples.without_index_0()
    X, y, names = examples.X, examples.y, examples.column_name

    from rosenblatt.theory import NotSeparable, signed
    from rosenblatt.theory import trace as traced
    from rosenblatt.workflow.labels import label_text

    signed_rows = signed.read(X, y, constant)
    column_names = [names(j) for j in range(signed_rows.features)] if html is not None else []
    plane = _axis_columns(axes, column_names)

    def save_page(run: Trace) -> None:
        if html is not None:
            title = f"The perceptron on {', '.join(map(os.path.basename, data)) if data else 'six e-mails'}"
            run.to_html(html, names=column_names, axes=plane, title=title)
            console.note(f"the run is saved in {html}")

    perceptron = partial(
        traced, X, y, constant=constant, delta=delta, rate=rate, mistake=mistake.value, zero_sign=int(zero_sign),
        order=order.value, random_state=seed,
    )  # fmt: skip
    try:
        run = perceptron(max_updates=max_updates)
    except NotSeparable as error:
        if html is not None:
            save_page(_endless_run(perceptron, signed_rows.A.shape[1], max_updates))
        raise Failure(
            str(error.__cause__), Code.NO, f"rosenblatt certify {' '.join(data or [])} shows the rows that prove it"
        ) from None
    save_page(run)
    facts = {name: getattr(run, name) for name in ("example", "margin", "progress", "lower", "norm", "upper", "cosine")}
    names_of_numbers = "updates", "bound", "gamma", "radius", "delta", "rate", "converged", "mistake", "zero_sign"
    numbers = {name: getattr(run, name) for name in names_of_numbers}
    classes = list(map(label_text, signed_rows.classes.tolist()))
    if plot is not None:
        from rosenblatt.plot import proof

        save_plot(proof(run), plot)
        console.note(f"the plot is saved in {plot}")
    console.result(
        {**numbers, "classes": classes, "weights": run.weights, "separator": run.separator, **facts},
        _update_table(run, signed_rows, y, names, constant, rows, console),
    )
    return Code.DONE if run.converged else Code.NO


def _axis_columns(axes: str | None, names: Sequence[str]) -> tuple[int, int] | None:
    """The numbers of the two columns that --axes names."""
    if axes is None:
        return None
    one, _, other = axes.partition(",")
    if one == other or one not in names or other not in names:
        some = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
        raise Failure(f"--axes must be two columns, separated by a comma; got {axes}", Code.USAGE, f"two of {some}")
    return names.index(one), names.index(other)


def _endless_run(perceptron: Callable[..., Trace], width: int, max_updates: int) -> Trace:
    """A run on rows that nothing separates: three rounds of its cycle, if it enters one."""
    import numpy as np

    separator = np.eye(1, width)[0]  # any vector; none has a margin above 0
    updates = 1000  # a cycle is mostly short; a run is not measured at 100,000 updates to find one of 4
    while True:
        run = perceptron(separator=separator, max_updates=min(updates, max_updates))
        if run.repeat is not None:
            rounds = run.repeat.first + 3 * run.repeat.length
            return perceptron(separator=separator, max_updates=min(rounds, max_updates))
        if updates >= max_updates:
            return run
        updates *= 10


def _update_table(
    run: Any, signed_rows: Any, y: Sequence, names: Callable[[int], str], constant: float, most: int, console: Console
) -> str:
    from rosenblatt.workflow.labels import label_text

    wide = len(run.weights) > _WIDE
    columns = [] if wide else [*(names(j) for j in range(signed_rows.features)), *["1"] * (constant != 0)]
    path, walls = None if wide else run.path, run.walls(run.k)

    def line(k: int) -> list[Any]:
        i = run.example[k - 1] if k else None
        before = [k, "", "", ""] if i is None else [k, int(i), label_text(y[i]), f"{run.margin[k - 1]:.4g}"]
        weights = [] if path is None else [f"{value:.4g}" for value in path[k]]
        bounds = [walls[0][k], run.progress[k], run.norm[k], walls[1][k]]
        return [*before, *weights, *(f"{value:.3f}" for value in bounds)]

    headings = ["k", "row", "label", "margin", *columns]
    headings += (
        ["kγ ≤", "w·u", "|w|", "≤ √k R"] if not run.delta and run.rate == 1 else ["bound ≤", "w·u", "|w|", "≤ bound"]
    )
    if run.updates <= most:
        shown = [line(k) for k in range(run.updates + 1)]
    else:
        gap = ["…"] + [""] * (len(headings) - 1)
        last = run.updates + 1 - (most - most // 2)
        shown = [*map(line, range(most // 2 + 1)), gap, *map(line, range(last, run.updates + 1))]
    return f"{console.table(headings, shown)}\n\n{run}"
