"""Compiled kernels are kept on disk, in a folder of the user's that has the state of the sources in its name.

Numba keeps what it compiles beside each source file and looks at that file alone, so that it does not see edits in what a
kernel calls. Here every edit leads to another folder; old ones are removed. A kept kernel is machine code that is run as it
is: a folder that other users can write to is not used. Whatever is wrong with the folder or a file in it, kernels are
compiled, and at most there is a warning.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import shutil
import stat
import sys
import time
import uuid
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from numba import config as _config
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.compiler import CompileResult
from numba.core.runtime import rtsys
from numba.misc.appdirs import AppDirs

from rosenblatt.errors import KernelsNotKept

config: Any = _config
PACKAGE = Path(__file__).parents[1]
VARIABLE = "ROSENBLATT_CACHE_DIR"
_DAY = 86400  # seconds
_KEPT_DAYS = 30  # how long a folder is kept that is not used
_KEPT_FOLDERS = 10  # and how many of the newest


COUNTS: Counter[str] = Counter()  # of kernels that this process compiled, and loaded


class KernelFolder(NamedTuple):
    """Where kernels are kept."""

    folder: Path | None  # None if they are not
    problem: str = ""  # what is wrong with the folders that were tried


def _state_of_sources() -> str:
    """A hash of names, sizes and times of the source files, in a millisecond. Python trusts its compiled files as far."""
    state, folders = [], [str(PACKAGE)]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.name.endswith(".py"):
                    status = entry.stat()
                    state.append((entry.path[len(str(PACKAGE)) :], int(status.st_mtime), status.st_size))
                elif entry.is_dir() and entry.name != "__pycache__":
                    folders.append(entry.path)
    return hashlib.sha256(repr(sorted(state)).encode()).hexdigest()[:12]


_VERSION = sys.modules["rosenblatt"].__version__
NAME = f"kernels-{_VERSION}-{_state_of_sources()}"  # of what is imported now, whatever is edited later


def bases() -> list[Path]:
    """Return the folders to try: the one of an environment variable, or else the user's and the package's."""
    if given := os.environ.get(VARIABLE):
        return [Path(given)]
    if config.CACHE_DIR:
        return [Path(config.CACHE_DIR) / "rosenblatt"]
    users = Path(AppDirs("rosenblatt", appauthor=False).user_cache_dir)
    return [*([users] if users.is_absolute() else []), PACKAGE / "__pycache__"]  # relative where there is no home


@cache
def find_folder() -> KernelFolder:
    """Return where kernels are kept; the folder is made, and old ones beside it are removed."""
    problems = []
    for base in bases():
        folder = base / NAME
        try:
            is_new = not folder.exists()
            folder.mkdir(0o755, parents=True, exist_ok=True)
            problem = _danger(folder)
        except OSError as error:
            problem = f"{base}: {error.strerror}"
        if not problem:
            if is_new:
                _sweep(base)
            _touch(folder)
            return KernelFolder(folder)
        problems.append(problem)
    found = KernelFolder(None, "; ".join(problems))
    _warn(found.problem)
    return found


def _danger(folder: Path) -> str:
    """Why kernels in a folder may be somebody else's; empty if they are not."""
    if os.name != "posix":
        return ""
    status = folder.stat()
    if status.st_uid not in (0, os.geteuid()):
        return f"{folder} belongs to another user"
    return f"{folder} can be written by other users" if status.st_mode & 0o022 else ""


def _touch(folder: Path) -> None:
    """Note that a folder is in use, once a day."""
    with suppress(OSError):
        if time.time() - folder.stat().st_mtime > _DAY:
            os.utime(folder)


def stale_folders(base: Path) -> list[Path]:
    """Return the folders of other states of the sources, the latest used first."""
    try:
        found = {folder: folder.lstat() for folder in base.glob("kernels-*-*") if folder.name != NAME}
    except OSError:
        return []
    folders = [folder for folder, status in found.items() if stat.S_ISDIR(status.st_mode)]
    return sorted(folders, key=lambda folder: found[folder].st_mtime, reverse=True)


def _sweep(base: Path) -> None:
    for number, folder in enumerate(stale_folders(base)):
        with suppress(OSError):
            days = (time.time() - folder.stat().st_mtime) / _DAY
            if days > (_KEPT_DAYS if number < _KEPT_FOLDERS else 1):
                shutil.rmtree(folder, ignore_errors=True)


@cache
def _warn(problem: str) -> None:
    warnings.warn(KernelsNotKept(problem, VARIABLE), stacklevel=2)


@cache
def stamp(body: Callable) -> str:
    """Return a hash of the file of a body that is not of this package; the folder's name knows the others."""
    if body.__module__.partition(".")[0] == "rosenblatt":
        return ""
    try:
        source = Path(inspect.getfile(body)).read_bytes()
    except (OSError, TypeError):  # a notebook has no file
        code = body.__code__
        source = repr((code.co_code, code.co_consts, code.co_names)).encode()
    return hashlib.sha256(source).hexdigest()


class KernelCache(FunctionCache):
    """What is on disk of one kernel.

    Parameters
    ----------
    body : function
        The kernel in Python.
    folder : Path
        The folder.
    stamps : function
        Returns the stamps of the bodies that kernels of a signature include by the types in it.
    """

    def __init__(self, body: Callable, folder: Path, stamps: Callable):
        self._name, self._py_func, self._cache_path, self._stamps = repr(body), body, str(folder), stamps
        name = f"{body.__module__.removeprefix('rosenblatt.')}.{body.__qualname__}".translate({ord(c): None for c in "<>"})
        version = f"py{sys.version_info[0]}{sys.version_info[1]}{getattr(sys, 'abiflags', '')}"
        self._cache_file = _Index(str(folder), f"{name}-{body.__code__.co_firstlineno}.{version}", stamp(body))

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return what is kept for a signature; None if nothing is, or it cannot be read."""
        rtsys.initialize(target_context)  # all else that numba would import here, for a fifth of a second, is for compiling
        try:
            data = self._cache_file.load(self._index_key(sig, target_context.codegen()))
            if data is None:
                return None
            result = CompileResult._rebuild(target_context, *data)
        except Exception:  # damaged files fail in any way, and are replaced
            return None
        COUNTS["loaded"] += 1
        return result

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled for a signature, if there is a way."""
        COUNTS["compiled"] += 1
        if data.library.has_dynamic_globals:
            return
        try:
            self._cache_file.save(self._index_key(sig, data.codegen), data._reduce())
        except OSError as error:  # a full disk, a folder that can only be read
            _warn(f"{self._cache_path}: {error.strerror}")

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        """The signature, the processor, the body, and the bodies in it that are not of this package."""
        return (*super()._index_key(sig, codegen), self._stamps(sig))


class _Index(IndexDataCacheFile):
    """The signatures of a kernel and their files. It names types by where they are defined; an index that names a rule of
    somebody's module, which is not there today, is begun anew, and so is a damaged one."""

    def save(self, key: Any, data: Any) -> None:
        """Write a file of a name of its own, then the index: two processes at once may lose an entry, and never mix two."""
        name = self._data_name_pattern.replace("{number:d}", uuid.uuid4().hex[:12])
        self._save_data(name, data)
        files = self._load_index()
        replaced = files.get(key)
        self._save_index({**files, key: name})
        if replaced is not None:
            with suppress(OSError):
                os.unlink(self._data_path(replaced))

    def _load_index(self) -> dict:
        try:
            return super()._load_index()
        except Exception:  # a missing module, a missing name, or any error of a damaged file
            return {}
