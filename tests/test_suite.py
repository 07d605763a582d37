"""The suite itself: it ends, whatever it inherits from the shell that starts it."""

import ast
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent


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
    calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    runs = [call for call in calls if ast.unparse(call.func) in ("subprocess.run", "subprocess.check_output")]
    assert all(any(word.arg == "timeout" for word in call.keywords) for call in runs)
