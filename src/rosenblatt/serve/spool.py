"""What is too large for memory goes through a file without a name, which is gone when it is closed: logs that are uploaded,
and model files that are downloaded."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import IO

from fastapi import Response
from starlette.responses import StreamingResponse

from rosenblatt.errors import LearningPaused
from rosenblatt.serve.disk import DiskSpace

PIECE_BYTES = 1 << 18  # that are read, and handed to the connection, at once


class SpooledFile:
    """A file without a name in the folder of a server, whose bytes count as the folder's.

    Parameters
    ----------
    folder : Path
        The folder.
    disk : DiskSpace
        The room in it.
    """

    def __init__(self, folder: Path, disk: DiskSpace):
        self._disk = disk
        self.size = 0
        self.file: IO[bytes] = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  # closed by close

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
        except OSError as error:
            raise LearningPaused(f"there is no room for a temporary file: {error.strerror}") from None

    def close(self) -> None:
        """Close the file, and free its room."""
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
        size = self.size

        async def content() -> AsyncIterator[bytes]:
            try:
                self.file.seek(0)
                while piece := self.file.read(PIECE_BYTES):
                    yield piece
            finally:
                self.close()

        return StreamingResponse(content(), media_type=media_type, headers={"Content-Length": str(size)})
