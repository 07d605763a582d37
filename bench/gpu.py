"""Exact epochs on a GPU: their time, what averaging adds, the engine on all cores of the CPU and scikit-learn beside them,
rows that are streamed from the memory of the machine, and from which size on a GPU pays.

    python -m bench.gpu                      # all rows, a few minutes on an H200; each is printed when it is done
    python -m bench.gpu --scale 0.1 --only cpu

Values are multiples of 1/8, as in all generated data here: sums of their products are exact in float32, so the weights on
the GPU must be those on the CPU to the last bit, whatever the order of the sums. A time is the median of several runs, each
from weights of zero, Gram matrices included, compiling not; labels and weights come from the memory of the machine and go
back there within it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from bench.data import Missing
from bench.report import Result, Target, line, save, table
from rosenblatt.engine.blocks import available_threads
from rosenblatt.engine.loop import Progress
from rosenblatt.engine.problems import Binary, Joint, OneVsRest, Problem
from rosenblatt.engine.rows import Examples, as_rows
from rosenblatt.engine.train import Trainer
from rosenblatt.engine.visits import Visits
from rosenblatt.engine.weights import Weights, zeros
from rosenblatt.errors import GpuUnavailable
from rosenblatt.gpu.card import Card, CardTask, CardValues, find_card
from rosenblatt.rules import Perceptron

PIECE = 1 << 18  # rows that are generated at a time
GAP = 1.0  # by which rows of two classes are moved away from the plane between them
# Share of labels that are flipped, by the share of mistakes that an epoch of so many rows then makes.
FLIPPED = {0.02: 0.0085, 0.2: 0.1}
RULE = Perceptron(margin=0.0, rate=1.0)
BUS_BYTES = 1 << 30  # of one copy, when the speed of the bus is measured


class Size(NamedTuple):
    """The size of a problem."""

    rows: int
    features: int
    classes: int
    mistakes: float = 0.02  # the share of rows, about, that an epoch gets wrong where there are two classes

    def __str__(self) -> str:
        classes = f"two classes, {self.mistakes:.0%} mistakes" if self.classes == 2 else f"{self.classes:,} classes"
        return f"{self.rows:,} × {self.features:,}, {classes}"


class Data(NamedTuple):
    """Rows on the GPU, and their labels in the memory of the machine."""

    X: Any  # an array of CuPy, float32
    labels: NDArray  # int64


class Run(NamedTuple):
    """One epoch."""

    seconds: float
    weights: Weights
    progress: Progress


# Data


def needed() -> Card:
    """Return the GPU; raise Missing, which says why, if there is none."""
    if find_spec("cupy") is None:
        raise Missing("CuPy is not installed: pip install 'rosenblatt[cuda]'")
    try:
        return find_card("cuda")
    except (GpuUnavailable, ImportError) as error:
        raise Missing(f"no GPU: {error}") from None


def array_library() -> Any:
    """Return CuPy; tests put numpy in its place."""
    import cupy

    return cupy


def truth_of(size: Size) -> Any:
    """Return what the labels of such data follow, on the GPU: the normal of a plane, or the centres of classes."""
    rng = np.random.default_rng(0)
    if size.classes == 2:
        normal = rng.standard_normal(size.features)
        return array_library().asarray((normal / np.linalg.norm(normal)).astype(np.float32))
    return array_library().asarray(0.12 * rng.standard_normal((size.classes, size.features), dtype=np.float32))


def pieces(size: Size) -> Iterator[tuple[slice, Any, Any]]:
    """Yield data piece by piece, made on the GPU: where the rows belong, the rows, and their labels.

    Of two classes, labels are the sides of a plane, but for some that are flipped; of more, rows lie around centres.
    """
    xp, truth = array_library(), truth_of(size)
    rng = xp.random.default_rng(0)
    for first in range(0, size.rows, PIECE):
        count = min(PIECE, size.rows - first)
        X = rng.standard_normal((count, size.features), dtype=np.float32)
        if size.classes == 2:
            labels = X @ truth > 0
            X += xp.where(labels, GAP, -GAP).astype(np.float32)[:, None] * truth
            labels ^= rng.random(count) < FLIPPED[size.mistakes]
        else:
            labels = rng.integers(0, size.classes, count)
            X += truth[labels]
        X *= 8
        xp.rint(X, out=X)
        X /= 8
        yield slice(first, first + count), X, labels.astype(np.int64)


def copy_to_host(array: Any, to: NDArray) -> None:
    """Copy an array of CuPy into one of numpy."""
    array.get(out=to)


@lru_cache(maxsize=1)
def on_gpu(size: Size) -> Data:
    """Return data on the GPU."""
    data = Data(array_library().empty((size.rows, size.features), np.float32), np.empty(size.rows, np.int64))
    for where, X, labels in pieces(size):
        data.X[where] = X
        copy_to_host(labels, data.labels[where])
    return data


def in_memory(size: Size) -> Data:
    """Return the same data in the memory of the machine."""
    data = Data(np.empty((size.rows, size.features), np.float32), np.empty(size.rows, np.int64))
    for where, X, labels in pieces(size):
        copy_to_host(X, data.X[where])
        copy_to_host(labels, data.labels[where])
    return data


# Epochs


def problem_of(size: Size, joint: bool) -> Problem:
    """Return the problem: two classes, many decided jointly, or each against the rest."""
    return Binary(2) if size.classes == 2 else Joint(size.classes) if joint else OneVsRest(size.classes)


def gpu_epoch(values: CardValues, labels: NDArray, problem: Problem, averaged: bool = False) -> Run:
    """Learn for one epoch on the GPU, from weights of zero, in the order of the rows. The time is that of the epoch, with
    its Gram matrices and the copies of the weights to the card and back; a run begins once, for all its epochs."""
    weights, order = zeros(values.shape[1], problem, np.float32, averaged, sparse=False), np.arange(len(labels))
    run = find_card("cuda").begin(CardTask(values, labels, None, 1.0, weights, problem, RULE))
    start = perf_counter()
    progress = run.epoch(order)
    return Run(perf_counter() - start, weights, progress)


def cpu_epoch(data: Data, problem: Problem, threads: int) -> Run:
    """Learn for one epoch on the CPU, in the same way."""
    weights, order = zeros(data.X.shape[1], problem, np.float32, averaged=False, sparse=False), np.arange(len(data.labels))
    visits = Visits(order, "cyclic", np.random.default_rng(0), threads=threads)
    trainer = Trainer(Examples(as_rows(data.X), data.labels, None, 1.0), weights, problem, RULE, visits)
    with threadpool_limits(threads):
        start = perf_counter()
        progress, _ = trainer.epoch(order)
        return Run(perf_counter() - start, weights, progress)


def repeated(repeat: int, *programs: Callable[[], Run]) -> list[list[Run]]:
    """Run programs in turns, after one run of each that is not counted, as it compiles."""
    for program in programs:
        program()
    turns = [[program() for program in programs] for _ in range(repeat)]
    return [list(runs) for runs in zip(*turns, strict=True)]


def seconds_of(runs: list[Run]) -> float:
    """Return the median time."""
    return median(run.seconds for run in runs)


def same(a: Run, b: Run) -> bool:
    """Return whether two runs ended with the same weights, to the last bit, after the same mistakes."""
    counts = [(run.progress.mistakes, run.progress.updates) for run in (a, b)]
    return bool(np.array_equal(a.weights.w, b.weights.w) and counts[0] == counts[1])


def mistakes_note(run: Run) -> str:
    """Return the share of rows that were mistakes, in words."""
    return f"{run.progress.mistakes / run.progress.position:.1%} mistakes"


# Rows of the table


def one_epoch(folder: Path | None, repeat: int, size: Size, joint: bool = False) -> Result:
    """The time of one exact epoch over rows that are on the GPU; two runs must end with the same bits."""
    card = needed()
    data, problem = on_gpu(size), problem_of(size, joint)
    values = card.adopt(data.X)
    [runs] = repeated(repeat, lambda: gpu_epoch(values, data.labels, problem))
    seconds = seconds_of(runs)
    how = "" if size.classes == 2 else ", joint" if joint else ", one-vs-rest"
    note = f"{mistakes_note(runs[0])}; {size.rows / seconds / 1e6:,.1f} million rows/s; median of {repeat}"
    return Result(f"GPU: one epoch, {size}{how}", seconds, None, seconds, same(runs[0], runs[-1]), note)


def averaging(folder: Path | None, repeat: int, size: Size) -> Result:
    """By how many percent an epoch that keeps the average takes longer than one that keeps the last weights only."""
    card = needed()
    data, problem = on_gpu(size), problem_of(size, joint=False)
    values = card.adopt(data.X)
    averaged, last = repeated(
        repeat,
        lambda: gpu_epoch(values, data.labels, problem, averaged=True),
        lambda: gpu_epoch(values, data.labels, problem),
    )
    ours, plain = seconds_of(averaged), seconds_of(last)
    note = f"peer: ours that keeps the last; {mistakes_note(last[0])}; medians of {repeat}"
    return Result(f"GPU: averaging, {size}", ours, plain, 100 * (ours / plain - 1), same(averaged[0], last[0]), note)


def against_cpu(folder: Path | None, repeat: int, size: Size, joint: bool = False, threads: int | None = None) -> Result:
    """The time of our engine on the CPU / on the GPU, which must end with the same weights."""
    card, threads = needed(), available_threads(threads)
    problem = problem_of(size, joint)
    here = in_memory(size)
    there = array_library().asarray(here.X)
    values = card.adopt(there)
    [gpu] = repeated(repeat, lambda: gpu_epoch(values, here.labels, problem))
    first = cpu_epoch(here, problem, threads)  # this run compiles
    cpu = [cpu_epoch(here, problem, threads) for _ in range(3 if first.seconds < 5 else 1)]
    ours, peer = seconds_of(gpu), seconds_of(cpu)
    cores = "one core" if threads == 1 else f"{threads} cores"
    how = ", joint" if joint else ""
    note = f"{mistakes_note(gpu[0])}; the same bits: {'yes' if same(gpu[0], cpu[0]) else 'NO'}"
    name = f"GPU: our engine on {cores} against the GPU, {size}{how}"
    return Result(name, ours, peer, peer / ours, same(gpu[0], cpu[0]), note)


def against_scikit_learn(folder: Path | None, repeat: int, size: Size) -> Result:
    """The time of scikit-learn's Perceptron with all jobs / ours, for one epoch of each class against the rest. Its `fit`
    checks the rows too, so ours is that of `fit` as well."""
    from sklearn.linear_model import Perceptron as PeerPerceptron

    from rosenblatt import Perceptron as OurPerceptron

    needed()
    here = in_memory(size)
    there = array_library().asarray(here.X)
    settings: dict[str, Any] = {"max_iter": 1, "tol": None}

    def fit() -> tuple[float, Any]:
        start = perf_counter()
        model = OurPerceptron(**settings, order="cyclic", keep="last", multiclass="ovr").fit(there, here.labels)
        return perf_counter() - start, model

    fit()
    runs = [fit() for _ in range(repeat)]
    start = perf_counter()
    peer = PeerPerceptron(**settings, shuffle=False, n_jobs=-1).fit(here.X, here.labels)
    theirs = perf_counter() - start
    ours, model = median(seconds for seconds, _ in runs), runs[-1][1]
    close = np.isclose(model.coef_, peer.coef_, rtol=1e-4, atol=1e-4).mean()
    note = f"{close:.1%} of the weights agree to four digits; one run of the peer, the median of {repeat} of ours"
    name = f"GPU: scikit-learn on {available_threads(None)} cores against the GPU, {size} one-vs-rest, fit"
    return Result(name, ours, theirs, theirs / ours, bool(close > 0.99), note)


def bus_speed() -> float:
    """Return the bytes a second that the bus carries from pinned memory to the GPU, in the best of five copies."""
    cupy = array_library()
    memory = cupy.cuda.alloc_pinned_memory(BUS_BYTES)
    here, there = np.frombuffer(memory, np.uint8, BUS_BYTES), cupy.empty(BUS_BYTES, np.uint8)
    seconds = []
    for _ in range(6):
        start = perf_counter()
        there.set(here)
        cupy.cuda.get_current_stream().synchronize()
        seconds.append(perf_counter() - start)
    return BUS_BYTES / min(seconds[1:])


def streaming(folder: Path | None, repeat: int, size: Size) -> Result:
    """The speed of an epoch over rows in the memory of the machine, as a share of what the bus carries."""
    needed()
    bus = bus_speed()
    data, problem = in_memory(size), problem_of(size, joint=False)
    runs = [gpu_epoch(data.X, data.labels, problem) for _ in range(2)]
    seconds = min(run.seconds for run in runs)
    speed = data.X.nbytes / seconds
    note = f"{speed / 1e9:.1f} of {bus / 1e9:.1f} GB/s; {mistakes_note(runs[0])}; the best of {len(runs)}"
    name = f"GPU: one epoch over {data.X.nbytes / 1e9:.1f} GB in the memory of the machine, {size}"
    return Result(name, seconds, data.X.nbytes / bus, speed / bus, same(runs[0], runs[-1]), note)


def crossover(folder: Path | None, repeat: int, size: Size, threads: int = 2) -> Result:
    """The time of `fit` on two cores / on the GPU, five epochs, for rows that are on the GPU already; the note has that of
    rows that come from the memory of the machine."""
    from rosenblatt import Perceptron as OurPerceptron

    needed()
    here = in_memory(size)
    there = array_library().asarray(here.X)

    def fit(X: Any, device: str) -> float:
        learner = OurPerceptron(max_iter=5, tol=None, order="cyclic", keep="last", device=device, n_jobs=threads)
        with threadpool_limits(threads if device == "cpu" else None):
            start = perf_counter()
            learner.fit(X, here.labels)
            return perf_counter() - start

    programs: list[Callable[[], float]] = [
        lambda: fit(there, "auto"),
        lambda: fit(here.X, "cuda"),
        lambda: fit(here.X, "cpu"),
    ]
    for program in programs:
        program()
    times = [[program() for program in programs] for _ in range(repeat)]
    on_card, sent, cpu = (median(column) for column in zip(*times, strict=True))
    note = f"rows sent from memory: {sent:.4f} s, {cpu / sent:.2f}×; {'one core' if threads == 1 else f'{threads} cores'}"
    return Result(f"GPU: fit of five epochs, {size}", on_card, cpu, cpu / on_card, True, note)


TWO, HUNDRED = Size(2_097_152, 1024, 2), Size(1_048_576, 1024, 100)
THOUSAND = Size(1_048_576, 768, 1000)
# (name, function, settings, target) of each; `bench.workloads` has them too.
ROWS: tuple[tuple[str, Callable[..., Result], tuple[Any, ...], Target], ...] = (
    ("gpu-two-classes", one_epoch, (TWO,), Target(0.09, 0.03, "s", "≤")),
    ("gpu-two-classes-average", averaging, (TWO,), Target(10, 3, "%", "≤")),
    ("gpu-two-classes-hard", one_epoch, (TWO._replace(mistakes=0.2),), Target(0.16, 0.06, "s", "≤")),
    ("gpu-two-classes-hard-average", averaging, (TWO._replace(mistakes=0.2),), Target(10, 3, "%", "≤")),
    ("gpu-100-classes", one_epoch, (HUNDRED,), Target(0.2, 0.06, "s", "≤")),
    ("gpu-100-classes-average", averaging, (HUNDRED,), Target(10, 3, "%", "≤")),
    ("gpu-1000-classes-joint", one_epoch, (THOUSAND, True), Target(1, 0.3, "s", "≤")),
    ("gpu-cpu-two-classes", against_cpu, (TWO,), Target(10, 40)),
    ("gpu-cpu-100-classes", against_cpu, (HUNDRED,), Target(10, 40)),
    ("gpu-cpu-1000-classes-joint", against_cpu, (Size(262_144, 768, 1000), True), Target(10, 40)),
    ("gpu-scikit-learn", against_scikit_learn, (HUNDRED,), Target(100, 500)),
    ("gpu-streaming", streaming, (Size(10_000_000, 1024, 2),), Target(0.6, 0.9, "")),
    *(
        (f"gpu-crossover-{rows}-{classes}", crossover, (Size(rows, 1024, classes),), Target())
        for classes in (2, 100)
        for rows in (1_000, 10_000, 100_000)
    ),
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.gpu", description="Exact epochs on a GPU.")
    parser.add_argument(
        "--scale", type=float, default=1.0, metavar="SHARE", help="of the rows; 1 is the size of the targets"
    )
    parser.add_argument("--only", nargs="+", default=[""], metavar="NAME", help="rows whose name contains one of these")
    parser.add_argument("--repeat", type=int, default=5, metavar="N", help="runs of each program; the median counts")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there, too")
    options = parser.parse_args()
    results = []
    for key, compare, (size, *others), target in ROWS:
        if not any(part in key for part in options.only):
            continue
        scaled = size._replace(rows=max(round(size.rows * options.scale), 1))
        start = perf_counter()
        print(f"{key}: {scaled} …", file=sys.stderr, flush=True)
        try:
            result = compare(None, options.repeat, scaled, *others)
        except Missing as missing:
            result = Result(key, None, None, None, None, str(missing))
        except Exception as error:  # the next row can still be measured
            result = Result(key, None, None, None, False, f"{type(error).__name__}: {error}")
        results.append(result._replace(key=key, target=target))
        print(f"{line(results[-1])} [{perf_counter() - start:.1f} s in all]", file=sys.stderr, flush=True)
    print(table(results))
    if options.json is not None:
        save(results, options.json)
    return int(any(result.right is False for result in results))


if __name__ == "__main__":
    sys.exit(main())
