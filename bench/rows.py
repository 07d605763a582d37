"""The workloads: what is compared, on which data, and the number it should reach."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from bench import comparisons as kind
from bench import files, online, structured, theory
from bench.report import Result, Target


class Row(NamedTuple):
    key: str
    compare: Callable[..., Result]
    settings: tuple[Any, ...]
    target: Target


def race(source: str, order: str, *target: Any) -> Row:
    return Row(f"{source}-{order}", kind.race, (source, order), Target(*target))


def averaging(source: str) -> Row:
    return Row(f"{source}-average", kind.averaging, (source,), Target(15, 5, "%", "≤"))


ROWS = (
    race("dense-100", "cyclic", 4, 6),
    race("dense-100", "shuffle", 3, 5),
    averaging("dense-100"),
    race("dense-1000", "cyclic", 3, "bandwidth"),
    race("dense-1000", "shuffle", 2.5),
    Row("dense-1000-product", kind.bandwidth, (None,), Target(None, 1.3, "×", "≤")),
    Row("dense-1000-product-one-thread", kind.bandwidth, (1,), Target(None, 1.3, "×", "≤")),
    race("csr", "cyclic", 1.7, 4),
    race("csr", "shuffle", 1.7, 4),
    averaging("csr"),
    race("mnist", "cyclic", 5, 10),
    averaging("mnist"),
    race("classes-100", "cyclic", 12, 25),
    averaging("classes-100"),
    race("news20", "cyclic", 4, 10),
    averaging("news20"),
    Row("passive-dense-100", kind.passive, ("dense-100", "hinge"), Target()),
    Row("passive-csr", kind.passive, ("csr", "squared_hinge"), Target()),
    Row("online-river", online.one_at_a_time, (), Target(3, 6)),
    Row("online-river-valued", online.one_at_a_time, (20_000, True), Target(3, 6)),
    Row("online-river-average", online.one_at_a_time, (20_000, False, "average"), Target(3, 6)),
    Row("online-dense-row", online.one_dense_row, (), Target(5, None, "µs", "≤")),
    Row("kernel-mnist", kind.kernel_epoch, (4,), Target(60, None, "s", "≤")),
    Row("proof-mushrooms", theory.proof, ("mushrooms.svm.gz", "auto"), Target(1)),
    Row("proof-a9a", theory.proof, ("a9a.train.svm.gz", "auto"), Target(1)),
    Row("proof-w8a", theory.proof, ("w8a.svm.gz", "auto"), Target(1)),
    Row("proof-a9a-nearest", theory.proof, ("a9a.train.svm.gz", "nearest"), Target(1)),
    Row("proof-w8a-nearest", theory.proof, ("w8a.svm.gz", "nearest"), Target(1)),
    Row("proof-dense-separable", theory.generated, (0.0,), Target(600, None, "s", "≤")),
    Row("proof-dense-inseparable", theory.generated, (0.5,), Target(600, None, "s", "≤")),
    Row("margin-mushrooms", theory.certified_margin, ("mushrooms.svm.gz",), Target()),
    Row("rescaled-12", theory.rescaled, (12,), Target()),
    Row("tagger-training", structured.training, (), Target(2, 5)),
    Row("tagger-speed-fast", structured.tagging_speed, ("fast",), Target(500_000, 1_000_000, "tokens/s")),
    Row("tagger-speed-accurate", structured.tagging_speed, ("accurate",), Target(None, None, "tokens/s")),
    Row("tagger-fast", structured.tagging, ("fast",), Target(0.952, 0.956, "accuracy")),
    Row("tagger-accurate", structured.tagging, ("accurate",), Target(0.955, 0.962, "accuracy")),
    Row("tagger-file", structured.size, ("fast",), Target(12, 5, "MB", "≤")),
    Row("chunker", structured.chunking, (), Target(0.938, 0.943, "accuracy")),
    Row("parser-graph", structured.parsing, ("graph",), Target(0.852, 0.87, "accuracy")),
    Row("parser-greedy", structured.parsing, ("greedy",), Target(0.872, 0.885, "accuracy")),
    Row("parser-beam", structured.parsing, ("beam",), Target(0.877, 0.895, "accuracy")),
    Row("parser-plain-words", structured.predicted, (), Target(0.83, 0.85, "accuracy")),
    Row("parser-speed-greedy", structured.parsing_speed, ("greedy",), Target(60_000, 200_000, "tokens/s")),
    Row("parser-speed-beam", structured.parsing_speed, ("beam",), Target(10_000, 40_000, "tokens/s")),
    Row("parser-speed-graph", structured.parsing_speed, ("graph",), Target(35_000, 80_000, "tokens/s")),
    Row("parser-file", structured.size, ("greedy",), Target(50, 15, "MB", "≤")),
    Row("parser-memory", structured.memory, ("greedy",), Target(1500, 700, "MB", "≤")),
    Row("files-vw", files.against_vowpal_wabbit, (), Target(3, 5)),
    Row("files-vw-process", files.against_vowpal_wabbit_as_processes, (), Target()),
    Row("files-scikit-learn", files.against_scikit_learn, (), Target(15, 30)),
    Row("files-parsing", files.parsing, (), Target(450, 1000, "MB/s")),
    Row("files-memory", files.streaming_memory, (), Target(300, 150, "MB", "≤")),
    Row("files-predict", files.predicting, (), Target(3, 1.5, "s", "≤")),
    Row("files-help", files.helping, (), Target(0.4, 0.2, "s", "≤")),
    Row("files-spam", files.spam, (), Target(0.975, None, "accuracy")),
    Row("files-newsgroups", files.newsgroups, (), Target(0.8, None, "accuracy")),
    Row("import", kind.importing, (), Target(0.7, None, "s", "≤")),
    Row("first-fit-dense", kind.first_fit, ("dense float64, two classes",), Target(1.5, 0.5, "s", "≤")),
    Row("first-fit-csr", kind.first_fit, ("CSR float32, three classes",), Target(1.5, 0.5, "s", "≤")),
    Row("memory", kind.memory, (), Target()),
    Row("accuracy-mnist", kind.mnist_accuracy, (), Target(0.92, None, "accuracy")),
    Row("accuracy-news20-margin", kind.news20_accuracy, ("joint", True), Target(0, None, "accuracy")),
    Row("accuracy-news20-plain", kind.news20_accuracy, ("joint", False), Target(None, None, "accuracy")),
)
