"""Figures on real data: `make reproduce DATA=folder`. Each names the file it needs."""

import numpy as np
import pytest
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import StratifiedKFold, cross_val_score

from rosenblatt import Perceptron, blocks
from rosenblatt.theory import Inseparable, Separable, gamma_affine, gamma_origin, gamma_padded, separability

pytestmark = pytest.mark.reproduce


@pytest.fixture(scope="module")
def mnist(data_folder):
    with np.load(data_folder / "mnist.npz") as file:
        parts = [file[name] for name in ("x_train", "y_train", "x_test", "y_test")]
    X, y, X_test, y_test = parts
    return tuple(
        part.reshape(len(part), -1).astype(np.float32) / 255 if part.ndim == 3 else part for part in (X, y, X_test, y_test)
    )


def test_mnist_averaged_joint(mnist):
    X, y, X_test, y_test = mnist
    clf = Perceptron(keep="average", max_iter=5, tol=None).fit(X, y)
    assert clf.score(X_test, y_test) >= 0.92


@pytest.mark.parametrize("multiclass", ["joint", "ovr"])
def test_mnist_by_blocks_makes_the_same_mistakes(mnist, multiclass, monkeypatch):
    X, y, *_ = mnist
    runs = []
    for pays in (False, True):
        monkeypatch.setattr(blocks, "pays", lambda rows, problem, pays=pays: pays)
        runs.append(Perceptron(multiclass=multiclass, order="cyclic", keep="average", max_iter=3, tol=None).fit(X, y))
    one, other = runs
    assert [epoch[1:4] for epoch in one.history_] == [epoch[1:4] for epoch in other.history_]
    assert np.array_equal(one.last_coef_, other.last_coef_)
    assert np.array_equal(one.coef_, other.coef_)


def test_news20_with_a_margin_beats_scikit_learns_averaged_perceptron(data_folder):
    X, y = load_svmlight_file(str(data_folder / "news20.svm.bz2"), dtype=np.float32)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    margin = float(X.multiply(X).sum(axis=1).mean())  # the scale on which margins grow; no label was looked at
    ours = Perceptron(keep="average", margin=margin, max_iter=5, tol=None)
    theirs = SGDClassifier(
        loss="perceptron",
        learning_rate="constant",
        eta0=1,
        penalty=None,
        average=True,
        max_iter=5,
        tol=None,
        random_state=0,
    )
    ours, theirs = (cross_val_score(model, X, y, cv=folds).mean() for model in (ours, theirs))
    assert ours >= theirs


def test_mushrooms_are_separable(data_folder):
    X, y = load_svmlight_file(str(data_folder / "mushrooms.svm.gz"))
    clf = Perceptron(tol=None).fit(X, y)
    assert clf.stop_reason_ == "converged"
    assert clf.score(X, y) == 1.0


@pytest.mark.parametrize(
    ("file", "kind"), [("mushrooms.svm.gz", Separable), ("a9a.train.svm.gz", Inseparable), ("w8a.svm.gz", Inseparable)]
)
@pytest.mark.parametrize("method", ["auto", "nearest"])
def test_separability_is_proved(data_folder, file, kind, method):
    X, y = load_svmlight_file(str(data_folder / file))
    proof = separability(X, y, method=method)
    assert isinstance(proof, kind)
    assert proof.verify(X, y)
    assert not proof.verify(X, -y) or kind is Inseparable
    if kind is Inseparable:
        assert len(proof.rows) <= X.shape[1] + 2  # with the intercept there are d + 1 dimensions


def test_the_margin_of_mushrooms_is_bracketed(data_folder):
    X, y = load_svmlight_file(str(data_folder / "mushrooms.svm.gz"))
    origin, padded, affine = gamma_origin(X, y), gamma_padded(X, y), gamma_affine(X, y)
    assert max(margin.gap for margin in (origin, padded, affine)) <= 1e-6
    assert all(margin.verify(X, y) for margin in (origin, padded, affine))
    assert origin.upper <= padded.upper <= affine.upper
    assert affine.lower == pytest.approx(0.2569580485, rel=1e-8)
