"""`rosenblatt feasible`: a point inside, or a proof that there is none."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from rosenblatt.cli import options as opts
from rosenblatt.cli.console import Console
from rosenblatt.cli.errors import Code
from rosenblatt.cli.proofs import check_output, first_lines, number_text, save_proofs, show_check, vector_text

_SYSTEM, _PROGRAM = "A x > 0", "linear program"


class Method(StrEnum):
    """Those of `find_interior`."""

    rescaling = "rescaling"
    perceptron = "perceptron"
    dunagan_vempala = "dunagan-vempala"
    von_neumann = "von-neumann"
    smooth = "smooth"


def feasible(
    context: typer.Context,
    system: Annotated[
        str,
        typer.Argument(metavar="FILE", help="A matrix as text or .npy, or a linear program as .json; - is standard input."),
    ],
    method: Annotated[Method, opts.option("--method", None, "Algorithm that searches for x.")] = Method.rescaling,
    max_updates: Annotated[int | None, opts.option("--max-updates", "N", "Give up after this many updates.", min=1)] = None,
    output: opts.Proof = None,
    check: opts.Check = None,
    seed: opts.Seed = 0,
    max_line: opts.MaxLine = "64M",
    json: opts.Json = False,
    quiet: opts.Quiet = False,
) -> int:
    """Find x with A x > 0, or prove that there is none; or solve a linear program.

    The numbers are taken exactly as they are written, and the answer is checked in exact arithmetic. A matrix has one row
    on each line. A linear program is a JSON object with c, A_ub, b_ub, A_eq, b_eq, bounds as scipy's linprog takes them:
    minimise c x with A_ub x <= b_ub, A_eq x = b_eq; x >= 0 unless bounds say otherwise.

    Exit code 0: there is a point (an optimum). 1: there is provably none, or nothing was proved.
    """
    console = Console(json, quiet)
    check_output(output, check, [system])
    options = {"method": method.value, "max_updates": max_updates, "random_state": seed}
    question = _question(system)
    if check is not None:
        opts.refuse_options(context, ("method", "max_updates", "seed"), "it has no effect with --check")
        return question.check(check, console)
    return question.answer(console, output, options)


def _question(path: str) -> _Program | _System:
    """What a file asks. A pipe has no name to tell by; a program begins with a brace, and no matrix does."""
    if path != "-":
        return _Program(path, path) if path.endswith(".json") else _System(path, path)

    from io import BytesIO

    from rosenblatt.data.matrix import LARGEST
    from rosenblatt.data.opening import Input

    with Input(path) as stream:
        content = stream.read(LARGEST + 1)
    held = BytesIO(content)
    held.name = "<stdin>"
    return (_Program if content.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{") else _System)(path, held)


class _System:
    """Is there x with A x > 0?"""

    def __init__(self, path: str, source: Any):
        import numpy as np

        from rosenblatt.data import matrix
        from rosenblatt.exact.dyadic import cleared

        self.path, self.rows = path, matrix.read(source)
        shape = (len(self.rows), len(self.rows[0]))
        # One factor for all rows makes them integers, and changes neither which x there are nor which weights add up to 0.
        self.A = np.array(cleared([value for row in self.rows for value in row]), dtype=object).reshape(shape)

    def answer(self, console: Console, path: str | None, options: dict[str, Any]) -> int:
        from rosenblatt.exact.documents import as_facts
        from rosenblatt.feasibility import find_interior

        found = find_interior(self.A, **options)
        proof = found.certificate
        facts = {
            "question": _SYSTEM,
            "rows": self.A.shape[0],
            "columns": self.A.shape[1],
            "feasible": found.exists,
            "certificate": None if proof is None else as_facts(proof),
            "x": found.x,
            "margin": found.margin,
            "method": found.method,
            "updates": found.n_updates,
            "rescalings": found.n_rescalings,
            "reason": found.reason,
        }
        console.note(f"{found.method}: {found.n_updates:,} updates")
        if proof is not None:
            save_proofs(path, _SYSTEM, {"point" if found.exists else "combination": proof}, {}, console)
        console.result(facts, self.words(found))
        return Code.DONE if found.exists else Code.NO

    def words(self, found: Any) -> str:
        if found.exists is None:
            low, high = found.margin
            return f"undecided ({found.reason}): the margin of the unit rows is between {low:.3g} and {high:.3g}"
        if found.exists:
            return f"feasible: A x > 0 for\nx = {vector_text(found.certificate.x)}"
        rows, weights = found.certificate.rows, found.certificate.weights
        shown = [
            f"  {weight} × row {row}: {vector_text(self.rows[row])}" for row, weight in zip(rows, weights, strict=True)
        ]
        heading = "infeasible: no x has A x > 0, for these rows (counted from 0) add up to zero"
        return "\n".join([heading, *first_lines(shown)])

    def check(self, path: str, console: Console) -> int:
        from rosenblatt.exact.certificates import Combination, Interior
        from rosenblatt.exact.documents import read
        from rosenblatt.exact.reading import numbers

        document = read(path, _SYSTEM, {"point": Interior, "combination": Combination})
        A = numbers(self.A, "A", integers=True)
        words = {"point": "A x > 0 has a solution", "combination": "A x > 0 has no solution"}
        claims = {words[name]: proof.refutation(A) for name, proof in document.certificates.items()}
        return show_check(path, claims, console, self.path)


class _Program:
    """What is the optimum of a linear program?"""

    def __init__(self, path: str, source: Any):
        from rosenblatt.data import matrix
        from rosenblatt.feasibility.programs import Program

        self.path, self.parts = path, matrix.read_program(source)
        self.program = Program.of(**self.parts)

    def answer(self, console: Console, path: str | None, options: dict[str, Any]) -> int:
        from rosenblatt.exact.documents import as_facts
        from rosenblatt.feasibility import solve_lp

        solution = solve_lp(**self.parts, **options)
        proof = solution.certificate
        facts = {
            "question": _PROGRAM,
            "status": solution.status,
            "value": solution.fun,
            "x": solution.x,
            "certificate": None if proof is None else as_facts(proof),
            "method": solution.method,
            "updates": solution.n_updates,
            "rounds": solution.n_rounds,
            "reason": solution.reason,
        }
        console.note(f"{solution.method}: {solution.n_updates:,} updates in {solution.n_rounds} systems")
        if proof is not None:
            save_proofs(path, _PROGRAM, {solution.status: proof}, {}, console)
        console.result(facts, self.words(solution))
        return Code.DONE if solution.status == "optimal" else Code.NO

    def words(self, solution: Any) -> str:
        proof = solution.certificate
        if solution.status == "optimal":
            return f"optimal: the smallest value is {number_text(proof.value)}, at\nx = {vector_text(proof.point)}"
        if solution.status == "unbounded":
            point, ray = vector_text(proof.point), vector_text(proof.ray)
            return f"unbounded: from x = {point}\nc x decreases without limit along {ray}"
        if solution.status == "infeasible":
            named = zip(
                (*self.program.names, *(f"A_eq[{k}]" for k in range(len(proof.v)))), (*proof.u, *proof.v), strict=True
            )
            shown = [f"  {number_text(weight)} × {name}" for name, weight in named if weight]
            return "\n".join(["infeasible: these constraints, multiplied and added up, give 0 < 0", *first_lines(shown)])
        return f"undecided: {solution.reason}"

    def check(self, path: str, console: Console) -> int:
        from rosenblatt.exact.documents import read
        from rosenblatt.feasibility.programs import Infeasible, Optimal, Unbounded

        document = read(path, _PROGRAM, {"optimal": Optimal, "infeasible": Infeasible, "unbounded": Unbounded})
        claims = {self.claim(proof): proof.refutation(self.program) for proof in document.certificates.values()}
        return show_check(path, claims, console, self.path)

    def claim(self, proof: Any) -> str:
        known = {"Infeasible": "no point satisfies it", "Unbounded": "its value decreases without limit"}
        return known.get(type(proof).__name__) or f"its smallest value is {number_text(proof.value)}"
