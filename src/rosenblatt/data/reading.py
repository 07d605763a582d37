"""A reading says how files become rows. It gives batches of what stands in the files, learns from them what it must know
(a vocabulary, a mean), and turns each batch into rows, the same way in training and ever after: it is kept with the model.

A format whose rows need nothing learned (LIBSVM text) has batches that are rows already. One that must learn first (a table
with text) has batches of raw columns. Whoever trains need not know which it is:

    reading = reading.learned(reading.batches(paths))
    for batch in reading.batches(paths):
        chunk = reading.chunk(batch)  # chunk.X, chunk.y, chunk.weight
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

from numpy.typing import NDArray


@dataclass(frozen=True)
class Chunk:
    """Some rows: X (rows, features) as CSR or array, their labels and their weights; None where the file has none.

    Labels are float64 where all are numbers, and else an array of objects, of text.
    """

    X: Any
    y: NDArray | None = None
    weight: NDArray | None = None

    @property
    def rows(self) -> int:
        """How many."""
        return self.X.shape[0]

    def take(self, rows: NDArray) -> Chunk:
        """These rows, in this order."""
        y, weight = self.y, self.weight
        return Chunk(self.X[rows], None if y is None else y[rows], None if weight is None else weight[rows])


class Batch(Protocol):
    """Some of what stands in the files, in order; a Chunk is one."""

    @property
    def rows(self) -> int:
        """How many rows it will become."""

    def take(self, rows: NDArray) -> Batch:
        """These rows, in this order."""


class Batches(Protocol):
    """An iterator over the batches of files, of bounded size, which says how far it is."""

    skipped: int  # rows left out for an error, with on_error="skip"
    errors: list[Any]  # what was wrong with the first hundred of them
    taken: int  # bytes of the files read so far, as they lie on the disk
    total: int | None  # and of all there are; None where nobody knows, as of a pipe

    def __iter__(self) -> Iterator[Any]: ...

    def __next__(self) -> Any: ...

    def close(self) -> None:
        """Close what is open; there are no more batches."""

    def digest(self) -> str:
        """XXH64 (`xxhsum -H1`), in hexadecimal, of all bytes read so far as they lie on the disk, file after file."""


class OfRows:
    """What the readings have in common whose batches are rows already."""

    @property
    def learns(self) -> bool:
        """No: rows are made of what stands in a line."""
        return False

    def learned(self, batches: Iterable[Any]) -> Self:
        """Itself: there is nothing to learn."""
        return self

    def chunk(self, batch: Any) -> Any:
        """The rows, as they are."""
        return batch


class Reading(Protocol):
    """How files become rows."""

    format: ClassVar[str]  # the name of the format in a model file

    @property
    def learns(self) -> bool:
        """Whether it must see the data once before it can make rows; then `learned` has not been called yet."""

    def batches(self, paths: Sequence[str], *, labelled: bool = True, on_error: str = "error") -> Batches:
        """The batches of these files, in order ("-" is standard input). Rows without a label are refused if `labelled`."""

    def learned(self, batches: Iterable[Any]) -> Reading:
        """This reading with what it learned from these batches; itself where there is nothing to learn."""

    def labels(self, paths: Sequence[str], *, on_error: str = "error") -> tuple[int, NDArray]:
        """(how many rows there are, their distinct labels), in one pass, as cheap as the format allows."""

    def told(self, distinct: NDArray) -> Reading:
        """This reading for files with these labels, whether numbers or words."""

    def joined(self, batches: Sequence[Any]) -> Any:
        """All batches as one."""

    def chunk(self, batch: Any) -> Chunk:
        """The rows of a batch."""

    @property
    def features(self) -> int | None:
        """The number of columns that rows have; None where it is known only when all are read."""

    def name(self, column: int) -> str:
        """What to call a column of X."""

    def written(self) -> tuple[dict[str, Any], dict[str, NDArray]]:
        """The reading as facts (values of JSON) and arrays, for the model file."""

    @classmethod
    def restored(cls, facts: Mapping[str, Any], arrays: Mapping[str, NDArray]) -> Reading:
        """The reading that these describe; ValueError where they cannot be."""
