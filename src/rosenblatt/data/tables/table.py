"""A table becomes rows: numbers are scaled, categories get a column each, text is weighed word by word. What was done to
each column is saved with the model, so that it is done again at prediction.

    from rosenblatt.data.tables import Table

    table = Table(target="label")
    table = table.fit(table.batches(["mail.csv.gz"]))
    for batch in table.batches(["mail.csv.gz"]):
        chunk = table.chunk(batch)  # chunk.X, chunk.y
"""

from __future__ import annotations

import copy
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from functools import cached_property
from itertools import accumulate
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import scipy.sparse as sp
from numpy.typing import NDArray

from rosenblatt.data import opening
from rosenblatt.data.formats import TABLES
from rosenblatt.data.opening import FileSource
from rosenblatt.data.reading import Chunk
from rosenblatt.data.tables.arrow import to_numpy
from rosenblatt.data.tables.batches import TableBatch, TableBatches, TableOptions, open_source
from rosenblatt.data.tables.encoders import ENCODERS, CategoryEncoder, ColumnEncoder, NumberEncoder, TextEncoder
from rosenblatt.data.tables.schema import ColumnChoice, Reference, Schema, is_character
from rosenblatt.data.tables.sources import SIZE
from rosenblatt.errors import DamagedModel, IncompatibleParameters, InvalidData, InvalidParameter, UnsupportedOperation
from rosenblatt.modelfile.parts import Parts

Columns = Reference | Sequence[Reference]


class Table:
    """How a table of CSV, TSV, Parquet, Arrow or JSON lines becomes rows.

    Columns are given by name or by number, from 0; what is not given is inferred from the first 1000 rows, and `notes` says
    how.

    Parameters
    ----------
    target : str or int, optional
        The label; None takes a column called label, target, class or y.
    text : str, int, or sequence of these
        Columns of text: a column of X for each word and each pair of words.
    categories : str, int, or sequence of these
        Columns of which each value gets a column of X.
    numeric : str, int, or sequence of these
        Columns of numbers.
    ignore : str, int, or sequence of these
        Columns that are not used.
    weight : str or int, optional
        A column of weights of the rows.
    missing : {"error", "fill"}
        "error" refuses an empty field, null and NaN; "fill" takes the mean, a category of its own, an empty text.
    scale : {"standard", "none"}
        "standard" shifts and scales numbers to mean 0 and deviation 1; "none" takes them as they are.
    one_hot_limit : int
        The most categories a column may have.
    ngrams : (int, int), optional
        Runs of so many words, from low to high; None for none.
    characters : (int, int), optional
        Also runs of so many characters inside words, with a blank at both ends of each word.
    min_count : int
        The number of texts in which a run must occur to be learned.
    tfidf : bool
        Weigh runs by how rare they are, and give a text length 1; False counts.
    lowercase : bool
        Whether text is read in lower case.
    hashing : int, optional
        Bits: text and categories go to 2**bits buckets for each column, without a vocabulary, in constant memory.
    dtype : {"float64", "float32"}
        The type of X.
    format : {"csv", "tsv", "jsonl", "parquet", "arrow"}, optional
        None detects it by the suffix of the file, or by how it begins.
    delimiter : str, optional
        The character between fields; None detects it in CSV, and is the tab in TSV.
    quote : str, optional
        The character around fields; None is '"' in CSV and none in TSV, "" is none.
    header : bool, optional
        Whether the first line is names; None decides.

    Attributes
    ----------
    notes : list of str
        What was decided about the file and its columns.
    kinds : dict of str
        What each column of the file is.
    features : int or None
        The number of columns of X.

    Examples
    --------
    >>> import tempfile, os
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv", delete=False) as file:
    ...     _ = file.write("label,age,colour\\nyes,3,red\\nno,5,blue\\n")
    >>> table = Table()
    >>> table = table.fit(table.batches([file.name]))
    >>> chunk = table.chunk(table.concatenate(list(table.batches([file.name]))))
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
        choice = ColumnChoice(target, weight, _several(text), _several(categories), _several(numeric), _several(ignore))
        self._options = TableOptions(choice, format, delimiter, quote, header, missing)
        self.scale, self.one_hot_limit, self.ngrams, self.characters = scale, one_hot_limit, ngrams, characters
        self.min_count, self.tfidf, self.lowercase, self.hashing, self.dtype = min_count, tfidf, lowercase, hashing, dtype
        self._schema: Schema | None = None
        self._encoders: list[ColumnEncoder] = []
        self._check()

    @property
    def schema(self) -> Schema | None:
        """What each column of the file is, and how the file is laid out; None before `fit`."""
        return self._schema

    @property
    def notes(self) -> list[str]:
        """What was decided about the file and its columns, in sentences; empty before `fit`."""
        return [] if self._schema is None else list(self._schema.notes)

    @property
    def kinds(self) -> dict[str, str]:
        """What each column of the file is; empty before `fit`."""
        return {} if self._schema is None else {column.name: column.kind for column in self._schema.columns}

    @property
    def unseen(self) -> int:
        """The number of words and categories met in `chunk` that did not occur in the data of `fit`."""
        return sum(encoder.unseen for encoder in self._encoders)

    @property
    def needs_fit(self) -> bool:
        """Whether `fit` must see the data before rows can be made."""
        return self._schema is None

    @property
    def features(self) -> int | None:
        """The number of columns of X; None before `fit`."""
        return None if self._schema is None else sum(encoder.width for encoder in self._encoders)

    def batches(
        self,
        paths: Sequence[FileSource],
        *,
        labelled: bool = True,
        on_error: str = "error",
        texts: bool = False,
        size: int = SIZE,
    ) -> TableBatches:
        """Return an iterator over the batches of these files, in order.

        Parameters
        ----------
        paths : sequence of str or FilePiece
            The files, or pieces of them; "-" is standard input.
        labelled : bool
            Whether rows must have a label.
        on_error : {"error", "skip"}
            "skip" leaves out rows that cannot be read; `skipped` counts them, and `errors` has the first hundred.
        texts : bool
            Whether to keep the rows as they stand in the files, which must be text.
        size : int
            Bytes of a batch, about.

        Returns
        -------
        TableBatches
            The iterator, which raises TableError with file, line and column.
        """
        if self._schema is not None and labelled and self._schema.target is None:
            raise UnsupportedOperation("this table was fitted without labels", settings={"labelled": False})
        return TableBatches(opening.files_or_pieces(paths), self._options, self._schema, labelled, on_error, size, texts)

    def batch_of_objects(self, rows: Sequence[Mapping[str, object]]) -> TableBatch:
        """Return rows to be predicted, given as objects of JSON, as a batch: what a file of JSON lines with them would be.

        Parameters
        ----------
        rows : sequence of mapping
            Values by the name of their column; one that is not there is missing.

        Returns
        -------
        TableBatch

        Raises
        ------
        TableError
            If a value cannot be used, with row and column.
        """
        return TableBatches((), self._options, self._known, False, "error", SIZE).of_objects(rows)

    def fit(self, batches: Iterable[TableBatch]) -> Table:
        """Return a copy of this table that has learned means, categories and vocabularies from batches.

        Parameters
        ----------
        batches : iterable of TableBatch
            What `batches` returns.

        Returns
        -------
        Table
            The copy; this table is as it was.
        """
        fitted = copy.copy(self)
        fitted._schema, fitted._encoders = None, []
        for batch in batches:
            if fitted._schema is None:
                fitted._schema, fitted._encoders = batch.schema, self._new_encoders(batch.schema)
            for encoder in fitted._encoders:
                encoder.see(batch.columns)
        if fitted._schema is None:
            raise InvalidData("there are no batches to learn from")
        for encoder in fitted._encoders:
            encoder.finish()
        if not fitted.features:
            where = ", ".join(fitted._schema.features)
            problem = f"nothing was found to learn from in {where}: no word occurs in {self.min_count} texts"
            raise InvalidData(problem, settings={"min_count": 1})
        return fitted

    def labels(self, paths: Sequence[FileSource], *, on_error: str = "error") -> tuple[int, NDArray]:
        """Return the number of rows of these files, and their distinct labels.

        Parameters
        ----------
        paths : sequence of str or FilePiece
            The files, or pieces of them; "-" is standard input.
        on_error : {"error", "skip"}
            Whether a row that cannot be read is an error or left out.

        Returns
        -------
        rows : int
            The number of rows.
        labels : array
            The distinct labels.
        """
        target = self._known.target
        rows, found = 0, set()
        for batch in self.batches(paths, on_error=on_error):
            rows += batch.rows
            found |= set(batch.columns[target].unique().to_pylist())
        return rows, np.array(sorted(found), np.float64 if self._known.labels == "number" else object)

    def record_ends(self, path: str, size: int) -> list[int]:
        """Return places where records end, at which a file can be cut.

        Parameters
        ----------
        path : str
            The file, which is not compressed.
        size : int
            How many bytes they are apart, about.

        Returns
        -------
        list of int
            The places, ascending; the last is the end of the file.
        """
        with (
            opening.Input(path) as stream,
            closing(open_source(path, stream, self._options, self._schema, True, SIZE)) as source,
        ):
            return source.record_ends(size)

    def with_labels(self, labels: NDArray) -> Table:
        """Return itself: what labels are was decided by `fit`.

        Parameters
        ----------
        labels : array
            The distinct labels.

        Returns
        -------
        self : Table
        """
        return self

    def concatenate(self, batches: Sequence[TableBatch]) -> TableBatch:
        """Return all batches as one.

        Parameters
        ----------
        batches : sequence
            The batches.

        Returns
        -------
        TableBatch
            All rows, as one batch.
        """
        if not batches:
            raise InvalidData("there are no batches to concatenate")
        return TableBatch(pa.concat_tables([batch.columns for batch in batches]), batches[0].schema)

    def chunk(self, batch: TableBatch) -> Chunk:
        """Return the rows of a batch: X as CSR, the labels and the weights.

        Parameters
        ----------
        batch : TableBatch
            One of `batches`.

        Returns
        -------
        Chunk
        """
        schema = self._known
        blocks = [encoder.rows(batch.columns) for encoder in self._encoders]
        X = blocks[0] if len(blocks) == 1 else sp.hstack(blocks, format="csr")
        present = batch.columns.column_names
        y = weight = None
        if schema.target in present:
            labels = batch.columns[schema.target]
            y = to_numpy(labels) if schema.labels == "number" else np.array(labels.to_pylist(), object)
        if schema.weight in present:
            weight = to_numpy(batch.columns[schema.weight])
        return Chunk(sp.csr_matrix(X).astype(self.dtype, copy=False), y, weight)

    def name(self, column: int) -> str:
        """Return the name of a column of X: "age", "colour=red", "text:free prize", 'text:"fre"' or "text:bucket 123".

        Parameters
        ----------
        column : int
            The number of the column.

        Returns
        -------
        str
        """
        if self._known is None or not 0 <= column < (self._starts[-1] if self._encoders else 0):
            raise IndexError(f"there is no column {column}; there are {self.features}")
        place = bisect_right(self._starts, column) - 1
        return self._encoders[place].name(column - self._starts[place])

    def to_parts(self) -> Parts:
        """Return the reading as facts and arrays for a model file.

        Returns
        -------
        parts : Parts
            Facts and arrays.
        """
        parts = Parts({"format": self.format, "missing": self._options.missing, "dtype": self.dtype})
        layout = {name: getattr(self._options, name) for name in _LAYOUT}
        if any(value is not None for value in layout.values()):
            parts.facts["layout"] = layout  # what files that come later are read with, whatever they are called
        parts.put_parts("schema", self._known.to_parts())
        parts.facts["treatments"] = []
        for number, encoder in enumerate(self._encoders):
            own = encoder.to_parts()
            parts.facts["treatments"].append({"kind": encoder.kind, **own.facts})
            parts.arrays |= {f"{number}.{name}": array for name, array in own.arrays.items()}
        return parts

    @classmethod
    def from_parts(cls, parts: Parts) -> Table:
        """Return the reading that `to_parts` described.

        Parameters
        ----------
        parts : Parts
            Facts and arrays, as `to_parts` returns them.

        Returns
        -------
        reading : Table

        Raises
        ------
        DamagedModel
            If the facts or arrays are invalid.
        """
        parts.text("format", [cls.format])
        layout, encoders = parts.facts.get("layout", {}), parts.facts["treatments"]
        if not isinstance(layout, Mapping) or not set(layout) <= set(_LAYOUT) or not isinstance(encoders, list):
            raise DamagedModel(f"a table has the layout {layout!r:.80} and is encoded as {encoders!r:.80}")
        self = cls(missing=parts.text("missing"), dtype=parts.text("dtype"), **layout)
        self._schema = Schema.from_parts(parts.parts("schema"))
        for number, facts in enumerate(encoders):
            prefix = f"{number}."
            names = [name for name in parts.arrays if name.startswith(prefix)]
            encoder = Parts(facts, {name.removeprefix(prefix): parts.arrays.pop(name) for name in names})
            self._encoders.append(ENCODERS[encoder.text("kind", ENCODERS)].from_parts(encoder))
        encoded = [name for encoder in self._encoders for name in encoder.columns]
        if set(encoded) != set(self._schema.features):
            raise DamagedModel("the columns of a table are not those that are encoded")
        return self

    @cached_property
    def _starts(self) -> list[int]:
        """At which column of X each encoder begins, and the last one ends; to be asked for after `fit` only."""
        return list(accumulate((encoder.width for encoder in self._encoders), initial=0))

    @property
    def _known(self) -> Schema:
        if self._schema is None:
            raise UnsupportedOperation("this table has learned nothing yet", hint="call fit(batches) first")
        return self._schema

    def _new_encoders(self, schema: Schema) -> list[ColumnEncoder]:
        """Return an encoder for each column that has learned nothing yet."""
        encoders: list[ColumnEncoder] = []
        if numbers := schema.of_kind("number", "boolean"):
            booleans = frozenset(schema.of_kind("boolean"))
            encoders.append(NumberEncoder(numbers, [self.scale == "standard" and name not in booleans for name in numbers]))
        encoders += [CategoryEncoder(name, self.one_hot_limit, self.hashing) for name in schema.of_kind("category")]
        how = (self.hashing, self.min_count, self.tfidf, self.lowercase)
        for name in schema.of_kind("text"):
            for bounds, characters in ((self.ngrams, False), (self.characters, True)):
                if bounds is not None:
                    encoders.append(TextEncoder(name, bounds[0], bounds[1], characters, *how))
        return encoders

    def _check(self) -> None:
        """Raise InvalidParameter where a parameter has a value that is not allowed."""
        values: dict[str, Any] = {**self._options._asdict(), **vars(self)}
        for name, allowed in _ALLOWED.items():
            if values[name] not in allowed:
                raise InvalidParameter(name, values[name], f"one of {', '.join(map(repr, allowed))}")
        for name, most in (("ngrams", 8), ("characters", 16)):
            bounds = values[name]
            if bounds is not None and not (
                len(bounds) == 2 and all(isinstance(n, int) for n in bounds) and 1 <= bounds[0] <= bounds[1] <= most
            ):
                raise InvalidParameter(name, bounds, f"(low, high) with 1 ≤ low ≤ high ≤ {most}, or None")
        if self.ngrams is None and self.characters is None:
            raise IncompatibleParameters(("ngrams", None), ("characters", None), "a text column would have no features")
        if self.hashing is not None and not (isinstance(self.hashing, int) and 1 <= self.hashing <= 30):
            raise InvalidParameter("hashing", self.hashing, "a number of bits from 1 to 30, or None")
        for name in ("min_count", "one_hot_limit"):
            if not isinstance(values[name], int) or values[name] < 1:
                raise InvalidParameter(name, values[name], "a whole number, 1 or more")
        for name, example in (("delimiter", ";"), ("quote", "'")):
            if values[name] not in ((None, "") if name == "quote" else (None,)) and not is_character(values[name]):
                raise InvalidParameter(name, values[name], f"one ASCII character, such as {example!r}")


_LAYOUT = ("format", "delimiter", "quote")
_ALLOWED: dict[str, tuple] = {
    "missing": ("error", "fill"),
    "scale": ("standard", "none"),
    "dtype": ("float64", "float32"),
    "format": (None, *TABLES),
    "tfidf": (True, False),
    "lowercase": (True, False),
}


def _several(columns: Columns) -> tuple[Reference, ...]:
    return (columns,) if isinstance(columns, str | int) else tuple(columns)
