"""No draw fails by chance: every test for which hypothesis draws examples, under many of its seeds.

    make seeds                               # seeds 0 to 29
    make seeds SEEDS=3 ARGS=tests/test_winnow.py
    python -m bench.seeds --first 30 --seeds 30 -n 2 --dist worksteal

Other arguments go to pytest. Each seed is a run of pytest by itself, in which this file is a plugin that leaves out the
tests without draws. Hypothesis keeps what failed in a folder that is new for each seed, so no seed sees the examples of
another, and those of `make test` stay as they are.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests without draws."""
    drawn = [hasattr(item, "obj") and getattr(item.obj, "is_hypothesis_test", False) for item in items]
    config.hook.pytest_deselected(items=[item for item, is_drawn in zip(items, drawn, strict=True) if not is_drawn])
    items[:] = [item for item, is_drawn in zip(items, drawn, strict=True) if is_drawn]


def run(seed: int, arguments: list[str]) -> int:
    """Run the drawn tests under one seed; pytest's exit code."""
    with tempfile.TemporaryDirectory() as folder:
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "bench.seeds", "-p", "no:randomly", "-q", "--tb=short",
             f"--hypothesis-seed={seed}", *arguments],
            env={**os.environ, "HYPOTHESIS_STORAGE_DIRECTORY": folder},
        ).returncode  # fmt: skip


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--seeds", type=int, default=30, help="how many")
    options.add_argument("--first", type=int, default=0, help="the first of them")
    given, arguments = options.parse_known_args()
    failed = []
    for seed in range(given.first, given.first + given.seeds):
        began = time.monotonic()
        if run(seed, arguments) != 0:
            failed.append(seed)
        print(f"seed {seed}: {'FAILED' if seed in failed else 'fine'}, {time.monotonic() - began:.0f} s", flush=True)
    if failed:
        sys.exit(f"failed under {failed}; one of them again: pytest -p no:randomly --hypothesis-seed={failed[0]} TEST")


if __name__ == "__main__":
    main()
