"""`rosenblatt token`: who may use a server, and what for."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from rosenblatt.cli import options as opts
from rosenblatt.cli.console import Console
from rosenblatt.cli.errors import Code, Failure

if TYPE_CHECKING:
    from rosenblatt.serve.tokens import Token


class Action(StrEnum):
    """What to do with the tokens of a folder."""

    add = "add"
    list = "list"
    remove = "remove"


class ScopeName(StrEnum):
    """Those of `rosenblatt.serve.tokens`."""

    predict = "predict"
    learn = "learn"
    administer = "administer"


def token(
    context: typer.Context,
    action: Annotated[Action, typer.Argument(metavar="add|list|remove", help="What to do with tokens.")],
    folder: Annotated[
        str, typer.Argument(metavar="FOLDER", help="The folder of the server; add makes it if there is none.")
    ],
    id: Annotated[str | None, typer.Argument(metavar="ID", help="The id of the token to remove.")] = None,
    scope: Annotated[
        list[ScopeName] | None,
        opts.option("--scope", "predict|learn|administer", "What the token allows; administer is all; repeatable."),
    ] = None,
    expires: Annotated[
        str, opts.option("--expires", "WHEN", "When it ends: 30d, 12h, the last day such as 2027-01-31, or never.")
    ] = "365d",
    name: Annotated[str, opts.option("--name", "TEXT", "What the token is for, in your words.")] = "",
    json: opts.Json = False,
    quiet: opts.Quiet = False,
) -> None:
    """Add, list or remove the tokens of a server, which need not be running; if it is, the change takes effect at once.

    A folder with tokens answers only requests that have one: Authorization: Bearer TOKEN. A token is printed when it is
    added and never again: the folder keeps its SHA-256 only. Removing the last token lets nobody in.
    """
    from rosenblatt.serve import tokens

    console = Console(json, quiet)
    if action is not Action.add:
        opts.refuse_options(context, ("scope", "expires", "name"), f"it has no effect on {action.value}")
    if (id is not None) != (action is Action.remove):
        problem = f"the id {id} has no effect on {action.value}" if id is not None else "remove needs the id of a token"
        raise Failure(problem, Code.USAGE, None if id is not None else f"rosenblatt token list {folder}")
    if action is Action.add:
        if not scope:
            raise Failure("add needs --scope: what the token allows", Code.USAGE, "--scope predict --scope learn")
        text, added = tokens.add_token(folder, [each.value for each in scope], tokens.parse_expiry(expires), name)
        console.result({"token": text, **_facts(added)}, text)
        console.note(f"this is the only time that the token is shown; it expires: {_expiry_text(added)}")
    elif action is Action.remove:
        removed = tokens.remove_token(folder, id or "")
        console.result(_facts(removed), f"removed {removed.id}{f' ({removed.name})' if removed.name else ''}")
    else:
        known = tokens.list_tokens(folder)
        headings = ("id", "name", "scopes", "created", "expires")
        rows = [
            (each.id, each.name, " ".join(each.scopes), tokens.time_text(each.created), _expiry_text(each))
            for each in known
        ]
        text = console.table(headings, rows) if rows else "there are no tokens"
        console.result({"tokens": [_facts(each) for each in known]}, text)


def _facts(token: Token) -> dict[str, object]:
    from rosenblatt.serve.tokens import time_text

    expires = None if token.expires is None else time_text(token.expires)
    return {
        "id": token.id, "name": token.name, "scopes": list(token.scopes), "created": time_text(token.created),
        "expires": expires, "expired": token.has_expired(),
    }  # fmt: skip


def _expiry_text(token: Token) -> str:
    from rosenblatt.serve.tokens import time_text

    if token.expires is None:
        return "never"
    return time_text(token.expires) + (" (expired)" if token.has_expired() else "")
