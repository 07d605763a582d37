"""Words are for users. Here, and nowhere else, the parameters of a learner become the types that the trainer takes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from itertools import count
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rosenblatt.engine.blocks import available_threads
from rosenblatt.engine.problems import Binary, Joint, OneVsOne, OneVsRest, Problem
from rosenblatt.engine.rows import Rows, lengths
from rosenblatt.engine.train import NO_LIMIT, Limits
from rosenblatt.engine.visits import Visits
from rosenblatt.errors import InvalidData
from rosenblatt.estimators import parameters
from rosenblatt.estimators.interface import check_random_state
from rosenblatt.estimators.parameters import SHARED, WORST_FIRST, Clash

PROBLEMS: dict[str, Any] = {"joint": Joint, "ovr": OneVsRest, "ovo": OneVsOne}

_OWN_ROWS = "use more rows, another validation_fraction, or rows of your own to validate on"
PATIENCE = 50_000  # rows that are visited without a fall of the error before training stops for that

_MANY = (lambda batch: batch != 1,)
CLASHES = (
    Clash("order", WORST_FIRST, "batch", _MANY, "the most violated row is chosen one at a time; use batch=1"),
    Clash("order", WORST_FIRST, "keep", ("pocket",),
          "a pocket keeps the weights with the longest run of right answers, and the most violated row is never right"),
    Clash("batch", _MANY, "keep", ("pocket",), "a pocket counts right answers row by row; use batch=1"),
    Clash("keep", ("vote",), "early_stopping", (True,),
          "every epoch would have to count the votes of all weights so far; use keep='average', which is close"),
)  # fmt: skip


def generator(random_state: Any) -> np.random.Generator:
    """The source of randomness that an int, RandomState, Generator or None stands for."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    return np.random.default_rng(_draw_seed_once(random_state) if type(random_state) is int else _draw_seed(random_state))


def _draw_seed(random_state: Any) -> int:
    return check_random_state(random_state).randint(2**31 - 1)


_draw_seed_once = lru_cache(_draw_seed)  # to seed a RandomState takes longer than a small fit


_UNUSED = np.random.default_rng(0)  # by rows that are visited as they come


class Plan:
    """What the parameters of a learner ask for; `rule` is that of a learner which has one."""

    def __init__(self, params: Mapping[str, Any], own: Mapping[str, Any], problems: Mapping[str, Any]):
        parameters.check(params, {**SHARED, **own}, CLASHES)
        self.params = params
        self.problems = problems
        self.constant = float(params["intercept_scaling"]) if params["fit_intercept"] else 0.0

    def problem(self, classes: int) -> Problem:
        """The problem with this many classes."""
        if classes == 2:
            return Binary(2)
        return self.problems[self.params["multiclass"]](classes) if classes > 2 else Joint(classes)

    def rng(self) -> np.random.Generator:
        """The source of randomness."""
        return generator(self.params["random_state"])

    def visits(self, live: NDArray, rows: Rows, rng: np.random.Generator) -> Visits:
        """How the rows that count are visited, epoch by epoch."""
        order, scales = self.params["order"], None
        if order == "most-violated-normalised":
            order, scales = "most-violated", np.sqrt(np.maximum(lengths(rows, self.constant), np.finfo(float).tiny))
        return self._visits(live, order, rng, scales)

    def visits_in_order(self, live: NDArray) -> Visits:
        """How the rows of a stream are visited: as they come."""
        return self._visits(live, "cyclic", _UNUSED, None)

    def _visits(self, live: NDArray, order: str, rng: np.random.Generator, scales: NDArray | None) -> Visits:
        batch = max(len(live), 1) if self.params["batch"] == "full" else int(self.params["batch"])
        threads = available_threads(self.params["n_jobs"])
        mean = self.params["reduction"] == "mean" and self.params["batch"] != 1  # one row is its own mean
        return Visits(live, order, rng, batch, mean, scales, threads)

    def hold_out(self, live: NDArray, classes: NDArray | None, rng: np.random.Generator) -> tuple[NDArray, NDArray]:
        """The rows to learn from and those to validate on; with the class of each live row, both have rows of every class.

        For a whole number as `random_state` they are those of scikit-learn's learners with `early_stopping=True`.
        """
        from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit

        share, seed = float(self.params["validation_fraction"]), self.params["random_state"]
        self._check_room(len(live), share, classes)
        splitter = ShuffleSplit if classes is None else StratifiedShuffleSplit
        seed = seed if isinstance(seed, Integral) else int(rng.integers(2**31))
        train, held = next(splitter(1, test_size=share, random_state=seed).split(live, classes))
        return live[np.sort(train)], live[held]

    def _check_room(self, rows: int, share: float, classes: NDArray | None) -> None:
        """Raise InvalidData if so many rows are too few to hold out this share of them."""
        counts = np.zeros(0, np.int64) if classes is None else np.bincount(classes)
        counts = counts[counts > 0]
        if 1 in counts:
            problem = "early_stopping=True needs at least 2 rows of each class, one to learn from and one held out; "
            problem += f"y has {np.count_nonzero(counts == 1)} of {len(counts)} classes with a single row"
            raise InvalidData(problem, hint=_OWN_ROWS, settings={"early_stopping": False})
        held = math.ceil(share * rows)
        needed = (2, 1) if classes is None else (len(counts), len(counts))  # R² needs two rows
        if held < needed[0] or rows - held < needed[1]:
            parts = ((n, math.ceil(share * n)) for n in count(rows))
            enough = next(n for n, out in parts if out >= needed[0] and n - out >= needed[1])
            kind = "to compute R²" if classes is None else f"for {len(counts)} classes"
            raise InvalidData(
                f"early_stopping=True with validation_fraction={share:g} holds out {held} of {rows} rows and learns from "
                f"{rows - held}, but needs at least {needed[0]} and {needed[1]} {kind}: at least {enough} rows in all",
                hint=_OWN_ROWS,
                settings={"early_stopping": False},
            )

    def limits(self) -> Limits:
        """When to stop."""
        updates, seconds = self.params["max_updates"], self.params["max_seconds"]
        return Limits(
            self.params["max_iter"],
            NO_LIMIT if updates is None else int(updates),
            math.inf if seconds is None else float(seconds),
            self.params["tol"],
            self.params["n_iter_no_change"],
            0,
            self.params["weight_tol"],
        )
