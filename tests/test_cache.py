"""Compiled kernels are cached on disk; damaged, foreign or unwritable caches do no harm."""

import io
import json
import os
import subprocess
import sys
import textwrap
import time
from errno import ENOSPC
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse
from numba import typeof

from rosenblatt.cli import main, warming
from rosenblatt.engine import kernel_cache, notice
from rosenblatt.engine.jit import jit
from rosenblatt.engine.rows import Examples, as_rows
from rosenblatt.errors import KernelsNotKept

RULE = """
from typing import NamedTuple
from rosenblatt.rules import step

class Lazy(NamedTuple):
    rate: float

    @property
    def uses_length(self):
        return False

@step.register
def _(rule: Lazy, m, length, k, positive):
    return rule.rate if m <= 0.0 else 0.0
"""
RUN = """
import numpy as np
from rosenblatt.engine.problems import Binary
from rosenblatt.engine.rows import Examples, as_rows
from rosenblatt.engine.train import Trainer
from rosenblatt.engine.visits import Visits
from rosenblatt.engine.weights import zeros
from {module} import {rule} as Rule

rows = as_rows(np.array([[1.0], [-1.0]]))
weights = zeros(1, Binary(2), np.float64, False, False)
visits = Visits(np.arange(2), "cyclic", np.random.default_rng(0))
Trainer(Examples(rows, np.array([1, 0]), None, 1.0), weights, Binary(2), Rule({arguments}), visits).epoch(np.arange(2))
print(weights.w.tolist())
"""


def run(folder, script):
    environment = {
        **os.environ,
        kernel_cache.VARIABLE: str(folder / "cache"),
        "PYTHONPATH": os.pathsep.join([str(folder), *sys.path]),
    }
    command = [sys.executable, "-c", textwrap.dedent(script)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_rule_that_is_edited_or_gone_does_not_break_the_cache(tmp_path):
    (tmp_path / "my_rules.py").write_text(RULE)
    learned = run(tmp_path, RUN.format(module="my_rules", rule="Lazy", arguments="1.0"))
    assert learned == run(tmp_path, RUN.format(module="my_rules", rule="Lazy", arguments="1.0"))
    (tmp_path / "my_rules.py").write_text(RULE.replace("rule.rate if", "2.0 * rule.rate if"))
    edited = run(tmp_path, RUN.format(module="my_rules", rule="Lazy", arguments="1.0"))
    assert edited != learned  # the kernel cached for the rule before the edit is not used
    (tmp_path / "my_rules.py").unlink()
    assert learned == run(tmp_path, RUN.format(module="rosenblatt.rules", rule="Perceptron", arguments="0.0, 1.0"))


@pytest.fixture
def base(tmp_path, monkeypatch):
    """The folder of an environment variable, which is looked at again."""
    monkeypatch.setenv(kernel_cache.VARIABLE, str(tmp_path))
    kernel_cache.find_folder.cache_clear()
    kernel_cache._warn.cache_clear()
    yield tmp_path
    kernel_cache.find_folder.cache_clear()


def add(x, y):
    return x + y


def test_a_kernel_is_compiled_once_for_all_processes(base):
    first, second = jit(add), jit(add)  # two processes, as far as numba knows
    assert first(1, 2) == second(1, 2) == 3
    assert (first.stats.cache_hits.total(), second.stats.cache_hits.total()) == (0, 1)
    assert kernel_cache.find_folder().folder == base / kernel_cache.NAME
    assert jit(add)(1.5, 2) == 3.5  # another signature in the same index
    assert jit(add)(1, 2) == 3


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
def test_damaged_files_are_replaced(base, ending):
    jit(add)(1, 2)
    (path,) = (base / kernel_cache.NAME).glob(f"*.{ending}")
    for damage in (b"", b"not a pickle", path.read_bytes()[:-9]):
        path.write_bytes(damage)
        again = jit(add)
        assert again(1, 2) == 3
        assert again.stats.cache_hits.total() == 0
        (path,) = (base / kernel_cache.NAME).glob(f"*.{ending}") if ending == "nbi" else [newest(base)]


def newest(base):
    return max((base / kernel_cache.NAME).glob("*.nbc"), key=lambda path: path.stat().st_mtime_ns)


def test_a_full_disk_is_a_warning(base, monkeypatch):
    def full(*_):
        raise OSError(ENOSPC, "No space left on device")

    monkeypatch.setattr(kernel_cache._Index, "_open_for_write", full)
    with pytest.warns(KernelsNotKept, match="No space left on device; set ROSENBLATT_CACHE_DIR"):
        assert jit(add)(1, 2) == 3
    assert jit(add)(1, 2) == 3  # said once


def test_a_folder_that_others_can_write_to_is_refused(base):
    folder = base / kernel_cache.NAME
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.warns(KernelsNotKept, match="can be written by other users"):
        assert jit(add)(1, 2) == 3
    assert not list(folder.iterdir())


def test_a_folder_of_another_user_is_refused(base, monkeypatch):
    folder = base / kernel_cache.NAME
    folder.mkdir(0o755)
    if os.geteuid() == 0:
        os.chown(folder, 12345, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.warns(KernelsNotKept, match="belongs to another user"):
        assert jit(add)(1, 2) == 3


def test_where_no_folder_can_be_made_there_is_a_warning(base, monkeypatch):
    (base / "file").write_text("")
    monkeypatch.setenv(kernel_cache.VARIABLE, str(base / "file" / "kernels"))
    with pytest.warns(KernelsNotKept, match="Not a directory"):
        assert jit(add)(1, 2) == 3


def test_kernels_are_in_the_users_folder_unless_a_variable_names_another(monkeypatch, tmp_path):
    monkeypatch.setattr(kernel_cache.config, "CACHE_DIR", "/numba")
    assert [str(base) for base in kernel_cache.cache_folders()] == ["/numba/rosenblatt"]
    monkeypatch.setattr(kernel_cache.config, "CACHE_DIR", "")
    monkeypatch.setattr(kernel_cache, "AppDirs", lambda *names, **more: Directories(str(tmp_path / "users")))
    assert kernel_cache.cache_folders() == [tmp_path / "users", kernel_cache.PACKAGE / "__pycache__"]
    monkeypatch.setattr(kernel_cache, "AppDirs", lambda *names, **more: Directories("~/.cache"))  # there is no home folder
    assert kernel_cache.cache_folders() == [kernel_cache.PACKAGE / "__pycache__"]


class Directories:
    def __init__(self, user_cache_dir):
        self.user_cache_dir = user_cache_dir


def test_every_edit_leads_to_another_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(kernel_cache, "PACKAGE", tmp_path)
    (tmp_path / "engine").mkdir()
    source = tmp_path / "engine" / "loop.py"
    source.write_text("RATE = 1")
    before = kernel_cache._state_of_sources()
    source.write_text("RATE = 10")
    assert kernel_cache._state_of_sources() != before
    os.utime(source, (1, 1))
    after = kernel_cache._state_of_sources()
    source.write_text("RATE = 20")
    assert kernel_cache._state_of_sources() not in (before, after)


def test_folders_of_old_sources_are_removed_after_a_month(base):
    old, young, other = (base / name for name in ("kernels-0.0.1-ab", "kernels-0.0.2-cd", "mine"))
    for folder in (old, young, other):
        folder.mkdir()
        (folder / "file").write_text("")
    for folder in (old, other):
        os.utime(folder, (time.time() - 40 * 86400,) * 2)
    kernel_cache.find_folder()
    assert {path.name for path in base.iterdir()} == {kernel_cache.NAME, young.name, other.name}


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_line_on_the_terminal_says_what_is_compiled(base, monkeypatch):
    monkeypatch.delenv("ROSENBLATT_QUIET", raising=False)
    compiling = SimpleNamespace(data={"dispatcher": jit(add), "args": ()})
    for stream, quiet, lines in ((Terminal(), "", 1), (Terminal(), "1", 0), (io.StringIO(), "", 0)):
        monkeypatch.setattr(sys, "stderr", stream)
        monkeypatch.setenv("ROSENBLATT_QUIET", quiet)
        listener = notice.Notice(type(jit(add)), wait=0.001)
        for _ in range(2):  # and it says so once
            listener.on_start(compiling)
            if listener.timer is not None:
                listener.timer.join()
            listener.on_end(compiling)
        assert stream.getvalue() == "\r\x1b[Kcompiling kernels for linear models, once per machine…\n" * lines


def test_the_line_names_the_part_of_the_library_or_the_matrix():
    rows = as_rows(scipy.sparse.csr_array(np.eye(3, dtype=np.float32)))
    examples = Examples(rows, np.array([1, 0, 1]), None, 1.0)
    assert notice.subject("rosenblatt.engine.loop", (typeof(1), typeof(examples))) == "CSR float32"
    assert notice.subject("rosenblatt.engine.loop", (typeof(as_rows(np.eye(3))),)) == "dense float64"
    assert notice.subject("rosenblatt.structured.tags.viterbi", ()) == "the tagger"


def test_what_is_loaded_from_disk_is_not_compiled(base, monkeypatch):
    heard = []
    monkeypatch.setattr(notice.Notice, "on_start", lambda listener, event: heard.append(event))
    for number in (1, 1):
        jit(add)(1, 2)
        assert len(heard) == number


def test_doctor_compiles_what_is_named_and_says_what_was_there(base, monkeypatch, capsys):
    monkeypatch.setattr(warming, "SETS", {"linear": lambda: jit(add)(1, 2), "tagger": lambda: jit(add)(1.5, 2)})
    assert main(["doctor", "--warm", "linear", "--json"]) == 0
    assert main(["doctor", "--warm", "all", "--json"]) == 0
    first, second = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert [(each["what"], each["compiled"], each["cached"]) for each in first["warm"]] == [("linear", 1, 0)]
    assert [(each["compiled"], each["cached"]) for each in second["warm"]] == [(0, 1), (1, 0)]
    assert second["cache"]["kernels"] == 2
    assert second["cache"]["folder"] == str(base / kernel_cache.NAME)
    assert main(["doctor", "--warm", "linnear"]) == main(["doctor", "linear"]) == 2
    assert "WHAT must be one of linear, tagger, all; got 'linnear'" in capsys.readouterr().err


def test_doctor_says_why_nothing_is_kept(base, monkeypatch, capsys):
    monkeypatch.setattr(warming, "SETS", {"linear": lambda: jit(add)(1, 2)})
    (base / "kernels-0.0.1-ab").mkdir()
    assert main(["doctor", "--warm", "linear", "--quiet"]) == 0
    assert "folders of other versions (1, 0 MB, removed when they are old): kernels-0.0.1-ab" in capsys.readouterr().out
    kernel_cache.find_folder.cache_clear()
    (base / kernel_cache.NAME).chmod(0o777)
    assert main(["doctor", "--warm", "linear", "--quiet"]) == 1
    assert "can be written by other users; set ROSENBLATT_CACHE_DIR" in capsys.readouterr().out
