"""What the server did, as numbers in Prometheus' text format: counters, gauges and histograms, each by its labels."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator
from threading import Lock

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_PREFIX = "rosenblatt_"
SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})

Labels = tuple[str, ...]


class Metric:
    """Numbers under one name, one for each combination of label values. Any thread may change them.

    Parameters
    ----------
    name : str
        The name, without the prefix "rosenblatt_".
    help : str
        What it counts, as a sentence.
    labels : tuple of str
        The names of the labels; methods take their values in this order.
    """

    kind: str

    def __init__(self, name: str, help: str, labels: Labels = ()):
        self.name, self.help, self.labels = _PREFIX + name, help, labels
        self._lock = Lock()
        self._values: dict[Labels, float] = {}

    def remove(self, *labels: str) -> None:
        """Forget the number of these label values: those of a model that was deleted."""
        with self._lock:
            self._values.pop(labels, None)

    def lines(self) -> Iterator[str]:
        """Yield the lines of the text format."""
        yield f"# HELP {self.name} {self.help}"
        yield f"# TYPE {self.name} {self.kind}"
        with self._lock:
            values = sorted(self._values.items())
        for labels, value in values:
            yield f"{self.name}{_label_text(self.labels, labels)} {_number(value)}"


class Counter(Metric):
    """A number that only grows."""

    kind = "counter"

    def add(self, amount: float = 1, *labels: str) -> None:
        """Add to the number of these label values."""
        with self._lock:
            self._values[labels] = self._values.get(labels, 0) + amount


class Gauge(Metric):
    """A number that goes up and down."""

    kind = "gauge"

    def set(self, value: float, *labels: str) -> None:
        """Set the number of these label values."""
        with self._lock:
            self._values[labels] = value


class Histogram(Metric):
    """How many values were at most as large as each of some bounds; their number and their sum.

    Parameters
    ----------
    name, help, labels
        As for `Metric`.
    bounds : tuple of float
        The bounds, in ascending order.
    """

    kind = "histogram"

    def __init__(self, name: str, help: str, labels: Labels = (), bounds: tuple[float, ...] = SECONDS):
        super().__init__(name, help, labels)
        self.bounds = bounds
        self._counts: dict[Labels, list[int]] = {}  # one for each bound and one above the last; not cumulative

    def observe(self, value: float, *labels: str) -> None:
        """Count a value under these label values."""
        with self._lock:
            counts = self._counts.get(labels)
            if counts is None:
                counts = self._counts[labels] = [0] * (len(self.bounds) + 1)
            counts[bisect_left(self.bounds, value)] += 1
            self._values[labels] = self._values.get(labels, 0.0) + value

    def remove(self, *labels: str) -> None:
        """Forget the values under these label values."""
        super().remove(*labels)
        with self._lock:
            self._counts.pop(labels, None)

    def lines(self) -> Iterator[str]:
        """Yield the lines of the text format: cumulative counts, the sum and the number."""
        yield f"# HELP {self.name} {self.help}"
        yield f"# TYPE {self.name} {self.kind}"
        with self._lock:
            entries = sorted((labels, list(counts), self._values[labels]) for labels, counts in self._counts.items())
        for labels, counts, total in entries:
            below = 0
            for bound, count in zip((*self.bounds, math.inf), counts, strict=True):
                below += count
                text = _label_text((*self.labels, "le"), (*labels, _number(bound)))
                yield f"{self.name}_bucket{text} {below}"
            text = _label_text(self.labels, labels)
            yield f"{self.name}_sum{text} {_number(total)}"
            yield f"{self.name}_count{text} {below}"


class Metrics:
    """All numbers of a server; `render()` is what GET /metrics answers.

    >>> metrics = Metrics()
    >>> metrics.examples_learned.add(5, "mail")
    >>> metrics.examples_learned.add(2, "mail")
    >>> 'rosenblatt_examples_learned_total{model="mail"} 7' in metrics.render()
    True
    """

    def __init__(self) -> None:
        model = ("model",)
        self.requests = Counter("requests_total", "Requests by route and status.", ("route", "status"))
        self.request_seconds = Histogram("request_seconds", "Time from a complete head to the answer.", ("route",))
        self.open_streams = Gauge("open_streams", "Streams of events that are open.")
        self.examples_learned = Counter("examples_learned_total", "Examples learned since the start.", model)
        self.mistakes = Counter("mistakes_total", "Mistakes of the learner since the start.", model)
        self.examples_refused = Counter(
            "examples_refused_total", "Examples that could not be learned when their turn came.", model
        )
        self.predictions = Counter("predictions_total", "Predictions since the start.", model)
        self.commits = Counter("commits_total", "Commits of the log.")
        self.commit_seconds = Histogram("commit_seconds", "Time that a commit of the log took.")
        self.commit_requests = Histogram(
            "commit_requests", "Requests that shared a commit.", bounds=(1, 2, 4, 8, 16, 32, 64, 128)
        )
        self.queue_bytes = Gauge("queue_bytes", "Size of the requests that wait to be learned.")
        self.snapshot_seconds = Histogram("snapshot_seconds", "Time that a snapshot took.")
        self.model_bytes = Gauge("model_bytes", "Memory that a model takes.", model)
        self.log_bytes = Gauge("log_bytes", "Size of the log on the disk.")
        self.learning_paused = Gauge("learning_paused", "1 while learning is refused, else 0.")

    def all(self) -> list[Metric]:
        """Return every metric."""
        return [metric for metric in vars(self).values() if isinstance(metric, Metric)]

    def remove_model(self, name: str) -> None:
        """Forget the numbers of a model that was deleted."""
        for metric in self.all():
            if metric.labels == ("model",):
                metric.remove(name)

    def render(self) -> str:
        """Return all numbers in Prometheus' text format."""
        lines = [line for metric in self.all() for line in metric.lines()]
        return "\n".join(lines) + "\n"


def _label_text(names: Labels, values: Labels) -> str:
    pairs = ",".join(f'{name}="{value.translate(_ESCAPES)}"' for name, value in zip(names, values, strict=True))
    return f"{{{pairs}}}" if pairs else ""


def _number(value: float) -> str:
    if value == math.inf:
        return "+Inf"
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))
