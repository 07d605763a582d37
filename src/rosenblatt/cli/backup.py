"""`rosenblatt backup`: copy the folder of a server while it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rosenblatt.cli import options as opts
from rosenblatt.cli.console import Console
from rosenblatt.cli.serve import require_packages


def backup(
    folder: Annotated[str, typer.Argument(help="The folder of a server, which may be running.")],
    target: Annotated[str, typer.Argument(help="The folder to make.")],
    json: opts.Json = False,
    quiet: opts.Quiet = False,
) -> None:
    """Copy the folder of a server as it is at one moment, while it runs; `rosenblatt serve` can open the copy."""
    require_packages()
    from rosenblatt.serve.backup import back_up

    found = back_up(Path(folder), Path(target))
    facts = {"folder": folder, "target": target, **found._asdict()}
    Console(json, quiet).result(facts, f"{target}: {found.models} models, {found.commits:,} commits, {found.bytes:,} bytes")
