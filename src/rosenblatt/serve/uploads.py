"""A log that is uploaded goes into a file without a name, and is read twice: to see that it gives a model, and to write its
entries to the log of the server. It is never in memory as a whole."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from rosenblatt.errors import FormatError, InvalidData, LearningPaused, RosenblattError
from rosenblatt.serve.jobs import Learned
from rosenblatt.serve.learners import make_learner
from rosenblatt.serve.limits import Limits
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


class UploadedLog:
    """The lines of a log, as `GET /models/NAME/log` answers them.

    Parameters
    ----------
    folder : Path
        Where there is room for them.
    """

    def __init__(self, folder: Path):
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  # closed by __exit__
        self._outcomes = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  # the same; a line for each entry with a key

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._file.close()
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
        try:
            self._file.write(piece)
        except OSError as error:
            raise LearningPaused(f"the uploaded log cannot be kept: {error.strerror}") from None

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
        self._file.seek(0)
        expected = 1
        for number, line in enumerate(self._file, 1):
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
        self._outcomes.seek(0)
        for line in self._outcomes:
            yield Learned.from_json(line.decode())

    def replay(self, limits: Limits) -> tuple[State, Entry]:
        """Return the state that it gives, and its last entry.

        Parameters
        ----------
        limits : Limits
            What the model may take.

        Returns
        -------
        state : State
        last : Entry

        Raises
        ------
        InvalidData
            If it is not a log that gives a model.
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
                    make_learner(state.specification, limits)
                elif entry.kind == CREATE:
                    raise FormatError("only the first entry of a log creates the model")
                elif entry.kind == LEARN:  # also where the model was set back over it: it may be set back to it
                    read_examples(state.learner, example_list(parse_json(entry.payload)), NO_LIMITS)
                    if entry.seq in part:
                        state, outcome = apply(state, entry)
                        if entry.key is not None:
                            self._outcomes.write(Learned(entry.seq, *outcome).to_json().encode() + b"\n")
            except RosenblattError as error:
                error.entry = entry.seq
                raise
        assert state is not None
        return state._replace(seq=last.seq), last
