"""The widest separator touches few rows. The shortest w with ⟨aᵢ, w⟩ ≥ 1 for all rows is the shortest with = 1 for those it
touches, its support, and it is a positive combination of them. So take the row that falls short most into the support, let
go of the rows whose weight this drives to zero, and repeat: w gets longer each time, so no support comes twice, and one of
them is the last (Goldfarb and Idnani 1983; w/‖w‖² is the point of the rows' hull nearest to the origin, Wolfe 1976). If a
row can neither be reached nor push another one out, some rows add up to zero, and no w is of any use.

Most steps look at some of the rows only; a pass over all of them names those that are missing. Floats see margins down to
about 1e-9 of the radius; below, the same steps are taken in long integers. What is found need not be trusted: both bounds
are computed from it again, exactly, in `geometry`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, inf, ldexp
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr_delete
from scipy.linalg.lapack import dtrtrs

from rosenblatt.exact.dyadic import lowest_exponent, mantissas, products
from rosenblatt.exact.reading import Matrix, dense
from rosenblatt.exact.solve import check_time
from rosenblatt.feasibility.rows import row_lengths

_EPS = float(np.finfo(np.float64).eps)
_CLOSE = 1e-11  # by how much a row may fall short, if floats can tell so much
_BLIND = 0.01  # an arithmetic that cannot see such a shortfall sees nothing
MOST = 6000  # dimensions in which the nearest point is looked for: it needs dense arrays of them, squared
_TAKEN = 500  # rows taken up after a pass over all rows, at least,
_ENTRIES = 1 << 25  # unless they have more entries: they are held dense, in a quarter of a gigabyte


class Found(NamedTuple):
    """A direction and a weighted combination of rows; both exact, as integers. At best both are the widest separator."""

    w: list[int]  # (columns of A,)
    rows: list[int]
    weights: list[int]  # positive; of each class the same sum, if the intercept is free
    separates: bool  # as far as this arithmetic could see


class Cloud:
    """The rows a = y·x or y·(x, κ), seen from near: brought to lengths about 1 by a power of two. With a free intercept,
    a = y·(x − centre, 1), and the last coordinate of w costs nothing."""

    def __init__(self, A: Matrix, y: NDArray, free: bool):
        self.A, self.y, self.free = A, y, free
        # A shift changes no margin, but what rounding does to it.
        self.centre = (y @ A) / len(y) if free else np.zeros(A.shape[1])
        some = np.linspace(0, len(y) - 1, min(len(y), 1000)).astype(int)
        self.norms = row_lengths(A)
        near = row_lengths(dense(A[some]) - y[some, None] * self.centre) if free else self.norms
        self.exponent = int(np.frexp(near.max(initial=0.0))[1])
        self.constant = y if free else np.zeros(len(y))

    def rows(self, which: NDArray) -> NDArray:
        """(rows, columns), floats."""
        part = np.ldexp(dense(self.A[which]) - self.constant[which, None] * self.centre, -self.exponent)
        return np.hstack([part, self.y[which, None]]) if self.free else part

    def shortfalls(self, w: NDArray) -> NDArray:
        """1 − ⟨aᵢ, w⟩ for each row of all."""
        if not self.free:
            return 1 - self.A @ np.ldexp(w, -self.exponent)
        v = np.ldexp(w[:-1], -self.exponent)
        return 1 - self.A @ v - self.y * (w[-1] - v @ self.centre)

    def direction(self, w: NDArray) -> list[int]:
        """w, its entries rounded to multiples of 2⁻⁵³ of the largest, as integers."""
        w = w[: self.A.shape[1]]
        return np.rint(np.ldexp(w, 53 - int(np.frexp(np.abs(w).max())[1]))).astype(np.int64).tolist()

    def first(self) -> list[int]:
        """Where to begin: the shortest row; with a free intercept, the row of each class furthest towards the other one."""
        if not self.free:
            return [int(np.argmin(self.norms))]
        values = self.A @ _unit(self._middle())
        return [int(np.flatnonzero(self.y == s)[np.argmin(values[self.y == s])]) for s in (1.0, -1.0)]

    def likely(self, number: int) -> NDArray:
        """Rows that lie towards the origin, or towards the other class."""
        if number >= len(self.y):
            return np.arange(len(self.y))
        values = self.A @ _unit(self._middle())
        if self.free:
            for s in (1.0, -1.0):
                values[self.y == s] -= values[self.y == s].min()
        return np.argpartition(values, number)[:number]

    def _middle(self) -> NDArray:
        if not self.free:
            return np.asarray(self.A.mean(axis=0)).ravel()
        of_each = [(self.y == s) @ self.A / (self.y == s).sum() for s in (1.0, -1.0)]
        return of_each[0] + of_each[1]


class Support:
    """The rows that w touches, in floats: QR factors of the matrix with these rows as its columns. What rounding does to w
    is R/γ times the rounding of a float; by the Gram matrix it would be (R/γ)² times that."""

    def __init__(self, V: NDArray, free: bool):
        self.V, self.free = V, free  # V: (rows looked at, columns)
        self.active: list[int] = []
        self._room = np.zeros((V.shape[1], min(V.shape[1], 32)), order="F")  # for Q, (columns, support)
        self._R = np.zeros((0, 0), order="F")
        self._reached = self._split(V[0])
        self._solved: tuple[NDArray, NDArray] | None = None

    def _basis(self) -> NDArray:
        return self._room[:, : len(self.active)]

    def approach(self, row: int) -> tuple[float, NDArray]:
        """(rate, fall): for each unit of weight the row gets, what ⟨a, w⟩ gains, and what the other weights lose."""
        a, Q = self.V[row], self._basis()
        c, z = self._reached = self._split(a)
        if self.free and self.active:  # a last coordinate of w that costs nothing acts as a constant of another size
            q = Q[-1]
            more = z[-1] / (q @ q)
            c = c + more * q
            z = z - Q @ (more * q)
            z[-1] += more
        rate = float(z @ a)
        if Q.shape[0] == Q.shape[1] or rate <= (16 * _EPS) ** 2 * len(a) * float(a @ a):
            rate = 0.0
        return rate, self._triangular(c)

    def append(self, row: int) -> None:
        """Take in the row that was approached last."""
        k = len(self.active)
        if k == self._room.shape[1]:
            room = np.zeros((len(self._room), min(len(self._room), 2 * k)), order="F")
            room[:, :k] = self._room
            self._room = room
        c, z = self._reached
        R = np.zeros((k + 1, k + 1), order="F")
        R[:k, :k], R[:k, k], R[k, k] = self._R, c, np.sqrt(z @ z)
        self._room[:, k] = z / R[k, k]
        self._R, self._solved = R, None
        self.active.append(row)

    def drop(self, place: int) -> None:
        k = len(self.active) - 1
        if k:
            Q, R = qr_delete(self._basis(), self._R, place, which="col", overwrite_qr=True, check_finite=False)
            if not np.shares_memory(Q, self._room):
                self._room[:, :k] = Q[:, :k]
            self._R = np.asfortranarray(R[:k])
        else:
            self._R = np.zeros((0, 0), order="F")
        del self.active[place]
        self._solved = None

    def _split(self, a: NDArray) -> tuple[NDArray, NDArray]:
        """(c, z) with a = Qc + z and z orthogonal to Q; twice is enough (Kahan)."""
        c = a @ self._basis()
        z = a - self._basis() @ c
        again = z @ self._basis()
        return c + again, z - self._basis() @ again

    def _triangular(self, c: NDArray, transpose: bool = False) -> NDArray:
        return dtrtrs(self._R, c, trans=transpose)[0] if len(c) else c

    def solution(self) -> tuple[NDArray, NDArray]:
        """(w, weights) on this support."""
        if self._solved is None:
            self._solved = self._solve()
        return self._solved

    def _solve(self) -> tuple[NDArray, NDArray]:
        c = self._triangular(np.ones(len(self.active)), transpose=True)
        w = self._basis() @ c
        if self.free:
            q = self._basis()[-1]
            last = w[-1] / (q @ q)
            w = w - self._basis() @ (last * q)
            w[-1] += last
            c = c - last * q
        return w, self._triangular(c)

    def weights(self) -> NDArray:
        return self.solution()[1]

    def shortfalls(self) -> NDArray:
        return 1 - self.V @ self.solution()[0]

    def floor(self) -> float:
        """The smallest shortfall that is not rounding."""
        return max(_CLOSE, 2 * _EPS * float(np.sqrt(np.abs(self.weights()).sum())))


class LongSupport:
    """The same in integers: the inverse Gram matrix of the support, times 2^bits, with a border y for a free intercept.
    There are so many bits that squaring the condition does no harm."""

    def __init__(self, V: NDArray, y: NDArray, free: bool, guard: int):
        self.V, self.y, self.free = V, y, free  # V: (rows looked at, columns), Python's integers
        self.active: list[int] = []
        self.size = max(int(abs(value)).bit_length() for value in V.flat)
        self.bits = 2 * self.size + guard
        self._inverse = np.zeros((0, 0), dtype=object)
        self._reached: tuple[NDArray, int] = (np.zeros(0, dtype=object), 0)

    def begin(self, rows: Sequence[int]) -> None:
        """Take those of the rows that do not depend on the ones before."""
        if self.free:
            sign, square = int(self.y[rows[0]]) << self.bits, self._square(rows[0])
            self._inverse = np.array([[-square << self.bits, sign], [sign, 0]], dtype=object)
            self.active, rows = [rows[0]], rows[1:]
        for row in rows:
            if self.approach(row)[0] > 0:
                self.append(row)

    def approach(self, row: int) -> tuple[float, NDArray]:
        r, left = self._reached = self._against(row)
        nothing = self._square(row) << (self.bits - (self.bits - 2 * self.size) // 2)
        rate = 0.0 if left <= nothing else _ratio(left, self.bits + 2 * self.size)
        return rate, np.array([_ratio(value, self.bits) for value in r[self.free :]])

    def append(self, row: int) -> None:
        """Take in the row that was approached last."""
        r, left = self._reached
        k = len(r)
        bigger = np.zeros((k + 1, k + 1), dtype=object)
        if k:
            part = (r << self.bits) // left  # k divisions; for k², products and shifts
            bigger[:k, :k] = self._inverse + (np.outer(r, part) >> self.bits)
            bigger[:k, k] = bigger[k, :k] = -part
        bigger[k, k] = (1 << (2 * self.bits)) // left
        self._inverse = bigger
        self.active.append(row)

    def drop(self, place: int) -> None:
        j = place + self.free
        keep = np.arange(len(self._inverse)) != j
        column, corner = self._inverse[keep, j], self._inverse[j, j] or 1  # 0 only where the bits have run out
        part = (column << self.bits) // corner
        self._inverse = self._inverse[np.ix_(keep, keep)] - (np.outer(column, part) >> self.bits)
        del self.active[place]

    def long_weights(self) -> NDArray:
        """The weights times 2^bits."""
        return self._inverse[self.free :, self.free :].sum(axis=1)

    def weights(self) -> NDArray:
        """As floats, for rows of a length about 1."""
        return np.array([_ratio(value, self.bits - 2 * self.size) for value in self.long_weights()])

    def shortfalls(self) -> NDArray:
        values = self.V @ (self.long_weights() @ self.V[self.active])
        if self.free:
            values = values + self.y.astype(int).astype(object) * self.intercept()
        one = 1 << self.bits
        return np.array([_ratio(one - value, self.bits) for value in values])

    def floor(self) -> float:
        return _CLOSE

    def intercept(self) -> int:
        """That of y·(⟨w, x⟩ + b) = 1 on the support, times 2^bits."""
        return int(self._inverse[0, 1:].sum())

    def _square(self, row: int) -> int:
        return int(self.V[row] @ self.V[row])

    def _against(self, row: int) -> tuple[NDArray, int]:
        """(what the row is in terms of the support, the square of what is left), times 2^bits."""
        g = self.V[self.active] @ self.V[row]
        if self.free:
            g = np.concatenate([np.array([int(self.y[row])], dtype=object), g])
        r = self._inverse @ g if len(g) else g
        return r, (self._square(row) << self.bits) - int(sum(g * r))


def enter(support: Support | LongSupport, row: int, short: float) -> NDArray | None:
    """Make the support touch a row that falls short of it. If none can: the weights with which the support and the row add
    up to zero, the row's last."""
    weights = support.weights()
    while True:
        rate, fall = support.approach(row)
        ratio = np.where(fall > 0, weights / np.where(fall > 0, fall, 1.0), np.inf)
        place = int(np.argmin(ratio)) if len(ratio) else -1
        step = ratio[place] if len(ratio) else np.inf
        if rate > 0 and short <= step * rate:
            support.append(row)
            return None
        if not np.isfinite(step):
            return np.append(-fall, 1.0)
        weights = np.delete(weights - step * fall, place)
        short -= step * rate
        support.drop(place)


def in_fewer_dimensions(S: Matrix) -> Matrix:
    """Rows with the same products among one another, in as many dimensions as there are rows, if these are fewer."""
    if S.shape[0] >= S.shape[1]:
        return S
    values, vectors = np.linalg.eigh(dense(S @ S.T))
    return vectors * np.sqrt(np.maximum(values, 0.0))


def climb(support: Support | LongSupport, until: float = inf) -> NDArray | None:
    """Take in rows until none of those looked at falls short, as far as can be seen; or, if rows add up to zero, the
    weights of the support with which they do."""
    best, stuck = 0.0, 0
    while True:
        check_time(until)
        weights = support.weights()
        while len(weights) > 1 + support.free and weights.min() <= 0:  # by rounding only
            support.drop(int(np.argmin(weights)))
            weights = support.weights()
        total = float(weights.sum())  # ‖w‖², which grows
        stuck = 0 if total > best else stuck + 1
        best = max(best, total)
        short = support.shortfalls()
        row = int(np.argmax(short))
        floor = support.floor()
        if not floor < short[row] or floor > _BLIND or stuck > 10 or row in support.active:
            return None
        dependence = enter(support, row, float(short[row]))
        if dependence is not None:
            support.active.append(row)
            return dependence


def in_floats(cloud: Cloud, until: float = inf) -> Found:
    """The widest separator as far as floats can tell."""
    first = cloud.first()
    room = max(50, _ENTRIES // cloud.A.shape[1])
    work = np.unique(np.concatenate([first, cloud.likely(min(max(_TAKEN, 2 * cloud.A.shape[1]), room))]))
    support = Support(cloud.rows(work), cloud.free)
    for i in np.searchsorted(work, first).tolist():
        if not support.approach(i)[0] > 0:  # the same point in both classes, or a row too short to have a square
            return Found([], first, [1] * len(first), False)
        support.append(i)
    longest = 0.0
    while True:
        dependence = climb(support, until)
        rows = work[support.active]
        if dependence is not None:
            return Found([], rows.tolist(), shares(dependence, cloud.y[rows], cloud.free), False)
        w, weights = support.solution()
        short = cloud.shortfalls(w)
        worst = float(short.max())
        short[work] = -np.inf
        missing = np.flatnonzero(short > support.floor())
        if not len(missing) or support.floor() > _BLIND or not weights.sum() > longest:
            return Found(cloud.direction(w), rows.tolist(), shares(weights, cloud.y[rows], cloud.free), worst < 1)
        longest = weights.sum()
        number = min(max(_TAKEN, len(rows)), room)
        if len(missing) > number:
            missing = missing[np.argpartition(-short[missing], number)[:number]]
        nearly = support.shortfalls()  # of the rows looked at so far, keep the lowest
        nearly[support.active] = -np.inf
        others = np.argsort(-nearly)[: min(number, len(work) - len(rows))]
        support.V = np.vstack([support.V[support.active], cloud.rows(missing), support.V[others]])
        support.active = list(range(len(rows)))
        work = np.concatenate([rows, missing, work[others]])


def in_integers(cloud: Cloud, start: Found, guard: int, most: int) -> Found | None:
    """The widest separator, from a support that floats found, with `guard` bits more than the data have; None if its
    support has more than `most` rows, for the cost is their cube."""
    A, y, free = cloud.A, cloud.y, cloud.free
    if len(start.rows) > most:
        return None
    unit = lowest_exponent(A if isinstance(A, np.ndarray) else A.data)
    order = np.argsort([-weight for weight in start.weights])
    work = [start.rows[i] for i in order]
    if free and len(set(y[work])) < 2:
        work = [*cloud.first(), *work]
    work = list(dict.fromkeys(work))
    V = integers(dense(A[np.array(work)]), unit)
    support = LongSupport(V, y[work], free, guard)
    support.begin(range(len(work)))
    while True:
        dependence = climb(support)
        rows = [work[i] for i in support.active]
        if len(rows) > most:
            return None
        if dependence is not None:
            return Found([], rows, shares(dependence, y[rows], free), False)
        weights = support.long_weights()
        w = weights @ support.V[support.active]
        # R/γ is about the root of the sum of the weights: w of this many bits more is as good as all of it.
        reach = int(weights.sum()).bit_length() - (support.bits - 2 * support.size)
        bits = max(53, reach // 2 + len(w).bit_length() + 44)
        cut = max(0, max(int(abs(value)).bit_length() for value in w) - bits)
        w = [int(value) >> cut for value in w]
        found, exponent = products(A, w)  # in units of 2^unit, as V: 2^(exponent − unit), and w lacks 2^cut
        short = 1 - np.array([_ratio(value, support.bits - cut - exponent + unit) for value in found])
        if free:
            short -= y * _ratio(support.intercept(), support.bits)
        short[work] = -np.inf
        missing = np.flatnonzero(short > _CLOSE)
        if not len(missing):
            kept = max(0, max(int(value).bit_length() for value in weights) - 2 * bits)
            return Found(w, rows, shares([int(value) >> kept for value in weights], y[rows], free), True)
        missing = missing[np.argsort(-short[missing])[:20]]
        support.V = np.vstack([support.V, integers(dense(A[missing]), unit)])
        work += missing.tolist()
        support.y = y[work]


def shares(weights: NDArray | Sequence[int], y: NDArray, free: bool) -> list[int]:
    """Integers nearly in these proportions, none negative; of both classes the same sum, if the intercept is free."""
    if isinstance(weights, np.ndarray):
        top = weights.max()
        weights = np.ldexp(np.maximum(weights, 0.0), 62 - int(np.frexp(top)[1])) if 0 < top < np.inf else np.ones(len(y))
        weights = np.rint(weights)
    whole = [max(0, int(weight)) for weight in weights]
    if free:
        of = {s: [i for i in range(len(y)) if y[i] == s] for s in (1.0, -1.0)}
        sums = {s: sum(whole[i] for i in of[s]) for s in of}
        lower = min(sums, key=lambda s: sums[s])
        if of[lower]:
            largest = max(of[lower], key=lambda i: whole[i])
            whole[largest] += abs(sums[1.0] - sums[-1.0])
    common = gcd(*whole) or 1
    return [weight // common for weight in whole]


def integers(values: NDArray, unit: int) -> NDArray:
    """values / 2^unit, as Python's integers."""
    m, e = mantissas(values)
    shift = np.where(m != 0, e - unit, 0)
    return m.astype(object) << shift.astype(object)


def _unit(v: NDArray) -> NDArray:
    largest = np.abs(v).max()
    return v / largest if 0 < largest < np.inf else v


def _ratio(value: int, bits: int) -> float:
    """value / 2^bits as a float; what is too large is infinite."""
    extra = max(0, int(value).bit_length() - 64)
    try:
        return ldexp(float(int(value) >> extra), extra - bits)
    except OverflowError:
        return inf if value > 0 else -inf
