"""What a server accepts at most, and how long it waits. Every number that protects it from a client is here."""

from __future__ import annotations

from typing import NamedTuple

WIDEST_CHARACTER = 4  # bytes in memory of each character of a text that has one such
FEATURE_BYTES = 150  # of a feature of a row, besides the characters of its name
_KIB, _MIB, _GIB = 2**10, 2**20, 2**30


class Limits(NamedTuple):
    """The limits of a server; `Limits()` has the defaults and `Limits(rows=1000)` changes one.

    Parameters
    ----------
    body_bytes : int
        Size of a request's body; larger ones are answered with 413.
    import_bytes : int
        Size of the body of a log that is imported, or of a model file; larger ones are answered with 413.
    parsed_bytes : int
        Memory that the values of a body take when it is parsed, about, with the features of its texts and the rows of its
        predictions' ids; more are answered with 413.
    head_bytes : int
        Size of a request line with its headers; larger ones are answered with 431.
    answer_bytes : int
        Size of an answer with predictions, weights or a history; larger ones are refused with 413.
    unsent_bytes : int
        Size of all such answers that clients have not read yet; more are refused with 503.
    rows : int
        Examples in a request; more are answered with 413.
    features : int
        Features of an example; more are answered with 422.
    text_characters : int
        Length of an example's text; longer ones are answered with 422.
    label_characters : int
        Length of a label; longer ones are answered with 422.
    models : int
        Models in the folder; another one is answered with 507.
    classes : int
        Different labels of a model; another one is answered with 422.
    model_bytes : int
        Memory that one model may take: two copies that learn and predict in turns, and one that is saved or downloaded;
        learning that would take more is answered with 507.
    disk_free_bytes : int
        Space that must stay free on the disk; learning is answered with 507 while there is less.
    disk_bytes : int or None
        Space that the folder may take; learning is answered with 507 when it takes more. None is no limit.
    queued_bytes : int
        Memory of all requests that wait for their answer: the bodies, and about what they take when they are parsed. More
        are answered with 503, but a request that is alone is taken.
    connections : int
        Connections at once; more are answered with 503.
    streams : int
        Streams of events at once; more are answered with 503.
    header_seconds : float
        Time in which the head of a request must be complete; the connection is closed after it.
    body_seconds : float
        Time without a byte of a body that was announced; answered with 408 after it.
    whole_body_seconds : float
        Time in which a body must be complete, and as much more as it takes at 64 KiB a second; answered with 408 after it.
    send_seconds : float
        Time in which a client must read some of an answer; the connection is closed after it.
    idle_seconds : float
        Time that a connection may be open between two requests.
    stop_seconds : float
        Time that open requests have to finish when the server is asked to stop.
    prediction_days : float
        Time that a prediction's row is kept for a late label.

    Examples
    --------
    >>> limits = Limits(rows=1000)
    >>> limits.rows, limits.models, limits.body_bytes == 32 * 2**20
    (1000, 100, True)
    """

    body_bytes: int = 32 * _MIB
    import_bytes: int = 1 * _GIB
    parsed_bytes: int = 512 * _MIB
    head_bytes: int = 32 * _KIB
    answer_bytes: int = 64 * _MIB
    unsent_bytes: int = 128 * _MIB
    rows: int = 10_000
    features: int = 100_000
    text_characters: int = 1_000_000
    label_characters: int = 1_000
    models: int = 100
    classes: int = 10_000
    model_bytes: int = 1 * _GIB
    disk_free_bytes: int = 256 * _MIB
    disk_bytes: int | None = None
    queued_bytes: int = 256 * _MIB
    connections: int = 1_000
    streams: int = 32
    header_seconds: float = 10.0
    body_seconds: float = 30.0
    whole_body_seconds: float = 300.0
    send_seconds: float = 30.0
    idle_seconds: float = 75.0
    stop_seconds: float = 30.0
    prediction_days: float = 30.0


# The option of `rosenblatt serve` that changes a limit.
OPTIONS = {
    "body_bytes": "--max-body MIB", "rows": "--max-rows N", "models": "--max-models N",
    "model_bytes": "--max-model-memory MIB", "disk_bytes": "--max-disk MIB",
}  # fmt: skip

# The status code of an answer that refuses more than a limit allows. The limits in seconds have their own answers.
STATUS = {
    "body_bytes": 413, "import_bytes": 413, "parsed_bytes": 413, "head_bytes": 431,
    "answer_bytes": 413, "unsent_bytes": 503, "rows": 413, "features": 422, "text_characters": 422,
    "label_characters": 422, "models": 507, "classes": 422, "model_bytes": 507, "disk_free_bytes": 507, "disk_bytes": 507,
    "queued_bytes": 503, "connections": 503, "streams": 503,
}  # fmt: skip

# What Python takes for a document of JSON, by its marks: an object, a list, a member with its name and value, an item.
_BYTES_BY_MARK = {b"{": 200, b"[": 64, b":": 100, b",": 40}


def parsed_bytes(body: bytes) -> int:
    """Return about how much memory the values of a document of JSON take, by its marks.

    Parameters
    ----------
    body : bytes
        The document.

    Returns
    -------
    bytes : int
    """
    is_plain = body.isascii() and b"\\u" not in body
    text = len(body) if is_plain else WIDEST_CHARACTER * len(body)
    return text + sum(size * body.count(mark) for mark, size in _BYTES_BY_MARK.items())
