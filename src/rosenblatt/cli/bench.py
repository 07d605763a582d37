"""`rosenblatt bench`: a few workloads of drawn data, beside scikit-learn, on this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from rosenblatt.cli import options as opts
from rosenblatt.cli.console import Console
from rosenblatt.cli.errors import Code

if TYPE_CHECKING:
    from rosenblatt.cli.workloads import Dataset, Matrix


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
    repeat: Annotated[int, opts.option("--repeat", "N", "Number of runs; the fastest counts.", min=1)] = 3,
    scale: Annotated[
        float, opts.option("--scale", "F", "Multiply the number of rows by this factor.", min=0.01, max=100)
    ] = 1.0,
    json: opts.Json = False,
    quiet: opts.Quiet = False,
) -> int:
    """Benchmark this machine: training and reading times on random data, beside scikit-learn.

    Five epochs of a perceptron, and reading LIBSVM text, in turns; the results must agree. It takes a few seconds; the
    first run also compiles code.

    Exit code 0: the results agree. 1: some do not.
    """
    console = Console(json, quiet)
    rows: list[Row] = []
    with console.progress(unit="workloads") as progress:
        for row in chain(_train(scale, repeat), _read_text(scale, repeat)):
            rows.append(row)
            progress.update(len(rows), now=row.workload)

    from rosenblatt.engine.blocks import available_threads

    headings = ["workload", "ours", "scikit-learn", "ratio", "answers"]
    shown = []
    for row in rows:
        note = row.note if row.right else f"WRONG: {row.note}"
        shown.append([row.workload, f"{row.ours:.3f} s", f"{row.peer:.3f} s", f"{row.ratio:.1f}×", note])
    facts = [{**row._asdict(), "ratio": row.ratio} for row in rows]
    console.result({"cores": available_threads(None), "rows": facts}, console.table(headings, shown))
    return Code.DONE if all(row.right for row in rows) else Code.NO


def _train(scale: float, repeat: int) -> Iterator[Row]:
    from rosenblatt.cli.workloads import dense_dataset, text_dataset

    dense, sparse, classes = max(10, round(100_000 * scale)), max(10, round(50_000 * scale)), max(100, round(4_000 * scale))
    yield from _race(dense_dataset(dense, 100), repeat, ("cyclic", "shuffle"))
    sizes = {f"CSR {sparse:,} × 100,000, 60 a row": ((sparse, 100_000), 60, 2)}
    sizes[f"CSR {classes:,} × 10,000, 20 classes"] = ((classes, 10_000), 80, 20)
    for name, size in sizes.items():
        yield from _race(text_dataset(name, *size), repeat, ("cyclic",))


def _read_text(scale: float, repeat: int) -> Iterator[Row]:
    from pathlib import Path
    from tempfile import TemporaryDirectory

    from sklearn.datasets import load_svmlight_file

    from rosenblatt.cli.workloads import measure_in_turns, text_dataset, timed
    from rosenblatt.data import svmlight

    data = text_dataset("", (max(10, round(20_000 * scale)), 100_000), 60, 2)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "rows.svm"
        svmlight.write(path, data.X, data.y)
        size = path.stat().st_size / 1e6
        ours, peer = measure_in_turns(
            timed(lambda: svmlight.read(path)), timed(lambda: load_svmlight_file(str(path))), repeat=repeat, warm_up=1
        )
    same = all((mine != theirs).sum() == 0 for mine, theirs in zip(ours.result, peer.result, strict=True))
    yield Row(f"LIBSVM text, {size:.1f} MB, read", ours.cost, peer.cost, same, "the same rows" if same else "other rows")


def _race(data: Dataset, repeat: int, orders: tuple[str, ...]) -> Iterator[Row]:
    """Five epochs of our perceptron and of scikit-learn's, in each of these orders."""
    from rosenblatt.cli import workloads

    name, X, y = data
    for order in orders:
        makers = (workloads.our_perceptron, workloads.peer_perceptron)
        programs = [workloads.timed(partial(_fit, make, data, order)) for make in makers]
        ours, peer = workloads.measure_in_turns(*programs, repeat=repeat, warm_up=1)
        if order == "cyclic":
            weights = (workloads.with_intercept(run.result.coef_, run.result.intercept_) for run in (ours, peer))
            equal, note = workloads.compare_weights(X, *weights)
        else:
            equal, note = workloads.compare_accuracy(X, y, ours.result, peer.result)
        if equal:
            note = {"cyclic": "the same weights", "shuffle": "as accurate"}[order]
        words = {"cyclic": "in order", "shuffle": "shuffled"}[order]
        yield Row(f"{name}, {words}", ours.cost, peer.cost, equal, note)


def _fit(make: Callable[[Matrix, str], Any], data: Dataset, order: str) -> Any:
    return make(data.X, order).fit(data.X, data.y)
