"""`rosenblatt certify`: can a hyperplane separate two classes? The answer is a proof."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from rosenblatt.cli import examples
from rosenblatt.cli.asked import Columns, Files
from rosenblatt.cli.console import Console
from rosenblatt.cli.errors import Code
from rosenblatt.cli.grouped import grouped
from rosenblatt.cli.options import Check, Json, Proof, Quiet
from rosenblatt.cli.proofs import MOST, checked, number, prepared, some, written

_QUESTION = "separability"


@grouped
def certify(
    data: Files,
    columns: Columns,
    intercept: Annotated[
        bool, typer.Option("--intercept/--no-intercept", help="Whether the hyperplane may miss the origin.")
    ] = True,
    positive: Annotated[str | None, typer.Option(metavar="LABEL", help="Ask for this class against all others.")] = None,
    margin: Annotated[
        bool, typer.Option("--margin", help="How wide the widest margin is, too, proved from both sides.")
    ] = False,
    max_seconds: Annotated[float, typer.Option(min=0, metavar="S", help="When to give up.")] = 600.0,
    output: Proof = None,
    check: Check = None,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Prove that a hyperplane separates two classes, or that none does.

    The proof is a hyperplane with all rows on their right sides, or a few rows with whole weights that make one impossible.
    Either is checked in exact arithmetic, here and by --check. Numbers are taken as the floats they are read as.

    Exit code 0: separable (with --check: the proof holds). 1: not separable, or undecided (the proof does not hold).
    """
    from rosenblatt.data import opening

    console = Console(json, quiet)
    prepared(output, check, opening.paths(data))
    if check is not None:
        return _check(check, data, columns, positive, console)

    from rosenblatt.theory import gamma_affine, gamma_origin, separability

    read = examples.read(data, columns).against(positive)
    answer = separability(read.X, read.y, intercept=intercept, max_seconds=max_seconds)
    classes = read.classes(positive)
    facts: dict[str, Any] = {
        "files": data,
        "columns": {name: value for name, value in columns._asdict().items() if value is not None},
        "xxh64": read.digest,
        "rows": read.shape[0],
        "features": read.shape[1],
        "classes": classes,
        "positive": positive,
        "intercept": intercept,
    }
    if answer.separable is None:
        console.result({**facts, "separable": None, "reason": str(answer)}, str(answer))
        return Code.NO
    proofs: dict[str, Any] = {"separable" if answer else "inseparable": answer}
    if margin and answer:
        proofs["margin"] = (gamma_affine if intercept else gamma_origin)(read.X, read.y)
    written(output, _QUESTION, proofs, facts, console)

    from rosenblatt.exact.documents import as_facts

    bracket = {"margin": [proofs["margin"].lower, proofs["margin"].upper]} if "margin" in proofs else {}
    console.result(
        {**facts, "separable": answer.separable, "certificate": as_facts(answer), **bracket},
        "\n".join(_plane(answer, read, classes, proofs.get("margin")) if answer else _rows(answer, read, classes)),
    )
    return Code.DONE if answer else Code.NO


def _plane(answer: Any, read: examples.Examples, classes: list[str], margin: Any) -> list[str]:
    low, high = classes
    inside = "w·x + b" if answer.intercept else "w·x"
    lines = [f"separable: {inside} is positive in every row of {high} and negative in every row of {low}"]
    held = [j for j, value in enumerate(answer.w) if value]
    held.sort(key=lambda j: -abs(answer.w[j]))
    width = max((len(read.names(j)) for j in held[:MOST]), default=1)
    lines += some([f"  w[{read.names(j)}]{' ' * (width - len(read.names(j)))} = {number(answer.w[j])}" for j in held])
    lines += [f"  b{' ' * (width + 2)} = {number(answer.b)}"] if answer.intercept else []
    lines.append(f"its least margin, y({inside}), is {number(answer.margin)}, in row {answer.row} (counted from 0)")
    if margin is not None:
        lines.append(f"the widest margin γ lies between {margin.lower:.17g} and {margin.upper:.17g}")
    return lines


def _rows(answer: Any, read: examples.Examples, classes: list[str]) -> list[str]:
    import numpy as np

    of = (read.y == np.unique(read.y)[1]).astype(int)
    if len(answer.rows) == 1:
        return [f"not separable: row {answer.rows[0]} (counted from 0) is all zeros, so that w·x = 0 there for every w"]
    if len(answer.rows) == 2 and answer.intercept:
        named = " and ".join(f"row {row} ({classes[of[row]]})" for row in answer.rows)
        return [f"not separable: {named}, counted from 0, are the same point"]
    shown = [
        f"  {weight:,} × row {row} ({classes[of[row]]})"
        for row, weight in zip(answer.rows, answer.combination, strict=True)
    ]
    return [
        f"not separable: {len(answer.rows)} rows (counted from 0) prove it",
        *some(shown),
        f"weighted so, those of {classes[0]} and those of {classes[1]} have the same sum"
        + (" and the same number" if answer.intercept else ""),
        "so that no hyperplane has them on different sides",
    ]


def _check(path: str, data: list[str], columns: Columns, positive: str | None, console: Console) -> int:
    from rosenblatt.exact.documents import UnreadableCertificate
    from rosenblatt.exact.documents import read as opened
    from rosenblatt.theory import Inseparable, Margin, Separable

    proofs, facts = opened(path, _QUESTION, {"separable": Separable, "inseparable": Inseparable, "margin": Margin})
    asked, told = facts.get("columns"), facts.get("positive")
    if not isinstance(asked, dict) or not asked.keys() <= set(Columns._fields) or not isinstance(told, str | None):
        raise UnreadableCertificate(f"{path} is damaged: it does not say how its data were read")
    read = examples.read(data, Columns(**asked) if columns == Columns() else columns).against(positive or told)
    named = ", ".join(data)
    if (then := facts.get("classes")) != (now := read.classes(positive or told)):
        return checked(path, {"": f"it is about the classes {then}, and the data have {now}"}, console, named)
    if facts.get("xxh64") != read.digest:
        console.note(f"{named} is not what {path} was made from (XXH64 differs); what counts is whether it holds")
    return checked(path, {_claim(proof): proof.refutation(read.X, read.y) for proof in proofs.values()}, console, named)


def _claim(proof: Any) -> str:
    if hasattr(proof, "upper"):
        return f"γ is between {proof.lower:.17g} and {proof.upper:.17g}"
    return ("separable" if proof else "not separable") + ("" if proof.intercept else " through the origin")
