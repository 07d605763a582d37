"""Progressive evaluation is the loop it documents, for every kind of model, and its counts are those of the learners."""

import numpy as np
import pytest
import scipy.sparse as sp

from rosenblatt import Perceptron
from rosenblatt.online import progressive
from rosenblatt.online.progressive import rows
from rosenblatt.testing import laws


class Memory:
    """Predicts the label that a row had last time."""

    def __init__(self):
        self.known = {}

    def predict_one(self, x):
        return self.known.get(tuple(x))

    def learn_one(self, x, y, w=1.0):
        if w:
            self.known[tuple(x)] = y


def stream(length=60):
    X, y = laws.data(3, rows=length)
    return X, np.array(["a", "b", "c"])[y]


@pytest.mark.parametrize("every", [1, 7, 1000])
def test_it_is_the_loop_it_documents(every):
    X, y = stream()
    model, expected, mistakes = Memory(), [], 0
    for seen, (x, label) in enumerate(zip(X, y, strict=True), 1):
        mistakes += model.predict_one(x) != label
        model.learn_one(x, label)
        if seen % every == 0 or seen == len(y):
            expected.append((seen, mistakes))
    course = progressive(Memory(), zip(X, y, strict=True), every=every)
    assert list(zip(course.seen, course.mistakes, strict=True)) == expected
    assert np.allclose(course.error, course.mistakes / course.seen)
    assert (course.recent * np.diff(course.seen, prepend=0)).sum() == pytest.approx(course.mistakes[-1])


def test_scikit_learn_classifiers_learn_row_by_row():
    X, y = stream()
    clf, whole = Perceptron(), Perceptron().partial_fit(X, y, classes=np.unique(y))
    course = progressive(clf, zip(X, y, strict=True), classes=np.unique(y))
    assert np.array_equal(clf.coef_, whole.coef_)
    wrong = 1  # nothing is predicted before the first example
    other = Perceptron().partial_fit(X[:1], y[:1], classes=np.unique(y))
    for x, label in zip(X[1:], y[1:], strict=True):
        wrong += other.predict([x])[0] != label
        other.partial_fit([x], [label])
    assert course.mistakes[-1] == wrong <= whole.n_mistakes_
    sparse = Perceptron()
    again = progressive(sparse, rows(sp.csr_matrix(X), y), classes=np.unique(y))
    assert np.array_equal(again.mistakes, course.mistakes)
    assert np.array_equal(sparse.coef_, clf.coef_)


def test_weights_go_along_and_regret_is_against_somebody():
    X, y = stream()
    skipped = progressive(Memory(), ((x, label, 0.0) for x, label in zip(X, y, strict=True)))
    assert skipped.mistakes[-1] == len(y)
    weighted = Perceptron()
    progressive(weighted, ((x, label, 2.0) for x, label in zip(X, y, strict=True)), classes=np.unique(y))
    assert np.array_equal(weighted.coef_, 2 * Perceptron().partial_fit(X, y, classes=np.unique(y)).coef_)
    best = Perceptron(max_iter=200).fit(X, y)
    course = progressive(Memory(), zip(X, y, strict=True), against=best)
    assert course.rival[-1] == (best.predict(X) != y).sum()
    assert np.array_equal(course.regret, course.mistakes - course.rival)


def test_an_empty_stream_and_what_cannot_be(capsys):
    course = progressive(Memory(), [])
    assert course.seen.tolist() == course.mistakes.tolist() == [0]
    assert course.error.tolist() == course.recent.tolist() == [0.0]
    with pytest.raises(AttributeError, match="against"):
        course.regret  # noqa: B018
    with pytest.raises(ValueError, match="every must be a whole number ≥ 1; got 0"):
        progressive(Memory(), [], every=0)
    with pytest.raises(TypeError, match="cannot predict"):
        progressive(object(), [])
    with pytest.raises(ValueError, match="as many"):
        rows(sp.eye(3), [1])
    X, y = stream()
    progressive(Memory(), zip(X, y, strict=True), every=30, verbose=1)
    assert "60 examples" in capsys.readouterr().err
