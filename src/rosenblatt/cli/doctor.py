"""`rosenblatt doctor`: what is installed, and whether it works."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

from rosenblatt.cli import options as opts
from rosenblatt.cli.console import Console
from rosenblatt.cli.errors import Code

NEEDED = ("numpy", "scipy", "scikit-learn", "numba", "llvmlite", "threadpoolctl")
EXTRAS = {"cli": ("typer",), "tables": ("pyarrow",), "plot": ("matplotlib",), "onnx": ("onnx",)}


def doctor(json: opts.Json = False, quiet: opts.Quiet = False) -> int:
    """Check the installation: versions, optional packages, cache of compiled code, and a short self-test.

    The first run takes longer, because it compiles code.

    Exit code 0: everything works. 1: a required package is missing or a test failed.
    """
    console = Console(json, quiet)
    versions = {name: _package_version(name) for name in ("rosenblatt", *NEEDED)}
    extras = {name: all(_package_version(part) for part in parts) for name, parts in EXTRAS.items()}
    machine, cache = _machine(), _cache()
    with console.progress(len(TESTS), "tests") as progress:
        tests = []
        for number, test in enumerate(TESTS):
            progress.update(number, now=test.__doc__)
            tests.append(_run_test(test))
    well = all(versions.values()) and not any(test["wrong"] for test in tests)
    facts = {"well": well, "versions": versions, "machine": machine, "cache": cache, "extras": extras, "tests": tests}
    console.result(facts, _report_text(facts, console))
    return Code.DONE if well else Code.NO


def _report_text(facts: dict[str, Any], console: Console) -> str:
    versions, machine, cache, extras = (facts[name] for name in ("versions", "machine", "cache", "extras"))
    missing = [name for name, there in extras.items() if not there]
    add = f"pip install 'rosenblatt[{','.join(missing)}]'" if missing else ""
    rows = [*machine.items(), ("optional packages", ", ".join(name for name, there in extras.items() if there) or "none")]
    rows += [("not installed", f"{', '.join(missing)}: {add}")] if missing else []
    held = f"{cache['files']:,} files, {cache['bytes'] / 1e6:.0f} MB" if cache["folder"] else ""
    rows += [("compiled code", f"{cache['folder'] or 'beside the source files'}{', ' * bool(held)}{held}")]
    rows += [] if cache["writable"] else [("", "it cannot be written, so every run compiles again: set NUMBA_CACHE_DIR")]
    width = max(len(name) for name, _ in rows)
    tests = [(test["test"], f"{test['seconds']:.2f} s", test["wrong"] or "passed") for test in facts["tests"]]
    parts = [
        console.table(["library", "version"], [(name, version or "MISSING") for name, version in versions.items()]),
        "\n".join(f"{name:<{width}}  {value}" for name, value in rows),
        console.table(["test", "time", ""], tests),
        "everything works" if facts["well"] else "something is missing or failed",
    ]
    return "\n\n".join(parts)


def _package_version(name: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    from rosenblatt import __version__

    try:
        return __version__ if name == "rosenblatt" else version(name)
    except PackageNotFoundError:
        return None


def _machine() -> dict[str, Any]:
    import scipy.linalg  # noqa: F401  so that its BLAS is there to be seen
    from threadpoolctl import threadpool_info

    from rosenblatt.engine.blocks import available_threads

    pools = {f"{pool['internal_api']} {pool['version'] or ''}".strip(): pool["num_threads"] for pool in threadpool_info()}
    return {
        "Python": f"{platform.python_version()}, {sys.executable}",
        "system": f"{platform.system()} {platform.machine()}",
        "cores": available_threads(None),
        "threads": ", ".join(f"{name}: {threads}" for name, threads in pools.items()) or "none found",
    }


def _cache() -> dict[str, Any]:
    """Where numba keeps what it compiles: a folder of its own, or else __pycache__ beside the sources."""
    import rosenblatt
    from rosenblatt.engine.jit import config

    given = config.CACHE_DIR or None
    places = [Path(given)] if given else list(Path(rosenblatt.__file__).parent.rglob("__pycache__"))
    kept = [path for place in places for path in place.rglob("*.nb[ic]")]
    place = places[0] if places else Path(rosenblatt.__file__).parent
    nearest = next(folder for folder in (place, *place.parents) if folder.exists())
    return {
        "folder": given,
        "writable": os.access(nearest, os.W_OK),
        "files": len(kept),
        "bytes": sum(path.stat().st_size for path in kept),
    }


def _run_test(test: Callable[[], str | None]) -> dict[str, Any]:
    """One part of the self-test; `wrong` is empty if it passed."""
    start = perf_counter()
    try:
        wrong = test() or ""
    except Exception as error:
        wrong = f"{type(error).__name__}: {error}"
    return {"test": test.__doc__ or "", "seconds": perf_counter() - start, "wrong": wrong}


def _sample() -> tuple[Any, Any]:
    import numpy as np

    rng = np.random.default_rng(0)
    X = rng.integers(-3, 4, (60, 5)).astype(float)
    return X, (X @ [1, -2, 1, 0, 3] + rng.integers(-2, 3, 60) > 0).astype(int)


def _learning() -> str | None:
    """training gives the weights of the textbook algorithm, bit for bit"""
    import numpy as np

    from rosenblatt import Perceptron
    from rosenblatt.testing import reference

    X, y = _sample()
    ours = Perceptron(keep="last", order="cyclic", max_iter=5, tol=None).fit(X, y)
    naive = reference.learn(X, y, 2, [range(len(X))] * 5, multiclass="binary")
    same = np.array_equal(np.append(ours.coef_[0], ours.intercept_), naive.last[0])
    return None if same else f"{ours.coef_.tolist()} and {ours.intercept_.tolist()}, not {naive.last.tolist()}"


def _files() -> str | None:
    """a model that is saved and loaded predicts the same"""
    import numpy as np

    import rosenblatt

    X, y = _sample()
    model = rosenblatt.Perceptron().fit(X, y)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        model.save(path)
        same = np.array_equal(rosenblatt.load(path).decision_function(X), model.decision_function(X))
    return None if same else "the model that was loaded gives other scores"


def _proofs() -> str | None:
    """XOR is proved not linearly separable"""
    from rosenblatt.theory import separability

    corners, labels = [[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 1, 0]
    proof = separability(corners, labels)
    return None if proof.separable is False and proof.verify(corners, labels) else str(proof)


TESTS = (_learning, _files, _proofs)
