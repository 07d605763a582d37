"""What shards did, epoch by epoch, and how much of the theorem's bound they used."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rosenblatt.engine.mixing import MIXINGS, MixedEpoch, ShardReport
from rosenblatt.modelfile.parts import Parts


class MixingReport(NamedTuple):
    """What the shards of a training did.

    Attributes
    ----------
    shards : int
        The number of shards.
    mixing : str
        How they were mixed: "uniform", "mistakes" or "changed".
    epochs : list of MixedEpoch
        For each epoch the share of each shard in the mixture, and its examples, mistakes, updates, seconds and bytes.

    Examples
    --------
    >>> from rosenblatt.engine.mixing import MixedEpoch, ShardReport
    >>> shards = [ShardReport(100, 9, 9, 0.01, 400, False), ShardReport(100, 3, 3, 0.01, 400, False)]
    >>> report = MixingReport(2, "uniform", [MixedEpoch([0.5, 0.5], shards)])
    >>> print(report)
    2 shards, mixing='uniform'
    epoch 1: 12 mistakes (3 to 9 a shard), 6.0 updates weighted by the mixture
    >>> report.weighted_updates <= report.bound(radius=2.0, margin=0.5)
    True
    """

    shards: int
    mixing: str
    epochs: list[MixedEpoch]

    @property
    def weighted_updates(self) -> float:
        """Σ μk over all epochs and shards: the updates, each weighted by the share of its shard in the mixture."""
        return math.fsum(epoch.weighted_updates for epoch in self.epochs)

    @property
    def nbytes(self) -> int:
        """About how many bytes of weights the shards sent in all epochs."""
        return sum(shard.nbytes for epoch in self.epochs for shard in epoch.shards)

    def bound(self, radius: float, margin: float, delta: float = 0.0, rate: float = 1.0) -> float:
        """Return the most weighted updates on separable rows, from weights of zero: (R² + 2δ/η)/γ².

        McDonald, Hall and Mann (2010), theorem 3: it holds for any shards and any mixtures of them. For mixing="changed"
        there is no bound: it is no mixture of shards, and there are separable rows on which it goes round for ever.

        Parameters
        ----------
        radius : float
            R: no row, with the constant feature, is longer than this.
        margin : float
            γ: some unit vector separates the rows with at least this margin.
        delta, rate : float
            The margin and the rate of the perceptron.

        Returns
        -------
        float
            Infinity where there is no bound.
        """
        if self.mixing == "changed":
            return math.inf
        return (radius**2 + 2 * delta / rate) / margin**2

    def __str__(self) -> str:
        lines = [f"{self.shards} shards, mixing={self.mixing!r}"]
        for number, epoch in enumerate(self.epochs, 1):
            mistakes = [shard.mistakes for shard in epoch.shards]
            lines.append(
                f"epoch {number}: {sum(mistakes):,} mistakes ({min(mistakes):,} to {max(mistakes):,} a shard), "
                f"{epoch.weighted_updates:,.1f} updates weighted by the mixture"
            )
        return "\n".join(lines)


_COLUMNS = ("seen", "mistakes", "updates", "nbytes", "converged")


def report_to_parts(report: MixingReport) -> Parts:
    """Return a report for a file. How long shards took is left out, so that the same training gives the same file."""
    parts = Parts({"shards": report.shards, "mixing": report.mixing, "epochs": len(report.epochs)})
    table = [[[getattr(shard, name) for name in _COLUMNS] for shard in epoch.shards] for epoch in report.epochs]
    parts.put("counts", np.array(table, np.int64).reshape(len(report.epochs), report.shards, len(_COLUMNS)))
    parts.put("shares", np.array([epoch.shares for epoch in report.epochs]).reshape(len(report.epochs), report.shards))
    return parts


def report_from_parts(parts: Parts) -> MixingReport:
    """Return the report that was saved; it knows no times."""
    shards, epochs = parts.whole("shards", 1), parts.whole("epochs")
    mixing = parts.text("mixing", MIXINGS)
    counts = parts.array("counts", np.int64, (epochs, shards, len(_COLUMNS)))
    shares = parts.array("shares", np.float64, (epochs, shards))
    return MixingReport(
        shards,
        mixing,
        [
            MixedEpoch(
                own, [ShardReport(seen, wrong, moves, 0.0, size, bool(done)) for seen, wrong, moves, size, done in rows]
            )
            for own, rows in zip(shares.tolist(), counts.tolist(), strict=True)
        ],
    )
