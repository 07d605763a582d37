"""A model file whose model answers for files of rows, and what is said where it does not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rosenblatt.cli.errors import Code, Failure, ending, said

# How data say that they are not the model's.
_MISFIT = re.compile(r"the columns do not fit: |\d+ fields .* where there must be|the rows have \d+ columns, the model")


def loaded(path: str) -> Any:
    """The `FileModel` in a file."""
    from rosenblatt.modelfile import registry
    from rosenblatt.workflow.model import FileModel

    with ending(Code.MODEL, OSError):
        model = registry.load(path)
    if isinstance(model, FileModel):
        return model
    kind = type(model).__name__
    hint = f"rosenblatt.load({path!r}) in Python"
    for part, command in (("Tag", "tag"), ("Pars", "parse")):
        hint = f"rosenblatt {command}" if part in kind else hint
    raise Failure(f"{path} holds a {kind}, which was not trained from files of rows", Code.MODEL, hint)


@contextmanager
def fitting() -> Iterator[None]:
    """In this block, files with other columns than the model's are a matter of the model, not of the input."""
    try:
        yield
    except ValueError as error:
        if _MISFIT.search(str(error)):
            raise Failure(said(error), Code.MODEL) from error
        raise
