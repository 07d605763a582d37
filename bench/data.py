"""Data to learn from: drawn from a fixed seed, with `rosenblatt.cli.workloads`, or read from a folder of data sets."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_svmlight_file

from rosenblatt.cli.workloads import Data, dense, on_grid, taught, text


class Missing(Exception):
    """Something a row cannot be measured without is not on this machine."""


def hundred_classes() -> Data:
    rng = np.random.default_rng(0)
    y = rng.integers(100, size=50_000)
    centres = 0.12 * rng.standard_normal((100, 1024), dtype=np.float32)
    X = on_grid(centres[y] + rng.standard_normal((len(y), 1024), dtype=np.float32))
    return Data("dense 50,000 × 1,024, 100 classes one-vs-rest", X, y)


def generated_mnist() -> Data:
    rng = np.random.default_rng(0)
    ink = rng.random((60_000, 784), dtype=np.float32) < 0.19
    X = on_grid(ink * rng.uniform(1 / 8, 1, ink.shape))
    return Data("MNIST (generated), 10 classes one-vs-rest", X, taught(X, 10, rng))


def file_in(folder: Path | None, name: str) -> Path:
    if folder is None or not (folder / name).exists():
        raise Missing(f"{name} is missing; give a folder that has it with --data")
    return folder / name


def mnist(folder: Path | None, part: str = "train") -> Data:
    with np.load(file_in(folder, "mnist.npz")) as arrays:
        return Data(
            "MNIST, 10 classes one-vs-rest", arrays[f"x_{part}"].reshape(-1, 784) / np.float32(255), arrays[f"y_{part}"]
        )


def news20(folder: Path | None) -> Data:
    X, y = load_svmlight_file(str(file_in(folder, "news20.svm.bz2")), dtype=np.float32)
    mixed = np.random.default_rng(0).permutation(len(y))
    return Data("news20, 20 classes one-vs-rest", X[mixed], y[mixed])


def svmlight(folder: Path | None, name: str) -> Data:
    """Two classes of one of the LIBSVM files, as sparse float64."""
    X, y = load_svmlight_file(str(file_in(folder, name)))
    return Data(f"{name.split('.')[0]} {X.shape[0]:,} × {X.shape[1]}", X, y)


@lru_cache(maxsize=1)  # up to 400 MB each; rows that share data stand next to each other
def load(source: str, folder: Path | None = None) -> Data:
    """The data of this name, generated where there is no file."""
    try:
        if source == "mnist":
            return mnist(folder)
        if source == "news20":
            return news20(folder)
    except Missing:
        pass
    return GENERATED[source]()


GENERATED: dict[str, Any] = {
    "dense-100": lambda: dense(400_000, 100),
    "dense-1000": lambda: dense(100_000, 1_000),
    "csr": lambda: text("CSR 400,000 × 1,000,000, 60 a row", (400_000, 1_000_000), 60, 2),
    "mnist": generated_mnist,
    "classes-100": hundred_classes,
    "news20": lambda: text("news20 (generated), 20 classes one-vs-rest", (15_935, 62_061), 80, 20),
}
