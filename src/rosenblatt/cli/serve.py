"""`rosenblatt serve`: a server of models that learn one example at a time."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from rosenblatt.cli import options as opts
from rosenblatt.cli.console import Console
from rosenblatt.cli.errors import Code
from rosenblatt.errors import MissingDependency

_MIB = 1 << 20
_MOST_MIB = 1 << 40


def serve(
    folder: Annotated[str, typer.Argument(help="The folder of the models and their log; it is made if there is none.")],
    host: Annotated[str, opts.option(
        "--host", "ADDRESS", "Listen at this address. One that other machines can reach needs tokens."
    )] = "127.0.0.1",
    port: Annotated[int, opts.option(
        "--port", "N", "Listen at this port; 0: any that is free."
    )] = 8000,
    check: Annotated[bool, opts.option(
        "--check", None, "Do not serve: verify the log, the snapshots and the replay."
    )] = False,
    allow_host: Annotated[list[str] | None, opts.option(
        "--allow-host", "NAME", "A name that a reverse proxy on this machine sends as Host; repeatable."
    )] = None,
    max_body: Annotated[float | None, opts.option(
        "--max-body", "MIB", "Refuse larger requests; 32 by default.", min=0
    )] = None,
    max_rows: Annotated[int | None, opts.option(
        "--max-rows", "N", "Refuse requests with more examples; 10,000 by default.", min=1
    )] = None,
    max_models: Annotated[int | None, opts.option(
        "--max-models", "N", "Refuse to create more than N models; 100 by default.", min=1
    )] = None,
    max_model_memory: Annotated[float | None, opts.option(
        "--max-model-memory", "MIB", "Refuse to let a model grow larger; 1024 by default.", min=0
    )] = None,
    max_disk: Annotated[float | None, opts.option(
        "--max-disk", "MIB", "Refuse to learn when the folder is larger.", min=0
    )] = None,
    min_free_disk: Annotated[float | None, opts.option(
        "--min-free-disk", "MIB", "Refuse to learn with less free space; 256 by default.", min=0
    )] = None,
    prediction_days: Annotated[float | None, opts.option(
        "--prediction-days", "DAYS", "Keep predicted rows this long for late labels; 30 by default.", min=0
    )] = None,
    accept_loss: Annotated[bool, opts.option(
        "--accept-loss", None, "Serve what is left of a log whose end is missing."
    )] = False,
    json: opts.Json = False,
    quiet: opts.Quiet = False,
) -> int:  # fmt: skip
    """Serve models that learn one example at a time, over HTTP, and lose nothing.

    A request to learn is answered when it is on the disk. The page at the address shows the models and how they learn.
    Ctrl-C and SIGTERM finish what was accepted.
    """
    require_packages()
    console = Console(json, quiet)
    if check:
        return _check_folder(Path(folder), console)
    from rosenblatt.serve.limits import Limits
    from rosenblatt.serve.server import Started
    from rosenblatt.serve.server import serve as run

    given: dict[str, Any] = {
        "body_bytes": _bytes(max_body), "rows": max_rows, "models": max_models,
        "model_bytes": _bytes(max_model_memory), "disk_bytes": _bytes(max_disk),
        "disk_free_bytes": _bytes(min_free_disk), "prediction_days": prediction_days,
    }  # fmt: skip
    limits = Limits()._replace(**{name: value for name, value in given.items() if value is not None})

    def started(server: Started) -> None:
        facts = {
            "url": server.url,
            "folder": folder,
            "models": server.models,
            "examples": server.examples,
            "tokens": server.tokens,
        }
        text = f"serving {server.url}: {server.models} models, {server.examples:,} examples"
        console.result(facts, text + ("; requests need a token" if server.tokens else ""))
        import sys

        sys.stdout.flush()

    run(Path(folder), host, port, limits, accept_loss, tuple(allow_host or ()), started, console.note)
    return Code.DONE


def require_packages() -> None:
    """Raise an error that names the extra if a package that the server needs is not installed."""
    for package in ("fastapi", "httptools", "uvicorn", "uvloop"):
        if find_spec(package) is None:
            raise MissingDependency(package, "serve", "servers")


def _bytes(mebibytes: float | None) -> int | None:
    return None if mebibytes is None else int(min(mebibytes, _MOST_MIB) * _MIB)


def _check_folder(folder: Path, console: Console) -> int:
    from rosenblatt.serve.check import check_folder

    found = check_folder(folder, lambda what: console.note(f"checking {what}"))
    lines = [f"{found.models} models, {found.entries:,} entries, {found.examples:,} examples, {found.snapshots} snapshots"]
    lines += [f"wrong: {problem}" for problem in found.problems] or ["log, snapshots and replay agree"]
    console.result({**found._asdict(), "problems": list(found.problems)}, "\n".join(lines))
    return Code.NO if found.problems else Code.DONE
