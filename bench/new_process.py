"""Measurements that need a new process: `python -m bench.new_process QUESTION ARGUMENT` prints one number.

Nothing is imported before the clock runs that a question asks about.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import tempfile
from pathlib import Path
from time import perf_counter


def import_seconds(module: str) -> float:
    start = perf_counter()
    importlib.import_module(module)
    return perf_counter() - start


def first_fit_seconds(layout: str) -> float:
    import numpy as np
    import scipy.sparse as sp

    from rosenblatt import Perceptron

    X = np.random.default_rng(0).standard_normal((200, 5))
    y = (X[:, 0] > 0).astype(int)
    if layout.startswith("CSR"):
        X, y = sp.csr_array(X.astype(np.float32)), y + (X[:, 1] > 0)
    start = perf_counter()
    Perceptron().fit(X, y)
    return perf_counter() - start


def first_use_seconds(what: str) -> float:
    """Return how long the first use of a part takes where nothing is compiled yet, imports included."""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(sys.stderr):
        os.environ["ROSENBLATT_CACHE_DIR"] = folder
        start = perf_counter()
        if what == "train":
            from rosenblatt.cli import main

            text = Path(folder) / "mail.tsv"
            text.write_text(
                "ham\tsee you at noon\nspam\twin a free prize\nham\tlunch at noon\nspam\tclaim your prize\n" * 2
            )
            main(["train", str(text), "--model", f"{folder}/model", "--target", "0", "--text", "1", "--quiet"])
        elif what == "fit":
            from sklearn.datasets import load_digits

            from rosenblatt import Perceptron

            Perceptron().fit(*load_digits(return_X_y=True))
        elif what == "learn_one":
            from rosenblatt.online import OnlinePerceptron

            OnlinePerceptron().learn_one({"word": 1.0}, True)
        else:
            from rosenblatt.cli import warming

            warming.SETS[what]()
        return perf_counter() - start


def kilobytes(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field))


def fit_megabytes(side: str) -> float:
    """Return by how much memory rises during a fit above what it was with the data loaded and the code warm.

    `ru_maxrss` cannot tell: Linux hands a child the peak of the process that started it.
    """
    from bench import data
    from rosenblatt.cli import workloads

    _, X, y = data.load("dense-100")
    model = {"ours": workloads.our_perceptron, "peer": workloads.peer_perceptron}[side](X)
    model.fit(X[:1000], y[:1000])
    Path("/proc/self/clear_refs").write_text("5")  # forgets the peak so far
    before = kilobytes("VmRSS")
    model.fit(X, y)
    return (kilobytes("VmHWM") - before) / 1024


def parser_megabytes(argument: str) -> float:
    """Return the peak memory of a process that fits a parser, Python and the treebank included; "NAME FOLDER"."""
    name, folder = argument.split(" ", 1)
    from bench import structured

    X, y = structured.parser_examples(Path(folder), "train")
    structured.treebank.cache_clear()
    Path("/proc/self/clear_refs").write_text("5")
    structured.MODELS[name]().fit(X, y)
    return kilobytes("VmHWM") / 1024


if __name__ == "__main__":
    print(globals()[sys.argv[1]](sys.argv[2]))
