"""What may be spent, and chance, as users say it."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np


def whole(value: Any, name: str, least: int) -> int | None:
    """The number, or None; a ValueError for what is neither."""
    if value is None:
        return None
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name}={value!r}: it must be a whole number ≥ {least}, or None to leave it to the method")
    return int(value)


def generator(random_state: Any) -> np.random.Generator:
    """The source of randomness that an int, RandomState, Generator or None stands for."""
    if isinstance(random_state, np.random.RandomState):
        random_state = random_state.randint(2**31 - 1)
    return np.random.default_rng(random_state)
