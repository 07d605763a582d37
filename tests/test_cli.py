"""The command line says what it said before: sessions kept as data in tests/cli, and every example of the page on it."""

import doctest
import errno
import gzip
import io
import os
import re
import select
import shlex
import signal
import subprocess
import sys
import time
import tomllib
from contextlib import chdir, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
import typer

from docs.pages import PAGES, page_name, write_files
from rosenblatt import errors as library_errors
from rosenblatt.cli import app, console, errors, files, main, options
from rosenblatt.cli.errors import Code
from rosenblatt.serve.log import Log

ROOT = Path(__file__).parents[1]
SESSIONS = sorted((ROOT / "tests" / "cli").glob("*.toml"))
PAGE = ROOT / "docs" / "howto" / "command_line.md"
AGREES = doctest.OutputChecker().check_output


class Ran(NamedTuple):
    """What a command left on its streams, and its exit code."""

    code: int
    stdout: str
    stderr: str


@contextmanager
def streams(stdin="", joined=False):
    """Standard streams of text over bytes, as a process has them; `joined` sends both outputs to one place."""
    names = ("stdin", "stdout", "stderr")
    kept = {name: getattr(sys, name) for name in names}
    content = stdin if isinstance(stdin, bytes) else stdin.encode()
    ours = {name: io.TextIOWrapper(io.BytesIO(), "utf-8", newline="\n", write_through=True) for name in names[1:]}
    if joined:
        ours["stderr"] = ours["stdout"]
    try:
        sys.stdin = io.TextIOWrapper(io.BytesIO(content), "utf-8")
        for name, stream in ours.items():
            setattr(sys, name, stream)
        yield ours
    finally:
        for name, stream in kept.items():
            setattr(sys, name, stream)


def ran(command, stdin=""):
    """Run a command line in this process."""
    with streams(stdin) as held:
        code = main(shlex.split(command))
    return Ran(code, *(held[name].buffer.getvalue().decode() for name in ("stdout", "stderr")))


def process(*arguments, **settings):
    """A command line in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "rosenblatt", *arguments],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **settings
    )  # fmt: skip


def agrees(want, got, what):
    """`...` in what is wanted stands for any text."""
    want += "\n" * bool(want and not want.endswith("\n"))
    if got != want and not AGREES(want, got, doctest.ELLIPSIS):
        pytest.fail(f"{what}\n--- expected\n{want}--- got\n{got}", pytrace=False)


# Sessions


@pytest.mark.parametrize("session", SESSIONS, ids=lambda path: path.stem)
def test_session(session, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    recorded = tomllib.loads(session.read_text(encoding="utf-8"))
    for name, content in recorded.get("files", {}).items():
        (tmp_path / name).write_text(content, encoding="utf-8", newline="")
    for run in recorded["run"]:
        assert run.keys() <= {"command", "stdin", "stdout", "stderr", "code", "files", "gone"}, run
        what = f"rosenblatt {run['command']}"
        got = ran(run["command"], run.get("stdin", ""))
        if got.code != run.get("code", 0):
            pytest.fail(f"{what}: exit code {got.code}\n{got.stdout}{got.stderr}", pytrace=False)
        agrees(run.get("stdout", ""), got.stdout, what)
        agrees(run.get("stderr", ""), got.stderr, what)
        for name, content in run.get("files", {}).items():
            agrees(content, (tmp_path / name).read_text(encoding="utf-8"), f"{what}: {name}")
        for name in run.get("gone", []):
            assert not (tmp_path / name).exists(), f"{what}: {name}"
        assert not list(tmp_path.glob(".*")), f"{what} left something beside its output"


# Documentation


def examples(page):
    """(line, command, what it prints) of the console blocks."""
    text = page.read_text(encoding="utf-8")
    for found in re.finditer(r"^```console\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL):
        line = text[: found.start(1)].count("\n") + 1
        for part in re.split(r"^\$ ", found[1], flags=re.MULTILINE)[1:]:
            command, _, printed = part.replace("\\\n", "").partition("\n")
            yield line, command, printed


CONSOLES = [page for page in PAGES if "\n```console\n" in page.read_text(encoding="utf-8")]


@pytest.mark.parametrize("page", CONSOLES, ids=page_name)
def test_every_example_of_a_page_is_true(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_files(page)
    for line, command, text in examples(page):
        said, _, own = command.rpartition(" | ")
        stdin = shlex.split(said)[1] + "\n" if said else ""
        assert not said or said.startswith("echo "), command
        with streams(stdin, joined=True) as held:
            main(shlex.split(own)[1:])
        agrees(text, held["stdout"].buffer.getvalue().decode(), f"{page.name}, line {line}: {command}")


@pytest.mark.parametrize("name", app.COMMANDS)
def test_every_command_and_option_is_documented(name):
    text = PAGE.read_text(encoding="utf-8")
    found = re.search(rf"^## {name}\n(.*?)(?=^## |\Z)", text, flags=re.MULTILINE | re.DOTALL)
    assert found, f"docs/howto/command_line.md has no section {name}"
    assert f"$ rosenblatt {name}" in found[1], f"the section {name} of docs/howto/command_line.md has no example"
    command = typer.main.get_command(app.app).get_command(None, name)
    everywhere = text[: text.index("\n## train\n")]
    assert command.help, f"{name} has no help"
    for parameter in command.params:
        for option in [opt for opt in parameter.opts if opt.startswith("--")]:
            assert f"`{option}" in found[1] or f"`{option}" in everywhere, f"{option} of {name} is not in {PAGE.name}"
        assert parameter.help, f"{parameter.name} of {name} has no help"


def test_the_table_fits_a_narrow_terminal():
    assert max(map(len, ran("--help").stdout.splitlines())) <= 80
    for name, command in app.COMMANDS.items():
        assert len(command) <= 66, name


# Processes


def test_help_is_light():
    heavy = {"numpy", "scipy", "sklearn", "numba", "pyarrow", "rich", "matplotlib"}
    code = (
        "import sys; from rosenblatt.cli import main, app; main(['--help']); "
        "from rosenblatt.cli.app import COMMANDS; [main([name, '--help']) for name in COMMANDS]; "
        f"loaded = sorted({heavy!r} & sys.modules.keys()); sys.exit(f'help imports {{loaded}}' if loaded else 0)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr


def test_info_reads_the_header_and_imports_nothing_that_learns(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("rows.svm").write_text("1 1:1\n-1 2:1\n" * 3)
    assert ran("train rows.svm -q --learner arow").code == 0
    heavy = {"scipy", "sklearn", "numba", "pyarrow", "rich", "matplotlib", "rosenblatt.estimators.linear"}
    code = (
        "import sys; from rosenblatt.cli import main; main(['info', 'rows.model']); "
        f"loaded = sorted({heavy!r} & sys.modules.keys()); sys.exit(f'info imports {{loaded}}' if loaded else 0)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "by default" not in ended.stdout  # what a default is, a header does not say
    assert re.search(r"^parameters .*\br=1\.0\b", ended.stdout, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("learner", ["SigmaPerceptron", "KernelPerceptron", "DeltaRuleClassifier"])
def test_a_learner_without_weights_to_show_is_trained(learner, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text("age,colour,label\n30,red,yes\n20,blue,no\n35,red,yes\n25,blue,no\n")
    got = ran(f"train people.csv -q --passes 1 --learner {learner}")
    assert got.code == 0, got
    assert got.stdout.startswith(f"people.model: {learner}, 3 features")
    assert ran("predict people.model people.csv -q").code == 0


def test_the_seed_and_the_weights_of_classes_reach_the_folds(tmp_path, monkeypatch):
    from rosenblatt.workflow import evaluation

    monkeypatch.chdir(tmp_path)
    Path("mail.svm").write_text("spam 1:1\nham 1:1\n" * 6)
    trainers, whole = [], evaluation.Trainer
    monkeypatch.setattr(
        evaluation, "Trainer", lambda *given, **options: trainers.append(whole(*given, **options)) or trainers[-1]
    )
    got = ran("""evaluate mail.svm --folds 3 --seed 5 -q --json --set 'class_weight={"spam": 9, "ham": 1}'""")
    assert got.code == 0, got
    assert '"confusion": [[0, 6], [0, 6]]' in got.stdout
    assert {trainer.learner.random_state for trainer in trainers} == {5}


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("shuffle=false", "has no parameter 'shuffle'\ntry: --set order=cyclic\n"),
        ("learning_rate=invscaling", "got 'invscaling'\ntry: --set learning_rate=invsqrt\n"),
        ("early_stopping=true", "and set the number of passes; --holdout 0.1\n"),
    ],
)
def test_words_of_scikit_learn_are_answered_with_options(setting, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.svm").write_text("1 1:1 2:2\n-1 1:2 3:1\n1 2:1\n-1 3:2\n", encoding="utf-8")
    done = ran(f"train rows.svm --set {setting}")
    assert done.code != 0
    assert done.stderr.endswith(words)
    assert not list(tmp_path.glob("*.model"))


def test_without_typer_the_next_step_is_said():
    code = "import sys; sys.modules['typer'] = None; from rosenblatt.cli import main; sys.exit(main([]))"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "pip install 'rosenblatt[cli]'" in ended.stderr


def test_a_reader_that_leaves_is_no_error():
    with process("--help") as running:
        running.stdout.close()
        said = running.stderr.read()
    assert (running.returncode, said) == (141, "")


def test_completion_is_offered():
    surroundings = {
        **os.environ,
        "_ROSENBLATT_COMPLETE": "complete_bash",
        "COMP_WORDS": "rosenblatt cer",
        "COMP_CWORD": "1",
    }
    with process(env=surroundings) as running:
        assert running.stdout.read().split() == ["certify"]


def test_an_interrupt_is_said_and_has_its_code():
    code = (
        "import os, signal, sys, threading, rosenblatt.cli.app; from rosenblatt.cli import main; "
        "threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT)).start(); sys.exit(main(['feasible', '-']))"
    )
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen([sys.executable, "-c", code], text=True, **streams) as waiting:
        waiting.wait(timeout=60)
        said = waiting.stderr.read()
    assert (waiting.returncode, said) == (130, "interrupted\n")


def test_an_interrupted_tagger_is_saved_and_resumes(tmp_path, monkeypatch):
    from rosenblatt.estimators.progress import Bar
    from rosenblatt.modelfile import container

    show = Bar.__call__

    def interrupt(bar, epoch):
        show(bar, epoch)
        if epoch.epoch == 2:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.chdir(tmp_path)
    Path("words").write_text("a X\nb Y\n\nb X\na Y\nc X\n\n" * 5)
    Path("others").write_text("a X\n\n")
    command = "--train words --columns form,tag --epochs 4"
    assert ran(f"tag whole {command} -q").code == 0
    monkeypatch.setattr(Bar, "__call__", interrupt)
    got = ran(f"tag half {command}")
    assert (got.code, got.stdout) == (130, "")
    advice = "interrupted\nhalf has what was learned so far; the same command with --resume continues exactly there\n"
    assert got.stderr.endswith(advice)
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    assert "interrupted; --resume continues there" in ran("info half").stdout
    assert ran("tag half --test words --columns form,tag --json").code == 0
    got = ran("tag half --train others --columns form,tag --resume")
    assert got.code == 3
    assert got.stderr.startswith("error: these are not the examples that the interrupted training learned from and was")
    assert ran(f"tag half {command} --resume --seed 1").stderr == "error: --seed 1: the interrupted training has 0\n"
    got = ran("tag half --train words --columns form,tag --epochs 1 --resume")
    assert got.stderr == "error: --epochs must be at least the 2 epochs that are done; got 1\n"
    got = ran(f"tag half {command} --resume")
    assert got.stdout == "half: 2 tags, trained on 10 sentences, 25 words\n"
    assert [line.split("  ")[0] for line in got.stderr.splitlines()] == ["epoch 3", "epoch 4", "stopped: max_iter"]
    one, other = (container.read(name) for name in ("whole", "half"))
    assert {name: array.tobytes() for name, array in one[1].items()} == {
        name: array.tobytes() for name, array in other[1].items()
    }


def test_what_is_interrupted_before_an_epoch_is_done_saves_nothing(tmp_path, monkeypatch):
    from rosenblatt.structured import SequenceTagger

    def nothing(tagger, X, y, *validation):
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(SequenceTagger, "fit", nothing)
    Path("words").write_text("a X\nb Y\n\n")
    got = ran("tag none --train words --columns form,tag --epochs 1")
    assert (got.code, got.stderr) == (130, "interrupted before anything was learned\n")
    assert not Path("none").exists()


TREES = "".join(
    f"1\t{noun}\t_\tNOUN\t_\t_\t2\tnsubj\t_\t_\n2\t{verb}\t_\tVERB\t_\t_\t0\troot\t_\t_\n\n"
    for noun, verb in (("dogs", "bark"), ("cats", "sleep"), ("birds", "sing"), ("dogs", "sleep"))
)


def model_content(path):
    """All that a model file says, but times."""
    from rosenblatt.modelfile import container

    facts, arrays = container.read(path)
    for part in (facts, *facts.get("parts", {}).values()):
        for name in ("history", "saved"):
            part.pop(name, None)
    return facts, {name: array.tobytes() for name, array in arrays.items()}


@pytest.mark.parametrize("options", ["", "--no-taggers", "--no-taggers --crossing"])
def test_an_interrupted_parser_is_saved_and_resumes_to_the_same_model(options, tmp_path, monkeypatch):
    from rosenblatt.structured.graph.parser import GraphTrainer
    from rosenblatt.structured.transition.parser import TransitionTrainer

    monkeypatch.chdir(tmp_path)
    Path("trees").write_text(TREES)
    train = f"--train trees --tags upos --epochs 3 -q {options}"
    assert ran(f"parse whole {train}").code == 0
    with monkeypatch.context() as patched:
        for kind in (GraphTrainer, TransitionTrainer):
            epoch = kind.epoch
            patched.setattr(
                kind, "epoch", lambda self, *a, epoch=epoch: (epoch(self, *a), os.kill(os.getpid(), signal.SIGINT))[0]
            )
        got = ran(f"parse half {train}")
    assert (got.code, got.stdout) == (130, "")
    assert "half has what was learned so far; the same command with --resume continues exactly there" in got.stderr
    assert ("the taggers are trained, and the parser in 1 of 3 epochs" in got.stderr) == (not options)
    assert ran("parse half --test trees -q").code == 0
    assert re.search(r"interrupted.*--resume", ran("info half").stdout)
    got = ran(f"parse half {train} --resume --seed 7")
    assert (got.code, got.stderr) == (
        2, "error: --seed: the interrupted training was begun without it, or with another value\n"
    )  # fmt: skip
    assert ran(f"parse half {train} --resume").code == 0
    assert model_content("half") == model_content("whole")
    assert ran(f"parse half {train} --resume").stderr.startswith("error: only an interrupted training can resume")


def test_taggers_that_were_trained_before_an_interrupt_are_kept(tmp_path, monkeypatch):
    from rosenblatt.structured import SequenceTagger

    monkeypatch.chdir(tmp_path)
    Path("trees").write_text(TREES)
    train, fit, calls = "--train trees --tags upos --epochs 2 -q", SequenceTagger.fit, []

    def interrupted(self, *data, **more):
        calls.append(self)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return fit(self, *data, **more)

    with monkeypatch.context() as patched:
        patched.setattr(SequenceTagger, "fit", interrupted)
        got = ran(f"parse half {train}")
    assert got.code == 130
    assert got.stderr.endswith("0 of 1 taggers are trained, and the parser has not begun\n")
    assert "interrupted while the taggers were trained" in ran("info half").stdout
    for use in ("parse half --test trees", "parse half trees", "parse new --train trees --from half"):
        got = ran(use)
        assert (got.code, got.stderr) == (
            4,
            "error: half: its training was interrupted while the taggers were trained, and there is no parser yet\n"
            "try: the command that trained it, with --resume\n",
        )
    assert ran(f"parse half {train} --resume").code == 0
    assert ran(f"parse whole {train}").code == 0
    assert model_content("half") == model_content("whole")


def test_an_interrupt_while_the_model_is_saved_lets_the_file_be_finished(tmp_path, monkeypatch):
    from rosenblatt.modelfile import container

    monkeypatch.chdir(tmp_path)
    Path("trees").write_text(TREES)
    write = container.write
    monkeypatch.setattr(container, "write", lambda *parts: (os.kill(os.getpid(), signal.SIGINT), write(*parts))[1])
    assert ran("parse done --train trees --tags upos --no-taggers --epochs 1 -q").code == 0
    assert ran("parse done --test trees").code == 0


@pytest.mark.parametrize("options", ["", "--no-taggers"])
def test_a_parser_starts_from_the_weights_of_another(options, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("trees").write_text(TREES)
    Path("more").write_text(TREES.replace("nsubj", "agent").replace("dogs", "zebras"))
    assert ran(f"parse old --train trees --tags upos -q {options}").code == 0
    got = ran("parse new --train more --from old --test more --json -q")
    assert (got.code, got.stderr) == (0, "")
    assert '"labels": ["nsubj", "root", "agent"]' in got.stdout
    assert '"las": 1.0' in got.stdout
    got = ran("parse new --train more --from old --beam 4")
    assert (got.code, got.stderr) == (2, "error: --beam: old keeps its kind of parser, its tags and its taggers\n")
    assert ran("parse new --train more --from old --resume").code == 2
    assert ran("parse new more --from old").stderr == "error: --from: it has no effect without --train\n"


EVERY_RESULT = (
    "--help", "--version", "train rows.svm", "train rows.svm --json", "predict rows.model rows.svm",
    "predict rows.model rows.svm --json", "evaluate rows.model rows.svm", "evaluate rows.svm --folds 2 --json",
    "explain rows.model", "info rows.model", "info rows.model --json", "convert rows.model -",
    "convert rows.svm - --to svmlight", "tag tag.model words --columns form,tag",
    "tag tag.model --test words --columns form,tag --json",
    "certify rows.svm", "feasible matrix", "trace", "trace --json", "doctor",
    "count code.py::total", "count code.py::total --json",
    "serve served --check", "serve served --check --json", "backup served copy",
    "token add folder --scope predict", "token list folder", "token list folder --json",
)  # fmt: skip


@pytest.fixture
def every_input(tmp_path, monkeypatch):
    """A folder with what the commands of EVERY_RESULT read."""
    monkeypatch.chdir(tmp_path)
    Path("rows.svm").write_text("1 1:1\n-1 2:1\n" * 3)
    Path("words").write_text("a X\nb Y\n\n")
    Path("matrix").write_text("1 0\n0 1\n")
    Path("code.py").write_text("def total(numbers):\n    return numbers[0] + 1\n")
    with Log(Path("served")) as log:
        log.begin_writing()
    assert ran("train rows.svm -q").code == 0
    assert ran("tag tag.model --train words --columns form,tag --epochs 1 -q").code == 0


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_result_that_cannot_be_written_is_said_by_every_command(unbuffered, every_input):
    # parse is as tag, bench as doctor, and lab does not end
    assert {command.split()[0] for command in EVERY_RESULT} >= app.COMMANDS.keys() - {"parse", "bench", "lab"}
    code = (
        "import shlex, sys; from rosenblatt.cli import main\n"
        "for command in sys.argv[1:]:\n"
        "    sys.stdout = sys.__stdout__; print(main(shlex.split(command + ' -q' * (command[0] != '-'))), file=sys.stderr)"
    )
    with open("/dev/full", "w") as full:
        ended = subprocess.run(
            [sys.executable, "-c", code, *EVERY_RESULT], stdout=full, stderr=subprocess.PIPE, text=True, timeout=300,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        )  # fmt: skip
    said = re.findall("error: <stdout>: the disk is full\n5\n", ended.stderr)
    assert len(said) == len(EVERY_RESULT), ended.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
def test_a_stderr_that_cannot_be_written_is_no_error(every_input):
    with open("/dev/full", "w") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "rosenblatt", "train", "rows.svm"], stdout=subprocess.PIPE, stderr=full, timeout=120
        )
    assert ended.returncode == 0
    assert ended.stdout.startswith(b"rows.model: Perceptron")


def test_a_short_write_is_continued_until_all_is_written_or_it_is_an_error(tmp_path):
    script = (
        "import resource, sys; from rosenblatt.cli.output import open_stdout\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"  # the first 1000 bytes are taken, as by a full disk
        "out = open_stdout(); out.write('x' * 600); out.flush()\n"
        "try:\n    out.buffer.write(b'y' * 600); out.flush()\n"
        "except OSError as error:\n    sys.exit(error.problem)\n"
    )
    for flags in ([], ["-u"]):
        with open(tmp_path / "short", "w") as short:
            ended = subprocess.run(
                [sys.executable, *flags, "-c", script], stdout=short, stderr=subprocess.PIPE, text=True, timeout=60
            )
        assert (ended.returncode, ended.stderr) == (1, "cannot be written: File too large\n")
        assert (tmp_path / "short").stat().st_size == 1000


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_slow_reader_of_a_pipe_that_does_not_block_gets_every_line(unbuffered, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("rows.svm").write_text("1 1:1\n-1 2:1\n" * 30_000)
    assert ran("train rows.svm -q --passes 1").code == 0
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    command = [sys.executable, "-m", "rosenblatt", "predict", "rows.model", "rows.svm", "-q"]
    with subprocess.Popen(command, stdout=writing, env={**os.environ, "PYTHONUNBUFFERED": unbuffered}) as running:
        os.close(writing)
        with open(reading) as pipe:
            time.sleep(1)
            found = pipe.read()
        assert running.wait(timeout=60) == 0
    assert found == "1\n-1\n" * 30_000


@pytest.fixture
def slow_pipe(tmp_path, monkeypatch):
    """Starts a command that reads a pipe, and gives what asks it: lines in, its answer out."""
    monkeypatch.chdir(tmp_path)
    held = []

    def start(command):
        running = subprocess.Popen(
            [sys.executable, "-m", "rosenblatt", *shlex.split(command)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        held.append(running)

        def ask(lines, ends, seconds=60):
            running.stdin.write(lines.encode())
            running.stdin.flush()
            found, until = b"", time.monotonic() + seconds
            while (not found or not found.endswith(ends.encode())) and time.monotonic() < until:
                if select.select([running.stdout], [], [], 1)[0]:
                    found += os.read(running.stdout.fileno(), 1 << 16)
            return found.decode()

        return ask

    yield start
    for running in held:
        running.stdin.close()
        assert (running.stdout.read(), running.wait(timeout=60)) == (b"", 0)
        running.stdout.close()


ROWS = {
    "rows.svm": ("1 1:1\n-1 2:1\n", "1:1\n", "1 2:1\n", {}),
    "rows.vw": ("1 |a x\n-1 |a y\n", "|a x\n", "1 |a y\n", {}),
    "rows.csv": ("label,age,size\n1,30,3\n-1,20,2\n", "label,age,size\n1,30,3\n", ",20,2\n", {}),
    "text.tsv": ("1\tgood good day\n-1\tbad bad night\n", "good\n", "bad\n", "--no-header --target 0 --text 1"),
    "rows.jsonl": ('{"y": 1, "age": 30}\n{"y": -1, "age": 20}\n', '{"age": 30}\n', '{"age": 20}\n', {}),
}


@pytest.mark.parametrize("name", ROWS)
def test_each_line_of_a_slow_pipe_is_answered_before_the_next(name, slow_pipe):
    rows, good, bad, options = ROWS[name]
    head, _, rows = rows.rpartition("size\n")
    Path(name).write_text(f"{head}size\n{rows * 4}" if head else rows * 4)
    assert ran(f"train {name} -q --model m {options or ''}").code == 0
    ask = slow_pipe("predict m - -q" + " --json" * (name == "rows.svm"))
    json = name == "rows.svm"
    assert ask(good, "\n").startswith('{"label": "1", ' if json else "1\n")
    assert ask(bad, "\n").startswith('{"label": "-1", ' if json else "-1\n")
    more = bad + good.splitlines()[-1]  # a line and the beginning of one
    assert ask(more, "\n").count("\n") == 1
    assert ask("\n", "\n").count("\n") == 1


def test_the_header_of_a_slow_pipe_is_written_before_its_first_row(slow_pipe):
    Path("rows.csv").write_text("label,age\n" + "1,30\n-1,20\n" * 4)
    assert ran("train rows.csv -q --model m").code == 0
    ask = slow_pipe("predict m - -q --append")
    assert ask("age,name\n", "", 1) == ""
    assert ask('30,"a\n', "", 1) == ""
    assert ask('b"\n', "1\n") == 'age,name,predicted\n30,"a\nb",1\n'
    assert ask("20,c\n", "1\n") == "20,c,-1\n"


@pytest.mark.parametrize("columns", [False, True])
def test_each_sentence_of_a_slow_pipe_is_answered_before_the_next(columns, slow_pipe):
    Path("words").write_text("a X\nb Y\n\n")
    assert ran("tag tag.model --train words --columns form,upos --epochs 3 -q").code == 0
    ask = slow_pipe("tag tag.model - -q" + " --columns form" * columns)
    for _ in range(2):
        assert ask("b\na\n\n" if columns else "b a\n", "\n\n").count("\tX" if not columns else " X") == 1


def test_closed_streams_are_no_bug():
    code = "import sys; sys.stdin = sys.stderr = None; from rosenblatt.cli import main; sys.exit(main(['trace']))"
    assert subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL, timeout=120).returncode == 0
    closed = code.replace("sys.stdin", "sys.stdout = sys.stdin")
    assert subprocess.run([sys.executable, "-c", closed], timeout=120).returncode == Code.OUTPUT


def test_an_interrupted_training_is_said_even_in_quiet(tmp_path, monkeypatch):
    from contextlib import nullcontext

    from rosenblatt.workflow import training

    monkeypatch.chdir(tmp_path)
    Path("rows.svm").write_text("1 1:1\n-1 2:1\n" * 3)
    with monkeypatch.context() as patched:
        patched.setattr(training, "interrupts_held", lambda: nullcontext([2]))
        got = ran("train rows.svm -q")
    assert (got.code, got.stdout) == (130, "")
    assert "rows.model has what was learned so far" in got.stderr
    assert re.search(r"^stopped +interrupted in pass 1 after 1 of its rows$", ran("info rows.model").stdout, re.MULTILINE)
    for wrong in ("--learner arow", "--set margin=2"):
        assert ran(f"train rows.svm -q --resume {wrong}").code == 2
    assert ran("train rows.svm -q --resume").code == 0


def test_rows_left_out_are_counted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("rows.svm").write_text("1 1:1\n-1 2:1\n" * 3)
    Path("bad.svm").write_text("1 1:1\n-1 x\n-1 2:1\n")
    ran("train rows.svm -q")
    left_out = "1 row that could not be read was left out\n"
    assert ran("predict rows.model bad.svm --skip-errors") == (0, "1\n-1\n", left_out)
    got = ran("evaluate rows.model bad.svm --skip-errors --json")
    assert got.stderr == left_out
    Path("last.svm").write_text("1 1:1\n-1 2:1\n-1 x")  # the last line has no end, and is a piece of its own
    assert ran("predict rows.model last.svm --skip-errors") == (0, "1\n-1\n", left_out)
    assert '"skipped": 1' in ran("evaluate rows.model last.svm --skip-errors --json").stdout
    assert '"skipped": 1' in got.stdout


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (("training", "history"), "abc"),
        (("training", "files"), ["x"]),
        (("parts", "learner", "classes"), {"values": 5}),
        (("parts", "reading", "facts"), {"schema": {"columns": [1]}}),
    ],
)
def test_odd_facts_are_an_unreadable_model(where, value, monkeypatch):
    from rosenblatt.modelfile import container

    facts = {"learner": "FileModel", "parts": {"learner": {"learner": "Perceptron"}, "reading": {}}, "training": {}}
    inner = facts
    for name in where[:-1]:
        inner = inner[name]
    inner[where[-1]] = value
    monkeypatch.setattr(container, "facts", lambda path: facts)
    got = ran(f"info {shlex.quote(__file__)}")
    assert (got.code, got.stdout) == (4, "")
    assert "damaged" in got.stderr


def test_counts_keep_their_names(tmp_path, monkeypatch):
    import rosenblatt

    monkeypatch.chdir(tmp_path)
    rosenblatt.Perceptron().fit([[0.0, 1.0], [1.0, 0.0]], [0, 1]).save("plain.model")
    assert re.search(r"^counted .*\bseen \d+", ran("info plain.model -q").stdout, re.MULTILINE)


def test_help_is_in_whole_sentences():
    for name in app.COMMANDS:
        command = typer.main.get_command(app.app).get_command(None, name)
        for parameter in command.params:
            where = f"{parameter.name} of {name}: {parameter.help}"
            assert re.fullmatch(r"[A-Z].*\.", parameter.help), where
            assert len(parameter.help.split()) >= 2, where
            assert not re.search(r"\belse (detected|by)\b|same seed, same|\bor not\.", parameter.help), where


def test_usage_shows_names_for_values():
    for name in app.COMMANDS:
        said = ran(f"{name} --help").stdout
        assert not re.search(r"\.\.\.\W*\.\.\.|<\w+( range|\[)", said), name
        assert "INTEGER" not in said, name
    assert options.complete_learner("pass") == ["PassiveAggressiveClassifier", "PassiveAggressiveRegressor"]


# Errors


class Unforeseen(Exception):
    pass


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (FileNotFoundError(errno.ENOENT, "No such file or directory", "a.svm"), Code.INPUT, "a.svm: there is no such file"),
        (IsADirectoryError(errno.EISDIR, "Is a directory", "data"), Code.INPUT, "data: it is a folder, not a file"),
        (PermissionError(errno.EACCES, "Permission denied", "a"), Code.INPUT, "a: permission denied"),
        (OSError(errno.ENOSPC, "No space left on device"), Code.OUTPUT, "the disk is full"),
        (FileNotFoundError("no file matches *.svm"), Code.INPUT, "no file matches *.svm"),
        (MemoryError(), Code.INPUT, "there is not enough memory"),
        (errors.Failure("the model has 3 columns", Code.MODEL), Code.MODEL, "the model has 3 columns"),
        (library_errors.MissingDependency("pyarrow", "tables", "tables"), Code.USAGE, "tables need the package pyarrow"),
        (library_errors.GpuUnavailable("no driver", "cuda"), Code.USAGE, "the GPU cuda cannot be used: no driver"),
        (library_errors.NotEnoughGpuMemory(8, 4, "rows"), Code.INPUT, "rows need 8 bytes on the GPU"),
        (
            library_errors.InvalidParameter("hashing", 99, "at most 30"),
            Code.USAGE,
            "--hash-bits must be at most 30; got 99",
        ),
        (library_errors.UnsupportedOperation("it cannot stream"), Code.USAGE, "it cannot stream"),
        (library_errors.UnknownLabel("d", ["a", "b"]), Code.INPUT, "the label 'd' is not one of the known classes"),
        (
            library_errors.FormatError("no number", path="a.csv", line=3, column="age"),
            Code.INPUT,
            "a.csv, line 3, column 'age': no number",
        ),
        (library_errors.UnreadableModel("it is damaged", path="m"), Code.MODEL, "m: it is damaged"),
        (library_errors.UnreadableCertificate("no proof"), Code.INPUT, "no proof"),
        (library_errors.OutputError("it is a folder", "out"), Code.OUTPUT, "out: it is a folder"),
        (ImportError("cannot import name 'x'", name="rosenblatt"), Code.BUG, "this is a bug in rosenblatt: ImportError"),
        (KeyboardInterrupt(), Code.INTERRUPTED, "interrupted"),
        (Unforeseen("a\nb"), Code.BUG, "this is a bug in rosenblatt: Unforeseen: a b"),
        (KeyError("x"), Code.BUG, "bug"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_each_error_has_its_code_and_its_line(error, code, words, monkeypatch):
    monkeypatch.delenv("ROSENBLATT_DEBUG", raising=False)
    with streams() as held:
        assert errors.report(error) == code
    said = held["stderr"].buffer.getvalue().decode()
    assert words in said.splitlines()[0]
    assert "Traceback" not in said


def test_errors_of_the_library_have_their_codes():
    from rosenblatt.data import conllu
    from rosenblatt.theory import separability
    from rosenblatt.workflow import Options, make_learner

    def code(call):
        with pytest.raises(Exception) as caught:  # noqa: PT011
            call()
        return errors.exit_code(caught.value)

    assert code(lambda: list(conllu.parse("1\ta\n\n"))) is Code.INPUT
    assert code(lambda: separability([[float("nan")]], [1])) is Code.INPUT
    assert code(lambda: Options(passes=0)) is Code.USAGE
    assert code(lambda: make_learner("perzeptron")) is Code.USAGE


def test_debugging_shows_the_traceback(monkeypatch):
    monkeypatch.setenv("ROSENBLATT_DEBUG", "1")
    with streams() as held:
        errors.report(Unforeseen("here"))
    assert (
        "Traceback" in held["stderr"].buffer.getvalue().decode()
        or "Unforeseen: here" in held["stderr"].buffer.getvalue().decode()
    )


def cut_short():
    noise = "".join(f"{i * i % 97} {i * i * i % 89}\n" for i in range(5000))
    return gzip.compress(noise.encode())[:2000]


TROUBLES = {
    "nowhere": None,
    "a folder": "folder",
    "empty": b"",
    "garbage": bytes(range(256)) * 40,
    "cut.gz": cut_short(),
}


@pytest.mark.parametrize("trouble", TROUBLES)
@pytest.mark.parametrize(
    "command",
    [
        "certify '{}' --format csv --target y -o kept",
        "certify '{}' --format svmlight -o kept",
        "certify good.svm --check '{}'",
        "feasible '{}' -o kept",
        "feasible good.csv --check '{}'",
        "trace '{}' --format svmlight",
        "tag tagger --train '{}'",
        "tag '{}' good.csv -o kept",
        "parse '{}' good.csv -o kept",
        "train '{}' --format svmlight --model model",
        "predict '{}' good.svm",
        "evaluate '{}' good.svm",
        "info '{}'",
    ],
)
def test_a_file_that_cannot_be_read_is_one_line_and_harms_nothing(command, trouble, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    content = TROUBLES[trouble]
    if content == "folder":
        Path(trouble).mkdir()
    elif content is not None:
        Path(trouble).write_bytes(content)
    Path("good.csv").write_text("1 2\n3 4\n")
    Path("good.svm").write_text("1 1:1\n-1 1:-1\n")
    Path("kept").write_text("kept")
    before = {path.name for path in tmp_path.iterdir()}
    got = ran(command.format(trouble))
    assert got.code in (Code.INPUT, Code.MODEL), got
    assert got.stdout == ""
    assert got.stderr.startswith("error: ")
    assert "Traceback" not in got.stderr
    assert len(got.stderr.splitlines()) <= 2
    assert Path("kept").read_text() == "kept"
    assert {path.name for path in tmp_path.iterdir()} == before


# The console


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_is_one_line_on_a_terminal_and_rare_lines_elsewhere():
    times = iter([0.0, 0.0, 0.01, 1.0, 40.0])
    line = console.Progress(screen := Terminal(), 200, "words", lambda: next(times))
    for done in (0, 1, 100):
        line.update(done, mistakes=0.25)
    line.close()
    shown = screen.getvalue()
    assert "\n" not in shown
    assert shown.endswith("\r\x1b[K")
    assert " 50%  100 of 200 words  100/s  mistakes 25.00%" in shown
    times = iter([0.0, 1.0, 40.0])
    line = console.Progress(log := io.StringIO(), None, "words", lambda: next(times))
    line.update(1)
    line.update(80)
    line.close()
    assert log.getvalue() == "80 words  2.00/s\n"


def test_the_progressive_table_doubles():
    ticks = iter(range(100))
    table = console.Progressive(log := io.StringIO(), clock=lambda: next(ticks))
    for examples, mistakes in [(1, 1), (2, 1), (3, 2), (4, 2), (5, 2), (8, 3), (9, 4)]:
        table.update(examples, mistakes)
    table.close()
    rows = [line.split() for line in log.getvalue().splitlines()[1:]]
    assert [row[2:4] for row in rows] == [["1", "1"], ["2", "1"], ["4", "2"], ["8", "3"], ["9", "4"]]
    assert rows[-2][:2] == ["0.3750", "0.2500"]


def test_tables_align():
    assert console.table(["name", "n", "share"], [["a", 1, "5.0 %"], ["bcd", 1000, "12.0 %"]]).splitlines() == [
        "name      n   share",
        "a         1   5.0 %",
        "bcd   1,000  12.0 %",
    ]
    assert console.table(["id", "n"], [["80015432", "7"]]).splitlines()[0].startswith("id "), "an id is text"


def test_json_has_no_nan():
    with streams() as held:
        console.Console(json=True).result({"a": float("nan"), "b": (1, 2.5), "γ": None}, "text")
    assert held["stdout"].buffer.getvalue().decode() == '{"a": null, "b": [1, 2.5], "γ": null}\n'


def test_json_is_json_where_letters_have_no_bytes():
    latin = io.TextIOWrapper(io.BytesIO(), "latin-1", errors="backslashreplace")
    assert console.as_json({"γ": "€"}, latin) == '{"\\u03b3": "\\u20ac"}'
    assert console.as_json({"γ": "€"}, io.TextIOWrapper(io.BytesIO(), "utf-8")) == '{"γ": "€"}'


def test_a_result_is_as_wide_as_the_terminal(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = [f"word{number}" for number in range(40)]
    Path("mail.tsv").write_text("".join(f"{'ham' if i % 2 else 'spam'}\t{' '.join(words[i % 2 :: 2])}\n" for i in range(8)))
    got = ran("train mail.tsv --target 0 --text 1 -q --top 30")
    lines = got.stdout.splitlines()
    assert max(map(len, lines)) <= 100
    at = next(i for i, line in enumerate(lines) if line.startswith("top features of ham"))
    assert lines[at + 1].startswith("  word")
    assert all(
        re.fullmatch(r"(top features of \w+:)?( .*? [\d.]+,?)+", line.rstrip()) for line in lines[at:]
    )  # name and number together

    monkeypatch.setattr("rosenblatt.cli.evaluate.width", lambda: 20)
    assert "true \\ predicted" not in ran("evaluate mail.model mail.tsv").stdout


def test_a_link_to_an_input_is_the_input(tmp_path):
    (tmp_path / "data").write_text("x")
    (tmp_path / "soft").symlink_to(tmp_path / "data")
    os.link(tmp_path / "data", tmp_path / "hard")
    for name in ("soft", "hard", "data"):
        with pytest.raises(errors.Failure) as caught:
            files.check_writable(tmp_path / name, "-", "nowhere", str(tmp_path / "data"))
        assert caught.value.code is Code.USAGE
    files.check_writable("-", "-")


@pytest.mark.parametrize(
    ("error", "text", "hint"),
    [
        (library_errors.InvalidParameter("ngrams", (3, 1), "LOW ≤ HIGH"), "--ngrams must be LOW ≤ HIGH; got (3, 1)", None),
        (library_errors.InvalidParameter("margin", -1, "≥ 0"), "margin must be ≥ 0; got -1", None),
        (library_errors.InvalidParameter("stream", True, "False"), "--stream must be False; got True", None),
        (library_errors.IncompatibleParameters(("holdout", 0.2), ("stream", True), "why", settings={"stream": False}),
         "--holdout 0.2 and --stream cannot be used together: why", "--load"),
        (library_errors.InvalidData("a hole", settings={"missing": "fill", "on_error": "skip"}),
         "a hole", "--missing fill or --skip-errors"),
        (library_errors.InvalidData("a hole", settings={"one_hot_limit": 9, "hashing": 18}, hint="ignore it"),
         "a hole", "ignore it; --hash-bits 18"),
        (library_errors.InvalidData("names", settings={"header": False}), "names", "--no-header"),
        (library_errors.UnsupportedOperation("which?", settings={"classes": ["A", "B"]}), "which?", "--classes A,B"),
        (library_errors.InvalidData("few", settings={"min_count": 1}), "few", None),
        (library_errors.InvalidData("words", settings={"text": True}), "words", None),
        (library_errors.InvalidData("words", settings={"text": ["a"]}), "words", "--text a"),
    ],
)  # fmt: skip
def test_errors_of_the_library_are_shown_with_options(error, text, hint):
    assert errors.describe(error)[1:] == (text, hint)


def test_what_cannot_be_written_is_refused_before_the_work(tmp_path):
    files.check_writable(tmp_path / "new")
    for path in (tmp_path, tmp_path / "missing" / "new"):
        with pytest.raises(library_errors.OutputError):
            files.check_writable(path)


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """A folder with data, models, and things that are neither."""
    folder = tmp_path_factory.mktemp("places")
    with chdir(folder):
        Path("rows.csv").write_text("label,a,b\nx,1,2\ny,3,4\nx,2,2\ny,5,4\n")
        Path("nolabel.csv").write_text("q,a,b\nx,1,2\ny,3,4\n")
        Path("big.svm").write_text("# a comment\n1 1:1\n\n-1 1:1e308 2:1e308\n1 1:1e308 2:1e308\n-1 1:1e308 2:1e308\n")
        Path("big.csv").write_text("label,a,b\nx,1,2\ny,1e308,1e308\nx,1e308,1e308\n")
        os.symlink("loop", "loop")
        os.mkdir("folder")
        assert app.run(["train", "rows.csv", "-q", "-m", "good.model"]) == Code.DONE
        content = Path("good.model").read_bytes()
        Path("damaged.model").write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        Path("short.model").write_bytes(content[:100])
    return folder


EXIT_CODES = [
    ("train rows.csv --resume -m damaged.model", Code.MODEL, "damaged.model: the file is damaged"),
    ("train rows.csv --resume -m none.model", Code.MODEL, "none.model: there is no such file"),
    ("train rows.csv --resume -m good.model", Code.USAGE, "only an interrupted training can resume"),
    ("train rows.csv --from damaged.model -m o.model", Code.MODEL, "damaged.model: the file is damaged"),
    ("train rows.csv --from loop -m o.model", Code.MODEL, "loop: its symbolic links form a loop"),
    ("train rows.csv -m short.model", Code.OUTPUT, "is not a model; it is not replaced"),
    ("train nolabel.csv -m o.model", Code.USAGE, "which column is the label?"),
    ("train rows.csv --target zzz -m o.model", Code.USAGE, "there is no column 'zzz'"),
    ("train rows.csv --target 7 -m o.model", Code.USAGE, "there is no column number 7"),
    ("train loop -m o.model", Code.INPUT, "loop: its symbolic links form a loop"),
    ("train loop --format csv -m o.model", Code.INPUT, "loop: its symbolic links form a loop"),
    ("train folder -m o.model", Code.INPUT, "there are no files in the folder"),
    ("train none.csv -m o.model", Code.INPUT, "there is no file"),
    ("train rows.csv/x -m o.model", Code.INPUT, "there is no file"),
    ("train /dev/null --format csv -m o.model", Code.INPUT, "there are no rows"),
    ("train rows.csv -q -m /dev/null", Code.DONE, ""),
    ("train rows.csv -q -m /dev/full", Code.OUTPUT, "the disk is full"),
    ("train rows.csv -m loop", Code.OUTPUT, "loop: cannot be written"),
    ("train rows.csv -m folder", Code.OUTPUT, "this is a folder, not a file"),
    ("train rows.csv -m none/o.model", Code.OUTPUT, "there is no folder"),
    ("train big.svm -m o.model -q --order cyclic", Code.INPUT, "big.svm, line 5: weights or scores overflowed"),
    (
        "train big.csv -m o.model -q --order cyclic --scale none",
        Code.INPUT,
        "big.csv, line 3: weights or scores",
    ),
    ("trace big.svm", Code.INPUT, "the squared length of row 1 of X overflows"),
    ("predict loop rows.csv", Code.MODEL, "loop: its symbolic links form a loop"),
    ("predict folder rows.csv", Code.MODEL, "folder: it is a folder, not a file"),
    ("predict short.model rows.csv", Code.MODEL, "does not begin as one"),
    ("predict /dev/null rows.csv", Code.MODEL, "does not begin as one"),
    ("predict good.model loop", Code.INPUT, "loop: its symbolic links form a loop"),
    ("predict good.model rows.csv -o loop", Code.OUTPUT, "loop: cannot be written"),
    ("predict good.model rows.csv -o folder", Code.OUTPUT, "this is a folder, not a file"),
    ("evaluate good.model none.csv", Code.INPUT, "there is no file"),
    ("info damaged.model", Code.DONE, ""),
    ("info loop", Code.MODEL, "loop: its symbolic links form a loop"),
    ("explain short.model", Code.MODEL, "does not begin as one"),
    ("tag good.model rows.csv", Code.MODEL, "it holds a FileModel"),
    ("certify loop", Code.INPUT, "loop: its symbolic links form a loop"),
    ("feasible folder", Code.INPUT, "folder"),
]


@pytest.mark.parametrize(("command", "code", "message"), EXIT_CODES, ids=[command for command, _, _ in EXIT_CODES])
def test_exit_codes_are_those_of_the_documentation(places, command, code, message, capfd):
    with chdir(places):
        assert app.run(command.split()) == code
    assert message in " ".join(capfd.readouterr().err.split())


def test_training_twice_on_the_command_line_gives_the_same_bytes(places, tmp_path):
    for name in "12":
        with chdir(places):
            assert app.run(["train", "rows.csv", "-q", "-m", str(tmp_path / name)]) == Code.DONE
        time.sleep(0.01)
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()
