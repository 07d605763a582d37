"""The command line: one function a sub-command, each a call into the library."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

_MISSING = "error: the command line needs typer, which is not installed\ntry: pip install 'rosenblatt[cli]'"


def command() -> NoReturn:
    """Run the process `rosenblatt`."""
    gc.set_threshold(100_000)  # imports make no garbage that is worth looking for
    sys.exit(main())


def main(argv: Sequence[str] | None = None) -> int:
    """Run `rosenblatt` with these arguments (those of the process, if none are given) and return the exit code."""
    try:
        import typer  # noqa: F401  only whether it is there

        from rosenblatt.cli.app import run
        from rosenblatt.cli.console import is_utf8
        from rosenblatt.cli.errors import report
        from rosenblatt.cli.output import open_stderr, open_stdout
    except KeyboardInterrupt:
        return 130
    except ModuleNotFoundError as missing:
        if missing.name != "typer":
            raise
        print(_MISSING, file=sys.stderr)
        return 2
    if sys.stdout is None or sys.stdout is sys.__stdout__:
        sys.stdout = open_stdout()
    if sys.stderr is None or sys.stderr is sys.__stderr__:
        sys.stderr = open_stderr()
    if sys.stdin is None:  # it was closed, as by <&-
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115  open to the end
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure") and not is_utf8(stream):
            stream.reconfigure(errors="backslashreplace")  # a terminal that cannot show γ is no error
    code = run(sys.argv[1:] if argv is None else list(argv))
    try:
        sys.stdout.flush()
    except OSError as error:  # a full disk; or whoever reads us (head) has enough
        return report(error)
    return code
