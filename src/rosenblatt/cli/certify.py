"""`rosenblatt certify`: can a hyperplane separate two classes? The answer is a proof."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from rosenblatt.cli import options as opts
from rosenblatt.cli.console import Console
from rosenblatt.cli.errors import Code
from rosenblatt.cli.proofs import (
    MOST,
    Examples,
    check_output,
    first_lines,
    number_text,
    read_examples,
    save_proofs,
    show_check,
)
from rosenblatt.errors import UnreadableCertificate

_QUESTION = "separability"


@opts.expand_groups
def certify(
    context: typer.Context,
    data: opts.Files,
    columns: opts.DataOptions,
    intercept: Annotated[
        bool, opts.option("--intercept/--no-intercept", None, "Hyperplane with an intercept, or through the origin.")
    ] = True,
    positive: Annotated[
        opts.Text, opts.option("--positive", "LABEL", "Separate this class from all others (one-vs-rest).")
    ] = None,
    margin: Annotated[
        bool, opts.option("--margin", None, "Also prove a lower and an upper bound of the largest margin.")
    ] = False,
    max_seconds: Annotated[float, opts.option("--max-seconds", "S", "Time limit in seconds.", min=0)] = 600.0,
    output: opts.Proof = None,
    check: opts.Check = None,
    max_line: opts.MaxLine = "64M",
    json: opts.Json = False,
    quiet: opts.Quiet = False,
) -> int:
    """Decide whether two classes are linearly separable, with a proof either way.

    The proof is a hyperplane with every row on the side of its class, or a few rows with integer weights that show that
    there is none. Either is checked in exact arithmetic, here and by --check. Numbers are read as 64-bit floats.

    Exit code 0: separable (with --check: the proof holds). 1: not separable, or undecided (the proof does not hold).
    """
    from rosenblatt.data import opening

    console = Console(json, quiet)
    check_output(output, check, opening.paths(data))
    if check is not None:
        opts.refuse_options(context, ("intercept", "margin", "max_seconds"), "it has no effect with --check")
        return _check(check, data, columns, positive, console)

    from rosenblatt.theory import gamma_affine, gamma_origin, separability

    examples = read_examples(data, columns).one_against_rest(positive)
    answer = separability(examples.X, examples.y, intercept=intercept, max_seconds=max_seconds)
    classes = examples.classes(positive)
    facts: dict[str, Any] = {
        "files": data,
        "columns": {name: value for name, value in columns._asdict().items() if value is not None},
        "xxh64": examples.digest,
        "rows": examples.shape[0],
        "features": examples.features,
        "classes": classes,
        "positive": positive,
        "intercept": intercept,
    }
    if answer.separable is None:
        console.result({**facts, "separable": None, "reason": str(answer)}, str(answer))
        return Code.NO
    proofs: dict[str, Any] = {"separable" if answer else "inseparable": answer}
    if margin and answer:
        proofs["margin"] = (gamma_affine if intercept else gamma_origin)(examples.X, examples.y)
    save_proofs(output, _QUESTION, proofs, facts, console)

    from rosenblatt.exact.documents import as_facts

    bracket = {"margin": [proofs["margin"].lower, proofs["margin"].upper]} if "margin" in proofs else {}
    console.result(
        {**facts, "separable": answer.separable, "certificate": as_facts(next(iter(proofs.values()))), **bracket},
        "\n".join(_plane(answer, examples, classes, proofs.get("margin")) if answer else _rows(answer, examples, classes)),
    )
    return Code.DONE if answer else Code.NO


def _plane(answer: Any, examples: Examples, classes: list[str], margin: Any) -> list[str]:
    low, high = classes
    inside = "w·x + b" if answer.intercept else "w·x"
    lines = [f"separable: {inside} is positive in every row of {high} and negative in every row of {low}"]
    held = [j for j, value in enumerate(answer.w) if value]
    held.sort(key=lambda j: -abs(answer.w[j]))
    width = max((len(examples.column_name(j)) for j in held[:MOST]), default=1)
    lines += first_lines(
        [
            f"  w[{examples.column_name(j)}]{' ' * (width - len(examples.column_name(j)))} = {number_text(answer.w[j])}"
            for j in held
        ]
    )
    lines += [f"  b{' ' * (width + 2)} = {number_text(answer.b)}"] if answer.intercept else []
    lines.append(f"the smallest margin, y({inside}), is {number_text(answer.margin)}, in row {answer.row} (counted from 0)")
    if margin is not None:
        lines.append(f"the largest margin γ is between {margin.lower:.17g} and {margin.upper:.17g}")
    return lines


def _rows(answer: Any, examples: Examples, classes: list[str]) -> list[str]:
    import numpy as np

    of = (examples.y == np.unique(examples.y)[1]).astype(int)
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
        *first_lines(shown),
        f"weighted so, those of {classes[0]} and those of {classes[1]} have the same sum"
        + (" and the same number" if answer.intercept else ""),
        "so that no hyperplane has them on different sides",
    ]


def _check(path: str, data: list[str], columns: opts.DataOptions, positive: str | None, console: Console) -> int:
    from rosenblatt.exact.documents import read as read_proof
    from rosenblatt.theory import Inseparable, Margin, Separable

    proofs, facts = read_proof(path, _QUESTION, {"separable": Separable, "inseparable": Inseparable, "margin": Margin})
    options, label = facts.get("columns"), facts.get("positive")
    if (
        not isinstance(options, dict)
        or not options.keys() <= set(opts.DataOptions._fields)
        or not isinstance(label, str | None)
    ):
        raise UnreadableCertificate("damaged: it does not say how its data were read", path=path)
    if columns == opts.DataOptions():
        columns = opts.DataOptions(**options)
    positive = positive or label
    examples = read_examples(data, columns).one_against_rest(positive)
    named = ", ".join(data)
    if (then := facts.get("classes")) != (now := examples.classes(positive)):
        return show_check(path, {"": f"it is about the classes {then}, and the data have {now}"}, console, named)
    if facts.get("xxh64") != examples.digest:
        console.note(f"{named} is not the file that {path} was made from (XXH64 differs); what counts is whether it holds")
    return show_check(
        path, {_claim(proof): proof.refutation(examples.X, examples.y) for proof in proofs.values()}, console, named
    )


def _claim(proof: Any) -> str:
    if hasattr(proof, "upper"):
        return f"γ is between {proof.lower:.17g} and {proof.upper:.17g}"
    return ("separable" if proof else "not separable") + ("" if proof.intercept else " through the origin")
