"""Answers that may be large: their bytes are counted while they are made and until the client has taken them, so that many
large answers, or clients that are slow to read them, cannot take all memory."""

from __future__ import annotations

from collections import deque
from types import TracebackType
from typing import Self

from fastapi import Response
from starlette.types import Receive, Scope, Send

from rosenblatt.errors import LimitExceeded
from rosenblatt.serve.limits import Limits

PIECE_BYTES = 1 << 16  # of an answer that are handed to the connection at once
MODEST_BYTES = 1 << 18  # for answers of this size …
MODEST_SHARE = 8  # … one part of so many is kept, so that large ones that nobody reads cannot take all


class UnsentAnswers:
    """Counts the bytes of answers that are not sent yet.

    Parameters
    ----------
    limits : Limits
        How large one may be (`answer_bytes`), and all together (`unsent_bytes`).
    """

    def __init__(self, limits: Limits):
        self.limits, self.bytes = limits, 0

    def begin(self) -> AnswerParts:
        """Return an answer without parts."""
        return AnswerParts(self)


class AnswerParts:
    """An answer that is made part by part. An error in its `with` block gives its memory back."""

    def __init__(self, held: UnsentAnswers):
        self._held = held
        self.parts: list[bytes] = []
        self.size = 0

    def add(self, part: bytes) -> None:
        """Add a part.

        Parameters
        ----------
        part : bytes
            The part.

        Raises
        ------
        LimitExceeded
            If the answer, or all answers together, would be too large.
        """
        self._count(len(part))
        self.parts.append(part)

    def replace(self, place: int, part: bytes) -> None:
        """Put another part in the place of one.

        Parameters
        ----------
        place : int
            The number of the part.
        part : bytes
            The new part.
        """
        self._count(len(part) - len(self.parts[place]))
        self.parts[place] = part

    def _count(self, more: int) -> None:
        """Count more bytes; raise an error if they are too many."""
        limits = self._held.limits
        size = self.size + more
        if size > limits.answer_bytes:
            raise LimitExceeded("answer_bytes", size, limits.answer_bytes, hint="ask for less: fewer rows, or a lower top")
        held, most = self._held.bytes + more, limits.unsent_bytes
        if size > MODEST_BYTES:
            most -= most // MODEST_SHARE
        if held > most:
            raise LimitExceeded("unsent_bytes", held, most, hint="try again later")
        self.size, self._held.bytes = size, held

    def close(self) -> None:
        """Give its memory back."""
        self._held.bytes -= self.size
        self.parts, self.size = [], 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is not None:
            self.close()

    def response(self, media_type: str, status: int = 200) -> Response:
        """Return the response with all parts, one after the other.

        Parameters
        ----------
        media_type : str
            The type of the content.
        status : int
            The status code.

        Returns
        -------
        response : Response
        """
        return _Response(self, media_type, status)


class _Response(Response):
    """A response whose memory is given back when it has been sent, or cannot be."""

    def __init__(self, answer: AnswerParts, media_type: str, status: int):
        super().__init__(None, status, media_type=media_type)
        self._answer = answer
        self.headers["Content-Length"] = str(sum(map(len, answer.parts)))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            left: deque[bytes | memoryview] = deque(self._answer.parts)
            self._answer.parts = []
            while left:  # the connection says when it can take more
                piece = _next_piece(left)
                await send({"type": "http.response.body", "body": piece, "more_body": bool(left)})
        finally:
            self._answer.close()


def _next_piece(left: deque[bytes | memoryview]) -> bytes:
    """Take the next bytes to send from the parts that are left: about PIECE_BYTES of them."""
    taken: list[bytes | memoryview] = []
    room = PIECE_BYTES
    while left and room > 0:
        part = left.popleft()
        if len(part) > 2 * PIECE_BYTES:
            view = memoryview(part)  # of which a slice is no copy
            left.appendleft(view[room:])
            part = view[:room]
        taken.append(part)
        room -= len(part)
    return b"".join(taken)
