"""A model on a server, used like one in this process: what `OnlinePerceptron` does, `Client(url).model(name)` does there.

from rosenblatt.serve import Client

client = Client("http://localhost:8000")
model = client.create("spam", text={}, exist_ok=True)
model.learn_one("win money now", "spam")
model.predict_one("money for you")
"""

from __future__ import annotations

import json
import math
import os
import uuid
from collections.abc import Hashable, Iterable, Mapping, Sequence
from datetime import date
from http.client import HTTPResponse, IncompleteRead
from typing import IO, Any, NamedTuple
from urllib.parse import quote, urlencode

import numpy as np
from numpy.typing import ArrayLike

from rosenblatt import rules
from rosenblatt.data.opening import Input, output
from rosenblatt.errors import (
    Conflict,
    InvalidData,
    InvalidParameter,
    RosenblattError,
    UnknownLabel,
    UnknownModel,
    UnsupportedOperation,
    shown,
)
from rosenblatt.estimators.explanation import Explanation
from rosenblatt.online.rows import RowLike, RowsLike, items, read_rows, read_weights
from rosenblatt.serve.connection import Request, ServerAnswer, ServerConnection
from rosenblatt.serve.json_rows import Label, batches, label_json, label_key, row_json, weight_json
from rosenblatt.serve.wire import JSON, JSON_LINES, MODEL_FILE, check_name

BATCH_ROWS, BATCH_BYTES = 1000, 4 << 20  # of a request that learns or predicts many; a server takes ten times as much
_DEFAULT_LEARNER = "OnlinePerceptron"
_LONG = 600.0  # seconds that a whole model or log may take
_PIECE = 1 << 20  # bytes of a file that are in memory at a time
_MOST_CONTRIBUTIONS = 1_000_000  # more than a row of a server has features
_MOST_WEIGHTS = 10_000  # that a server shows

Row = RowLike | str  # text, where the model learns from text
Rows = RowsLike | Sequence[str]


class Acknowledgement(NamedTuple):
    """What a server has learned and written to its disk.

    Attributes
    ----------
    seq : int
        The number of the log entry that holds the examples, the last one where they took several; 0 if there were none.
    learned : int
        How many examples were learned.
    mistakes : int
        On how many of them the learner made a mistake, as `n_mistakes_` counts them.
    wrong : int
        How many of them the model, as it predicts, had predicted wrongly before it learned them.
    """

    seq: int
    learned: int
    mistakes: int
    wrong: int


class StoredPrediction(NamedTuple):
    """A prediction whose row the server has kept, so that its label can be learned later.

    Attributes
    ----------
    label : str, int, bool or None
        The predicted label; None before the first example.
    scores : dict
        From label to score.
    id : str or None
        What `learn_label` wants to know; None if the server could not keep the row, because its disk is full.
    seq : int
        The number of the last log entry that the model had learned from.
    """

    label: Label | None
    scores: dict[Label, float]
    id: str | None
    seq: int


class Client:
    """A client of a learning server.

    Threads may share it; each has a connection of its own.

    A request that is lost, or refused because the server is stopping or busy (503), is sent again, with waits that double.
    Each request to learn has an Idempotency-Key that stays the same, so that it is learned once however often it is sent.

    Parameters
    ----------
    url : str
        Where the server is: "http://localhost:8000", or "https://…" behind a proxy with TLS, whose certificate is checked
        (the variable SSL_CERT_FILE names other authorities than those of the system). HTTP_PROXY is not used.
    token : str, optional
        The token, where the server wants one.
    timeout : float, default=30.0
        Seconds without an answer after which an attempt is given up.
    retries : int, default=8
        How often a request is sent again; with the default waits that is for about 15 seconds.
    backoff : float, default=0.1
        Seconds before a request is sent again for the first time; each next wait is twice as long, up to 5 seconds, and
        up to half of it, at random, is left out. A server that says how long to wait (Retry-After) is obeyed.

    Examples
    --------
    >>> import subprocess, sys, tempfile
    >>> command = [sys.executable, "-m", "rosenblatt", "serve", "--port", "0", "--json"]
    >>> with (
    ...     tempfile.TemporaryDirectory() as folder,
    ...     subprocess.Popen([*command, folder], stdout=subprocess.PIPE, text=True) as server,
    ...     Client(json.loads(server.stdout.readline())["url"]) as client,
    ... ):
    ...     model = client.create("spam", text={})
    ...     done = model.learn_many(["win money", "see you", "free money"], ["spam", "ham", "spam"])
    ...     model.predict_one("money for free"), done.seq
    ...     server.terminate()
    ('spam', 2)
    """

    def __init__(
        self, url: str, token: str | None = None, *, timeout: float = 30.0, retries: int = 8, backoff: float = 0.1
    ):
        self._connection = ServerConnection(url, token, timeout, retries, backoff)

    def __repr__(self) -> str:
        return f"Client({self._connection.url!r})"

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; a later request opens another one."""
        self._connection.close()

    def models(self) -> list[dict[str, Any]]:
        """Return the descriptions of all models: name, learner, parameters, seq, seen, mistakes and more.

        Returns
        -------
        descriptions : list of dict
        """
        return _json(self._connection.send(Request("GET", "/models")))["models"]

    def model(self, name: str) -> RemoteModel:
        """Return the model of this name; whether the server has it is seen when it is first used.

        Parameters
        ----------
        name : str
            The name of the model.

        Returns
        -------
        model : RemoteModel
        """
        return RemoteModel(self._connection, name)

    def create(
        self,
        name: str,
        learner: str = _DEFAULT_LEARNER,
        parameters: Mapping[str, object] | None = None,
        *,
        hashing: int | None = None,
        classes: Sequence[Label] | None = None,
        text: Mapping[str, object] | None = None,
        file: str | os.PathLike[str] | None = None,
        exist_ok: bool = False,
    ) -> RemoteModel:
        """Create a model on the server, and return it.

        Parameters
        ----------
        name : str
            1 to 64 letters, digits, ".", "_" and "-"; the first is a letter or a digit.
        learner : str, default="OnlinePerceptron"
            The class that learns.
        parameters : mapping, optional
            Its parameters, by name; a rule may be one of `rosenblatt.rules`.
        hashing : int, optional
            The number of buckets that features are hashed to; estimators that need to know the columns need it.
        classes : sequence, optional
            The labels, for a learner that must know them before its first example.
        text : mapping, optional
            How text becomes features; {} is the default way.
        file : path, optional
            A model file that the model starts from, instead of learner and parameters.
        exist_ok : bool, default=False
            Whether the server may have the same model already: of this name, with this learner and these parameters.

        Returns
        -------
        model : RemoteModel

        Raises
        ------
        Conflict
            The server has a model of this name, and it is another, or `exist_ok` is false.
        InvalidParameter
            The learner, a parameter or the name is not allowed.
        """
        model = self.model(name)
        if file is not None:
            others = {"learner": learner != _DEFAULT_LEARNER, "parameters": parameters, "hashing": hashing is not None}
            others |= {"classes": classes is not None, "text": text is not None}
            if given := [name for name, is_given in others.items() if is_given]:
                problem = f"a model that starts from a file is as the file says: leave out {', '.join(given)}"
                raise InvalidParameter("file", os.fspath(file), None, problem)
            with open(file, "rb") as stream:
                body, kind = stream.read(), MODEL_FILE
        else:
            chosen = {key: _parameter_json(value) for key, value in (parameters or {}).items()}
            wanted: dict[str, object] = {"learner": learner, "parameters": chosen, "hashing": hashing}
            wanted |= {"classes": None if classes is None else list(classes), "text": None if text is None else dict(text)}
            body, kind = json.dumps(wanted, default=_plain_parameter).encode(), JSON
        answer = self._connection.send(Request("PUT", model._path, body, kind, seconds=_LONG))
        if answer.status == 200 and not answer.lost and not exist_ok:
            raise Conflict(f"there is a model {name!r} already", hint="exist_ok=True takes it as it is")
        return model

    def delete(self, name: str, missing_ok: bool = False) -> None:
        """Delete a model, with its log.

        Parameters
        ----------
        name : str
            The name of the model.
        missing_ok : bool, default=False
            Whether it is no error if there is none.

        Raises
        ------
        UnknownModel
            There is no model of this name.
        """
        try:
            self._connection.send(Request("DELETE", self.model(name)._path))
        except UnknownModel:
            if not missing_ok:
                raise

    def import_log(self, name: str, path: str | os.PathLike[str]) -> RemoteModel:
        """Create a model from the log that `export_log` has written, entry by entry, and return it.

        Parameters
        ----------
        name : str
            The name of the new model.
        path : path
            The file of JSON lines; it may be compressed.

        Returns
        -------
        model : RemoteModel

        Raises
        ------
        Conflict
            There is a model of this name.
        """
        model = self.model(name)
        with Input(path) as stream:
            body = b"".join(iter(lambda: stream.read(_PIECE), b""))
        self._connection.send(Request("POST", f"{model._path}/log", body, JSON_LINES, once=True, seconds=_LONG))
        return model


class RemoteState:
    """A model on a server as it was after one log entry, or as it is: it predicts and shows what was learned.

    Attributes are asked for at the server when they are read.

    Parameters
    ----------
    connection : ServerConnection
        The connections to the server.
    name : str
        The name of the model.
    seq : int, optional
        The number of the log entry; None is the last.
    """

    def __init__(self, connection: ServerConnection, name: str, seq: int | None = None):
        check_name(name)
        if seq is not None and (isinstance(seq, bool) or not isinstance(seq, int) or seq < 1):
            raise InvalidParameter("seq", seq, "a whole number ≥ 1")
        self.name, self.seq = name, seq
        self._connection = connection
        self._path = f"/models/{quote(name, safe='')}"
        self._labels: dict[str, Label] = {}  # by their key in JSON objects

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self._connection.url!r}, {self.name!r}{'' if self.seq is None else f', {self.seq}'})"
        )

    # Predicting

    def predict_one(self, x: Row) -> Label | None:
        """Predict the label of a row.

        Parameters
        ----------
        x : dict, mapping, sequence of numbers or str
            The row.

        Returns
        -------
        label : str, int, bool or None
            None before the first example.
        """
        return self.predict_many([x])[0]

    def predict_many(self, X: Rows) -> list[Label | None]:
        """Predict the label of each row.

        Parameters
        ----------
        X : array, sparse matrix, DataFrame or iterable of rows
            The rows.

        Returns
        -------
        labels : list
        """
        return [found["label"] for found, _ in self._predict(X, top=0)]

    def score_one(self, x: Row) -> dict[Label, float]:
        """Compute the score of each class for a row; the highest wins.

        Parameters
        ----------
        x : dict, mapping, sequence of numbers or str
            The row.

        Returns
        -------
        scores : dict
            From label to score.
        """
        return self._scores(self._predict([x])[0][0])

    def explain_one(self, x: Row, label: Hashable = None) -> Explanation:
        """Compute what each feature of a row contributes to the score of a label.

        Parameters
        ----------
        x : dict, mapping, sequence of numbers or str
            The row.
        label : str, int or bool, optional
            The label; by default the one that is predicted. With more than two classes no other is explained.

        Returns
        -------
        explanation : Explanation
            The contributions by name, largest first; with the intercept they add up to the score.
        """
        found, _ = self._predict([x], explain=_MOST_CONTRIBUTIONS)[0]
        if "contributions" not in found:
            raise UnsupportedOperation("the server cannot explain what this model predicts; has it seen an example yet?")
        contributions, intercept = dict(found["contributions"]), found["intercept"]
        scores, predicted = self._scores(found), found["label"]
        if label is not None and label != predicted:
            if label not in scores:
                raise UnknownLabel(label, list(scores))
            if len(scores) > 2:
                raise UnsupportedOperation(
                    f"with more than two classes a server explains no label but the predicted one, {predicted!r}",
                    hint="save the model, load it with rosenblatt.load, and explain it there",
                )
            contributions = {name: 0.0 - number for name, number in contributions.items()}
            intercept, predicted = 0.0 - intercept, label
        return Explanation(predicted, math.fsum([intercept, *contributions.values()]), intercept, contributions)

    # What has been learned

    def describe(self) -> dict[str, Any]:
        """Return what the server says about the model: learner, parameters, classes, seq, seen, mistakes and more.

        Returns
        -------
        description : dict
        """
        return self._get("")

    @property
    def classes_(self) -> tuple[Label, ...]:
        """The labels, in order of arrival."""
        return tuple(self.describe()["classes"])

    @property
    def n_seen_(self) -> int:
        """The number of examples learned from."""
        return self.describe()["seen"]

    @property
    def n_mistakes_(self) -> int:
        """The number of examples that the last weights did not predict before they were learned."""
        return self.describe()["mistakes"]

    @property
    def n_updates_(self) -> int:
        """The number of changes of the weights."""
        return self.describe()["updates"]

    def weights_of(self, label: Hashable) -> dict[str, float]:
        """Return the 10,000 heaviest weights for a label, without those that are zero, largest absolute value first.

        Parameters
        ----------
        label : str, int or bool
            One of the classes.

        Returns
        -------
        weights : dict
            From the name of a feature to its weight.
        """
        return {name: weight for name, weight in self._weights(label, _MOST_WEIGHTS)["weights"] if weight}

    def intercept_of(self, label: Hashable) -> float:
        """Return the score of a label for a row without features.

        Parameters
        ----------
        label : str, int or bool
            One of the classes.

        Returns
        -------
        intercept : float
        """
        return self._weights(label, 1)["intercept"]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Download the model into a file that `rosenblatt.load` reads. An error leaves the file as it was.

        Parameters
        ----------
        path : path
            Where to write.
        """
        self._download("/file", path)

    # Steps

    def _predict(self, X: Rows, **options: object) -> list[tuple[dict[str, Any], int]]:
        """Return what the server predicts for each row, with the number of the log entry that it was predicted after."""
        found: list[tuple[dict[str, Any], int]] = []
        options = {"store": False, **options}
        end = "".join(f",{json.dumps(name)}:{json.dumps(value)}" for name, value in options.items())
        lines = [f'{{"{key}":{text}}}'.encode() for key, text in _rows_json(X)]
        for batch in batches(lines, BATCH_ROWS, BATCH_BYTES):
            body = b'{"examples":[' + b",".join(batch) + f"]{end}}}".encode()
            try:
                answer = _json(self._connection.send(Request("POST", self._path + "/predict" + self._query(), body)))
            except RosenblattError as error:
                if error.row is not None:
                    error.row += len(found)
                raise
            found += [(prediction, answer["seq"]) for prediction in answer["predictions"]]
        return found

    def _scores(self, prediction: Mapping[str, Any]) -> dict[Label, float]:
        """Return the scores of a prediction by label: in JSON, a key is text, whatever the label is."""
        label, scores = prediction["label"], prediction["scores"]
        known = self._labels
        fits = label is None or (label_key(label) in known and type(known[label_key(label)]) is type(label))
        if not fits or not scores.keys() <= known.keys():
            self._labels = known = {label_key(one): one for one in self.classes_}
        return {known[key]: score for key, score in scores.items()}

    def _weights(self, label: Hashable, top: int) -> dict[str, Any]:
        key = label_key(json.loads(label_json(label)))
        answer = self._get("/weights", top=top, label=key)
        if key not in answer["weights"]:
            raise UnknownLabel(label, list(answer["weights"]))
        return {"weights": answer["weights"][key], "intercept": answer["intercepts"][key]}

    def _query(self, **options: object) -> str:
        if self.seq is not None:
            options["at"] = self.seq
        return f"?{urlencode(options)}" if options else ""

    def _get(self, path: str, **options: object) -> dict[str, Any]:
        return _json(self._connection.send(Request("GET", self._path + path + self._query(**options))))

    def _download(self, what: str, path: str | os.PathLike[str]) -> None:
        def receive(response: HTTPResponse) -> bytes:
            with output(path) as file:
                _copy_body(response, file)
            return b""

        self._connection.send(Request("GET", self._path + what + self._query(), seconds=_LONG), receive)


class RemoteModel(RemoteState):
    """A model on a server that learns: it has the interface of `OnlinePerceptron`, and `Client.model` returns it.

    A row may be text, where the model learns from text. Names of features are text: 5 and "5" are one feature.

    Parameters
    ----------
    connection : ServerConnection
        The connections to the server.
    name : str
        The name of the model.
    """

    def __init__(self, connection: ServerConnection, name: str):
        super().__init__(connection, name)

    # Learning

    def learn_one(self, x: Row, y: Hashable, w: float = 1.0) -> Acknowledgement:
        """Learn from one example; when this returns, the server has it on its disk.

        Parameters
        ----------
        x : dict, mapping, sequence of numbers or str
            The row: values by name, or by position, or text.
        y : str, int or bool
            Its label.
        w : float, default=1.0
            The weight of the example; with 0 the example is ignored.

        Returns
        -------
        acknowledgement : Acknowledgement

        Raises
        ------
        InvalidData
            The row, the label or the weight cannot be used.
        """
        key, text = row_json(x)
        return self._learn([_example(key, text, y, w)])

    def learn_many(self, X: Rows, y: Iterable[Hashable], w: ArrayLike | None = None) -> Acknowledgement:
        """Learn from examples in the order given, in requests of at most 1,000.

        All are checked for what cannot be sent before the first is. If a request fails, the error has in `learned` how many
        examples were learned before, and in `row` the example that was refused, if it is one.

        Parameters
        ----------
        X : array, sparse matrix, DataFrame or iterable of rows
            The rows.
        y : iterable
            Their labels.
        w : float or (rows,) array-like, optional
            Their weights. By default all are 1.

        Returns
        -------
        acknowledgement : Acknowledgement

        Raises
        ------
        InvalidData
            An example cannot be used; the attribute `row` tells which.
        """
        return self._learn_labelled(list(_rows_json(X)), "X has", "rows", y, w)

    def predict_with_id(self, x: Row) -> StoredPrediction:
        """Predict the label of a row, and let the server keep the row until its label is known.

        Parameters
        ----------
        x : dict, mapping, sequence of numbers or str
            The row.

        Returns
        -------
        prediction : StoredPrediction
            With the `id` that `learn_label` wants to know.
        """
        return self.predict_with_ids([x])[0]

    def predict_with_ids(self, X: Rows) -> list[StoredPrediction]:
        """Predict the label of each row, and let the server keep the rows until their labels are known.

        Parameters
        ----------
        X : array, sparse matrix, DataFrame or iterable of rows
            The rows.

        Returns
        -------
        predictions : list of StoredPrediction
        """
        return [
            StoredPrediction(found["label"], self._scores(found), found["id"], seq)
            for found, seq in self._predict(X, store=True)
        ]

    def learn_label(self, id: str, y: Hashable, w: float = 1.0) -> Acknowledgement:
        """Learn the label of a row that was predicted before, with the row as it was kept.

        Parameters
        ----------
        id : str
            The `id` of the prediction.
        y : str, int or bool
            The label.
        w : float, default=1.0
            The weight of the example.

        Returns
        -------
        acknowledgement : Acknowledgement

        Raises
        ------
        UnknownEntry
            There is no such prediction, or it is too old.
        Conflict
            The label of this prediction was learned before.
        """
        return self._learn([_example("id", _id_json(id), y, w)])

    def learn_labels(self, ids: Iterable[str], y: Iterable[Hashable], w: ArrayLike | None = None) -> Acknowledgement:
        """Learn the labels of rows that were predicted before, as `learn_many` does.

        Parameters
        ----------
        ids : iterable of str
            The `id` of each prediction.
        y : iterable
            The labels.
        w : float or (rows,) array-like, optional
            The weights of the examples. By default all are 1.

        Returns
        -------
        acknowledgement : Acknowledgement
        """
        return self._learn_labelled([("id", _id_json(id)) for id in ids], "there are", "ids", y, w)

    # States in time

    def at(self, seq: int) -> RemoteState:
        """Return the model as it was after a log entry, to predict with and to look at.

        Parameters
        ----------
        seq : int
            The number of the log entry.

        Returns
        -------
        state : RemoteState
        """
        return RemoteState(self._connection, self.name, seq)

    def set_back(self, to: int) -> int:
        """Set the model back to what it was after a log entry. This is a log entry itself, and can be undone the same way.

        Parameters
        ----------
        to : int
            The number of the log entry.

        Returns
        -------
        seq : int
            The number of the new log entry.

        Raises
        ------
        UnknownEntry
            There is no such entry.
        """
        body = json.dumps({"to": int(to)}).encode()
        return _json(self._connection.send(Request("POST", f"{self._path}/set-back", body, once=True)))["seq"]

    def archive(self, to: int | None = None, before: str | date | None = None) -> dict[str, Any]:
        """Archive the older entries of the log: they leave it for a compressed file in the folder of the server.

        States before the last of them cannot be asked for any more, and requests whose entries were archived must not be
        sent again.

        Parameters
        ----------
        to : int, optional
            The last entry to archive.
        before : str or date, optional
            Archive what was learned before this date, or date and time; UTC where it has no zone.

        Returns
        -------
        archive : dict
            "first" and "last", the entries; "file", its name in the folder "archive"; "bytes" and "digest" of its lines.

        Raises
        ------
        InvalidParameter
            Not exactly one of the two is given, or there is no such entry; the newest entry stays.
        Conflict
            A later entry sets the model back to a state that would be archived.
        """
        if (to is None) == (before is None):
            raise InvalidParameter("to", to, "an entry, or before= a date, but not both")
        wanted = {"to": int(to)} if to is not None else {"before": str(before)}
        body = json.dumps(wanted).encode()
        return _json(self._connection.send(Request("POST", f"{self._path}/archive", body, once=True, seconds=_LONG)))

    def history(self, labels: bool = False) -> dict[str, Any]:
        """Return how many examples the model predicted wrongly before it learned them, window by window, and the last ones.

        Parameters
        ----------
        labels : bool, default=False
            Whether to count by label too.

        Returns
        -------
        history : dict
            "seq"; "windows", each with "from_seq", "seq", "time", "seen", "mistakes", "wrong" and, if asked for, "labels";
            and "last_wrong", the last examples that were predicted wrongly.
        """
        return self._get("/history", **({"labels": "true"} if labels else {}))

    def export_log(self, path: str | os.PathLike[str], first: int = 1) -> None:
        """Download the log, from which `rosenblatt.serve.replay` and `Client.import_log` make the model again.

        Parameters
        ----------
        path : path
            Where to write JSON lines, an entry a line; they are compressed by the suffix (".gz", ".zst").
        first : int, default=1
            The first entry; where entries were archived, the one after the last of them.

        Raises
        ------
        UnknownEntry
            The first entry was archived.
        """
        self._download(f"/log?from={int(first)}", path)

    # Steps

    def _learn_labelled(
        self, rows: list[tuple[str, str]], have: str, what: str, y: Iterable[Hashable], w: ArrayLike | None
    ) -> Acknowledgement:
        """Learn from rows, labels and weights, each checked before the first is sent."""
        each = items(y, "y", "labels")
        labels = y.tolist() if isinstance(y, np.ndarray) else list(each)
        weights = read_weights(w, len(labels))
        if not len(rows) == len(labels) == len(weights):
            raise InvalidData(f"{have} {len(rows)} {what}, but y has {len(labels)} labels and w {len(weights)} weights")
        examples: list[bytes] = []
        try:
            for (key, text), label, weight in zip(rows, labels, weights, strict=True):
                examples.append(_example(key, text, label, weight))
        except InvalidData as error:
            error.row = len(examples)
            raise
        return self._learn(examples, many=True)

    def _learn(self, examples: Sequence[bytes], many: bool = False) -> Acknowledgement:
        """Send examples in batches, each with a key of its own that stays the same over the attempts."""
        seq, done = 0, np.zeros(3, int)
        sent = 0
        for batch in batches(examples, BATCH_ROWS, BATCH_BYTES):
            body = b'{"examples":[' + b",".join(batch) + b"]}"
            try:
                answer = _json(self._connection.send(Request("POST", f"{self._path}/learn", body, key=str(uuid.uuid4()))))
                done += [answer[name] for name in ("learned", "mistakes", "wrong")]
                seq = answer["seq"]
                if answer.get("refused"):
                    first = answer["refused"][0]
                    raise InvalidData(first["detail"], row=first["row"])
            except RosenblattError as error:
                error.learned = int(done[0])
                error.row = None if error.row is None or not many else error.row + sent
                if many:
                    note = f"{error.learned} of {len(examples)} examples were learned"
                    error.hint = note if error.hint is None else f"{error.hint}; {note}"
                raise
            sent += len(batch)
        return Acknowledgement(seq, *done.tolist())


def _rows_json(X: Rows) -> Iterable[tuple[str, str]]:
    """Yield each row as the key that it has in an example and as JSON."""
    for number, row in enumerate(read_rows(X)):
        try:
            yield row_json(row)
        except InvalidData as error:
            error.row = number
            raise


def _example(key: str, text: str, y: Hashable, w: float) -> bytes:
    weight = "" if w == 1.0 else f',"w":{weight_json(w)}'
    return f'{{"{key}":{text},"y":{label_json(y)}{weight}}}'.encode()


def _id_json(id: object) -> str:
    if not isinstance(id, str):
        reason = ": the row of this prediction was not stored" if id is None else ""
        raise InvalidParameter("id", id, "a string", f"id must be a string; got {shown(id)}{reason}")
    return json.dumps(id)


def _json(answer: ServerAnswer) -> dict[str, Any]:
    return json.loads(answer.body)


def _copy_body(response: HTTPResponse, file: IO[bytes]) -> None:
    while piece := response.read(_PIECE):
        file.write(piece)
    if response.length:  # `read(n)` does not say that a body was cut off
        raise IncompleteRead(b"", response.length)


def _parameter_json(value: object) -> object:
    """Return a parameter as values of JSON: `rules.PA1(C=0.1)` is {"PA1": {"C": 0.1}}."""
    kind = type(value)
    return {kind.__name__: value._asdict()} if rules.KINDS.get(kind.__name__) is kind else value  # type: ignore[attr-defined]  # a rule is a NamedTuple


def _plain_parameter(value: object) -> object:
    if isinstance(value, np.generic):
        return value.item()
    raise InvalidParameter("parameters", value, "values that JSON can hold")
