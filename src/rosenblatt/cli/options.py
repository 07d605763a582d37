"""Options that mean the same in every command."""

from __future__ import annotations

from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but the result.")]
Seed = Annotated[
    int, typer.Option("--seed", metavar="N", min=0, max=2**32 - 1, help="Where chance begins: same seed, same result.")
]
Output = Annotated[
    str | None, typer.Option("--output", "-o", metavar="FILE", help="Write to this file, at once or not at all.")
]
Plot = Annotated[
    str | None, typer.Option("--plot", metavar="FILE", help="Draw a picture: .png, .svg or .pdf. Needs matplotlib.")
]
Proof = Annotated[str | None, typer.Option("--output", "-o", metavar="FILE", help="Write the proof to this file, as JSON.")]
Check = Annotated[
    str | None, typer.Option("--check", metavar="FILE", help="Look for nothing: check the proof in this file.")
]
