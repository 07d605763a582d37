"""Bad input gets an error that says what is wrong, and leaves a fitted model as it was."""

import pickle
import tracemalloc

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn.multioutput
import sklearn.preprocessing
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning, NotFittedError

import rosenblatt
from rosenblatt import Perceptron
from rosenblatt.engine.blocks import available_threads
from rosenblatt.engine.rows import all_finite, as_rows
from rosenblatt.errors import InvalidData, InvalidDataType, InvalidParameter, NumericOverflow, UnknownLabel

rng = np.random.default_rng(0)
X = rng.integers(-3, 4, (20, 3)).astype(float)
Y = np.arange(20) % 2


def spoiled(value, row=7):
    bad = X.copy()
    bad[row, 1] = value
    return bad


def broken_csr(**parts):
    matrix = sp.csr_matrix(X)
    for name, change in parts.items():
        array = getattr(matrix, name).copy()
        change(array)
        setattr(matrix, name, array)
    return matrix


def put(place, value):
    return lambda array: array.__setitem__(place, value)


BAD_ROWS = {
    "NaN": (spoiled(np.nan), Y, ValueError, "NaN"),
    "infinity": (spoiled(np.inf), Y, ValueError, "infinity"),
    "NaN in CSR": (sp.csr_matrix(spoiled(np.nan)), Y, ValueError, "NaN"),
    "-infinity in the last row": (spoiled(-np.inf, -1), Y, ValueError, "infinity"),
    "no rows": (X[:0], Y[:0], ValueError, "0 sample"),
    "no features": (X[:, :0], Y, ValueError, "0 feature"),
    "one axis": (X[0], Y[:1], ValueError, "2D array"),
    "three axes": (X[None], Y[:1], ValueError, "dim 3"),
    "text": (np.array([["a", "b"]] * 20), Y, ValueError, "could not convert"),
    "objects": (np.array([[{}, 1]] * 20, dtype=object), Y, TypeError, "dict"),
    "complex numbers": (X + 1j, Y, ValueError, "[Cc]omplex"),
    "too few labels": (X, Y[:-1], ValueError, "inconsistent numbers of samples"),
    "no labels": (X, None, ValueError, "y"),
    "labels in columns": (X, np.column_stack([Y, Y]), ValueError, "one label for each row|Unknown label"),
    "continuous labels": (X, Y + 0.5, ValueError, "[Uu]nknown label type"),
    "NaN labels": (X, np.where(Y, np.nan, 0.0), ValueError, "NaN"),
    "mixed labels": (X, ["spam", 1] * 10, TypeError, "mix str with int"),
    "mixed object labels": (X, np.array(["spam", 1] * 10, dtype=object), TypeError, "mix str with int"),
    "a column too high": (broken_csr(indices=put(5, 3)), Y, ValueError, "column index 3, but its columns are 0 to 2"),
    "a column below zero": (broken_csr(indices=put(5, -1)), Y, ValueError, "column index -1"),
    "row starts that go back": (broken_csr(indptr=put(4, 50)), Y, ValueError, "not a valid CSR|start of row"),
}


@pytest.mark.parametrize("case", BAD_ROWS)
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_bad_rows_are_refused_and_change_nothing(case, method, monkeypatch):
    bad, labels, error, message = BAD_ROWS[case]
    clf = Perceptron(keep="average").fit(pd.DataFrame(X, columns=["a", "b", "c"]), Y)
    before = pickle.dumps(clf)
    monkeypatch.setattr("warnings.warn", lambda *args, **kwargs: None)  # that the names of the features are gone
    with pytest.raises(error, match=message):
        getattr(clf, method)(bad, labels)
    assert pickle.dumps(clf) == before


@pytest.mark.parametrize(
    "parameters", [{"order": "random"}, {"early_stopping": True}, {"max_updates": 1}, {"order": "most-violated"}]
)
@pytest.mark.parametrize("row", [0, 7, 19])
def test_no_run_overlooks_a_row(parameters, row):
    with pytest.raises(ValueError, match="NaN"):
        Perceptron(max_iter=2, tol=None, **parameters).fit(spoiled(np.nan, row), Y)


def test_one_class_only_is_refused_by_name():
    with pytest.raises(ValueError, match="at least two classes; it has one class only: 'ham'"):
        Perceptron().fit(X, ["ham"] * 20)
    with pytest.raises(ValueError, match="one class only"):
        Perceptron().fit(X, Y, sample_weight=Y)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (-np.ones(20), "must not be negative; it is -1 at row 0"),
        (np.zeros(20), "zero for every row"),
        (np.where(np.arange(20) == 3, np.nan, 1.0), "must be finite; it is nan at row 3"),
        (np.ones(19), r"one value for each of the 20 rows; its shape is \(19,\)"),
        (np.ones((20, 1)), r"its shape is \(20, 1\)"),
    ],
)
def test_bad_weights_are_refused(weight, message):
    for method in ("fit", "partial_fit"):
        with pytest.raises(ValueError, match=message):
            getattr(Perceptron().fit(X, Y), method)(X, Y, sample_weight=weight)


def test_wrong_number_of_features_names_both():
    clf = Perceptron().fit(X, Y)
    for call in (clf.predict, clf.decision_function, lambda rows: clf.partial_fit(rows, Y)):
        with pytest.raises(ValueError, match="X has 2 features, but Perceptron is expecting 3"):
            call(X[:, :2])


def test_columns_of_another_frame_are_refused():
    clf = Perceptron().fit(pd.DataFrame(X, columns=["a", "b", "c"]), Y)
    with pytest.raises(ValueError, match="feature names"):
        clf.predict(pd.DataFrame(X, columns=["a", "c", "b"]))


def test_unknown_class_in_a_stream_says_what_to_do():
    clf = Perceptron().partial_fit(X, Y, classes=[0, 1])
    before = pickle.dumps(clf)
    with pytest.raises(ValueError, match=r"the label 7 is not one of the known classes: 0, 1.*unknown_class='grow'"):
        clf.partial_fit(X[:1], [7])
    assert pickle.dumps(clf) == before
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        Perceptron().partial_fit(X, Y)
    with pytest.raises(ValueError, match="the same as on the first call"):
        clf.partial_fit(X, Y, classes=[0, 1, 2])
    with pytest.raises(TypeError, match="one type"):
        Perceptron(unknown_class="grow").partial_fit(X, Y).partial_fit(X[:1], ["spam"])


def test_unfitted_use_says_so():
    clf = Perceptron()
    for call in (clf.predict, clf.decision_function, clf.explain):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            call(X)
    with pytest.raises(AttributeError, match="not fitted yet"):
        _ = clf.coef_
    assert not hasattr(clf, "coef_")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"margin": -1}, "margin must be a number ≥ 0; got -1"),
        ({"eta0": 0}, "eta0 must be a number > 0; got 0"),
        ({"order": "sorted"}, "order must be one of 'shuffle', 'cyclic'.*got 'sorted'"),
        ({"batch": 0}, "batch must be a whole number ≥ 1 or 'full'; got 0"),
        ({"batch": 2.5}, "whole number"),
        ({"n_jobs": "all"}, "n_jobs must be a whole number or None; got 'all'"),
        ({"max_iter": None}, "max_iter must be a whole number ≥ 1; got None"),
        ({"max_iter": True}, "max_iter must be a whole number"),
        ({"validation_fraction": 1.0}, "validation_fraction must be a number > 0 and < 1"),
        ({"fit_intercept": "yes"}, "fit_intercept must be True or False"),
        ({"random_state": "dice"}, "random_state must be a whole number from 0 to .* or None; got 'dice'"),
        ({"class_weight": "heavy"}, "class_weight must be a dictionary"),
        ({"class_weight": {5: 1.0}}, r"class_weight must be .* among the classes \[0, 1\]"),
        ({"class_weight": {0: -1.0}}, "class_weight must be finite and not negative"),
        ({"n_jobs": 0}, "n_jobs must be .* not 0; got 0"),
        ({"order": "most-violated", "batch": 8}, "order='most-violated' and batch=8 cannot be used together"),
        ({"order": "most-violated", "keep": "pocket"}, "order='most-violated' and keep='pocket'"),
        ({"batch": "full", "keep": "pocket"}, "batch='full' and keep='pocket'"),
        ({"keep": "vote", "early_stopping": True}, "keep='vote' and early_stopping=True"),
    ],
)
def test_bad_parameters_are_refused_in_fit_by_name(parameters, message):
    with pytest.raises(ValueError, match=message):
        Perceptron(**parameters).fit(X, Y)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"coef_init": np.zeros((2, 3))}, r"coef_init must have shape \(1, 3\)"),
        ({"intercept_init": [1.0, 2.0]}, r"intercept_init \(1,\)"),
        ({"coef_init": [[np.nan, 0, 0]]}, "must be finite"),
        ({"X_val": X}, "X_val and y_val must be passed together"),
        ({"X_val": spoiled(np.nan), "y_val": Y}, "NaN"),
    ],
)
def test_bad_arguments_of_fit_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Perceptron().fit(X, Y, **arguments)


def test_more_clashes_name_both():
    with pytest.raises(ValueError, match="intercept_init cannot be used with fit_intercept=False"):
        Perceptron(fit_intercept=False).fit(X, Y, intercept_init=[1.0])
    with pytest.raises(ValueError, match="keep='vote' cannot be validated on X_val"):
        Perceptron(keep="vote").fit(X, Y, X_val=X, y_val=Y)
    with pytest.raises(ValueError, match="explain needs keep='last'"):
        Perceptron(keep="vote").fit(X, Y).explain(X[0])
    with pytest.raises(ValueError, match="label must be one of the classes"):
        Perceptron().fit(X, Y).explain(X[0], label=9)
    with pytest.raises(ValueError, match="explain takes one row; got 20"):
        Perceptron().fit(X, Y).explain(X)
    with pytest.raises(ValueError, match="goes on with the classes"):
        Perceptron(warm_start=True).fit(X, Y).fit(X, Y + 5)


@pytest.mark.parametrize(
    ("change", "name"),
    [({"keep": "average"}, "keep"), ({"fit_intercept": False}, "fit_intercept"), ({"multiclass": "ovr"}, "multiclass")],
)
def test_a_model_does_not_go_on_with_other_parameters(change, name):
    labels = np.arange(20) % 3
    for clf, method in ((Perceptron(), "partial_fit"), (Perceptron(warm_start=True), "fit")):
        clf.fit(X, labels).set_params(**change)
        with pytest.raises(ValueError, match=f"{name}.* has changed since this model began to learn"):
            getattr(clf, method)(X, labels)


@pytest.mark.parametrize("labels", [(-128, 127), (0, 2**16), (2**62, -(2**62)), (3, 2**63 + 5), (-1, 1)])
def test_any_integers_name_classes(labels):
    kind = next(
        kind
        for kind in (np.int8, np.int32, np.int64, np.uint64)
        if all(np.iinfo(kind).min <= v <= np.iinfo(kind).max for v in labels)
    )
    y = np.array(labels, dtype=kind)[Y]
    clf = Perceptron(max_iter=5).fit(X, y)
    assert clf.classes_.tolist() == sorted(labels)
    assert clf.classes_.dtype == kind
    expected = Perceptron(max_iter=5).fit(X, Y if labels[0] < labels[1] else 1 - Y)
    assert np.array_equal(clf.coef_, expected.coef_)


def test_overflow_is_an_error_not_a_wrong_model():
    huge = np.where(X == 0, 1.0, X) * 1e200
    with pytest.raises(ValueError, match=r"overflowed at row .*scale them down"):
        Perceptron(max_iter=50, tol=None).fit(huge, Y)
    huge = (np.where(X == 0, 1.0, X) * 1e30).astype(np.float32)
    with pytest.raises(ValueError, match=r"overflowed at row .*float64"):
        Perceptron(max_iter=50, tol=None).fit(huge, np.arange(20) % 3)


def test_a_million_classes_are_possible():
    """Two rows of each would do as well: the memory is features × classes, and no more."""
    labels = np.arange(1_000_000)
    rows = sp.csr_matrix((np.ones(1_000_000), (np.arange(1_000_000), np.zeros(1_000_000, int))), shape=(1_000_000, 1))
    clf = Perceptron(max_iter=1, tol=None, max_updates=50).fit(rows, labels)
    assert clf.coef_.shape == (1_000_000, 1)
    assert clf.n_updates_ == 50


def test_rows_from_elsewhere_are_checked_at_the_border():
    with pytest.raises(ValueError, match="two axes"):
        as_rows(np.zeros(3))
    with pytest.raises(ValueError, match="complex"):
        as_rows(np.zeros((2, 2), complex))
    assert as_rows(np.zeros((2, 2), np.float16)).values.dtype == np.float32
    assert available_threads(-1) >= 1
    assert available_threads(3) == 3


HUGE = np.array([[1e200, 0], [0, 1e200], [2e200, 0], [0, 2e200]])


@pytest.mark.parametrize(
    "learner",
    [rosenblatt.PassiveAggressiveClassifier(), rosenblatt.MIRA(), rosenblatt.SecondOrderPerceptron(),
     rosenblatt.PassiveAggressiveRegressor(), rosenblatt.DeltaRuleRegressor(eta0=0.01)],
    ids=lambda learner: type(learner).__name__,
)  # fmt: skip
def test_rows_too_long_to_be_measured_are_refused_and_change_nothing(learner):
    X, y = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), [0, 1, 1]
    learner.fit(X, y)
    before = learner.coef_.copy()
    with pytest.raises(ValueError, match=r"too large|overflow"):
        learner.fit(HUGE, [0, 1, 0, 1])
    assert np.array_equal(learner.coef_, before)
    with pytest.raises(ValueError, match=r"too large|overflow"):
        learner.partial_fit(HUGE, [0, 1, 0, 1])
    assert np.array_equal(learner.coef_, before)


def test_advice_names_only_parameters_that_there_are():
    for learner in (rosenblatt.AROW(), rosenblatt.Perceptron()):
        with pytest.raises(ValueError, match="classes must be passed") as error:
            learner.partial_fit([[0.0], [1.0]], [0, 1])
        assert ("unknown_class" in str(error.value)) == ("unknown_class" in learner.get_params())


def test_a_failed_partial_fit_with_a_new_class_leaves_classes_and_weights_together():
    clf = Perceptron(unknown_class="grow", fit_intercept=False).partial_fit([[1.0, 0.0], [0.0, 1.0]], [0, 1])
    before, guess = clf.coef_.copy(), clf.predict([[1.0, 0.0]])
    huge = np.array([[1.0, 1.0], [1.7e308, 1.7e308], [1.7e308, -1.7e308], [-1.7e308, 1.7e308]])
    with pytest.raises(NumericOverflow):
        clf.partial_fit(huge, [2, 0, 1, 2])
    assert clf.classes_.tolist() == [0, 1]
    assert np.array_equal(clf.coef_, before)
    assert np.array_equal(clf.predict([[1.0, 0.0]]), guess)


LAST_ROW = {
    "ALMA": (rosenblatt.ALMA(fit_intercept=False), [[1e200, 1e200]]),
    "ROMMA": (rosenblatt.ROMMA(fit_intercept=False), [[1e200, 1e200]]),
    "Ballseptron": (rosenblatt.Ballseptron(fit_intercept=False), [[1e200, 1e200]]),
    "BalancedWinnow": (rosenblatt.BalancedWinnow(alpha=10.0, fit_intercept=False), [[1e5, 1e5]]),
    "Winnow2": (rosenblatt.Winnow2(alpha=1e200, theta=1e300), [[0.0, 1.0], [0.0, 1.0]]),
    "Perceptron": (Perceptron(keep="average", fit_intercept=False), [[0.0, 1.7e308]]),
    "PA": (rosenblatt.PassiveAggressiveClassifier(C=float("inf"), fit_intercept=False), [[0.0, 1e-160]]),
}


@pytest.mark.parametrize("name", LAST_ROW)
def test_an_overflow_in_the_last_row_of_a_call_is_an_error(name):
    learner, bad = clone(LAST_ROW[name][0]), LAST_ROW[name][1]
    learner.partial_fit([[0.0, 1.0], [1.0, 0.0]], [0, 1], classes=[0, 1])
    before = learner.coef_.copy()
    with pytest.raises(NumericOverflow) as error:
        learner.partial_fit(bad, [1] * len(bad))
    assert error.value.row == len(bad) - 1
    assert np.array_equal(learner.coef_, before)


SMALL_THEN_HUGE = np.array([[1.0, 0.0], [-1.0, 0.0], [1.0, 1.0], [0.0, 1e200], [0.0, 1.0], [1.0, 2.0], [2.0, 1.0]])


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
def test_the_row_that_overflows_is_named_not_one_that_suffers_from_it(layout, method):
    learner = rosenblatt.BalancedWinnow(alpha=10.0, fit_intercept=False, order="cyclic")
    known = {"classes": [0, 1]} if method == "partial_fit" else {}
    with pytest.raises(NumericOverflow, match="overflowed at row 3") as error:
        getattr(learner, method)(layout(SMALL_THEN_HUGE), [1, 0, 1, 0, 1, 0, 1], **known)
    assert error.value.row == 3


def test_of_a_batch_the_longest_row_is_named():
    learner = Perceptron(keep="average", fit_intercept=False, batch=2, order="cyclic", tol=None, max_iter=3)
    rows = SMALL_THEN_HUGE.copy()
    rows[3] = 0, 1.7e308
    with pytest.raises(NumericOverflow) as error:
        learner.partial_fit(rows, [1, 0, 1, 0, 1, 0, 1], classes=[0, 1])
    assert error.value.row == 3


def test_what_scikit_learn_refuses_has_our_types():
    clf = Perceptron().fit(X, Y)
    refused = [
        lambda: clf.fit(spoiled(np.nan), Y),
        lambda: clf.partial_fit(spoiled(np.inf), Y),
        lambda: clf.predict(X[:, :2]),
        lambda: clf.fit(X, Y[:-1]),
        lambda: clf.fit(X, Y + 0.5),
        lambda: clf.fit(X[0], Y),
        lambda: clf.explain(np.full(3, np.nan)),
        lambda: rosenblatt.KernelPerceptron().fit(X, Y).predict(spoiled(np.nan)),
        lambda: rosenblatt.SigmaPerceptron().fit(spoiled(np.nan), Y),
        lambda: rosenblatt.DeltaRuleRegressor().fit(spoiled(np.nan), Y),
        lambda: rosenblatt.NormalisedWinnow().conditions(spoiled(np.nan), Y),
        lambda: rosenblatt.DeltaRuleRegressor().stable_rate(spoiled(np.nan)),
        lambda: clf.fit(X, Y, X_val=spoiled(np.nan), y_val=Y),
        lambda: Perceptron(early_stopping=True).fit(X[:3], [0, 1, 1]),
    ]
    for call in refused:
        with pytest.raises(InvalidData):
            call()
    with pytest.raises(NotFittedError):
        Perceptron().predict(X)


SEVERAL = np.arange(90).reshape(30, 3) % 2


@pytest.mark.parametrize(
    "labels",
    [
        SEVERAL,
        SEVERAL.tolist(),
        sp.csr_matrix(SEVERAL),
        pd.DataFrame(SEVERAL),
        [("a",), ("a", "b"), ("b",)] * 10,
        [{"a"}, {"b"}] * 15,
    ],
)
@pytest.mark.parametrize("learner", [Perceptron(), rosenblatt.SigmaPerceptron()])
def test_several_labels_for_a_row_are_refused_with_the_line_that_learns_them(learner, labels):
    rows = np.eye(30)
    with pytest.raises(InvalidData, match="y must have one label for each row; it") as refused:
        learner.fit(rows, labels)
    line = refused.value.hint.removesuffix(" learns several labels").replace("()).fit", "(max_iter=3)).fit")
    if isinstance(learner, Perceptron) and isinstance(labels, list):
        scope = {"sklearn": sklearn, "Perceptron": Perceptron, "X": rows, "y": labels}
        assert eval(line, scope).predict(rows).shape == (30, 3 if isinstance(labels[0], list) else 2)


def test_a_column_of_labels_is_taken_with_scikit_learns_warning():
    with pytest.warns(DataConversionWarning, match="A column-vector y was passed when a 1d array was expected"):
        clf = Perceptron().fit(X, Y[:, None])
    assert np.array_equal(clf.coef_, Perceptron().fit(X, Y).coef_)


def test_validation_rows_need_a_known_label_each():
    clf = Perceptron(max_iter=2, tol=None)
    with pytest.raises(InvalidData, match="y_val"):
        clf.fit(X, Y, X_val=X, y_val=Y[:1])
    with pytest.raises(InvalidData, match="y_val"):
        clf.fit(X, Y, X_val=X[:1], y_val=Y)
    with pytest.raises(UnknownLabel):
        clf.fit(X, Y, X_val=X, y_val=Y + 1)
    assert clf.fit(X, Y, X_val=X, y_val=Y).history_[-1].validation_error is not None


def test_verbose_takes_true(capsys):
    Perceptron(verbose=True, max_iter=1).fit(X, Y)
    assert "epoch 1" in capsys.readouterr().err
    Perceptron(verbose=False, max_iter=1).fit(X, Y)
    assert capsys.readouterr().err == ""
    rosenblatt.SigmaPerceptron(verbose=True).fit([[1.0], [-1.0]], [0, 1])
    with pytest.raises(InvalidParameter, match="verbose"):
        Perceptron(verbose="yes").fit(X, Y)


def test_a_batch_of_one_row_is_its_own_mean():
    mean = Perceptron(batch=1, reduction="mean").fit(X, Y)
    assert np.array_equal(mean.coef_, Perceptron().fit(X, Y).coef_)
    assert mean.mistake_bound(2.0, 1.0) == 4.0
    regressor = rosenblatt.DeltaRuleRegressor(batch=1, reduction="mean").fit(X, Y)
    assert np.array_equal(regressor.coef_, rosenblatt.DeltaRuleRegressor().fit(X, Y).coef_)


def test_the_most_violated_row_can_move():
    """Of three classes against the rest, the rows of one without a weight can only push the others away."""
    rows = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])
    learner = Perceptron(multiclass="ovr", order="most-violated", class_weight={0: 0.0}, tol=None, max_iter=50)
    learner.fit(rows, [0, 1, 2])
    assert learner.stop_reason_ == "converged"
    assert learner.n_seen_ < 50


@pytest.mark.parametrize("reason", ["training_error", "max_updates", "max_seconds", "weight_change", "validation_error"])
def test_the_last_weights_are_judged_for_the_pocket_whatever_stops_the_training(reason):
    stops = {
        "training_error": {"tol": 1.0, "n_iter_no_change": 1, "max_iter": 10_000},
        "max_updates": {"max_updates": 2, "tol": None},
        "max_seconds": {"max_seconds": 1e-9, "tol": None},
        "weight_change": {"weight_tol": 1e9, "tol": None},
        "validation_error": {"tol": 1.0, "n_iter_no_change": 1},
    }
    rows, labels = [[-1.0], [1.0], [1.0], [1.0], [1.0], [-2.0]], [0, 1, 1, 1, 1, 1]
    clf = Perceptron(keep="pocket", order="cyclic", fit_intercept=False, **stops[reason])
    validation = {"X_val": rows, "y_val": labels} if reason == "validation_error" else {}
    clf.fit(rows, labels, **validation)
    assert clf.stop_reason_ == reason
    pocket = clf._model.pocket
    assert pocket.fewest is not None
    assert pocket.run[0] == 0


def csr_with_a_start_far_behind():
    X = sp.csr_matrix(np.minimum((np.random.default_rng(0).random((12, 3)) > 0.5) + np.eye(12, 3), 1))
    X.indptr = X.indptr.copy()
    X.indptr[3] = 1000
    return X


def test_a_broken_csr_matrix_is_refused_before_scipy_crashes_on_it():
    y = [0, 1] * 6
    attempts = [
        lambda X: Perceptron().fit(X, y),
        lambda X: rosenblatt.Winnow1().fit(X, y),
        lambda X: rosenblatt.Winnow2().partial_fit(X, y, classes=[0, 1]),
        lambda X: rosenblatt.online.OnlinePerceptron().learn_many(X, y),
        lambda X: rosenblatt.theory.separability(X, y),
    ]
    for attempt in attempts:
        with pytest.raises(InvalidData, match="not a valid CSR matrix"):
            attempt(csr_with_a_start_far_behind())


def test_numbers_that_are_too_large_are_refused_by_our_types():
    X, y = [[1.0, 0.0], [0.0, 1.0]], [0, 1]
    with pytest.raises(InvalidData, match="too large"):
        Perceptron().fit([[10**400, 1], [1, 2]], y)
    for estimator in (Perceptron(batch=10**30), Perceptron(max_updates=10**30), rosenblatt.Forgetron(budget=10**400)):
        with pytest.raises(InvalidParameter, match="must be a whole number ≥ 1, of 64 bits"):
            estimator.fit(X, y)


def test_what_cannot_become_numbers_is_refused_by_our_types():
    X, y = [[1.0, 0.0], [0.0, 1.0]], [0, 1]
    with pytest.raises(InvalidData, match="sample_weight must be numbers"):
        Perceptron().fit(X, y, sample_weight=["a", "b"])
    with pytest.raises(InvalidData, match="could not convert"):
        rosenblatt.DeltaRuleRegressor().fit(X, ["a", "b"])
    with pytest.raises(InvalidParameter, match="shuffle must be True or False"):
        rosenblatt.PassiveAggressiveClassifier(shuffle=np.array([1, 2])).fit(X, y)


DAYS = np.arange("2024-01-01", "2024-01-05", dtype="datetime64[D]")


@pytest.mark.parametrize(("dates", "seen"), [
    (DAYS[:, None], r"it is an array of datetime64\[D\]"),
    ((DAYS - DAYS[0])[:, None], r"it is an array of timedelta64\[D\]"),
    ([[1.0, day] for day in DAYS], "it has np.datetime64"),
    ([[day.item()] for day in DAYS], "it has datetime.date"),
    (np.array([[1.0, day] for day in DAYS], object), "it has np.datetime64"),
    (pd.DataFrame({"price": 1.0, "born": DAYS}), "column 'born' is datetime64"),
    (pd.DataFrame({"price": 1.0, "age": DAYS - DAYS[0]}), "column 'age' is timedelta64"),
    (pd.DataFrame({"born": pd.to_datetime(DAYS).tz_localize("UTC")}), "column 'born' is datetime64"),
    (pd.DataFrame({"month": pd.PeriodIndex(DAYS, freq="M")}), "column 'month' is period"),
    (pd.DataFrame({"born": [day.item() for day in DAYS]}, dtype=object), "column 'born' has datetime.date"),
])  # fmt: skip
def test_dates_and_durations_are_refused_as_features(dates, seen):
    message = f"must hold numbers; {seen}.*convert dates"
    width = dates.shape[1] if hasattr(dates, "shape") else len(dates[0])
    fitted = Perceptron().fit(np.eye(4)[:, :width], [0, 1, 0, 1])
    regressor = rosenblatt.PassiveAggressiveRegressor()
    for attempt in (
        lambda: Perceptron().fit(dates, [0, 1, 0, 1]),
        lambda: Perceptron().partial_fit(dates, [0, 1, 0, 1], classes=[0, 1]),
        lambda: fitted.predict(dates),
        lambda: rosenblatt.KernelPerceptron().fit(dates, [0, 1, 0, 1]),
        lambda: rosenblatt.SigmaPerceptron().fit(dates, [0, 1, 0, 1]),
        lambda: regressor.fit(dates, [0.0, 1.0, 2.0, 3.0]),
    ):
        with pytest.raises(InvalidDataType, match=message):
            attempt()


def test_dates_and_durations_are_refused_as_targets_and_in_streams():
    for y in (DAYS, pd.Series(DAYS), list(DAYS - DAYS[0])):
        with pytest.raises(InvalidDataType, match="y must hold numbers"):
            rosenblatt.PassiveAggressiveRegressor().fit(np.eye(4), y)
    with pytest.raises(InvalidDataType, match=r"'born' is np\.datetime64"):
        rosenblatt.online.OnlinePerceptron().learn_one({"born": DAYS[0]}, 1)
    with pytest.raises(InvalidDataType, match="a row must hold numbers"):
        rosenblatt.online.OnlinePerceptron().learn_one(DAYS, 1)


def test_truth_values_and_objects_that_are_numbers_are_features():
    for rows in (np.eye(4, dtype=bool), np.eye(4).astype(object), pd.DataFrame(np.eye(4, dtype=int), dtype=object)):
        assert Perceptron().fit(rows, [0, 1, 0, 1]).predict(rows).tolist() == [0, 1, 0, 1]
    with pytest.raises(InvalidData, match="Complex data"):
        Perceptron().fit(np.eye(4) * 1j, [0, 1, 0, 1])


@pytest.mark.parametrize("path", [None, 5])
def test_load_takes_a_path(path):
    with pytest.raises(InvalidParameter, match="path must be the path of a file"):
        rosenblatt.load(path)


def test_text_in_a_table_is_named_with_what_to_do():
    table = pd.DataFrame({"age": [1.0, 2.0], "plan": ["free", None], "note": ["a b", "c"]})
    for estimator in (Perceptron(), rosenblatt.Forgetron(), rosenblatt.DeltaRuleRegressor()):
        with pytest.raises(InvalidData, match=r"could not convert.*column 'plan' holds text; .*OneHotEncoder"):
            estimator.fit(table, [0, 1])
    with pytest.raises(InvalidData, match="X holds text"):
        Perceptron().fit([["free"], ["paid"]], [0, 1])
    assert Perceptron().fit(pd.DataFrame({"age": ["1", "2"]}), [0, 1]).coef_.shape == (1, 1)


def test_a_matrix_of_numbers_is_not_searched_for_text():
    model, X = Perceptron().fit(np.eye(2), [0, 1]), np.full((1_000_000, 2), np.nan)
    tracemalloc.start()
    try:
        with pytest.raises(InvalidData, match="contains NaN"):
            model.predict(X)
        assert tracemalloc.get_traced_memory()[1] < 2 * X.nbytes
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("strange", [np.nan, np.inf, -np.inf])
def test_numbers_whose_sum_overflows_are_finite_all_the_same(strange):
    values = np.full(4, 1e308)
    assert all_finite(values)
    values[2] = strange
    assert not all_finite(values)
