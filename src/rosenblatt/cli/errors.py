"""What goes wrong is said in a line that begins with "error:", the next step in one with "try:", and an exit code says to a
script which kind of thing it was. A traceback is shown only where ROSENBLATT_DEBUG is 1.
"""

from __future__ import annotations

import errno
import os
import re
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from opcode import opmap
from types import TracebackType
from typing import Any

import typer


class Code(IntEnum):
    """What the exit code says."""

    DONE = 0
    NO = 1  # the answer is no: a certificate that does not hold, a threshold not reached
    USAGE = 2
    INPUT = 3  # cannot be read, or is malformed
    MODEL = 4  # cannot be read, or does not fit the data
    OUTPUT = 5  # cannot be written
    BUG = 70
    INTERRUPTED = 130
    UNREAD = 141  # whoever read the output has gone, as after `| head`


class Failure(Exception):
    """Something that went wrong, in words, with its exit code and the next step."""

    def __init__(self, message: str, code: Code, hint: str | None = None):
        super().__init__(message)
        self.code, self.hint = code, hint


# By name, so that nothing is imported to say that something is wrong. The nearest ancestor of an exception decides.
CODES = {
    "rosenblatt.data.opening.FormatError": Code.INPUT,
    "rosenblatt.exact.documents.UnreadableCertificate": Code.INPUT,
    "pyarrow.lib.ArrowException": Code.INPUT,
    "rosenblatt.modelfile.container.UnreadableModel": Code.MODEL,
    "rosenblatt.workflow.terms.WrongUse": Code.USAGE,
    "builtins.KeyboardInterrupt": Code.INTERRUPTED,
    "builtins.BrokenPipeError": Code.UNREAD,
    "builtins.UnicodeDecodeError": Code.INPUT,
    "builtins.OSError": Code.INPUT,
    "builtins.MemoryError": Code.INPUT,
}
FULL = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG}  # that only writing meets
SPOKEN = (ValueError, TypeError, ImportError, NotImplementedError)  # how the library refuses, in a sentence of its own
SPEAKERS = ("rosenblatt", "sklearn")
EXTRAS = {"pyarrow": "tables", "matplotlib": "plot", "onnx": "onnx"}  # which brings what

_WORDS = {
    errno.ENOENT: "there is no such file",
    errno.EISDIR: "it is a folder, not a file",
    errno.ENOTDIR: "there is no such folder",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the quota of the disk is used up",
    errno.EROFS: "the disk can only be read",
}
# What the library says to who writes Python, and how it is said to who writes a command; where there is no option for it,
# nothing is said.
_OPTIONS = [(re.compile(words), option) for words, option in {
    r"\bgive target=,": "give --target COLUMN,",
    r"\bmissing='fill'": "--missing fill",
    r"\bon_error='skip'": "--skip-errors",
    r"^holdout needs": "--holdout needs",
    r"\bgive them, or stream=False": "--classes A,B,… names them, --load reads them",
    r"\bstream=False": "--load",
    r"\bheader=True": "--header",
    r"\bheader=False": "--no-header",
    r"\bscale='none'": "--scale none",
    r"if it names rows, ignore it; if it is text, say so": "--ignore if it names rows, --text if it is text",
    r", and one_hot_limit=\d+ this many": "",
    r"\bhashing=(\d+)": r"--hash-bits \1",
    r"text=, categories= or numeric=": "--text, --category or --numeric",
    r"Give format=, one of (.*), or delimiter=": r"Give --format, one of \1, or --delimiter",
    r"; name one of svmlight,": "; --format says it, one of svmlight,",
    r"[;:] min_count=1 takes every word": "",
    r"; with text=True labels are words": "",
    r"; with zero_based=True indices begin at 0": "",
    r"; labelled=False reads it": "",
    r"[;?] quote='' reads quotes as they stand": "",
    r"; save it with save\(path, resume=True\)": "; it was saved with --small",
    r"^categories is about": "--category is about",
    r"^(?:hashing|bits) is about": "--hash-bits is about",
    r"^(\w+) is about columns": r"--\1 is about columns",
    r"^(ngrams|characters)=\((\d+), (\d+)\): give \(low, high\) with (.*), or None": r"--\1 \2-\3: give LOW-HIGH with \4",
    r"^(missing|scale|delimiter|format|folds|passes|holdout|seed)='?(.*?)'?: ": r"--\1 \2: ",
    r"begun with streamed=True; go on with the same, not with False": "begun with --stream; go on with the same",
    r"begun with streamed=False; go on with the same, not with True": "begun with --load; go on with the same",
    r"begun with (seed|order|holdout)='?(.*?)'?; go on with the same, not with '?(.*?)'?$":
        r"begun with --\1 \2; go on with the same, not with \3",
}.items()]  # fmt: skip
_Usage: Any = typer.BadParameter.__base__  # every wrong command line; typer gives it no name of its own


@contextmanager
def ending(code: Code, *kinds: type[Exception]) -> Iterator[None]:
    """In this block, exceptions of these kinds (OSError and ValueError if none are named) end with this exit code."""
    try:
        yield
    except (Failure, BrokenPipeError):
        raise
    except Exception as error:
        if not isinstance(error, kinds or (OSError, ValueError)):
            raise
        raise Failure(said(error), code) from error


def report(error: BaseException) -> int:
    """Say on stderr what went wrong, and give back the exit code."""
    code = code_of(error)
    if os.environ.get("ROSENBLATT_DEBUG") == "1":
        traceback.print_exception(error)
    elif code is Code.INTERRUPTED:
        print("\ninterrupted" if sys.stderr.isatty() else "interrupted", file=sys.stderr)
    elif code is not Code.UNREAD:
        print(f"error: {said(error)}", file=sys.stderr)
        if hint := _hint(error, code):
            print(f"try: {hint}", file=sys.stderr)
    return int(code)


def code_of(error: BaseException) -> Code:
    """The exit code for an exception."""
    if isinstance(error, Failure):
        return error.code
    if isinstance(error, _Usage):
        return Code.USAGE
    if isinstance(error, OSError) and error.errno in FULL:
        return Code.OUTPUT
    for kind in type(error).__mro__:
        if (code := CODES.get(f"{kind.__module__}.{kind.__qualname__}")) is not None:
            return code
    if isinstance(error, ImportError) and error.name is not None:  # Python's own words, not the library's
        return Code.USAGE if _extra(error) else Code.BUG
    if isinstance(error, SPOKEN) and _speaker(error.__traceback__) in SPEAKERS:
        return Code.USAGE if isinstance(error, ImportError) else Code.INPUT
    return Code.BUG


def said(error: Any) -> str:
    """The exception as one line."""
    if isinstance(error, _Usage):
        return _one_line(error.format_message()).rstrip(".").replace(": Value error, ", ": ")
    if isinstance(error, OSError) and error.errno is not None:
        words = _WORDS.get(error.errno, (error.strerror or "it cannot be used").lower())
        return f"{os.fspath(error.filename)}: {words}" if isinstance(error.filename, str | os.PathLike) else words
    if isinstance(error, MemoryError):
        return f"there is not enough memory{': ' if str(error) else ''}{_in_options(_one_line(str(error)))}"
    if _extra(error):
        return f"this needs {error.name.partition('.')[0]}, which is not installed"
    if code_of(error) is Code.BUG:
        return f"this is a bug in rosenblatt: {type(error).__name__}: {_one_line(str(error))}"
    return _in_options(_one_line(str(error))) or type(error).__name__


def _hint(error: BaseException, code: Code) -> str | None:
    if isinstance(error, Failure):
        return error.hint
    if isinstance(error, _Usage):
        context = getattr(error, "ctx", None)
        return f"{context.command_path if context else 'rosenblatt'} --help"
    if extra := _extra(error):
        return f"pip install 'rosenblatt[{extra}]'"
    if code is Code.BUG:
        return "the same command with ROSENBLATT_DEBUG=1 shows where it happened; please report it"
    return None


def _extra(error: BaseException) -> str | None:
    """What to install where a module is missing."""
    name = error.name if isinstance(error, ModuleNotFoundError) else None
    return EXTRAS.get(name.partition(".")[0]) if name else None


def _speaker(at: TracebackType | None) -> str:
    """The package with the statement `raise` that ran; empty if Python or compiled code raised, which speaks to no user."""
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    if at is None or at.tb_frame.f_code.co_code[at.tb_lasti] != opmap["RAISE_VARARGS"]:
        return ""
    return at.tb_frame.f_globals.get("__name__", "").partition(".")[0]


def _in_options(text: str) -> str:
    for words, option in _OPTIONS:
        text = words.sub(option, text)
    return text


def _one_line(text: str) -> str:
    return " ".join(text.split())
