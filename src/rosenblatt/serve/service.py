"""What the routes of the server share: the models, the thread that writes, and how requests are read and answered."""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, TypeVar

from fastapi import Request, Response
from pydantic_core import to_json

from rosenblatt.errors import (
    FormatError,
    InvalidData,
    InvalidDataType,
    InvalidParameter,
    LimitExceeded,
    RosenblattError,
    UnknownModel,
    shown,
)
from rosenblatt.serve.answers import UnsentAnswers
from rosenblatt.serve.archive import archive_path, base_of, check_archivable, write_archive
from rosenblatt.serve.events import Feed
from rosenblatt.serve.jobs import ArchiveJob, Learned, OutcomesJob
from rosenblatt.serve.learners import ServedLearner
from rosenblatt.serve.limits import Limits
from rosenblatt.serve.log import ArchiveRecord, LogReader
from rosenblatt.serve.metrics import Metrics
from rosenblatt.serve.predictions import PredictionStore
from rosenblatt.serve.served_model import Published, ServedModel
from rosenblatt.serve.snapshots import States
from rosenblatt.serve.state import (
    State,
    parse_json,
)
from rosenblatt.serve.wire import JSON
from rosenblatt.serve.writer import Writer

TURN_SECONDS = 0.002  # that one request may take before others are looked at
RECENT = 100  # examples, at least, of which is told how many were wrong lately
LONG_BODY = 1 << 15  # bytes
STATES_KEPT = 4  # earlier states that were asked for
KEPT_SHARE = 16  # of the memory that a model may take: what they may take together is one part of so many
T = TypeVar("T")


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
        self.answers = UnsentAnswers(limits)
        self._earlier: OrderedDict[tuple[int, int], Published] = OrderedDict()
        self._slow = ThreadPoolExecutor(2, "requests")  # what would keep other requests waiting
        self._one_copy = asyncio.Lock()  # of a model, or an earlier state of one, besides the two that every model has
        self._one_long_body = asyncio.Lock()
        self.one_import = asyncio.Lock()  # whose entries are parsed and learned

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

    async def parse(self, content: bytes) -> Any:
        """Return the value of a body of JSON; between two long ones, other requests have their turn."""
        if len(content) < LONG_BODY:
            return parse_json(content)
        async with self._one_long_body:
            value = parse_json(content)
            await asyncio.sleep(0)
            return value

    @asynccontextmanager
    async def state_of(self, request: Request, model: ServedModel, copy: bool = False) -> AsyncIterator[Published]:
        """Have the state of a model that a request asks for; with `copy` one whose learner nobody changes, however long it
        takes. There is one copy, or earlier state, at a time: those that are asked for at once must not take the memory of
        as many models. Small earlier states are kept for a while."""
        seq = whole_number(request, "at", 1)
        is_newest = seq is None or seq == model.published.seq
        if is_newest and not copy:
            yield model.published
            return
        async with self._one_copy:
            if seq is None or is_newest:
                state = model.published
                yield state._replace(learner=await self.pinned(model, state.learner, state.learner.copy))
                return
            place = model.record.id, seq
            found = self._earlier.pop(place, None)
            if found is None:
                found = _published(await self.slowly(partial(self._state_at, model.record.id, seq)), model)
            self._keep(place, found)
            yield found

    def _keep(self, place: tuple[int, int], state: Published) -> None:
        """Keep an earlier state if it is small, and forget others until all together are."""
        sizes = {key: kept.learner.size() for key, kept in self._earlier.items()}
        room = self.limits.model_bytes // KEPT_SHARE - state.learner.size()
        if room < 0:
            return
        while sizes and (len(sizes) >= STATES_KEPT or sum(sizes.values()) > room):
            del sizes[self._earlier.popitem(last=False)[0]]
        self._earlier[place] = state

    async def state_at(self, model: ServedModel, seq: int) -> State:
        """Return a model after an entry of its log, for the caller alone."""
        async with self._one_copy:
            return await self.slowly(partial(self._state_at, model.record.id, seq))

    def _state_at(self, model: int, seq: int) -> State:
        with LogReader(self.writer.log.path) as read:
            return States(self.folder, read).at(model, seq)

    async def learned_before(self, model: ServedModel, seq: int) -> Learned:
        """Return what the entry of a request did that was answered before, from the log; it is noted for the next time."""
        async with self._one_copy:
            found = await self.slowly(partial(self._outcomes, model.record.id, seq))
        await self.writer.do(OutcomesJob(model, found))
        return found[-1]

    async def archive(self, model: ServedModel, last_of: Callable[[LogReader], int]) -> ArchiveRecord:
        """Archive the entries of a model up to the one that a function says, and return what was archived."""
        async with self._one_copy:
            job = await self.slowly(partial(self._archive, model, last_of))
            try:
                await self.writer.do(job)
            except RosenblattError:
                if not job.is_committed:
                    archive_path(self.folder, job.archive).unlink(missing_ok=True)
                raise
            return job.archive

    def _archive(self, model: ServedModel, last_of: Callable[[LogReader], int]) -> ArchiveJob:
        number = model.record.id
        with LogReader(self.writer.log.path) as read:
            last = last_of(read)
            first = check_archivable(read, number, last)
            base = base_of(read, number, States(self.folder, read).at(number, last))
            size = read.size(number, first - 1) - read.size(number, last)
            self.writer.disk.check_free(size + len(base.content))
            archive = write_archive(self.folder, read, model.record, first, last)
        return ArchiveJob(model, archive, base, size)

    def _outcomes(self, model: int, seq: int) -> list[Learned]:
        with LogReader(self.writer.log.path) as read:
            outcomes = States(self.folder, read).outcomes(model, seq)
        return [Learned(each, *outcomes[each]) for each in sorted(outcomes)]

    async def pinned(self, model: ServedModel, learner: ServedLearner, function: Callable[[], T]) -> T:
        """Return what a function returns, which runs in another thread, and reads a learner that must not change before it
        has ended, also if nobody waits for it any more."""
        model.pin(learner, 1)
        running = asyncio.ensure_future(self.slowly(function))
        running.add_done_callback(lambda _: model.pin(learner, -1))
        return await asyncio.shield(running)


def _published(state: State, model: ServedModel) -> Published:
    """Return an earlier state as it would have been published."""
    history = state.history.view()
    changed = history.windows[-1].time if state.seq > 1 and history.windows else model.record.created
    return Published(state.learner, history, state.seq, changed)


def service_of(request: Request) -> Service:
    """Return what the routes work with."""
    return request.app.state.service


# Parts of requests and answers


def large_answer(service: Service, value: object) -> Response:
    """Return an answer of JSON that may be large."""
    with service.answers.begin() as parts:
        parts.add(to_json(value, inf_nan_mode="null"))
        return parts.response(JSON)


def answer(value: object, status: int = 200) -> Response:
    """Return an answer of JSON; a number that is not finite, which JSON does not have, is null."""
    return Response(to_json(value, inf_nan_mode="null"), status, media_type=JSON)


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
        "memory_bytes": learner.memory(),
        "log_bytes": model.log_bytes,
        "created": iso(model.record.created),
        "changed": iso(state.changed),
        "snapshots": list(model.snapshots),
        "archived": model.archived,
    }
    return description if model.failure is None else {**description, "failure": model.failure}


def summarize(model: ServedModel) -> dict[str, object]:
    """Return what a stream of events tells of a model."""
    state, windows, recent = model.published, [], 0
    for window in reversed(state.history.windows):
        windows.append(window)
        recent += window.seen
        if recent >= RECENT:
            break
    return {
        "name": model.name,
        "learner": type(state.learner.model).__name__,
        "seq": state.seq,
        "seen": state.learner.seen,
        "mistakes": state.learner.mistakes,
        "wrong": state.history.wrong,
        "classes": len(state.learner.classes),
        "recent": {"seen": recent, "wrong": sum(each.wrong for each in windows)},
    }


def only(document: object, allowed: tuple[str, ...], hint: str | None = None) -> dict[str, Any]:
    """Return a JSON object that has these members only."""
    if not isinstance(document, dict):
        raise InvalidDataType(f"the body must be a JSON object; got {shown(document)}", hint=hint)
    for name in document:
        if name not in allowed:
            raise InvalidData(f"unknown member {shown(name)} in the body; it may have {', '.join(allowed)}", hint=hint)
    return document


def body_type(request: Request) -> str:
    """Return the media type of the body of a request, which the guard has let through."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def check_rows(examples: Sequence[object], limits: Limits) -> None:
    """Raise an error if a request has more examples than it may."""
    if len(examples) > limits.rows:
        raise LimitExceeded("rows", len(examples), limits.rows, hint="send less in one request")


async def next_turn() -> float:
    """Let other requests have their turn; return when the next one should be over."""
    await asyncio.sleep(0)
    return perf_counter() + TURN_SECONDS


async def parse_lines(body: bytes, most: int) -> list[tuple[bytes, Any]]:
    """Return the lines of a body that are not blank, each with its value."""
    found: list[tuple[bytes, Any]] = []
    turn_ends = await next_turn()
    number = end = 0
    while end < len(body):
        start = end
        end = body.find(b"\n", start) + 1 or len(body)
        line, number = body[start:end].rstrip(b"\r\n"), number + 1
        if line and not line.isspace():
            try:
                found.append((line, parse_json(line, f"line {number}")))
            except FormatError as error:
                error.line = number
                raise
            if len(found) > most:
                raise LimitExceeded("rows", len(found), most, hint="send less in one request")
        if perf_counter() > turn_ends:
            turn_ends = await next_turn()
    if not found:
        raise InvalidData("the body has no examples")
    return found
