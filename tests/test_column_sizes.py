"""Columns of very different size ruin a perceptron, and a warning says so; data that are fine never get it."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, OneHotEncoder, StandardScaler

import rosenblatt
from rosenblatt import Perceptron
from rosenblatt.errors import UnscaledColumns
from rosenblatt.estimators.scaling import unevenness

rng = np.random.default_rng(0)
WINE, KINDS = load_wine(return_X_y=True)
RARE = (rng.random((4000, 60)) < np.geomspace(0.0005, 0.9, 60)).astype(float)  # truth values, most of them rare
WORDS = [" ".join(rng.choice([f"w{k}" for k in range(2000)], 300, p=1 / np.arange(1, 2001) / 8.178368)) for _ in range(300)]


def like_spam(rows=3000):
    """Shares of words, most of them 0, and three lengths of runs, as spambase has them."""
    shares = rng.exponential(0.8, (rows, 54)) * (rng.random((rows, 54)) < 0.15)
    return np.hstack(
        [shares, rng.lognormal(1.0, 1.0, (rows, 1)), rng.lognormal(3.0, 1.2, (rows, 1)), rng.lognormal(5, 1, (rows, 1))]
    )


def fine():
    yield "iris", load_iris().data
    yield "pixels", load_digits().data
    yield "pixels of one byte", load_digits().data * 255 / 16
    yield "truth values", RARE
    yield "sparse truth values", sp.csr_array(RARE)
    yield "±1", 2 * RARE - 1
    yield "standardised truth values", StandardScaler().fit_transform(RARE)
    yield "one-hot", OneHotEncoder().fit_transform(rng.integers(0, 40, (500, 3)))
    yield "words, counted", CountVectorizer().fit_transform(WORDS).astype(float)
    yield "words, weighed", TfidfVectorizer().fit_transform(WORDS)
    yield "a column of zeros", np.hstack([rng.normal(size=(50, 3)), np.zeros((50, 1))])
    yield "one column", rng.normal(size=(50, 1)) * 1e6
    for name, X in (("wine", WINE), ("breast cancer", load_breast_cancer().data), ("shares of words", like_spam())):
        for scaler in (StandardScaler(), MinMaxScaler(), MaxAbsScaler()):
            yield f"{name}, {type(scaler).__name__}", scaler.fit_transform(X)


@pytest.mark.parametrize("X", [pytest.param(X, id=name) for name, X in fine()])
def test_data_that_a_perceptron_learns_as_they_are_get_no_warning(X):
    assert unevenness(X) is None


@pytest.mark.parametrize("X", [WINE, load_breast_cancer().data, like_spam(), sp.csr_array(like_spam()),
    np.float32(WINE), np.hstack([RARE, rng.lognormal(10, 1, (4000, 1))]),
    sp.csr_array(np.hstack([RARE[:, :20], rng.lognormal(10, 1, (4000, 1))])),
    sp.csr_array(sp.hstack([sp.csr_array((4000, 10**6)), WINE[rng.integers(0, 178, 4000)] ** 2]))],
    ids=["wine", "breast cancer", "spam", "sparse spam", "float32", "income", "sparse income", "wide"])  # fmt: skip
def test_a_column_that_drowns_the_others_is_found(X):
    found = unevenness(X)
    assert found.ratio > 50
    assert found.column == np.argmax(np.asarray(abs(X).mean(axis=0)))


def test_fit_warns_once_and_names_column_and_remedy():
    frame = pd.DataFrame(WINE, columns=load_wine().feature_names)
    with pytest.warns(UnscaledColumns, match="column 'proline' is more than 100 times as large as a quarter") as caught:
        Perceptron().fit(frame, KINDS)
    [warning] = caught
    assert warning.filename == __file__
    assert str(warning.message).endswith("scale the columns first: make_pipeline(StandardScaler(), Perceptron())")
    assert 300 < warning.message.ratio < 400
    assert str(pickle.loads(pickle.dumps(warning.message))) == str(warning.message)
    with pytest.warns(UnscaledColumns, match=r"column 12 .* make_pipeline\(MaxAbsScaler\(\), Perceptron\(\)\)"):
        Perceptron().fit(sp.csr_array(WINE), KINDS)
    with pytest.warns(UnscaledColumns) as caught:
        rosenblatt.PassiveAggressiveRegressor().fit(WINE[:, 1:], WINE[:, 0])
    assert caught[0].filename == __file__
    Perceptron().partial_fit(WINE, KINDS, classes=[0, 1, 2])
    make_pipeline(StandardScaler(), Perceptron()).fit(frame, KINDS)


def test_folds_give_the_same_message():
    folds = StratifiedKFold(5, shuffle=True, random_state=0).split(WINE, KINDS)
    learners = [(Perceptron(max_iter=2, tol=None), WINE[train], KINDS[train]) for train, _ in folds]
    with pytest.warns(UnscaledColumns) as caught:
        [learner.fit(X, y) for learner, X, y in learners]
    assert len({str(warning.message) for warning in caught}) == 1


def test_learners_of_second_order_and_kernel_matrices_need_no_scale():
    for learner in (rosenblatt.SecondOrderPerceptron(), rosenblatt.AROW(form="full")):
        scaled = make_pipeline(StandardScaler(), learner)
        assert cross_val_score(learner, WINE, KINDS).mean() > cross_val_score(scaled, WINE, KINDS).mean() - 0.05
    rosenblatt.AROW(form="diagonal").fit(WINE, KINDS)
    rosenblatt.KernelPerceptron(kernel="precomputed").fit(WINE @ WINE.T, KINDS)
    with pytest.warns(UnscaledColumns):
        rosenblatt.KernelPerceptron().fit(WINE, KINDS)


def test_what_is_not_finite_is_refused_without_a_warning():
    with pytest.raises(rosenblatt.errors.InvalidData, match="NaN"):
        Perceptron().fit(np.where(WINE > 1500, np.nan, WINE), KINDS)
