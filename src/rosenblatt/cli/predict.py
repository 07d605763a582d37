"""`rosenblatt predict`: a label for each row, as fast as rows are read."""

from __future__ import annotations

import csv
import io
import json as _json
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from rosenblatt.cli import options as opts
from rosenblatt.cli.console import Console, is_utf8, rows_left_out
from rosenblatt.cli.errors import Code, Failure
from rosenblatt.cli.files import check_writable, load_model, writing
from rosenblatt.errors import FormatError

if TYPE_CHECKING:
    from rosenblatt.data.reading import RowTexts
    from rosenblatt.workflow import FileModel
    from rosenblatt.workflow.model import Answers


def predict(
    model: opts.Model,
    data: opts.Files,
    output: opts.Output = None,
    scores: Annotated[bool, opts.option("--scores", None, "Print the score after each label, separated by a tab.")] = False,
    probabilities: opts.Probabilities = False,
    top: Annotated[
        int | None, opts.option("--top", "K", "Print the K best labels, each with its score or probability.", min=1)
    ] = None,
    threshold: opts.Threshold = None,
    append: Annotated[
        bool, opts.option("--append", None, "Print the input rows with the predictions added as last columns.")
    ] = False,
    json: Annotated[bool, opts.option("--json", None, "Print each row as a JSON object: label, scores.")] = False,
    skip_errors: opts.SkipErrors = False,
    max_line: opts.MaxLine = "64M",
    quiet: opts.Quiet = False,
) -> None:
    """Predict the label of each row with a trained model: one label a line, in the order of the rows.

    Rows are read as in training; labels in the data are ignored. For two classes the score is that of the second class:
    it is predicted at 0 and above.
    """
    from rosenblatt.workflow import FileModel
    from rosenblatt.workflow.model import Decision, file_list

    console = Console(json, quiet)
    files = file_list(data)
    check_writable(output, model, *files)
    trained = load_model(model, FileModel)
    if top is not None and not hasattr(trained.learner, "decision_function"):
        name = type(trained.learner).__name__
        raise Failure(f"--top {top}: {model} is a {name}, which has no scores of labels", Code.USAGE)
    ascii_only = output in (None, "-") and not is_utf8(sys.stdout)
    decision = Decision(probabilities, threshold)
    show = Columns(trained, scores, top)
    write = Appending(show, json, ascii_only) if append else _json_lines(show, ascii_only) if json else _text_lines(show)
    unknown = rows = 0
    needed = scores or json or top is not None
    stream = trained.answers(files, False, needed, "skip" if skip_errors else "error", decision, append)
    with writing(output) as out, console.progress(unit="rows") as progress:
        for answers in stream:
            out.write(write(answers))
            out.flush()  # so that each line of a slow pipe is answered before the next one is there
            rows += len(answers.labels)
            unknown += answers.unknown
            progress.update(rows)
    if stream.skipped:
        console.note(rows_left_out(stream.skipped))
    if unknown:
        console.note(f"{unknown:,} values were in columns that no row had in training; they were ignored")


class Columns(NamedTuple):
    """What is shown of predictions: as columns of text, or as fields of JSON."""

    model: FileModel
    scores: bool
    top: int | None

    def names(self, answers: Answers) -> list[str]:
        """The names of the columns of text."""
        what = "score" if answers.probabilities is None else "probability"
        if self.top is not None:
            best = range(1, min(self.top, len(self.model.classes_)) + 1)
            return [name for place in best for name in (f"predicted_{place}", f"{what}_{place}")]
        return ["predicted", *([what] if self.has_number(answers) else [])]

    def has_number(self, answers: Answers) -> bool:
        return answers.probabilities is not None or (self.scores and answers.scores is not None)

    def texts(self, answers: Answers) -> Sequence[Sequence[str]]:
        """The columns of each row as text: the label, and what the options ask for."""
        if self.top is not None:
            return [[text for label, value in best for text in (label, repr(value))] for best in self._best(answers)]
        labels = [label or "" for label in _label_texts(answers.labels.tolist())]
        if not self.has_number(answers):
            return [(label,) for label in labels]
        return list(zip(labels, map(repr, self._numbers(answers)), strict=True))

    def fields(self, answers: Answers) -> list[dict[str, Any]]:
        """The fields of each row as JSON: the label, the scores, and what the options ask for."""
        rows: list[dict[str, Any]] = [{"label": label} for label in _label_texts(answers.labels.tolist())]
        if answers.scores is not None:
            table, two = answers.scores.tolist(), answers.scores.ndim == 1
            classes = _label_texts(self.model.classes_)
            for row, values in zip(rows, table, strict=True):
                row["score"] = values if two else dict(zip(classes, values, strict=True))
        if answers.probabilities is not None:
            classes = _label_texts(self.model.classes_)
            for row, values in zip(rows, answers.probabilities.tolist(), strict=True):
                row["probabilities"] = dict(zip(classes, values, strict=True))
        if self.top is not None:
            what = "score" if answers.probabilities is None else "probability"
            for row, best in zip(rows, self._best(answers), strict=True):
                row["top"] = [{"label": label, what: value} for label, value in best]
        return rows

    def _numbers(self, answers: Answers) -> list[float]:
        """The number behind each label: its probability; or the score, of two classes that of the second."""
        import numpy as np

        if answers.probabilities is None:
            scores = answers.scores
            assert scores is not None
            return (scores if scores.ndim == 1 else scores.max(axis=1)).tolist()
        chosen = answers.probabilities.argmax(axis=1)
        if len(self.model.classes_) == 2:  # of which the threshold may have chosen the other one
            chosen = (answers.labels == self.model.classes_[1]).astype(int)
        return answers.probabilities[np.arange(len(chosen)), chosen].tolist()

    def _best(self, answers: Answers) -> list[list[tuple[str, float]]]:
        """(label, score or probability) of the best labels of each row, the best first."""
        import numpy as np

        table = answers.scores if answers.probabilities is None else answers.probabilities
        assert table is not None
        table = np.column_stack([-table, table]) if table.ndim == 1 else table
        order = np.argsort(-table, axis=1, kind="stable")[:, : self.top]
        classes = _label_texts(self.model.classes_)
        values = np.take_along_axis(table, order, axis=1).tolist()
        return [
            [(classes[at] or "", value) for at, value in zip(row, numbers, strict=True)]
            for row, numbers in zip(order.tolist(), values, strict=True)
        ]


def _label_texts(labels: Iterable[object]) -> list[str | None]:
    """Labels as text; None, where no label reached the threshold, stays None."""
    from rosenblatt.workflow.labels import label_text

    labels = list(labels)
    texts = {label: None if label is None else label_text(label) for label in set(labels)}
    return [texts[label] for label in labels]


def _text_lines(show: Columns) -> Callable[[Answers], bytes]:
    def lines(answers: Answers) -> bytes:
        if show.top is None and not show.has_number(answers):
            labels = _label_texts(answers.labels.tolist())
            return "".join([f"{label or ''}\n" for label in labels]).encode()
        return "".join(["\t".join(texts) + "\n" for texts in show.texts(answers)]).encode()

    return lines


def _json_lines(show: Columns, ascii_only: bool) -> Callable[[Answers], bytes]:
    encode = _json.JSONEncoder(ensure_ascii=ascii_only).encode
    return lambda answers: "".join([encode(row) + "\n" for row in show.fields(answers)]).encode()


# Predictions beside the rows


class Appending:
    """Writes each row as it stands in its file, with the predictions behind it: further columns of delimited text, further
    fields of an object of JSON, and on any other line a tab and the label. A name that is taken already gets a number."""

    def __init__(self, show: Columns, json: bool, ascii_only: bool):
        self.show, self.json, self.ascii_only = show, json, ascii_only
        self.header: tuple[str, ...] | None = None  # the columns of the first file

    def __call__(self, answers: Answers) -> bytes:
        texts = answers.texts
        assert texts is not None
        if self.header is not None and texts.format in ("csv", "tsv") and texts.names != self.header:
            raise FormatError(
                f"--append writes one table, but a later file has other columns: {', '.join(texts.names)[:200]}",
                hint="predict the files one by one",
            )
        lines = self._objects(texts, answers) if self.json or texts.format == "jsonl" else self._columns(texts, answers)
        self.header = texts.names
        return b"".join(line + b"\n" for line in lines)

    def _columns(self, texts: RowTexts, answers: Answers) -> list[bytes]:
        delimited = texts.format in ("csv", "tsv")
        between, quote = (texts.delimiter, texts.quote) if delimited else ("\t", None)

        def add(line: bytes, fields: Sequence[str]) -> bytes:
            return line + "".join(between + _quoted(field, between, quote) for field in fields).encode()

        lines = list(map(add, texts.lines, self.show.texts(answers)))
        if texts.header is not None and self.header is None:
            lines.insert(0, add(texts.header, _free_names(self.show.names(answers), texts.names)))
        return lines

    def _objects(self, texts: RowTexts, answers: Answers) -> list[bytes]:
        lines = []
        for line, row, fields in zip(texts.lines, _as_objects(texts), self.show.fields(answers), strict=True):
            named = {"predicted" if name == "label" else name: value for name, value in fields.items()}
            if not self.show.scores and not self.json:
                named.pop("score", None)
            added = dict(zip(_free_names(list(named), row), named.values(), strict=True))
            if texts.format == "jsonl":  # all that was there stays as it was
                more = _json.dumps(added, ensure_ascii=self.ascii_only).encode()
                lines.append(line.rstrip()[:-1].rstrip() + (b", " if row else b"") + more[1:])
            else:
                lines.append(_json.dumps(row | added, ensure_ascii=self.ascii_only).encode())
        return lines


def _as_objects(texts: RowTexts) -> list[dict[str, Any]]:
    """The rows as objects: those of JSON as they are, columns by their names, any other line as "line"."""
    if texts.format == "jsonl":
        return [_json.loads(line.decode("utf-8-sig")) for line in texts.lines]
    if texts.format not in ("csv", "tsv"):
        return [{"line": line.decode("utf-8", "backslashreplace")} for line in texts.lines]
    records: Iterable[list[str]] = (line.decode("utf-8-sig").split(texts.delimiter) for line in texts.lines)
    if texts.quote:
        whole = io.StringIO("\n".join(line.decode("utf-8-sig") for line in texts.lines), newline="")
        records = csv.reader(whole, delimiter=texts.delimiter, quotechar=texts.quote)
    return [dict(zip(texts.names, record, strict=False)) for record in records]


def _free_names(names: Sequence[str], taken: Iterable[str]) -> list[str]:
    """The names, each with a number behind it where it is taken."""
    used, free = set(taken), []
    for name in names:
        number = 2
        found = name
        while found in used:
            found, number = f"{name}_{number}", number + 1
        used.add(found)
        free.append(found)
    return free


def _quoted(text: str, delimiter: str, quote: str | None) -> str:
    """A field of delimited text, in quotes where it needs them."""
    if not quote or set(text).isdisjoint({delimiter, quote, "\r", "\n"}):
        return text
    return f"{quote}{text.replace(quote, quote * 2)}{quote}"
