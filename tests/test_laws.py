"""The laws hold for the perceptron in each of its forms, and each law notices when it is broken."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin

from rosenblatt import Perceptron
from rosenblatt.testing import laws

FORMS = {
    "last": Perceptron(),
    "average": Perceptron(keep="average", margin=1.0, max_iter=6),
    "vote": Perceptron(keep="vote", max_iter=4),
    "pocket": Perceptron(keep="pocket", max_iter=6),
    "ovr": Perceptron(multiclass="ovr", keep="average", max_iter=6),
    "ovo": Perceptron(multiclass="ovo", class_weight="balanced", max_iter=6),
    "grow": Perceptron(unknown_class="grow", fit_intercept=False, max_iter=6),
}
STREAMS = (laws.any_chunking_is_the_same, laws.saved_goes_on_as_if_never_stopped)


@pytest.mark.parametrize("law", laws.LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("form", FORMS)
def test_law(form, law):
    if form == "pocket" and law in STREAMS:
        with pytest.raises(ValueError, match="keep='pocket' cannot be used with partial_fit"):
            law(FORMS[form])
        return
    law(FORMS[form])


class Unlawful(ClassifierMixin, BaseEstimator):
    """A learner with one fault, named by its parameter."""

    def __init__(self, fault="", fit_intercept=True, max_iter=10, tol=None, n_jobs=None):
        self.fault, self.fit_intercept, self.max_iter, self.tol, self.n_jobs = fault, fit_intercept, max_iter, tol, n_jobs

    def fit(self, X, y, sample_weight=None):
        if self.fault == "layouts" and sp.issparse(X):
            X = X * 2
        if self.fault == "writes" and isinstance(X, np.ndarray) and X.flags.writeable and X.dtype == np.float32:
            X[0, 0] += 1
        inner = Perceptron(order="cyclic", max_iter=3)
        weight = np.maximum(sample_weight, 0.1) if self.fault == "weights" and sample_weight is not None else sample_weight
        self.inner_ = inner.fit(X, y, sample_weight=weight)
        self.classes_ = self.inner_.classes_
        self.coef_ = self.inner_.coef_.copy()
        if self.fault == "seed":
            self.coef_ = self.coef_ + np.random.default_rng().integers(1, 10**9)
        if self.fault == "names":
            self.coef_[:, 0] += 1
        self.n_updates_ = 10**9 if self.fault == "bound" else self.inner_.n_updates_
        self.n_mistakes_ = self.inner_.n_mistakes_
        self.stop_reason_ = "converged"
        return self

    def partial_fit(self, X, y, classes=None):
        if self.fault == "errors" and hasattr(self, "coef_"):
            self.coef_ = self.coef_ + 1
        inner = getattr(self, "inner_", Perceptron())
        short = self.fault == "chunks" and len(X) > 1
        self.inner_ = inner.partial_fit(X[1:] if short else X, y[-len(X) + 1 :] if short else y, classes=classes)
        self.classes_ = self.inner_.classes_
        self.coef_ = self.inner_.coef_
        return self

    def __getstate__(self):
        state = super().__getstate__()
        return {**state, "inner_": Perceptron()} if self.fault == "saves" else state

    def predict(self, X):
        if self.fault == "impure":
            self.coef_ = self.coef_ + 1
        return self.inner_.predict(X)

    def mistake_bound(self, radius, margin):
        return self.inner_.mistake_bound(radius, margin) if hasattr(self, "inner_") else 10**6


BROKEN = {
    "chunks": "any_chunking_is_the_same",
    "weights": "weight_zero_is_absence",
    "layouts": "layouts_agree",
    "writes": "layouts_agree",
    "seed": "seed_fixes_every_byte",
    "names": "names_do_not_matter",
    "impure": "prediction_is_pure",
    "bound": "mistakes_obey_the_bound",
    "errors": "an_error_changes_nothing",
}


@pytest.mark.parametrize(("fault", "law"), BROKEN.items())
def test_a_broken_law_is_noticed(fault, law):
    with pytest.raises(AssertionError):
        getattr(laws, law)(Unlawful(fault))


def test_check_names_the_law():
    with pytest.raises(AssertionError, match="Unlawful breaks the law 'any_chunking_is_the_same'"):
        laws.check(Unlawful("chunks"))
    laws.check(Unlawful())
