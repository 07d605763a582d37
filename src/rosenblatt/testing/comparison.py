"""A perceptron that somebody else wrote, beside the reference: the first update that differs, and the likely reason.

Most wrong perceptrons are wrong in one of a few ways. Each of these mistakes is a small change to the right algorithm, so
it can be made on purpose: run the algorithm with the mistake, and if the result is theirs, number for number, that is most
likely what happened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import combinations
from typing import NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from rosenblatt.errors import InvalidData
from rosenblatt.exact.reading import COUNT, MatrixLike, numbers
from rosenblatt.testing import reference
from rosenblatt.testing.mistakes import Change, Mistake, Path, Variant, mistakes, right_variant, run
from rosenblatt.theory.signed import two_valued

Student: TypeAlias = Callable[[NDArray, NDArray, int], object]
Explanations: TypeAlias = tuple[tuple[Mistake, ...], ...]

_MOST_VISITS = 5_000  # up to which pairs of mistakes are tried: some 300 runs
_MOST_SHOWN = 3  # explanations in a printed comparison
_PRECISION = 1e-9  # what rounding may change, in parts of the largest weight


class Output(NamedTuple):
    """What a perceptron shows of its run: its updates, or its result, or both."""

    rows: list[int] | None = None
    changes: NDArray | None = None
    result: NDArray | None = None

    @property
    def values(self) -> NDArray:
        """All weights that it shows, in one line."""
        return np.concatenate([part.ravel() for part in (self.changes, self.result) if part is not None])


@dataclass(frozen=True, eq=False)
class Comparison:
    """What `compare` found.

    It is true if the two agree, and prints as a few sentences.

    Attributes
    ----------
    same : bool
        Whether all that the student's function shows is equal to the reference.
    explanations : tuple of tuples of Mistake
        Each is one mistake, or two, and perhaps another rate, with which the reference gives exactly what theirs gives; the
        most likely comes first.
        Empty if they agree, or if no known mistake explains the difference.
    update : int or None
        The number of the first update that differs, from 1; None if there is none or if it is not known.
    row, epoch : int or None
        The row (from 0) and the epoch (from 1) of that update in the reference; None if the reference makes no such update.
    unseen : tuple of Mistake
        The mistakes that these data could not show: with each of them the result would be the same.

    Examples
    --------
    >>> def theirs(X, y, epochs):  # it never learns an intercept
    ...     w = 0 * X[0]
    ...     for _ in range(epochs):
    ...         for x, label in zip(X, y):
    ...             if label * (w @ x) <= 0:
    ...                 w = w + label * x
    ...     return w, 0.0
    >>> found = compare(theirs, [[-2, -1], [1, 0], [-1, 1], [2, 1]], [-1, 1, -1, 1])
    >>> found.same, found.reason, found.row
    (False, 'intercept', 0)
    """

    same: bool
    explanations: Explanations = ()
    update: int | None = None
    row: int | None = None
    epoch: int | None = None
    unseen: tuple[Mistake, ...] = ()
    _story: tuple[str, ...] = field(default=(), repr=False)

    @property
    def reason(self) -> str | None:
        """The kinds of the likely mistakes, as "tie" or "tie and order"; None if there is none, or none is known."""
        kinds = dict.fromkeys(mistake.kind for mistake in self.explanations[0]) if self.explanations else {}
        return " and ".join(kinds) or None

    def __bool__(self) -> bool:
        return self.same

    def __str__(self) -> str:
        return "\n".join(self._story)


def compare(
    student: Student, X: MatrixLike, y: ArrayLike, *, epochs: int = 10, intercept: bool = True, average: bool = False
) -> Comparison:
    """Run a student's perceptron beside the reference, and name the first update that differs and the likely reason.

    The reference is `rosenblatt.testing.reference.learn`: the weights and the intercept start at 0, every epoch visits the
    rows in their order, and wherever y·(⟨w, x⟩ + b) ≤ 0 it adds y·x to w and y to b.

    Use small integers for X, on which floating point is exact. On other numbers weights may differ by rounding, and a
    margin that is 0 in one program may not be 0 in another.

    Parameters
    ----------
    student : callable
        Called once as ``student(X, y, epochs)``, with copies. It either returns its final weights: an array of all features
        with the intercept last, or a pair (w, b), or just w; or it yields, or returns as a list, (row, w) or (row, w, b)
        after each update, rows counted from 0. Then the first update that differs is seen, not inferred. A generator may
        also return its final weights. Yielding after every row is fine too: what did not change is passed over.
    X : (rows, features) array
        The rows.
    y : (rows,) array
        Two labels, of which the second is the positive one. The student's function gets them as they are: −1 and +1, or 0
        and 1 if turning them into −1 and +1 is part of the exercise.
    epochs : int, default=10
        How often all rows are visited.
    intercept : bool, default=True
        Whether there is one.
    average : bool, default=False
        Whether the final weights are to be the mean of the weights after each visit, of all rows in all epochs.

    Returns
    -------
    Comparison
        True if they agree; `print` it to read what differs. Two mistakes at once are looked for if there are at most 5,000
        visits of rows.

    Raises
    ------
    InvalidData
        If the answer of the function is none of the above.

    Examples
    --------
    >>> from rosenblatt.testing import compare
    >>> def theirs(X, y, epochs):
    ...     w, b = 0 * X[0], 0.0
    ...     for _ in range(epochs):
    ...         for i, (x, label) in enumerate(zip(X, y)):
    ...             prediction = 1 if w @ x + b > 0 else -1
    ...             if prediction != label:
    ...                 w, b = w + label * x, b + label
    ...                 yield i, w, b
    >>> X, y = [[-2, -1], [1, 0], [-1, 1], [2, 1]], [-1, 1, -1, 1]
    >>> found = compare(theirs, X, y)
    >>> bool(found), found.reason, found.update, found.row
    (False, 'tie', 1, 0)
    """
    epochs = int(COUNT.check("epochs", epochs))
    table = numbers(X)
    rows = table.toarray() if sp.issparse(table) else table
    signs = two_valued(y, len(rows))[0]
    right = right_variant(rows, signs, epochs, intercept=intercept, average=average)
    expected = _reference(rows, signs, epochs, intercept)
    theirs = read_answer(student(rows.copy(), np.array(y), epochs), rows.shape[1], most=4 * len(right.visits) + 4)
    if average and theirs.result is None:
        hint = "a generator can return it after its last yield"
        raise InvalidData("the function shows updates, and no average of the weights for average=True", hint=hint)
    known = list(mistakes(right, signs, intercept=intercept, average=average))
    truth = _output(right, expected)
    if _ratio(theirs, truth) == 1:
        unseen = [mistake for mistake, change in known if _ratio(theirs, _output(change(right))) == 1]
        ignored = {"report"} if theirs.result is not None else {"report", "average"}
        unseen = [mistake for mistake in unseen if mistake.kind not in ignored]
        return Comparison(True, unseen=tuple(unseen), _story=tuple(_agreement(theirs, expected, unseen)))
    explanations, shown = _explain(theirs, right, known)
    place = _first_difference(theirs if theirs.rows is not None else shown, expected)
    story = (*_difference(theirs, right, expected, place), *_reasons(explanations, theirs, right))
    if place is None:
        return Comparison(False, explanations, _story=story)
    return Comparison(False, explanations, place.update, place.row, place.epoch, _story=story)


def read_answer(answer: object, features: int, most: int) -> Output:
    """Return what a student's function showed, with every vector of weights as (features + 1,), the intercept last; at most
    so many updates of a generator that may not end."""
    if answer is None:
        raise _unreadable("it returned None")
    if isinstance(answer, Iterator):
        return _read_generator(answer, features, most)
    if isinstance(answer, list) and all(isinstance(update, tuple) for update in answer):
        updates = [_read_update(update, features) for update in answer]
        arrays = {id(update[1]) for update in answer if isinstance(update[1], np.ndarray)}
        if len(answer) > 1 and len(arrays) == 1:
            hint = "append w.copy(), or write w = w + y * x, which makes a new array"
            raise InvalidData("all updates of the list hold the same array, which shows only its last values", hint=hint)
        return _changes(updates, features)
    if isinstance(answer, tuple) and len(answer) == 2 and not np.isscalar(answer[0]):
        return Output(result=_vector(answer[0], features, answer[1]))
    return Output(result=_vector(answer, features))


def _read_generator(answer: Iterator[object], features: int, most: int) -> Output:
    """Return the updates that are yielded, each read before the next one changes its array, and the weights returned."""
    updates: list[tuple[int, NDArray]] = []
    while len(updates) < most:
        try:
            updates.append(_read_update(next(answer), features))
        except StopIteration as end:
            result = None if end.value is None else read_answer(end.value, features, most).result
            return _changes(updates, features)._replace(result=result)
    return _changes(updates, features)


def _read_update(update: object, features: int) -> tuple[int, NDArray]:
    if not isinstance(update, tuple | list) or len(update) not in (2, 3) or not isinstance(update[0], int | np.integer):
        raise _unreadable(f"{update!r} is no update")
    return int(update[0]), _vector(update[1], features, *update[2:])


def _changes(updates: list[tuple[int, NDArray]], features: int) -> Output:
    """Return the updates that changed the weights."""
    rows: list[int] = []
    changes = [np.zeros(features + 1)]
    for row, weights in updates:
        if not np.array_equal(weights, changes[-1]):
            rows.append(row)
            changes.append(weights)
    return Output(rows, np.array(changes[1:]).reshape(-1, features + 1))


def _vector(w: object, features: int, b: object = None) -> NDArray:
    try:
        weights = np.array(w, dtype=np.float64).ravel()
        weights = weights if b is None else np.append(weights, np.array(b, dtype=np.float64).ravel())
    except (TypeError, ValueError, OverflowError):
        raise _unreadable(f"got {w!r}") from None
    if len(weights) not in (features, features + 1) or not np.isfinite(weights).all():
        raise _unreadable(f"got {weights.tolist()}, where there are {features} features")
    return weights if len(weights) > features else np.append(weights, 0.0)


def _unreadable(problem: str) -> InvalidData:
    return InvalidData(
        f"the weights of the function cannot be read: {problem}",
        hint="it may return w with the intercept last, or (w, b), or yield (row, w) or (row, w, b) after each update",
    )


def _reference(X: NDArray, signs: NDArray, epochs: int, intercept: bool) -> Path:
    """Return the path of the reference implementation."""
    constant, visits = 1.0 if intercept else 0.0, [range(len(X))] * epochs
    labels = (signs > 0).astype(int).tolist()
    found = reference.learn(X, labels, 2, visits, multiclass="binary", constant=constant)
    path = Path([found.start[0], *(weights[0] for weights in found.path)], [], [], len(X))
    for visit, (before, after) in enumerate(zip(path.weights, path.weights[1:], strict=False)):
        if not np.array_equal(before, after):
            path.rows.append(visit % len(X))
            path.changes.append(after)
    return path


def _output(variant: Variant, path: Path | None = None) -> Output:
    """Return all that a perceptron would show."""
    path = run(variant) if path is None else path
    changes = np.array(path.changes).reshape(-1, len(variant.start))
    rows = [row + variant.first_row for row in path.rows]
    return Output(rows, variant.report(changes), variant.report(variant.result(path)))


def _ratio(theirs: Output, ours: Output) -> float | None:
    """Return the c > 0 with which all that they show is c times ours; 1 if they are equal, None if there is no such c."""
    if theirs.rows is not None and theirs.rows != ours.rows:
        return None
    a = theirs.values
    b = ours._replace(
        changes=None if theirs.changes is None else ours.changes, result=None if theirs.result is None else ours.result
    ).values
    size = float(b @ b)
    slack = _PRECISION * max(np.abs(a).max(initial=0.0), np.abs(b).max(initial=0.0))
    if np.allclose(a, b, rtol=0, atol=slack):
        return 1.0
    ratio = float(a @ b) / size if size else 0.0
    return ratio if ratio > 0 and np.allclose(a, ratio * b, rtol=0, atol=slack) else None


def _explain(theirs: Output, right: Variant, known: list[tuple[Mistake, Change]]) -> tuple[Explanations, Output | None]:
    """Return the fewest mistakes that give what they show, and all that the first of them would show."""
    known = [*known, *_own_start(theirs, right), *_rounded_rates(right)]
    pairs = combinations(known, 2) if len(right.visits) <= _MOST_VISITS else ()
    for group in ([(), *((each,) for each in [*known, _more_epochs(right)])], pairs):
        exact, scaled = [], []
        for chosen in group:
            variant = right
            for _, change in chosen:
                variant = change(variant)
            shown = _output(variant)
            ratio = _ratio(theirs, shown)
            named = tuple(mistake for mistake, _ in chosen)
            if ratio == 1:
                exact.append((named, shown))
            elif ratio is not None:
                scaled.append(((*named, _rate(ratio)), shown))
        if found := exact or sorted(scaled, key=lambda pair: len(pair[0])):
            fewest = [pair for pair in found if len(pair[0]) == len(found[0][0])]
            return tuple(named for named, _ in fewest), fewest[0][1]
    other = _other_order(theirs, right)
    return ((other,),) if other else (), None


def _rate(ratio: float) -> Mistake:
    doubled = " With labels −1 and +1, (y − prediction)·x is 2y·x." if ratio == 2 else ""
    scaled = f"From zero weights, that makes all weights {ratio:g} times as large and changes no prediction."
    return Mistake("rate", f"the rate is {ratio:g} instead of 1. {scaled}{doubled}")


def _rounded_rates(right: Variant) -> Iterator[tuple[Mistake, Change]]:
    """Yield the usual rates that floating point rounds, where other rows are learned from than with the rate 1."""
    rows = run(right).rows
    for rate in (0.1, 0.01, 0.001):
        change = _with_rate(rate)
        if run(change(right)).rows != rows:
            why = "a margin that is 0 with the rate 1 is not always 0 with it"
            yield Mistake("rate", f"the rate is {rate:g} instead of 1. Floating point rounds it: {why}."), change


def _with_rate(rate: float) -> Change:
    return lambda v: v._replace(moves=rate * v.moves)


def _more_epochs(right: Variant) -> tuple[Mistake, Change]:
    """Return that training goes on until nothing is wrong, where the epochs that were asked for end before."""
    sentence = f"training goes on until an epoch has no mistake; it should end after {right.epochs}."
    return Mistake("epochs", sentence), lambda v: v._replace(epochs=10 * v.epochs, stops_early=True)


def _own_start(theirs: Output, right: Variant) -> Iterator[tuple[Mistake, Change]]:
    """Yield the start from which their first update leads to the weights that they show."""
    if theirs.changes is None or not theirs.rows or not 0 <= theirs.rows[0] < len(right.moves):
        return
    start = theirs.changes[0] - right.moves[theirs.rows[0]]
    if start.any():
        yield (
            Mistake("start", f"the weights start at {_text(start)}; they must start at 0."),
            lambda v: v._replace(start=start),
        )


def _other_order(theirs: Output, right: Variant) -> Mistake | None:
    """Return that the order differs, if every update is right by itself: from a row that the weights have wrong, by y·x."""
    if theirs.changes is None or not theirs.rows or not all(0 <= row < len(right.moves) for row in theirs.rows):
        return None
    before = np.vstack([right.start, theirs.changes[:-1]])
    margins = np.einsum("ij,ij->i", before, right.tested[theirs.rows])
    if (margins > 0).any() or not np.allclose(before + right.moves[theirs.rows], theirs.changes):
        return None
    return Mistake(
        "order", "every update is right by itself, but the rows are visited in another order, or not all of them."
    )


class Place(NamedTuple):
    """Where two runs part: the number of the update, and its row and epoch in the reference if this makes one there."""

    update: int
    row: int | None
    epoch: int | None


def _first_difference(theirs: Output | None, expected: Path) -> Place | None:
    """Return the first update that differs; None if all agree, or if theirs are not known."""
    if theirs is None or theirs.rows is None or theirs.changes is None:
        return None
    slack = _PRECISION * np.abs(theirs.changes).max(initial=1.0)
    pairs = zip(theirs.rows, theirs.changes, expected.rows, expected.changes, strict=False)
    agree = [i == j and np.allclose(w, v, rtol=0, atol=slack) for i, w, j, v in pairs]
    place = agree.index(False) if False in agree else len(agree)
    if place == len(theirs.rows) == len(expected.rows):
        return None
    if place == len(expected.rows):
        return Place(place + 1, None, None)
    visit = next(v for v, w in enumerate(expected.weights) if w is expected.changes[place])
    return Place(place + 1, expected.rows[place], (visit - 1) // expected.epoch + 1)


def _difference(theirs: Output, right: Variant, expected: Path, place: Place | None) -> Iterator[str]:
    """Say what differs, and where it begins."""
    if theirs.rows is None or place is None:
        updates = "The updates are not shown" if theirs.rows is None else f"All {len(theirs.rows)} updates agree"
        yield f"{updates}; the weights that are returned differ."
        yield f"Expected {_text(right.result(expected))}; got {_text(theirs.result)}."
        if place is not None and place.row is not None:
            where = f"update {place.update}, from row {place.row} in epoch {place.epoch}, is the first to differ"
            yield f"If the reason below is right, {where}."
        return
    k = place.update - 1
    yield f"Update {place.update} is the first to differ" + (f", after {k} that agree." if k else ".")
    if place.row is None:
        yield f"The reference makes {k} updates and then has no row left to learn from, or no epoch."
    else:
        before = expected.changes[k - 1] if k else right.start
        margin = f"{before @ right.tested[place.row]:g}".replace("-", "−")
        yield (
            f"The reference learns from row {place.row} in epoch {place.epoch}, whose margin is {margin}, "
            f"and has {_text(expected.changes[k])}."
        )
    if k < len(theirs.rows) and theirs.changes is not None:
        yield f"Theirs learns from row {theirs.rows[k]}, and has {_text(theirs.changes[k])}."
    else:
        yield f"Theirs makes no update after number {k}." if k else "Theirs makes no update."


def _reasons(explanations: Explanations, theirs: Output, right: Variant) -> Iterator[str]:
    """Say what would explain it."""
    if not explanations:
        pairs = ", nor do two of them together" if len(right.visits) <= _MOST_VISITS else ""
        yield f"No known mistake explains it{pairs}."
        if theirs.result is not None and (right.tested @ theirs.result > 0).all():
            yield "The weights have every row on its right side: the order of the rows may be another, or the start."
        if theirs.rows is None:
            yield "To see where it begins, let the function yield (row, w, b) after each update."
        return
    for number, explanation in enumerate(explanations[:_MOST_SHOWN]):
        words = " ".join(f"({mistake.kind}) {mistake.sentence}" for mistake in explanation)
        yield f"{'It could also be' if number else 'Likely reason'}: {words}"
    if len(explanations) > 1:
        yield "Other data would tell these apart."


def _agreement(theirs: Output, expected: Path, unseen: list[Mistake]) -> Iterator[str]:
    shown = [f"all {len(expected.rows)} updates"] * (theirs.rows is not None)
    shown += ["the weights that are returned"] * (theirs.result is not None)
    yield f"{' and '.join(shown).capitalize()} agree with the reference."
    if unseen:
        yield "These data could not show the following mistakes:"
        yield from (f"- ({mistake.kind}) {mistake.sentence}" for mistake in unseen)


def _text(weights: NDArray | None) -> str:
    """Return weights as "w = (1, −2), b = 1"."""
    *w, b = [f"{value:g}".replace("-", "−") for value in ([] if weights is None else weights)]
    many = [*w[:6], "…"] if len(w) > 7 else w
    return f"w = ({', '.join(many)}), b = {b}"
