"""A training in shards whose workers are killed with SIGKILL at any moment ends with the bytes of one that nothing happened
to; and so does one whose scheduler is killed, when it is resumed from its checkpoint.

    make kill-cluster                          # 50 kills of workers, 10 of the scheduler
    python -m bench.cluster_kill --times 5 --schedulers 2

Rows are read from files of LIBSVM text, streamed in every pass or loaded, and mixed in each of the ways there are. A kill
comes after a delay drawn from the duration of a whole training: while shards are loaded, learn, or are added up,
or at the end. One kill in four takes all workers at once. New workers come a moment later.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bench.dask_cluster import DaskCluster, Trained, Training, TrainingProcess

LIMIT = 240.0  # seconds for a training, kills included
WORKERS = 3
MIXINGS = ("uniform", "mistakes", "changed")


class Wrong(Exception):
    """A promise was broken."""


def write_rows(folder: Path, files: int, rows: int, features: int = 20_000, seed: int = 0) -> list[str]:
    """Write files of LIBSVM text, with a linear teacher and noise, and return their paths."""
    rng = np.random.default_rng(seed)
    teacher = rng.standard_normal(features + 1)
    paths = []
    for number in range(files):
        columns = np.sort((features * rng.random((rows, 20)) ** 2).astype(int) + 1, axis=1)
        values = np.round(rng.random((rows, 20)), 3)
        labels = np.where((teacher[columns] * values).sum(axis=1) + 0.5 * rng.standard_normal(rows) > 0, 1, -1)
        path = folder / f"part-{number}.svm"
        with open(path, "w") as file:
            for label, row, numbers in zip(labels.tolist(), columns.tolist(), values.tolist(), strict=True):
                file.write(f"{label} {' '.join(f'{j}:{x}' for j, x in dict(zip(row, numbers, strict=True)).items())}\n")
        paths.append(str(path))
    return paths


class KillRuns:
    """Trainings that are disturbed, and what each of them must come to."""

    def __init__(self, folder: Path, paths: Sequence[str], seed: int, passes: int = 4):
        self.folder, self.draw = folder, random.Random(seed)
        self.paths, self.passes = tuple(paths), passes
        self.cluster = DaskCluster(folder, WORKERS)
        self.whole: dict[Training, tuple[bytes, float]] = {}
        self.counts: Counter[str] = Counter()

    def training(self) -> Training:
        """Draw what is trained."""
        stream, mixing = self.draw.random() < 0.5, self.draw.choice(MIXINGS)
        return Training(self.paths, self.draw.choice((5, 12)), mixing, self.passes, stream)

    def expected(self, training: Training) -> tuple[bytes, float]:
        """Return the bytes of a training that nothing happens to, and its seconds."""
        if training not in self.whole:
            done = self.run(training)
            if done.error:
                raise Wrong(f"a training that nobody disturbed ended with {done.error}: {done.message}")
            self.whole[training] = self.model.read_bytes(), done.seconds
        return self.whole[training]

    @property
    def model(self) -> Path:
        """Where the model is saved."""
        return self.folder / "model"

    def run(self, training: Training) -> Trained:
        """Train without a kill."""
        self.model.unlink(missing_ok=True)
        return TrainingProcess(self.cluster.address, training, self.model).wait(LIMIT)

    def check(self, training: Training, what: str) -> None:
        """Hold the model that was saved against the one that must come out."""
        if self.model.read_bytes() != self.expected(training)[0]:
            raise Wrong(f"another model after {what}: {training}")
        self.counts["same bytes"] += 1

    def kill_workers(self) -> None:
        """Train, and kill workers on the way."""
        training = self.training()
        _, seconds = self.expected(training)
        victims = WORKERS if self.draw.random() < 0.25 else 1
        delay, pause = self.draw.uniform(0, seconds), self.draw.uniform(0, 1)
        self.model.unlink(missing_ok=True)
        process = TrainingProcess(self.cluster.address, training, self.model)
        time.sleep(delay)
        running = process.process.poll() is None
        for _ in range(victims):
            self.cluster.kill_worker(self.draw.randrange(len(self.cluster.workers)))
        time.sleep(pause)
        for _ in range(victims):
            self.cluster.start_worker()
        done = process.wait(LIMIT, self.cluster.unfinished)
        what = f"{victims} of {WORKERS} workers were killed after {delay:.2f} s of {seconds:.2f}"
        if done.error:
            raise Wrong(f"{done.error} when {what}: {done.message}: {training}\n{self.cluster.said()}")
        self.check(training, what)
        self.counts["kills of all workers" if victims > 1 else "kills of a worker"] += 1
        self.counts["kills that came too late"] += not running
        self.counts["milliseconds lost"] += max(0, round(1000 * (done.seconds - seconds)))
        self.cluster.wait_for_workers(WORKERS)

    def kill_scheduler(self) -> None:
        """Train with a checkpoint, kill the scheduler on the way, and resume on a new one."""
        training = self.training()
        _, seconds = self.expected(training)
        checkpoint = self.folder / "checkpoint"
        for path in (checkpoint, self.model):
            path.unlink(missing_ok=True)
        delay = self.draw.uniform(0, seconds)
        process = TrainingProcess(self.cluster.address, training, self.model, checkpoint)
        time.sleep(delay)
        self.cluster.kill_scheduler()
        done = process.wait(LIMIT)
        self.cluster.stop()
        self.cluster.start()
        self.counts["kills of the scheduler"] += 1
        if not done.error:
            self.counts["kills that came too late"] += 1
        elif done.error != "ClusterUnavailable":
            raise Wrong(f"the scheduler was killed, and the error is {done.error}: {done.message}")
        else:
            resume = checkpoint.exists()
            if resume and str(checkpoint) not in done.message:
                raise Wrong(f"the error does not name the checkpoint: {done.message}")
            self.counts["resumed" if resume else "begun again, as no epoch had been made"] += 1
            again = TrainingProcess(self.cluster.address, training, self.model, checkpoint, resume).wait(LIMIT)
            if again.error:
                raise Wrong(f"{again.error} when a training was resumed: {again.message}")
        self.check(training, f"the scheduler was killed after {delay:.2f} s of {seconds:.2f}")


def kill_many(folder: Path, workers: int, schedulers: int, seed: int, files: int = 4, rows: int = 20_000) -> Counter[str]:
    """Kill workers and schedulers so many times, and return what happened; raise Wrong if a promise was broken."""
    runs = KillRuns(folder, write_rows(folder, files, rows), seed)
    with runs.cluster:
        runs.run(Training(runs.paths, passes=1))  # kernels are compiled or loaded
        for number in range(workers):
            runs.kill_workers()
            print(f"{number + 1} kills of workers: {dict(runs.counts)}", file=sys.stderr, flush=True)
        for number in range(schedulers):
            runs.kill_scheduler()
            print(f"{number + 1} kills of the scheduler: {dict(runs.counts)}", file=sys.stderr, flush=True)
    return runs.counts


def main() -> int:
    """Run it and return 0 if all is well."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    options.add_argument("--times", type=int, default=50, help="kills of workers")
    options.add_argument("--schedulers", type=int, default=10, help="kills of the scheduler")
    options.add_argument("--seed", type=int, default=None)
    given = options.parse_args()
    seed = random.SystemRandom().randrange(2**32) if given.seed is None else given.seed
    folder = Path(tempfile.mkdtemp(prefix="rosenblatt-kill-cluster-"))
    print(f"seed {seed}, folder {folder}", flush=True)
    began = time.monotonic()
    counts = kill_many(folder, given.times, given.schedulers, seed)
    print(f"seed {seed}: {given.times} kills of workers and {given.schedulers} of the scheduler in "
          f"{time.monotonic() - began:.0f} s; every model has the same bytes as one that nothing happened to")  # fmt: skip
    print(", ".join(f"{what}: {count:,}" for what, count in sorted(counts.items())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
