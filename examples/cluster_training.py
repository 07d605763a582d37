"""Train on files with a cluster of worker processes, kill one of them half way, and get the same model.

    python examples/cluster_training.py [FOLDER of LIBSVM files]

Two workers of this machine read the files in pieces and learn them in shards. In the third epoch of the second training one
of the workers is killed (SIGKILL); what it had is read and learned again, and the model is the same, byte for byte. On real
machines only the address differs: `cluster.fit(..., client="tcp://scheduler:8786")`. Without a folder, files are made up.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from sklearn.datasets import dump_svmlight_file

from rosenblatt import Perceptron, cluster
from rosenblatt.cluster import ShardProgress

EPOCHS, KILLED_IN = 5, 3


def make_files(folder: Path) -> None:
    """Write three files of rows that a plane almost separates."""
    rng = np.random.default_rng(0)
    direction = rng.standard_normal(50)
    for number in range(3):
        X = rng.standard_normal((2000, 50)) * (rng.random((2000, 50)) < 0.3)
        dump_svmlight_file(X, X @ direction + rng.standard_normal(2000) > 0, str(folder / f"part-{number}.svm"))


class Killer:
    """Kills a worker when the first shards of an epoch are done."""

    def __init__(self, process: int):
        self.process: int | None = process

    def __call__(self, progress: ShardProgress) -> None:
        if progress.epoch == KILLED_IN and self.process is not None:
            os.kill(self.process, signal.SIGKILL)
            self.process = None


def main(folder: Path, scratch: Path) -> None:
    files = str(folder / "*.svm")
    saved = []
    with cluster.connect("local", workers=2) as client:
        victim = next(iter(client.run(os.getpid).values()))
        for watch in (print_epoch, Killer(victim)):
            model = cluster.fit(Perceptron(max_iter=EPOCHS, tol=None), files, client=client, shards=4, watch=watch)
            model.save(scratch / "one.model")
            saved.append((scratch / "one.model").read_bytes())
    print(model.mixing_)
    print(f"a worker was killed in epoch {KILLED_IN}; the model has the same bytes: {saved[0] == saved[1]}")


def print_epoch(progress: ShardProgress) -> None:
    if progress.done == progress.shards:
        what = f"epoch {progress.epoch}" if progress.epoch else "loaded"
        print(f"{progress.seconds:6.2f} s: {what}, {progress.shards} shards")


if __name__ == "__main__":
    with TemporaryDirectory() as temporary:
        place = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(temporary)
        if len(sys.argv) == 1:
            make_files(place)
        main(place, Path(temporary))
