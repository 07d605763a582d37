"""The perceptron as the lecture notes write it, with its proof measured at every update.

Take a row. Is it a mistake? Then w ← w + η·a. Repeat until a whole epoch has none. The notes disagree on what a mistake is
where the score is exactly 0: the proofs count it (y⟨w, x⟩ ≤ 0), and the programs of some compare labels, so that a tie is
right for one class. `trace` runs either.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rosenblatt.errors import IncompatibleParameters, InvalidParameter, NumericOverflow
from rosenblatt.exact.reading import COUNT, NUMBER, POSITIVE, Matrix, MatrixLike
from rosenblatt.feasibility.rows import dense_row, row_lengths
from rosenblatt.theory import bounds
from rosenblatt.theory.cycles import DELTA
from rosenblatt.theory.geometry import NotSeparable, gamma_seen
from rosenblatt.theory.runs import Trace
from rosenblatt.theory.signed import RandomSeed, read, read_weights

ORDERS = ("cyclic", "shuffle", "random", "most-violated", "most-violated-normalised")
MISTAKES = ("margin", "prediction")
_LARGEST = 1e150  # length of a row, whose square, times a rate, float64 can hold

Mistakes: TypeAlias = Callable[[NDArray], NDArray]  # the margins of all rows → which of them are mistakes
Epoch: TypeAlias = Callable[[NDArray, NDArray], NDArray]  # margins and mistakes of all rows → the rows to visit next


def trace(
    X: MatrixLike,
    y: ArrayLike,
    *,
    constant: float = 1.0,
    delta: float = 0.0,
    rate: float = 1.0,
    mistake: str = "margin",
    zero_sign: int = 1,
    order: str | Sequence[int] = "cyclic",
    separator: ArrayLike | None = None,
    gamma: float | None = None,
    start: ArrayLike | None = None,
    max_updates: int = 100_000,
    random_state: RandomSeed = 0,
) -> Trace:
    """Run the perceptron on two classes until no row is left to learn from, and measure the proof at every update.

    The potential of the notes of Georgia Tech CS 4540, cos(w, u), "starts at 0" there; at w = 0 it is 0/0 and has no value,
    so `cosine` begins with the first update.

    Parameters
    ----------
    X : (rows, features) array, table or scipy sparse matrix
    y : (rows,) array
        Two labels, of which the second is the positive one; without a constant feature also one.
    constant : float
        κ, the constant feature that the intercept is the weight of; 0 for none. R and γ are measured with it.
    delta, rate : float
        δ and η: w += η·a whenever ⟨w, a⟩ ≤ δ, a = y·(x, κ).
    mistake : {"margin", "prediction"}
        What is learned from. "margin": a row with ⟨w, a⟩ ≤ δ, so that a score of 0 is a mistake for either class, as the
        proofs of the notes have it. "prediction": a row whose predicted label is not y, as their programs have it (CMU
        10-607, Algorithm 1; UCSC NLP 202). Such a row has ⟨w, a⟩ ≤ 0, so walls and bound hold for it too; but rows of one
        class are left alone at the score 0, and a run may converge to weights that do not separate the classes. δ must
        be 0.
    zero_sign : {1, -1}
        The label that a score of exactly 0 is predicted as, for mistake="prediction": +1 is the second class, -1 the first.
    order : a word, or a sequence of row numbers
        As in `Perceptron`: "cyclic", "shuffle", "random", "most-violated", "most-violated-normalised". A sequence of row
        numbers is repeated until the weights rest on all rows.
    separator : array or None
        u, of any length above 0, with the weight of the constant feature last, if there is one. None: the widest one.
        On rows that nothing separates it must be given.
    gamma : float or None
        The margin that the lower wall claims. None: that of u, which makes the wall true. On rows that nothing separates
        no wall that rises is: claim one and see where it breaks.
    start : array or None
        w₀, with the coordinates of u. None: 0.
    max_updates : int
        Where to stop on rows that take longer, or for ever.
    random_state : int or Generator
        For the orders that draw.

    Returns
    -------
    Trace
        The run, with what the proof speaks of at each update.

    Raises
    ------
    NotSeparable
        If nothing separates the classes and no separator is given.
    InvalidData, InvalidParameter
        For what cannot be learned from, and for options that there are not, or that contradict one another.

    Examples
    --------
    >>> from rosenblatt.theory.tracing import trace
    >>> X = [[1, 1, 0, 1, 1], [0, 0, 1, 1, 0], [0, 1, 1, 0, 0], [1, 0, 0, 1, 0], [1, 0, 1, 0, 1], [1, 0, 1, 1, 0]]
    >>> run = trace(X, ["spam", "ham", "spam", "ham", "spam", "ham"])
    >>> run.updates, round(run.bound, 6), run.converged, run.broken
    (4, 15.0, True, None)
    >>> for wall in (run.lower, run.norm, run.upper):
    ...     print(wall.round(2))
    [0.   0.58 1.15 1.73 2.31]
    [0.   2.24 2.   2.65 2.45]
    [0.   2.24 3.16 3.87 4.47]

    On the instance of Georgia Tech CS 4540 that takes exponentially long, what is done at the score 0 decides how long:

    >>> from rosenblatt.theory import hard
    >>> X, y, *_ = hard.exponential(5)
    >>> trace(X, y, constant=0).updates
    341
    >>> [trace(X, y, constant=0, mistake="prediction", zero_sign=sign).updates for sign in (1, -1)]
    [110, 231]
    """
    DELTA.check("delta", delta)
    POSITIVE.check("rate", rate)
    most = int(COUNT.check("max_updates", max_updates))
    rows = read(X, y, constant)
    A = rows.A
    norms = row_lengths(A)
    radius = float(norms.max())
    if not np.isfinite(radius) or radius > _LARGEST:
        row = int(np.argmax(norms))
        raise NumericOverflow(f"the squared length of row {row} of X overflows", row=row, hint="scale X down")
    if rate * radius > _LARGEST or rate * delta > _LARGEST**2:
        hint = "take a smaller rate or delta, or scale X down"
        raise NumericOverflow("η²R² + 2ηδ, which an update may add to ‖w‖², overflows", hint=hint)
    mistakes = _mistakes(mistake, delta, zero_sign, rows.y)
    epoch = _epoch(order, norms, np.random.default_rng(random_state))
    u, measured = _widest_separator(X, y, constant) if separator is None else _margin_of(A, separator)
    claimed = measured if gamma is None else NUMBER.check("gamma", gamma)
    w = first = np.zeros(A.shape[1]) if start is None else read_weights("start", start, A.shape[1])
    if np.abs(w).max() > _LARGEST or abs(rate * claimed) > _LARGEST:
        name, value = ("start", start) if np.abs(w).max() > _LARGEST else ("gamma", gamma)
        raise InvalidParameter(name, value, f"numbers up to {_LARGEST:g}, whose squares floats can hold")
    example, margin = list[int](), list[float]()
    norm, progress = [float(np.linalg.norm(w))], [float(w @ u)]
    for i, before, w in islice(learn(A, first, rate, mistakes, epoch), most):
        example.append(i)
        margin.append(before)
        norm.append(float(np.linalg.norm(w)))
        progress.append(float(w @ u))
    bound = math.inf
    if claimed > 0:
        bound = bounds.novikoff(radius, claimed, delta=delta, rate=rate, start=norm[0], along=progress[0])
    cosine = np.divide(progress, norm, out=np.full(len(norm), np.nan), where=np.array(norm) > 0)
    return Trace(np.array(example, dtype=np.int64), np.array(margin), np.array(progress), np.array(norm), cosine, w, u,
                 claimed, radius, float(delta), float(rate), bound, not mistakes(A @ w).any(), rows, first,
                 order if isinstance(order, str) else tuple(int(i) for i in order), mistake, int(zero_sign))  # fmt: skip


def learn(A: Matrix, w: NDArray, rate: float, mistakes: Mistakes, epoch: Epoch) -> Iterator[tuple[int, float, NDArray]]:
    """Run the perceptron on rows times their label: for each update, the row, its margin before, the weights after.

    The margins of all rows are computed at once, after each update: then the rows that are right cost next to nothing.
    """
    margins = A @ w
    while (wrong := mistakes(margins)).any():  # repeat until a whole epoch has no mistake
        for i in epoch(margins, wrong).tolist():  # take a row
            if wrong[i]:  # is it a mistake?
                w = w + rate * dense_row(A, i)  # w ← w + η·a
                yield i, float(margins[i]), w
                margins = A @ w
                wrong = mistakes(margins)


def _mistakes(mistake: str, delta: float, zero_sign: int, y: NDArray) -> Mistakes:
    """The test that a row has to pass in order not to be learned from."""
    if mistake not in MISTAKES:
        raise InvalidParameter("mistake", mistake, f"one of {', '.join(MISTAKES)}")
    if zero_sign not in (1, -1):
        raise InvalidParameter("zero_sign", zero_sign, "1 or -1, the label that a score of 0 is predicted as")
    if mistake == "margin":
        if zero_sign != 1:
            reason = "by its margin, a score of 0 is a mistake for either class"
            raise IncompatibleParameters(
                ("zero_sign", zero_sign), ("mistake", mistake), reason, settings={"mistake": "prediction"}
            )
        return lambda margins: margins <= delta
    if delta:
        reason = "a prediction is right or wrong by the sign of the score alone"
        raise IncompatibleParameters(("delta", delta), ("mistake", mistake), reason, settings={"mistake": "margin"})
    wrong_at_zero = y != zero_sign
    return lambda margins: (margins < 0) | ((margins == 0) & wrong_at_zero)


def _epoch(order: str | Sequence[int], norms: NDArray, rng: np.random.Generator) -> Epoch:
    """What names the rows of the next epoch."""
    count = len(norms)
    divisors = np.maximum(norms, np.finfo(float).tiny)

    def least(values: NDArray, wrong: NDArray) -> NDArray:
        return np.where(wrong, values, np.inf).argmin(axis=0, keepdims=True)  # one row, of those that are wrong

    words: dict[str, Epoch] = {
        "cyclic": lambda margins, wrong: np.arange(count),
        "shuffle": lambda margins, wrong: rng.permutation(count),
        "random": lambda margins, wrong: rng.integers(count, size=count),
        "most-violated": least,
        "most-violated-normalised": lambda margins, wrong: least(margins / divisors, wrong),
    }
    if isinstance(order, str) and order in words:
        return words[order]
    try:
        rows = np.asarray(order)
    except ValueError:
        rows = np.array(None)  # lists of different lengths
    if rows.ndim != 1 or rows.dtype.kind not in "iu" or not ((rows >= 0) & (rows < count)).all():
        raise InvalidParameter("order", order, f"one of {', '.join(ORDERS)}, or numbers of rows from 0 to {count - 1}")
    if len(set(rows.tolist())) < count:
        hint = "rows that are wrong might never be visited"
        raise InvalidParameter("order", order, "a sequence that names every row at least once", hint=hint)
    return lambda margins, wrong: rows


def _widest_separator(X: MatrixLike, y: ArrayLike, constant: float) -> tuple[NDArray, float]:
    """(the unit vector of widest margin, its margin)."""
    try:
        found = gamma_seen(X, y, constant)
    except NotSeparable as none:
        hint = "pass separator=u to trace with any vector u"
        raise NotSeparable(none.problem, none.certificate, hint=hint) from none
    return found.separator, found.lower


def _margin_of(A: Matrix, separator: ArrayLike) -> tuple[NDArray, float]:
    """(the separator, of length 1, its margin)."""
    u = read_weights("separator", separator, A.shape[1])
    if not u.any():
        raise InvalidParameter("separator", separator, "a vector that is not zero")
    u = u / np.abs(u).max()  # so that no square overflows
    u = u / np.linalg.norm(u)
    return u, float((A @ u).min())
