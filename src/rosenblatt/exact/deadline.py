"""Work that may take long asks now and then whether there is time left."""

from __future__ import annotations

from time import perf_counter


class Late(Exception):
    """The time allowed is over."""


def ask(until: float) -> None:
    """Go on, if the clock (`time.perf_counter`) is not past `until`."""
    if perf_counter() > until:
        raise Late
