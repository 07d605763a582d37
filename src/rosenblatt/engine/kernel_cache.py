"""The cache of compiled kernels on disk, in a folder whose name contains a hash of the library's sources.

Numba's own cache lies beside each source file and checks that file alone, so it misses edits in functions of other files
that a kernel calls. Here every edit leads to a new folder, and old folders are removed. Cached kernels are machine code
that is run without a check, so a folder that other users can write to is not used. Whatever is wrong with the folder or
with a file in it, kernels are compiled again, with a warning at most.
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
_KEPT_DAYS = 30  # an unused folder is removed after so long
_KEPT_FOLDERS = 10  # all but so many of the newest are removed after a day
COUNTS: Counter[str] = Counter()  # how many kernels this process "compiled" and "loaded"


class KernelFolder(NamedTuple):
    """The folder in which kernels are cached."""

    folder: Path | None  # None if there is none, and nothing is cached
    problem: str = ""  # what is wrong with the folders that were tried


def _state_of_sources() -> str:
    """Return a hash of the names, sizes and modification times of the source files, which takes a millisecond. Python too
    checks its .pyc files by size and time."""
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
NAME = f"kernels-{_VERSION}-{_state_of_sources()}"  # of the sources as they are imported; later edits do not change it


def cache_folders() -> list[Path]:
    """Return the folders to try: that of an environment variable, or else the user's cache folder, then `__pycache__` of
    the package."""
    if given := os.environ.get(VARIABLE):
        return [Path(given)]
    if config.CACHE_DIR:
        return [Path(config.CACHE_DIR) / "rosenblatt"]
    users = Path(AppDirs("rosenblatt", appauthor=False).user_cache_dir)
    return [*([users] if users.is_absolute() else []), PACKAGE / "__pycache__"]  # relative if there is no home folder


@cache
def find_folder() -> KernelFolder:
    """Return the folder in which kernels are cached. It is created if need be, and old ones beside it are then removed."""
    problems = []
    for base in cache_folders():
        folder = base / NAME
        try:
            is_new = not folder.exists()
            folder.mkdir(0o755, parents=True, exist_ok=True)
            problem = _why_unsafe(folder)
        except OSError as error:
            problem = f"{base}: {error.strerror}"
        if not problem:
            if is_new:
                _remove_old_folders(base)
            _touch(folder)
            return KernelFolder(folder)
        problems.append(problem)
    found = KernelFolder(None, "; ".join(problems))
    _warn(found.problem)
    return found


def _why_unsafe(folder: Path) -> str:
    """Return why other users may have put kernels into a folder; empty if they cannot."""
    if os.name != "posix":
        return ""
    status = folder.stat()
    if status.st_uid not in (0, os.geteuid()):
        return f"{folder} belongs to another user"
    return f"{folder} can be written by other users" if status.st_mode & 0o022 else ""


def _touch(folder: Path) -> None:
    """Set the modification time of a folder in use, at most once a day, so that it is not removed."""
    with suppress(OSError):
        if time.time() - folder.stat().st_mtime > _DAY:
            os.utime(folder)


def stale_folders(base: Path) -> list[Path]:
    """Return the folders of other versions of the sources, the latest used first."""
    try:
        found = {folder: folder.lstat() for folder in base.glob("kernels-*-*") if folder.name != NAME}
    except OSError:
        return []
    folders = [folder for folder, status in found.items() if stat.S_ISDIR(status.st_mode)]
    return sorted(folders, key=lambda folder: found[folder].st_mtime, reverse=True)


def _remove_old_folders(base: Path) -> None:
    for number, folder in enumerate(stale_folders(base)):
        with suppress(OSError):
            days = (time.time() - folder.stat().st_mtime) / _DAY
            if days > (_KEPT_DAYS if number < _KEPT_FOLDERS else 1):
                shutil.rmtree(folder, ignore_errors=True)


@cache
def _warn(problem: str) -> None:
    warnings.warn(KernelsNotKept(problem, VARIABLE), stacklevel=2)


@cache
def source_hash(body: Callable) -> str:
    """Return a hash of the source file of a function outside this package; "" for one of the package, whose sources are
    hashed in the name of the folder."""
    if body.__module__.partition(".")[0] == "rosenblatt":
        return ""
    try:
        source = Path(inspect.getfile(body)).read_bytes()
    except (OSError, TypeError):  # a notebook has no file
        code = body.__code__
        source = repr((code.co_code, code.co_consts, code.co_names)).encode()
    return hashlib.sha256(source).hexdigest()


class KernelCache(FunctionCache):
    """The cached versions of one kernel, one for each signature.

    Parameters
    ----------
    body : function
        The Python function that is compiled.
    folder : Path
        The folder of the cache.
    source_hashes : function
        Takes a signature and returns the hashes of the source files outside this package that its types come from.
    """

    def __init__(self, body: Callable, folder: Path, source_hashes: Callable):
        self._name, self._py_func, self._cache_path, self._source_hashes = repr(body), body, str(folder), source_hashes
        name = f"{body.__module__.removeprefix('rosenblatt.')}.{body.__qualname__}".translate({ord(c): None for c in "<>"})
        version = f"py{sys.version_info[0]}{sys.version_info[1]}{getattr(sys, 'abiflags', '')}"
        self._cache_file = _Index(str(folder), f"{name}-{body.__code__.co_firstlineno}.{version}", source_hash(body))

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load the kernel that is cached for a signature; return None if there is none, or if it cannot be read."""
        rtsys.initialize(target_context)  # the rest of what numba imports here takes 0.2 s, and only compiling needs it
        try:
            data = self._cache_file.load(self._index_key(sig, target_context.codegen()))
            if data is None:
                return None
            result = CompileResult._rebuild(target_context, *data)
        except Exception:  # a damaged file may raise anything; it is replaced
            return None
        COUNTS["loaded"] += 1
        return result

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save the kernel that was compiled for a signature, where that is possible."""
        COUNTS["compiled"] += 1
        if data.library.has_dynamic_globals:
            return
        try:
            self._cache_file.save(self._index_key(sig, data.codegen), data._reduce())
        except OSError as error:  # a full disk, a folder that can only be read
            _warn(f"{self._cache_path}: {error.strerror}")

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        """Return the key of a cached kernel: signature, processor, function, and hashes of sources outside this package."""
        return (*super()._index_key(sig, codegen), self._source_hashes(sig))


class _Index(IndexDataCacheFile):
    """The index of a kernel: its signatures and the file of each. An index is replaced by an empty one if it is damaged, or
    if it names a type of a module that cannot be imported now, such as a user's rule."""

    def save(self, key: Any, data: Any) -> None:
        """Write the kernel to a file with a unique name, then the index. Two processes that write at the same time may lose
        an entry, but never load one kernel for another."""
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
        except Exception:  # a missing module or name, or whatever a damaged file raises
            return {}
