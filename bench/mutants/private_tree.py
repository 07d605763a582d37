"""A copy of the repository in a temporary folder, in which one source file at a time is mutated.

Python knows its compiled files by the size and the time of their sources, and a mutant may have both in common with its
source: the compiled file of a mutated source is removed before and after.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
PACKAGE = Path("src") / "rosenblatt"


class PrivateTree:
    """A copy of the files that git knows or would add.

    Parameters
    ----------
    folder : Path
        A folder that does not exist yet.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
        listed = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True, timeout=60)
        for name in filter(None, listed.stdout.split("\0")):
            if (REPOSITORY / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(REPOSITORY / name, folder / name)

    @contextmanager
    def mutated(self, file: str, text: str) -> Iterator[None]:
        """Put another text into a file of the package, and take it back."""
        path = self.folder / PACKAGE / file
        pristine = path.read_text(encoding="utf-8")
        try:
            _replace(path, text)
            yield
        finally:
            _replace(path, pristine)


def _replace(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    Path(importlib.util.cache_from_source(str(path))).unlink(missing_ok=True)
