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


class HeldAnswers:
    """The answers of a server that nobody has taken yet.

    Parameters
    ----------
    limits : Limits
        How large one may be, and all together (`answer_bytes`, twice that).
    """

    def __init__(self, limits: Limits):
        self.limits, self.bytes = limits, 0

    def begin(self) -> AnswerParts:
        """Return an answer without parts."""
        return AnswerParts(self)


class AnswerParts:
    """An answer that is made part by part. An error in its `with` block gives its memory back."""

    def __init__(self, held: HeldAnswers):
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
        limits = self._held.limits
        size = self.size + len(part)
        if size > limits.answer_bytes:
            raise LimitExceeded("answer_bytes", size, limits.answer_bytes, hint="ask for less: fewer rows, or a lower top")
        held = self._held.bytes + len(part)
        if held > 2 * limits.answer_bytes:
            raise LimitExceeded("queued_bytes", held, 2 * limits.answer_bytes, hint="try again later")
        self.parts.append(part)
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
            left = deque(self._answer.parts)
            self._answer.parts = []
            while left:  # the connection says when it can take more
                piece = _next_piece(left)
                await send({"type": "http.response.body", "body": piece, "more_body": bool(left)})
        finally:
            self._answer.close()


def _next_piece(left: deque[bytes]) -> bytes:
    """Take the next bytes to send from the parts that are left: about PIECE_BYTES of them."""
    taken: list[bytes] = []
    room = PIECE_BYTES
    while left and room > 0:
        part = left.popleft()
        if len(part) > 2 * PIECE_BYTES:
            left.appendleft(part[room:])
            part = part[:room]
        taken.append(part)
        room -= len(part)
    return b"".join(taken)
