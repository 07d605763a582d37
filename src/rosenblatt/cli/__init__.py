"""The command line: one function a sub-command, each a call into the library."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

_MISSING = "error: the command line needs typer, which is not installed\ntry: pip install 'rosenblatt[cli]'"


def main(argv: Sequence[str] | None = None) -> int:
    """Run `rosenblatt` with these arguments (those of the process, if none are given) and give back its exit code."""
    try:
        import typer  # noqa: F401
    except ModuleNotFoundError as missing:
        if missing.name != "typer":
            raise
        print(_MISSING, file=sys.stderr)
        return 2
    from rosenblatt.cli.app import run

    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure") and stream.encoding.lower() not in ("utf-8", "utf8"):
            stream.reconfigure(errors="backslashreplace")  # γ is no reason to stop, where the terminal cannot show it
    code = run(sys.argv[1:] if argv is None else list(argv))
    try:
        sys.stdout.flush()
    except BrokenPipeError:  # whoever reads us (head) has enough; without this, Python complains when it closes stdout
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    return code
