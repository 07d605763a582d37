"""The routes to create, describe, set back, export and delete models."""

from collections.abc import AsyncIterator, Iterator
from functools import partial
from heapq import nlargest
from itertools import islice
from pathlib import Path
from typing import Annotated

from fastapi import Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic_core import to_json

from rosenblatt.errors import (
    Conflict,
    InvalidData,
    InvalidParameter,
    UnknownLabel,
)
from rosenblatt.modelfile import container
from rosenblatt.serve import shapes
from rosenblatt.serve.archive import parse_date
from rosenblatt.serve.history import Window
from rosenblatt.serve.jobs import CreateJob, DeleteJob, DiscardImportJob, ImportedModel, ImportJob, SetBackJob, model_exists
from rosenblatt.serve.learners import Label, ServedLearner, Specification, label_text, make_learner
from rosenblatt.serve.log import LogReader, archived_error, now
from rosenblatt.serve.routing import At, ModelName, make_router, route
from rosenblatt.serve.service import Service, answer, body_type, describe, iso, large_answer, only, service_of, whole_number
from rosenblatt.serve.spool import SpooledFile
from rosenblatt.serve.state import (
    CREATE,
    Entry,
    create,
    entry_to_line,
    parse_json,
    read_specification,
    write_specification,
)
from rosenblatt.serve.uploads import UploadedLog
from rosenblatt.serve.wire import JSON, JSON_LINES, MODEL_FILE, check_name

router = make_router()
TEXT = {"type": "string"}
BINARY = {**TEXT, "format": "binary"}
ENTRY_BYTES = 100  # of an entry besides its payload
OUTCOMES_TOGETHER = 5_000  # that are written at once
MOST_LABELS = 100  # whose weights an answer has
EXPORT_BYTES = 1 << 20  # of lines that are read from the log at once
LOG = (  # an example of a log
    '{"seq":1,"time":1794829914691,"create":{"learner":"OnlinePerceptron"}}\n'
    '{"seq":2,"time":1794829914768,"learn":[{"x":{"free":1},"y":"spam"},{"text":"see you","y":"ham"}]}\n'
)


@route(router, "GET", "/models", response_model=shapes.ModelList, tags=["models"])
async def list_models(request: Request) -> Response:
    """List all models."""
    service = service_of(request)
    models = service.models
    with service.answers.begin() as parts:
        for place, name in enumerate(sorted(models)):
            parts.add(b"," if place else b'{"models":[')
            parts.add(to_json(describe(models[name], models[name].published), inf_nan_mode="null"))
        parts.add(b"]}" if models else b'{"models":[]}')
        return parts.response(JSON)


@route(
    router, "PUT", "/models/{name}", response_model=shapes.ModelDescription, status_code=201, tags=["models"],
    responses={200: {"model": shapes.ModelDescription, "description": "It was there already, made of the same."}},
    openapi_extra={"requestBody": {"content": {MODEL_FILE: {"schema": BINARY}}}},
)  # fmt: skip
async def create_model(request: Request, name: ModelName, body: shapes.ModelSettings) -> Response:
    """Create a model.

    The body says which learner and parameters it has, or is a model file to start from, which can also be a member of the
    body, in base64. Creating the same model twice is no error.
    """
    service = service_of(request)
    name = check_name(request.path_params["name"])
    if body_type(request) == MODEL_FILE:
        async with service.one_import:  # which may be as large as a model
            specification = read_specification({})._replace(learner="file", file=await request.body())
            return await create_from(service, name, specification)
    content = await request.body()
    return await create_from(service, name, read_specification(parse_json(content) if content.strip() else {}))


async def create_from(service: Service, name: str, specification: Specification) -> Response:
    """Create a model of a specification, if there is none of this name that was made of the same."""
    learner = await service.slowly(partial(make_learner, specification, service.limits))
    del learner
    entry = Entry(1, now(), CREATE, write_specification(specification))
    state = await service.slowly(partial(create, entry))
    made = await service.writer.do(CreateJob(name, state, entry.time, entry))
    assert isinstance(made, tuple)
    model, created = made
    return answer(describe(model, model.published), 201 if created else 200)


@route(router, "GET", "/models/{name}", response_model=shapes.ModelDescription, tags=["models"])
async def describe_model(request: Request, name: ModelName, at: At = None) -> Response:
    """Describe a model."""
    service = service_of(request)
    model = service.find(request)
    async with service.state_of(request, model) as state:
        return large_answer(service, describe(model, state))


@route(router, "DELETE", "/models/{name}", status_code=204, tags=["models"])
async def delete_model(request: Request, name: ModelName) -> Response:
    """Delete a model, with its log."""
    service = service_of(request)
    await service.writer.do(DeleteJob(service.find(request)))
    return Response(status_code=204)


@route(router, "GET", "/models/{name}/history", response_model=shapes.HistoryAnswer, tags=["models"])
async def show_history(
    request: Request,
    name: ModelName,
    labels: Annotated[bool, Query(description="Count by label too.")] = False,
    at: At = None,
) -> Response:
    """Show how well a model has been doing, and what it last predicted wrongly."""
    service = service_of(request)
    by_label = request.query_params.get("labels", "false")
    if by_label not in ("true", "false", "1", "0"):
        raise InvalidParameter("labels", by_label, "true or false")
    async with service.state_of(request, service.find(request)) as state:
        windows = [window_values(window, by_label in ("true", "1")) for window in state.history.windows]
        last = [
            {
                **{name: value for name, value in example._asdict().items() if name != "example"},
                "time": iso(example.time),
                **example.example,
            }
            for example in state.history.last_wrong
        ]
        return large_answer(service, {"seq": state.seq, "windows": windows, "last_wrong": last})


def window_values(window: Window, by_label: bool) -> dict[str, object]:
    """Return a window as values of JSON."""
    values = {**window._asdict(), "time": iso(window.time)}
    if not by_label:
        del values["labels"]
        return values
    names = ("seen", "mistakes", "wrong")
    values["labels"] = {label: dict(zip(names, counts, strict=True)) for label, counts in window.labels.items()}
    return values


@route(router, "GET", "/models/{name}/weights", response_model=shapes.WeightsAnswer, tags=["models"])
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
    wanted = request.query_params.get("label")
    async with service.state_of(request, model, copy=True) as state:
        labels = [each for each in state.learner.classes if wanted is None or label_text(each) == wanted]
        if wanted is not None and not labels:
            raise UnknownLabel(wanted, state.learner.classes)
        with service.answers.begin() as parts:
            intercepts: dict[str, float] = {}
            parts.add(b'{"seq":' + str(state.seq).encode() + b',"weights":{')
            for each in labels[:MOST_LABELS]:
                name = label_text(each)
                heaviest, intercepts[name] = await service.slowly(partial(heaviest_weights, state.learner, each, count))
                parts.add(b"," * (len(intercepts) > 1) + to_json(name) + b":" + to_json(heaviest, inf_nan_mode="null"))
            parts.add(b'},"intercepts":' + to_json(intercepts, inf_nan_mode="null") + b"}")
            return parts.response(JSON)


def heaviest_weights(learner: ServedLearner, label: Label, count: int) -> tuple[list[tuple[str | int, float]], float]:
    """Return the heaviest weights of a label, and its intercept."""
    weights, intercept = learner.weights(label)
    return nlargest(count, weights.items(), key=lambda item: abs(item[1])), intercept


@route(router, "POST", "/models/{name}/set-back", response_model=shapes.SetBackAnswer, tags=["models"])
async def set_back(request: Request, name: ModelName, body: shapes.SetBackRequest) -> Response:
    """Set a model back to an earlier state.

    That is an entry of the log too: nothing is lost, and the model can be set back to the state before it.
    """
    service = service_of(request)
    model = service.find(request)
    to = only(parse_json(await request.body()), ("to",)).get("to")
    if type(to) is not int:
        raise InvalidParameter("to", to, "the number of an entry")
    state = await service.state_at(model, to)
    return answer({"seq": await service.writer.do(SetBackJob(model, to, state)), "to": to})


@route(router, "POST", "/models/{name}/archive", response_model=shapes.ArchiveAnswer, tags=["log"])
async def archive_log(request: Request, name: ModelName, body: shapes.ArchiveTo | shapes.ArchiveBefore) -> Response:
    """Archive the older entries of the log.

    They are written to a compressed file in the folder of the server, and leave the log, which keeps the state after them.
    An earlier state cannot be asked for any more, nor can a request be sent again whose entry was archived.
    """
    service = service_of(request)
    model = service.find(request)
    document = only(parse_json(await request.body()), ("to", "before"), 'send {"to": 100} or {"before": "2026-10-31"}')
    if len(document) != 1:
        raise InvalidData('the body must have "to", an entry, or "before", a date')
    if "to" in document:
        to = document["to"]
        if type(to) is not int:
            raise InvalidParameter("to", to, "the number of an entry")
        archive = await service.archive(model, lambda read: to)
    else:
        time = parse_date(document["before"])
        archive = await service.archive(model, lambda read: last_archivable(read, model.record.id, time))
    values = {"first": archive.first, "last": archive.last, "file": archive.file}
    return answer({**values, "bytes": archive.bytes, "digest": archive.digest})


def last_archivable(read: LogReader, model: int, time: int) -> int:
    """Return the last entry of a model before a time; the newest one stays."""
    last, first = min(read.last_before(model, time), read.last(model)[0] - 1), read.base_seq(model) + 1
    if last < first < read.last(model)[0]:
        raise InvalidParameter("before", iso(time), f"a date after entry {first} was written: no entry is as old")
    return last


@route(
    router, "GET", "/models/{name}/file", tags=["models"], response_class=Response,
    responses={200: {"content": {MODEL_FILE: {"schema": BINARY}}, "description": "The file."}},
)  # fmt: skip
async def download_file(request: Request, name: ModelName, at: At = None) -> Response:
    """Download the model as a file, for `rosenblatt.load`."""
    service = service_of(request)
    model = service.find(request)
    async with service.state_of(request, model) as state:
        if not state.learner.seen:
            raise Conflict(f"the model {model.name} has not learned anything yet, so it has no file")
        parts = await service.pinned(model, state.learner, state.learner.to_parts)
        size = sum(array.nbytes for array in parts.arrays.values())
        response = await file_response(service, container.blocks(parts.facts, parts.arrays), size)
    response.headers["Content-Disposition"] = f'attachment; filename="{model.name}-{state.seq}.model"'
    response.headers["X-Seq"] = str(state.seq)
    return response


async def file_response(service: Service, blocks: Iterator[bytes | memoryview], size: int) -> Response:
    """Return the response with a model file of about so many bytes: from memory, or, if it is large, from a file."""
    if size <= service.limits.answer_bytes // 2:
        with service.answers.begin() as answered:
            for block in blocks:
                answered.add(bytes(block))
            return answered.response(MODEL_FILE)
    spool = SpooledFile(service.folder, service.writer.disk)
    try:
        await service.slowly(partial(spool.write, blocks))
        return spool.response(MODEL_FILE)
    except BaseException:
        spool.close()
        raise


@route(
    router, "GET", "/models/{name}/log", tags=["log"], response_class=Response,
    responses={200: {"content": {JSON_LINES: {"schema": TEXT}}, "description": "One entry a line."}},
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
    if begin <= model.archived:
        raise archived_error(model.archived, begin)
    end = min(end or model.published.seq, model.published.seq)

    async def lines() -> AsyncIterator[bytes]:
        first = begin
        while first <= end:
            block, first = await service.slowly(partial(log_lines, service.writer.log.path, model.record.id, first, end))
            yield block

    return StreamingResponse(lines(), media_type=JSON_LINES)


def log_lines(path: Path, model: int, first: int, last: int) -> tuple[bytes, int]:
    """Return the next lines of an exported log, about 1 MiB of them, and the number of the entry after them.

    The log is opened and closed here, in one thread: a client may leave while its export is read, and a connection to
    SQLite that is closed in one thread while another one uses it ends the process.
    """
    lines: list[bytes] = []
    size = 0
    with LogReader(path) as read:
        for entry in read.entries(model, first, last):
            lines.append(entry_to_line(entry) + b"\n")
            size += len(lines[-1])
            first = entry.seq + 1
            if size >= EXPORT_BYTES:
                break
    return b"".join(lines), first


@route(
    router, "POST", "/models/{name}/log", response_model=shapes.ImportAnswer, status_code=201, tags=["log"],
    openapi_extra={"requestBody": {"required": True, "content": {JSON_LINES: {"schema": TEXT, "example": LOG}}}},
)  # fmt: skip
async def import_log(request: Request, name: ModelName) -> Response:
    """Create a model from an exported log."""
    service = service_of(request)
    name = check_name(request.path_params["name"])
    if name in service.models:
        raise model_exists(name)
    with UploadedLog(service.folder, service.writer.disk, service.limits) as log:
        async for piece in request.stream():
            log.write(piece)
        async with service.one_import:
            state, last = await service.slowly(log.replay)
            imported = ImportedModel(name)
            try:
                await write_parts(service, imported, log)
                await service.writer.do(CreateJob(name, state, last.time, imported))
            except BaseException:
                await service.writer.do(DiscardImportJob(imported))
                raise
    return answer({"seq": last.seq, "entries": last.seq}, 201)


async def write_parts(service: Service, imported: ImportedModel, log: UploadedLog) -> None:
    """Write the entries of an uploaded log, and what they did, some at a time, so that other models go on learning."""
    entries, outcomes = log.entries(), log.outcomes()
    while part := await service.slowly(partial(take_entries, entries)):
        await service.writer.do(ImportJob(imported, part))
    while noted := await service.slowly(lambda: [*islice(outcomes, OUTCOMES_TOGETHER)]):
        await service.writer.do(ImportJob(imported, outcomes=noted))


def take_entries(entries: Iterator[Entry]) -> list[Entry]:
    """Take the next entries of a log, until they have about 1 MiB."""
    taken: list[Entry] = []
    size = 0
    for entry in entries:
        taken.append(entry)
        size += len(entry.payload) + ENTRY_BYTES
        if size >= EXPORT_BYTES:
            break
    return taken
