"""The files of a page: those in the folder `page` of a package, and no others."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import PurePath

from starlette.responses import Response

from rosenblatt.serve.problem_details import problem

KINDS = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}


@cache
def page_files(package: str) -> dict[str, bytes]:
    """Return the files of a package's page by name."""
    folder = files(package).joinpath("page")
    return {file.name: file.read_bytes() for file in folder.iterdir() if PurePath(file.name).suffix in KINDS}


def page_file(found: Mapping[str, bytes], name: str) -> Response:
    """Return the answer with one of these files; no other is looked for."""
    if name not in found:
        return problem(404, "not-found", "There is nothing here", "there is no such file")
    return Response(found[name], media_type=f"{KINDS[PurePath(name).suffix]}; charset=utf-8")
