"""Compare all learners in one picture: the decision boundary of each on the same two-dimensional data, and the mistakes of
each on a real stream, where every row is predicted before it is learned from.

    python examples/family.py [family.png] [--data FOLDER]

The stream is the breast-cancer data of scikit-learn; with a folder that contains a9a.train.svm.gz, the 32,561 rows of
Adult.
"""

from __future__ import annotations

import argparse
import warnings
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_svmlight_file
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, MinMaxScaler

import rosenblatt as rb
from rosenblatt import plot

matplotlib.use("Agg")
from matplotlib import pyplot as plt

BINS = 8
KERNEL = {"kernel": "rbf", "gamma": 12.0}
BUDGET = {**KERNEL, "budget": 20}


def linear() -> dict[str, Any]:
    """Return the learners whose decision boundary is a line."""
    return {
        "Perceptron": rb.Perceptron(),
        "averaged": rb.Perceptron(keep="average"),
        "voted": rb.Perceptron(keep="vote"),
        "pocket": rb.Perceptron(keep="pocket", max_iter=100),
        "margin 1": rb.Perceptron(margin=1.0, keep="average"),
        "PAUM": rb.PAUM(positive_margin=3.0),
        "PA-I": rb.PassiveAggressiveClassifier(C=0.1),
        "PA-II": rb.PassiveAggressiveClassifier(C=0.1, loss="squared_hinge"),
        "MIRA": rb.MIRA(),
        "ALMA": rb.ALMA(),
        "ROMMA": rb.ROMMA(),
        "aggressive ROMMA": rb.ROMMA(alpha=0.1, max_iter=200),
        "Ballseptron": rb.Ballseptron(ball=0.02),
        "p-norm, p = 4": rb.PNormPerceptron(p=4.0),
        "second order": rb.SecondOrderPerceptron(),
        "AROW": rb.AROW(),
        "normalised Winnow": rb.NormalisedWinnow(),
        "balanced Winnow": rb.BalancedWinnow(),
        "delta rule": rb.DeltaRuleClassifier(eta0=0.02),
        "σ-perceptron": rb.SigmaPerceptron(sigma=0.1),
    }


def curved() -> dict[str, Any]:
    """Return the learners with a kernel, and the two Winnows, on features that are split into a few bins."""
    bins = KBinsDiscretizer(BINS, encode="onehot-dense", strategy="uniform", quantile_method="averaged_inverted_cdf")
    return {
        "kernel": rb.KernelPerceptron(**KERNEL),
        "kernel, voted": rb.KernelPerceptron(**KERNEL, keep="vote"),
        "Forgetron": rb.Forgetron(**BUDGET),
        "random budget": rb.RandomBudgetPerceptron(**BUDGET),
        "Projectron": rb.Projectron(**KERNEL, eta=0.4),
        "Projectron++": rb.ProjectronPlusPlus(**KERNEL, eta=0.4),
        "Stoptron": rb.Stoptron(**BUDGET),
        "safest removed": rb.BudgetPerceptron(**BUDGET),
        "Winnow1, binned": make_pipeline(bins, rb.Winnow1(max_iter=20)),
        "Winnow2, binned": make_pipeline(bins, rb.Winnow2(max_iter=20)),
    }


def crescents(rows: int = 120, seed: int = 3) -> tuple[NDArray, NDArray]:
    """Generate two bent clouds of points in the unit square, which no line separates perfectly."""
    rng = np.random.default_rng(seed)
    y = np.arange(rows) % 2
    angle = np.pi * (rng.random(rows) + y)
    X = np.column_stack([np.cos(angle) + 0.55 * y, 0.8 * np.sin(angle) + 0.5 * y]) + 0.14 * rng.standard_normal((rows, 2))
    return MinMaxScaler().fit_transform(X), y


def boundaries(figure: Any) -> None:
    """Draw the decision boundary of each learner in a panel of its own."""
    X, y = crescents()
    panels = {**linear(), **curved()}
    axes = figure.subplots(-(-len(panels) // 6), 6, sharex=True, sharey=True).ravel()
    for ax, (name, learner) in zip(axes, panels.items(), strict=False):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the σ-perceptron says that no line separates these
            learner.fit(X, y)
        plot.boundary(learner, X, y, ax)
        wrong = int((learner.predict(X) != y).sum())
        ax.set(title=f"{name}: {wrong} wrong", xlabel="", ylabel="", xticks=[], yticks=[])
        ax.title.set_fontsize(10)
        ax.get_legend().remove()
        for marks in ax.collections:
            if hasattr(marks, "get_sizes") and len(marks.get_sizes()):
                marks.set_sizes(marks.get_sizes() / 3)
    for ax in axes[len(panels) :]:
        ax.set_visible(False)


def stream(folder: Path | None) -> tuple[str, Any, NDArray]:
    """Return (name, rows, labels) of the stream, in a fixed random order, features between 0 and 1."""
    if folder is not None:
        X, y = load_svmlight_file(str(folder / "a9a.train.svm.gz"))
        name = "Adult"
    else:
        X, y = load_breast_cancer(return_X_y=True)
        X, name = MinMaxScaler().fit_transform(X), "breast cancer"
    order = np.random.default_rng(0).permutation(len(y))
    return f"{name}, {X.shape[0]:,} rows of {X.shape[1]} features", X[order], y[order]


def mistakes(learner: Any, X: Any, y: NDArray, pieces: int = 60) -> tuple[NDArray, NDArray]:
    """Return (rows seen, mistakes so far). A learner counts its mistakes before it learns from a row, so the size
    of the pieces does not matter."""
    ends = np.unique(np.linspace(0, len(y), pieces + 1).astype(int))
    counts = [0]
    for start, end in pairwise(ends):
        counts.append(learner.partial_fit(X[start:end], y[start:end], classes=np.unique(y)).n_mistakes_)
    return ends, np.array(counts)


def compare_on_stream(ax: Any, folder: Path | None) -> list[tuple[str, int, float]]:
    """Draw the share of mistakes so far of each learner with partial_fit; return (name, mistakes, share), fewest first."""
    name, X, y = stream(folder)
    learners = {label: learner for label, learner in linear().items() if hasattr(learner, "partial_fit")}
    runs = {label: mistakes(learner, X, y) for label, learner in learners.items() if learner.keep == "last"}
    ranked = sorted(runs, key=lambda label: runs[label][1][-1])
    last = np.array([runs[label][1][-1] / len(y) for label in ranked])
    low, high = 0.9 * last[0], 1.35 * last[-1]
    places = np.linspace(low + 0.02 * (high - low), high - 0.02 * (high - low), len(ranked))
    colours = plt.get_cmap("viridis")(np.linspace(0, 0.9, len(ranked)))
    for label, share, place, colour in zip(ranked, last, places, colours, strict=True):
        seen, made = runs[label]
        ax.plot(seen[1:], made[1:] / seen[1:], color=colour, linewidth=1.4)
        line = {"arrowstyle": "-", "color": colour, "linewidth": 0.6, "relpos": (0, 0.5)}
        ax.annotate(f"{label}  {made[-1]:,}", (len(y), share), (1.08 * len(y), place), va="center", fontsize=9,
                    color=colour, arrowprops=line, annotation_clip=False)  # fmt: skip
    ax.set(title=f"Share of mistakes so far: {name}", xlabel="examples seen", ylabel="mistakes / examples",
           xlim=(0, len(y)), ylim=(low, high))  # fmt: skip
    ax.spines[["top", "right"]].set_visible(False)
    return [(label, int(runs[label][1][-1]), float(share)) for label, share in zip(ranked, last, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("picture", nargs="?", type=Path, default=Path("family.png"))
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="the folder that contains a9a.train.svm.gz")
    options = parser.parse_args()
    figure = plt.figure(figsize=(15, 19), layout="constrained")
    above, below = figure.subfigures(2, 1, height_ratios=[2.4, 1])
    boundaries(above)
    ranked = compare_on_stream(below.subplots(), options.data)
    figure.savefig(options.picture, dpi=100)
    print(f"{'learner':20} {'mistakes':>9} {'share':>7}")
    for label, made, share in ranked:
        print(f"{label:20} {made:9,} {share:7.2%}")
    print(f"saved {options.picture}")


if __name__ == "__main__":
    main()
