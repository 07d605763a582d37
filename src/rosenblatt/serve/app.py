"""The HTTP interface: each route is a function here, and does what it says with the models and the writer.

The signatures of the functions are what OpenAPI shows. They are called with the request alone: bodies are parsed by
`state.py`, which takes a fraction of the time that generic validation takes, and tells which row is wrong.
"""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import cache, partial
from importlib.resources import files
from inspect import signature
from pathlib import Path, PurePath
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, FastAPI, Header, Query, Request, Response
from fastapi import Path as InPath
from fastapi.openapi.utils import get_openapi
from fastapi.responses import StreamingResponse
from fastapi.routing import APIRoute
from pydantic_core import to_json
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send
from xxhash import xxh3_128_digest

import rosenblatt
from rosenblatt.errors import (
    Conflict,
    FormatError,
    InvalidData,
    InvalidDataType,
    InvalidParameter,
    LimitExceeded,
    RosenblattError,
    UnknownLabel,
    UnknownModel,
    UnsupportedOperation,
    shown,
)
from rosenblatt.modelfile import container
from rosenblatt.serve import shapes
from rosenblatt.serve.events import Feed
from rosenblatt.serve.history import Window
from rosenblatt.serve.learners import Row, ServedLearner, label_text, make_learner
from rosenblatt.serve.limits import Limits
from rosenblatt.serve.log import LogReader, now
from rosenblatt.serve.metrics import Metrics
from rosenblatt.serve.predictions import PredictionStore
from rosenblatt.serve.problem_details import from_error, problem
from rosenblatt.serve.snapshots import States
from rosenblatt.serve.state import (
    CREATE,
    Entry,
    Example,
    State,
    create,
    entry_from_line,
    entry_to_line,
    example_list,
    parse_json,
    read_example,
    read_specification,
    run_entries,
    write_specification,
)
from rosenblatt.serve.writer import CreateJob, DeleteJob, Learned, LearnJob, Published, ServedModel, SetBackJob, Writer

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
JSON, LINES, BINARY = "application/json", "application/x-ndjson", "application/octet-stream"
AT_ONCE = 64  # rows between two looks at other requests
LINES_IN_ENTRY = 1_000
BYTES_IN_ENTRY = 1 << 20
STATES_KEPT = 4  # earlier states that were asked for
LONGEST_KEY = 200
PAGE = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}

T = TypeVar("T")
Handler = Callable[[Request], Coroutine[Any, Any, Response]]
ModelName = Annotated[str, InPath(pattern=NAME, description="The name of a model.", examples=["spam"])]
At = Annotated[int | None, Query(ge=1, description="The state after this entry of the log; by default the newest.")]
Key = Annotated[str | None, Header(alias="Idempotency-Key", description="A request with the same key is learned once.")]
_PROBLEM = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
PROBLEMS: dict[int | str, dict[str, Any]] = {
    "4XX": {"description": "The request cannot be fulfilled.", "content": _PROBLEM},
    "5XX": {"description": "The server cannot fulfil it now.", "content": _PROBLEM},
}


class DirectRoute(APIRoute):
    """A route whose function is called with the request alone, and whose errors become problem details."""

    def get_route_handler(self) -> Handler:
        endpoint: Callable[..., Awaitable[Response]] = self.endpoint
        shown = (None,) * (len(signature(endpoint).parameters) - 1)  # what OpenAPI shows, and the function does not use

        async def handle(request: Request) -> Response:
            try:
                return await endpoint(request, *shown)
            except RosenblattError as error:
                return from_error(error).response

        return handle


class Service:
    """What the routes work with.

    Parameters
    ----------
    folder : Path
        The folder.
    writer : Writer
        The thread that writes.
    store : PredictionStore
        The rows of predictions.
    limits : Limits
        What a request may have.
    metrics : Metrics
        What is counted.
    """

    def __init__(self, folder: Path, writer: Writer, store: PredictionStore, limits: Limits, metrics: Metrics):
        self.folder, self.writer, self.store, self.limits, self.metrics = folder, writer, store, limits, metrics
        self.models: dict[str, ServedModel] = dict(writer.models)  # as far as they are committed
        writer.changed = self.changed
        self.feed = Feed()
        self.stopping = False
        self._earlier: OrderedDict[tuple[int, int], Published] = OrderedDict()
        self._slow = ThreadPoolExecutor(2, "requests")  # what would keep other requests waiting
        self._one_state = asyncio.Semaphore(1)

    def changed(self, model: ServedModel, deleted: bool) -> None:
        """Take note of a model that has changed or was deleted."""
        if not deleted:
            self.models[model.name] = model
        elif self.models.get(model.name) is model:
            del self.models[model.name]
            self.metrics.remove_model(model.name)
        self.feed.changed(model.name)

    def stop(self) -> None:
        """Say that the server is about to stop, and end what would never end."""
        self.stopping = True
        self.feed.stop()

    def find(self, request: Request) -> ServedModel:
        """Return the model that the path of a request names."""
        name = request.path_params["name"]
        model = self.models.get(name)
        if model is None:
            raise UnknownModel(name)
        return model

    async def slowly(self, function: Callable[[], T]) -> T:
        """Return what a function returns, which runs in another thread."""
        return await asyncio.get_running_loop().run_in_executor(self._slow, function)

    async def published(self, request: Request, model: ServedModel) -> Published:
        """Return the state of a model that a request asks for."""
        seq = whole_number(request, "at", 1)
        if seq is None or seq == model.published.seq:
            return model.published
        place = model.record.id, seq
        async with self._one_state:
            if place not in self._earlier:
                state = await self.slowly(partial(self._state_at, model.record.id, seq))
                time = (
                    model.record.created
                    if state.seq == 1
                    else state.history.view().windows[-1].time
                    if state.history.view().windows
                    else model.record.created
                )
                self._earlier[place] = Published(state.learner, state.history.view(), seq, time)
                while len(self._earlier) > STATES_KEPT:
                    self._earlier.popitem(last=False)
            self._earlier.move_to_end(place)
            return self._earlier[place]

    def _state_at(self, model: int, seq: int) -> State:
        with LogReader(self.writer.log.path) as read:
            return States(self.folder, read).at(model, seq)

    async def copy(self, model: ServedModel, learner: ServedLearner) -> ServedLearner:
        """Return a copy of a published learner, which may be used for as long as it takes."""
        model.pin(learner, 1)
        try:
            return await self.slowly(learner.copy)
        finally:
            model.pin(learner, -1)


def service_of(request: Request) -> Service:
    """Return what the routes work with."""
    return request.app.state.service


# Parts of requests and answers


def answer(value: object, status: int = 200) -> Response:
    """Return an answer of JSON."""
    return Response(to_json(value), status, media_type=JSON)


def iso(milliseconds: int) -> str:
    """Return a time as text of ISO 8601."""
    moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{milliseconds % 1000:03d}Z"


def whole_number(request: Request, name: str, low: int, default: int | None = None) -> int | None:
    """Return a whole number of the query."""
    text = request.query_params.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit()) or len(text) > 15 or int(text) < low:
        raise InvalidParameter(name, text, f"a whole number from {low} on")
    return int(text)


def describe(model: ServedModel, state: Published) -> dict[str, object]:
    """Return the description of a model in a state."""
    learner = state.learner
    description = {
        "name": model.name,
        "learner": type(learner.model).__name__,
        "parameters": model.specification.to_json()["parameters"],
        "hashing": model.specification.hashing,
        "classes": learner.classes,
        "seq": state.seq,
        "seen": learner.seen,
        "mistakes": learner.mistakes,
        "updates": learner.updates,
        "wrong": state.history.wrong,
        "features": learner.features,
        "memory_bytes": 2 * learner.size(),
        "log_bytes": model.log_bytes,
        "created": iso(model.record.created),
        "changed": iso(state.changed),
        "snapshots": list(model.snapshots),
    }
    return description if model.failure is None else {**description, "failure": model.failure}


def summarize(model: ServedModel) -> dict[str, object]:
    """Return what a stream of events tells of a model."""
    state = model.published
    windows = state.history.windows[-2:]
    return {
        "name": model.name,
        "learner": type(state.learner.model).__name__,
        "seq": state.seq,
        "seen": state.learner.seen,
        "mistakes": state.learner.mistakes,
        "wrong": state.history.wrong,
        "classes": len(state.learner.classes),
        "recent": {"seen": sum(each.seen for each in windows), "wrong": sum(each.wrong for each in windows)},
    }


def only(document: object, allowed: set[str]) -> dict[str, Any]:
    """Return an object of JSON that has these members only."""
    if not isinstance(document, dict):
        raise InvalidDataType(f"the body must be an object of JSON; got {shown(document)}")
    for name in document:
        if name not in allowed:
            raise InvalidData(f"the body has no member {shown(name)}; it may have {', '.join(sorted(allowed))}")
    return document


def is_lines(request: Request) -> bool:
    """Whether the body of a request is JSON lines."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower() == LINES


def check_rows(examples: Sequence[object], limits: Limits) -> None:
    """Raise an error if a request has more examples than it may."""
    if len(examples) > limits.rows:
        raise LimitExceeded("rows", len(examples), limits.rows)


async def parse_lines(body: bytes, most: int) -> list[tuple[bytes, Any]]:
    """Return the lines of a body that are not blank, each with its value."""
    found: list[tuple[bytes, Any]] = []
    for number, line in enumerate(body.split(b"\n"), 1):
        if line and not line.isspace():
            try:
                found.append((line, parse_json(line, f"line {number}")))
            except FormatError as error:
                error.line = number
                raise
            if len(found) > most:
                raise LimitExceeded("rows", len(found), most)
        if number % 500 == 0:
            await asyncio.sleep(0)
    if not found:
        raise InvalidData("the body has no examples")
    return found


# Routes

router = APIRouter(route_class=DirectRoute)


def route(method: str, path: str, **options: Any) -> Callable[[Callable[..., Awaitable[Response]]], None]:
    """Declare a route: what it answers, and what OpenAPI says about it."""

    def declare(function: Callable[..., Awaitable[Response]]) -> None:
        summary, _, description = (function.__doc__ or "").partition("\n")
        options.setdefault("responses", {}).update(PROBLEMS)
        router.add_api_route(
            path, function, methods=[method], summary=summary.strip().rstrip("."), description=description.strip(),
            operation_id=function.__name__, **options,
        )  # fmt: skip

    return declare


def lines_too(shape: str) -> dict[str, Any]:
    """Return what OpenAPI says of a body that may also be JSON lines."""
    return {"requestBody": {"content": {LINES: {"schema": {"type": "string", "description": f"One {shape} a line."}}}}}


@route(
    "POST", "/models/{name}/learn", response_model=shapes.LearnAnswer, openapi_extra=lines_too("example"), tags=["learn"]
)
async def learn(request: Request, name: ModelName, body: shapes.LearnRequest, key: Key = None) -> Response:
    """Learn from examples.

    The answer comes when they are on the disk and have been learned. With the header Idempotency-Key a request can be sent
    again and is learned once. An example may have the id of a prediction instead of a row.
    """
    service = service_of(request)
    model, content = service.find(request), await request.body()
    key = request.headers.get("idempotency-key")
    if key is not None and not 1 <= len(key) <= LONGEST_KEY:
        raise InvalidParameter("Idempotency-Key", key, f"1 to {LONGEST_KEY} characters")
    if is_lines(request):
        return await learn_lines(service, model, content, key)
    document = only(parse_json(content), {"examples"})
    raw = example_list(document)
    check_rows(raw, service.limits)
    job = await learn_job(service, model, raw, content, key)
    learned = await service.writer.do(job)
    assert isinstance(learned, Learned)
    return learn_answer(service, model, learned, len(raw))


async def learn_job(
    service: Service, model: ServedModel, raw: list[Any], content: bytes, key: str | None, first: int = 0
) -> LearnJob:
    """Return the job of learning from examples, after they have been checked; `first` is the place of the first."""
    learner, limits, store = model.published.learner, service.limits, service.store
    examples: list[Example] = []
    predictions: list[str] = []
    place = 0
    try:
        for place, example in enumerate(raw):
            if isinstance(example, dict) and "id" in example:
                if "x" in example or "text" in example:
                    raise InvalidData("an example with the id of a prediction has its row already: leave out x and text")
                example = raw[place] = {**store.row(model.record.id, example["id"]), **example}
                predictions.append(example["id"])
            examples.append(read_example(learner, example, limits))
            if place % AT_ONCE == AT_ONCE - 1:
                await asyncio.sleep(0)
    except RosenblattError as error:
        error.row = first + place
        raise
    if len(set(predictions)) < len(predictions):
        raise Conflict("two examples have the id of the same prediction")
    payload = json.dumps({"examples": raw}, ensure_ascii=False).encode() if predictions else content
    digest = None if key is None else xxh3_128_digest(content)
    return LearnJob(model, examples, payload, key, digest, predictions)


def learn_answer(service: Service, model: ServedModel, learned: Learned, count: int) -> Response:
    """Return the answer to a request to learn; if nothing could be learned, that is an error."""
    service.metrics.examples_learned.add(learned.learned, model.name)
    service.metrics.mistakes.add(learned.mistakes, model.name)
    service.metrics.examples_refused.add(len(learned.refused), model.name)
    if learned.refused and len(learned.refused) == count:
        raise learned.refused[0][1]
    values: dict[str, object] = {name: getattr(learned, name) for name in ("seq", "learned", "mistakes", "wrong")}
    if learned.refused:
        values["refused"] = [{"row": place, "detail": str(error)} for place, error in learned.refused]
    return answer(values)


async def learn_lines(service: Service, model: ServedModel, content: bytes, key: str | None) -> Response:
    """Learn from JSON lines, some at a time; all are checked before the first is learned."""
    lines = await parse_lines(content, service.limits.rows * 100)
    jobs: list[LearnJob] = []
    start = size = 0
    for place, (line, _) in enumerate([*lines, (b"", None)]):
        if place == len(lines) or place - start == LINES_IN_ENTRY or size + len(line) > BYTES_IN_ENTRY:
            part = lines[start:place]
            payload = b'{"examples":[' + b",".join(text for text, _ in part) + b"]}"
            own_key = None if key is None else f"{key}#{len(jobs)}"
            jobs.append(await learn_job(service, model, [value for _, value in part], payload, own_key, start))
            start, size = place, 0
        size += len(line)
    results = await asyncio.gather(*(service.writer.do(job) for job in jobs), return_exceptions=True)
    seq = learned = mistakes = wrong = first = 0
    refused: list[tuple[int, RosenblattError]] = []
    for job, result in zip(jobs, results, strict=True):
        if isinstance(result, BaseException):
            if isinstance(result, RosenblattError):
                result.hint = f"{learned:,} examples were learned before"
            raise result
        assert isinstance(result, Learned)
        seq, learned = result.seq, learned + result.learned
        mistakes, wrong = mistakes + result.mistakes, wrong + result.wrong
        refused += [(first + place, error) for place, error in result.refused]
        first += len(job.examples)
    return learn_answer(service, model, Learned(seq, learned, mistakes, wrong, tuple(refused)), first)


@route(
    "POST",
    "/models/{name}/predict",
    response_model=shapes.PredictAnswer,
    openapi_extra=lines_too("example"),
    tags=["predict"],
)
async def predict(request: Request, name: ModelName, body: shapes.PredictRequest, at: At = None) -> Response:
    """Predict examples.

    A prediction has the label, the scores, an id under which the true label can be learned later, and, with `explain`, what
    the features contributed. Predictions never wait for learning.
    """
    service = service_of(request)
    model, content = service.find(request), await request.body()
    if is_lines(request):
        return await predict_lines(service, model, await service.published(request, model), content)
    document = only(parse_json(content), {"examples", "top", "explain", "store"})
    raw = example_list(document)
    check_rows(raw, service.limits)
    state = await service.published(request, model)
    options = document.get("top"), document.get("explain", 0)
    for option, value in zip(("top", "explain"), options, strict=True):
        if value is not None and (type(value) is not int or value < 0):
            raise InvalidParameter(option, value, "a whole number from 0 on")
    store = document.get("store", True)
    if not isinstance(store, bool):
        raise InvalidParameter("store", store, "true or false")
    predictions = await predict_all(service, model, state, raw, *options)
    request_number = await service.store.store(model.record.id, content) if store else None
    for prediction, identifier in zip(predictions, service.store.ids(request_number, len(predictions)), strict=True):
        prediction["id"] = identifier
    return answer({"predictions": predictions, "seq": state.seq})


async def predict_all(
    service: Service, model: ServedModel, state: Published, raw: Sequence[Any], top: int | None, explain: int
) -> list[dict[str, Any]]:
    """Return the predictions of examples, in one state; other requests are served in between."""
    model.pin(state.learner, 1)
    service.metrics.predictions.add(len(raw), model.name)
    place = 0
    try:
        found = []
        for place, example in enumerate(raw):
            found.append(predict_example(state.learner, example, service.limits, top, explain))
            if place % AT_ONCE == AT_ONCE - 1:
                await asyncio.sleep(0)
        return found
    except RosenblattError as error:
        error.row = place
        raise
    finally:
        model.pin(state.learner, -1)


def predict_example(
    learner: ServedLearner, example: object, limits: Limits, top: int | None, explain: int
) -> dict[str, Any]:
    """Return the prediction of an example."""
    if not isinstance(example, dict) or not example.keys() <= {"x", "text"}:
        raise InvalidDataType(f'an example to predict must be {{"x": …}} or {{"text": …}}; got {shown(example)}')
    row: Row = learner.read_row(example, limits)
    label = learner.predict(row)
    scores = {} if label is None else learner.scores(row)
    if top is not None:
        scores = dict(sorted(scores.items(), key=lambda item: -item[1])[:top])
    prediction: dict[str, Any] = {
        "label": label,
        "scores": {label_text(each): score for each, score in scores.items()},
        "id": None,
    }
    if explain and label is not None:
        try:
            why = learner.explain(row, label)
        except UnsupportedOperation:
            return prediction
        prediction["intercept"] = why.intercept
        prediction["contributions"] = [*why.contributions.items()][:explain]
    return prediction


async def predict_lines(service: Service, model: ServedModel, state: Published, content: bytes) -> Response:
    """Predict JSON lines; the answer is as many lines."""
    lines = await parse_lines(content, service.limits.rows * 100)
    predictions = await predict_all(service, model, state, [value for _, value in lines], None, 0)
    for start in range(0, len(lines), LINES_IN_ENTRY):
        part = lines[start : start + LINES_IN_ENTRY]
        body = b'{"examples":[' + b",".join(text for text, _ in part) + b"]}"
        number = await service.store.store(model.record.id, body)
        for prediction, identifier in zip(predictions[start:], service.store.ids(number, len(part)), strict=False):
            prediction["id"] = identifier
    return Response(b"".join(to_json(prediction) + b"\n" for prediction in predictions), media_type=LINES)


@route("GET", "/models", response_model=shapes.ModelList, tags=["models"])
async def list_models(request: Request) -> Response:
    """List all models."""
    models = service_of(request).models
    return answer({"models": [describe(models[name], models[name].published) for name in sorted(models)]})


@route(
    "PUT", "/models/{name}", response_model=shapes.ModelDescription, status_code=201, tags=["models"],
    responses={200: {"model": shapes.ModelDescription, "description": "It was there already, made of the same."}},
    openapi_extra={"requestBody": {"content": {BINARY: {"schema": {"type": "string", "format": "binary"}}}}},
)  # fmt: skip
async def create_model(request: Request, name: ModelName, body: shapes.ModelSettings) -> Response:
    """Create a model.

    The body says which learner and parameters it has, or is a model file to start from, which can also be a member of the
    body, in base64. Creating the same model twice is no error.
    """
    service = service_of(request)
    name, content = model_name(request), await request.body()
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() == BINARY:
        specification = read_specification({})._replace(learner="file", file=content)
    else:
        specification = read_specification(parse_json(content) if content.strip() else {})
    learner = await service.slowly(partial(make_learner, specification, service.limits))
    del learner
    entry = Entry(1, now(), CREATE, write_specification(specification))
    state = await service.slowly(partial(create, entry))
    made = await service.writer.do(CreateJob(name, state, [entry]))
    assert isinstance(made, tuple)
    model, created = made
    return answer(describe(model, model.published), 201 if created else 200)


def model_name(request: Request) -> str:
    """Return the name that the path of a request has, if a model may have it."""
    name = request.path_params["name"]
    letters = name.replace("-", "").replace("_", "").replace(".", "")
    if not (name.isascii() and name[:1].isalnum() and len(name) <= 64 and letters.isalnum()):
        raise InvalidParameter("name", name, "1 to 64 letters, digits and . _ -, beginning with a letter or a digit")
    return name


@route("GET", "/models/{name}", response_model=shapes.ModelDescription, tags=["models"])
async def describe_model(request: Request, name: ModelName, at: At = None) -> Response:
    """Describe a model."""
    service = service_of(request)
    model = service.find(request)
    return answer(describe(model, await service.published(request, model)))


@route("DELETE", "/models/{name}", status_code=204, tags=["models"])
async def delete_model(request: Request, name: ModelName) -> Response:
    """Delete a model, with its log."""
    service = service_of(request)
    await service.writer.do(DeleteJob(service.find(request)))
    return Response(status_code=204)


@route("GET", "/models/{name}/history", response_model=shapes.HistoryAnswer, tags=["models"])
async def show_history(
    request: Request,
    name: ModelName,
    labels: Annotated[bool, Query(description="Count by label too.")] = False,
    at: At = None,
) -> Response:
    """Show how well a model has been doing, and what it last predicted wrongly."""
    service = service_of(request)
    state = await service.published(request, service.find(request))
    by_label = request.query_params.get("labels", "false")
    if by_label not in ("true", "false", "1", "0"):
        raise InvalidParameter("labels", by_label, "true or false")
    windows = [window_values(window, by_label in ("true", "1")) for window in state.history.windows]
    last = [
        {
            **{name: value for name, value in example._asdict().items() if name != "example"},
            "time": iso(example.time),
            **example.example,
        }
        for example in state.history.last_wrong
    ]
    return answer({"seq": state.seq, "windows": windows, "last_wrong": last})


def window_values(window: Window, by_label: bool) -> dict[str, object]:
    """Return a window as values of JSON."""
    values = {**window._asdict(), "time": iso(window.time)}
    if not by_label:
        del values["labels"]
        return values
    names = ("seen", "mistakes", "wrong")
    values["labels"] = {label: dict(zip(names, counts, strict=True)) for label, counts in window.labels.items()}
    return values


@route("GET", "/models/{name}/weights", response_model=shapes.WeightsAnswer, tags=["models"])
async def show_weights(
    request: Request,
    name: ModelName,
    top: Annotated[int, Query(ge=1, le=10_000, description="How many of each label.")] = 20,
    label: Annotated[str | None, Query(description="Of this label only.")] = None,
    at: At = None,
) -> Response:
    """Show the heaviest weights."""
    service = service_of(request)
    model = service.find(request)
    count = min(whole_number(request, "top", 1, 20) or 20, 10_000)
    state = await service.published(request, model)
    wanted = request.query_params.get("label")
    labels = [each for each in state.learner.classes if wanted is None or label_text(each) == wanted]
    if wanted is not None and not labels:
        raise UnknownLabel(wanted, state.learner.classes)
    learner = await service.copy(model, state.learner)
    found = await service.slowly(lambda: {label_text(each): learner.weights(each) for each in labels[:100]})
    weights = {
        label: sorted(values.items(), key=lambda item: -abs(item[1]))[:count] for label, (values, _) in found.items()
    }
    return answer({"seq": state.seq, "weights": weights, "intercepts": {each: value for each, (_, value) in found.items()}})


@route("POST", "/models/{name}/set-back", response_model=shapes.SetBackAnswer, tags=["models"])
async def set_back(request: Request, name: ModelName, body: shapes.SetBackRequest) -> Response:
    """Set a model back to an earlier state.

    That is an entry of the log too: nothing is lost, and the model can be set back to the state before it.
    """
    service = service_of(request)
    model = service.find(request)
    to = only(parse_json(await request.body()), {"to"}).get("to")
    if type(to) is not int:
        raise InvalidParameter("to", to, "the number of an entry")
    return answer({"seq": await service.writer.do(SetBackJob(model, to)), "to": to})


@route(
    "GET", "/models/{name}/file", tags=["models"], response_class=Response,
    responses={200: {"content": {BINARY: {"schema": {"type": "string", "format": "binary"}}}, "description": "The file."}},
)  # fmt: skip
async def download_file(request: Request, name: ModelName, at: At = None) -> Response:
    """Download the model as a file, for `rosenblatt.load`."""
    service = service_of(request)
    model = service.find(request)
    state = await service.published(request, model)
    if not state.learner.seen:
        raise Conflict(f"the model {model.name} has not learned anything yet, so it has no file")
    learner = await service.copy(model, state.learner)

    def content() -> bytes:
        parts = learner.model.to_parts()
        return b"".join(bytes(block) for block in container.blocks(parts.facts, parts.arrays))

    found = await service.slowly(content)
    name = f'attachment; filename="{model.name}-{state.seq}.model"'
    return Response(found, media_type=BINARY, headers={"Content-Disposition": name, "X-Seq": str(state.seq)})


@route(
    "GET", "/models/{name}/log", tags=["log"], response_class=Response,
    responses={200: {"content": {LINES: {"schema": {"type": "string"}}}, "description": "One entry a line."}},
)  # fmt: skip
async def export_log(
    request: Request,
    name: ModelName,
    first: Annotated[int, Query(alias="from", ge=1, description="The first entry.")] = 1,
    to: Annotated[int | None, Query(ge=1, description="The last entry.")] = None,
) -> Response:
    """Export the log as JSON lines.

    It is all that is needed to make the same model again: with `POST` to another server, or with `rosenblatt.serve.replay`.
    """
    service = service_of(request)
    model = service.find(request)
    begin, end = whole_number(request, "from", 1, 1) or 1, whole_number(request, "to", 1, model.published.seq)
    end = min(end or model.published.seq, model.published.seq)

    async def lines() -> AsyncIterator[bytes]:
        with LogReader(service.writer.log.path) as read:
            entries = read.entries(model.record.id, begin, end)

            def some() -> bytes:
                block, size = [], 0
                for entry in entries:
                    block.append(entry_to_line(entry) + b"\n")
                    size += len(block[-1])
                    if size > BYTES_IN_ENTRY:
                        break
                return b"".join(block)

            while block := await service.slowly(some):
                yield block

    return StreamingResponse(lines() if begin <= end else iter(()), media_type=LINES)


@route(
    "POST", "/models/{name}/log", response_model=shapes.ImportAnswer, status_code=201, tags=["log"],
    openapi_extra={"requestBody": {"required": True, "content": {LINES: {"schema": {"type": "string"}}}}},
)  # fmt: skip
async def import_log(request: Request, name: ModelName) -> Response:
    """Create a model from an exported log."""
    service = service_of(request)
    name, content = model_name(request), await request.body()
    if name in service.models:
        raise Conflict(f"there is a model {name} already", value=name)

    def read() -> tuple[State, list[Entry]]:
        lines = [line for line in content.split(b"\n") if line and not line.isspace()]
        entries = [entry_from_line(line, number) for number, line in enumerate(lines, 1)]
        if not entries:
            raise InvalidData("the body has no entries")
        for number, entry in enumerate(entries, 1):
            if entry.seq != number:
                raise FormatError(f"entry {number} is missing: there is {entry.seq}", line=number)
        specification = read_specification(parse_json(entries[0].payload)) if entries[0].kind == CREATE else None
        if specification is not None:
            make_learner(specification, service.limits)

        def state_at(seq: int) -> State:
            if not 1 <= seq <= len(entries):
                raise FormatError(f"there is no entry {seq} to set back to")
            return run_entries(entries[:seq], state_at)

        return state_at(len(entries)), entries

    state, entries = await service.slowly(read)
    if 2 * state.learner.size() > service.limits.model_bytes:
        raise LimitExceeded("model_bytes", 2 * state.learner.size(), service.limits.model_bytes)
    await service.writer.do(CreateJob(name, state, entries, exist_ok=False))
    return answer({"seq": entries[-1].seq, "entries": len(entries)}, 201)


@route(
    "GET", "/events", tags=["models"], response_class=Response,
    responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}, "description": "Events."}},
)  # fmt: skip
async def events(
    request: Request, model: Annotated[str | None, Query(description="Tell of this model only.")] = None
) -> Response:
    """Tell of every model that changes, as server-sent events."""
    service = service_of(request)
    if service.feed.streams >= service.limits.streams:
        raise LimitExceeded("streams", service.feed.streams + 1, service.limits.streams)
    wanted = request.query_params.get("model")
    if wanted is not None and wanted not in service.models:
        raise UnknownModel(wanted)

    def tell(name: str) -> dict[str, object] | None:
        found = service.models.get(name)
        return None if found is None else summarize(found)

    async def stream() -> AsyncIterator[bytes]:
        async for event in service.feed.listen(sorted(service.models) if wanted is None else [wanted], tell, wanted):
            yield event

    return StreamingResponse(stream(), media_type="text/event-stream")


@route(
    "GET", "/metrics", tags=["server"], response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "Numbers for Prometheus."}},
)  # fmt: skip
async def show_metrics(request: Request) -> Response:
    """Show numbers about the server, for Prometheus."""
    service = service_of(request)
    metrics = service.metrics
    for name, model in service.models.items():
        metrics.model_bytes.set(2 * model.published.learner.size(), name)
    metrics.log_bytes.set(service.writer.log.path.stat().st_size)
    metrics.queue_bytes.set(service.writer.queued_bytes)
    metrics.open_streams.set(service.feed.streams)
    metrics.learning_paused.set(service.writer.paused is not None)
    return Response(metrics.render(), media_type="text/plain; version=0.0.4")


@route("GET", "/healthz", response_model=shapes.Status, tags=["server"])
async def health(request: Request) -> Response:
    """Say that the process answers."""
    return answer({"status": "ok"})


@route(
    "GET",
    "/readyz",
    response_model=shapes.Status,
    tags=["server"],
    responses={503: {"model": shapes.Status, "description": "It does not learn."}},
)
async def ready(request: Request) -> Response:
    """Say whether the server predicts and learns."""
    service = service_of(request)
    if service.stopping:
        return answer({"status": "stopping"}, 503)
    if service.writer.paused:
        return answer({"status": "not learning", "reason": service.writer.paused}, 503)
    return answer({"status": "ok"})


@route("GET", "/", response_class=Response, include_in_schema=False)
async def page(request: Request) -> Response:
    """Return the page."""
    return page_file("index.html")


@route("GET", "/page/{file}", response_class=Response, include_in_schema=False)
async def page_part(request: Request, file: str) -> Response:
    """Return a file of the page."""
    return page_file(request.path_params["file"])


def page_file(name: str) -> Response:
    """Return one of the files of the page; no other is looked for."""
    found = page_files().get(name)
    if found is None:
        return problem(404, "not-found", "There is nothing here", "there is no such file")
    return Response(found, media_type=f"{PAGE[PurePath(name).suffix]}; charset=utf-8")


@cache
def page_files() -> dict[str, bytes]:
    """Return the files of the page by name."""
    folder = files("rosenblatt.serve").joinpath("page")
    return {file.name: file.read_bytes() for file in folder.iterdir() if PurePath(file.name).suffix in PAGE}


async def not_found(request: Request, error: Exception) -> Response:
    """Answer what no route answers."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    title = {404: "There is nothing here", 405: "This cannot be done here"}.get(status, "The request cannot be fulfilled")
    answered = problem(status, title.lower().replace(" ", "-"), title, f"{request.method} {request.url.path[:200]}")
    if isinstance(error, HTTPException):
        answered.headers.update(error.headers or {})
    return answered


def make_app(service: Service) -> FastAPI:
    """Return the application.

    Parameters
    ----------
    service : Service
        What the routes work with.

    Returns
    -------
    app : FastAPI
    """
    app = FastAPI(
        title="rosenblatt",
        version=rosenblatt.__version__,
        description="A server of models that learn one example at a time and lose nothing.",
        docs_url=None,  # these pages load scripts from elsewhere
        redoc_url=None,
    )
    app.state.service = service
    app.include_router(router)
    app.add_exception_handler(HTTPException, not_found)
    document = describe_routes(app)
    app.openapi = lambda: document  # type: ignore[method-assign]  # what FastAPI says to do
    return app


def describe_routes(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI document: that of FastAPI, with our problem details instead of its own errors."""
    document = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
    schemas = document["components"]["schemas"]
    schemas["Problem"] = shapes.Problem.model_json_schema()
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    for operations in document["paths"].values():
        for operation in operations.values():
            operation["responses"].pop("422", None)
    return document


class HotRoutes:
    """An ASGI application that calls the routes to learn and to predict directly, and leaves all else to another one.

    The layers of a framework take longer than predicting an example.

    Parameters
    ----------
    app : FastAPI
        The application with all routes.
    """

    def __init__(self, app: FastAPI):
        self._app = app
        self._hot = {"learn": learn, "predict": predict}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        parts: list[str] = scope["path"].split("/") if scope["type"] == "http" and scope["method"] == "POST" else []
        function = self._hot.get(parts[3]) if len(parts) == 4 and parts[1] == "models" else None
        if function is None:
            await self._app(scope, receive, send)
            return
        scope["app"], scope["path_params"] = self._app, {"name": parts[2]}
        try:
            response = await function(Request(scope, receive), "", None)
        except RosenblattError as error:
            response = from_error(error).response
        await response(scope, receive, send)
