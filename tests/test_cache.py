"""What is compiled is kept on disk, and what is kept there harms nobody."""

import os
import subprocess
import sys
import textwrap

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
from rosenblatt.engine.train import Trainer, Visits
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
        "NUMBA_CACHE_DIR": str(folder / "cache"),
        "PYTHONPATH": os.pathsep.join([str(folder), *sys.path]),
    }
    command = [sys.executable, "-c", textwrap.dedent(script)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_rule_that_is_gone_does_not_break_the_cache(tmp_path):
    (tmp_path / "my_rules.py").write_text(RULE)
    learned = run(tmp_path, RUN.format(module="my_rules", rule="Lazy", arguments="1.0"))
    assert learned == run(tmp_path, RUN.format(module="my_rules", rule="Lazy", arguments="1.0"))
    (tmp_path / "my_rules.py").unlink()
    assert learned == run(tmp_path, RUN.format(module="rosenblatt.rules", rule="Perceptron", arguments="0.0, 1.0"))
