"""Copy a folder as it is at one moment, while a server writes to it. The copy is a folder that a server can open."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from rosenblatt.errors import DamagedLog, OutputError
from rosenblatt.serve.folder import (
    ACKNOWLEDGED,
    LOG,
    RESTORE,
    SNAPSHOTS,
    AcknowledgedCommits,
    damage_named,
    flush_folder,
    require_log,
)
from rosenblatt.serve.log import LogReader
from rosenblatt.serve.predictions import PREDICTIONS
from rosenblatt.serve.tokens import FILE as TOKENS


class BackedUp(NamedTuple):
    """What a backup has."""

    models: int
    commits: int
    bytes: int


def back_up(folder: Path, target: Path) -> BackedUp:
    """Copy the log, the snapshots, the rows of predictions and the tokens of a folder.

    Parameters
    ----------
    folder : Path
        The folder of a server, which may be running.
    target : Path
        The folder to make; it must not be there.

    Returns
    -------
    backup : BackedUp

    Raises
    ------
    DamagedLog
        If there is no log, or it cannot be read.
    OutputError
        If the copy cannot be written.
    """
    require_log(folder)
    if not (folder / LOG).exists():
        raise DamagedLog("the file is missing", path=folder / LOG, hint=RESTORE)
    if target.exists():
        raise OutputError("it is there already; name a new folder", target)
    part = target.with_name(target.name + ".part")
    try:
        if part.exists():
            shutil.rmtree(part)
        part.mkdir(mode=0o700, parents=True)
        (part / SNAPSHOTS).mkdir(mode=0o700)
        found = _copy(folder, part)
        os.rename(part, target)
        flush_folder(target.parent)
    except OSError as error:
        shutil.rmtree(part, ignore_errors=True)
        if isinstance(error, OutputError):
            raise
        raise OutputError(f"the copy cannot be written: {error.strerror}", target, error.errno) from None
    return found


def _copy(folder: Path, part: Path) -> BackedUp:
    with LogReader(folder / LOG) as read:
        _copy_database(read, part / LOG)
    with closing(sqlite3.connect(part / LOG)) as database, damage_named(part / LOG):
        commits = database.execute("SELECT value FROM meta WHERE name = 'commits'").fetchone()[0]
    with LogReader(part / LOG, sqlite3.connect(part / LOG)) as copied:  # which removes its files when it is closed
        records = copied.models()
        for record in records:
            for snapshot in copied.snapshots(record.id):
                try:  # one that was removed meanwhile, or is damaged, is found from the log again
                    content = (folder / SNAPSHOTS / snapshot.file).read_bytes() if snapshot.digest else b""
                except FileNotFoundError:
                    continue
                if content:
                    write_private(part / SNAPSHOTS / snapshot.file, content)
    with closing(AcknowledgedCommits(part / ACKNOWLEDGED)) as file:
        file.reset(commits)
        file.flush()
    if (folder / PREDICTIONS).exists():
        with LogReader(folder / PREDICTIONS) as read:
            _copy_database(read, part / PREDICTIONS)
    if (folder / TOKENS).exists():
        write_private(part / TOKENS, (folder / TOKENS).read_bytes())
    size = sum(path.stat().st_size for path in part.rglob("*") if path.is_file())
    flush_folder(part)
    return BackedUp(len(records), commits, size)


def _copy_database(read: LogReader, target: Path) -> None:
    os.close(os.open(target, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    with damage_named(read.path):
        read.backup(target)


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read, and wait until the disk has it."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with open(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
