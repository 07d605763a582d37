"""Which rows an epoch visits, and in which order."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Visits(NamedTuple):
    """Which rows are visited, in which order, how many before the weights change, and by how many threads."""

    live: NDArray  # (rows that count,) int64
    order: str  # cyclic, shuffle, random, most-violated
    rng: np.random.Generator
    batch: int = 1
    mean: bool = False
    scales: NDArray | None = None  # what most-violated divides margins by
    threads: int = 1
    ahead: OrderAhead | None = None  # draws the order of the next epoch during this one

    def epoch(self) -> NDArray:
        """The rows of the next epoch."""
        if self.ahead is not None:
            return self.ahead.next_order(self)
        if self.order == "shuffle":
            return self.rng.permutation(self.live)
        if self.order == "random":
            return self.rng.choice(self.live, len(self.live))
        return self.live


class DrawnOrder(NamedTuple):
    """The order that follows from a state of the random generator, and the state after it."""

    before: bytes  # the state, pickled
    order: NDArray  # (rows,) int64
    after: dict  # the state that drawing the order leaves


class OrderAhead:
    """Draws the order of the next epoch in another thread, while rows are visited in the order of this one.

    To shuffle millions of numbers takes as long as a GPU takes to learn from as many rows. The thread uses a copy of the
    random generator, and the generator itself advances only when the order is used, as if it had been drawn then.
    """

    def __init__(self) -> None:
        self.thread = ThreadPoolExecutor(1, "rosenblatt-order")
        self.coming: Future[DrawnOrder] | None = None

    def next_order(self, visits: Visits) -> NDArray:
        """Return the order of the next epoch, and begin to draw the one after it."""
        plain, generator = visits._replace(ahead=None), visits.rng.bit_generator
        drawn = None if self.coming is None else self.coming.result()
        if drawn is not None and drawn.before == pickle.dumps(generator.state):
            order, generator.state = drawn.order, drawn.after
        else:  # the first epoch, or somebody else has drawn from the generator meanwhile
            order = plain.epoch()
        self.coming = self.thread.submit(_draw, plain._replace(rng=copy.deepcopy(visits.rng)))
        return order


def _draw(visits: Visits) -> DrawnOrder:
    before = pickle.dumps(visits.rng.bit_generator.state)
    return DrawnOrder(before, visits.epoch(), dict(visits.rng.bit_generator.state))
