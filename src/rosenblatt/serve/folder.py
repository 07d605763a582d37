"""The files of a server: the lock, the number of the last commit that was acknowledged, and whether all of it is there."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from xxhash import xxh64_hexdigest

from rosenblatt.errors import DamagedLog, FolderInUse, UnreadableModel

FORMAT = 1
LOG, ACKNOWLEDGED, LOCK, SNAPSHOTS = "log.sqlite", "acknowledged", "lock", "snapshots"
_WAIT = 10.0  # seconds for a lock of a backup
_MAGIC = b"SQLite format 3\0"
_NO_DAMAGE = {
    sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_INTERRUPT,
}  # fmt: skip
RESTORE = "restore a backup"
RESTORE_OR_ACCEPT = f"{RESTORE}, or open what is there with --accept-loss"  # where nothing but the end is missing
_SLOT = 48  # bytes of a line in the file of acknowledged commits, which has two


class FolderLock:
    """A lock on a folder, held as long as the process lives or until it is closed.

    Parameters
    ----------
    folder : Path
        The folder.
    hint : str, optional
        What to do if another process has it.

    Raises
    ------
    FolderInUse
        If another process has it.
    """

    def __init__(self, folder: Path, hint: str | None = None):
        self._file = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._file)
            raise FolderInUse(folder, **({} if hint is None else {"hint": hint})) from None

    def close(self) -> None:
        """Let other processes have the folder."""
        os.close(self._file)


class AcknowledgedCommits:
    """The file with the number of the last commit that was acknowledged, on two lines that are written in turns.

    It is handed to the system before anybody is told of the commit, so that it survives the process. The disk gets it a
    little later: that the commit itself is on the disk is what SQLite has promised.

    Parameters
    ----------
    path : Path
        The file.
    """

    def __init__(self, path: Path):
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def write(self, commits: int) -> None:
        """Say that a commit is acknowledged.

        Parameters
        ----------
        commits : int
            Its number.
        """
        os.pwrite(self._file, self._line(commits), (commits % 2) * _SLOT)

    def reset(self, commits: int) -> None:
        """Say it on both lines.

        Parameters
        ----------
        commits : int
            The number of the commit.
        """
        os.pwrite(self._file, 2 * self._line(commits), 0)

    @staticmethod
    def _line(commits: int) -> bytes:
        number = f"{commits:020d}".encode()
        return (b"commit " + number + b" " + xxh64_hexdigest(number).encode()).ljust(_SLOT - 1) + b"\n"

    def flush(self) -> None:
        """Wait until the disk has it."""
        os.fsync(self._file)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    @staticmethod
    def read(path: Path, hint: str = RESTORE) -> int:
        """Return the number of the last commit that was acknowledged.

        Parameters
        ----------
        path : Path
            The file.
        hint : str
            What to do if it cannot be read.

        Returns
        -------
        commits : int

        Raises
        ------
        DamagedLog
            If it is not there or neither line can be read.
        """
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            raise DamagedLog("the file is missing", path=path, hint=hint) from None
        numbers = []
        for start in (0, _SLOT):
            parts = content[start : start + _SLOT].split()
            if len(parts) == 3 and parts[2] == xxh64_hexdigest(parts[1]).encode():
                numbers.append(int(parts[1]))
        if not numbers:
            raise DamagedLog("it does not say which commits were acknowledged", path=path, byte=0, hint=hint)
        if len(content) != 2 * _SLOT:
            raise DamagedLog("it was cut", path=path, byte=len(content), hint=hint)
        return max(numbers)


def require_log(folder: Path) -> None:
    """Raise a DamagedLog if a folder is not there, or is not that of a server."""
    if not folder.exists():
        raise DamagedLog("there is no such folder", path=folder)
    if not folder.is_dir():
        raise DamagedLog("this is a file, not a folder", path=folder)
    if not (folder / LOG).exists() and not (folder / ACKNOWLEDGED).exists():
        raise DamagedLog(f"no server has used this folder: it has no {LOG}", path=folder)


def check_files(folder: Path, hint: str = RESTORE) -> int:
    """Check that the files of a log are whole and have every commit that was acknowledged; nothing is changed.

    Parameters
    ----------
    folder : Path
        The folder of a server that does not run.
    hint : str
        What to do if nothing but the end of the log is missing, or the file that says where it ends.

    Returns
    -------
    commits : int
        The number of the last commit.

    Raises
    ------
    DamagedLog
        If something is missing; it names the file and the place.
    """
    path, acknowledged = folder / LOG, AcknowledgedCommits.read(folder / ACKNOWLEDGED, hint)
    if not path.exists():
        raise DamagedLog(f"the file is missing; {acknowledged:,} commits were acknowledged", path=path, hint=RESTORE)
    size = path.stat().st_size
    with open(path, "rb") as file:
        head = file.read(100)
    if len(head) < 100 or not head.startswith(_MAGIC):
        raise DamagedLog("it is not a log of SQLite", path=path, byte=min(len(head), len(_MAGIC)), hint=RESTORE)
    page = int.from_bytes(head[16:18], "big") or 1
    page = 65536 if page == 1 else page
    if size % page:
        raise DamagedLog(f"it was cut: the last page of {page:,} bytes is not complete", path=path, byte=size, hint=RESTORE)
    wal = Path(f"{path}-wal")
    expected = int.from_bytes(head[28:32], "big")  # pages, as of the last time that SQLite wrote to this file
    if not (wal.exists() and wal.stat().st_size) and size != expected * page:
        place = min(size, expected * page)
        raise DamagedLog(
            f"it has {size:,} bytes, and {expected * page:,} were written", path=path, byte=place, hint=RESTORE
        )
    with damage_named(path), closing(connect(path, read_only=True)) as database:
        pages = database.execute("PRAGMA page_count").fetchone()[0]
        lock = (1 << 30) // page + 1  # the page of SQLite's lock, which is never written
        missing = set(range(size // page + 1, pages + 1)) - _pages_in_wal(wal, page) - {lock}
        if missing:
            place = (min(missing) - 1) * page
            raise DamagedLog(f"it was cut: {len(missing):,} pages are missing", path=path, byte=place, hint=RESTORE)
        values = dict(database.execute("SELECT name, value FROM meta"))
        last = database.execute("SELECT max(entry) FROM log").fetchone()[0]
    if not all(type(values.get(name)) is int for name in ("format", "commits")):
        raise DamagedLog("it does not say which format and how many commits it has", path=path, hint=RESTORE)
    if values["format"] != FORMAT:
        raise UnreadableModel(f"the log has format {values.get('format')}; this version reads {FORMAT}", path=path)
    commits = int(values["commits"])
    if commits < acknowledged:
        place = wal.stat().st_size if wal.exists() else 0
        raise DamagedLog(
            f"its end is missing: it has commit {commits:,}, with entry {last or 0:,}, and commit {acknowledged:,} was "
            "acknowledged; the file was cut, or the disk lost what it had confirmed",
            path=wal,
            byte=place,
            hint=hint,
        )
    return commits


def _pages_in_wal(path: Path, page: int) -> set[int]:
    """Return the numbers of the pages that are in a write-ahead log."""
    pages: set[int] = set()
    if path.exists():
        with open(path, "rb") as file:
            salt = file.read(32)[16:24]
            while len(frame := file.read(24)) == 24 and frame[8:16] == salt:  # frames after it are of an older log
                pages.add(int.from_bytes(frame[:4], "big"))
                file.seek(page, os.SEEK_CUR)
    return pages


@contextmanager
def damage_named(path: Path) -> Iterator[None]:
    """Raise a DamagedLog for what SQLite says of a damaged file."""
    try:
        yield
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # the latter from text in SQLite's own messages
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _NO_DAMAGE:
            raise
        raise DamagedLog(f"SQLite cannot read it: {error}", path=path, hint=RESTORE) from None


def connect(path: Path, read_only: bool = False) -> sqlite3.Connection:
    """Return a connection to a database that is there, for any thread."""
    uri = f"{path.absolute().as_uri()}?mode={'ro' if read_only else 'rw'}"
    return sqlite3.connect(uri, timeout=_WAIT, isolation_level=None, check_same_thread=False, uri=True)


def give_back_pages(database: sqlite3.Connection, most: int = 0) -> None:
    """Give pages of a database that are not used any more back to the disk; after a checkpoint its file is shorter.

    Parameters
    ----------
    database : sqlite3.Connection
        A connection that is in no transaction.
    most : int, default=0
        How many; 0: all.
    """
    database.executescript(f"PRAGMA incremental_vacuum({most})")  # `execute` would step once, and free one page


def cut_wal(database: sqlite3.Connection) -> bool:
    """Write all of the write-ahead log of a database into its file, and cut it to nothing; return whether that was done.

    Parameters
    ----------
    database : sqlite3.Connection
        A connection that is in no transaction. It does not wait for those that read: then it can be tried again later.
    """
    before = database.execute("PRAGMA busy_timeout").fetchone()[0]
    database.execute("PRAGMA busy_timeout = 0")
    try:
        return not database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    finally:
        database.execute(f"PRAGMA busy_timeout = {before}")


def flush_folder(folder: Path) -> None:
    """Wait until the disk has the names of the files in a folder."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
