"""Every error that the library raises on purpose, as a type with fields.

An error says what is wrong in `problem`, and its facts are attributes: which parameter had which value and what is allowed,
or which file, line and column, or which row. No code needs to parse the message. Python
shows `missing='fill'` where the command line shows `--missing fill`.

    RosenblattError
      InvalidParameter           (ValueError)   a parameter has a value that is not allowed
        InvalidParameterType     (TypeError)    … or a value of the wrong type
        IncompatibleParameters                  two parameters that cannot be used together
        UnknownParameter         (TypeError)    a parameter that a learner does not have
      InvalidData                (ValueError)   rows, labels, weights or sentences that cannot be used
        InvalidDataType          (TypeError)    … because of their type
        FormatError                             a file that is not what its format says: path, line, column
          UnknownColumn                         a column that was named, or should have been, and is not there
        UnknownLabel                            a label that is not one of the known classes
        ContinuousLabels                        labels that look like numbers to predict, not like classes
        NumericOverflow                         weights or scores became infinite or NaN
      UnsupportedOperation       (ValueError, TypeError)  this learner or model cannot do what was asked
      UnreadableModel            (ValueError)   a file that is not a model, or one of a newer version
        DamagedModel                            … or in which something is not as it must be
      UnreadableCertificate      (ValueError)   a file that is not a certificate, or a damaged one
      OutputError                (OSError)      a file that cannot be written
      MissingDependency          (ImportError)  an optional package that is not installed
      LimitExceeded              (ValueError)   more than the limits of a server allow: rows, bytes, models, memory, disk
      UnknownModel               (LookupError)  a model that a server does not have
      UnknownEntry               (LookupError)  an entry of a model's log, or a prediction, that a server does not have
      Conflict                   (ValueError)   a request that contradicts what a server has already
      DamagedLog                 (ValueError)   a server's log in which something is not as it must be: path and place
      DamagedTokens              (ValueError)   a server's list of tokens that cannot be read
      LearningPaused             (RuntimeError) a server that does not learn now: its disk is full, or it stops
      FolderInUse                (RuntimeError) a folder that another server uses
      ServerUnavailable          (OSError)      a server that does not answer, or is busy at every attempt
      ClusterUnavailable         (OSError)      a cluster whose scheduler or workers do not answer any more
      GpuUnavailable             (OSError)      a GPU that is not there or cannot be used: device
      NotEnoughGpuMemory         (MemoryError)  more memory than is free on a GPU: needed, free, missing
      ServerRefused                             an answer of a server that no other type stands for: status, kind

Two warnings have types of their own:

    UnscaledColumns              (UserWarning)  columns of very different size, which ruin a perceptron
    KernelsNotKept               (UserWarning)  compiled code that cannot be cached on disk
"""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Mapping
from typing import Any

_LONGEST_VALUE = 200  # characters of a value that a message shows


class RosenblattError(Exception):
    """Base class of all errors that the library raises on purpose.

    Parameters
    ----------
    problem : str
        What is wrong, as a sentence without the place and without advice.
    hint : str, optional
        What to do about it, in words that are right in Python and on the command line.
    settings : mapping of str to object, optional
        Parameters that would avoid the error, each alone, with its value: ``{"missing": "fill"}``.
    parameter, value, allowed : optional
        The parameter that was refused, its value, and what it may be.
    path, line, column : optional
        Where it is in a file; lines count from 1.
    row : int, optional
        Which row of the data it is about, from 0.

    Examples
    --------
    >>> from rosenblatt import Perceptron
    >>> try:
    ...     Perceptron(eta0=-1).fit([[1.0], [2.0]], [0, 1])
    ... except RosenblattError as error:
    ...     print(error)
    ...     print(error.parameter, error.value, error.allowed, sep=" | ")
    eta0 must be a number > 0; got -1
    eta0 | -1 | a number > 0
    """

    learned: int | None = None  # examples that a server had learned before it refused one of many
    entry: int | None = None  # of a log, where it is about one

    def __init__(
        self,
        problem: str,
        *,
        hint: str | None = None,
        settings: Mapping[str, object] | None = None,
        parameter: str | None = None,
        value: object = None,
        allowed: str | None = None,
        path: str | os.PathLike[str] | None = None,
        line: int | None = None,
        column: int | str | None = None,
        row: int | None = None,
    ):
        super().__init__(problem)
        self.problem = problem
        self.hint = hint
        self.settings = dict(settings or {})
        self.parameter, self.value, self.allowed = parameter, value, allowed
        self.path = None if path is None else os.fspath(path)
        self.line, self.column, self.row = line, column, row

    @property
    def place(self) -> str:
        """The place in a file, as "mail.csv, line 3, column 'age'"; empty where there is no file."""
        parts = [] if self.path is None else [str(self.path)]
        parts += [] if self.line is None else [f"line {self.line}"]
        parts += [] if self.column is None or not parts else [f"column {self.column!r}"]
        return ", ".join(parts)

    def __str__(self) -> str:
        settings = " or ".join(f"{name}={value!r}" for name, value in self.settings.items())
        advice = [text for text in (self.hint, f"try {settings}" if settings else None) if text]
        place = f"{self.place}: " if self.place else ""
        return "; ".join([place + self.problem, *advice])

    def __reduce__(self) -> Any:
        return _rebuild, (type(self), self.args, self.__dict__)


def _rebuild(kind: type[RosenblattError], args: tuple, facts: dict[str, Any]) -> RosenblattError:
    """An error as it was before it was pickled: joblib and Dask carry errors from one process to another."""
    error = kind.__new__(kind, *args)
    error.args = args
    for name, value in facts.items():
        setattr(error, name, value)
    return error


def shown(value: object) -> str:
    """Return the repr of a value, shortened where it is long.

    Parameters
    ----------
    value : object
        The value.

    Returns
    -------
    str
        At most 201 characters.

    Examples
    --------
    >>> shown("ham"), len(shown("ham" * 1000))
    ("'ham'", 201)
    """
    try:
        text = repr(value)
    except ValueError:  # Python does not print integers of more than 4,300 digits
        return f"a very large {type(value).__name__}"
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"


class InvalidParameter(RosenblattError, ValueError):
    """A parameter has a value that is not allowed.

    >>> raise InvalidParameter("margin", -1, "a number ≥ 0")
    Traceback (most recent call last):
    rosenblatt.errors.InvalidParameter: margin must be a number ≥ 0; got -1

    Parameters
    ----------
    parameter : str
        The name of the parameter.
    value : object
        Its value.
    allowed : str or None
        What is allowed, as the end of "must be".
    problem : str, optional
        What is wrong, where "must be" and "got" do not say it well.
    """

    def __init__(self, parameter: str, value: object, allowed: str | None, problem: str | None = None, **facts: Any):
        problem = problem or f"{parameter} must be {allowed}; got {shown(value)}"
        super().__init__(problem, parameter=parameter, value=value, allowed=allowed, **facts)


class InvalidParameterType(InvalidParameter, TypeError):
    """A parameter has a value of the wrong type.

    Examples
    --------
    >>> from rosenblatt import Perceptron
    >>> Perceptron.load(7)
    Traceback (most recent call last):
        ...
    rosenblatt.errors.InvalidParameterType: path must be the path of a file, as text or path-like; got 7
    """


class IncompatibleParameters(InvalidParameter):
    """Two parameters that cannot be used together.

    Parameters
    ----------
    one, other : (str, object)
        The name and the value of each.
    reason : str
        Why they cannot be used together.

    Examples
    --------
    >>> from rosenblatt import Perceptron
    >>> try:
    ...     Perceptron(keep="pocket", batch="full").fit([[1.0], [2.0]], [0, 1])
    ... except IncompatibleParameters as error:
    ...     print(error.problem)
    batch='full' and keep='pocket' cannot be used together: a pocket counts right answers row by row; use batch=1
    """

    def __init__(self, one: tuple[str, object], other: tuple[str, object], reason: str, **facts: Any):
        RosenblattError.__init__(
            self,
            f"{one[0]}={shown(one[1])} and {other[0]}={shown(other[1])} cannot be used together: {reason}",
            parameter=one[0],
            value=one[1],
            **facts,
        )
        self.other, self.other_value, self.reason = *other, reason


class UnknownParameter(InvalidParameter, TypeError):
    """A parameter that a learner does not have.

    `settings` has what to write instead, where there is something.

    Parameters
    ----------
    learner : str
        The name of the learner's class.
    parameter : str
        The name of the parameter.
    value : object
        The value that it was given.

    Examples
    --------
    >>> from rosenblatt import Perceptron
    >>> Perceptron(shuffle=False)
    Traceback (most recent call last):
        ...
    rosenblatt.errors.UnknownParameter: Perceptron has no parameter 'shuffle'; try order='cyclic'
    """

    def __init__(self, learner: str, parameter: str, value: object, **facts: Any):
        problem = f"{learner} has no parameter {parameter!r}"
        RosenblattError.__init__(self, problem, parameter=parameter, value=value, **facts)
        self.learner = learner


class InvalidData(RosenblattError, ValueError):
    """Rows, labels, weights or sentences that cannot be used; the attribute `row` says which, where it is one of them.

    Examples
    --------
    >>> from rosenblatt import Perceptron
    >>> Perceptron().fit([[1.0], [2.0]], [1, 1])
    Traceback (most recent call last):
        ...
    rosenblatt.errors.InvalidData: y must name at least two classes; it has one class only: 1
    """


class InvalidDataType(InvalidData, TypeError):
    """Data of a type that cannot be used.

    Examples
    --------
    >>> from rosenblatt.online import OnlinePerceptron
    >>> OnlinePerceptron().learn_one(["free", "offer"], "spam")
    Traceback (most recent call last):
        ...
    rosenblatt.errors.InvalidDataType: a row must be a dictionary or a sequence of numbers; got ['free', 'offer']
    """


class FormatError(InvalidData):
    """A file whose content is not what its format says; `path`, `line` and `column` say where.

    Examples
    --------
    >>> from rosenblatt.data import columns
    >>> try:
    ...     list(columns.parse("Dogs NNS B-NP\\nbark VBP\\n"))
    ... except FormatError as error:
    ...     print(error.problem, error.line, sep="; line ")
    2 columns where 3 were named (form, pos, chunk), separated by blanks: 'bark VBP'; line 2
    """


class UnknownColumn(FormatError):
    """A column that was named and is not in the file, or that has to be named.

    Examples
    --------
    >>> error = UnknownColumn("there is no column 'label'; there are age, income and spam", path="mail.csv")
    >>> str(error), error.path
    ("mail.csv: there is no column 'label'; there are age, income and spam", 'mail.csv')
    """


class UnknownLabel(InvalidData):
    """A label that is not one of the known classes.

    Parameters
    ----------
    label : object
        The label.
    classes : collection
        The classes there are.

    Examples
    --------
    >>> from rosenblatt import Perceptron
    >>> model = Perceptron().fit([[1.0], [-1.0]], ["ham", "spam"])
    >>> try:
    ...     model.partial_fit([[1.0]], ["news"])
    ... except UnknownLabel as error:
    ...     print(error.problem)
    the label 'news' is not one of the known classes: 'ham', 'spam'
    """

    def __init__(self, label: object, classes: Collection, **facts: Any):
        known = ", ".join(shown(known) for known in list(classes)[:20]) + (", …" if len(classes) > 20 else "")
        reason = f"is not one of the known classes: {known}" if known else "is not known: the model has no classes yet"
        super().__init__(f"the label {shown(label)} {reason}", **facts)
        self.label, self.classes = label, classes


class ContinuousLabels(InvalidData):
    """Labels of a classifier that look like numbers to predict, not like classes.

    Parameters
    ----------
    labels : collection of float
        The different labels.
    rows : int
        How many rows have them.

    Examples
    --------
    >>> print(ContinuousLabels([0.25, 1.5, 2.75], rows=3).problem)
    the labels look like numbers to predict, not like classes: 3 different ones in 3 rows, such as 0.25, 1.5, 2.75
    """

    def __init__(self, labels: Collection[float], rows: int, **facts: Any):
        some = ", ".join(f"{label:.6g}" for label in list(labels)[:3])
        facts.setdefault("hint", "task='regression' predicts numbers, task='classification' learns each as a class")
        super().__init__(
            f"the labels look like numbers to predict, not like classes: {len(labels):,} different ones in {rows:,} rows, "
            f"such as {some}",
            **facts,
        )
        self.labels, self.rows = labels, rows


class NumericOverflow(InvalidData):
    """Weights or scores became infinite or NaN; `row` is the row at which it happened, where that is known.

    Examples
    --------
    >>> from rosenblatt import Perceptron
    >>> try:
    ...     Perceptron().fit([[1e200], [-1e200]], [0, 1])
    ... except NumericOverflow as error:
    ...     print(error.row, error.problem, error.hint, sep="\\n")
    1
    the weights or scores overflowed at row 1: the values of X, or the weights of examples, are too large for float64
    scale them down
    """


class UnsupportedOperation(RosenblattError, ValueError, TypeError):
    """An operation that this learner or model does not support, whatever the values.

    It is both a ValueError and a TypeError, because code that calls estimators catches either.

    Examples
    --------
    >>> from rosenblatt import Perceptron
    >>> try:
    ...     Perceptron(early_stopping=True).partial_fit([[1.0], [2.0]], [0, 1], classes=[0, 1])
    ... except UnsupportedOperation as error:
    ...     print(error.problem)
    early_stopping=True cannot be used with partial_fit, which learns from every row once and has no epochs to stop
    """


class UnreadableModel(RosenblattError, ValueError):
    """A file that is not a model of rosenblatt, or a damaged one, or one of a newer version.

    Examples
    --------
    >>> from rosenblatt.modelfile import container
    >>> container.read_bytes(b"these are no weights")
    Traceback (most recent call last):
        ...
    rosenblatt.errors.UnreadableModel: this content: not a model of rosenblatt: the file does not begin as one (20 bytes)
    """


class DamagedModel(UnreadableModel):
    """A model file in which something is not as it must be; the message names the fact or the array.

    Parameters
    ----------
    problem : str
        What is not as it must be.

    Examples
    --------
    >>> str(DamagedModel("it ends within the array weights", path="spam.model"))
    'spam.model: the file is damaged: it ends within the array weights'
    """

    def __init__(self, problem: str, **facts: Any):
        super().__init__(f"the file is damaged: {problem}", **facts)


class UnreadableCertificate(RosenblattError, ValueError):
    """A file that is not a certificate, or a damaged one.

    Examples
    --------
    >>> str(UnreadableCertificate("not a certificate of rosenblatt", path="proof.json"))
    'proof.json: not a certificate of rosenblatt'
    """


class OutputError(RosenblattError, OSError):
    """A file that cannot be written, or a port at which a server cannot listen.

    Parameters
    ----------
    problem : str
        What is wrong.
    path : path or None
        The file; None for a port.
    errno : int, optional
        That of the OSError behind it.

    Examples
    --------
    >>> from rosenblatt import Perceptron
    >>> model = Perceptron().fit([[1.0], [-1.0]], [1, 0])
    >>> try:
    ...     model.save("no such folder/spam.model")
    ... except OutputError as error:
    ...     print(error.filename)
    no such folder/spam.model
    """

    def __init__(self, problem: str, path: str | os.PathLike[str] | None, errno: int | None = None, **facts: Any):
        super().__init__(problem, path=path, **facts)
        self.errno, self.filename = errno, None if path is None else os.fspath(path)

    def __reduce__(self) -> Any:
        return _rebuild, (type(self), self.args, {**self.__dict__, "errno": self.errno, "filename": self.filename})


class MissingDependency(RosenblattError, ImportError):
    """An optional package that is not installed.

    Parameters
    ----------
    package : str
        The package, as Python imports it.
    extra : str
        The extra of rosenblatt that installs it: ``pip install 'rosenblatt[extra]'``.
    purpose : str
        What needs it: "pictures".

    Examples
    --------
    >>> str(MissingDependency("matplotlib", "plot", "pictures"))
    "pictures need the package matplotlib, which is not installed; pip install 'rosenblatt[plot]'"
    """

    def __init__(self, package: str, extra: str, purpose: str):
        super().__init__(
            f"{purpose} need the package {package}, which is not installed", hint=f"pip install 'rosenblatt[{extra}]'"
        )
        self.package, self.extra, self.name = package, extra, package

    def __reduce__(self) -> Any:
        return _rebuild, (type(self), self.args, {**self.__dict__, "name": self.name})


class LimitExceeded(RosenblattError, ValueError):
    """More than the limits of a server allow.

    >>> raise LimitExceeded("rows", 12_000, 10_000)
    Traceback (most recent call last):
    rosenblatt.errors.LimitExceeded: rows must be at most 10,000; got 12,000

    Parameters
    ----------
    limit : str
        The name of the limit in `rosenblatt.serve.limits.Limits`.
    value : int
        How much there would be.
    allowed : int
        How much there may be.
    """

    def __init__(self, limit: str, value: int, allowed: int, **facts: Any):
        problem = f"{limit} must be at most {allowed:,}; got {value:,}"
        super().__init__(problem, parameter=limit, value=value, allowed=f"at most {allowed:,}", **facts)
        self.limit, self.most = limit, allowed


class UnknownModel(RosenblattError, LookupError):
    """A model that a server does not have.

    Parameters
    ----------
    name : str
        The name that was asked for.

    Examples
    --------
    >>> str(UnknownModel("spam"))
    "there is no model 'spam'; create it with PUT /models/NAME; GET /models lists those there are"
    """

    def __init__(self, name: str, **facts: Any):
        facts.setdefault("hint", "create it with PUT /models/NAME; GET /models lists those there are")
        super().__init__(f"there is no model {shown(name)}", value=name, **facts)
        self.name = name


class UnknownEntry(RosenblattError, LookupError):
    """An entry of a model's log, or a prediction, that a server does not have, or does not have any more.

    Examples
    --------
    >>> error = UnknownEntry("there is no entry 12 of this model; it has entries 1 to 9", value=12)
    >>> str(error), error.value
    ('there is no entry 12 of this model; it has entries 1 to 9', 12)
    """


class Conflict(RosenblattError, ValueError):
    """A request that contradicts what a server has already: another model of that name, an id that has its label.

    Examples
    --------
    >>> str(Conflict("there is a model 'spam' already", hint="exist_ok=True takes it as it is"))
    "there is a model 'spam' already; exist_ok=True takes it as it is"
    """


class DamagedLog(RosenblattError, ValueError):
    """A server's log in which something is not as it must be.

    Parameters
    ----------
    problem : str
        What is not as it must be.
    path : path
        The file.
    model : str, optional
        The model whose entry it is, where that is known.
    entry : int, optional
        The number of the entry.
    byte : int, optional
        The place in the file.

    Examples
    --------
    >>> error = DamagedLog("its checksum is wrong", path="models/log", model="spam", entry=12, byte=40_960)
    >>> print(error)
    models/log: model 'spam', entry 12, byte 40,960: its checksum is wrong
    >>> error.path, error.model, error.entry, error.byte
    ('models/log', 'spam', 12, 40960)
    """

    def __init__(
        self,
        problem: str,
        *,
        path: str | os.PathLike[str],
        model: str | None = None,
        entry: int | None = None,
        byte: int | None = None,
        **facts: Any,
    ):
        where = [] if model is None else [f"model {model!r}"]
        where += [] if entry is None else [f"entry {entry}"]
        where += [] if byte is None else [f"byte {byte:,}"]
        super().__init__(": ".join([*([", ".join(where)] if where else []), problem]), path=path, **facts)
        self.model, self.entry, self.byte = model, entry, byte


class DamagedTokens(RosenblattError, ValueError):
    """A server's list of tokens that cannot be read; the server lets nobody in until it can.

    Examples
    --------
    >>> str(DamagedTokens("the file is not a list of tokens, or it is damaged", path="models/tokens.json"))
    'models/tokens.json: the file is not a list of tokens, or it is damaged'
    """


class LearningPaused(RosenblattError, RuntimeError):
    """A server that does not learn now, though it may predict: its disk is full, or it is about to stop.

    Parameters
    ----------
    problem : str
        Why it does not.
    status : int, default=507
        The status code of the answer.

    Examples
    --------
    >>> error = LearningPaused("the disk is full")
    >>> str(error), error.status
    ('the disk is full', 507)
    """

    def __init__(self, problem: str, status: int = 507, **facts: Any):
        super().__init__(problem, **facts)
        self.status = status


class FolderInUse(RosenblattError, RuntimeError):
    """A folder that another server uses.

    Parameters
    ----------
    path : path
        The folder.

    Examples
    --------
    >>> str(FolderInUse("models"))
    'models: another server uses this folder; stop that server first, or serve another folder'
    """

    def __init__(self, path: str | os.PathLike[str], **facts: Any):
        facts.setdefault("hint", "stop that server first, or serve another folder")
        super().__init__("another server uses this folder", path=path, **facts)


class ServerUnavailable(RosenblattError, OSError):
    """A server that does not answer, or answers at every attempt that it is busy.

    Parameters
    ----------
    problem : str
        What is wrong.
    url : str
        The address of the server.
    attempts : int
        How often the request was sent.

    Examples
    --------
    >>> error = ServerUnavailable("the server does not answer", "http://127.0.0.1:8000", attempts=5)
    >>> str(error), error.url, error.attempts
    ('the server does not answer', 'http://127.0.0.1:8000', 5)
    """

    def __init__(self, problem: str, url: str, attempts: int, **facts: Any):
        super().__init__(problem, **facts)
        self.url, self.attempts = url, attempts


class ClusterUnavailable(RosenblattError, OSError):
    """The scheduler of a cluster or its workers do not answer any more.

    Parameters
    ----------
    problem : str
        What does not answer.
    address : str
        Where the scheduler is, or was.
    hint : str, optional
        What to do about it.

    Examples
    --------
    >>> error = ClusterUnavailable("the scheduler does not answer", "tcp://10.0.0.1:8786")
    >>> str(error), error.address
    ('the scheduler does not answer', 'tcp://10.0.0.1:8786')
    """

    def __init__(self, problem: str, address: str, hint: str | None = None):
        super().__init__(problem, hint=hint)
        self.address = address


class GpuUnavailable(RosenblattError, OSError):
    """A GPU that is not there, or that cannot be used.

    >>> raise GpuUnavailable("this machine has one GPU, cuda:0", "cuda:1")
    Traceback (most recent call last):
    rosenblatt.errors.GpuUnavailable: the GPU cuda:1 cannot be used: this machine has one GPU, cuda:0; try device='cpu'

    Parameters
    ----------
    problem : str
        Why it cannot be used.
    device : str
        The device that was asked for, such as ``"cuda:0"``.
    hint : str, optional
        What to do about it; device='cpu' is always proposed.
    """

    def __init__(self, problem: str, device: str, hint: str | None = None):
        super().__init__(
            f"the GPU {device} cannot be used: {problem}",
            hint=hint,
            settings={"device": "cpu"},
            parameter="device",
            value=device,
        )
        self.device = device


class NotEnoughGpuMemory(RosenblattError, MemoryError):
    """More memory is needed than is free on a GPU. Nothing was allocated there.

    >>> NotEnoughGpuMemory(12 * 2**30, 4 * 2**30, "the rows of X").problem
    'the rows of X need 12.0 GiB on the GPU, where 4.0 GiB are free: 8.0 GiB are missing'

    Parameters
    ----------
    needed, free : int
        Bytes that are needed, and those that are free.
    what : str
        What they are needed for, in the plural: "the rows of X".
    hint : str, optional
        What to do; by default to free memory, or to use a smaller type of rows.
    """

    def __new__(cls, *args: object, **facts: object) -> NotEnoughGpuMemory:
        """Return an error that has no facts yet, for unpickling; that of MemoryError refuses a class of two bases."""
        return Exception.__new__(cls, *args)

    def __init__(self, needed: int, free: int, what: str, hint: str | None = None):
        self.needed, self.free, self.missing, self.what = needed, free, needed - free, what
        super().__init__(
            f"{what} need {_byte_text(needed)} on the GPU, where {_byte_text(free)} are free: "
            f"{_byte_text(self.missing)} are missing",
            hint=hint
            or "delete arrays on it, end other programs that use it, or give rows of fewer bytes (float32, float16)",
            settings={"device": "cpu"},
        )


def _byte_text(size: int) -> str:
    """A number of bytes for people: 12.0 GiB, 3.5 MiB, 20 bytes."""
    for power, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if size >= 1 << power:
            return f"{size / (1 << power):,.1f} {unit}"
    return f"{size} bytes"


class ServerRefused(RosenblattError):
    """An answer of a server that is an error for which the library has no other type.

    Such are a token that is missing or not good for this, a wrong address, an error inside the server.

    Parameters
    ----------
    problem : str
        What is wrong, in the words of the server.
    status : int
        The status of the answer: 401 is a token that is missing or unknown, 403 one that does not allow this.
    kind : str
        The last part of the type of the problem details; empty where the answer has none.

    Examples
    --------
    >>> error = ServerRefused("this token may predict, not learn", status=403)
    >>> str(error), error.status
    ('this token may predict, not learn', 403)
    """

    def __init__(self, problem: str, status: int, kind: str = "", **facts: Any):
        super().__init__(problem, **facts)
        self.status, self.kind = status, kind


class UnscaledColumns(UserWarning):
    """A column is so much larger than others that they are hardly learned; `ratio` and `column` say how much and which.

    The message rounds the ratio down, to 50 or a power of ten, so that the folds of a cross-validation give the same one.
    ``warnings.simplefilter("ignore", UnscaledColumns)`` silences it.

    Parameters
    ----------
    ratio : float
        How many times as large it is as the columns of the smallest quarter.
    column : int or str
        The number of the column, from 0, or its name.
    learner : str
        The learner that suffers from it.
    scaler : str
        The class of scikit-learn that helps.

    Examples
    --------
    >>> import warnings
    >>> from rosenblatt import Perceptron
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     model = Perceptron().fit([[0.1, 20_000.0], [-0.2, 30_000.0], [0.3, -90_000.0]], [0, 1, 1])
    >>> caught[0].category.__name__, caught[0].message.column, caught[0].message.scaler
    ('UnscaledColumns', 1, 'StandardScaler')
    """

    def __init__(self, ratio: float, column: int | str, learner: str, scaler: str):
        self.ratio, self.column, self.learner, self.scaler = ratio, column, learner, scaler
        super().__init__(ratio, column, learner, scaler)

    @property
    def problem(self) -> str:
        """What is wrong, without advice."""
        least = 50 if self.ratio < 100 else 10 ** int(math.log10(self.ratio))
        return (
            f"column {self.column!r} is more than {least:,} times as large as a quarter of the columns, which are hardly "
            f"learned beside it"
        )

    def __str__(self) -> str:
        return f"{self.problem}; scale the columns first: make_pipeline({self.scaler}(), {self.learner}())"


class KernelsNotKept(UserWarning):
    """Compiled kernels cannot be cached on disk, so that each process compiles them again.

    Parameters
    ----------
    problem : str
        The folder, and what is wrong with it.
    variable : str
        The environment variable that names another folder.

    Examples
    --------
    >>> warning = KernelsNotKept("the folder /opt/rosenblatt cannot be written", "NUMBA_CACHE_DIR")
    >>> warning.problem, warning.variable
    ('the folder /opt/rosenblatt cannot be written', 'NUMBA_CACHE_DIR')
    """

    def __init__(self, problem: str, variable: str):
        self.problem, self.variable = problem, variable
        super().__init__(problem, variable)

    def __str__(self) -> str:
        return (
            f"compiled code cannot be cached on disk, so each process compiles it again: {self.problem}; "
            f"set {self.variable} to a folder that only you can write to"
        )
