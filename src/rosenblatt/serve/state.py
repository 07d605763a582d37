"""The state of a model is a function of its log. `apply` takes one entry into it, and nothing else changes it: the server
applies entries as they arrive, and a start, a look at an earlier state, a check and `replay` apply them again.
"""

from __future__ import annotations

import base64
import binascii
import json
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic_core import from_json

from rosenblatt.errors import (
    DamagedLog,
    FormatError,
    InvalidData,
    InvalidDataType,
    InvalidParameter,
    RosenblattError,
    shown,
)
from rosenblatt.online.rows import check_weight
from rosenblatt.serve.history import MOST_EXAMPLES, History, WrongExample
from rosenblatt.serve.learners import Label, Row, ServedLearner, Specification, make_learner
from rosenblatt.serve.limits import Limits
from rosenblatt.serve.text import TextFeatures

LATEST = 253_402_300_799_999  # milliseconds since 1970, at the end of the year 9999
CREATE, LEARN, SET_BACK = "create", "learn", "set_back"
NO_LIMITS = Limits(*(1 << 62 for _ in Limits._fields))  # what was accepted once is applied whatever the limits are now
EXAMPLE_KEYS = {"x", "text", "y", "w", "id"}
LABEL_WORDS = {"y", "label", "target", "class"}  # what others call a label


class Entry(NamedTuple):
    """An entry of the log of a model."""

    seq: int  # from 1 on
    time: int  # milliseconds since 1970
    kind: str
    payload: bytes
    key: str | None = None  # that made it idempotent


class Example(NamedTuple):
    """A row, its label and its weight, checked; and what was received."""

    row: Row
    label: Label
    weight: float
    received: Mapping[str, object]


NO_EXAMPLE = Example({}, "", 0.0, {})  # stands for one that cannot be read


class Outcome(NamedTuple):
    """What an entry did to a model."""

    learned: int = 0
    mistakes: int = 0  # counted by the learner
    wrong: int = 0  # predicted wrongly by the model as it was served
    refused: tuple[tuple[int, RosenblattError], ...] = ()  # examples by their place, and why they were not learned


class State(NamedTuple):
    """A model after an entry of its log."""

    specification: Specification
    learner: ServedLearner
    history: History
    seq: int


def parse_json(content: bytes, what: str = "the body") -> Any:
    """Return the value that JSON describes; NaN and infinity are no JSON.

    Parameters
    ----------
    content : bytes
        UTF-8.
    what : str
        What messages call it.

    Returns
    -------
    value : object

    Raises
    ------
    FormatError
        If it is not JSON.
    """
    try:
        return from_json(content, allow_inf_nan=False, cache_strings="keys")
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{what} is not JSON: {str(error)[:200]}") from None


def read_specification(values: object) -> Specification:
    """Return what a model is to be made of.

    Parameters
    ----------
    values : object
        A value of JSON: {"learner": …, "parameters": {…}, "hashing": …, "classes": […], "text": {…}}, each optional; the
        content of a model file in base64 as "file".

    Returns
    -------
    specification : Specification

    Raises
    ------
    InvalidParameter
        If it has something else, or of another type.
    """
    if not isinstance(values, dict):
        raise InvalidDataType(f"the body must be a JSON object; got {shown(values)}")
    for name in values:
        if name not in Specification._fields:
            allowed = ", ".join(Specification._fields)
            problem = f"the body has an unknown member {shown(name)}; allowed are {allowed}"
            raise InvalidParameter(name, values[name], allowed, problem)
    learner, parameters = values.get("learner", Specification().learner), values.get("parameters")
    if not isinstance(learner, str):
        raise InvalidParameter("learner", learner, "the name of a learner")
    if not isinstance(parameters, dict | None):
        raise InvalidParameter("parameters", parameters, "a JSON object")
    buckets = values.get("hashing")
    if buckets is not None and (type(buckets) is not int or not 2 <= buckets <= 1 << 31):
        raise InvalidParameter("hashing", buckets, "null or a whole number from 2 to 2**31")
    classes = values.get("classes")
    if classes is not None:
        good = isinstance(classes, list) and classes and all(isinstance(label, str | int) for label in classes)
        if not good or len(set(classes)) != len(classes) or len({isinstance(label, str) for label in classes}) > 1:
            raise InvalidParameter("classes", classes, "null or a list of different labels of one type")
        classes = tuple(classes)
    text = values.get("text")
    if not isinstance(text, dict | None):
        raise InvalidParameter("text", text, "a JSON object")
    file = values.get("file")
    if file is not None:
        try:
            file = base64.b64decode(file, validate=True)
        except (TypeError, ValueError, binascii.Error):
            raise InvalidParameter("file", file, "the content of a model file in base64") from None
    return Specification(learner, parameters or {}, buckets, classes, TextFeatures.from_settings(text), file)


def write_specification(specification: Specification) -> bytes:
    """Return a specification as the payload of the entry that creates a model.

    Parameters
    ----------
    specification : Specification

    Returns
    -------
    payload : bytes
        JSON.
    """
    values = specification.to_json()
    if specification.file is not None:
        values["file"] = base64.b64encode(specification.file).decode()
    return json.dumps(values, sort_keys=True, separators=(",", ":")).encode()


def example_list(document: object) -> list[object]:
    """Return the examples of a document {"examples": […]}, of which there is at least one.

    Parameters
    ----------
    document : object
        A value of JSON.

    Returns
    -------
    examples : list

    Raises
    ------
    InvalidData
        If it is not such a document.
    """
    examples = document.get("examples") if isinstance(document, dict) else None
    if not isinstance(examples, list) or not examples:
        raise InvalidDataType(
            'the body must be {"examples": […]} with at least one example', hint='each as {"x": {"free": 1}, "y": "spam"}'
        )
    return examples


def read_example(learner: ServedLearner, example: object, limits: Limits) -> Example:
    """Return an example of JSON, checked for what a learner can take.

    Parameters
    ----------
    learner : ServedLearner
        The learner.
    example : object
        {"x": …, "y": …, "w": …}, or with "text".
    limits : Limits
        The most features, and so on.

    Returns
    -------
    example : Example

    Raises
    ------
    InvalidData
        If it cannot be learned from.
    """
    if not isinstance(example, dict):
        raise InvalidDataType(f"an example must be a JSON object; got {shown(example)}")
    if not example.keys() <= EXAMPLE_KEYS:
        unknown = sorted(example.keys() - EXAMPLE_KEYS)[0]
        hint = 'the label is "y"' if unknown.lower() in LABEL_WORDS else None
        raise InvalidData(f"an example has x, text, y, w or id; got {shown(unknown)}", hint=hint)
    if "y" not in example:
        raise InvalidData('an example to learn from must have its label, "y"')
    weight = example.get("w", 1.0)
    if weight != 1.0 or isinstance(weight, bool):
        if isinstance(weight, bool) or not isinstance(weight, int | float):
            raise InvalidDataType(f"w must be a number; got {shown(weight)}")
        check_weight(weight)
    return Example(learner.read_row(example, limits), learner.check_label(example["y"], limits), float(weight), example)


def read_examples(learner: ServedLearner, examples: Sequence[object], limits: Limits) -> list[Example]:
    """Return examples of JSON, checked; the error of the first that cannot be used has its place as `row`.

    Parameters
    ----------
    learner : ServedLearner
        The learner.
    examples : sequence
        Values of JSON.
    limits : Limits
        The most features, and so on.

    Returns
    -------
    examples : list of Example
    """
    place = 0
    try:
        found: list[Example] = []
        for example in examples:
            found.append(read_example(learner, example, limits))
            place += 1
        return found
    except RosenblattError as error:
        error.row = place
        raise


def learn_examples(learner: ServedLearner, examples: Sequence[Example], history: History, seq: int, time: int) -> Outcome:
    """Predict each example, learn from it, and count.

    An example that cannot be learned from now, because its step would overflow or there would be too many classes, is left
    out; it will be left out again whenever the entry is applied.

    Parameters
    ----------
    learner : ServedLearner
        The learner, which is changed.
    examples : sequence of Example
        The examples.
    history : History
        Where they are counted.
    seq, time : int
        The entry of the log.

    Returns
    -------
    outcome : Outcome
    """
    begun, all_wrong, learned = learner.mistakes, 0, 0
    refused = []
    last_wrong: deque[WrongExample] = deque(maxlen=MOST_EXAMPLES)
    for place, (row, label, weight, received) in enumerate(examples):
        if not weight:
            continue  # an example of weight zero is not there
        before, updates = learner.mistakes, learner.updates
        try:
            predicted = learner.predict(row)
            learner.learn(row, label, weight)
        except RosenblattError as error:
            error.row = place
            refused.append((place, error))
            continue
        wrong = learner.updates > updates if learner.regression else predicted != label
        learned += 1
        history.add(seq, time, label, learner.mistakes - before, wrong)
        if wrong:
            all_wrong += 1
            shown_part = {name: received[name] for name in ("x", "text") if name in received}
            last_wrong.append(WrongExample(seq, place, time, label, predicted, shown_part))
    for example in last_wrong:
        history.keep(example)
    return Outcome(learned, learner.mistakes - begun, all_wrong, tuple(refused))


def learn_again(learner: ServedLearner, examples: Sequence[Example], outcome: Outcome) -> None:
    """Learn from examples that another copy of the learner has learned from, with the same result.

    Parameters
    ----------
    learner : ServedLearner
        The copy, which is changed.
    examples : sequence of Example
        The examples.
    outcome : Outcome
        What they did to the other copy: those that it refused are left out.
    """
    refused = {place for place, _ in outcome.refused}
    for place, (row, label, weight, _) in enumerate(examples):
        if weight and place not in refused:
            learner.learn(row, label, weight)


def create(entry: Entry) -> State:
    """Return the state after the entry that creates a model.

    Parameters
    ----------
    entry : Entry
        The first entry of its log.

    Returns
    -------
    state : State
    """
    if entry.kind != CREATE:
        raise InvalidData(f"the first entry of a log must create the model; it is {entry.kind}")
    specification = read_specification(parse_json(entry.payload, "the entry"))
    return State(specification, make_learner(specification, NO_LIMITS), History(), entry.seq)


def apply(state: State, entry: Entry) -> tuple[State, Outcome]:
    """Return the state after one more entry, and what the entry did. The state before is used up.

    Parameters
    ----------
    state : State
        The state before.
    entry : Entry
        An entry with examples.

    Returns
    -------
    state : State
        The state after it.
    outcome : Outcome
    """
    examples: list[Example] = []
    refused: list[tuple[int, RosenblattError]] = []
    for place, example in enumerate(example_list(parse_json(entry.payload, "the entry"))):
        try:
            examples.append(read_example(state.learner, example, NO_LIMITS))
        except RosenblattError as error:  # only in a log that another program made: a server checks before it writes
            refused.append((place, error))
            examples.append(NO_EXAMPLE)
    outcome = learn_examples(state.learner, examples, state.history, entry.seq, entry.time)
    return state._replace(seq=entry.seq), outcome._replace(refused=tuple(sorted([*outcome.refused, *refused], key=_place)))


def _place(refused: tuple[int, RosenblattError]) -> int:
    return refused[0]


Note = Callable[[Entry, Outcome], None]  # is told what an entry with examples did


def run_entries(entries: Iterable[Entry], state: State | None = None, note: Note | None = None) -> State:
    """Return the state after some entries, which create the model or have examples.

    Parameters
    ----------
    entries : iterable of Entry
        The entries that `lineage` names, in order.
    state : State, optional
        The state before the first of them; None: there is no model yet.
    note : function from Entry and Outcome, optional
        Is called with what each entry with examples did.

    Returns
    -------
    state : State
    """
    for entry in entries:
        if state is None:
            state = create(entry)
            continue
        state, outcome = apply(state, entry)
        if note is not None:
            note(entry, outcome)
    assert state is not None
    return state


class Lineage(NamedTuple):
    """The entries that lead to a state."""

    snapshot: int | None  # the entry whose state is known, to begin with; None: begin with the first entry
    ranges: list[range]  # of the entries to apply after it, in order


def lineage(seq: int, set_backs: Mapping[int, int], snapshots: Collection[int] = ()) -> Lineage:
    """Return the entries that lead to the state after an entry. Those that the model was set back over do not.

    Parameters
    ----------
    seq : int
        The entry.
    set_backs : mapping of int to int
        The entries that set the model back, each with the entry whose state it is set back to.
    snapshots : collection of int
        Entries whose states are known.

    Returns
    -------
    lineage : Lineage

    Raises
    ------
    InvalidData
        If an entry sets the model back to itself or to a later one.
    """
    backs, known = sorted(set_backs), sorted(snapshots)
    ranges: list[range] = []
    while seq > 0:
        before = bisect_left(backs, seq)
        first = backs[before - 1] + 1 if before else 1  # of the entries up to seq with nothing between them
        if seq in set_backs:
            first = seq
        nearest = bisect_right(known, seq) - 1
        if nearest >= 0 and known[nearest] >= first:
            return Lineage(known[nearest], [range(known[nearest] + 1, seq + 1), *ranges[::-1]])
        if seq in set_backs:
            if not 1 <= set_backs[seq] < seq:
                raise InvalidData(f"entry {seq} sets the model back to entry {set_backs[seq]}, which is not before it")
            seq = set_backs[seq]
        else:
            ranges.append(range(first, seq + 1))
            seq = first - 1
    return Lineage(None, ranges[::-1])


def set_back_target(entry: Entry) -> int:
    """Return the entry whose state an entry sets the model back to.

    Parameters
    ----------
    entry : Entry
        An entry that sets a model back.

    Returns
    -------
    seq : int

    Raises
    ------
    InvalidData
        If it does not say.
    """
    values = parse_json(entry.payload, "the entry")
    if not isinstance(values, dict) or type(values.get("to")) is not int or len(values) != 1:
        raise InvalidData('set_back must be {"to": SEQ}')
    return values["to"]


# Logs as JSON lines


def entry_to_line(entry: Entry) -> bytes:
    """Return an entry as a line of JSON, without the end of line.

    Parameters
    ----------
    entry : Entry

    Returns
    -------
    line : bytes
    """
    head: dict[str, object] = {"seq": entry.seq, "time": entry.time}
    if entry.key is not None:
        head["key"] = entry.key
    content = entry.payload
    if entry.kind == LEARN:
        content = json.dumps(
            parse_json(entry.payload, "the entry")["examples"], ensure_ascii=False, separators=(",", ":")
        ).encode()
    return json.dumps(head, separators=(",", ":")).encode()[:-1] + b',"' + entry.kind.encode() + b'":' + content + b"}"


def entry_from_line(line: bytes, number: int) -> Entry:
    """Return the entry that a line of an exported log describes.

    Parameters
    ----------
    line : bytes
        JSON.
    number : int
        The number of the line, from 1, for messages.

    Returns
    -------
    entry : Entry

    Raises
    ------
    FormatError
        If it is not such a line.
    """
    values = parse_json(line, f"line {number}")
    kinds = [kind for kind in (CREATE, LEARN, SET_BACK) if isinstance(values, dict) and kind in values]
    if len(kinds) != 1 or type(values.get("seq")) is not int or type(values.get("time")) is not int:
        raise FormatError('an entry must have "seq", "time" and one of "create", "learn", "set_back"', line=number)
    if not 0 <= values["time"] <= LATEST:
        raise FormatError("the time of an entry must be milliseconds since 1970, until the year 9999", line=number)
    content, key = values[kinds[0]], values.get("key")
    if values.keys() - {"seq", "time", "key", kinds[0]} or not isinstance(key, str | None):
        raise FormatError(f'an entry has "seq", "time", "key" and "{kinds[0]}", and nothing else', line=number)
    if kinds[0] == CREATE:
        payload = write_specification(read_specification(content))
    elif kinds[0] == LEARN:
        payload = json.dumps({"examples": content}, ensure_ascii=False, separators=(",", ":")).encode()
    else:
        payload = json.dumps(content).encode()
    return Entry(values["seq"], values["time"], kinds[0], payload, key)


def replay(lines: Iterable[bytes | str]) -> Any:
    """Return the model that an exported log gives, in this process and without a server.

    Parameters
    ----------
    lines : iterable of bytes or str
        The lines of a log, as `GET /models/NAME/log` answers them: an open file will do.

    Returns
    -------
    model : learner
        The learner itself: an OnlinePerceptron, or an estimator. Its file has the bytes of the one that the server has.

    Raises
    ------
    DamagedLog
        If an entry is missing or cannot be applied.

    Examples
    --------
    >>> log = [
    ...     '{"seq": 1, "time": 0, "create": {"learner": "OnlinePerceptron", "parameters": {}, "text": {}}}',
    ...     '{"seq": 2, "time": 1, "learn": [{"x": {"win": 1, "money": 1}, "y": "spam"}]}',
    ...     '{"seq": 3, "time": 2, "learn": [{"x": {"see": 1, "you": 1}, "y": "ham"}, {"x": {"money": 1}, "y": "spam"}]}',
    ... ]
    >>> replay(log).predict_one({"money": 1})
    'spam'
    """
    entries: list[Entry] = []
    for number, line in enumerate(lines, 1):
        content = line.encode() if isinstance(line, str) else line
        if content.strip():
            entries.append(entry_from_line(content, number))
        if entries and entries[-1].seq != len(entries):
            problem = f"an entry is missing: after entry {len(entries) - 1} comes {entries[-1].seq}"
            raise DamagedLog(problem, path="the log", line=number)
    if not entries:
        raise DamagedLog("it has no entries", path="the log")
    set_backs = {entry.seq: set_back_target(entry) for entry in entries if entry.kind == SET_BACK}
    ranges = lineage(len(entries), set_backs).ranges
    return run_entries(entries[seq - 1] for each in ranges for seq in each).learner.model
