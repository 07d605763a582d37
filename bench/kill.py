"""Training that is killed with SIGKILL at any moment leaves the old model or the new one, whole, and nothing beside it.

    make kill             # 200 times
    python -m bench.kill --times 20

Each time `rosenblatt train` runs over the model of the time before and is killed after a random delay, short and long by
turns, so that some are killed while they read, some while they save and some not at all. Then the model must load; and
after one more training that ends, no other file may be in the folder.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import rosenblatt


def main() -> int:
    """Run it and return 0 if all is well."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--times", type=int, default=200)
    options.add_argument("--seed", type=int, default=None)
    given = options.parse_args()
    seed = random.SystemRandom().randrange(2**32) if given.seed is None else given.seed
    draw, rng = random.Random(seed), np.random.default_rng(seed)
    killed = saved = beside = 0
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        data, model = place / "rows.svm", place / "rows.model"
        rows = rng.integers(0, 1 << 20, (400, 20))
        data.write_text(
            "".join(f"{1 - 2 * (i % 2)} {' '.join(f'{j}:1' for j in sorted(set(row)))}\n" for i, row in enumerate(rows))
        )
        command = [sys.executable, "-m", "rosenblatt", "train", str(data), "-q", "-m", str(model), "--passes"]
        began = time.monotonic()
        subprocess.run([*command, "1"], check=True, stdout=subprocess.DEVNULL, timeout=300)
        usual = time.monotonic() - began
        for number in range(given.times):
            process = subprocess.Popen([*command, str(2 + number % 3)], stdout=subprocess.DEVNULL)
            try:
                process.wait(draw.uniform(0.5, 1.15) * usual)
                saved += 1
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                killed += 1
            rosenblatt.load(model)
            beside += len(os.listdir(place)) > 2
        subprocess.run([*command, "1"], check=True, stdout=subprocess.DEVNULL, timeout=300)
        left = sorted(set(os.listdir(place)) - {"rows.svm", "rows.model"})
    print(f"seed {seed}: {killed} killed, {saved} ended before, a model that loads every time, "
          f"{beside} times a file beside it, left after the next save: {left or 'nothing'}")  # fmt: skip
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
