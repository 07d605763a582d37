"""Training that is killed with SIGKILL at any moment leaves the old model or the new one, whole; and after the next save
nothing is beside it.

    make kill             # 200 times
    python -m bench.kill --times 20

Each time a process that has the library imported runs `rosenblatt train` over the model of the time before. Half of them
are killed after a delay drawn from the duration of a whole training, half after one drawn from the duration of the save,
counted from its beginning. Half of each save as if the system had no files without a name. Training is deterministic, so
the bytes of the old and the new model are known, and the file must have those of the one or of the other.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

import rosenblatt
from rosenblatt.cli import main as command
from rosenblatt.modelfile import container

LIMIT = 300  # seconds for a training that is not killed
PAUSE = 0.005  # seconds between the name of the new file and its place: hardly any kill would hit what lies between
IMPORTED = ["rosenblatt.cli.train", "rosenblatt.workflow", "rosenblatt.data.svmlight"]  # before a training begins
FULL_EVERY = 10  # kills between two trainings that are not killed
# What a training was doing, by the last mark that it sent.
MARKS = {
    "training": "before the save",
    "saving": "while the new file was written",
    "named": "as it took the place of the old one",
    "saved": "after the save",
}


class Run(NamedTuple):
    """What became of a training."""

    mark: str
    ended: bool  # whether it ended before it was to be killed
    times: dict[str, float]  # seconds from its beginning to each mark


def train(arguments: list[str], marks: Connection, nameless: bool) -> None:
    """Run the command line, and send a mark where it begins to save, names the new file and has put it into its place."""
    with open(os.devnull, "w") as nothing:
        os.dup2(nothing.fileno(), 1)
        os.dup2(nothing.fileno(), 2)
    if not nameless and hasattr(os, "O_TMPFILE"):
        del os.O_TMPFILE
    write, replace = container.atomic_write, os.replace

    @contextmanager
    def marked_write(path: Any) -> Iterator[IO[bytes]]:
        marks.send_bytes(b"saving")
        with write(path) as file:
            yield file
        marks.send_bytes(b"saved")

    def marked_replace(*paths: Any, **options: Any) -> None:
        marks.send_bytes(b"named")
        time.sleep(PAUSE)
        replace(*paths, **options)

    container.atomic_write, os.replace = marked_write, marked_replace  # type: ignore[assignment]  # in their place
    marks.send_bytes(b"training")
    os._exit(command(arguments))


def run(arguments: list[str], nameless: bool, kill_at: tuple[str, float] | None) -> Run:
    """Train, and kill it so many seconds after a mark."""
    context = multiprocessing.get_context("forkserver")
    marks, other = context.Pipe(duplex=False)
    process = context.Process(target=train, args=(arguments, other, nameless))
    process.start()
    other.close()
    times: dict[str, float] = {}
    deadline = time.monotonic() + LIMIT
    ended = False
    while not ended and (left := deadline - time.monotonic()) > 0 and marks.poll(left):
        ended = not receive(marks, times)
        if times and kill_at is not None and list(times)[-1] == kill_at[0]:
            deadline = times[kill_at[0]] + kill_at[1]
    if kill_at is None and not ended:
        raise TimeoutError(f"training took more than {LIMIT} seconds")
    if not ended:
        process.kill()
        while receive(marks, times):
            pass
    process.join(LIMIT)
    if ended and process.exitcode:
        raise ChildProcessError(f"training that was not killed ended with the exit code {process.exitcode}")
    began = times["training"]
    return Run(list(times)[-1], ended, {mark: at - began for mark, at in times.items()})


def receive(marks: Connection, times: dict[str, float]) -> bool:
    """Note the time of the next mark; return False if there is none because the process has ended."""
    try:
        mark = marks.recv_bytes().decode()
    except (EOFError, ConnectionResetError):
        return False
    times[mark] = time.monotonic()
    return True


def main() -> int:
    """Run it and return 0 if all is well."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--times", type=int, default=200)
    options.add_argument("--seed", type=int, default=None)
    given = options.parse_args()
    seed = random.SystemRandom().randrange(2**32) if given.seed is None else given.seed
    draw, rng = random.Random(seed), np.random.default_rng(seed)
    multiprocessing.set_forkserver_preload(IMPORTED)
    killed: Counter[str] = Counter()
    kept: Counter[str] = Counter()
    beside: Counter[bool] = Counter()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        data, model = place / "rows.svm", place / "rows.model"
        rows = rng.integers(0, 1 << 20, (4000, 20))
        data.write_text(
            "".join(f"{1 - 2 * (i % 2)} {' '.join(f'{j}:1' for j in sorted(set(row)))}\n" for i, row in enumerate(rows))
        )
        trainings = [["train", str(data), "-q", "-m", str(model), "--passes", "9", "--seed", str(n)] for n in (0, 1)]
        run(trainings[0], True, None)  # compiles what is not in the cache
        contents = []
        for arguments in trainings:
            usual = run(arguments, True, None)
            rosenblatt.load(model)
            contents.append(model.read_bytes())
        assert contents[0] != contents[1]
        whole, saving = usual.times["saved"], usual.times["saved"] - usual.times["saving"]
        print(f"seed {seed}: a training takes {whole:.2f} s, of which its save {saving * 1000:.0f} ms, "
              f"for {len(contents[0]):,} bytes", flush=True)  # fmt: skip
        there = 1  # the model that the file is
        for number in range(given.times):
            nameless, in_save = draw.random() < 0.5, draw.random() < 0.5
            kill_at = ("saving", draw.uniform(0, 1.1) * saving) if in_save else ("training", draw.uniform(0, 1.05) * whole)
            files = set(os.listdir(place))
            result = run(trainings[1 - there], nameless, kill_at)
            found, left = model.read_bytes(), set(os.listdir(place)) - files
            problem = ""
            if found not in contents:
                problem = "the model is neither the old nor the new one"
            elif result.mark != "named" and contents.index(found) != (1 - there if result.mark == "saved" else there):
                problem = "the model is the wrong one of the two"
            elif left and nameless and result.mark != "named":
                problem = f"{left} was left"
            killed["ended first" if result.ended else MARKS[result.mark]] += 1
            if not problem:
                kept["old" if contents.index(found) == there else "new"] += 1
                there = contents.index(found)
                beside[nameless] += len(left)
                if (number + 1) % FULL_EVERY == 0 or number + 1 == given.times:
                    there = 1 - there
                    run(trainings[there], nameless, None)
                    left = set(os.listdir(place)) - {data.name, model.name}
                    if left or model.read_bytes() != contents[there]:
                        problem = f"a save that was not killed then left {left or 'another model'}"
            if problem:
                saved = Path(tempfile.mkdtemp()) / model.name
                saved.write_bytes(found)
                print(f"seed {seed}, time {number}, killed {MARKS[result.mark]}: {problem}; the file is in {saved}")
                return 1
    print(f"seed {seed}: {given.times} trainings in {time.monotonic() - began:.0f} s, killed "
          f"{', '.join(f'{what}: {killed[what]}' for what in (*MARKS.values(), 'ended first'))}")  # fmt: skip
    print(f"then the file was the old model {kept['old']} times and the new one {kept['new']} times, whole every time; the "
          f"killed left {beside[True]} files where the system has files without a name and {beside[False]} where not, and "
          "the next save none of them")  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
