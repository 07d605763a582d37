"""The suite itself: it ends, whatever it inherits from the shell that starts it."""

import ast
import functools
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
CHECKERS = ("assert_", "check_")  # functions of others whose names say that they fail
PARAMETERS = ("check", "law")  # parameters of tests, each a function that fails


@functools.cache
def tree_of(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def calls_in(node):
    return [each for each in ast.walk(node) if isinstance(each, ast.Call)]


def called(call):
    """The name of a function without what stands before it."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def can_fail(node):
    """Whether a function itself says what must be true."""
    for each in ast.walk(node):
        if isinstance(each, ast.Assert):
            return True
        if isinstance(each, ast.Raise) and each.exc is not None and "AssertionError" in ast.unparse(each.exc):
            return True
    for call in calls_in(node):
        checks = any(word.arg == "check" and ast.unparse(word.value) == "True" for word in call.keywords)
        expects = ast.unparse(call.func) in ("pytest.raises", "pytest.warns", "pytest.fail")
        if checks or expects or called(call).startswith(CHECKERS):
            return True
    return False


@pytest.mark.skipif(os.name != "posix", reason="a shell that ignores SIGINT")
def test_tests_of_interrupts_end_when_sigint_is_ignored():
    tests = [f"{TESTS}/test_cli.py::test_an_interrupt_is_said_and_has_its_code"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", *tests]
    done = subprocess.run(
        ["sh", "-c", f"trap '' INT; exec {shlex.join(command)}"],
        capture_output=True, text=True, timeout=200, cwd=TESTS.parent,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_test_has_a_time_limit(pytestconfig):
    assert 0 < float(pytestconfig.getini("timeout")) <= 600
    assert float(pytestconfig.getini("faulthandler_timeout")) > 0


@pytest.mark.parametrize("path", sorted(TESTS.glob("*.py")), ids=lambda path: path.name)
def test_every_process_that_a_test_waits_for_has_a_time_limit(path):
    runs = [
        call for call in calls_in(tree_of(path)) if ast.unparse(call.func) in ("subprocess.run", "subprocess.check_output")
    ]
    assert all(any(word.arg == "timeout" for word in call.keywords) for call in runs)


@pytest.mark.parametrize("path", sorted(TESTS.glob("test_*.py")), ids=lambda path: path.name)
def test_every_test_can_fail_by_more_than_a_crash(path):
    """It asserts something itself, or calls what does: a function of its file, a law, or a check of scikit-learn."""
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    parts = {node.name: node for node in ast.walk(tree_of(path)) if isinstance(node, kinds)}
    failing = {name for name, node in parts.items() if can_fail(node)} | {*PARAMETERS}
    while True:
        more = {name for name, node in parts.items() if any(called(call) in failing for call in calls_in(node))}
        if more <= failing:
            break
        failing |= more
    assert [name for name in parts if name.startswith("test_") and name not in failing] == []
