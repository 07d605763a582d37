"""`--cluster`: training on the workers of a Dask cluster, with progress by shard."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from rosenblatt.cli import options as opts
from rosenblatt.cli.console import Console, Progress, count_text
from rosenblatt.cli.errors import Code, Failure

if TYPE_CHECKING:
    from distributed import Client

    from rosenblatt.cluster import ShardProgress


def checkpoint_of(model: str) -> str:
    """Return the file in which a training is kept until its model is complete."""
    return f"{model}.checkpoint"


def refuse_cluster_options(context: typer.Context) -> None:
    """Refuse the options of a cluster where there is none."""
    opts.refuse_options(context, ("shards", "mixing"), "it needs --cluster local or --cluster ADDRESS")


def check_files(files: Sequence[str]) -> None:
    """Refuse standard input, which no worker can read."""
    if "-" in files:
        raise Failure("--cluster reads files, and standard input can be read only once, by one process", Code.USAGE,
                      "write it to a file that all workers can read")  # fmt: skip


@contextmanager
def connected(address: str, console: Console) -> Iterator[Client]:
    """Connect to the cluster and say where it can be watched."""
    from rosenblatt.cluster import connect
    from rosenblatt.cluster.connection import dashboard

    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # what goes wrong is said once, by the error
    with connect(address) as client:
        workers = len(client.scheduler_info(n_workers=-1)["workers"])
        where = f", dashboard: {page}" if (page := dashboard(client)) else ""
        console.note(f"{count_text(workers, 'worker')}{where}")
        yield client


@contextmanager
def shown(
    console: Console, unit: str, done: Callable[[], None] = lambda: None
) -> Iterator[Callable[[ShardProgress], None]]:
    """Show shards as they finish, and each epoch when it is over; `done` is called when there is something to show."""
    with console.progress(unit="shards") as line:
        yield _ShardWatch(console, line, unit, done)


class _ShardWatch:
    """Shows the shards of an epoch in one line, and the mistakes of each epoch in a note."""

    def __init__(self, console: Console, line: Progress, unit: str, done: Callable[[], None]):
        self.console, self.line, self.unit, self.done = console, line, unit, done
        self.epoch = self.seen = self.mistakes = 0

    def __call__(self, progress: ShardProgress) -> None:
        self.done()
        if progress.epoch != self.epoch:
            self.line.began = self.line.clock()
        if progress.epoch > self.epoch and progress.seen > self.seen:
            seen, mistakes = progress.seen - self.seen, progress.mistakes - self.mistakes
            done = f"epoch {progress.epoch - 1}: {count_text(mistakes, 'mistake')} in {count_text(seen, self.unit)}"
            self.console.note(f"{done}, {progress.seconds:.1f} s")
        self.epoch, self.seen, self.mistakes = progress.epoch, progress.seen, progress.mistakes
        self.line.total = progress.shards
        what = {"epoch": progress.epoch} if progress.epoch else {"loaded": ""}
        self.line.update(progress.done, **what)


def describe_shards(learner: Any) -> tuple[dict[str, Any], str]:
    """Return in how many shards a learner has learned, and how they were mixed, as facts and as text."""
    report = getattr(learner, "mixing_", None)
    if report is None:
        return {"shards": 1}, "1 shard"
    return {"shards": report.shards, "mixing": report.mixing}, f"{report.shards} shards, mixing={report.mixing}"


def forget(checkpoint: str) -> None:
    """Remove the checkpoint of a training whose model is saved."""
    Path(checkpoint).unlink(missing_ok=True)


def train_rows(
    cluster: opts.ClusterOptions, files: list[str], reading: Any, learner: Any, options: Any, place: str, resume: bool,
    console: Console, begun: Callable[[], None],
) -> Any:  # fmt: skip
    """Return the model of files that were learned on a cluster."""
    from rosenblatt.cluster import train

    with connected(str(cluster.cluster), console) as client, shown(console, "row", begun) as watch:
        return train(
            files, reading, learner, options, client=client, shards=cluster.shards,
            mixing="uniform" if cluster.mixing is None else cluster.mixing.value,
            checkpoint=checkpoint_of(place), resume=resume, watch=watch,
        )  # fmt: skip


def train_sentences(
    cluster: opts.ClusterOptions, learner: Any, files: Sequence[str], column: str | None, names: Sequence[str] | None,
    place: str, resume: bool, console: Console,
) -> Any:  # fmt: skip
    """Return a tagger or parser that has learned the sentences of files on a cluster, and save it."""
    from rosenblatt.cluster.fitting import fit_sentence_files

    check_files(files)
    try:
        with connected(str(cluster.cluster), console) as client, shown(console, "sentence") as watch:
            fitted = fit_sentence_files(
                learner.set_params(verbose=0), list(files), column, names, client=client, shards=cluster.shards,
                mixing=None if cluster.mixing is None else cluster.mixing.value, checkpoint=checkpoint_of(place),
                resume=resume, watch=watch,
            )  # fmt: skip
    except KeyboardInterrupt:
        if Path(checkpoint_of(place)).exists():
            print(f"{checkpoint_of(place)} has what was learned so far; --resume continues there", file=sys.stderr)
        raise
    fitted.save(place)
    forget(checkpoint_of(place))
    return fitted
