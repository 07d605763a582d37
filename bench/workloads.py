"""The workloads: what is compared, on which data, and the number it should reach."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from bench import cluster, comparisons, defaults, files, gpu, online, serve, structured, theory
from bench.report import Result, Target


class Workload(NamedTuple):
    """A comparison with its settings, and the number it should reach."""

    key: str
    compare: Callable[..., Result]
    settings: tuple[Any, ...]
    target: Target
    long: bool = False  # whether it takes more than five minutes, and runs only if it is asked for


def perceptron(source: str, order: str, *target: Any) -> Workload:
    return Workload(f"{source}-{order}", comparisons.perceptron, (source, order), Target(*target))


def averaging(source: str) -> Workload:
    return Workload(f"{source}-average", comparisons.averaging, (source,), Target(15, 5, "%", "≤"))


def sparse(source: str, order: str, epochs: int, *target: float) -> Workload:
    return Workload(f"sparse-{source}-{order}", comparisons.sparse_rows, (source, order, epochs), Target(*target))


def shard_accuracy(name: str, shards: int, mixing: str) -> Workload:
    compare, settings = (cluster.tagger_accuracy, ()) if name == "tagger" else (cluster.row_accuracy, (name,))
    target = {8: Target(-0.5, -0.2, "points"), 64: Target(-1.0, -0.5, "points")}[shards]
    return Workload(f"cluster-accuracy-{name}-{shards}-{mixing}", compare, (*settings, shards, mixing), target)


WORKLOADS = (
    Workload("default-accuracy", defaults.default_accuracy, (False,), Target(3, None, "points")),
    Workload("default-accuracy-scaled", defaults.default_accuracy, (True,), Target(0, None, "points")),
    Workload("default-separable", defaults.separable_sets, (), Target(1, None, "")),
    Workload("default-time-a9a", defaults.default_time, ("a9a",), Target(1.25, None, "×", "≤")),
    Workload("default-time-w8a", defaults.default_time, ("w8a",), Target(1.25, None, "×", "≤")),
    Workload("default-time-newsgroups", defaults.default_time, ("20 newsgroups",), Target(1.25, None, "×", "≤")),
    perceptron("dense-100", "cyclic", 4, 6),
    perceptron("dense-100", "shuffle", 3, 5),
    averaging("dense-100"),
    perceptron("dense-1000", "cyclic", 3, "bandwidth"),
    perceptron("dense-1000", "shuffle", 2.5),
    Workload("dense-1000-product", comparisons.bandwidth, (None,), Target(None, 1.3, "×", "≤")),
    Workload("dense-1000-product-one-thread", comparisons.bandwidth, (1,), Target(None, 1.3, "×", "≤")),
    perceptron("csr", "cyclic", 1.7, 4),
    perceptron("csr", "shuffle", 1.7, 4),
    averaging("csr"),
    sparse("power-law", "cyclic", 5, 1.3, 2.5),
    sparse("power-law", "shuffle", 5, 1.6, 2.5),
    sparse("uniform", "cyclic", 5, 1.3, 2.5),
    sparse("uniform", "shuffle", 5, 1.5, 2.5),
    averaging("uniform"),
    sparse("a9a", "cyclic", 50, 1.4, 2.5),
    sparse("a9a", "shuffle", 50, 1.4, 2.5),
    averaging("a9a"),
    sparse("w8a", "cyclic", 50, 1.4, 2.5),
    sparse("w8a", "shuffle", 50, 1.4, 2.5),
    averaging("w8a"),
    sparse("farm-ads", "cyclic", 50, 1.4, 2.5),
    sparse("farm-ads", "shuffle", 50, 1.4, 2.5),
    averaging("farm-ads"),
    sparse("news20-binary", "cyclic", 50, 1.4, 2.5),
    sparse("news20-binary", "shuffle", 50, 1.4, 2.5),
    averaging("news20-binary"),
    sparse("news20", "cyclic", 5, 3, 6),
    sparse("news20", "shuffle", 5, 3, 6),
    sparse("newsgroups", "cyclic", 5, 3, 6),
    sparse("newsgroups", "shuffle", 5, 3, 6),
    averaging("newsgroups"),
    perceptron("mnist", "cyclic", 5, 10),
    averaging("mnist"),
    perceptron("classes-100", "cyclic", 12, 25),
    averaging("classes-100"),
    perceptron("news20", "cyclic", 4, 10),
    averaging("news20"),
    Workload("small-fit", comparisons.small, ("fit", 2), Target(0.5, 0.2, "×", "≤")),
    Workload("small-fit-classes", comparisons.small, ("fit", 3), Target(0.5, 0.2, "×", "≤")),
    Workload("small-fit-default", comparisons.small, ("default fit", 3), Target(None, None, "×", "≤")),
    Workload("small-predict", comparisons.small, ("predict", 3), Target(0.5, 0.2, "×", "≤")),
    Workload("passive-dense-100", comparisons.passive_aggressive, ("dense-100", "hinge"), Target()),
    Workload("passive-csr", comparisons.passive_aggressive, ("csr", "squared_hinge"), Target()),
    Workload("online-river", online.one_at_a_time, (), Target(3.5, 6)),
    Workload("online-river-valued", online.one_at_a_time, (20_000, True), Target(3.5, 6)),
    Workload("online-river-average", online.one_at_a_time, (20_000, False, "average"), Target(3.5, 6)),
    Workload("online-dense-row", online.one_dense_row, (), Target(5, None, "µs", "≤")),
    Workload("kernel-mnist", comparisons.kernel_epoch, (4,), Target(60, None, "s", "≤")),
    Workload("proof-mushrooms", theory.proof, ("mushrooms.svm.gz", "auto"), Target(1)),
    Workload("proof-a9a", theory.proof, ("a9a.train.svm.gz", "auto"), Target(1)),
    Workload("proof-w8a", theory.proof, ("w8a.svm.gz", "auto"), Target(1)),
    Workload("proof-a9a-nearest", theory.proof, ("a9a.train.svm.gz", "nearest"), Target(1)),
    Workload("proof-w8a-nearest", theory.proof, ("w8a.svm.gz", "nearest"), Target(1)),
    Workload("proof-dense-separable", theory.generated, (0.0,), Target(600, None, "s", "≤")),
    Workload("proof-dense-inseparable", theory.generated, (0.5,), Target(600, None, "s", "≤")),
    Workload("margin-mushrooms", theory.certified_margin, ("mushrooms.svm.gz",), Target()),
    Workload("rescaled-12", theory.rescaled, (12,), Target()),
    Workload("tagger-training", structured.training, (), Target(2, 5)),
    Workload("tagger-speed-fast", structured.tagging_speed, ("fast",), Target(500_000, 1_000_000, "tokens/s")),
    Workload("tagger-speed-accurate", structured.tagging_speed, ("accurate",), Target(None, None, "tokens/s")),
    Workload("tagger-fast", structured.tagging, ("fast",), Target(0.952, 0.956, "accuracy")),
    Workload("tagger-accurate", structured.tagging, ("accurate",), Target(0.955, 0.962, "accuracy")),
    Workload("tagger-hungarian", structured.language, ("hu_szeged",), Target(0.93, 0.95, "accuracy")),
    Workload("tagger-italian", structured.language, ("it_partut",), Target(0.97, 0.975, "accuracy")),
    Workload("tagger-vietnamese", structured.language, ("vi_vtb",), Target(0.88, 0.9, "accuracy")),
    Workload("tagger-file", structured.size, ("fast",), Target(12, 5, "MB", "≤")),
    Workload("chunker", structured.chunking, (), Target(0.938, 0.943, "accuracy")),
    Workload("parser-graph", structured.parsing, ("graph",), Target(0.852, 0.87, "accuracy")),
    Workload("parser-greedy", structured.parsing, ("greedy",), Target(0.872, 0.885, "accuracy")),
    Workload("parser-beam", structured.parsing, ("beam",), Target(0.877, 0.895, "accuracy")),
    Workload("parser-plain-words", structured.plain_words, (), Target(0.83, 0.85, "accuracy")),
    Workload("parser-speed-greedy", structured.parsing_speed, ("greedy",), Target(60_000, 200_000, "tokens/s")),
    Workload("parser-speed-beam", structured.parsing_speed, ("beam",), Target(10_000, 40_000, "tokens/s")),
    Workload("parser-speed-graph", structured.parsing_speed, ("graph",), Target(35_000, 80_000, "tokens/s")),
    Workload("parser-file", structured.size, ("greedy",), Target(50, 15, "MB", "≤")),
    Workload("parser-memory", structured.memory, ("greedy",), Target(1500, 700, "MB", "≤")),
    Workload("files-vw", files.against_vowpal_wabbit, (), Target(3.5, 5)),
    Workload("files-vw-process", files.against_vowpal_wabbit_as_processes, (), Target(0.5, 1)),
    Workload("files-scikit-learn", files.against_scikit_learn, (), Target(15, 30)),
    Workload("files-parsing", files.parsing, (), Target(450, 1000, "MB/s")),
    Workload("files-memory", files.streaming_memory, (), Target(300, 150, "MB", "≤")),
    Workload("files-predict", files.predicting, (), Target(3, 1.5, "s", "≤")),
    Workload("files-predict-line", files.predicting_a_line, (), Target(1.2, 0.8, "s", "≤")),
    Workload("online-start", files.learning_a_row, (), Target(0.9, 0.7, "s", "≤")),
    Workload("files-help", files.helping, (), Target(0.4, 0.2, "s", "≤")),
    Workload("files-spam", files.spam, (), Target(0.975, None, "accuracy")),
    Workload("files-newsgroups", files.newsgroups, (), Target(0.8, None, "accuracy")),
    Workload("serve-batches", serve.in_batches, (), Target(15_000, 40_000, "examples/s")),
    Workload("serve-batches-hashing", serve.in_batches, (2**20,), Target(15_000, 40_000, "examples/s")),
    Workload("serve-single", serve.one_a_request, (), Target(2_000, 5_000, "examples/s")),
    Workload("serve-predict-latency-batches", serve.predict_latency, ("batches",), Target(20, 5, "ms", "≤")),
    Workload("serve-predict-latency-single", serve.predict_latency, ("single",), Target(20, 5, "ms", "≤")),
    Workload("serve-vw-daemon", serve.against_vw_daemon, (), Target(None, 1)),
    Workload("serve-start", serve.starting, (), Target(10, 2, "s", "≤")),
    Workload("serve-memory", serve.memory, ((0.5, 1),), Target(1.1, 1, "×", "≤")),
    Workload("serve-memory-full", serve.memory, ((1, 2, 5, 10),), Target(1.1, 1, "×", "≤"), long=True),
    Workload("cluster-scaling", cluster.scaling, (32,), Target(1.6, 1.9)),
    Workload("cluster-overhead", cluster.overhead, (32,), Target(20, 5, "%", "≤")),
    Workload("cluster-dask-ml", cluster.against_dask_ml, (), Target(3, 8)),
    *(
        shard_accuracy(name, shards, mixing)
        for name in ("a9a", "newsgroups", "tagger")
        for shards in (8, 64)
        for mixing in ("uniform", "changed")
    ),
    Workload("cluster-memory", cluster.memory, (8,), Target(500, 300, "MB", "≤")),
    Workload("cluster-memory-full", cluster.memory, (77,), Target(500, 300, "MB", "≤"), long=True),
    Workload("cluster-kill-workers", cluster.killed, (50, 0), Target(50, None, ""), long=True),
    Workload("cluster-kill-scheduler", cluster.killed, (0, 10), Target(10, None, ""), long=True),
    *(Workload(*row) for row in gpu.ROWS),
    Workload("import", comparisons.importing, (), Target(0.7, None, "s", "≤")),
    Workload("first-fit-dense", comparisons.first_fit, ("dense float64, two classes",), Target(1.5, 0.5, "s", "≤")),
    Workload("first-fit-csr", comparisons.first_fit, ("CSR float32, three classes",), Target(1.5, 0.5, "s", "≤")),
    Workload("first-use-train", comparisons.first_use, ("train",), Target(9, 4, "s", "≤")),
    Workload("first-use-fit", comparisons.first_use, ("fit",), Target(5, 2, "s", "≤")),
    Workload("first-use-learn-one", comparisons.first_use, ("learn_one",), Target(3, 1, "s", "≤")),
    Workload("first-use-tagger", comparisons.first_use, ("tagger",), Target(15, 6, "s", "≤")),
    Workload("first-use-parser", comparisons.first_use, ("parser",), Target(None, None, "s", "≤")),
    Workload("memory", comparisons.memory, (), Target()),
    Workload("accuracy-mnist", comparisons.mnist_accuracy, (), Target(0.92, None, "accuracy")),
    Workload("accuracy-news20-margin", comparisons.news20_accuracy, ("joint", True), Target(0, None, "accuracy")),
    Workload("accuracy-news20-plain", comparisons.news20_accuracy, ("joint", False), Target(None, None, "accuracy")),
)
