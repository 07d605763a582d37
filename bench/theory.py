"""Proofs: how long they take, beside a solver that gives an answer without one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.sparse as sp
from scipy.optimize import OptimizeResult, linprog
from sklearn.svm import SVC

from bench.data import svmlight
from bench.report import Result
from rosenblatt.cli.workloads import measure_in_turns, timed
from rosenblatt.feasibility import find_interior
from rosenblatt.theory import Inseparable, Separable, gamma_affine, separability
from rosenblatt.theory.hard import exponential

Folder = Path | None


def widest_box(X: sp.csr_array, y: np.ndarray) -> OptimizeResult:
    """HiGHS on the linear program of separability: the largest t with y(⟨w, x⟩ + b) ≥ t and all weights in [−1, 1]."""
    signs = np.where(y == y.max(), 1.0, -1.0)
    rows = sp.hstack([-sp.diags_array(signs) @ X, -signs[:, None], np.ones((len(y), 1))], format="csr")
    weights = X.shape[1] + 1
    return linprog(np.append(np.zeros(weights), -1), rows, np.zeros(len(y)), bounds=[(-1, 1)] * weights + [(None, None)])


def proof(folder: Folder, repeat: int, file: str, method: str) -> Result:
    """HiGHS's time for an answer in floats / ours to decide separability and to check the certificate exactly."""
    name, X, y = svmlight(folder, file)

    def prove() -> tuple[Separable | Inseparable, bool]:
        found = separability(X, y, method=method)
        return found, found.verify(X, y)

    a, b = measure_in_turns(timed(prove), timed(lambda: widest_box(X, y)), repeat=min(repeat, 2), warm_up=1)
    (found, true), floats = a.result, b.result
    agrees = isinstance(found, Separable) == (-floats.fun > 1e-6)
    few = isinstance(found, Separable) or len(found.rows) <= X.shape[1] + 2
    note = f"{found}; checked exactly; peer: HiGHS, t = {-floats.fun:.2g}"
    return Result(
        f"{name}, separable or not, proved ({method})", a.cost, b.cost, b.cost / a.cost, true and agrees and few, note
    )


def generated(folder: Folder, repeat: int, noise: float) -> Result:
    """The time to prove 100,000 × 1,000 numbers separable, or (with noise) not, and to check it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100_000, 1_000))
    u = rng.normal(size=1_000) / np.sqrt(1_000)
    scores = X @ u
    y = np.where(scores + noise * rng.normal(size=len(X)) > 0, 1, -1)
    if not noise:
        X += (y * 0.5)[:, None] * u

    def prove() -> tuple[Separable | Inseparable, bool]:
        found = separability(X, y)
        return found, found.verify(X, y)

    (turn,) = measure_in_turns(timed(prove), repeat=1, warm_up=0)
    found, true = turn.result
    right = true and isinstance(found, Inseparable if noise else Separable)
    return Result(
        "dense 100,000 × 1,000, separable or not, proved", turn.cost, None, turn.cost, right, f"{found}; checked exactly"
    )


def certified_margin(folder: Folder, repeat: int, file: str) -> Result:
    """scikit-learn's time for a hard margin / ours for a bracket of it that is proved from both sides."""
    name, X, y = svmlight(folder, file)
    dense = X.toarray()  # its sparse path refuses the 64-bit indices that the file is read with
    a, b = measure_in_turns(
        timed(lambda: gamma_affine(X, y)),
        timed(lambda: SVC(kernel="linear", C=1e6, tol=1e-6).fit(dense, y)),
        repeat=min(repeat, 3),
        warm_up=1,
    )
    theirs = 1 / float(np.linalg.norm(b.result.coef_))
    right = a.result.verify(X, y) and a.result.gap <= 1e-6 and abs(theirs - a.result.lower) < 1e-3 * theirs
    note = f"γ in [{a.result.lower:.10f}, {a.result.upper:.10f}], relative gap {a.result.gap:.0e}; peer: SVC, {theirs:.10f}"
    return Result(f"{name}, widest margin, proved", a.cost, b.cost, b.cost / a.cost, right, note)


def rescaled(folder: Folder, repeat: int, n: int) -> Result:
    """The perceptron's time on its exponential instance / the rescaled perceptron's."""
    hard = exponential(n)
    rows = hard.X * hard.y[:, None]
    a, b = measure_in_turns(
        timed(lambda: find_interior(rows, "rescaling")),
        timed(lambda: find_interior(rows, "perceptron")),
        repeat=min(repeat, 3),
        warm_up=2,
    )
    right = a.result.verify(rows) and b.result.verify(rows) and b.result.n_updates == (4**n - 1) // 3
    ours, theirs = (f"{run.result.n_updates:,} updates" for run in (a, b))
    note = f"{ours}, {a.result.n_rescalings} rescalings; peer: the perceptron, {theirs}"
    return Result(f"exponential instance, n = {n}, rescaled", a.cost, b.cost, b.cost / a.cost, right, note)
