"""What is too large for memory goes through a temporary file, whose room on the disk counts as the folder's: logs that are
uploaded, and large model files that are downloaded."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import IO

from fastapi import Response
from starlette.types import Receive, Scope, Send

from rosenblatt.errors import LearningPaused
from rosenblatt.serve.disk import DiskSpace

PIECE_BYTES = 1 << 18  # that are read, and handed to the connection, at once


class SpooledFile:
    """A temporary file in the folder of a server; it is gone when it is closed.

    Parameters
    ----------
    folder : Path
        The folder.
    disk : DiskSpace
        The room in it.

    Raises
    ------
    LearningPaused
        If no file can be made.
    """

    def __init__(self, folder: Path, disk: DiskSpace):
        self._disk = disk
        self.size = 0
        try:
            self.file: IO[bytes] = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  # closed by close
        except OSError as error:
            raise LearningPaused(f"there is no temporary file to be had: {error.strerror}") from None

    def write(self, pieces: Iterable[bytes | memoryview]) -> None:
        """Add pieces at the end.

        Parameters
        ----------
        pieces : iterable of bytes
            The pieces.

        Raises
        ------
        LearningPaused
            If there is no room for them; LimitExceeded if the folder would take more than it may.
        """
        try:
            for piece in pieces:
                size = memoryview(piece).nbytes
                self._disk.reserve(size)
                self.size += size
                self.file.write(piece)
            self.file.flush()
        except OSError as error:
            raise LearningPaused(f"there is no room for a temporary file: {error.strerror}") from None

    def close(self) -> None:
        """Close the file, and free its room."""
        with suppress(OSError):  # of what could not be written
            self.file.close()
        self._disk.release(self.size)
        self.size = 0

    def response(self, media_type: str) -> Response:
        """Return the response with the content of the file, which is closed when it has been sent, or cannot be.

        Parameters
        ----------
        media_type : str
            The type of the content.

        Returns
        -------
        response : Response
        """
        return _FileResponse(self, media_type)


class _FileResponse(Response):
    """A response with the content of a temporary file."""

    def __init__(self, spooled: SpooledFile, media_type: str):
        super().__init__(None, media_type=media_type)
        self._spooled = spooled
        self.headers["Content-Length"] = str(spooled.size)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            file, left = self._spooled.file, self._spooled.size
            file.seek(0)
            while left:
                piece = file.read(min(PIECE_BYTES, left))
                if not piece:
                    raise OSError("the temporary file is shorter than it was")
                left -= len(piece)
                await send({"type": "http.response.body", "body": piece, "more_body": left > 0})
        finally:
            self._spooled.close()
