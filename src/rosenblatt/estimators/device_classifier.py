"""Classifiers that learn and predict where their rows are: on the CPU, or on a GPU. Labels and weights of examples are
copied to the machine's memory; rows stay where they are, or are sent where the parameter `device` says."""

from __future__ import annotations

from importlib import import_module
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from rosenblatt.engine.model import LinearModel
from rosenblatt.engine.problems import OneVsOne, Problem, Spread
from rosenblatt.engine.rows import AnyMatrix, DeviceRows, MatrixLike
from rosenblatt.engine.visits import Visits
from rosenblatt.errors import UnsupportedOperation
from rosenblatt.estimators.classifier import Classifier
from rosenblatt.estimators.inputs import read_rows
from rosenblatt.estimators.interface import check_is_fitted
from rosenblatt.gpu.arrays import cuda_device, rows_on_card, send_to_card, to_host
from rosenblatt.gpu.card import card_number

T = TypeVar("T")


def _same_shape(rows: DeviceRows) -> NDArray:
    """Return an array of the same shape that takes no memory, for scikit-learn to check everything but the values."""
    return np.broadcast_to(np.float32(0), rows.shape)


def _refuse_sparse(X: object, device: str) -> None:
    """Raise UnsupportedOperation if rows are sparse, which the kernels of a GPU cannot read."""
    if sp.issparse(X):
        raise UnsupportedOperation(
            f"device={device!r} cannot learn from sparse rows", hint="use X.toarray()", settings={"device": "cpu"}
        )


class DeviceClassifier(Classifier):
    """A classifier whose model is linear, so that a GPU can compute it."""

    def score(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Compute the share of rows whose class is predicted.

        Parameters
        ----------
        X : array or sparse matrix (rows, features)
            The rows.
        y : array (rows,)
            Their labels.
        sample_weight : array (rows,), optional
            How much each row counts.

        Returns
        -------
        float
            From 0 to 1.
        """
        import_module("sklearn.base")  # from which the base of this class has its `score`
        return super().score(X, self._to_host(y, "y"), self._to_host(sample_weight, "sample_weight"))

    def _to_host(self, array: T, name: str) -> T | NDArray:
        """Return a copy of an array on a GPU in the machine's memory; with device="cpu" nothing is copied."""
        return array if self.device == "cpu" else to_host(array, name)

    def _read_to_learn(self, X: Any, y: Any, reset: bool) -> tuple[Any, NDArray]:
        y = self._to_host(y, "y")
        rows = rows_on_card(X, self.device)
        if rows is not None:
            _, y = self._validate(_same_shape(rows), y, reset, order=None)
            return rows, y
        if card_number(self.device) is None:
            return super()._read_to_learn(X, y, reset)
        _refuse_sparse(X, self.device)
        X, y = self._validate(X, y, reset, dtype=(np.float64, np.float32, np.float16))
        return self._to_device(X), y

    def _read_to_predict(self, X: Any) -> Any:
        rows = rows_on_card(X, "cpu" if self.device == "cpu" else "auto")  # whichever card it learned on
        if rows is None:
            return super()._read_to_predict(X)
        read_rows(self, _same_shape(rows), order=None, ensure_all_finite=False)
        self._check_finite(rows, rows)
        return rows

    def _to_device(self, X: AnyMatrix) -> AnyMatrix:
        if isinstance(X, DeviceRows) or card_number(self.device) is None:
            return X
        _refuse_sparse(X, self.device)
        return send_to_card(X, self.device)

    def _winners(self, model: LinearModel, X: AnyMatrix) -> NDArray:
        return model.winners(X)

    def _predict_numbers(self, X: MatrixLike) -> NDArray:
        if cuda_device(X) is None:
            return super()._predict_numbers(X)
        check_is_fitted(self)
        return self._model.winners(self._read_to_predict(X))

    def _refuse_on_card(self, problem: Problem, visits: Visits) -> None:
        """Raise UnsupportedOperation for a problem, or for visits, for which a card has no kernel."""
        if self.keep in ("pocket", "vote"):
            raise self._not_on_card("keep", "average")
        if visits.order == "most-violated":
            raise self._not_on_card("order", "shuffle")
        if isinstance(problem, OneVsOne | Spread):
            raise self._not_on_card("multiclass", "ovr")

    def _not_on_card(self, parameter: str, instead: object) -> UnsupportedOperation:
        setting = f"{parameter}={getattr(self, parameter)!r}"
        return UnsupportedOperation(
            f"{type(self).__name__} with {setting} learns on the CPU only, not on a GPU", settings={parameter: instead}
        )
