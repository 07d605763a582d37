"""Files of labelled rows, all of them in memory: what a proof is about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from rosenblatt.cli.asked import Columns
from rosenblatt.cli.errors import Code, Failure, ending


class Examples(NamedTuple):
    """All rows of some files, with their labels."""

    X: Any  # (rows, features) array or CSR
    y: Any  # (rows,): float64, or text
    digest: str  # XXH64 of the files
    names: Any  # of columns, by number

    @property
    def shape(self) -> tuple[int, int]:
        return self.X.shape

    def against(self, positive: str | None) -> Examples:
        """The same with two labels: one class, which becomes the second, and all the others."""
        import numpy as np

        from rosenblatt.workflow.labels import spelled

        if positive is None:
            if len(labels := np.unique(self.y).tolist()) > 2:
                some = ", ".join(map(spelled, labels[:10]))
                raise Failure(
                    f"there are {len(labels)} classes: {some}", Code.INPUT, "--positive LABEL, one class against the others"
                )
            return self
        here = np.array([spelled(label) == positive for label in self.y.tolist()])
        if not here.any():
            labels = ", ".join(map(spelled, np.unique(self.y).tolist()[:10]))
            raise Failure(f"--positive {positive}: no row has this label", Code.USAGE, f"one of {labels}")
        return self._replace(y=here)

    def classes(self, positive: str | None) -> list[str]:
        """The names of the two classes, the positive one last."""
        import numpy as np

        from rosenblatt.workflow.labels import spelled

        return [f"not {positive}", positive] if positive is not None else list(map(spelled, np.unique(self.y).tolist()))


def read(paths: Sequence[str], columns: Columns) -> Examples:
    """The rows of these files. Numbers of a table stay as they are unless `--scale` is given: a proof is about the data."""
    import numpy as np

    from rosenblatt.data.opening import paths as found
    from rosenblatt.workflow.choosing import format_of

    files = found(paths)
    with ending(Code.USAGE, ValueError):
        format = columns.format or format_of(files[0])
    if format not in ("svmlight", "vw"):
        columns = columns._replace(scale=columns.scale or "none")
    reading = columns.reading(files)
    batches = reading.batches(files)
    held = list(batches)
    if not held:
        raise Failure(f"{', '.join(files)}: there is no row in it", Code.INPUT)
    reading = reading.learned(held)
    chunk = reading.chunk(reading.joined(held))
    y = chunk.y if chunk.y.dtype.kind == "f" else np.array(list(map(str, chunk.y.tolist())))
    return Examples(chunk.X, y, batches.digest(), reading.name)
