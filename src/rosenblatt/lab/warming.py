"""Learners are compiled in the background from the start, one after the other; one that is asked for, at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from rosenblatt.errors import RosenblattError


class Warming:
    """Compiles learners, or loads them from the cache.

    Parameters
    ----------
    names : sequence of str
        The learners, those that are wanted first at the beginning.
    warm : function from str
        Compiles one.
    """

    def __init__(self, names: Sequence[str], warm: Callable[[str], None]):
        self._names, self._warm = tuple(names), warm
        self._locks = {name: threading.Lock() for name in self._names}
        self._done: set[str] = set()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._warm_all, name="rosenblatt-lab-compile", daemon=True)

    def start(self) -> None:
        """Begin to compile."""
        self._thread.start()

    def stop(self) -> None:
        """Compile no more learners; return when the one that is being compiled is done."""
        self._stopped.set()
        self._thread.join()

    def wait_for(self, name: str) -> None:
        """Compile this learner now, unless that is done or being done; return when it is."""
        if name in self._done or name not in self._locks:  # what is no learner is refused elsewhere
            return
        with self._locks[name]:
            if name in self._done:
                return
            try:
                self._warm(name)
            except RosenblattError:  # points that it does not take; it says so when it is asked
                pass
            finally:
                self._done.add(name)

    def state(self) -> dict[str, object]:
        """Return how many learners there are, and which are compiled."""
        return {"total": len(self._names), "compiled": sorted(self._done)}

    def _warm_all(self) -> None:
        for name in self._names:
            if self._stopped.is_set():
                return
            self.wait_for(name)
