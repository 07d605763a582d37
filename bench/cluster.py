"""Training in shards on a Dask cluster: how much two workers gain over one, what the cluster costs, what shards cost in
accuracy, the memory of client and scheduler, and Dask-ML's Incremental beside it. All processes share the machine."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from bench import files
from bench.cluster_kill import kill_many
from bench.dask_cluster import DaskCluster, Training, TrainingProcess, peak_bytes
from bench.data import Missing, file_in, svmlight
from bench.report import Result
from bench.structured import tagger_examples

LIMIT = 3600.0  # seconds for one training
EPOCHS = 10  # of accuracy rows: the same for all numbers of shards


def needed() -> None:
    """Raise Missing if Dask is not installed."""
    if find_spec("distributed") is None:
        raise Missing("distributed is not installed: pip install 'rosenblatt[cluster]'")


@cache
def text_parts(copies: int) -> tuple[list[str], Any]:
    """Return so many files of 130 MB of LIBSVM text, the same rows in each, and the folder that goes with them. They are
    linked, so that they take no place, and are in memory when they are read: it is parsing that is measured."""
    source = files.texts().svm
    folder = tempfile.TemporaryDirectory(prefix="rosenblatt-bench-cluster-", dir=source.parent)
    paths = [Path(folder.name) / f"part-{number:03}.svm" for number in range(copies)]
    for path in paths:
        path.hardlink_to(source)
    return [str(path) for path in paths], folder


@contextmanager
def cluster_of(workers: int) -> Iterator[DaskCluster]:
    """Start a cluster whose workers have their kernels loaded."""
    needed()
    with tempfile.TemporaryDirectory(prefix="rosenblatt-bench-cluster-") as place:
        folder = Path(place)
        with DaskCluster(folder, workers) as cluster:
            small = Training((warm_up_rows(),), shards=4 * workers, passes=1, stream=True)
            run(cluster, small)
            yield cluster


@cache
def warm_up_rows() -> str:
    """Return a file of the first rows."""
    source = files.texts().svm
    small = source.with_name("warm-up.svm")
    with open(source) as rows:
        small.write_text("".join(line for line, _ in zip(rows, range(20_000), strict=False)))
    return str(small)


def run(cluster: DaskCluster, training: Training) -> tuple[float, int]:
    """Train; the seconds, and the most memory that the client had."""
    done = TrainingProcess(cluster.address, training, cluster.folder / "model").wait(LIMIT)
    if done.error:
        raise RuntimeError(f"{done.error}: {done.message}")
    return done.seconds, done.peak


def fastest(cluster: DaskCluster, training: Training, repeat: int) -> float:
    """The seconds of the fastest of several trainings."""
    return min(run(cluster, training)[0] for _ in range(repeat))


def scaling(folder: Path | None, repeat: int, copies: int = 32) -> Result:
    """The time with one worker / the time with two, for one pass that parses text and learns."""
    training = Training(tuple(text_parts(copies)[0]), shards=16, passes=1, stream=True)
    seconds, models = [], []
    for workers in (1, 2):
        with cluster_of(workers) as cluster:
            seconds.append(fastest(cluster, training, min(repeat, 3)))
            models.append((cluster.folder / "model").read_bytes())
    size = sum(Path(path).stat().st_size for path in training.files)
    name = f"cluster: one pass over {size / 1e9:.2f} GB of LIBSVM text in 16 shards, 2 workers against 1"
    note = f"{size / 1e6 / seconds[1]:,.0f} and {size / 1e6 / seconds[0]:,.0f} MB/s; the same model, to the byte"
    return Result(name, seconds[1], seconds[0], seconds[0] / seconds[1], models[0] == models[1], note)


def alone(paths: list[str], threads: int | None) -> float:
    """The seconds of one pass over the same files without a cluster, with so many threads that parse."""
    from rosenblatt.data.opening import parse_threads
    from rosenblatt.workflow import Options, learner_named, reading_for, train

    began = time.monotonic()
    options = Options(passes=1, stream=True)
    if threads is None:
        train(paths, reading_for(paths), learner_named("perceptron", {}), options)
    else:
        with parse_threads(threads):
            train(paths, reading_for(paths), learner_named("perceptron", {}), options)
    return time.monotonic() - began


def overhead(folder: Path | None, repeat: int, copies: int = 32) -> Result:
    """By how many percent one worker takes longer than no cluster."""
    paths = text_parts(copies)[0]
    training = Training(tuple(paths), shards=16, passes=1, stream=True)
    alone([warm_up_rows()], 1)
    with cluster_of(1) as cluster:
        turns = [(run(cluster, training)[0], alone(paths, 1)) for _ in range(min(repeat, 3))]
        ours, plain = (min(times) for times in zip(*turns, strict=True))
    free = alone(paths, None)
    name = f"cluster: the same pass, one worker against `train` without a cluster, {copies} files"
    note = f"both parse with one thread; without a cluster and with all threads {free:.2f} s"
    return Result(name, ours, plain, 100 * (ours / plain - 1), True, note)


def against_dask_ml(folder: Path | None, repeat: int, rows: int = 4_000_000, features: int = 100) -> Result:
    """The time of Dask-ML's Incremental(SGDClassifier) / ours, on the same Dask arrays in the memory of two workers."""
    try:
        from dask_ml.wrappers import Incremental
    except ImportError:
        raise Missing("dask-ml is not installed: pip install dask-ml") from None
    import dask.array as da
    from distributed import Client, wait
    from sklearn.linear_model import SGDClassifier

    from rosenblatt import Perceptron
    from rosenblatt.cluster import fit

    passes = 3
    with cluster_of(2) as processes, Client(processes.address) as client:
        X = da.random.default_rng(0).standard_normal((rows, features), chunks=(rows // 16, features)).astype(np.float32)
        teacher = np.random.default_rng(0).standard_normal(features).astype(np.float32)
        y = (X @ teacher + da.random.default_rng(1).standard_normal(rows, chunks=rows // 16) > 0).astype(np.int64)
        X, y = client.persist([X, y])
        wait([X, y])

        def ours() -> Any:
            return fit(Perceptron(max_iter=passes, tol=None), X, y, client=client)

        def theirs() -> Any:
            model = Incremental(SGDClassifier(loss="perceptron", penalty=None, average=True, random_state=0))
            for _ in range(passes):
                model.partial_fit(X, y, classes=[0, 1])
            return model

        ours()
        (mine, model), (peer, other) = (_fastest(work, min(repeat, 3)) for work in (ours, theirs))
        part, labels = X[: rows // 16].compute(), y[: rows // 16].compute()
        reached = [float(np.mean(one.predict(part) == labels)) for one in (model, other)]
    name = f"cluster: {passes} epochs over Dask arrays {rows:,} × {features}, against Dask-ML's Incremental(SGDClassifier)"
    note = f"two workers; accuracy {reached[0]:.4f} and {reached[1]:.4f}"
    return Result(name, mine, peer, peer / mine, reached[0] > reached[1] - 0.01, note)


def _fastest(work: Callable[[], Any], repeat: int) -> tuple[float, Any]:
    times, result = [], None
    for _ in range(repeat):
        began = time.monotonic()
        result = work()
        times.append(time.monotonic() - began)
    return min(times), result


# Accuracy


@lru_cache(maxsize=1)
def split(folder: Path | None, name: str) -> tuple[Any, Any, Any, Any]:
    """(X, y, X_test, y_test) of a9a or of 20 newsgroups by date, as TF-IDF."""
    if name == "a9a":
        _, X, y = svmlight(folder, "a9a.train.svm.gz")
        _, X_test, y_test = svmlight(folder, "a9a.test.svm.gz")
        X_test.resize((X_test.shape[0], X.shape[1]))
        return X, y, X_test, y_test
    import gzip
    import json

    from sklearn.feature_extraction.text import TfidfVectorizer

    parts = []
    for part in ("train", "test"):
        with gzip.open(file_in(folder, f"20news-bydate-{part}.jsonl.gz"), "rt", encoding="utf-8") as lines:
            parts.append([json.loads(line) for line in lines])
    vectors = TfidfVectorizer(sublinear_tf=True)
    X, X_test = (make([text["text"] for text in part]) for make, part in zip(
        (vectors.fit_transform, vectors.transform), parts, strict=True))  # fmt: skip
    y, y_test = (np.array([text["label"] for text in part]) for part in parts)
    return X, y, X_test, y_test


def row_accuracy(folder: Path | None, repeat: int, name: str, shards: int, mixing: str) -> Result:
    """The accuracy with so many shards − that of one, in points, after the same epochs."""
    from rosenblatt import Perceptron
    from rosenblatt.cluster import simulate

    X, y, X_test, y_test = split(folder, name)
    one, several = simulate(
        Perceptron(), X, y, shards=(1, shards), epochs=EPOCHS, mixing=mixing, X_test=X_test, y_test=y_test
    )
    return _points(f"{name}, {EPOCHS} epochs", shards, mixing, several.accuracy, one.accuracy)


def tagger_accuracy(folder: Path | None, repeat: int, shards: int, mixing: str) -> Result:
    """The same for the default tagger on the English Web Treebank, as its ordinary training makes epochs."""
    from rosenblatt import SequenceTagger
    from rosenblatt.cluster import fit
    from rosenblatt.structured import evaluation

    X, y = tagger_examples(folder, "train")
    X_test, y_test = tagger_examples(folder, "dev")
    with cluster_of(2) as processes:
        several = fit(SequenceTagger(), X, y, client=processes.address, shards=shards, mixing=mixing)
    one = SequenceTagger().fit(X, y)
    reached = (evaluation.tags(y_test, model.predict(X_test)).accuracy for model in (several, one))
    return _points("tagger on EWT", shards, mixing, *reached)


def _points(what: str, shards: int, mixing: str, several: float, one: float) -> Result:
    name = f"cluster: accuracy of {what}, {shards} shards mixed {mixing}, against one"
    return Result(name, several, one, 100 * (several - one), True, "", "accuracy")


# Faults and memory


def killed(folder: Path | None, repeat: int, workers: int, schedulers: int) -> Result:
    """The trainings that came to the same bytes although workers, or the scheduler, were killed with SIGKILL."""
    needed()
    with tempfile.TemporaryDirectory(prefix="rosenblatt-bench-cluster-") as place:
        counts = kill_many(Path(place), workers, schedulers, seed=0)
    what = f"{workers} kills of workers" if workers else f"{schedulers} kills of the scheduler, then resumed"
    note = ", ".join(f"{key}: {count:,}" for key, count in sorted(counts.items()))
    same = counts["same bytes"]
    return Result(f"cluster: {what}, trainings with the same bytes", None, None, float(same), True, note)


def memory(folder: Path | None, repeat: int, copies: int) -> Result:
    """The most memory of client and scheduler, in MB, whichever is larger."""
    paths = text_parts(copies)[0]
    size = copies * Path(paths[0]).stat().st_size
    with cluster_of(2) as cluster:
        seconds, client = run(cluster, Training(tuple(paths), max(8, copies), "uniform", 1, True))
        assert cluster.scheduler is not None
        found = {"client": client, "scheduler": peak_bytes(cluster.scheduler.pid)}
        found["largest worker"] = max(peak_bytes(worker.pid) for worker in cluster.workers)
    name = f"cluster: peak memory of client and scheduler, one pass over {size / 1e9:.1f} GB of files"
    note = ", ".join(f"{who} {amount / 1e6:.0f} MB" for who, amount in found.items()) + f"; {seconds:.0f} s"
    return Result(name, None, None, max(found["client"], found["scheduler"]) / 1e6, True, note)
