"""A corpus in shards, for iterative parameter mixing: see `rosenblatt.engine.mixing`.

A shard is encoded once. What the models of all shards must agree on (tags, labels, words, the scheme) is known before the
first epoch: each shard says what it has, and the common model knows all of it, in the order of the shards. After that an
epoch of a shard depends on the common model, the shard, and the numbers of both alone, and may be repeated anywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from time import perf_counter

import numpy as np

from rosenblatt.engine.mixing import Change, ShardReport
from rosenblatt.engine.visits import Visits
from rosenblatt.structured.base import StructuredEstimator, StructuredModel, check_pair


class SentenceShard:
    """Some of the examples of a corpus, encoded.

    Parameters
    ----------
    estimator : StructuredEstimator
        What is to learn: a tagger, a parser, or a structured perceptron.
    X : iterable
        The sentences, or whatever the estimator learns from.
    y : iterable
        The right answer for each.
    """

    def __init__(self, estimator: StructuredEstimator, X: Iterable, y: Iterable):
        X, y = check_pair(X, y)
        self.size = len(X)
        self._corpus, self._names = estimator._shard_corpus(X, y)

    def names(self) -> object:
        """Return what `common_model` must know of this shard.

        Returns
        -------
        object
            Of the estimator's own kind; it can be pickled.
        """
        return self._names

    def learn(
        self, estimator: StructuredEstimator, model: StructuredModel, number: int, shard: int, seed: int
    ) -> tuple[ShardReport, Change]:
        """Make one epoch from the weights of the common model, which stays as it is.

        Parameters
        ----------
        estimator : StructuredEstimator
            What learns, with the parameters of the one that the shard was made for.
        model : StructuredModel
            The common model.
        number : int
            The number of the epoch, from 1.
        shard : int
            The number of this shard, from 0.
        seed : int
            The random seed of the orders of visit.

        Returns
        -------
        report : ShardReport
            What the shard did.
        change : Change
            What it changed.
        """
        started = perf_counter()
        visits = Visits(np.arange(self.size), estimator.order, np.random.default_rng([seed, number, shard]))
        trainer = estimator._shard_trainer(model, self._corpus, visits, shard)
        done, converged = trainer.epoch(visits.epoch())
        change = trainer.model.change_since(model)
        seconds = perf_counter() - started
        return ShardReport(self.size, done.mistakes, done.updates, seconds, change.nbytes, converged), change


def common_model(estimator: StructuredEstimator, names: Sequence) -> StructuredModel:
    """Return a model that has learned nothing and knows what all shards need.

    Parameters
    ----------
    estimator : StructuredEstimator
        What is to learn.
    names : sequence
        What `SentenceShard.names` answered, in the order of the shards.

    Returns
    -------
    StructuredModel
    """
    model = estimator._common_model(estimator._plan(), names)
    model.trained_with = estimator._search_name()
    return model
