"""Time and space: what a function takes on this machine, beside the operations that it executes.

Both are measured on the function as it is, not on its counted version, and on copies of its arguments, so that a function
that changes them (a sort in place) meets the same input each time. The bytes are the same in every run of one Python; the
seconds never are.
"""

from __future__ import annotations

import copy
import functools
import gc
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from rosenblatt.errors import InvalidParameterType

RUNS = 20  # of which the fastest counts
LONG_ENOUGH = 0.1  # seconds of running after which there are no more
MEMORY_RUNS = 7  # at most: what another thread allocates meanwhile is counted too, so a number must be seen twice
UNDISTURBED = 0.1  # seconds in which Python does not switch to another thread


class Resources(NamedTuple):
    """The time and the memory of a call.

    Attributes
    ----------
    seconds : float
        Of the fastest of up to 20 runs.
    peak_bytes : int
        The most memory that objects made during the call took at one time, the result among them and the arguments not.

    Examples
    --------
    >>> used = measure_resources(lambda n: bytes(n), 1_000_000)
    >>> used.seconds > 0, round(used.peak_bytes, -5)
    (True, 1000000)
    """

    seconds: float
    peak_bytes: int


def measure_resources(function: Callable[..., Any], /, *args: Any, **named: Any) -> Resources:
    """Run `function(*args, **named)` on copies of its arguments, and measure its time and its memory.

    Parameters
    ----------
    function : callable
        It is run several times, as it is.
    *args, **named
        What it is called with; `copy.deepcopy` makes the copies.

    Returns
    -------
    Resources
        The seconds of the fastest run, and the bytes of runs of their own, in which `tracemalloc` follows every
        allocation of Python and of numpy. Other threads wait meanwhile, for up to 0.1 s; as what they do after that is
        counted too, the first number that two runs agree on is taken, the least of seven if no two do. The bytes depend
        on the version of Python, the seconds on everything.

    Raises
    ------
    InvalidParameterType
        If the arguments cannot be copied.

    Examples
    --------
    >>> def squares(n):
    ...     return [i * i for i in range(n)]
    >>> def sum_of_squares(n):
    ...     return sum(i * i for i in range(n))
    >>> measure_resources(squares, 1000).peak_bytes > 8000 > measure_resources(sum_of_squares, 1000).peak_bytes
    True
    """
    try:
        on_copies(function, args, named)
    except Exception as error:
        raise InvalidParameterType(
            "args", args, f"arguments that can be copied ({error})", hint="pass data rather than generators or open files"
        ) from error
    seconds = [run_once(function, args, named)]
    while len(seconds) < RUNS and sum(seconds) < LONG_ENOUGH:
        seconds.append(run_once(function, args, named))
    return Resources(min(seconds), agreed_memory(function, args, named))


def run_once(function: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]) -> float:
    """The seconds of one run."""
    call = on_copies(function, args, named)
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def agreed_memory(function: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]) -> int:
    """The bytes that two runs agree on."""
    seen: list[int] = []
    with quick_collections():
        while len(seen) < MEMORY_RUNS:
            peak = peak_memory(function, args, named)
            if peak in seen:
                return peak
            seen.append(peak)
    return min(seen)


def peak_memory(function: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]) -> int:
    """The bytes of one run."""
    call = on_copies(function, args, named)
    was_tracing = tracemalloc.is_tracing()
    if not was_tracing:
        tracemalloc.start()
    try:
        with undisturbed():
            gc.collect()  # also frees what Python keeps for reuse, floats and lists among them, which no count would see
            for _ in range(2):
                before = tracemalloc.get_traced_memory()[0]  # the second time, this number is itself in the memory
            tracemalloc.reset_peak()
            call()
            return max(0, tracemalloc.get_traced_memory()[1] - before)
    finally:
        if not was_tracing:
            tracemalloc.stop()


@contextmanager
def undisturbed() -> Iterator[None]:
    """Let no other thread of Python run meanwhile, as long as the code neither waits nor takes long."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(UNDISTURBED)
    try:
        time.sleep(0.001)  # threads that wait for their turn since before take it now
        yield
    finally:
        sys.setswitchinterval(interval)


@contextmanager
def quick_collections() -> Iterator[None]:
    """Let `gc.collect` look at objects made meanwhile only: to look at all that a process has, it takes up to a second."""
    if gc.get_freeze_count():
        yield  # somebody has done it
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def on_copies(function: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]) -> Callable[[], Any]:
    """The call of a function with copies of these arguments."""
    args, named = copy.deepcopy((args, named))
    return functools.partial(function, *args, **named)
