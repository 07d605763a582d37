"""A table becomes rows: numbers are scaled, categories get a column each, text is weighed word by word. What was done to
each column is remembered, so that it is done again when predicting.

    from rosenblatt.data.tables import Table

    table = Table(target="label")
    table = table.learned(table.batches(["mail.csv.gz"]))
    for batch in table.batches(["mail.csv.gz"]):
        chunk = table.chunk(batch)  # chunk.X, chunk.y
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import scipy.sparse as sp
from numpy.typing import NDArray

from rosenblatt.data import opening
from rosenblatt.data.reading import Chunk
from rosenblatt.data.tables.batches import Batch, TableBatches
from rosenblatt.data.tables.files import FORMATS, SIZE
from rosenblatt.data.tables.schema import Choice, Reference, Schema
from rosenblatt.data.tables.sources import Asking
from rosenblatt.data.tables.treatments import TREATMENTS, Categories, Numbers, Text, Treatment

Columns = Reference | Sequence[Reference]


class Table:
    """How a table of CSV, TSV, Parquet, Arrow or JSON lines becomes rows.

    Columns are given by name or by number, from 0; what is not given is decided from the first 1000 rows, and `notes` says
    what was.

    target         the label; None takes a column called label, target, class or y
    text           columns of text: a column of X for each word and each pair of words
    categories     columns of which each value gets a column of X
    numeric        columns of numbers
    ignore         columns nothing is learned from
    weight         a column of weights of the rows
    missing        "error" refuses an empty field, null and NaN; "fill" takes the mean, a category of its own, an empty text
    scale          "standard" shifts and scales numbers to mean 0 and deviation 1; "none" takes them as they are
    one_hot_limit  the most categories a column may have
    ngrams         (low, high): runs of so many words; None for none
    characters     (low, high): also runs of so many characters inside words, with a blank at both ends of each word
    min_count      texts in which a run must stand to be learned
    tfidf          weigh runs by how rare they are, and give a text length 1; False counts
    lowercase      text in lower case
    hashing        bits: text and categories go to 2**bits buckets for each column, without a vocabulary, in constant memory
    dtype          "float64" or "float32", of X
    format         "csv", "tsv", "jsonl", "parquet" or "arrow"; None goes by the suffix of the file, or by how it begins
    delimiter      the character between fields; None is the comma of CSV and the tab of TSV
    quote          the character around fields; None is '"' in CSV and none in TSV, "" is none
    header         whether the first line is names; None decides

    >>> import tempfile, os
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv", delete=False) as file:
    ...     _ = file.write("label,age,colour\\nyes,3,red\\nno,5,blue\\n")
    >>> table = Table()
    >>> table = table.learned(table.batches([file.name]))
    >>> chunk = table.chunk(table.joined(list(table.batches([file.name]))))
    >>> os.unlink(file.name)
    >>> [table.name(column) for column in range(table.features)]
    ['age', 'colour=red', 'colour=blue']
    >>> chunk.X.toarray().tolist(), chunk.y.tolist()
    ([[-1.0, 1.0, 0.0], [1.0, 0.0, 1.0]], ['yes', 'no'])
    """

    format: ClassVar[str] = "table"

    def __init__(
        self,
        target: Reference | None = None,
        *,
        text: Columns = (),
        categories: Columns = (),
        numeric: Columns = (),
        ignore: Columns = (),
        weight: Reference | None = None,
        missing: str = "error",
        scale: str = "standard",
        one_hot_limit: int = 10_000,
        ngrams: tuple[int, int] | None = (1, 2),
        characters: tuple[int, int] | None = None,
        min_count: int = 2,
        tfidf: bool = True,
        lowercase: bool = True,
        hashing: int | None = None,
        dtype: str = "float64",
        format: str | None = None,
        delimiter: str | None = None,
        quote: str | None = None,
        header: bool | None = None,
    ):
        choice = Choice(target, weight, _several(text), _several(categories), _several(numeric), _several(ignore))
        self._asking = Asking(choice, format, delimiter, quote, header, missing)
        self.scale, self.one_hot_limit, self.ngrams, self.characters = scale, one_hot_limit, ngrams, characters
        self.min_count, self.tfidf, self.lowercase, self.hashing, self.dtype = min_count, tfidf, lowercase, hashing, dtype
        self._schema: Schema | None = None
        self._treatments: list[Treatment] = []
        self._check()

    @property
    def notes(self) -> list[str]:
        """What was decided about the file and its columns, in sentences; empty before anything was learned."""
        return [] if self._schema is None else list(self._schema.notes)

    @property
    def kinds(self) -> dict[str, str]:
        """What each column of the file is; empty before anything was learned."""
        return {} if self._schema is None else {column.name: column.kind for column in self._schema.columns}

    @property
    def unseen(self) -> int:
        """Words and categories that rows were made of since, and that were not there to be learned."""
        return sum(treatment.unseen for treatment in self._treatments)

    def batches(
        self, paths: Sequence[str], *, labelled: bool = True, on_error: str = "error", size: int = SIZE
    ) -> TableBatches:
        """The batches of these files, in order, each of about `size` bytes ("-" is standard input).

        on_error   "skip" leaves out rows that cannot be read; `skipped` counts them, and `errors` has the first hundred

        Raises TableError, which names the file, the line and the column.
        """
        if on_error not in ("error", "skip"):
            raise ValueError(f"on_error={on_error!r}: it must be 'error' or 'skip'")
        if self._schema is not None and labelled and self._schema.target is None:
            raise ValueError("this table was learned without labels; labelled=False reads it")
        return TableBatches(opening.paths(paths), self._asking, self._schema, labelled, on_error, size)

    def learned(self, batches: Iterable[Batch]) -> Table:
        """This reading with what it learned from these batches: means, categories, vocabularies."""
        learned = copy.copy(self)
        learned._schema, learned._treatments = None, []
        for batch in batches:
            if learned._schema is None:
                learned._schema, learned._treatments = batch.schema, self._untaught(batch.schema)
            for treatment in learned._treatments:
                treatment.see(batch.columns)
        if learned._schema is None:
            raise ValueError("there are no batches to learn from")
        for treatment in learned._treatments:
            treatment.finish()
        if not learned.features:
            raise ValueError(
                f"nothing was found to learn from in {', '.join(learned._schema.features)}: no word stands in "
                f"{self.min_count} texts; min_count=1 takes every word"
            )
        return learned

    @property
    def learns(self) -> bool:
        """Whether it must see the data before it can make rows."""
        return self._schema is None

    def labels(self, paths: Sequence[str], *, on_error: str = "error") -> tuple[int, NDArray]:
        """(how many rows there are, their distinct labels)."""
        target = self._known.target
        rows, found = 0, set()
        batches = self.batches(paths, on_error=on_error)
        for batch in batches:
            rows += batch.rows
            found |= set(batch.columns[target].unique().to_pylist())
        return rows, np.array(sorted(found), np.float64 if self._known.labels == "number" else object)

    def told(self, distinct: NDArray) -> Table:
        """Itself: what labels are was decided when it learned."""
        return self

    def joined(self, batches: Sequence[Batch]) -> Batch:
        """All batches as one."""
        if not batches:
            raise ValueError("there are no batches to join")
        return Batch(pa.concat_tables([batch.columns for batch in batches]), batches[0].schema)

    def chunk(self, batch: Batch) -> Chunk:
        """The rows of a batch: X as CSR, the labels and the weights."""
        schema = self._known
        blocks = [treatment.rows(batch.columns) for treatment in self._treatments]
        X = blocks[0] if len(blocks) == 1 else sp.hstack(blocks, format="csr")
        present = batch.columns.column_names
        y = weight = None
        if schema.target in present:
            labels = batch.columns[schema.target]
            y = labels.to_numpy() if schema.labels == "number" else np.array(labels.to_pylist(), object)
        if schema.weight in present:
            weight = batch.columns[schema.weight].to_numpy()
        return Chunk(sp.csr_matrix(X).astype(self.dtype, copy=False), y, weight)

    @property
    def features(self) -> int | None:
        """The number of columns of X; None before anything was learned."""
        return None if self._schema is None else sum(treatment.width for treatment in self._treatments)

    def name(self, column: int) -> str:
        """What to call a column of X: "age", "colour=red", "text:free prize", 'text:"fre"' or "text:bucket 123"."""
        treatments = self._treatments if self._known else []
        for treatment, end in zip(treatments, accumulate(t.width for t in self._treatments), strict=True):
            if 0 <= column < end:
                return treatment.name(column - end + treatment.width)
        raise IndexError(f"there is no column {column}; there are {self.features}")

    def written(self) -> tuple[dict[str, Any], dict[str, NDArray]]:
        """The reading as facts (values of JSON) and arrays."""
        facts: list[dict[str, Any]] = []
        arrays: dict[str, NDArray] = {}
        schema = self._known
        for number, treatment in enumerate(self._treatments):
            own, some = treatment.written()
            facts.append({"kind": treatment.kind, **own})
            arrays |= {f"{number}.{name}": array for name, array in some.items()}
        asked: dict[str, Any] = {"missing": self._asking.missing, "dtype": self.dtype}
        layout = {name: getattr(self._asking, name) for name in _LAYOUT}
        if any(value is not None for value in layout.values()):
            asked["layout"] = layout  # what files that come later are read with, whatever they are called
        return {"format": self.format, **asked, "schema": schema.written(), "treatments": facts}, arrays

    @classmethod
    def restored(cls, facts: Mapping[str, Any], arrays: Mapping[str, NDArray]) -> Table:
        """The reading that these describe; ValueError where they cannot be."""
        schema, treatments = facts.get("schema"), facts.get("treatments")
        if facts.get("format") != cls.format or not isinstance(schema, Mapping) or not isinstance(treatments, list):
            raise ValueError(
                f"a reading of format {facts.get('format')!r} is not one of a table with a schema and treatments"
            )
        missing, dtype = facts.get("missing"), facts.get("dtype")
        layout = facts.get("layout", {})
        if not isinstance(layout, Mapping) or not set(layout) <= set(_LAYOUT):
            raise ValueError(f"a table has the layout {layout!r}")
        missing, dtype = (value if isinstance(value, str) else "?" for value in (missing, dtype))
        self = cls(missing=missing, dtype=dtype, **layout)
        self._schema = Schema.restored(schema)
        for number, own in enumerate(treatments):
            if not isinstance(own, Mapping) or own.get("kind") not in list(TREATMENTS):
                raise ValueError("a column of a table was treated in a way that is not known")
            prefix = f"{number}."
            some = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
            self._treatments.append(TREATMENTS[own["kind"]].restored(own, some))
        treated = [name for treatment in self._treatments for name in treatment.columns]
        if set(treated) != set(self._schema.features):
            raise ValueError("the columns of a table are not those that were treated")
        return self

    @property
    def _known(self) -> Schema:
        if self._schema is None:
            raise ValueError("this table has learned nothing yet; call learned(batches) first")
        return self._schema

    def _untaught(self, schema: Schema) -> list[Treatment]:
        """What will be done to each column."""
        treatments: list[Treatment] = []
        numbers = schema.named("number", "boolean")
        if numbers:
            scaled = [self.scale == "standard" and name not in schema.named("boolean") for name in numbers]
            treatments.append(Numbers(numbers, scaled))
        treatments += [Categories(name, self.one_hot_limit, self.hashing) for name in schema.named("category")]
        runs = [(self.ngrams, False), (self.characters, True)]
        for name in schema.named("text"):
            for bounds, characters in runs:
                if bounds is not None:
                    low, high = bounds
                    treatments.append(
                        Text(name, low, high, characters, self.hashing, self.min_count, self.tfidf, self.lowercase)
                    )
        return treatments

    def _check(self) -> None:
        """Raises ValueError where a parameter cannot be."""
        for name, allowed in _ALLOWED.items():
            value = getattr(self._asking if name in ("missing", "format") else self, name)
            if value not in allowed:
                raise ValueError(f"{name}={value!r}: it must be one of {', '.join(map(repr, allowed))}")
        for name, most in (("ngrams", 8), ("characters", 16)):
            bounds = getattr(self, name)
            if bounds is not None and not (
                len(bounds) == 2 and all(isinstance(n, int) for n in bounds) and 1 <= bounds[0] <= bounds[1] <= most
            ):
                raise ValueError(f"{name}={bounds!r}: give (low, high) with 1 ≤ low ≤ high ≤ {most}, or None")
        if self.ngrams is None and self.characters is None:
            raise ValueError("ngrams=None and characters=None leave nothing of a text; give one of them")
        if self.hashing is not None and not (isinstance(self.hashing, int) and 1 <= self.hashing <= 30):
            raise ValueError(f"hashing={self.hashing!r}: give a number of bits from 1 to 30, or None")
        for name in ("min_count", "one_hot_limit"):
            if not isinstance(getattr(self, name), int) or getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)!r}: it must be a whole number, 1 or more")
        for name, example in (("delimiter", ";"), ("quote", "'")):
            value = getattr(self._asking, name)
            if value is not None and not (name == "quote" and value == "") and not _single(value):
                raise ValueError(f"{name}={value!r}: it must be one ASCII character, such as {example!r}")


_LAYOUT = ("format", "delimiter", "quote")
_ALLOWED: dict[str, tuple] = {
    "missing": ("error", "fill"),
    "scale": ("standard", "none"),
    "dtype": ("float64", "float32"),
    "format": (None, *FORMATS[:-1]),
    "tfidf": (True, False),
    "lowercase": (True, False),
}


def _single(value: Any) -> bool:
    return isinstance(value, str) and len(value) == 1 and value not in "\r\n" and ord(value) < 128


def _several(given: Columns) -> tuple[Reference, ...]:
    return (given,) if isinstance(given, str | int) else tuple(given)
