"""A log that is uploaded goes into a file without a name, and is read twice: to see that it gives a model, and to write its
entries to the log of the server. It is never in memory as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from rosenblatt.errors import FormatError, InvalidData, LimitExceeded, RosenblattError
from rosenblatt.serve.disk import DiskSpace
from rosenblatt.serve.jobs import Learned
from rosenblatt.serve.learners import make_learner
from rosenblatt.serve.limits import Limits, parsed_bytes
from rosenblatt.serve.spool import SpooledFile
from rosenblatt.serve.state import (
    CREATE,
    LEARN,
    NO_LIMITS,
    SET_BACK,
    Entry,
    State,
    apply,
    create,
    entry_from_line,
    example_list,
    lineage,
    parse_json,
    read_examples,
    set_back_target,
)

LONGEST_HEAD = 1 << 20  # bytes of a line besides the examples, or the file that a model starts from


class UploadedLog:
    """The lines of a log, as `GET /models/NAME/log` answers them.

    Parameters
    ----------
    folder : Path
        Where there is room for them.
    disk : DiskSpace
        How much.
    limits : Limits
        How long a line may be, and what the model may take.
    """

    def __init__(self, folder: Path, disk: DiskSpace, limits: Limits):
        self._lines, self._outcomes = SpooledFile(folder, disk), SpooledFile(folder, disk)
        self._limits = limits

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._lines.close()
        self._outcomes.close()

    def write(self, piece: bytes) -> None:
        """Add a piece of it.

        Parameters
        ----------
        piece : bytes
            The next bytes.

        Raises
        ------
        LearningPaused
            If there is no room for it.
        """
        self._lines.write([piece])

    def _each_line(self) -> Iterator[bytes]:
        """Yield the lines; one that is too long to be an entry is refused before it is read."""
        self._lines.file.seek(0)
        longest = max(2 * self._limits.body_bytes, self._limits.model_bytes // 2) + LONGEST_HEAD
        number = 0
        while line := self._lines.file.readline(longest + 1):
            number += 1
            if len(line) > longest:
                error = LimitExceeded("body_bytes", len(line), longest, hint="an entry of a log is one line")
                error.line = number
                raise error
            values = parsed_bytes(line)
            if values > self._limits.parsed_bytes:
                error = LimitExceeded(
                    "parsed_bytes", values, self._limits.parsed_bytes, hint="an entry of a log is one line"
                )
                error.line = number
                raise error
            yield line

    def entries(self) -> Iterator[Entry]:
        """Yield the entries, which must be numbered 1, 2, 3, …

        Yields
        ------
        entry : Entry

        Raises
        ------
        FormatError
            At a line that is not the next entry.
        """
        expected = 1
        for number, line in enumerate(self._each_line(), 1):
            if line.isspace():
                continue
            entry = entry_from_line(line.rstrip(b"\r\n"), number)
            if entry.seq != expected:
                raise FormatError(f"entry {expected} is missing: there is {entry.seq}", line=number)
            yield entry
            expected += 1

    def outcomes(self) -> Iterator[Learned]:
        """Yield what those entries did whose requests had an idempotency key, after `replay`.

        Yields
        ------
        learned : Learned
        """
        self._outcomes.file.seek(0)
        for line in self._outcomes.file:
            yield Learned.from_json(line.decode())

    def replay(self) -> tuple[State, Entry]:
        """Return the state that it gives, and its last entry.

        Returns
        -------
        state : State
        last : Entry

        Raises
        ------
        InvalidData
            If it is not a log that gives a model.
        LimitExceeded
            If the model would take more memory than it may.
        """
        last: Entry | None = None
        set_backs = {}
        for last in self.entries():
            if last.kind == SET_BACK:
                set_backs[last.seq] = set_back_target(last)
        if last is None:
            raise InvalidData("the body has no entries")
        ranges = iter(lineage(last.seq, set_backs).ranges)
        part, state = next(ranges), None
        for entry in self.entries():
            if entry.seq > part[-1]:
                part = next(ranges, part)
            try:
                if state is None:
                    state = create(entry)
                    make_learner(state.specification, self._limits)
                elif entry.kind == CREATE:
                    raise FormatError("only the first entry of a log creates the model")
                elif entry.kind == LEARN:  # also where the model was set back over it: it may be set back to it
                    read_examples(state.learner, example_list(parse_json(entry.payload)), NO_LIMITS)
                    if entry.seq in part:
                        state, outcome = apply(state, entry)
                        if entry.key is not None:
                            self._outcomes.write([Learned(entry.seq, *outcome).to_json().encode() + b"\n"])
                        memory = state.learner.memory()
                        if memory > self._limits.model_bytes:
                            raise LimitExceeded("model_bytes", memory, self._limits.model_bytes)
            except RosenblattError as error:
                error.entry = entry.seq
                raise
        assert state is not None
        return state._replace(seq=last.seq), last
