"""JSON is parsed here where a file is one value of it; what is wrong with it is said with its place, and in plain words."""

from __future__ import annotations

import json
from collections.abc import Callable
from os import PathLike, fspath
from typing import Any

from rosenblatt.data.opening import BOM
from rosenblatt.errors import FormatError


def parse(content: bytes, path: str | PathLike, **hooks: Callable[[str], Any]) -> Any:
    """Return the value that a file of JSON holds; the hooks are those of `json.loads`, and their errors FormatErrors."""
    content = content.removeprefix(BOM)
    try:
        return json.loads(content.decode("utf-8"), **hooks)  # type: ignore[arg-type]  # parse_int and the like
    except UnicodeDecodeError as error:
        problem, line = f"the byte 0x{content[error.start]:02X} is not UTF-8", content.count(b"\n", 0, error.start) + 1
        raise FormatError(problem, path=path, line=line, hint="convert the file to UTF-8") from None
    except json.JSONDecodeError as error:
        problem = f"the file is not JSON: {what_is_wrong(error)}"
        raise FormatError(problem, path=path, line=error.lineno, column=error.colno) from None
    except RecursionError:
        raise FormatError("lists and objects are nested too deeply", path=path) from None
    except FormatError as error:
        error.path = fspath(path)
        raise
    except ValueError:
        raise FormatError("a number has thousands of digits", path=path) from None


def what_is_wrong(error: json.JSONDecodeError) -> str:
    """Return what is wrong, without the word that the place follows."""
    return error.msg.removesuffix(" at").removesuffix(" starting")
