"""A model behind the server: the state that is published, and the learners that take turns."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from rosenblatt.serve.history import HistoryView
from rosenblatt.serve.learners import NOTHING_NEW, Label, Row, ServedLearner, Specification
from rosenblatt.serve.log import ModelRecord
from rosenblatt.serve.state import Example, Outcome, State, learn_again, learn_examples


class Published(NamedTuple):
    """What is served of a model: it does not change any more."""

    learner: ServedLearner
    history: HistoryView
    seq: int
    changed: int  # milliseconds since 1970


class Admitted:
    """The examples of a model that a commit will have, and that it has not learned yet."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.labels: set[Label] = set()
        self.most_names = NOTHING_NEW  # as if no name were known


class ServedModel:
    """A model of the server.

    Parameters
    ----------
    record : ModelRecord
        Its name and number.
    state : State
        Its state.
    chain : bytes
        The checksum of its last entry.
    changed : int
        When that was written.
    """

    def __init__(self, record: ModelRecord, state: State, chain: bytes, changed: int):
        self.record = record
        self.specification: Specification = state.specification
        self.snapshots: tuple[int, ...] = ()
        self.archived = 0  # the last entry that was archived
        self.log_bytes = 0
        self.failure: str | None = None  # an error that is a bug; the model predicts, and learns no more
        # what follows belongs to the thread of the writer
        self.seq, self.chain, self.time = state.seq, chain, changed
        self.examples_since, self.bytes_since, self.snapshot_seq = 0, 0, 0
        self.admitted = Admitted()
        self._pins: Counter[int] = Counter()
        self._free = threading.Event()  # the loop has published what it was told to
        self.install(state)
        self.published = self.publishable()
        self._free.set()

    @property
    def name(self) -> str:
        """The name."""
        return self.record.name

    # In the thread of the loop

    def publish(self, published: Published) -> None:
        """Serve another state from now on."""
        self.published = published
        self._free.set()

    def pin(self, learner: ServedLearner, by: int) -> None:
        """Say that a prediction that takes several steps of the loop has begun to use a learner (1), or has ended (−1)."""
        self._pins[id(learner)] += by

    # In the thread of the writer

    def mark(self) -> tuple[int, bytes, int, int, int]:
        """Return what a commit that fails must leave as it was."""
        return self.seq, self.chain, self.time, self.log_bytes, self.bytes_since

    def go_back(self, mark: tuple[int, bytes, int, int, int]) -> None:
        """Return to what `mark` returned."""
        self.seq, self.chain, self.time, self.log_bytes, self.bytes_since = mark

    def install(self, state: State) -> None:
        """Go on from a state, with two learners of its own."""
        self._front, self._back = state.learner, state.learner.copy()
        self.history = state.history
        self._missed: list[tuple[Sequence[Example], Outcome]] = []
        self._new: list[tuple[Sequence[Example], Outcome]] = []

    def learn(self, examples: Sequence[Example], seq: int, time: int) -> Outcome:
        """Learn from the examples of an entry with the learner that is not published."""
        self.catch_up()
        outcome = learn_examples(self._back, examples, self.history, seq, time)
        self._new.append((examples, outcome))
        return outcome

    def catch_up(self) -> None:
        """Let the learner that is not published have all that the other one has."""
        if not self._missed:
            return
        while not self._free.wait(1.0) or self._pins[id(self._back)]:
            threading.Event().wait(0.001)
        for examples, outcome in self._missed:
            learn_again(self._back, examples, outcome)
        self._missed = []

    def publishable(self) -> Published:
        """Return the newest state, to be published; if there are new examples, the learners change places."""
        if self._new:
            self._front, self._back = self._back, self._front
            self._missed, self._new = self._new, []
        self._free.clear()
        return Published(self._front, self.history.view(), self.seq, self.time)

    @property
    def newest(self) -> ServedLearner:
        """The learner that has all entries."""
        return self._back if self._new else self._front
