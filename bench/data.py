"""Data sets: generated from a fixed seed, by `rosenblatt.cli.workloads`, or read from a folder."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array, load_npz
from sklearn.datasets import load_svmlight_file
from sklearn.feature_extraction.text import TfidfVectorizer

from rosenblatt.cli.workloads import Dataset, dense_dataset, noisy_linear_labels, round_to_eighths, text_dataset


class Missing(Exception):
    """A file or a package that a workload needs is not on this machine."""


def hundred_classes() -> Dataset:
    rng = np.random.default_rng(0)
    y = rng.integers(100, size=50_000)
    centres = 0.12 * rng.standard_normal((100, 1024), dtype=np.float32)
    X = round_to_eighths(centres[y] + rng.standard_normal((len(y), 1024), dtype=np.float32))
    return Dataset("dense 50,000 × 1,024, 100 classes one-vs-rest", X, y)


def generated_mnist() -> Dataset:
    rng = np.random.default_rng(0)
    ink = rng.random((60_000, 784), dtype=np.float32) < 0.19
    X = round_to_eighths(ink * rng.uniform(1 / 8, 1, ink.shape))
    return Dataset("MNIST (generated), 10 classes one-vs-rest", X, noisy_linear_labels(X, 10, rng))


def file_in(folder: Path | None, name: str) -> Path:
    if folder is None or not (folder / name).exists():
        raise Missing(f"{name} is missing; give a folder that has it with --data")
    return folder / name


def mnist(folder: Path | None, part: str = "train") -> Dataset:
    with np.load(file_in(folder, "mnist.npz")) as arrays:
        return Dataset(
            "MNIST, 10 classes one-vs-rest", arrays[f"x_{part}"].reshape(-1, 784) / np.float32(255), arrays[f"y_{part}"]
        )


def news20(folder: Path | None) -> Dataset:
    X, y = load_svmlight_file(str(file_in(folder, "news20.svm.bz2")), dtype=np.float32)
    return mixed(Dataset("news20, 20 classes one-vs-rest", X, y))


def news20_binary(folder: Path | None) -> Dataset:
    _, X, y = news20(folder)
    return Dataset("news20, one class against the rest", X.astype(np.float64), y == y.min())


def farm_ads(folder: Path | None) -> Dataset:
    X, y = load_npz(file_in(folder, "farm_ads.X.npz")), np.load(file_in(folder, "farm_ads.y.npy"))
    return Dataset("farm_ads 4,143 × 54,877", X.astype(np.float64), y)


def newsgroups(folder: Path | None) -> Dataset:
    """Texts of 20 groups as TF-IDF, group by group."""
    with gzip.open(file_in(folder, "20news-bydate-train.jsonl.gz"), "rt", encoding="utf-8") as lines:
        texts = [json.loads(line) for line in lines]
    X = TfidfVectorizer().fit_transform([text["text"] for text in texts])
    return Dataset("20 newsgroups as TF-IDF", X, np.array([text["label"] for text in texts]))


def mixed(data: Dataset) -> Dataset:
    order = np.random.default_rng(0).permutation(len(data.y))
    return Dataset(data.name, data.X[order], data.y[order])


def uniform_columns() -> Dataset:
    rng = np.random.default_rng(0)
    rows, features, words = 400_000, 1_000_000, 60
    columns = rng.integers(features, size=(rows, words), dtype=np.int32)
    values = round_to_eighths(rng.uniform(1 / 8, 1, columns.size))
    X = csr_array((values, columns.ravel(), np.arange(0, columns.size + 1, words, np.int32)), shape=(rows, features))
    X.sum_duplicates()
    return Dataset("CSR 400,000 × 1,000,000, 60 a row, uniform columns", X, noisy_linear_labels(X, 2, rng))


def svmlight(folder: Path | None, name: str) -> Dataset:
    """Two classes of one of the LIBSVM files, as sparse float64; scikit-learn's Perceptron wants indices of 32 bits."""
    X, y = load_svmlight_file(str(file_in(folder, name)))
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return Dataset(f"{name.split('.')[0]} {X.shape[0]:,} × {X.shape[1]}", X, y)


@lru_cache(maxsize=1)  # up to 400 MB each; workloads that share data stand next to each other
def load(source: str, folder: Path | None = None) -> Dataset:
    """Return the data set of this name, generated where there is no file."""
    try:
        if source == "mnist":
            return mnist(folder)
        if source == "news20":
            return news20(folder)
    except Missing:
        pass
    return REAL[source](folder) if source in REAL else GENERATED[source]()


REAL: dict[str, Callable[[Path | None], Dataset]] = {
    "a9a": lambda folder: svmlight(folder, "a9a.train.svm.gz"),
    "w8a": lambda folder: svmlight(folder, "w8a.svm.gz"),
    "farm-ads": farm_ads,
    "news20-binary": news20_binary,
    "newsgroups": lambda folder: mixed(newsgroups(folder)),
}


GENERATED: dict[str, Callable[[], Dataset]] = {
    "dense-100": lambda: dense_dataset(400_000, 100),
    "dense-1000": lambda: dense_dataset(100_000, 1_000),
    "csr": lambda: text_dataset("CSR 400,000 × 1,000,000, 60 a row", (400_000, 1_000_000), 60, 2),
    "power-law": lambda: text_dataset("CSR 200,000 × 1,000,000, 60 a row", (200_000, 1_000_000), 60, 2),
    "uniform": uniform_columns,
    "mnist": generated_mnist,
    "classes-100": hundred_classes,
    "news20": lambda: text_dataset("news20 (generated), 20 classes one-vs-rest", (15_935, 62_061), 80, 20),
}
