"""An error is one line that begins with "error:", what to do about it a line that begins with "try:", and its type decides
the exit code. Errors of the library carry parameters; here they become options. A traceback is shown only where
ROSENBLATT_DEBUG is 1.
"""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Callable
from enum import IntEnum
from typing import Any

import typer

from rosenblatt import errors
from rosenblatt.errors import IncompatibleParameters, InvalidParameter, RosenblattError, shown


class Code(IntEnum):
    """What the exit code says."""

    DONE = 0
    NO = 1  # the answer is no: a certificate that does not hold, a threshold not reached
    USAGE = 2
    INPUT = 3  # cannot be read, or is malformed
    MODEL = 4  # cannot be read
    OUTPUT = 5  # cannot be written
    BUG = 70
    INTERRUPTED = 130
    CLOSED = 141  # the reader of the output has gone, as after `| head`


class Failure(Exception):
    """An error of the command itself: a message, an exit code and what to do."""

    def __init__(self, message: str, code: Code, hint: str | None = None):
        super().__init__(message)
        self.code, self.hint = code, hint


_UsageError: Any = typer.BadParameter.__base__  # every wrong command line; typer gives it no name of its own
# The first type that fits decides.
CODES: tuple[tuple[type[BaseException], Code], ...] = (
    (_UsageError, Code.USAGE),
    (InvalidParameter, Code.USAGE),
    (errors.UnsupportedOperation, Code.USAGE),
    (errors.MissingDependency, Code.USAGE),
    (errors.GpuUnavailable, Code.USAGE),
    (errors.UnknownColumn, Code.USAGE),
    (errors.InvalidData, Code.INPUT),
    (errors.UnreadableCertificate, Code.INPUT),
    (errors.UnreadableModel, Code.MODEL),
    (errors.OutputError, Code.OUTPUT),
    (errors.LimitExceeded, Code.INPUT),
    (errors.UnknownModel, Code.INPUT),
    (errors.UnknownEntry, Code.INPUT),
    (errors.Conflict, Code.INPUT),
    (errors.DamagedLog, Code.INPUT),
    (errors.DamagedTokens, Code.INPUT),
    (errors.LearningPaused, Code.INPUT),
    (errors.FolderInUse, Code.INPUT),
    (KeyboardInterrupt, Code.INTERRUPTED),
    (BrokenPipeError, Code.CLOSED),
    (OSError, Code.INPUT),
    (MemoryError, Code.INPUT),
)
_ONLY_WRITING = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG}  # errors that reading does not meet

_OS_ERRORS = {
    errno.ENOENT: "there is no such file",
    errno.EISDIR: "it is a folder, not a file",
    errno.ENOTDIR: "there is no such folder",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the quota of the disk is used up",
    errno.EROFS: "the disk can only be read",
    errno.ELOOP: "its symbolic links form a loop",
}


def _flag(yes: str | None, no: str | None = None) -> Callable[[Any], str | None]:
    return lambda value: yes if value else no


# The option for a parameter of the library: its name, or the text for a value. A parameter without one is not mentioned as
# a remedy.
OPTIONS: dict[str, str | Callable[[Any], str | None]] = {
    **{name: f"--{name}" for name in (
        "target", "text", "numeric", "ignore", "weight", "delimiter", "missing", "scale", "ngrams", "characters", "format",
        "passes", "order", "seed", "holdout", "classes", "learner", "folds", "label", "row", "positive", "beam", "column",
        "columns", "method", "task", "threshold", "scope", "expires", "name", "shards", "mixing", "device",
        "sizes", "measure",
    )},
    "categories": "--category",
    "hashing": "--hash-bits",
    "bits": "--hash-bits",
    "settings": "--set",
    "random_state": "--seed",
    "max_iter": "--epochs",
    "fields": "--tags",
    "max_line": "--max-line",
    "max_updates": "--max-updates",
    "max_seconds": "--max-seconds",
    "cluster": "--cluster",
    "header": _flag("--header", "--no-header"),
    "stream": _flag("--stream", "--load"),
    "on_error": lambda value: "--skip-errors" if value == "skip" else None,
    "resume": _flag("train it without --small"),
    "probabilities": _flag("train it with --probabilities"),
}  # fmt: skip


def option_text(name: str, value: object) -> str | None:
    """Return a parameter with its value as the command line has it; None if there is no option for it."""
    known = OPTIONS.get(name)
    if name == "text" and value is True:  # that of svmlight.read; the option names columns
        return None
    if known is None or callable(known):
        return known(value) if known else None
    if isinstance(value, tuple):
        return f"{known} {'-'.join(map(str, value))}"
    if isinstance(value, list):
        return f"{known} {','.join(map(str, value))}"
    return known if value is None else f"{known} {value}"


def describe(error: BaseException) -> tuple[Code, str, str | None]:
    """Return the exit code, the text and the advice for an error."""
    code = exit_code(error)
    if isinstance(error, Failure):
        return code, _one_line(str(error)), error.hint
    if isinstance(error, _UsageError):
        context = getattr(error, "ctx", None)
        text = _one_line(error.format_message()).rstrip(".").replace(": Value error, ", ": ")
        return code, text, f"{context.command_path if context else 'rosenblatt'} --help"
    if isinstance(error, RosenblattError):
        return _describe_ours(error, code)
    if isinstance(error, MemoryError):
        return code, f"there is not enough memory{': ' if str(error) else ''}{_one_line(str(error))}", None
    if code is Code.BUG:
        text = f"this is a bug in rosenblatt: {type(error).__name__}: {_one_line(str(error))}"
        return code, text, "the same command with ROSENBLATT_DEBUG=1 shows where it happened; please report it"
    if isinstance(error, OSError) and error.errno is not None:
        text = _OS_ERRORS.get(error.errno, (error.strerror or "it cannot be used").lower())
        place = f"{os.fspath(error.filename)}: " if isinstance(error.filename, str | os.PathLike) else ""
        return code, place + text, None
    return code, _one_line(str(error)) or type(error).__name__, None


def exit_code(error: BaseException) -> Code:
    """Return the exit code for an error."""
    if isinstance(error, Failure):
        return error.code
    if isinstance(error, OSError) and error.errno in _ONLY_WRITING:
        return Code.OUTPUT
    return next((code for kind, code in CODES if isinstance(error, kind)), Code.BUG)


def _describe_ours(error: RosenblattError, code: Code) -> tuple[Code, str, str | None]:
    text = error.problem
    if isinstance(error, errors.OutputError) and error.errno in _ONLY_WRITING:
        text = _OS_ERRORS.get(error.errno, text)
    elif isinstance(error, IncompatibleParameters):
        one, other = (
            option_text(name, value) or f"{name}={shown(value)}"
            for name, value in ((error.parameter or "", error.value), (error.other, error.other_value))
        )
        text = f"{one} and {other} cannot be used together: {error.reason}"
    elif isinstance(error, InvalidParameter) and error.allowed is not None and error.parameter is not None:
        known = OPTIONS.get(error.parameter, error.parameter)
        name = known(error.value) if callable(known) else known
        text = f"{name or error.parameter} must be {error.allowed}; got {shown(error.value)}"
    elif isinstance(error, errors.ContinuousLabels):
        hint = "--task regression predicts numbers, --task classification learns each as a class"
        return code, _one_line(f"{error.place}: {text}" if error.place else text), hint
    remedies = [remedy for name, value in error.settings.items() if (remedy := option_text(name, value)) is not None]
    if isinstance(error, errors.UnknownParameter) or (not remedies and error.parameter in error.settings):
        remedies = [f"--set {name}={value}" for name, value in error.settings.items()]
    hint = "; ".join([*([error.hint] if error.hint else []), *([" or ".join(remedies)] if remedies else [])])
    return code, _one_line(f"{error.place}: {text}" if error.place else text), hint or None


def report(error: BaseException) -> int:
    """Print an error to stderr and return the exit code."""
    code, text, hint = describe(error)
    if os.environ.get("ROSENBLATT_DEBUG") == "1":
        traceback.print_exception(error)
    elif code is Code.INTERRUPTED:
        print("\ninterrupted" if sys.stderr.isatty() else "interrupted", file=sys.stderr)
    elif code is not Code.CLOSED:
        print(f"error: {text}", file=sys.stderr)
        if hint:
            print(f"try: {hint}", file=sys.stderr)
    return int(code)


def _one_line(text: str) -> str:
    return " ".join(text.split())
