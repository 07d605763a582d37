"""Linear learners in shards of rows: classes and columns are agreed on, then it is a run like any other."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from rosenblatt.cluster.rows import RowSetup, RowSummary
from rosenblatt.cluster.run import Finished, Run, RunOptions, RunShards, set_history
from rosenblatt.cluster.sums import NO_FACTS, NewLabels
from rosenblatt.engine.mixing import MixingTrainer
from rosenblatt.engine.rows import Rows, as_rows
from rosenblatt.engine.train import Limits
from rosenblatt.errors import InvalidData, InvalidParameter, UnsupportedOperation
from rosenblatt.estimators import targets
from rosenblatt.estimators.linear import Linear
from rosenblatt.workflow.labels import Labels


def not_mixable(learner: object) -> UnsupportedOperation:
    """Return the error for a learner whose weights cannot be mixed."""
    return UnsupportedOperation(
        f"{type(learner).__name__} cannot be trained in shards: its state is more than weights that can be mixed",
        hint="Perceptron, PassiveAggressiveClassifier, MIRA, PAUM, SequenceTagger, TransitionParser, GraphParser and "
        "StructuredPerceptron can",
    )


def check_linear(learner: Linear) -> None:
    """Refuse what cannot be learned in shards."""
    if not learner._mixes:
        raise not_mixable(learner)
    params = learner.get_params()
    for name, allowed in (
        ("keep", ("auto", "average", "last")),
        ("order", ("shuffle", "cyclic")),
        ("device", ("auto", "cpu")),
    ):
        if getattr(learner, name) not in allowed:
            raise InvalidParameter(name, getattr(learner, name), f"one of {', '.join(map(repr, allowed))} with shards")
    if params.get("early_stopping"):
        raise UnsupportedOperation(
            "early_stopping=True cannot be used with shards, none of which sees all rows",
            settings={"early_stopping": False},
        )
    if params.get("max_updates") is not None:
        raise UnsupportedOperation(
            "max_updates cannot be used with shards: none knows how many updates the others have made", hint="use max_iter"
        )


LabelsOf = Callable[[Sequence[NDArray]], tuple[NDArray, Callable[[NDArray], NDArray]]]


class Agreement(NamedTuple):
    """What all shards of rows have in common."""

    classes: NDArray  # the labels, in the order of their numbers
    number: Callable[[NDArray], NDArray]  # the class number of each label
    features: int
    rows: Rows  # none, with the type and the layout that all have
    counts: NDArray  # (classes,) int64: rows of each
    examples: int
    whole: bool  # whether all rows have been read
    weighted: bool  # whether rows have weights other than 1


def agree_on(summaries: Sequence[RowSummary], more: Sequence[NDArray], labels_of: LabelsOf) -> Agreement:
    """Return what shards have in common; `labels_of` makes classes and what numbers them from the labels of all shards and
    from more of them, which are known to be there."""
    present = [summary for summary in summaries if summary.rows]
    if not present:
        raise InvalidData("there are no rows to learn from")
    features = {summary.features for summary in present}
    sparse = all(summary.sparse for summary in present)
    if len(features) > 1 and not sparse:
        raise InvalidData(f"the shards have rows of different lengths: {min(features)} and {max(features)} columns")
    classes, number = labels_of([*(summary.labels for summary in present), *more])
    if len(classes) < 2 and all(summary.whole for summary in summaries):
        raise InvalidData(f"y must name at least two classes; it has one class only: {classes[0]!r}")
    counts = np.zeros(len(classes), np.int64)
    for summary in present:
        np.add.at(counts, number(summary.labels), summary.counts)
    dtype = np.result_type(*(summary.dtype for summary in present))
    return Agreement(
        classes, number, max(features), _no_rows(max(features), dtype, sparse), counts,
        sum(summary.rows for summary in summaries), all(summary.whole for summary in summaries),
        any(summary.weighted for summary in present),
    )  # fmt: skip


def _no_rows(features: int, dtype: np.dtype, sparse: bool) -> Rows:
    if not sparse:
        return as_rows(np.empty((0, features), dtype))
    return as_rows(csr_array((0, features), dtype=dtype))


class LinearRun(Run):
    """A training of a linear learner in shards of rows."""

    learner: Linear

    def __init__(self, learner: Linear, shards: RunShards, options: RunOptions, seed: int, shuffle: bool):
        super().__init__(learner, shards, options, seed)
        self.shuffle = shuffle
        self.facts = NO_FACTS  # what shards found out about files

    def fit(
        self,
        summaries: Sequence[RowSummary],
        labels_of: LabelsOf,
        limits: Callable[[Agreement], Limits],
        sum_class_counts: bool = False,
        renew: Callable[[NDArray], None] = lambda labels: None,
    ) -> Finished:
        """Train; the classes of the learner are its labels in the end. With `sum_class_counts` it counts the rows of each
        class in every epoch, as a stream does. `renew` is told of labels that the first rows did not have."""
        more: list[NDArray] = [] if self.found is None or self.found.labels is None else [self.found.labels]
        while True:
            agreement = agree_on(summaries, more, labels_of)
            try:
                return self._fit(agreement, limits(agreement), sum_class_counts)
            except NewLabels as new:
                more = [*more, *new.labels]
                renew(labels_of(more)[0])

    def _fit(self, agreement: Agreement, limits: Limits, sum_class_counts: bool) -> Finished:
        learner, classes = self.learner, len(agreement.classes)
        if self.found is None:
            plan = learner._plan()
            learner._begun(agreement.features, classes_=np.arange(classes), class_count_=np.zeros(classes, np.int64))
            learner.n_mistakes_ = 0
            learner._model = learner._initial_model(plan, agreement.rows, agreement.features, classes, None)
        setup = self._setup(agreement, learner)

        def after(trainer: MixingTrainer) -> None:
            learner.n_features_in_ = len(learner._model.weights.w) - 1
            if self.shards.sum is not None and self.shards.sum.class_count is not None:
                self.facts = self.shards.sum.facts
                learner.class_count_ = learner.class_count_ + self.shards.sum.class_count

        finished = self.train(learner._model, setup, limits, agreement.classes, after)
        set_history(learner, finished.history, finished.reason)
        self._set_conditions(finished, agreement)
        if not finished.history[-1].mistakes and learner.keep == "auto" and agreement.whole:
            learner._model.extend_average(agreement.examples, self.shards.count_errors)
        if not sum_class_counts:
            learner.class_count_ = agreement.counts
        learner.classes_ = agreement.classes
        return finished

    def _setup(self, agreement: Agreement, learner: Linear) -> RowSetup:
        """What is sent to the workers: the learner without its weights, which are sent apart."""
        bare = copy.copy(learner)
        bare.__dict__.pop("_model")
        bare.history_ = []
        bare.class_weight = self._class_weight(agreement)
        bare.n_jobs = 1  # a worker has as many tasks as it has threads
        return RowSetup(bare, agreement.number, self.seed, self.shuffle)

    def _class_weight(self, agreement: Agreement) -> Any:
        """The weights of classes by their numbers; "balanced" as it comes out for all rows."""
        weights = self.learner.class_weight
        if weights is None:
            return None
        if isinstance(weights, str):
            if not agreement.whole:
                raise UnsupportedOperation(
                    "class_weight='balanced' needs the number of rows of each class before the first epoch, and a stream "
                    "does not tell it",
                    hint="give the weight of each class",
                )
            present = np.count_nonzero(agreement.counts)
            return dict(enumerate((agreement.counts.sum() / (present * np.maximum(agreement.counts, 1))).tolist()))
        numbers = agreement.number(np.array(list(weights)))
        if (numbers < 0).any():
            allowed = f"a dictionary whose keys are among the classes {agreement.classes.tolist()}"
            raise InvalidParameter("class_weight", weights, allowed)
        return dict(zip(numbers.tolist(), weights.values(), strict=True))

    def _set_conditions(self, finished: Finished, agreement: Agreement) -> None:
        """Say to `certify` under which conditions the updates were made."""
        learner = self.learner
        batch = learner.batch if isinstance(learner.batch, int) else agreement.examples
        model = learner._model
        is_mixture = self.options.mixing != "changed"
        weighted = agreement.weighted or learner.class_weight is not None
        model.conditions = model.conditions.further(learner._rule(), int(batch), True, weighted)._replace(
            mixed=not is_mixture, weighted_updates=finished.report.weighted_updates if is_mixture else None
        )


def labels_of_arrays(labels: Sequence[NDArray]) -> tuple[NDArray, Any]:
    """Return the classes of labels in memory, sorted, and what numbers them."""
    classes = np.unique(np.concatenate(labels))
    return classes, partial(targets.numbers, classes=classes)


def labels_of_files(labels: Sequence[NDArray]) -> tuple[NDArray, Any]:
    """Return the classes of labels in files, sorted, and what numbers them."""
    known = Labels(label for part in labels for label in part.tolist())
    return known.classes(), known.numbers
