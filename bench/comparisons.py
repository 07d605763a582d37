"""Comparisons of linear learners with peers. Each takes the folder of data and the number of runs, and returns a Result."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn import linear_model
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from bench.data import Missing, load, mnist, news20
from bench.measure import in_new_process
from bench.report import Result
from rosenblatt import KernelPerceptron, PassiveAggressiveClassifier, Perceptron
from rosenblatt.cli.workloads import (
    Measurement,
    compare_accuracy,
    compare_weights,
    measure_in_turns,
    our_perceptron,
    peer_perceptron,
    timed,
    with_intercept,
)

Folder = Path | None


def perceptron(folder: Folder, repeat: int, source: str, order: str) -> Result:
    """Return scikit-learn's time / ours, five epochs each."""
    name, X, y = load(source, folder)
    a, b = measure_in_turns(
        timed(lambda: our_perceptron(X, order).fit(X, y)),
        timed(lambda: peer_perceptron(X, order).fit(X, y)),
        repeat=repeat,
        warm_up=1,
    )
    if order == "cyclic":
        weights = (with_intercept(model.coef_, model.intercept_) for model in (a.result, b.result))
        right, note = compare_weights(X, *weights)
    else:
        right, note = compare_accuracy(X, y, a.result, b.result)
    note += f"; {a.result.n_mistakes_ / a.result.n_seen_:.0%} mistakes"
    if sp.issparse(X):
        note += "; no intercept, as scikit-learn damps that of sparse data"
    words = {"cyclic": "in order", "shuffle": "shuffled"}[order]
    return Result(f"{name}, {words}", a.cost, b.cost, b.cost / a.cost, right, note)


def sparse_rows(folder: Folder, repeat: int, source: str, order: str, epochs: int) -> Result:
    """Return the median, over pairs of runs, of scikit-learn's time / ours: sparse rows as users have them, with all
    parameters at their defaults but for the number of epochs, the last weights, and each class against the rest."""
    name, X, y = load(source, folder)
    shuffled = order == "shuffle"
    peer = linear_model.Perceptron(max_iter=epochs, tol=None, shuffle=shuffled, n_jobs=2)
    ours = Perceptron(max_iter=epochs, tol=None, order=order, keep="last", multiclass="ovr")
    pairs = [
        [timed(lambda learner=learner: clone(learner).fit(X, y))() for learner in (ours, peer)]
        for _ in range(max(repeat, 5) + 1)
    ][1:]
    ratio = float(np.median([b.cost / a.cost for a, b in pairs]))
    right, note = compare_accuracy(X, y, *(run.result for run in pairs[-1]))
    words = {"cyclic": "in order", "shuffle": "shuffled"}[order]
    times = (float(np.median([pair[i].cost for pair in pairs])) for i in (0, 1))
    return Result(f"{name}, {words}, {epochs} epochs", *times, ratio, right, f"median of {len(pairs)}; {note}")


def peer_passive_aggressive() -> Any:
    """Return scikit-learn's class, which version 1.10 no longer has."""
    if not hasattr(linear_model, "PassiveAggressiveClassifier"):
        raise Missing("this scikit-learn has no PassiveAggressiveClassifier any more")
    return linear_model.PassiveAggressiveClassifier


def passive_aggressive(folder: Folder, repeat: int, source: str, loss: str) -> Result:
    """Return scikit-learn's time / ours for passive-aggressive learning, five epochs each in order, no intercept."""

    def fit(kind: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            model = kind(loss=loss, C=0.1, max_iter=5, tol=None, shuffle=False, fit_intercept=False)
        return model.fit(X, y)

    name, X, y = load(source, folder)
    a, b = measure_in_turns(
        timed(lambda: fit(PassiveAggressiveClassifier)),
        timed(lambda: fit(peer_passive_aggressive())),
        repeat=repeat,
        warm_up=1,
    )
    right, note = compare_weights(X, *(with_intercept(model.coef_, 0.0) for model in (a.result, b.result)))
    words = {"hinge": "PA-I", "squared_hinge": "PA-II"}[loss]
    return Result(f"{name}, {words} in order", a.cost, b.cost, b.cost / a.cost, right, note + "; no intercept")


def averaging(folder: Folder, repeat: int, source: str) -> Result:
    """Return the extra cost, in percent, of keeping the average and not the last weights."""
    name, X, y = load(source, folder)
    a, b = measure_in_turns(
        timed(lambda: our_perceptron(X, keep="average").fit(X, y)),
        timed(lambda: our_perceptron(X).fit(X, y)),
        repeat=repeat,
        warm_up=2,
    )
    average = with_intercept(a.result.last_coef_, a.result.last_intercept_)
    right, note = compare_weights(X, average, with_intercept(b.result.coef_, b.result.intercept_))
    note = f"peer: ours that keeps the last; last {note}"
    return Result(f"{name}, averaging", a.cost, b.cost, 100 * (a.cost / b.cost - 1), right, note)


def small(folder: Folder, repeat: int, call: str, classes: int) -> Result:
    """Return our time / scikit-learn's for a hundred calls on the 150 rows and 4 columns of iris: "fit" makes five epochs,
    "default fit" sets no parameter, and "predict" is asked about one row."""
    X, y = load_iris(return_X_y=True)
    y = y if classes == 3 else (y == 2).astype(int)
    settings: Any = {} if call == "default fit" else {"max_iter": 5, "tol": None}

    def calls(kind: Any) -> Any:
        fitted, row = kind(**settings).fit(X, y), X[:1]
        work = (lambda: fitted.predict(row)) if call == "predict" else (lambda: kind(**settings).fit(X, y))
        return timed(lambda: [work() for _ in range(100)][-1])

    a, b = measure_in_turns(calls(Perceptron), calls(linear_model.Perceptron), repeat=max(repeat, 5), warm_up=2)
    right, note = True, "one row"
    if call != "predict":
        right, note = compare_accuracy(X, y, a.result, b.result)
        note = f"{a.result.n_iter_} and {b.result.n_iter_} epochs; {note}"
    return Result(f"{call} of 150 × 4, {classes} classes, 100 times", a.cost, b.cost, a.cost / b.cost, right, note)


def bandwidth(folder: Folder, repeat: int, threads: int | None) -> Result:
    """Return our time for one epoch / the time of X @ w, which reads the same memory."""
    name, X, y = load("dense-1000", folder)
    w = np.ones(X.shape[1], X.dtype)

    def fit(epochs: int) -> Any:
        return timed(lambda: our_perceptron(X, epochs=epochs).fit(X, y))

    def product() -> Measurement:
        with threadpool_limits(threads):
            return timed(lambda: X @ w)()

    six, one, read = measure_in_turns(fit(6), fit(1), product, repeat=repeat, warm_up=3)
    epoch = (six.cost - one.cost) / 5
    note = f"an epoch is (fit of 6 − fit of 1) / 5 and reads {X.nbytes / 1e9 / epoch:.1f} GB/s, peer: X @ w"
    name += f", one epoch / X @ w on {'all threads' if threads is None else 'one thread'}"
    return Result(name, epoch, read.cost, epoch / read.cost, True, note)


def importing(folder: Folder, repeat: int) -> Result:
    modules = ("rosenblatt.estimators.linear", "sklearn.linear_model")  # `import rosenblatt` alone imports nothing yet
    a, b = measure_in_turns(*(in_new_process("import_seconds", module) for module in modules), repeat=repeat, warm_up=2)
    name = "`from rosenblatt import Perceptron` beyond `import sklearn.linear_model`"
    return Result(name, a.cost, b.cost, a.cost - b.cost, True, "each in a new process; the difference")


def first_fit(folder: Folder, repeat: int, layout: str) -> Result:
    (a,) = measure_in_turns(in_new_process("first_fit_seconds", layout), repeat=repeat, warm_up=1)
    return Result(f"first fit, {layout}", a.cost, None, a.cost, True, "new process, kernels on disk; without the imports")


def first_use(folder: Folder, repeat: int, what: str) -> Result:
    (a,) = measure_in_turns(in_new_process("first_use_seconds", what), repeat=min(repeat, 3), warm_up=0)
    return Result(f"first use, {what}", a.cost, None, a.cost, True, "new process, nothing compiled yet; with the imports")


def memory(folder: Folder, repeat: int) -> Result:
    if not Path("/proc/self/clear_refs").exists():
        raise Missing("peak memory is read from /proc, which this system does not have")
    a, b = measure_in_turns(*(in_new_process("fit_megabytes", side) for side in ("ours", "peer")), repeat=1, warm_up=0)
    note = "rise of peak resident memory during fit, in a new process with 160 MB of data loaded"
    return Result("peak memory, dense 400,000 × 100", a.cost, b.cost, None, True, note, "MB")


def mnist_accuracy(folder: Folder, repeat: int) -> Result:
    _, X, y = mnist(folder)
    _, unseen, answers = mnist(folder, "test")
    reached = Perceptron(max_iter=5, tol=None, keep="average").fit(X, y).score(unseen, answers)
    note = "accuracy on the 10,000 test images; joint, average of 5 epochs"
    return Result("MNIST accuracy", reached, None, reached, True, note, "accuracy")


def kernel_epoch(folder: Folder, repeat: int, degree: int) -> Result:
    """Return our time for one epoch of the voted kernel perceptron of Freund and Schapire (1999), ten classes one against
    the rest; scikit-learn's SVC with the same kernel is the peer, on a tenth of the rows."""
    _, X, y = mnist(folder)
    _, unseen, answers = mnist(folder, "test")
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order], y[order]
    same: Any = {"kernel": "poly", "degree": degree, "gamma": 1, "coef0": 1}
    voted = KernelPerceptron(**same, keep="vote", order="cyclic", max_iter=1, tol=None)
    part = slice(len(y) // 10)
    (a,) = measure_in_turns(timed(lambda: voted.fit(X, y)), repeat=min(repeat, 2), warm_up=0)
    less, named = X[part], y[part]
    small, b = measure_in_turns(
        timed(lambda: clone(voted).fit(less, named)), timed(lambda: SVC(**same).fit(less, named)), repeat=1, warm_up=0
    )
    wrong = 1 - a.result.score(unseen, answers)
    note = (
        f"voted test error {wrong:.2%}; {len(a.result.support_):,} support vectors; on 6,000 rows {small.cost:.2f} s, "
        f"scikit-learn's SVC {b.cost:.2f} s"
    )
    return Result(f"MNIST, kernel (1 + x·z)^{degree}, one epoch", a.cost, None, a.cost, abs(wrong - 0.0218) < 0.0015, note)


def news20_accuracy(folder: Folder, repeat: int, multiclass: str, with_margin: bool) -> Result:
    """Return our accuracy − that of scikit-learn's averaged perceptron, on the same folds.

    The margin is fixed before any label is looked at: the mean squared length of a row, the scale on which margins grow.
    """
    _, X, y = news20(folder)
    margin = float(X.multiply(X).sum(axis=1).mean()) if with_margin else 0.0
    same: Any = {"max_iter": 5, "tol": None, "random_state": 0}
    theirs = SGDClassifier(loss="perceptron", learning_rate="constant", eta0=1, penalty=None, average=True, **same)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    models = (Perceptron(keep="average", margin=margin, multiclass=multiclass, **same), theirs)
    a, b = (float(cross_val_score(model, X, y, cv=folds).mean()) for model in models)
    note = f"mean accuracy of 5 folds, the same for both; margin {margin:.3g}; average of 5 epochs; peer: SGDClassifier"
    name = f"news20 accuracy, {multiclass}" + (", margin = mean squared length" if with_margin else "")
    return Result(name, a, b, a - b, True, note, "accuracy")
