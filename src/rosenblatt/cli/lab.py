"""`rosenblatt lab`: click points, and watch learners learn them."""

from __future__ import annotations

from typing import Annotated

import typer

from rosenblatt.cli import options as opts
from rosenblatt.cli.console import Console
from rosenblatt.cli.errors import Code
from rosenblatt.cli.serve import require_packages


def lab(
    data: Annotated[
        str | None,
        typer.Argument(metavar="DATA", help="A table of points to begin with: two columns of numbers and a label."),
    ] = None,
    host: Annotated[str, opts.option(
        "--host", "ADDRESS", "Listen at this address: 127.0.0.1, ::1 or localhost."
    )] = "127.0.0.1",
    port: Annotated[int | None, opts.option(
        "--port", "N", "Listen at this port; 0: any that is free. By default 8100, or the next that is free."
    )] = None,
    no_open: Annotated[bool, opts.option("--no-open", None, "Do not open the page in the browser.")] = False,
    json: opts.Json = False,
    quiet: opts.Quiet = False,
) -> int:  # fmt: skip
    """Click points in the browser and watch learners of the family learn them, update by update, two side by side.

    The page is served on this machine alone, and the library computes each run. Ctrl-C ends it.
    """
    require_packages()
    console = Console(json, quiet)
    from rosenblatt.lab.points import read_points
    from rosenblatt.lab.server import serve_lab

    points = None if data is None else read_points(data)

    def started(url: str) -> None:
        console.result({"url": url}, f"the lab is at {url}")
        import sys
        import webbrowser

        sys.stdout.flush()
        if not no_open:
            webbrowser.open(url)

    serve_lab(host, port, points, started)
    return Code.DONE
