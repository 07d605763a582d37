"""The online perceptron as a River classifier, for River's pipelines, metrics and checks. River is needed for this and for
nothing else: the class `RiverPerceptron` is made on its first use."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from rosenblatt.errors import MissingDependency
from rosenblatt.online.perceptron import OnlinePerceptron


def as_river(model: OnlinePerceptron) -> Any:
    """Convert an online perceptron to a River classifier, which has learned the same and shares nothing with it.

    Parameters
    ----------
    model : OnlinePerceptron
        The model.

    Returns
    -------
    classifier : river.base.MiniBatchClassifier

    Raises
    ------
    MissingDependency
        River is not installed.

    Examples
    --------
    >>> from river import evaluate, metrics, preprocessing
    >>> from rosenblatt.online import OnlinePerceptron
    >>> stream = [({"height": k % 7, "weight": k % 5}, k % 7 > k % 5) for k in range(200)]
    >>> model = preprocessing.StandardScaler() | as_river(OnlinePerceptron(keep="average"))
    >>> evaluate.progressive_val_score(stream, model, metrics.Accuracy()).get() > 0.9
    True
    """
    twin = _river_perceptron()(**model.get_params(deep=False))
    twin.__setstate__(model.clone(include_attributes=True).__getstate__())
    return twin


@cache
def _river_perceptron() -> Any:
    try:
        base: Any = import_module("river.base")
    except ImportError:
        raise MissingDependency("river", "river", "River classifiers") from None

    class RiverPerceptron(OnlinePerceptron, base.MiniBatchClassifier):
        __doc__ = OnlinePerceptron.__doc__
        __module__, __qualname__ = __name__, "RiverPerceptron"

        @property
        def _multiclass(self) -> bool:
            return True

        def predict_many(self, X: Any) -> Any:
            """Predict the label of each row; a Series for a pandas DataFrame."""
            labels = super().predict_many(X)
            return type(X.iloc[:, 0])(labels, index=X.index) if hasattr(X, "iloc") else labels

    return RiverPerceptron


def __getattr__(name: str) -> Any:
    if name == "RiverPerceptron":
        return _river_perceptron()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
