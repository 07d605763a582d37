"""The online perceptron as a River classifier, for River's pipelines, metrics and checks. River is needed for this and for
nothing else: `RiverPerceptron` is made when it is asked for."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from rosenblatt.online.perceptron import OnlinePerceptron


def as_river(model: OnlinePerceptron) -> Any:
    """A River classifier with the parameters of a model that has learned what it has; the two share nothing.

    >>> from rosenblatt.online import OnlinePerceptron, as_river
    >>> from river import evaluate, metrics, preprocessing                                      # doctest: +SKIP
    >>> model = preprocessing.StandardScaler() | as_river(OnlinePerceptron(keep="average"))     # doctest: +SKIP
    >>> evaluate.progressive_val_score(stream, model, metrics.Accuracy())                       # doctest: +SKIP
    """
    twin = _river_perceptron()(**model.get_params(deep=False))
    twin.__setstate__(model.clone(include_attributes=True).__getstate__())
    return twin


@cache
def _river_perceptron() -> Any:
    try:
        base: Any = import_module("river.base")
    except ImportError:
        raise ImportError("a River classifier needs River, which is not installed: pip install river") from None

    class RiverPerceptron(OnlinePerceptron, base.MiniBatchClassifier):
        __doc__ = OnlinePerceptron.__doc__
        __module__, __qualname__ = __name__, "RiverPerceptron"

        @property
        def _multiclass(self) -> bool:
            return True

        def predict_many(self, X: Any) -> Any:
            """The label of each row; a Series for a pandas DataFrame."""
            labels = super().predict_many(X)
            return type(X.iloc[:, 0])(labels, index=X.index) if hasattr(X, "iloc") else labels

    return RiverPerceptron


def __getattr__(name: str) -> Any:
    if name == "RiverPerceptron":
        return _river_perceptron()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
