"""An error becomes an answer: problem details (RFC 9457) with the status of its type and every fact that it carries.

The `type` of the answer is "urn:rosenblatt:problem:" and a kind, which is the name of the error in small letters:
`LimitExceeded` is "limit-exceeded". No path of the server is in an answer.
"""

from __future__ import annotations

import json
import math
import os

from starlette.responses import Response

from rosenblatt import errors
from rosenblatt.errors import RosenblattError, shown
from rosenblatt.serve.limits import OPTIONS
from rosenblatt.serve.limits import STATUS as LIMIT_STATUS
from rosenblatt.serve.wire import PROBLEM, PROBLEM_JSON, problem_kind

RETRY_SECONDS = 1  # after a refusal that passes by itself
_LONGEST_TEXT = 1_000  # characters of a text that an answer repeats
_LARGEST_INTEGER = 2**63
_OWN_FACTS = ("limit", "most", "learner", "other", "other_value", "label", "model", "entry", "learned")  # of single types

# The first type that fits decides: the status and the title.
ANSWERS: tuple[tuple[type[RosenblattError], int, str], ...] = (
    (errors.LimitExceeded, 413, "More than a limit of the server allows"),  # the status is that of the limit
    (errors.UnknownModel, 404, "There is no such model"),
    (errors.UnknownEntry, 404, "There is no such entry or prediction"),
    (errors.Conflict, 409, "The request contradicts what is there"),
    (errors.LearningPaused, 507, "The server does not learn now"),
    (errors.FolderInUse, 503, "Another server uses the folder"),
    (errors.DamagedLog, 500, "The log is damaged"),
    (errors.DamagedTokens, 503, "The list of tokens cannot be read"),
    (errors.OutputError, 507, "The server cannot write its files"),
    (errors.MissingDependency, 501, "An optional package is not installed"),
    (errors.UnknownParameter, 422, "The learner has no such parameter"),
    (errors.InvalidParameter, 422, "A parameter has a value that is not allowed"),
    (errors.UnsupportedOperation, 422, "The model does not support this"),
    (errors.UnknownLabel, 422, "The label is not one of the classes"),
    (errors.FormatError, 400, "The request is malformed"),
    (errors.NumericOverflow, 422, "Weights or scores became infinite"),
    (errors.InvalidData, 422, "The data cannot be used"),
    (errors.UnreadableModel, 422, "The model file cannot be read"),
    (RosenblattError, 422, "The request cannot be fulfilled"),
)


def problem(status: int, kind: str, title: str, detail: str, **facts: object) -> Response:
    """Return a response with problem details.

    Parameters
    ----------
    status : int
        The status code.
    kind : str
        The kind of problem in small letters and hyphens: the end of its `type`.
    title : str
        What is wrong, the same for all problems of the kind.
    detail : str
        What is wrong this time.
    **facts : object
        More members. Those that are None are left out, values that JSON does not have or that are long become short text,
        and paths are left out.

    Returns
    -------
    starlette.responses.Response
        The response; 401 names the scheme of the token, and 503 and 507 say when to try again.
    """
    members: dict[str, object] = {"type": PROBLEM + kind, "title": title, "status": status, "detail": _shortened(detail)}
    for name, value in facts.items():
        if value is not None and not isinstance(value, os.PathLike):
            members.setdefault(name, json_value(value))
    headers = {}
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    elif status in (503, 507):
        headers["Retry-After"] = str(RETRY_SECONDS)
    content = json.dumps(members, ensure_ascii=False).encode("utf-8", "backslashreplace")
    return Response(content, status, headers, PROBLEM_JSON)


def from_error(error: RosenblattError) -> Response:
    """Return the response for an error of the library.

    Parameters
    ----------
    error : RosenblattError
        The error; its type decides the status, its attributes are the facts.

    Returns
    -------
    starlette.responses.Response
        The response.
    """
    forget_frames(error)
    status, title = next((status, title) for kind, status, title in ANSWERS if isinstance(error, kind))
    detail, hint = error.problem, error.hint
    if isinstance(error, errors.LimitExceeded):
        status = LIMIT_STATUS.get(error.limit, status)
        if error.limit in OPTIONS:
            option = f"rosenblatt serve {OPTIONS[error.limit]} sets another limit"
            hint = option if hint is None else f"{hint}; {option}"
    elif isinstance(error, errors.LearningPaused):
        status = error.status
    elif isinstance(error, errors.OutputError):  # its problem may name a folder
        detail = f"the server cannot write its files: {os.strerror(error.errno) if error.errno else 'unknown reason'}"
    facts = {
        "hint": hint, "settings": error.settings or None, "parameter": error.parameter, "value": error.value,
        "allowed": error.allowed, "row": error.row, "line": error.line, "column": error.column,
        **{name: getattr(error, name) for name in _OWN_FACTS if hasattr(error, name)},
    }  # fmt: skip
    return problem(status, problem_kind(type(error)), title, detail, **facts)


def forget_frames(error: BaseException) -> None:
    """Let an error hold on to no frames: they hold the body of a request, and what holds the error, and such a cycle is in
    memory until a garbage collection finds it.

    Parameters
    ----------
    error : BaseException
        The error; those that it came from are forgotten too.
    """
    error.__traceback__ = error.__context__ = error.__cause__ = None


def json_value(value: object) -> object:
    """Return a number, a text or a table of them as JSON has it if it is short; for anything else a short text."""
    if isinstance(value, dict) and len(value) <= 20:
        return {_shortened(str(key)): _json_scalar(part) for key, part in value.items()}
    return _json_scalar(value)


def _json_scalar(value: object) -> object:
    if isinstance(value, str):
        return _shortened(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int) and abs(value) < _LARGEST_INTEGER:
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(value)
    try:
        return shown(value)
    except RecursionError:  # lists in lists in lists
        return f"a deeply nested {type(value).__name__}"


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}…"
