"""The routes of the lab: the page, what it starts from, a run, points from a file, and how far compiling has come."""

from __future__ import annotations

import asyncio
import base64
import json
import math
from collections.abc import Mapping
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from rosenblatt.errors import FormatError, InvalidParameter, RosenblattError
from rosenblatt.lab import forms, recording
from rosenblatt.lab.points import Points, parse_points, presets
from rosenblatt.lab.recording import Job, Recording, record
from rosenblatt.lab.warming import Warming
from rosenblatt.serve import wire
from rosenblatt.serve.guard import Rule
from rosenblatt.serve.page_files import page_file, page_files
from rosenblatt.serve.problem_details import from_error, problem
from rosenblatt.theory import Trace
from rosenblatt.theory.run_page import short

AT_ONCE = 2  # runs
_OPEN = Rule(None, {})
_SHORT_BODY = "import_bytes"  # the limit that no option of `rosenblatt serve` changes
RULES = {
    "/": {"GET": _OPEN},
    "/page/{name}": {"GET": _OPEN},
    "/lab": {"GET": _OPEN},
    "/compiling": {"GET": _OPEN},
    "/run": {"POST": Rule(None, {wire.JSON.encode(): _SHORT_BODY})},
    "/points": {"POST": Rule(None, {b"text/csv": _SHORT_BODY})},
}
_FARTHEST = 1000 * recording.LARGEST  # that the page can show, all points in a corner of it
_JOB = {"learner": str, "settings": dict, "order": str, "epochs": int, "updates": int, "seed": int}


def make_app(warming: Warming, points: Points | None = None) -> Starlette:
    """Return the application.

    Parameters
    ----------
    warming : Warming
        What compiles the learners.
    points : Points, optional
        The points that the page begins with.

    Returns
    -------
    Starlette
        The application, which needs a guard before it.
    """
    slots = asyncio.Semaphore(AT_ONCE)
    files = page_files("rosenblatt.theory") | page_files("rosenblatt.lab")

    async def page(request: Request) -> Response:
        return page_file(files, request.path_params.get("name", "index.html"))

    async def lab(request: Request) -> Response:
        return _answer(describe(points))

    async def compiling(request: Request) -> Response:
        return _answer(warming.state())

    async def run(request: Request) -> Response:
        wanted = parse_run(await request.body())
        async with slots:
            return await asyncio.to_thread(_run, wanted)

    def _run(wanted: Mapping[str, Any]) -> Response:
        warming.wait_for(wanted["job"].learner)
        begun = perf_counter()
        found = record(**wanted)
        return _answer({**run_content(found), "milliseconds": round(1000 * (perf_counter() - begun), 1)})

    async def read(request: Request) -> Response:
        content = await request.body()
        return _answer(points_content(await asyncio.to_thread(parse_points, content)))

    async def refuse(request: Request, error: Exception) -> Response:
        assert isinstance(error, RosenblattError)
        return from_error(error)

    async def missing(request: Request, error: Exception) -> Response:
        return problem(404, "not-found", "There is nothing here", f"there is no route {request.url.path[:200]}")

    routes = [
        Route("/", page), Route("/page/{name}", page), Route("/lab", lab), Route("/compiling", compiling),
        Route("/run", run, methods=["POST"]), Route("/points", read, methods=["POST"]),
    ]  # fmt: skip
    return Starlette(routes=routes, exception_handlers={RosenblattError: refuse, HTTPException: missing})


def describe(points: Points | None) -> dict[str, Any]:
    """Return what the page starts from: learners with their forms, presets, limits, and points if there are any."""
    learners = [
        {
            "name": name,
            "orders": forms.orders(name),
            "fields": [field._asdict() for field in forms.fields(name)],
        }
        for name in forms.LEARNERS
    ]
    limits = {"points": recording.MOST_POINTS, "updates": recording.MOST_UPDATES, "epochs": recording.MOST_EPOCHS}
    return {
        "learners": learners,
        "presets": [points_content(each) for each in presets()],
        "limits": {**limits, "coordinate": recording.LARGEST, "seconds": recording.MOST_SECONDS},
        "job": Job()._asdict(),
        "points": None if points is None else points_content(points),
    }


def points_content(points: Points) -> dict[str, Any]:
    """Return points as the page has them."""
    rows = [[*short(x), int(sign)] for x, sign in zip(points.X, points.y, strict=True)]
    return {**points._asdict(), "X": None, "y": None, "points": rows}


def parse_run(body: bytes) -> dict[str, Any]:
    """Return the arguments of `record` that a request asks for.

    Parameters
    ----------
    body : bytes
        A JSON object with `points`, triples of two coordinates and a class, −1 or 1; optionally `box`; and the members of
        `Job`.

    Returns
    -------
    dict
        X, y, job and box.

    Raises
    ------
    FormatError, InvalidParameter
        For anything else.
    """
    try:
        asked = json.loads(body, parse_int=_whole_number)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"the body is not JSON: {error}") from None
    if not isinstance(asked, dict):
        raise FormatError("the body must be a JSON object")
    points, box = asked.pop("points", None), asked.pop("box", [-1, 1, -1, 1])
    if not isinstance(points, list) or not all(_are_numbers(point, 3) for point in points):
        raise InvalidParameter("points", points, "a list of triples: two coordinates and a class, -1 or 1")
    if not _are_numbers(box, 4) or not (
        -_FARTHEST <= box[0] < box[1] <= _FARTHEST and -_FARTHEST <= box[2] < box[3] <= _FARTHEST
    ):
        raise InvalidParameter(
            "box", box, f"four numbers: from x, to x, from y, to y, between {-_FARTHEST:g} and {_FARTHEST:g}"
        )
    for name, value in asked.items():
        if name not in _JOB:
            raise InvalidParameter("request", name, f"one of points, box, {', '.join(_JOB)}")
        if type(value) is not _JOB[name]:
            raise InvalidParameter(name, value, f"a value of type {_JOB[name].__name__}")
    table = np.array(points, dtype=float).reshape(-1, 3)
    return {"X": table[:, :2], "y": table[:, 2], "job": Job(**asked), "box": tuple(map(float, box))}


def run_content(run: Recording) -> dict[str, Any]:
    """Return a run as the page has it."""
    content = run._asdict()
    lines = None if run.lines is None else np.reshape(short(run.lines.ravel()), run.lines.shape).tolist()
    content |= {"lines": lines, "grids": {k: _packed(grid) for k, grid in run.grids.items()}}
    content |= {"separates": run.separates, "proof": None if run.proof is None else _proof_content(run.proof)}
    return content


def _proof_content(proof: Trace) -> dict[str, Any]:
    return {
        "norm": short(proof.norm), "progress": short(proof.progress),
        "lower": [0.0, proof.rate * proof.gamma], "upper": [0.0, float(proof.walls(1)[1]) ** 2],
        "formulas": proof.wall_formulas, "gamma": proof.gamma, "radius": proof.radius,
        "bound": proof.bound if math.isfinite(proof.bound) else None,
        "converged": proof.converged, "repeat": proof.repeat,
    }  # fmt: skip


def _packed(grid: NDArray) -> str:
    """The scores as whole numbers of 16 bits, none of which is 0 unless the score is."""
    largest = float(np.abs(grid).max()) or 1.0
    scaled = np.ceil(np.abs(grid / largest) * (2**15 - 1)) * np.sign(grid)
    return base64.b64encode(scaled.astype("<i2").tobytes()).decode()


def _whole_number(digits: str) -> int | float:
    """A whole number; as a float, which may be infinite, if it is too long for any that the lab takes."""
    return int(digits) if len(digits) <= 20 else float(digits)


def _are_numbers(values: object, count: int) -> bool:
    return isinstance(values, list) and len(values) == count and all(type(value) in (int, float) for value in values)


def _answer(content: Mapping[str, Any]) -> Response:
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Response(text.encode("utf-8", "backslashreplace"), media_type=wire.JSON)  # a file's name need not be UTF-8
