"""Reproduce the experiment of Freund and Schapire (1999): voted kernel perceptrons on MNIST, ten classes one against the
rest, with the kernel (1 + x·z)^d. Prints test errors, support vectors and mistakes beside the published ones.

    python examples/freund_schapire.py FOLDER --degree 2 3 4 --epochs 1

FOLDER contains mnist.npz, with the arrays x_train, y_train, x_test, y_test.
"""

import argparse
import sys
from pathlib import Path
from time import perf_counter

import numpy as np

from rosenblatt import KernelPerceptron

# Table 1 of the paper: (degree, epochs) → (error of the vote in %, support vectors, mistakes).
PUBLISHED = {
    (1, 1): (8.5, 19795, 25461),
    (2, 1): (2.8, 8190, 10201), (2, 2): (2.4, 9888, 15290), (2, 3): (2.2, 10818, 19093), (2, 4): (2.1, 11424, 22100),
    (3, 1): (2.3, 6774, 8475), (3, 2): (1.9, 8073, 11739), (3, 3): (1.8, 8715, 13757), (3, 4): (1.7, 9102, 15129),
    (4, 1): (2.2, 6338, 7977), (4, 2): (1.8, 7453, 10543), (4, 3): (1.7, 7944, 11933), (4, 4): (1.6, 8214, 12780),
}  # fmt: skip


def read_mnist(folder):
    """Return (rows, labels, test rows, test labels): pixels from 0 to 1, the training rows in one random order."""
    path = Path(folder) / "mnist.npz"
    if not path.exists():
        sys.exit(f"{path} is missing: it should hold the arrays x_train, y_train, x_test and y_test of MNIST")
    with np.load(path) as file:
        X, y, X_test, y_test = (file[name] for name in ("x_train", "y_train", "x_test", "y_test"))
    X, X_test = (rows.reshape(len(rows), -1).astype(np.float32) / 255 for rows in (X, X_test))
    order = np.random.default_rng(0).permutation(len(X))
    return X[order], y[order], X_test, y_test


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--degree", type=int, nargs="+", default=[2, 3, 4])
    parser.add_argument("--epochs", type=int, nargs="+", default=[1])
    options = parser.parse_args()
    X, y, X_test, y_test = read_mnist(options.folder)
    KernelPerceptron("poly", keep="vote", max_iter=1, tol=None).fit(X[:200], y[:200]).predict(X_test[:2])  # compiles
    print("test error in % by vote, average and last weights; in brackets as published")
    print(" d  T  vote         avg  last  support         mistakes            fit  predict")
    for degree in options.degree:
        for epochs in options.epochs:
            clf = KernelPerceptron("poly", degree=degree, gamma=1, keep="vote", order="cyclic", max_iter=epochs, tol=None)
            started = perf_counter()
            clf.fit(X, y)
            fitted = perf_counter()
            voted = clf.predict(X_test)
            done = perf_counter()
            kernels = (1 + X_test @ clf.support_vectors_.T) ** np.float32(degree)
            guesses = voted, *((kernels @ coef.T).argmax(axis=1) for coef in (clf.average_dual_coef_, clf.last_dual_coef_))
            vote, average, last = (100 * np.mean(guess != y_test) for guess in guesses)
            error, support, mistakes = PUBLISHED.get((degree, epochs), ("-", "-", "-"))
            print(
                f"{degree:2} {epochs:2}  {vote:5.2f} ({error:>3})  {average:5.2f} {last:5.2f}",
                f"{len(clf.support_):6} ({support:>5})  {clf.n_updates_:7} ({mistakes:>5})",
                f"{fitted - started:6.1f} s {done - fitted:6.1f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
