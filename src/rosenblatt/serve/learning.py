"""The routes to learn and to predict."""

from collections.abc import Sequence
from time import perf_counter
from typing import Any

from fastapi import Request, Response
from pydantic_core import to_json
from xxhash import xxh3_128_digest

from rosenblatt.errors import (
    Conflict,
    InvalidData,
    InvalidDataType,
    InvalidParameter,
    LimitExceeded,
    RosenblattError,
    UnsupportedOperation,
    shown,
)
from rosenblatt.serve import shapes
from rosenblatt.serve.answers import AnswerParts
from rosenblatt.serve.jobs import Learned, LearnJob
from rosenblatt.serve.learners import Row, ServedLearner, label_text
from rosenblatt.serve.limits import FEATURE_BYTES, Limits
from rosenblatt.serve.routing import At, Key, ModelName, lines_too, make_router, route
from rosenblatt.serve.served_model import Published, ServedModel
from rosenblatt.serve.service import (
    TURN_SECONDS,
    Service,
    answer,
    body_type,
    check_rows,
    next_turn,
    only,
    parse_lines,
    service_of,
)
from rosenblatt.serve.state import (
    Example,
    example_list,
    read_example,
)
from rosenblatt.serve.wire import JSON, JSON_LINES

LINES_PER_ROW = 100  # a request of JSON lines may have so many times the rows of one of JSON
LINES_STORED = 1_000  # lines of a request to predict that are stored, and parsed again, together
LONGEST_KEY = 200


router = make_router()


@route(
    router,
    "POST",
    "/models/{name}/learn",
    response_model=shapes.LearnAnswer,
    openapi_extra=lines_too("example"),
    tags=["learn"],
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
    if body_type(request) == JSON_LINES:
        lines = await parse_lines(content, service.limits.rows * LINES_PER_ROW)
        raw = [value for _, value in lines]
        payload = b'{"examples":[' + b",".join(text for text, _ in lines) + b"]}"
    else:
        document = only(await service.parse(content), ("examples",), 'send {"examples": [{"x": …, "y": …}]}')
        raw, payload = example_list(document), content
        check_rows(raw, service.limits)

    if await put_stored_rows(service, model, raw):
        payload = to_json({"examples": raw})
    digest = None if key is None else xxh3_128_digest(content)
    job = LearnJob(model, await checked_examples(service, model, raw), payload, key, digest, prediction_ids(raw))
    learned = await service.writer.do(job)
    if isinstance(learned, int):
        learned = await service.learned_before(model, learned)
    assert isinstance(learned, Learned)
    count_learned(service, job, learned)
    return learn_answer(learned, len(raw))


def prediction_ids(raw: Sequence[Any]) -> list[str]:
    """Return the ids of the predictions that get their label, which must differ."""
    ids = [example["id"] for example in raw if "id" in example]
    if len(set(ids)) < len(ids):
        raise Conflict("two examples have the id of the same prediction")
    return ids


async def put_stored_rows(service: Service, model: ServedModel, raw: list[Any]) -> bool:
    """Put the row of its prediction into each example that has an id; return whether any has one.

    What a request to predict has stored is parsed once, however many of its rows are wanted.
    """
    requests: dict[str, list[int]] = {}  # the places of the examples with a row of it
    size = 0
    place, turn_ends = 0, perf_counter() + TURN_SECONDS
    try:
        for place, example in enumerate(raw):
            if isinstance(example, dict) and "id" in example:
                if "x" in example or "text" in example:
                    raise InvalidData("an example with the id of a prediction has its row already: leave out x and text")
                identifier = example["id"]
                if not isinstance(identifier, str):
                    raise service.store.no_such_prediction(identifier)
                requests.setdefault(identifier.rpartition(".")[0], []).append(place)

        for request, places in requests.items():
            place = places[0]
            rows = service.store.rows(model.record.id, request)
            for place in places:
                example = raw[place]
                row = rows.get(example["id"])
                if row is None:
                    raise service.store.no_such_prediction(example["id"])
                size += row_bytes(row)
                check_parsed(size, service.limits)
                for part in ("x", "text"):
                    if part in row:
                        example[part] = row[part]
            if perf_counter() > turn_ends:
                turn_ends = await next_turn()
    except RosenblattError as error:
        error.row = place
        raise
    return bool(requests)


def row_bytes(example: dict[str, Any]) -> int:
    """Return about how much memory the row of an example takes."""
    x, text = example.get("x"), example.get("text")
    size = len(text) if isinstance(text, str) else 0
    if isinstance(x, dict):
        return size + FEATURE_BYTES * len(x) + sum(map(len, x))
    return size + FEATURE_BYTES * (len(x) if isinstance(x, list) else 1)


def check_parsed(size: int, limits: Limits) -> None:
    """Raise an error if the rows of a request take more memory than they may."""
    if size > limits.parsed_bytes:
        raise LimitExceeded("parsed_bytes", size, limits.parsed_bytes, hint="send less in one request")


async def checked_examples(service: Service, model: ServedModel, raw: Sequence[Any]) -> list[Example]:
    """Return examples of JSON, checked for what a model can learn; other requests are served in between."""
    learner, limits = model.published.learner, service.limits
    examples: list[Example] = []
    size, turn_ends = 0, perf_counter() + TURN_SECONDS
    try:
        for example in raw:
            examples.append(read_example(learner, example, limits))
            if "text" in example:  # whose features take more than the text that was counted when it came
                size += FEATURE_BYTES * len(examples[-1].row) + learner.text.words * len(example["text"])
                check_parsed(size, limits)
            if perf_counter() > turn_ends:
                turn_ends = await next_turn()
        return examples
    except RosenblattError as error:
        error.row = len(examples)
        raise


def count_learned(service: Service, job: LearnJob, learned: Learned) -> None:
    """Count what a job learned, unless it was learned before."""
    if not job.repeated:
        metrics, name = service.metrics, job.model.name
        metrics.examples_learned.add(learned.learned, name)
        metrics.mistakes.add(learned.mistakes, name)
        metrics.examples_refused.add(len(learned.refused), name)


def learn_answer(learned: Learned, count: int) -> Response:
    """Return the answer to a request to learn; if nothing could be learned, that is an error."""
    if learned.refused and len(learned.refused) == count:
        raise learned.refused[0][1]
    values: dict[str, object] = {name: getattr(learned, name) for name in ("seq", "learned", "mistakes", "wrong")}
    if learned.refused:
        values["refused"] = [{"row": place, "detail": str(error)} for place, error in learned.refused]
    return answer(values)


@route(
    router,
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
    if body_type(request) == JSON_LINES:
        lines = await parse_lines(content, service.limits.rows * LINES_PER_ROW)
        raw = [value for _, value in lines]
        async with service.state_of(request, model) as state:
            with service.answers.begin() as parts:
                await add_predictions(service, model, state, raw, None, 0, parts)
                add_ids(parts, stored_line_ids(service, model, [line for line, _ in lines]), b"\n")
                return parts.response(JSON_LINES)

    document = only(await service.parse(content), ("examples", "top", "explain", "store"), 'send {"examples": [{"x": …}]}')
    raw = example_list(document)
    check_rows(raw, service.limits)
    options = document.get("top"), document.get("explain", 0)
    for option, value in zip(("top", "explain"), options, strict=True):
        if value is not None and (type(value) is not int or value < 0):
            raise InvalidParameter(option, value, "a whole number from 0 on")
    store = document.get("store", True)
    if not isinstance(store, bool):
        raise InvalidParameter("store", store, "true or false")

    async with service.state_of(request, model) as state:
        with service.answers.begin() as parts:
            await add_predictions(service, model, state, raw, *options, parts)
            number = service.store.store(model.record.id, content) if store else None
            add_ids(parts, service.store.ids(number, len(raw)), b",")
            parts.replace(0, b'{"predictions":[' + parts.parts[0])
            parts.replace(-1, parts.parts[-1][:-1] + b'],"seq":' + str(state.seq).encode() + b"}")
            return parts.response(JSON)


async def add_predictions(
    service: Service,
    model: ServedModel,
    state: Published,
    raw: Sequence[Any],
    top: int | None,
    explain: int,
    parts: AnswerParts,
) -> None:
    """Add the predictions of examples to an answer, in one state; other requests are served in between."""
    model.pin(state.learner, 1)
    service.metrics.predictions.add(len(raw), model.name)
    turn_ends = perf_counter() + TURN_SECONDS
    try:
        for example in raw:
            prediction = predict_example(state.learner, example, service.limits, top, explain)
            parts.add(to_json(prediction, inf_nan_mode="null"))
            if perf_counter() > turn_ends:
                turn_ends = await next_turn()
    except RosenblattError as error:
        if not isinstance(error, LimitExceeded) or error.limit != "answer_bytes":
            error.row = len(parts.parts)
        raise
    finally:
        model.pin(state.learner, -1)


def stored_line_ids(service: Service, model: ServedModel, lines: Sequence[bytes]) -> list[str | None]:
    """Store lines of a request to predict, some together, and return the ids of their predictions."""
    ids: list[str | None] = []
    for start in range(0, len(lines), LINES_STORED):
        part = lines[start : start + LINES_STORED]
        number = service.store.store(model.record.id, b'{"examples":[' + b",".join(part) + b"]}")
        ids += service.store.ids(number, len(part))
    return ids


def add_ids(parts: AnswerParts, ids: Sequence[str | None], end: bytes) -> None:
    """Put the ids into an answer of predictions, each a JSON object, and an end behind each."""
    for place, identifier in enumerate(ids):
        text = b"null" if identifier is None else b'"' + identifier.encode() + b'"'
        parts.replace(place, parts.parts[place][:-1] + b',"id":' + text + b"}" + end)


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
    }
    if explain and label is not None:
        try:
            why = learner.explain(row, label)
        except UnsupportedOperation:
            return prediction
        prediction["intercept"] = why.intercept
        prediction["contributions"] = [*why.contributions.items()][:explain]
    return prediction
