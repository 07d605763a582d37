"""Server-sent events: whoever listens is told of models that have changed, several times a second at most."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

from pydantic_core import to_json

PAUSE = 0.2  # seconds between two events of a stream
SIGN_OF_LIFE = 15.0  # seconds


class Feed:
    """The models that have changed, for every stream on its own."""

    def __init__(self) -> None:
        self._streams: set[_Stream] = set()
        self.stopping = False

    @property
    def streams(self) -> int:
        """How many listen."""
        return len(self._streams)

    def changed(self, name: str) -> None:
        """Say that a model has changed, or is not there any more."""
        for stream in self._streams:
            stream.names[name] = None
            stream.wake.set()

    def stop(self) -> None:
        """End all streams."""
        self.stopping = True
        for stream in self._streams:
            stream.wake.set()

    async def listen(
        self, names: list[str], describe: Callable[[str], dict[str, object] | None], only: str | None = None
    ) -> AsyncIterator[bytes]:
        """Yield events: first one for each model, then one whenever a model has changed.

        Parameters
        ----------
        names : list of str
            The models that there are.
        describe : function from str to dict or None
            What to tell of a model; None if there is none of this name.
        only : str, optional
            Tell of this model only.

        Yields
        ------
        event : bytes
        """
        stream = _Stream(names)
        self._streams.add(stream)
        try:
            while not self.stopping:
                changed, stream.names = stream.names, {}
                stream.wake.clear()
                for name in changed if only is None else changed.keys() & {only}:
                    yield _event(name, describe(name))
                await asyncio.sleep(PAUSE)
                with suppress(TimeoutError):
                    async with asyncio.timeout(SIGN_OF_LIFE):
                        await stream.wake.wait()
                if not stream.names:
                    yield b": still here\n\n"
        finally:
            self._streams.discard(stream)


class _Stream:
    """What one listener has not been told yet."""

    def __init__(self, names: list[str]):
        self.names = dict.fromkeys(names)
        self.wake = asyncio.Event()


def _event(name: str, description: dict[str, object] | None) -> bytes:
    if description is None:
        return b"event: deleted\ndata: " + to_json({"name": name}) + b"\n\n"
    return b"event: model\ndata: " + to_json(description) + b"\n\n"
