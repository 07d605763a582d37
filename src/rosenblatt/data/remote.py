"""Files behind URLs, such as s3://bucket/part-1.svm, are found and opened by fsspec; it is imported when the first URL
is met, and never for a local path.
"""

from __future__ import annotations

import io
import os
import re
from typing import IO, Any

from rosenblatt.errors import InvalidParameter, MissingDependency, UnsupportedOperation

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+(::|://)")  # two letters at least: C:// is a drive
_PATTERN = re.compile(r"[*?[]")
_TAGS = ("ETag", "etag", "mtime", "LastModified", "last_modified", "updated", "created")  # as protocols call them


def is_url(path: object) -> bool:
    """Return whether a path is a URL of fsspec, such as memory://rows.svm."""
    return isinstance(path, str) and "://" in path and _URL.match(path) is not None


def open_url(url: str) -> IO[bytes]:
    """Open a file to read; seek goes to any byte without reading those before it, where the protocol allows it."""
    system, path = _locate(url)
    file = system.open(path, "rb")
    if isinstance(file, io.BytesIO):  # whoever opens a file in memory is given the same one, with one position for all
        return io.BytesIO(file.getvalue())
    return file


def size_of_url(url: str) -> int | None:
    """Return the size of a file in bytes; None where its server does not tell it."""
    system, path = _locate(url)
    return system.info(path)["size"]


def version_of_url(url: str) -> str:
    """Return a text that becomes another one when a file changes, if its server says so: its size, and its tag or time."""
    system, path = _locate(url)
    system.invalidate_cache(path)
    facts = system.info(path)
    tag = next((facts[name] for name in _TAGS if facts.get(name) is not None), "")
    return f"{facts.get('size')} {tag}"


def is_file_url(url: str) -> bool:
    """Return whether there is a file behind this URL."""
    system, path = _locate(url)
    try:
        return system.info(path)["type"] == "file"
    except FileNotFoundError:
        return False


def urls_of(pattern: str) -> list[str]:
    """Return the URLs that one names: its own, those of the files in a folder, or those that match a pattern, sorted."""
    system, path = _locate(pattern)
    try:
        found = system.info(path)
    except FileNotFoundError:
        found = None
    if found is not None and found["type"] != "directory":
        return [pattern]
    if found is not None:
        entries = system.ls(path, detail=True)
        names = [entry["name"] for entry in entries if entry["type"] == "file" and not _hidden(entry["name"])]
        nothing = f"there are no files in the folder {pattern!r}; name one that has some, or a pattern"
    elif _PATTERN.search(pattern):
        entries = system.glob(path, detail=True)
        folders = sorted(name for name, entry in entries.items() if entry["type"] == "directory")
        if folders and not pattern.endswith("/**"):
            raise matching_folder(pattern, system.unstrip_protocol(folders[0]))
        names = [name for name, entry in entries.items() if entry["type"] == "file"]
        nothing = f"no file matches the pattern {pattern!r}"
    else:
        names, nothing = [], f"there is no file {pattern!r}"
    if not names:
        raise FileNotFoundError(nothing)
    return sorted(system.unstrip_protocol(name) for name in names)


def matching_folder(pattern: str, folder: str) -> IsADirectoryError:
    """Return the error of a pattern that a folder matches."""
    problem = f"the folder {folder!r} matches the pattern {pattern!r}, and a pattern stands for files"
    return IsADirectoryError(f"{problem}; name the files in it, or a pattern that it does not match")


def _hidden(name: str) -> bool:
    return os.path.basename(name).startswith(".")


def _locate(url: str) -> tuple[Any, str]:
    """Return the file system of a URL and the path in it."""
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise MissingDependency("fsspec", "cluster", "URLs") from None
    try:
        return url_to_fs(url)
    except ImportError as missing:  # the package that knows the protocol, such as s3fs
        raise UnsupportedOperation(f"the URL cannot be opened: {missing}", path=url) from missing
    except ValueError as unknown:
        raise InvalidParameter("path", url, "a local path or a URL of a protocol that fsspec knows") from unknown
