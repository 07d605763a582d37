"""What the estimator does with each of its parameters."""

import io
import subprocess
import sys
import textwrap
import warnings
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from rosenblatt import Epoch, Perceptron
from rosenblatt.engine import train, votes
from rosenblatt.engine.problems import OneVsOne, OneVsRest, decide, visible
from rosenblatt.engine.visits import Visits
from rosenblatt.estimators import targets
from rosenblatt.estimators.progress import Bar
from rosenblatt.testing import reference
from rosenblatt.testing.strategies import chunks, constants, margins, samples

rng = np.random.default_rng(0)
X = rng.integers(-3, 4, (60, 3)).astype(float)
Y = (X @ [1, -2, 1] + rng.integers(-3, 4, 60) > 0).astype(int)  # overlapping: no separator
MANY = np.argmax(X @ rng.integers(-2, 3, (3, 4)) + rng.integers(-2, 3, (60, 4)), axis=1)


def learned(clf):
    return np.column_stack([clf.coef_, clf.intercept_])


# Which weights are kept


@pytest.mark.parametrize("multiclass", ["binary", "joint", "ovr", "ovo"])
def test_average_is_the_mean_of_the_weights_after_every_example(multiclass):
    many, labels = ({}, Y) if multiclass == "binary" else ({"multiclass": multiclass}, MANY)
    clf = Perceptron(keep="average", order="cyclic", max_iter=3, tol=None, **many).fit(X, labels)
    run = reference.learn(X, labels, labels.max() + 1, [range(60)] * 3, multiclass=multiclass)
    assert np.allclose(learned(clf), run.average, rtol=1e-14)
    assert np.array_equal(np.column_stack([clf.last_coef_, clf.last_intercept_]), run.last)


def test_vote_counts_the_sign_of_the_weights_after_every_example():
    clf = Perceptron(keep="vote", order="cyclic", max_iter=3, tol=None).fit(X, Y)
    run = reference.learn(X, Y, 2, [range(60)] * 3, multiclass="binary")
    expected = [reference.vote(run, x) for x in X]
    assert np.array_equal(clf.decision_function(X), expected)
    assert np.array_equal(clf.predict(X), (np.array(expected) >= 0).astype(int))
    assert len(clf._model.votes.moves) == clf.n_updates_, "memory grows with mistakes, not with examples"


def test_vote_of_many_classes_counts_the_class_that_each_names():
    clf = Perceptron(keep="vote", order="cyclic", max_iter=2, tol=None).fit(X, MANY)
    run = reference.learn(X, MANY, 4, [range(60)] * 2, multiclass="joint")
    padded = reference.padded(X, 1.0)
    shares = np.mean([np.eye(4)[np.argmax(padded @ w.T, axis=1)] for w in run.path], axis=0)
    assert np.allclose(clf.decision_function(X), shares)


@pytest.mark.parametrize("order", ["cyclic", "shuffle", "random"])
def test_pocket_is_gallants(order):
    clf = Perceptron(keep="pocket", order=order, max_iter=5, tol=None, random_state=3).fit(X, Y)
    again = np.random.default_rng(np.random.RandomState(3).randint(2**31 - 1))
    rows = np.arange(60)
    draw = {"cyclic": lambda: rows, "shuffle": lambda: again.permutation(rows), "random": lambda: again.choice(rows, 60)}
    run = reference.learn(X, Y, 2, [draw[order]() for _ in range(5)], multiclass="binary")

    def errors(w):
        return int(((reference.padded(X, 1.0) @ w[0] >= 0) != (Y == 1)).sum())

    assert np.array_equal(learned(clf), reference.pocket(run, errors))
    assert clf.score(X, Y) >= np.mean((X @ clf.last_coef_[0] + clf.last_intercept_ >= 0) == Y)


def test_pocket_finds_the_best_of_eight_points_in_the_end():
    points = np.array([[0, 0], [0, 1], [1, 0], [1, 1], [2, 0], [0, 2], [2, 2], [3, 1]], float)
    labels = np.array([0, 1, 1, 0, 1, 1, 0, 1])
    grid = [
        reference.padded(points, 1.0) @ (a, b, c) >= 0 for a in range(-4, 5) for b in range(-4, 5) for c in range(-9, 10)
    ]
    best = min(min((side != labels).sum(), 8) for side in grid)
    clf = Perceptron(keep="pocket", order="random", max_iter=3000, tol=None).fit(points, labels)
    assert (clf.predict(points) != labels).sum() <= best


# Order, batches, many classes


def test_a_batch_of_one_in_cyclic_order_is_the_online_algorithm():
    one = Perceptron(keep="last", order="cyclic", batch=1, max_iter=4, tol=None).fit(X, Y)
    run = reference.learn(X, Y, 2, [range(60)] * 4, multiclass="binary")
    assert np.array_equal(learned(one), run.last)


@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_the_full_batch_descends_the_perceptron_criterion(reduction):
    clf = Perceptron(keep="last", order="cyclic", batch="full", reduction=reduction, max_iter=3, tol=None).fit(X, Y)
    run = reference.learn(X, Y, 2, [range(60)] * 3, multiclass="binary", batch=60, mean=reduction == "mean")
    assert np.allclose(learned(clf), run.last)
    assert clf.n_updates_ == 3
    assert [epoch.mistakes for epoch in clf.history_] == [run.right[i : i + 60].count(False) for i in (0, 60, 120)]


def test_shuffle_visits_each_row_once_and_random_draws():
    for order, everything in (("shuffle", True), ("random", False)):
        clf = Perceptron(order=order, max_iter=1, tol=None, keep="vote", fit_intercept=False).fit(
            np.eye(40), np.arange(40) % 2
        )
        rows = clf._model.votes.rows
        assert (len(rows) == 40) == everything, "from w = 0 every row that is visited for the first time is a tie"


def test_one_vs_one_prefers_votes_then_margins_then_the_first_class():
    clf = Perceptron(multiclass="ovo", order="cyclic", max_iter=3, tol=None).fit(X, MANY)
    pair = {(a, b): p for p, (a, b) in enumerate((a, b) for a in range(4) for b in range(a + 1, 4))}
    for x, named in zip(X, clf.predict(X), strict=True):
        scores = clf.coef_ @ x + clf.intercept_
        wins, totals = np.zeros(4), np.zeros(4)
        for (a, b), p in pair.items():
            wins[a if scores[p] >= 0 else b] += 1
            totals[a] += scores[p]
            totals[b] -= scores[p]
        best = max(range(4), key=lambda c: (wins[c], totals[c], -c))
        assert named == best


def test_all_classes_learn_in_one_pass_and_ovr_is_one_perceptron_a_class():
    clf = Perceptron(multiclass="ovr", order="cyclic", max_iter=4, tol=None).fit(X, MANY)
    for c in range(4):
        alone = Perceptron(order="cyclic", max_iter=4, tol=None).fit(X, c == MANY)
        assert np.array_equal(learned(clf)[c], learned(alone)[0])
    assert clf.n_seen_ == 240


# Stopping


def test_every_reason_to_stop_has_its_word():
    def why(data=(X, Y), fit=None, **parameters):
        clf = Perceptron(**{"tol": None, "max_iter": 30, **parameters}).fit(*data, **(fit or {}))
        return clf.stop_reason_, clf

    assert why()[0] == "max_iter"
    assert why((X, X[:, 0] >= 0), max_iter=10_000)[0] == "converged"
    reason, clf = why(max_updates=7)
    assert (reason, clf.n_updates_) == ("max_updates", 7)
    assert why(max_seconds=1e-9)[0] == "max_seconds"
    reason, clf = why(tol=1.0, n_iter_no_change=3, max_iter=1000)
    assert (reason, clf.n_iter_) == ("training_error", 1 + -(-50_000 // 60)), "patience counts rows as well as epochs"
    reason, clf = why(early_stopping=True, tol=0.0, n_iter_no_change=2, max_iter=1000)
    assert reason == "validation_error"
    reason, clf = why(fit={"X_val": X[:10], "y_val": Y[:10]}, tol=2.0, n_iter_no_change=2)
    assert (reason, clf.n_iter_) == ("validation_error", 3)
    assert clf.history_[-1].validation_error == pytest.approx(1 - clf.score(X[:10], Y[:10]))
    with pytest.warns(UserWarning, match="gives up the mistake bound"):
        assert why(weight_tol=3.0, learning_rate="inverse", max_iter=10_000)[0] == "weight_change"


AND = ([[0, 0], [0, 1], [1, 0], [1, 1]], [0, 0, 0, 1])


def test_defaults_learn_and():
    for seed in range(20):
        clf = Perceptron(random_state=seed).fit(*AND)
        assert (clf.score(*AND), clf.stop_reason_) == (1.0, "converged")


@pytest.mark.parametrize(("rows", "features"), [(30, 2), (30, 5), (100, 10)])
def test_defaults_separate_random_separable_sets(rows, features):
    rng = np.random.default_rng([rows, features])
    for _ in range(50):
        points = rng.normal(size=(rows, features))
        scores = points @ rng.normal(size=features)
        labels = (scores > np.sort(scores)[rows // 3]).astype(int)
        assert Perceptron(max_iter=100_000).fit(points, labels).score(points, labels) == 1


@pytest.mark.parametrize("multiclass", ["joint", "ovo"])
def test_auto_is_the_average_of_a_run_that_goes_on_until_it_separates(multiclass):
    labels = np.arange(30) % 3
    points = np.random.default_rng(11).integers(-3, 4, (30, 3)) + 4.0 * np.eye(3)[labels] + 1
    clf = Perceptron(order="cyclic", multiclass=multiclass).fit(points, labels)
    assert (clf.stop_reason_, clf.score(points, labels)) == ("converged", 1)
    longer = Perceptron(order="cyclic", multiclass=multiclass, keep="average", max_iter=clf.n_iter_, tol=None)
    assert longer.fit(points, labels).score(points, labels) < 1, "the plain average does not separate"
    further = (int(clf.weights_.clock[0]) - clf.n_seen_) // 30
    for _ in range(further):
        longer.partial_fit(points, labels)
    assert np.allclose(longer.coef_, clf.coef_, rtol=1e-9)
    assert np.array_equal(longer.last_coef_, clf.last_coef_)


def test_auto_separates_where_each_class_against_the_rest_has_not_converged():
    labels = np.arange(30) % 3
    points = np.random.default_rng(9).integers(-3, 4, (30, 3)) + 4.0 * np.eye(3)[labels] + 1
    clf = Perceptron(order="cyclic", multiclass="ovr", max_iter=20_000).fit(points, labels)
    assert clf.stop_reason_ == "training_error"
    assert clf.history_[-1].mistakes == 0 < clf.history_[-1].updates
    last = np.argmax(points @ clf.last_coef_.T + clf.last_intercept_, axis=1)
    assert clf.score(points, labels) >= np.mean(last == labels)


def test_auto_streams_as_the_average():
    one, other = (Perceptron(keep=keep).partial_fit(X, Y, classes=[0, 1]) for keep in ("auto", "average"))
    assert np.array_equal(one.coef_, other.coef_)


def test_training_that_ends_at_max_iter_warns():
    with pytest.warns(ConvergenceWarning, match="max_iter=3 epochs without converging.*of 60 rows were predicted wrong"):
        Perceptron(max_iter=3).fit(X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Perceptron(max_iter=3, tol=None).fit(X, Y)
        Perceptron().fit(*AND)
        fitted = Perceptron(max_iter=3)
        with pytest.raises(ConvergenceWarning):
            fitted.fit(X, Y)
    assert fitted.n_iter_ == 3, "what was learned is there, even where warnings are errors"


@pytest.mark.parametrize(
    "parameters", [{}, {"tol": None, "max_iter": 37}, {"order": "cyclic", "n_iter_no_change": 900}, {"margin": 2000.0}]
)
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix])
def test_several_epochs_in_one_call_equal_epochs_one_by_one(layout, parameters, capsys):
    """With few rows, one call of a kernel makes several epochs; printing progress between epochs changes nothing, and
    neither does the number of epochs in a call."""
    rng = np.random.default_rng(4)
    X, y = layout(rng.integers(-3, 4, (40, 3)).astype(float)), rng.integers(0, 2, 40)
    if "margin" in parameters:  # updates without mistakes
        X = layout(np.abs(rng.integers(1, 9, (40, 3))) * np.where(y, 1.0, -1.0)[:, None])
    alone, watched = (Perceptron(random_state=0, verbose=verbose, **parameters).fit(X, y) for verbose in (0, 1))
    with patch.object(train, "FEW_VISITS", 3 * 40):
        in_turns = Perceptron(random_state=0, **parameters).fit(X, y)
    assert alone.n_iter_ > 3
    for other in (watched, in_turns):
        assert [epoch._replace(seconds=0) for epoch in alone.history_] == [
            epoch._replace(seconds=0) for epoch in other.history_
        ]
        assert alone.stop_reason_ == other.stop_reason_
        assert np.array_equal(alone.coef_, other.coef_)
        assert np.array_equal(alone.last_coef_, other.last_coef_)


def test_few_orders_are_drawn_in_vain(monkeypatch):
    """One call draws the orders of its epochs in advance, and training may end with the first of them."""
    drawn, epoch = [], Visits.epoch
    monkeypatch.setattr(Visits, "epoch", lambda visits: drawn.append(visits) or epoch(visits))
    clf = Perceptron(tol=None, max_iter=100_000).fit([[1.0], [-1.0]], [1, 0])
    assert clf.stop_reason_ == "converged"
    assert clf.n_iter_ <= 3
    assert len(drawn) <= 100


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_whole_numbers_in_floats_name_classes(kind):
    rng = np.random.default_rng(0)
    X, y = rng.integers(-3, 4, (40, 3)).astype(float), rng.integers(-1, 2, 40)
    whole, floats = (Perceptron(random_state=0).fit(X, labels) for labels in (y, y.astype(kind)))
    assert np.array_equal(whole.coef_, floats.coef_)
    assert floats.classes_.dtype == floats.predict(X).dtype == kind
    assert np.array_equal(whole.predict(X), floats.predict(X))
    for wrong in (np.nan, np.inf, 0.5):
        with pytest.raises(ValueError, match=r"NaN|infinity|continuous|whole"):
            Perceptron().fit(X, np.where(np.arange(40) == 7, kind(wrong), y.astype(kind)))


def test_max_updates_stops_in_the_middle_of_an_epoch_with_the_weights_of_that_moment():
    clf = Perceptron(keep="last", order="cyclic", max_updates=5, tol=None).fit(X, Y)
    run = reference.learn(X, Y, 2, [range(60)], multiclass="binary")
    changes = [
        i for i, (a, b) in enumerate(zip([run.start, *run.path], run.path, strict=False)) if not np.array_equal(a, b)
    ]
    assert np.array_equal(learned(clf), run.path[changes[4]])
    assert clf.n_seen_ == changes[4] + 1


def test_history_is_data():
    clf = Perceptron(keep="last", max_iter=4, tol=None).fit(X, Y)
    table = pd.DataFrame(clf.history_)
    assert list(table.columns) == list(Epoch._fields)
    assert table.mistakes.sum() == clf.n_mistakes_
    assert table.updates.sum() == clf.n_updates_
    assert table.seen.sum() == clf.n_seen_ == 240
    assert table.norm.iloc[-1] == pytest.approx(np.linalg.norm(learned(clf)))
    assert (table.seconds > 0).all()


def test_a_margin_counts_updates_that_are_no_mistakes():
    clf = Perceptron(margin=4.0, max_iter=5, tol=None).fit(X, Y)
    assert clf.n_updates_ > clf.n_mistakes_ > 0


# Starting points, weights, going on


def test_starting_weights_and_the_size_of_the_constant():
    start = np.array([[1.0, -1.0, 2.0]])
    clf = Perceptron(keep="last", order="cyclic", intercept_scaling=2.0, max_iter=2, tol=None)
    clf.fit(X, Y, coef_init=start, intercept_init=[3.0])
    run = reference.learn(X, Y, 2, [range(60)] * 2, multiclass="binary", constant=2.0, start=np.array([[1, -1, 2, 1.5]]))
    assert np.array_equal(clf.coef_, run.last[:, :3])
    assert np.array_equal(clf.intercept_, 2 * run.last[:, 3])


@pytest.mark.parametrize("multiclass", ["joint", "ovr", "ovo"])
def test_starting_weights_of_many_classes_go_on_where_another_run_stopped(multiclass):
    through = Perceptron(keep="last", order="cyclic", multiclass=multiclass, max_iter=4, tol=None).fit(X, MANY)
    half = Perceptron(keep="last", order="cyclic", multiclass=multiclass, max_iter=2, tol=None)
    half.fit(X, MANY)
    other = Perceptron(keep="last", order="cyclic", multiclass=multiclass, max_iter=2, tol=None)
    other.fit(X, MANY, coef_init=half.coef_, intercept_init=half.intercept_)
    assert np.array_equal(learned(through), learned(other))


@pytest.mark.parametrize("keep", ["last", "average", "vote"])
def test_warm_start_goes_on(keep):
    through = Perceptron(order="cyclic", keep=keep, max_iter=4, tol=None).fit(X, Y)
    parts = Perceptron(order="cyclic", keep=keep, max_iter=2, tol=None, warm_start=True).fit(X, Y).fit(X, Y)
    assert np.array_equal(through.decision_function(X), parts.decision_function(X))
    assert parts.n_seen_ == 120


def test_classes_that_arrive_later():
    clf = Perceptron(unknown_class="grow")
    names = np.array(["pear", "apple", "fig", "kiwi"])
    clf.partial_fit(X[:1], names[[1]])
    assert clf.predict(X[:2]).tolist() == ["apple"] * 2
    clf.partial_fit(X[1:], names[MANY[1:]])
    assert clf.classes_[0] == "apple"
    assert sorted(clf.classes_) == sorted(names[np.unique(MANY)])
    assert clf.coef_.shape == (len(clf.classes_), 3)


WHOLE = 360360  # divided by every number up to 15: of so few rows, rates of 1/k are whole numbers


def mean_votes(run, X, constant, multiclass, classes):
    """Return the decisions of the weights after every example: the mean of their signs, or of the classes they name."""
    scores = np.array([reference.padded(X, constant) @ w.T for w in run.path])
    if classes == 1 or (multiclass == "joint" and classes > 2):
        return np.eye(classes)[scores.argmax(axis=2)].mean(axis=0)
    means = np.where(scores >= 0, 1.0, -1.0).mean(axis=0)
    return decide(OneVsOne(classes) if multiclass == "ovo" else OneVsRest(classes), means)


@pytest.mark.filterwarnings("ignore:.*gives up the mistake bound")
@pytest.mark.parametrize(("keep", "rate"), [("last", "inverse"), ("average", "constant"), ("vote", "constant")])
@pytest.mark.parametrize("multiclass", ["joint", "ovr", "ovo"])
@settings(max_examples=20)
@given(data=st.data())
def test_classes_that_arrive_later_are_the_reference_run(multiclass, keep, rate, data):
    """However the stream is cut, and with so few moves logged and scores computed at a time that this is done in turns.
    A rate that falls shows wrong counts of updates."""
    X, labels, classes = data.draw(samples(st.sampled_from([4, 3, 2, 1, 5]), most_rows=15))
    constant, margin = data.draw(constants()), WHOLE * data.draw(margins())
    clf = Perceptron(unknown_class="grow", multiclass=multiclass, keep=keep, margin=margin, learning_rate=rate,
                     eta0=WHOLE, fit_intercept=constant > 0, intercept_scaling=constant or 1.0)  # fmt: skip
    with patch.object(train, "MOST_LOGGED", data.draw(st.integers(1, 6))):
        for part in data.draw(chunks(len(X))):
            clf.partial_fit(X[part], labels[part])
    rates = {"inverse": lambda k: WHOLE / k, "constant": lambda k: WHOLE}
    order = labels[np.sort(np.unique(labels, return_index=True)[1])]
    numbers = np.argsort(order)[labels]
    expected = reference.learn_growing(X, numbers, multiclass=multiclass, constant=constant,
                                       step=reference.perceptron(margin, rates[rate]))  # fmt: skip
    assert np.array_equal(clf.classes_, order)
    assert (clf.n_mistakes_, clf.n_updates_, clf.n_seen_) == (expected.mistakes, expected.updates, len(X))
    assert np.array_equal(clf.last_coef_, expected.last[:, :-1])
    assert np.array_equal(clf.last_intercept_, expected.last[:, -1] * constant)
    if keep == "average":
        w, drift, _, clock = clf.weights_
        total = clock[0] * w - drift
        vectors = total[:, None] if w.ndim == 1 else visible(clf._model.problem, total)
        assert np.array_equal(vectors.T, np.sum(expected.path, axis=0))
    if keep == "vote":
        decisions = mean_votes(expected, X, constant, multiclass, classes)
        with patch.object(votes, "AT_ONCE", data.draw(st.integers(1, 100))):
            assert np.array_equal(clf.decision_function(X), decisions)


def test_growing_from_two_classes_to_three_is_keslers_construction():
    """Where the third class never is the best rival, two columns ±w learn what one column w did."""
    grown = Perceptron(keep="last", unknown_class="grow", fit_intercept=False).partial_fit(X, Y)
    before = grown.coef_.copy()
    grown.partial_fit(np.zeros((1, 3)), [2])
    assert np.array_equal(grown.coef_, np.vstack([-before, before, np.zeros((1, 3))]))


@given(
    st.lists(st.integers(-6, 6), max_size=12),
    st.lists(st.integers(-6, 6), unique=True),
    st.sampled_from([np.int64, np.int8, np.float32]),
    st.integers(1, 13),
)
def test_labels_have_the_same_numbers_by_a_table_and_by_a_search(drawn, known, kind, few):
    """The table is for labels in a small range; classes stand in the order in which they came."""
    labels, classes = np.array(drawn, kind), np.array(known, kind)
    with patch.object(targets, "FEW", few):
        assert targets.distinct(labels).tolist() == sorted(set(drawn))
        assert targets.distinct(labels).dtype == kind
        numbers = targets.numbers(labels, classes)
    assert numbers.tolist() == [known.index(label) if label in known else -1 for label in drawn]


def test_balanced_weights_in_a_stream_are_those_of_the_examples_so_far():
    """Of those that count: here class 1 comes after ten others, and its first rows weigh nothing."""
    order = np.concatenate([np.flatnonzero(Y == 0)[:10], np.flatnonzero(Y == 1), np.flatnonzero(Y == 0)[10:]])
    rows, labels, own = X[order], Y[order], np.ones(60)
    own[10:15] = own[40] = 0
    clf = Perceptron(keep="last", class_weight="balanced")
    clf.partial_fit(rows, labels, classes=[0, 1, 2], sample_weight=own)
    counts, weight = np.zeros(2), own.copy()
    for i in np.flatnonzero(own):
        counts[labels[i]] += 1
        weight[i] = counts.sum() / (np.count_nonzero(counts) * counts[labels[i]])
    run = reference.learn(rows, labels, 3, [range(60)], weight=weight)
    assert np.allclose(learned(clf), run.last)
    assert clf.n_seen_ == 54
    assert clf.class_count_.tolist() == [*counts, 0]


def test_balanced_weights_count_neither_rows_nor_classes_that_weigh_nothing():
    labels, live = np.array([0, 0, 1, 2, 1]), np.array([0, 1, 2])
    assert targets.balance(labels, live)[live].tolist() == [3 / 4, 3 / 4, 3 / 2]
    there = MANY != 3
    parameters = {"class_weight": "balanced", "keep": "last", "order": "cyclic", "max_iter": 2, "tol": None}
    clf = Perceptron(**parameters).fit(X, MANY, sample_weight=there.astype(float))
    assert clf.classes_.tolist() == [0, 1, 2]
    assert np.array_equal(learned(clf), learned(Perceptron(**parameters).fit(X[there], MANY[there])))
    weight = there.sum() / (3 * np.bincount(MANY[there]))
    run = reference.learn(X[there], MANY[there], 3, [range(there.sum())] * 2, weight=weight[MANY[there]])
    assert np.allclose(learned(clf), run.last)


@pytest.mark.parametrize("multiclass", ["joint", "ovr"])
@pytest.mark.parametrize("target", [Y, MANY], ids=["two", "many"])
def test_a_class_of_weight_zero_is_what_others_are_not_and_else_not_there(target, multiclass):
    """Only one vector a class learns from rows of another class: that they are not of its own."""
    weight = np.array([0.0, 2.0, 1.0, 0.5])[: target.max() + 1]
    parameters = {"keep": "average", "order": "cyclic", "max_iter": 3, "tol": None, "multiclass": multiclass}
    clf = Perceptron(class_weight=dict(enumerate(weight)), **parameters).fit(X, target)
    kind = "binary" if target is Y else multiclass
    rows = np.arange(60) if kind == "ovr" else np.flatnonzero(target)
    run = reference.learn(X, target, len(weight), [rows] * clf.n_iter_, multiclass=kind, class_weight=weight)
    assert np.array_equal(np.column_stack([clf.last_coef_, clf.last_intercept_]), run.last)
    assert np.allclose(learned(clf), run.average, rtol=1e-12)
    assert (clf.n_mistakes_, clf.n_updates_, clf.n_seen_) == (run.mistakes, run.updates, len(run.path))


def test_partial_fit_goes_on_after_fit():
    clf = Perceptron(keep="last", order="cyclic", max_iter=2, tol=None).fit(X, Y).partial_fit(X, Y)
    run = reference.learn(X, Y, 2, [range(60)] * 3, multiclass="binary")
    assert np.array_equal(learned(clf), run.last)
    assert clf.n_seen_ == 180


def test_sparse_and_dense_chunks_may_alternate():
    mixed = Perceptron(keep="average")
    for i, chunk in enumerate(np.split(np.arange(60), 6)):
        mixed.partial_fit(sp.csr_matrix(X[chunk]) if i % 2 else X[chunk], MANY[chunk], classes=range(4))
    assert np.array_equal(learned(mixed), learned(Perceptron(keep="average").partial_fit(X, MANY, classes=range(4))))


def test_a_model_of_float32_becomes_float64_when_such_rows_come():
    clf = Perceptron().partial_fit(X[:30].astype(np.float32), Y[:30], classes=[0, 1])
    assert clf.coef_.dtype == np.float32
    clf.partial_fit(X[30:], Y[30:])
    assert clf.coef_.dtype == np.float64
    assert np.array_equal(learned(clf), learned(Perceptron().partial_fit(X, Y, classes=[0, 1])))


# Explaining, showing


@pytest.mark.parametrize("target", [Y, MANY], ids=["two", "many"])
def test_contributions_add_up_to_the_score(target):
    frame = pd.DataFrame(X, columns=["age", "size", "price"])
    clf = Perceptron(keep="average", max_iter=5).fit(frame, target)
    for i in range(10):
        why = clf.explain(frame.iloc[[i]])
        assert why.label == clf.predict(frame.iloc[[i]])[0]
        decision = clf.decision_function(frame.iloc[[i]])[0]
        score = decision[clf.classes_ == why.label][0] if target is MANY else (decision if why.label == 1 else -decision)
        assert why.score == pytest.approx(score, abs=1e-12)
        assert why.score == pytest.approx(why.intercept + sum(why.contributions.values()), abs=1e-12)
        assert set(why.contributions) <= set(frame.columns)
    assert set(clf.explain(frame.iloc[[0]], label=0).contributions) <= set(frame.columns)


def test_explaining_a_plain_or_sparse_row_numbers_the_features():
    clf = Perceptron().fit(X, Y)
    assert clf.explain(X[3]).contributions == clf.explain(sp.csr_matrix(X[3])).contributions
    assert set(clf.explain(X[3]).contributions) == set(np.flatnonzero(X[3]).tolist())


def test_verbose_shows_a_line_an_epoch(capsys):
    clf = Perceptron(max_iter=3, tol=None, verbose=1).fit(X, Y)
    shown = capsys.readouterr()
    assert shown.out == ""
    lines = shown.err.splitlines()
    assert lines[0].startswith(f"epoch 1  mistakes {clf.history_[0].mistakes} of 60")
    assert len(lines) == 4
    assert lines[-1] == "stopped: max_iter"


def test_the_bar_is_rewritten_on_a_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    stream = Terminal()
    bar = Bar(4, stream=stream)
    bar(Epoch(1, 5, 5, 60, 2.0, None, 0.1))
    bar(Epoch(2, 3, 3, 60, 2.5, 0.25, 0.1))
    bar.done("converged")
    text = stream.getvalue()
    assert text.count("\n") == 2
    assert "[##########..........] epoch 2" in text
    assert "validation error 25.00%" in text


def run_python(code, **environment):
    import os

    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True, text=True, timeout=300, env={**os.environ, **environment}, check=False,
    )  # fmt: skip


def test_ctrl_c_leaves_the_model_of_the_last_finished_epoch():
    done = run_python("""
        import os, signal, threading
        import numpy as np
        from rosenblatt import Perceptron
        rng = np.random.default_rng(0)
        X, y = rng.standard_normal((2000, 20)), rng.integers(0, 2, 2000)
        Perceptron(max_iter=1, tol=None).fit(X, y)
        clf = Perceptron(max_iter=10**9, tol=None)
        threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        try:
            clf.fit(X, y)
        except KeyboardInterrupt:
            print(clf.stop_reason_, clf.n_iter_ == len(clf.history_) > 0, clf.n_seen_ == 2000 * clf.n_iter_)
            again = Perceptron(max_iter=clf.n_iter_, tol=None).fit(X, y)
            print(np.array_equal(again.coef_, clf.coef_), signal.getsignal(signal.SIGINT) is signal.default_int_handler)
    """)
    assert done.stdout.split() == ["interrupted", "True", "True", "True", "True"], done.stderr


def test_the_same_source_runs_without_compiling():
    done = run_python(
        """
        import numpy as np, scipy.sparse as sp
        from rosenblatt import Perceptron
        X = np.array([[1,1,0,1,1],[0,0,1,1,0],[0,1,1,0,0],[1,0,0,1,0],[1,0,1,0,1],[1,0,1,1,0]], float)
        y = np.array([1, 0, 1, 0, 1, 0])
        for rows in (X, sp.csr_matrix(X)):
            print(Perceptron(order="cyclic", keep="average").fit(rows, y).last_coef_[0].tolist())
            print(Perceptron(order="cyclic", keep="vote").fit(rows, y % 3 + np.arange(6) // 4).n_updates_)
        """,
        NUMBA_DISABLE_JIT="1",
    )
    first, second, third, fourth = done.stdout.splitlines()
    assert first == third == "[0.0, 2.0, 0.0, -1.0, 1.0]", done.stderr
    labels = np.array([1, 0, 1, 0, 1, 0]) % 3 + np.arange(6) // 4
    table = np.array([[1, 1, 0, 1, 1], [0, 0, 1, 1, 0], [0, 1, 1, 0, 0], [1, 0, 0, 1, 0], [1, 0, 1, 0, 1], [1, 0, 1, 1, 0]])
    assert int(second) == int(fourth) == Perceptron(order="cyclic", keep="vote").fit(table, labels).n_updates_
