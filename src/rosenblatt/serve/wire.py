"""What client and server agree on: media types, the names that models may have, and what problem details call an error."""

from __future__ import annotations

import re

from rosenblatt.errors import InvalidParameter, RosenblattError

JSON, JSON_LINES, MODEL_FILE = "application/json", "application/x-ndjson", "application/octet-stream"
PROBLEM_JSON = "application/problem+json"
PROBLEM = "urn:rosenblatt:problem:"  # before the kind of a problem, its `type`
NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
_NAME = re.compile(NAME)


def check_name(name: object) -> str:
    """Return the name of a model, if a model may have it.

    Parameters
    ----------
    name : object
        The name.

    Returns
    -------
    name : str

    Raises
    ------
    InvalidParameter
        If no model can have this name.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        allowed = "1 to 64 letters, digits, '.', '_' and '-', of which the first is a letter or a digit"
        raise InvalidParameter("name", name, allowed)
    return name


def problem_kind(error: type[RosenblattError]) -> str:
    """Return the kind of problem for a type of error: "limit-exceeded" for `LimitExceeded`.

    Parameters
    ----------
    error : type
        The type of the error.

    Returns
    -------
    kind : str
    """
    return re.sub(r"(?<!^)(?=[A-Z])", "-", error.__name__).lower()
