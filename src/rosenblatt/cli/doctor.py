"""`rosenblatt doctor`: what is installed, and whether it works."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import typer

from rosenblatt.cli import options as opts
from rosenblatt.cli.console import Console
from rosenblatt.cli.errors import Code, Failure

NEEDED = ("numpy", "scipy", "scikit-learn", "numba", "llvmlite", "threadpoolctl")
EXTRAS = {
    "cli": ("typer",), "tables": ("pyarrow",), "plot": ("matplotlib",), "onnx": ("onnx",),
    "serve": ("fastapi", "httptools", "uvicorn", "uvloop"),
}  # fmt: skip


What = Annotated[
    list[str] | None,
    typer.Argument(metavar="WHAT", help="What --warm compiles: linear, text, online, kernel, tagger, parser or all."),
]
Warm = Annotated[bool, opts.option("--warm", None, "Compile now what WHAT needs; by default linear, text and online.")]


def doctor(what: What = None, warm: Warm = False, json: opts.Json = False, quiet: opts.Quiet = False) -> int:
    """Check the installation: versions, optional packages, GPU, cache of compiled code, and a short self-test.

    The first run takes longer, because it compiles code. With --warm nothing is checked: what WHAT needs is compiled and
    cached on disk, for example while the image of a container is built.

    Exit code 0: everything works. 1: a required package is missing, a test failed, or compiled code cannot be cached.
    """
    console = Console(json, quiet)
    if warm:
        return _warm(what or [], console)
    if what:
        raise Failure(
            f"WHAT can only be given with --warm; got {what[0]!r}", Code.USAGE, f"rosenblatt doctor --warm {what[0]}"
        )
    versions = {name: _package_version(name) for name in ("rosenblatt", *NEEDED)}
    extras = {name: all(_package_version(part) for part in parts) for name, parts in EXTRAS.items()}
    machine, gpus, cache = _machine(), _gpus(), _cache()
    with console.progress(len(TESTS), "tests") as progress:
        tests = []
        for number, test in enumerate(TESTS):
            progress.update(number, now=test.__doc__)
            tests.append(_run_test(test))
    well = all(versions.values()) and not any(test["wrong"] for test in tests)
    facts: dict[str, Any] = {"well": well, "versions": versions, "machine": machine, "gpu": gpus, "cache": cache}
    facts |= {"extras": extras, "tests": tests}
    console.result(facts, _report_text(facts, console))
    return Code.DONE if well else Code.NO


def _warm(what: list[str], console: Console) -> int:
    """Compile sets of kernels and print how long each took."""
    from rosenblatt.cli import warming

    allowed = [*warming.SETS, "all"]
    for name in what:
        if name not in allowed:
            raise Failure(f"WHAT must be one of {', '.join(allowed)}; got {name!r}", Code.USAGE)
    names = list(warming.SETS) if "all" in what else list(dict.fromkeys(what)) or list(warming.DEFAULT)
    done = []
    with console.progress(len(names), "sets") as progress:
        for number, name in enumerate(names):
            progress.update(number, compiling=name)
            done.append(warming.compile_set(name))
    cache = _cache()
    rows = [(each["what"], f"{each['seconds']:.1f} s", each["compiled"], each["cached"]) for each in done]
    text = console.table(["what", "time", "compiled", "cached before"], rows)
    console.result({"warm": done, "cache": cache}, "\n\n".join([text, *(line for _, line in _cache_rows(cache))]))
    return Code.NO if cache["problem"] else Code.DONE


def _cache_rows(cache: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the lines of the report about the cache of compiled code."""
    if cache["problem"]:
        advice = f"set {cache['variable']} to a folder that only you can write to"
        return [("compiled code", f"not cached: {cache['problem']}; {advice}")]
    rows = [("compiled code", f"{cache['folder']}, {cache['kernels']:,} kernels, {cache['bytes'] / 1e6:.0f} MB")]
    if not cache["writable"]:
        advice = f"set {cache['variable']} to another folder"
        rows.append(("", f"the folder is read-only, so kernels that are not in it are compiled in each run; {advice}"))
    if cache["stale"]:
        facts = f"{len(cache['stale'])}, {cache['stale_bytes'] / 1e6:.0f} MB, removed when they are old"
        names = ", ".join([*cache["stale"][:3], *(["…"] if len(cache["stale"]) > 3 else [])])
        rows.append(("", f"folders of other versions ({facts}): {names}"))
    return rows


def _report_text(facts: dict[str, Any], console: Console) -> str:
    versions, machine, cache, extras = (facts[name] for name in ("versions", "machine", "cache", "extras"))
    missing = [name for name, there in extras.items() if not there]
    add = f"pip install 'rosenblatt[{','.join(missing)}]'" if missing else ""
    rows = [*machine.items(), ("optional packages", ", ".join(name for name, there in extras.items() if there) or "none")]
    rows += [("not installed", f"{', '.join(missing)}: {add}")] if missing else []
    rows += _gpu_rows(facts["gpu"]) + _cache_rows(cache)
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


def _gpus() -> dict[str, Any]:
    """Return the GPUs that can be used, or why the first cannot. CuPy, which takes a second to import, is imported only if
    it is installed."""
    from rosenblatt.errors import GpuUnavailable, RosenblattError
    from rosenblatt.gpu.card import find_card

    found: list[dict[str, Any]] = []
    if find_spec("cupy") is None:
        return {"found": found, "problem": "CuPy is not installed", "hint": "pip install 'rosenblatt[cuda]'"}
    problem = hint = None
    while problem is None:
        device = f"cuda:{len(found)}"
        try:
            found.append({"device": device, **find_card(device).describe()._asdict()})
        except GpuUnavailable as error:  # the number after the last GPU raises it too
            problem, hint = error.problem, error.hint
        except Exception as error:  # a library of CUDA that is missing, or does not fit the driver
            problem = error.problem if isinstance(error, RosenblattError) else f"{type(error).__name__}: {error}"
    return {"found": found, "problem": None if found else problem, "hint": None if found else hint}


def _gpu_rows(gpus: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the lines of the report about GPUs."""
    if gpus["problem"]:
        return [("GPU", "; ".join(filter(None, (f"not available: {' '.join(gpus['problem'].split())}", gpus["hint"]))))]
    return [
        (
            "GPU" if number == 0 else "",
            f"{gpu['device']}: {gpu['name']}, {gpu['total_bytes'] / 2**30:.1f} GiB ({gpu['free_bytes'] / 2**30:.1f} free), "
            f"compute capability {gpu['capability']}, CUDA {gpu['driver']}, {gpu['library']}",
        )
        for number, gpu in enumerate(gpus["found"])
    ]


def _cache() -> dict[str, Any]:
    """Return where compiled code is cached, how much there is, and what is left of other versions."""
    from rosenblatt.engine import kernel_cache

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the problem is in the report
        folder, problem = kernel_cache.find_folder()
    stale = kernel_cache.stale_folders(folder.parent) if folder else []
    return {
        "folder": None if folder is None else str(folder),
        "problem": problem,
        "variable": kernel_cache.VARIABLE,
        "writable": folder is not None and os.access(folder, os.W_OK),
        "kernels": 0 if folder is None else len(list(folder.glob("*.nbc"))),
        "bytes": 0 if folder is None else _size(folder),
        "stale": [each.name for each in stale],
        "stale_bytes": sum(map(_size, stale)),
    }


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


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
