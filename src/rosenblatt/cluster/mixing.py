"""A learner that is fitted on a cluster, with scikit-learn's manners."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from rosenblatt.cluster.collections import is_collection
from rosenblatt.cluster.fitting import fit
from rosenblatt.estimators.interface import ClassifierMixin, Learner, available_if, check_is_fitted, clone

if TYPE_CHECKING:
    from distributed import Client

    from rosenblatt.cluster.report import MixingReport


class Mixing(ClassifierMixin, Learner):
    """An estimator that is fitted on a Dask cluster, by iterative parameter mixing (McDonald, Hall and Mann 2010).

    Parameters
    ----------
    estimator : estimator
        What learns: a perceptron or another learner that is a margin and a step, a tagger or a parser.
    client : distributed.Client or str, optional
        A client, the address of a scheduler, or "local" for worker processes on this machine; by default the current Dask
        client if there is one, else "local".
    shards : int, optional
        The number of shards; by default it depends on the data alone. One shard is ordinary training.
    mixing : {"uniform", "mistakes", "changed"}, optional
        How the weights of shards are mixed: see `rosenblatt.cluster.fit`.
    checkpoint : path, optional
        A file to which the training is saved after every epoch, atomically.

    Attributes
    ----------
    estimator_ : estimator
        The fitted copy of the estimator. What it has (`coef_`, `classes_`, `certify`, `save`) can be asked of it.
    report_ : MixingReport or None
        What the shards did in each epoch; None after a fit with one shard.
    classes_ : array
        The labels.

    Examples
    --------
    >>> from rosenblatt import Perceptron
    >>> from rosenblatt.cluster import Mixing
    >>> Mixing(Perceptron(), shards=4)
    Mixing(estimator=Perceptron(), shards=4)
    """

    def __init__(
        self,
        estimator: Learner,
        *,
        client: Client | str | None = None,
        shards: int | None = None,
        mixing: str | None = None,
        checkpoint: str | PathLike | None = None,
    ):
        self.estimator = estimator
        self.client = client
        self.shards = shards
        self.mixing = mixing
        self.checkpoint = checkpoint

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __sklearn_clone__(self) -> Mixing:
        params = self.get_params(deep=False)
        return Mixing(**params | {"estimator": clone(self.estimator)})  # a client cannot be copied

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimator_")

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the estimator on the cluster.

        Parameters
        ----------
        X : arrays, Dask collection, sentences or paths
            The examples: see `rosenblatt.cluster.fit`.
        y : array, Dask collection, list or str, optional
            The labels.
        sample_weight : array or Dask array, optional
            The weight of each row.

        Returns
        -------
        self
        """
        self.estimator_ = fit(
            self.estimator, X, y, client=self.client, shards=self.shards, mixing=self.mixing, sample_weight=sample_weight,
            checkpoint=self.checkpoint,
        )  # fmt: skip
        self.report_: MixingReport | None = getattr(self.estimator_, "mixing_", None)
        self.classes_ = getattr(self.estimator_, "classes_", None)
        if hasattr(self.estimator_, "n_features_in_"):
            self.n_features_in_ = self.estimator_.n_features_in_
        return self

    def predict(self, X: Any) -> Any:
        """Predict the label of each row, or the answer for each sentence.

        Parameters
        ----------
        X : array, sparse matrix, DataFrame, sentences, or a Dask array or DataFrame
            The examples.

        Returns
        -------
        array or list
            The predictions; a Dask array or Series, not yet computed, for a Dask collection.
        """
        check_is_fitted(self)
        return self._apply(self.estimator_.predict, X, self._label_type())

    @available_if(lambda self: hasattr(getattr(self, "estimator_", self.estimator), "decision_function"))
    def decision_function(self, X: Any) -> Any:
        """Compute the scores of rows.

        Parameters
        ----------
        X : array, sparse matrix, DataFrame, or a Dask array
            The rows.

        Returns
        -------
        array (rows,) or (rows, classes)
        """
        check_is_fitted(self)
        return self.estimator_.decision_function(X.compute() if is_collection(X) else X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Compute the share of right predictions.

        Parameters
        ----------
        X : examples
            As `predict` takes them.
        y : array, Dask array or list
            The right labels.
        sample_weight : array, optional
            The weight of each row.

        Returns
        -------
        float
        """
        check_is_fitted(self)
        if is_collection(X):
            right = self.predict(X) == y
            return float(
                (right if sample_weight is None else right * sample_weight / sample_weight.mean()).mean().compute()
            )
        if sample_weight is None:
            return self.estimator_.score(X, y)
        return self.estimator_.score(X, y, sample_weight=sample_weight)

    def _label_type(self) -> np.dtype:
        return np.dtype(object) if self.classes_ is None else np.asarray(self.classes_).dtype

    def _apply(self, function: Any, X: Any, dtype: np.dtype) -> Any:
        """The results of a function of rows, block by block where they are on a cluster."""
        if not is_collection(X):
            return function(X)
        if hasattr(X, "columns"):
            import pandas as pd

            return X.map_partitions(
                lambda part: pd.Series(function(part) if len(part) else np.empty(0, dtype), part.index),
                meta=pd.Series(np.empty(0, dtype)),
            )
        X = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
        return X.map_blocks(function, drop_axis=1, dtype=dtype, meta=np.empty(0, dtype))
