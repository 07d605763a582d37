"""From files to models: LIBSVM text beside Vowpal Wabbit and scikit-learn, memory while streaming, the command line as a
new process sees it; a spam filter and twenty newsgroups, each made by one command."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench.data import Missing, file_in
from bench.report import Result
from rosenblatt.cli.workloads import Measurement, measure_in_turns, timed
from rosenblatt.data import svmlight
from rosenblatt.workflow import Options, learner_named, reading_for, train

ROWS, FEATURES, WORDS = 360_000, 100_000, 30
_BLOCK = 10_000


class Texts(NamedTuple):
    """The same rows as LIBSVM text and as Vowpal Wabbit's."""

    svm: Path
    vw: Path
    folder: Any  # a TemporaryDirectory, which goes when nobody holds it any more

    @property
    def megabytes(self) -> float:
        return self.svm.stat().st_size / 1e6


@cache
def texts() -> Texts:
    """About 130 MB: 30 features a row out of 100,000, low ones more often, values in four decimals; a linear teacher."""
    folder = tempfile.TemporaryDirectory()
    place = Path(folder.name)
    rng = np.random.default_rng(0)
    teacher = rng.standard_normal(FEATURES + 1)
    with open(place / "rows.svm", "w") as svm, open(place / "rows.vw", "w") as vw:
        for _ in range(0, ROWS, _BLOCK):
            columns = np.sort((FEATURES * rng.random((_BLOCK, WORDS)) ** 2).astype(int) + 1, axis=1)
            values = np.round(rng.random((_BLOCK, WORDS)), 4)
            scores = (teacher[columns] * values).sum(axis=1) + rng.standard_normal(_BLOCK)
            for score, row_columns, row_values in zip(scores, columns.tolist(), values.tolist(), strict=True):
                words = " ".join(f"{j}:{x}" for j, x in dict(zip(row_columns, row_values, strict=True)).items())
                label = "1" if score > 0 else "-1"
                svm.write(f"{label} {words}\n")
                vw.write(f"{label} | {words}\n")
    return Texts(place / "rows.svm", place / "rows.vw", folder)


def ours(path: Path, streamed: bool = True) -> Any:
    """One pass over a file of LIBSVM text, model saved."""
    reading = reading_for([str(path)])
    model = train(str(path), reading, learner_named("perceptron", {"keep": "last"}), Options(passes=1, stream=streamed))
    model.save(path.with_suffix(".model"))
    return model


def vowpal_wabbit(path: Path) -> Any:
    """One pass over the same rows, model saved."""
    try:
        from vowpalwabbit import Workspace
    except ImportError:
        raise Missing("vowpalwabbit is not installed: pip install vowpalwabbit") from None
    workspace = Workspace(f"-d {path} -f {path}.model --loss_function hinge -b 18 --quiet")
    workspace.finish()


def against_vowpal_wabbit(folder: Path | None, repeat: int) -> Result:
    """Text to saved model, one pass, in a process that is already running."""
    data = texts()
    us, them = measure_in_turns(
        timed(lambda: ours(data.svm)), timed(lambda: vowpal_wabbit(data.vw)), repeat=repeat, warm_up=1
    )
    training = us.result.training
    note = f"{100 * training['history'][0]['mistakes'] / training['history'][0]['rows']:.1f} % mistakes on the way"
    name = f"{data.megabytes:.0f} MB of LIBSVM text to a model, one pass, against Vowpal Wabbit on its own text"
    return Result(name, us.cost, them.cost, them.cost / us.cost, True, note)


def against_vowpal_wabbit_as_processes(folder: Path | None, repeat: int) -> Result:
    """The same, as new processes: the command line, and Python with Vowpal Wabbit."""
    data = texts()
    script = (
        "import sys; from vowpalwabbit import Workspace; "
        "Workspace(f'-d {sys.argv[1]} -f {sys.argv[1]}.model --loss_function hinge -b 18 --quiet').finish()"
    )
    train = ("train", data.svm, "--stream", "-q", "--set", "keep=last", "-m", data.svm.with_suffix(".model"))
    us, them = measure_in_turns(command(*train), process(script, data.vw), repeat=repeat, warm_up=2)
    return Result("the same, each a new process", us.cost, them.cost, them.cost / us.cost, True, "start-up included")


def against_scikit_learn(folder: Path | None, repeat: int) -> Result:
    """load_svmlight_file and Perceptron.fit, one pass, in order; the weights must be the same."""
    from sklearn.datasets import load_svmlight_file
    from sklearn.linear_model import Perceptron

    data = texts()

    def theirs() -> Any:
        X, y = load_svmlight_file(str(data.svm))
        X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)  # or fit refuses them
        return Perceptron(max_iter=1, tol=None, shuffle=False, fit_intercept=False).fit(X, y)

    def mine() -> Any:
        reading = reading_for([str(data.svm)])
        learner = learner_named("perceptron", {"keep": "last", "fit_intercept": False})
        model = train(str(data.svm), reading, learner, Options(passes=1, stream=True))
        model.save(data.svm.with_suffix(".model"))
        return model

    us, them = measure_in_turns(timed(mine), timed(theirs), repeat=min(repeat, 2), warm_up=1)
    found = us.result.learner.coef_[0, 1:]  # a column for each index from 0, and the file counts from 1
    same = np.allclose(found, them.result.coef_[0], rtol=1e-9, atol=1e-9)
    return Result(
        "the same, against scikit-learn's load and fit", us.cost, them.cost, them.cost / us.cost, bool(same),
        "the same weights" if same else "other weights",
    )  # fmt: skip


def parsing(folder: Path | None, repeat: int) -> Result:
    """LIBSVM text to CSR, on all cores; every float must have the bits that scikit-learn's has."""
    from sklearn.datasets import load_svmlight_file

    data = texts()
    (us,) = measure_in_turns(timed(lambda: svmlight.read(str(data.svm))), repeat=repeat, warm_up=1)
    X, y = us.result[0], us.result[1]
    theirs, labels = load_svmlight_file(str(data.svm))
    same = np.array_equal(X.data, theirs.data) and np.array_equal(X.indices, theirs.indices) and np.array_equal(y, labels)
    speed = data.megabytes / us.cost
    return Result("reading LIBSVM text, both cores", us.cost, None, speed, bool(same), "bits as scikit-learn's")


def streaming_memory(folder: Path | None, repeat: int) -> Result:
    """The peak of the command line while it streams 1 GB."""
    data = texts()
    copies = int(np.ceil(1000 / data.megabytes))
    names = [data.svm.with_name(f"copy-{i}.svm") for i in range(copies)]
    for name in names:
        if not name.exists():
            name.hardlink_to(data.svm)
    turn = command("train", *names, "--stream", "-q", "-m", data.svm.with_suffix(".model"))()
    return Result(
        f"peak memory, streaming {copies * data.megabytes:.0f} MB", turn.cost, None, turn.result / 1e6, True,
        "the whole process",
    )  # fmt: skip


def predicting(folder: Path | None, repeat: int) -> Result:
    """`rosenblatt predict` on 100,000 rows, start-up included."""
    data = texts()
    model, rows = data.svm.with_suffix(".model"), data.svm.with_name("some.svm")
    ours(data.svm)
    with open(data.svm, "rb") as lines, open(rows, "wb") as some:
        for _ in range(100_000):
            some.write(next(lines))
    (us,) = measure_in_turns(command("predict", model, rows, "-q"), repeat=repeat, warm_up=1)
    return Result("`rosenblatt predict`, 100,000 rows, a new process", us.cost, None, us.cost, True, "")


def predicting_a_line(folder: Path | None, repeat: int) -> Result:
    """`rosenblatt predict` of one line of text beside Vowpal Wabbit's, each a new process."""
    rng = np.random.default_rng(0)
    mails = [(side, " ".join(f"word{int(word)}" for word in 1000 * rng.random(9) ** (1 + side))) for side in (0, 1) * 500]
    script = "import sys; from vowpalwabbit import Workspace; Workspace(' '.join(sys.argv[1:]) + ' --quiet').finish()"
    with tempfile.TemporaryDirectory() as place:
        for name, form in (("mails.tsv", "{}\t{}\n"), ("mails.vw", "{} | {}\n")):
            (Path(place) / name).write_text("".join(form.format(2 * side - 1, text) for side, text in mails))
        ours, theirs, line = (Path(place) / name for name in ("ours.model", "vw.model", "line.txt"))
        line.write_text("word3 word14 word159\n")
        (Path(place) / "line.vw").write_text("| word3 word14 word159\n")
        command("train", Path(place) / "mails.tsv", "--target", "0", "--text", "1", "-q", "-m", ours)()
        process(script, "-d", Path(place) / "mails.vw", "-f", theirs, "--loss_function", "hinge")()
        vw = process(script, "-t", "-i", theirs, "-d", Path(place) / "line.vw", "-p", Path(place) / "answer.txt")
        us, them = measure_in_turns(command("predict", ours, line, "-q"), vw, repeat=repeat, warm_up=2)
    note = "kernels on disk; peer: Vowpal Wabbit"
    return Result("`rosenblatt predict` of one line of text, a new process", us.cost, them.cost, us.cost, True, note)


def learning_a_row(folder: Path | None, repeat: int) -> Result:
    """The first example of a stream, in a new process."""
    script = "from rosenblatt.online import OnlinePerceptron; OnlinePerceptron().learn_one({'a': 1.0, 'b': 2.0}, 'x')"
    (us,) = measure_in_turns(process(script), repeat=repeat, warm_up=1)
    return Result("import and first `learn_one`, a new process", us.cost, None, us.cost, True, "kernels on disk")


def helping(folder: Path | None, repeat: int) -> Result:
    (us,) = measure_in_turns(command("--help"), repeat=repeat, warm_up=1)
    return Result("`rosenblatt --help`", us.cost, None, us.cost, True, "")


def spam(folder: Path | None, repeat: int) -> Result:
    """Ten folds of the SMS data."""
    path = file_in(folder, "sms_spam.tsv.gz")
    turn = command("evaluate", path, "--target", "0", "--text", "1", "--folds", "10", "--json", "-q", keep_output=True)()
    accuracy = json.loads(turn.result)["accuracy"]
    return Result("SMS spam, ten folds, one command", turn.cost, None, accuracy, True, "")


def newsgroups(folder: Path | None, repeat: int) -> Result:
    """Twenty newsgroups by date: train on the JSON lines, measure on the later ones; both commands on the clock."""
    early, late = (file_in(folder, f"20news-bydate-{part}.jsonl.gz") for part in ("train", "test"))
    with tempfile.TemporaryDirectory() as place:
        model = Path(place) / "news.model"
        learned = command("train", early, "-m", model, "-q")()
        judged = command("evaluate", model, late, "--json", "-q", keep_output=True)()
    seconds = learned.cost + judged.cost
    accuracy = json.loads(judged.result)["accuracy"]
    return Result("20 newsgroups by date, from JSON lines", seconds, None, accuracy, seconds < 20, "train and evaluate")


def command(*arguments: Any, keep_output: bool = False) -> Callable[[], Measurement]:
    """`rosenblatt` with these arguments in a new process: seconds, and what it printed or else its peak memory in bytes."""
    return _measured([sys.executable, "-m", "rosenblatt", *map(str, arguments)], keep_output)


def process(script: str, *arguments: Any) -> Callable[[], Measurement]:
    """A script in a new process."""
    return _measured([sys.executable, "-c", script, *map(str, arguments)], False)


def _measured(line: list[str], keep_output: bool) -> Callable[[], Measurement]:
    watcher = "import resource, subprocess, sys; code = subprocess.run(sys.argv[1:]).returncode; " \
              "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr); sys.exit(code)"  # fmt: skip

    def turn() -> Measurement:
        done = timed(lambda: subprocess.run([sys.executable, "-c", watcher, *line], capture_output=True, text=True))()
        if done.result.returncode:
            raise RuntimeError(f"{' '.join(line)}: {done.result.stderr}")
        peak = int(done.result.stderr.split()[-1]) * 1024
        return Measurement(done.cost, done.result.stdout if keep_output else peak)

    return turn
