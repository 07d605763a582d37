"""`rosenblatt bench`: a few workloads of drawn data, beside scikit-learn, on this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Annotated, Any, NamedTuple

import typer

from rosenblatt.cli.console import Console
from rosenblatt.cli.errors import Code
from rosenblatt.cli.options import Json, Quiet


class Row(NamedTuple):
    """One workload: the best time of each, and whether the answers agree."""

    workload: str
    ours: float
    peer: float
    right: bool
    note: str

    @property
    def ratio(self) -> float:
        return self.peer / self.ours


def bench(
    repeat: Annotated[int, typer.Option(min=1, metavar="N", help="Turns that each takes; the best counts.")] = 3,
    scale: Annotated[float, typer.Option(min=0.01, max=100, metavar="F", help="So many times the rows.")] = 1.0,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Measure this machine: a few workloads of drawn data, beside scikit-learn.

    Five epochs of a perceptron, and text to rows, in turns; the answers must agree, or the times mean nothing. It takes
    a few seconds once the kernels are compiled, which the first run does.

    Exit code 0: the answers agree. 1: some do not.
    """
    console = Console(json, quiet)
    rows: list[Row] = []
    with console.progress(len(WORKLOADS), "workloads") as progress:
        for number, workload in enumerate(WORKLOADS):
            progress.update(number, now=workload.__doc__)
            rows += workload(repeat, scale)

    from rosenblatt.engine.blocks import available_threads

    headings = ["workload", "ours", "scikit-learn", "ratio", "answers"]
    shown = [
        [
            row.workload,
            f"{row.ours:.3f} s",
            f"{row.peer:.3f} s",
            f"{row.ratio:.1f}×",
            row.note if row.right else f"WRONG: {row.note}",
        ]
        for row in rows
    ]
    facts = [{**row._asdict(), "ratio": row.ratio} for row in rows]
    console.result({"cores": available_threads(None), "rows": facts}, console.table(headings, shown))
    return Code.DONE if all(row.right for row in rows) else Code.NO


def _dense(repeat: int, scale: float) -> Iterator[Row]:
    """dense"""
    from rosenblatt.cli import workloads

    yield from _race(workloads.dense(max(10, round(100_000 * scale)), 100), repeat, ("cyclic", "shuffle"))


def _sparse(repeat: int, scale: float) -> Iterator[Row]:
    """sparse rows"""
    from rosenblatt.cli import workloads

    rows = max(10, round(50_000 * scale))
    yield from _race(workloads.text(f"CSR {rows:,} × 100,000, 60 a row", (rows, 100_000), 60, 2), repeat, ("cyclic",))


def _classes(repeat: int, scale: float) -> Iterator[Row]:
    """many classes"""
    from rosenblatt.cli import workloads

    rows = max(100, round(4_000 * scale))
    yield from _race(workloads.text(f"CSR {rows:,} × 10,000, 20 classes", (rows, 10_000), 80, 20), repeat, ("cyclic",))


def _text(repeat: int, scale: float) -> Iterator[Row]:
    """text to rows"""
    from pathlib import Path
    from tempfile import TemporaryDirectory

    from sklearn.datasets import load_svmlight_file

    from rosenblatt.cli import workloads
    from rosenblatt.cli.timing import alternate, clocked
    from rosenblatt.data import svmlight

    data = workloads.text("", (max(10, round(20_000 * scale)), 100_000), 60, 2)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "rows.svm"
        svmlight.write(path, data.X, data.y)
        size = path.stat().st_size / 1e6
        a, b = alternate(
            clocked(lambda: svmlight.read(path)), clocked(lambda: load_svmlight_file(str(path))), repeat=repeat, warm=1
        )
    same = all((mine != theirs).sum() == 0 for mine, theirs in zip(a.result, b.result, strict=True))
    yield Row(f"LIBSVM text, {size:.1f} MB, read", a.cost, b.cost, same, "the same rows" if same else "other rows")


WORKLOADS: list[Callable[[int, float], Iterator[Row]]] = [_dense, _sparse, _classes, _text]


def _fitted(make: Any, X: Any, y: Any, order: str) -> Any:
    return make(X, order).fit(X, y)


def _race(data: Any, repeat: int, orders: tuple[str, ...]) -> Iterator[Row]:
    from rosenblatt.cli.contenders import as_accurate, joined, ours, peer, same_weights
    from rosenblatt.cli.timing import alternate, clocked

    name, X, y = data
    for order in orders:
        contenders = [clocked(partial(_fitted, make, X, y, order)) for make in (ours, peer)]
        a, b = alternate(*contenders, repeat=repeat, warm=1)
        if order == "cyclic":
            verdict = same_weights(X, *(joined(model.coef_, model.intercept_) for model in (a.result, b.result)))
            note = "the same weights" if verdict.right else verdict.note
        else:
            verdict = as_accurate(X, y, a.result, b.result)
            note = "as accurate" if verdict.right else verdict.note
        words = {"cyclic": "in order", "shuffle": "shuffled"}[order]
        yield Row(f"{name}, {words}", a.cost, b.cost, bool(verdict.right), note)
