"""Iterative parameter mixing: equal to its naive reference, within the bound of its theorem, and what is lost if shards are
mixed only once, after separate runs."""

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import permutations, product
from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from rosenblatt import Perceptron, rules
from rosenblatt.engine.mixing import LocalShards, MixedEpoch, MixingTrainer, ShardReport, add_changes
from rosenblatt.engine.model import LinearModel, fresh
from rosenblatt.engine.problems import Binary, Joint, OneVsRest
from rosenblatt.engine.rows import Examples, as_rows, lengths
from rosenblatt.engine.train import Limits, Trainer, pending_for, train
from rosenblatt.engine.visits import Visits
from rosenblatt.testing import reference
from rosenblatt.testing.strategies import constants, margins, samples, separated
from rosenblatt.theory.geometry import gamma_seen

PROBLEMS = {"binary": Binary, "joint": Joint, "ovr": OneVsRest}
PERCEPTRON = rules.Perceptron(0.0, 1.0)


class Setting(NamedTuple):
    """A model that has seen nothing, and what learns rows into a copy of it."""

    model: LinearModel
    learn_part: Callable
    visits: Visits

    def trainer(self, shards, mixing="uniform"):
        return MixingTrainer(self.model, shards, self.visits, mixing)


def setting(X, labels, classes=2, multiclass="binary", rule=PERCEPTRON, constant=1.0, keep="average") -> Setting:
    rows = as_rows(X)
    examples = Examples(rows, np.asarray(labels, np.int64), None, constant, lengths(rows, constant))
    visits = Visits(np.arange(len(labels)), "cyclic", np.random.default_rng(0))

    def learn_part(start, order):
        model = start.copy()
        pending = pending_for(rows, model.weights, model.problem)
        trainer = Trainer(examples, model.weights, model.problem, rule, visits, pending=pending)
        model.add_pending = trainer.add_pending
        done, _ = trainer.epoch(order)
        change = model.change_since(start)
        return ShardReport(len(order), done.mistakes, done.updates, 0.0, change.nbytes, done.updates == 0), change

    return Setting(fresh(PROBLEMS[multiclass](classes), rows, X.shape[1], constant, keep), learn_part, visits)


class FixedShards(LocalShards):
    """Shards that have the same rows, in the same order, in every epoch."""

    def __init__(self, learn_part: Callable, parts: Sequence[Sequence[int]]):
        super().__init__(learn_part, len(parts))
        self.parts = [np.array(part, np.int64) for part in parts]

    def learn(self, model, number, order):
        done = list(self._run(model, self.parts))
        self.changes = [change for _, change in done]
        return [report for report, _ in done]


class ChangedShards(FixedShards):
    """The same, with each weight as the mean over the shards that have changed it."""

    def mix(self, shares):
        return add_changes([change.counted() for change in self.changes]).mean()


def weights_and_sum(model):
    """(columns, features + 1) arrays as the reference has them: the last weights, and the sum over all visits."""
    w, drift, _, clock = model.weights
    return (np.atleast_2d(array.T) for array in (w, clock[0] * w.astype(np.float64) - drift))


def in_turn(mixtures):
    """The shares of each epoch, whatever the shards did in it."""
    following = iter(mixtures)
    return lambda updates: next(following)


@st.composite
def cuts(draw, rows: int, most: int = 5) -> list[list[int]]:
    """Draw shards of all rows: uneven, some of a single row, in any order."""
    order = draw(st.permutations(range(rows)))
    shards = draw(st.integers(1, min(most, rows)))
    ends = sorted(draw(st.sets(st.integers(1, rows - 1), min_size=shards - 1, max_size=shards - 1))) if rows > 1 else []
    return [part.tolist() for part in np.split(np.array(order), ends)]


@st.composite
def mixtures(draw, shards: int, parts: int = 16) -> list[float]:
    """Draw shares that are multiples of 1/16, on which arithmetic is exact; some of them may be 0."""
    inner = sorted(draw(st.lists(st.integers(0, parts), min_size=shards - 1, max_size=shards - 1)))
    return (np.diff([0, *inner, parts]) / parts).tolist()


# The engine is the reference


@pytest.mark.parametrize("multiclass", PROBLEMS)
@given(
    data=st.data(), margin=margins(), constant=constants(), dense=st.booleans(), dtype=st.sampled_from(["f4", "f8"])
)  # fmt: skip
def test_mixing_is_the_reference_to_the_last_bit(multiclass, data, margin, constant, dense, dtype):
    """On integers and shares in 16ths nothing is rounded: neither weights nor their sums over all visits."""
    epochs = 2 if dtype == "f4" else 4
    sample = data.draw(samples(classes=st.just(2) if multiclass == "binary" else None))
    parts = data.draw(cuts(len(sample.labels)))
    drawn = [data.draw(mixtures(len(parts))) for _ in range(epochs)]
    naive = reference.learn_in_shards(
        sample.X, sample.labels, sample.classes, [parts] * epochs, in_turn(drawn),
        multiclass=multiclass, step=reference.perceptron(margin), constant=constant,
    )  # fmt: skip
    X = sample.X.astype(dtype) if dense else sp.csr_array(sample.X.astype(dtype))
    rule = rules.Perceptron(margin, 1.0)
    model, learn_part, _ = setting(X, sample.labels, sample.classes, multiclass, rule, constant)
    shards = FixedShards(learn_part, parts)
    for number, mixture in enumerate(drawn):
        reports = shards.learn(model, number + 1, np.arange(0))
        model.add_change(shards.mix(mixture))
        assert [report.updates for report in reports] == naive.updates[number]
        assert [report.mistakes for report in reports] == naive.mistakes[number]
        assert MixedEpoch(mixture, reports).weighted_updates == np.dot(mixture, naive.updates[number])
    last, total = weights_and_sum(model)
    np.testing.assert_array_equal(last, naive.last)
    np.testing.assert_array_equal(total, naive.total)
    assert model.weights.w.dtype == dtype
    assert model.seen == len(naive.path)
    assert model.updates == sum(map(sum, naive.updates))


@pytest.mark.parametrize("multiclass", PROBLEMS)
@given(data=st.data(), dense=st.booleans())
def test_the_mean_over_shards_that_changed_a_weight_is_the_reference(multiclass, data, dense):
    """Two shards: a weight has been changed by both, by one or by none, and nothing is rounded."""
    sample = data.draw(samples(classes=st.just(2) if multiclass == "binary" else None))
    parts = data.draw(cuts(len(sample.labels), 2))
    naive = reference.learn_in_shards(
        sample.X, sample.labels, sample.classes, [parts] * 4, multiclass=multiclass, changed=True
    )
    X = sample.X if dense else sp.csr_array(sample.X)
    found = setting(X, sample.labels, sample.classes, multiclass)
    trainer = found.trainer(ChangedShards(found.learn_part, parts))
    for updates in naive.updates:
        done, _ = trainer.epoch(np.arange(0))
        assert done.updates == sum(updates)
    last, total = weights_and_sum(found.model)
    np.testing.assert_array_equal(last, naive.last)
    np.testing.assert_array_equal(total, naive.total)


def pa1(aggressiveness):
    """The step of PA-I, as the reference takes it."""
    return lambda m, length, k, positive: min(aggressiveness, max(0.0, 1.0 - m) / length)


@pytest.mark.parametrize("mixing", ["uniform", "mistakes"])
@pytest.mark.parametrize("multiclass", PROBLEMS)
@pytest.mark.parametrize(
    ("rule", "step"),
    [(rules.Perceptron(0.5, 0.1), reference.perceptron(0.5, lambda k: 0.1)), (rules.PA1(0.3), pa1(0.3))],
    ids=["perceptron", "PA-I"],
)
@pytest.mark.parametrize("shards", [1, 3, 7])
def test_mixing_of_drawn_rows_is_the_reference_up_to_rounding(mixing, multiclass, rule, step, shards):
    rng = np.random.default_rng(shards)
    classes = 2 if multiclass == "binary" else 4
    X, labels = rng.standard_normal((40, 6)), rng.integers(0, classes, 40)
    by_updates = lambda updates: np.divide(updates, sum(updates))  # noqa: E731  a formula
    shares = {"mistakes": (by_updates,), "uniform": ()}[mixing]
    parts = np.array_split(np.arange(40), shards)
    naive = reference.learn_in_shards(X, labels, classes, [parts] * 6, *shares, multiclass=multiclass, step=step)
    found = setting(X, labels, classes, multiclass, rule)
    trainer = found.trainer(LocalShards(found.learn_part, shards), mixing)
    history, reason = train(trainer, Limits(epochs=6))
    last, total = weights_and_sum(found.model)
    np.testing.assert_allclose(last, naive.last, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(total / found.model.seen, naive.total / len(naive.path), rtol=1e-12, atol=1e-12)
    assert reason == "max_iter"
    assert [(epoch.updates, epoch.mistakes) for epoch in history] == [
        (sum(updates), sum(mistakes)) for updates, mistakes in zip(naive.updates, naive.mistakes, strict=True)
    ]
    assert sum(epoch.weighted_updates for epoch in trainer.epochs) == pytest.approx(naive.weighted_updates)


@given(samples(classes=st.just(2)), st.integers(1, 5))
def test_one_shard_is_ordinary_training(sample, epochs):
    found = setting(sample.X, sample.labels)
    train(found.trainer(LocalShards(found.learn_part, 1)), Limits(epochs=epochs))
    clf = Perceptron(keep="average", order="cyclic", tol=None, max_iter=epochs).fit(sample.X, sample.labels)
    for mixed, ordinary in zip(found.model.weights, clf.weights_, strict=True):
        np.testing.assert_array_equal(mixed, ordinary)


def test_weights_of_single_precision_are_rounded_once_and_their_average_is_that_of_the_rounded_ones():
    """Three shards of one row each from w = 0 make w = (x₁ + x₂ + x₃)/3, which float32 rounds. The next epoch visits no
    mistake, so that the sum over all six visits is x₁ + x₂ + x₃ + 3w, of the w that there is."""
    X = np.array([[1.0, 0.0], [0.0, 1.0], [3.0, 3.0]], np.float32)
    found = setting(X, [1, 1, 1], constant=0.0)
    shards = LocalShards(found.learn_part, 3)
    train(found.trainer(shards), Limits(epochs=2))
    last, total = weights_and_sum(found.model)
    assert last[0, :2].tolist() == [np.float32(4 / 3)] * 2
    np.testing.assert_allclose(total[0, :2], 4 + 3 * np.float64(np.float32(4 / 3)), rtol=1e-15)


# The theorem: Σ Σ μk ≤ R²/γ², for any shards and any mixtures


@st.composite
def separated_in_shards(draw):
    """Draw two classes that can be separated, and shards of them; or one shard for each class."""
    sample = draw(separated())
    if draw(st.integers(0, 3)):
        return sample, draw(cuts(len(sample.labels)))
    return sample, [np.flatnonzero(sample.labels == label).tolist() for label in (0, 1)]


def proved_bound(sample, margin=0.0, rate=1.0):
    """(R² + 2δ/η)/γ², with the widest margin that is proved for these rows rather than the one that they were drawn by."""
    certificate = gamma_seen(sample.X, sample.labels, sample.constant)
    assert certificate.verify(sample.X, sample.labels)
    return (sample.radius**2 + 2 * margin / rate) / certificate.lower**2


@given(separated_in_shards(), st.data(), st.sampled_from([(0.0, 1.0), (1.0, 0.5), (5.0, 4.0)]))
def test_weighted_updates_stay_within_the_bound_for_any_mixture(drawn, data, parameters):
    """The mixture of an epoch is drawn after it, in any way: here also such that the worst shards get all."""
    sample, parts = drawn
    margin, rate = parameters
    bound = proved_bound(sample, margin, rate)
    model, learn_part, _ = setting(sample.X, sample.labels, rule=rules.Perceptron(margin, rate), constant=sample.constant)
    shards, weighted = FixedShards(learn_part, parts), 0.0
    for number in range(1, 31):
        reports = shards.learn(model, number, np.arange(0))
        if all(report.converged for report in reports):
            break
        mixture = data.draw(mixtures(len(parts), 7))
        if data.draw(st.booleans()):  # the share of the shard that erred most is the largest
            ranks = np.argsort(np.argsort([report.updates for report in reports], kind="stable"), kind="stable")
            mixture = np.sort(mixture)[ranks].tolist()
        model.add_change(shards.mix(mixture))
        weighted += MixedEpoch(mixture, reports).weighted_updates
        assert weighted <= bound * (1 + 1e-9)


@pytest.mark.parametrize("mixing", ["uniform", "mistakes"])
@given(separated_in_shards(), st.sampled_from([(0.0, 1.0), (3.0, 0.5)]))
def test_mixing_converges_within_the_epochs_that_the_bound_allows(mixing, drawn, parameters):
    """An epoch with an update adds at least 1/S to the sum if all shards have the same share, and at least 1 if shares are
    in proportion to updates, as Σk²/Σk ≥ 1."""
    sample, parts = drawn
    bound = proved_bound(sample, *parameters) * (1 + 1e-9)
    found = setting(sample.X, sample.labels, rule=rules.Perceptron(*parameters), constant=sample.constant)
    trainer = found.trainer(FixedShards(found.learn_part, parts), mixing)
    history, reason = train(trainer, Limits(epochs=100_000))
    assert reason == "converged"
    assert sum(epoch.weighted_updates for epoch in trainer.epochs) <= bound
    assert len(history) - 1 <= bound * (len(parts) if mixing == "uniform" else 1)
    signs = np.where(sample.labels == 1, 1, -1)
    padded = np.hstack([sample.X, np.full((len(sample.X), 1), sample.constant)])
    assert (signs * (padded @ found.model.weights.w) > parameters[0]).all(), "what no shard errs on, the mixture separates"


# Mixed once, after separate runs, the weights need not separate anything. Points are signed: one that is to be on the
# negative side stands here as its negative, so that w separates them if all products with it are positive.

Point = tuple[int, ...]


def product_of(w: Sequence[int], point: Point) -> int:
    return sum(a * b for a, b in zip(w, point, strict=True))


def alone(points: Sequence[Point], epochs: int = 100) -> list[int] | None:
    """The weights of a perceptron that has learned these points, in turn; None if it has not converged."""
    w = [0] * len(points[0])
    for _ in range(epochs):
        mistakes = 0
        for point in points:
            if product_of(w, point) <= 0:
                w = [a + b for a, b in zip(w, point, strict=True)]
                mistakes += 1
        if not mistakes:
            return w
    return None


def separating_shares(one: Sequence[int], other: Sequence[int], points: Sequence[Point]) -> bool:
    """Whether some mixture μ·one + (1 − μ)·other with 0 ≤ μ ≤ 1 has positive products with all points."""
    low, high = Fraction(-1), Fraction(2)
    for point in points:
        a, b = product_of(one, point), product_of(other, point)
        if a == b and a <= 0:
            return False
        if a > b:
            low = max(low, Fraction(-b, a - b))
        elif a < b:
            high = min(high, Fraction(-b, a - b))
    return low < high and low < 1 and high > 0


def counterexamples(sizes: tuple[int, int], largest: int, features: int, fails: Callable) -> Iterator:
    """Every two shards of so many different points, with whole numbers up to `largest`, that can be separated together, but
    that fail if each is learned alone: `fails(one, other, points)` looks at what the two come to. Small numbers first."""
    points = sorted(
        product(range(-largest, largest + 1), repeat=features), key=lambda p: (sum(map(abs, p)), [-v for v in p])
    )
    learned = [[(part, w) for part in permutations(points[1:], size) if (w := alone(part)) is not None] for size in sizes]
    for (first, one), (second, other) in product(*learned):
        if fails(one, other, first + second) and alone(first + second) is not None:
            yield first, second


def errs_at_the_end(one, other, points):
    """Whether the uniform mixture has a negative product with a point."""
    return any(product_of(one, point) + product_of(other, point) < 0 for point in points)


def no_mixture_separates(one, other, points):
    return not separating_shares(one, other, points)


def test_the_smallest_counterexample_to_mixing_once_is_two_points():
    """With one point in each shard, and numbers up to 2: a shard that has seen one point knows nothing of the other, and
    the longer point wins. Numbers up to 1 give ties at worst, and one feature gives none."""
    assert not list(counterexamples((1, 1), 9, 1, errs_at_the_end))
    assert not list(counterexamples((1, 1), 1, 2, errs_at_the_end))
    found = list(counterexamples((1, 1), 2, 2, errs_at_the_end))
    assert min(found, key=total_size) == found[0] == (((1, 0),), ((-2, 1),))
    assert mixes_to_a_separator(*found[0])


def test_the_smallest_counterexample_to_every_mixture_is_three_points():
    """In the first example other shares would have helped; here the first point asks for μ > ½ and the third for μ < ½. Two
    points never suffice, as a/‖a‖ + b/‖b‖ separates a and b; nor do three in the plane, of the smallest numbers."""
    assert not list(counterexamples((1, 1), 2, 3, no_mixture_separates))
    assert not list(counterexamples((1, 2), 1, 2, no_mixture_separates))
    found = list(counterexamples((1, 2), 1, 3, no_mixture_separates))
    assert min(found, key=total_size) == found[0] == (((1, 0, 0),), ((0, 1, 0), (-1, -1, 1)))
    assert (alone(found[0][0]), alone(found[0][1])) == ([1, 0, 0], [-1, 1, 1])
    assert mixes_to_a_separator(*found[0])


def total_size(shards: Sequence[Sequence[Point]]) -> int:
    return sum(abs(number) for shard in shards for point in shard for number in point)


EXAMPLES = {
    "of McDonald, Hall and Mann": (((1, 1, 0), (0, 0, -1)), ((0, 1, 1), (-1, 0, 0)), [1, 1, -1], [-1, 1, 1]),
    "in the plane": (((2, 2), (-1, 2)), ((3, 1), (-2, 0)), [2, 2], [-1, 5]),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_mixing_once_fails_where_mixing_in_every_epoch_separates(name):
    first, second, one, other = EXAMPLES[name]
    assert (alone(first), alone(second)) == (one, other)
    uniform = [a + b for a, b in zip(one, other, strict=True)]
    assert min(product_of(uniform, point) for point in first + second) <= 0
    assert mixes_to_a_separator(first, second)


def test_no_mixture_separates_the_example_of_the_paper_and_one_does_that_in_the_plane():
    for name, expected in (("of McDonald, Hall and Mann", False), ("in the plane", True)):
        first, second, one, other = EXAMPLES[name]
        assert separating_shares(one, other, first + second) is expected


@pytest.mark.parametrize(
    ("first", "second"),
    [(((1, 1, 1),), ((1, 0, -1), (-1, -1, 0))), (((3, 1),), ((1, 0), (-2, -1)))],
    ids=["smallest", "in the plane"],
)
def test_the_mean_over_shards_that_changed_a_weight_may_never_separate_what_can_be_separated(first, second):
    """It is no mixture: every weight has shares of its own, and the theorem does not hold. Here the weights come back."""
    assert mixes_to_a_separator(first, second)
    X = np.array(first + second, np.float64)
    found = setting(X, np.ones(len(X)), constant=0.0)
    trainer = found.trainer(ChangedShards(found.learn_part, [range(len(first)), range(len(first), len(X))]))
    reached = []
    while (w := tuple(found.model.weights.w)) not in reached:
        reached.append(w)
        _, converged = trainer.epoch(np.arange(0))
        assert not converged
    assert len(reached) - reached.index(w) == 2, "and so for ever"


def mixes_to_a_separator(first: Sequence[Point], second: Sequence[Point]) -> bool:
    """Whether iterated mixing of two shards converges, in the engine, and separates both."""
    X = np.array(first + second, np.float64)
    found = setting(X, np.ones(len(X)), constant=0.0)
    shards = FixedShards(found.learn_part, [range(len(first)), range(len(first), len(X))])
    _, reason = train(found.trainer(shards), Limits(epochs=1000))
    return reason == "converged" and bool((X @ found.model.weights.w[:-1] > 0).all())
