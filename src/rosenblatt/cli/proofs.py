"""What certify, feasible and trace share: labelled rows in memory, and how proofs are written, checked and shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from rosenblatt.cli import options as opts
from rosenblatt.cli.console import Console
from rosenblatt.cli.errors import Code, Failure
from rosenblatt.cli.files import check_writable
from rosenblatt.errors import InvalidData, InvalidParameter

MOST = 12  # coordinates or rows that are shown


class Examples(NamedTuple):
    """All rows of some files, with their labels."""

    X: Any  # (rows, features) array or CSR
    y: Any  # (rows,): float64, or text
    digest: str  # XXH64 of the files
    column_name: Callable[[int], str]
    first: int = 0  # the first column that is a feature: 1 for LIBSVM text without the index 0

    @property
    def shape(self) -> tuple[int, int]:
        return self.X.shape

    @property
    def features(self) -> int:
        return self.X.shape[1] - self.first

    def without_index_0(self) -> Examples:
        """The same with features only, where LIBSVM text has no index 0."""
        first, name = self.first, self.column_name
        if not first:
            return self
        return self._replace(X=self.X[:, first:], column_name=lambda column: name(column + first), first=0)

    def one_against_rest(self, positive: str | None) -> Examples:
        """The same with two labels: one class, which becomes the second, and all the others."""
        import numpy as np

        from rosenblatt.workflow.labels import label_text

        labels = list(map(label_text, np.unique(self.y).tolist()))
        names = ", ".join(labels[:10])
        if positive is None:
            if len(labels) > 2:
                raise InvalidData(
                    f"two classes are needed; there are {len(labels)}: {names}",
                    hint="--positive LABEL (one against the rest)",
                )
            return self
        if positive not in labels:
            raise InvalidParameter("positive", positive, f"the label of some row: {names}")
        return self._replace(y=np.array([label_text(label) == positive for label in self.y.tolist()]))

    def classes(self, positive: str | None) -> list[str]:
        """The names of the two classes, the positive one last."""
        import numpy as np

        from rosenblatt.workflow.labels import label_text

        if positive is not None:
            return [f"not {positive}", positive]
        return list(map(label_text, np.unique(self.y).tolist()))


def read_examples(paths: Sequence[str], columns: opts.DataOptions) -> Examples:
    """Read the rows of files. Numbers of a table stay as they are unless `--scale` is given: a proof is about the data."""
    import numpy as np

    from rosenblatt.data.formats import TABLES, detect_format
    from rosenblatt.workflow.model import file_list

    files = file_list(paths)
    if (columns.format or detect_format(files[0])) in TABLES:
        columns = columns._replace(scale=columns.scale or "none")
    reading = columns.make_reading(files)
    batches = reading.batches(files)
    held = list(batches)
    if not held:
        raise InvalidData("there are no rows", path=", ".join(files))
    reading = reading.fit(held)
    chunk = reading.chunk(reading.concatenate(held))
    y = chunk.y if chunk.y.dtype.kind == "f" else np.array(list(map(str, chunk.y.tolist())))
    first = int(reading.format == "svmlight" and reading.features is None and chunk.smallest != 0)
    return Examples(chunk.X, y, batches.digest(), reading.name, first)


def check_output(output: str | None, check: str | None, inputs: Sequence[str]) -> None:
    """Refuse an output that cannot be written, before any work."""
    if check is not None and output is not None:
        raise Failure("--check and --output cannot be used together: one reads a proof, the other writes one", Code.USAGE)
    check_writable(output, *inputs)


def save_proofs(
    path: str | None, question: str, proofs: Mapping[str, Any], facts: Mapping[str, object], console: Console
) -> None:
    """Save proofs, if there is a path to save them to."""
    from rosenblatt.exact.documents import write

    if path is not None:
        write(path, question, proofs, facts)
        console.note(f"the proof is saved in {path}; --check {path} verifies it")


def show_check(path: str, claims: Mapping[str, str | None], console: Console, data: str) -> int:
    """Show whether the proof in a file holds for the data; the values are refutations, None if there is none."""
    wrong = next((reason for reason in claims.values() if reason is not None), None)
    text = f"{path} holds for {data}: {'; '.join(claims)}" if wrong is None else f"{path} does not hold for {data}: {wrong}"
    console.result({"holds": wrong is None, "claims": list(claims), "refutation": wrong}, text)
    return Code.DONE if wrong is None else Code.NO


def vector_text(values: Sequence[Fraction]) -> str:
    """Return the first coordinates as text."""
    return f"({', '.join(map(number_text, values[:MOST]))}{', …' if len(values) > MOST else ''})"


def number_text(value: Fraction) -> str:
    """Return a fraction as it is if it is short, else six digits of it."""
    from rosenblatt.exact.dyadic import about

    return str(value) if max(abs(value.numerator), value.denominator) < 10**9 else about(value)


def first_lines(lines: Sequence[str]) -> list[str]:
    """Return the first lines, and how many more there are."""
    return [*lines[:MOST], *[f"  … and {len(lines) - MOST:,} more"] * (len(lines) > MOST)]
