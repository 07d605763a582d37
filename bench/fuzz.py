"""Whatever a file holds, reading it ends in rows, a model, or an error of the library; never in a crash, a hang or a word
of Python, and never in more than 1 GiB of memory.

    make fuzz                                # 20,000 files
    python -m bench.fuzz --files 500 --seed 1

Files are valid ones of every format and the golden models of the tests, changed at random: bytes flipped, cut off,
repeated, replaced by numbers and marks that formats care about; models also fact by fact and array by array. A process for
each core reads them, trains or predicts, and tells the time and the memory that it took; one that dies, or does not answer,
is known by the number of its file and replaced. Where a file makes numba compile, a new process, which finds the kernels in
the cache, reads it again: compiling takes more time and memory than any file may. A file that goes wrong is kept.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import faulthandler
import io
import json
import multiprocessing
import os
import random
import re
import resource
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import safetensors.numpy
from numba.core import event

import rosenblatt
from rosenblatt.data import columns, conllu, matrix, sentences
from rosenblatt.data.compression import SUFFIXES
from rosenblatt.data.formats import reading_for
from rosenblatt.errors import RosenblattError
from rosenblatt.exact import documents
from rosenblatt.exact.certificates import Combination, Interior
from rosenblatt.modelfile import container
from rosenblatt.workflow import Options, make_learner, train, training

LIMIT = 20  # seconds for a file
LIMIT_COMPILING = 300  # seconds for one that makes numba compile
MEMORY = 1 << 30  # bytes for a process
MACHINE = 1 << 29  # bytes that training believes the machine has: it refuses weights that need more
GOLDEN = Path(__file__).parents[1] / "tests" / "golden"
PYTHON = re.compile(
    r"KeyError|TypeError|AttributeError|IndexError|ValueError|OverflowError|unexpected keyword|NoneType|index out of range"
    r"|positional arg|required arg|object is not|object has no|object at 0x|not iterable|to unpack|not subscriptable"
    r"|not supported between|list ind|codec can't|recursion|Exceeds the limit|Fraction\(| at at "
    r"|<class|dtype\(|np\.\w+\(|array\(|broadcast|Traceback|bug in rosenblatt"
)  # words of Python that no message may have
TABLE = 'label,n,colour,text\na,1,red,see you\nb,-2.5e3,blue,"a prize, now"\na,3,red,see me\nb,4,blue,"two\nlines"\n'
JSON = '{"label":"a","n":1,"t":"see you"}\n{"label":"b","n":2.5,"t":"a prize"}\n{"label":"a","n":-3,"t":"\\u00e9 é"}\n'
CONLLU = (
    "# text = a dog\n1-2\ta\t_\t_\t_\t_\t_\t_\t_\t_\n1\ta\ta\tDET\t_\t_\t2\tdet\t_\t_\n"
    "2\tdog\tdog\tNOUN\t_\t_\t0\troot\t_\t_\n\n"
    "1\tbarks\tbark\tVERB\t_\t_\t0\troot\t_\t_\n1.1\tx\t_\t_\t_\t_\t_\t_\t_\t_\n\n"
)
CERTIFICATE = (
    '{"what": "certificate of rosenblatt", "format": 1, "question": "separability", "rows": 4,\n"certificates": '
    '{"interior": {"x": ["-3/4", "0x400000000000000000"]}, "combination": {"rows": [0, 3], "weights": [1, "0x40"]}}}'
)
ARRAY = np.lib.format.magic(1, 0) + b"v\0%-118b" % b"{'descr': '<f8', 'fortran_order': False, 'shape': (1, 2)}" + bytes(16)
ROWS_ARRAY = (  # 4 rows of 2 features and a label
    np.lib.format.magic(1, 0)
    + b"v\0%-118b" % b"{'descr': '<f4', 'fortran_order': False, 'shape': (4, 3)}"
    + np.array([[1, 2, 0], [-1, 0.5, 1], [3, 1, 0], [-2, 0, 1]], "<f4").tobytes()
)
COLUMNS = pa.table({"label": ["a", "b", "a"], "n": [1, 2.5, -3], "text": ["see you", "a prize", "é"]})


def columnar(format: str) -> bytes:
    """Return a table as Parquet or Arrow."""
    sink = io.BytesIO()
    if format == "parquet":
        pq.write_table(COLUMNS, sink)
    else:
        with pa.ipc.new_file(sink, COLUMNS.schema) as writer:
            writer.write_table(COLUMNS)
    return sink.getvalue()


SEEDS: dict[str, str | bytes] = {
    "a.csv": TABLE, "a.tsv": TABLE.replace(", now", "").replace("two\n", "two ").replace(",", "\t"),
    "a.jsonl": JSON, "a.conllu": CONLLU,
    "a.svm": "1 1:0.5 3:-2 # x\n-1 qid:3 2:1e-3\n+1 1:1 2:2 7:0\n-1 4:4\n",
    "a.vw": "1 2 'tag |f a:2 b |g c\n-1 |f b:0.5 d\n1 |f:3 a\n",
    "a.columns": "a DT B-NP\ndog NN I-NP\n\n-DOCSTART- X O\n\nbarks VB B-VP\n\n",
    "a.words": "a dog barks\n\nthe end\n", "a.matrix": "1 2/3 -4\n5,6,7e2\n",
    "a.parquet": columnar("parquet"), "a.arrow": columnar("arrow"), "a.npy": ARRAY, "a.rows.npy": ROWS_ARRAY,
    "a.certificate": CERTIFICATE,
    "a.json": '{"c":[1,"1/3"],"A_ub":[[1,2]],"b_ub":[3]}',
}  # fmt: skip
TABLES, ROWS = ("csv", "tsv", "jsonl", "parquet", "arrow"), ("svm", "vw")
PACKED = (".gz", ".bz2", ".xz", ".zst")
MARKS = [
    b"\0", b"\xff", b'"', b"\n", b"\r", b"\t", b",", b":", b"|", b"1e999", b"-1", b"9" * 400, b"[" * 3000, b"{", b"nan",
    b"#", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"30000000", b"18446744073709551616", b"\x1f\x8b\x08", b"\\ud800",
]  # fmt: skip
VALUES = [
    ..., None, True, "x", "", -1, 0, 3, 2**31, 2**61, 1.5, 1e300, [], {}, [1, 2], ["a", None], {"float": "nan"}, {"a": 1},
    "\ud800", [[]], [0] * 5000, "x" * 5000, ["a", "a"],
]  # fmt: skip
NUMBERS = [np.nan, np.inf, -np.inf, -1, 0, 1, 0.5, 7, 1e300, -1e300, 2**31, 2**62, -(2**62)]


class File(NamedTuple):
    """A file to read, and how."""

    name: str
    content: bytes
    on_error: str = "error"
    stream: bool = False
    fill: bool = False  # whether a table may have missing values, and has a column of text

    @property
    def kind(self) -> str:
        """What the counts call it."""
        return self.name if self.name.endswith(".model") else self.name.partition(".")[2]


class Outcome(NamedTuple):
    """What came of a file."""

    what: str  # "read", "refused", or what went wrong
    seconds: float
    memory: int  # bytes that the process had at most
    compiled: bool


def change(content: bytes, draw: random.Random) -> bytes:
    """Return the content with one to four changes."""
    for _ in range(draw.randint(1, 4)):
        at = draw.randrange(len(content) + 1)
        end = min(len(content), at + draw.choice((1, 1, 2, 8, 40)))
        kind = draw.randrange(6)
        if kind == 0 and at < len(content):
            content = content[:at] + bytes([content[at] ^ (1 << draw.randrange(8))]) + content[at + 1 :]
        elif kind == 1:
            content = content[:at]
        elif kind == 2:
            content = content[:at] + content[at:end] * draw.choice((2, 50, 2000)) + content[end:]
        elif kind == 3:
            content = content[:at] + content[end:]
        else:
            content = content[:at] + draw.choice(MARKS) + content[end if kind == 4 else at :]
    return content


def places(value: Any, path: tuple = ()) -> list[tuple]:
    """Return the paths to all values within a value of JSON."""
    keys = list(value) if isinstance(value, dict) else range(min(len(value), 6)) if isinstance(value, list) else ()
    return [path, *(place for key in keys for place in places(value[key], (*path, key)))]


def near(value: Any, draw: random.Random) -> Any:
    """Return another value of the same type, which a file could have."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return draw.choice((value + 1, value - 1, 2 * value, -value, 0, 1, 2))
    if isinstance(value, float):
        return draw.choice((value / 2, -value, 0.0, 1.0, 1e-300, 1e300))
    if isinstance(value, str):
        return draw.choice((value + "x", value[1:], value.upper(), value[::-1], "average", "Perceptron", "0"))
    if isinstance(value, list):
        return draw.choice((value[1:], value[::-1], value + value[:1], []))
    if isinstance(value, dict):
        return dict(list(value.items())[1:])
    return draw.choice((0, "x", []))


def change_value(whole: dict[str, Any], draw: random.Random) -> None:
    """Remove, rename or replace one of the values within a value of JSON."""
    *path, last = draw.choice([path for path in places(whole) if path] or [("new",)])
    inner: Any = whole
    for key in path:
        inner = inner[key]
    new = near(inner[last], draw) if path and draw.random() < 0.5 else draw.choice(VALUES)
    if new is ...:
        inner.pop(last, None) if isinstance(inner, dict) else inner.pop(last)
    elif draw.random() < 0.1 and isinstance(inner, dict) and last in inner:
        inner["renamed"] = inner.pop(last)
    else:
        inner[last] = copy.deepcopy(new)


def change_array(arrays: dict[str, Any], draw: random.Random) -> None:
    """Change numbers of an array, its shape, its type or its name, or remove it."""
    name = draw.choice(sorted(arrays))
    array = arrays[name].copy()
    kind = draw.randrange(7)
    if kind == 0:
        del arrays[name]
    elif kind == 1:
        arrays["renamed"] = arrays.pop(name)
    elif kind == 2:
        other = draw.choice(sorted(arrays))
        arrays[name], arrays[other] = arrays[other], arrays[name]
    elif kind == 3:
        arrays[name] = array.reshape(draw.choice([(-1,), (1, -1), (-1, 1), (*array.shape, 1)]))
    elif kind == 4:
        arrays[name] = array.astype(draw.choice(["f8", "f4", "i8", "i4", "u1", "?"]))
    elif kind == 5:
        arrays[name] = draw.choice([array[:-1], np.concatenate([array, array]), array[:0]]) if array.ndim else array
    elif array.size:
        array.reshape(-1)[draw.randrange(array.size)] = np.array(draw.choice(NUMBERS)).astype(array.dtype)
        arrays[name] = array


def change_model(content: bytes, draw: random.Random) -> bytes:
    """Return a model with some facts or arrays changed, without the sums that would tell."""
    facts, arrays = map(dict, container.read_bytes(content))
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(draw.randint(1, 2)):
            if arrays and draw.random() < 0.3:
                change_array(arrays, draw)
            else:
                change_value(facts, draw)
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    content = safetensors.numpy.save(arrays, {"rosenblatt": json.dumps(facts)})
    if draw.random() < 0.1:
        size = int.from_bytes(content[:8], "little")
        table = json.loads(content[8 : 8 + size])
        change_value(table, draw)
        header = json.dumps(table).encode()
        content = len(header).to_bytes(8, "little") + header + content[8 + size :]
    return content


def make(number: int, seed: int) -> File:
    """Return the file of a number."""
    draw = random.Random(f"{seed} {number}")
    how = draw.choice(("error", "skip")), draw.random() < 0.3, draw.random() < 0.5
    if draw.random() < 0.4:
        path = draw.choice(sorted(GOLDEN.glob("*.model")))
        content = path.read_bytes()
        return File(path.name, change_model(content, draw) if draw.random() < 0.8 else change(content, draw))
    name = draw.choice(sorted(SEEDS))
    content = as_bytes(SEEDS[name])
    if draw.random() < 0.25:
        suffix = draw.choice(PACKED)
        content = change(content, draw) if draw.random() < 0.5 else content
        packed = io.BytesIO()
        with contextlib.closing(SUFFIXES[suffix].writer(packed)) as writer:
            writer.write(content)
        content = packed.getvalue() if draw.random() < 0.3 else change(packed.getvalue(), draw)
        return File(name + suffix, content, *how)
    return File(name, change(content, draw), *how)


def as_bytes(content: str | bytes) -> bytes:
    """Return text as bytes, and bytes as they are."""
    return content.encode() if isinstance(content, str) else content


def valid_files() -> Iterator[File]:
    """Yield the files before they are changed."""
    for name, content in SEEDS.items():
        for stream, fill in product((False, True), (False, True)):
            yield File(name, as_bytes(content), "error", stream, fill)
    yield from (File(path.name, path.read_bytes()) for path in sorted(GOLDEN.glob("*.model")))


def use(path: Path, file: File, answers: Any) -> None:
    """Read a file as what its name says."""
    kind = path.name.split(".")[1]
    if kind == "model":
        answers(rosenblatt.load(path))
    elif kind in (*TABLES, *ROWS):
        options = Options(passes=2, on_error=file.on_error, stream=file.stream)
        table = {"missing": "fill", "text": "t" if kind == "jsonl" else "text"} if file.fill and kind not in ROWS else {}
        train([str(path)], reading_for([str(path)], **table), make_learner("perceptron"), options)
    elif kind == "rows":
        options = Options(passes=2, on_error=file.on_error, stream=file.stream)
        train([str(path)], reading_for([str(path)], target=2), make_learner("perceptron"), options)
    elif kind == "conllu":
        for sentence in conllu.read(path):
            sentence.tokens()
    elif kind == "columns":
        list(columns.read(path))
    elif kind == "words":
        list(sentences.read(str(path)))
    elif kind == "certificate":
        documents.read(path, "separability", {"interior": Interior, "combination": Combination})
    else:
        (matrix.read_program if kind == "json" else matrix.read)(str(path))


def golden_answers() -> Any:
    """Return the function that asks a model, as the tests of golden files do."""
    sys.path.insert(0, str(GOLDEN))
    import make as golden

    sys.path.pop(0)
    return golden.answers


def most_memory() -> int:
    """Return the most bytes that this process had since this was last asked, or since it began where that is not known."""
    try:
        status = Path("/proc/self/status").read_text()
        Path("/proc/self/clear_refs").write_text("5")
        return int(status.partition("VmHWM:")[2].split()[0]) << 10
    except (OSError, IndexError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def work(pipe: Any, seed: int) -> None:
    """Read the files whose numbers come, and tell what came of each."""
    warnings.simplefilter("ignore")
    faulthandler.enable()
    training.machine_memory = lambda: MACHINE
    answers = golden_answers()
    recorder = event.RecordingListener()
    event.register("numba:compile", recorder)

    def outcome_of(file: File) -> Outcome:
        path = Path(folder) / file.name
        path.write_bytes(file.content)
        recorder.buffer.clear()
        most_memory()
        began = time.monotonic()
        try:
            use(path, file, answers)
            what = "read"
        except RosenblattError as error:
            what = f"words of Python: {error}" if PYTHON.search(str(error)) else "refused"
        except Exception as error:
            what = f"{type(error).__name__}: {error}"
        seconds = time.monotonic() - began
        path.unlink()
        return Outcome(what, seconds, most_memory(), bool(recorder.buffer))

    with tempfile.TemporaryDirectory() as folder:
        pipe.send([(file.kind, what) for file in valid_files() if (what := outcome_of(file).what) != "read"])
        while (number := pipe.recv()) is not None:
            pipe.send(outcome_of(make(number, seed)))


class Reader:
    """A process that reads files, and is replaced when it dies."""

    def __init__(self, seed: int):
        self.seed, self.process = seed, None

    def start(self) -> list[tuple[str, str]]:
        """Start the process and return the kinds of the valid files that it could not read, and what came of them."""
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=work, args=(other, self.seed), daemon=True)
        self.process.start()
        other.close()
        return self.pipe.recv()

    def stop(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.process = None

    def read(self, number: int) -> Outcome:
        """Return what comes of the file of this number, where nothing has to be compiled."""
        outcome = self._read(number)
        if outcome.compiled:
            self.stop()
            outcome = self._read(number)
        return outcome

    def _read(self, number: int) -> Outcome:
        if self.process is None:
            self.start()
        self.pipe.send(number)
        began = time.monotonic()
        try:
            if self.pipe.poll(LIMIT_COMPILING):
                outcome = self.pipe.recv()
                if outcome.seconds > LIMIT and not outcome.compiled:
                    outcome = outcome._replace(what="hang")
                return outcome
            what = "hang"
        except (EOFError, ConnectionResetError):
            what = "crash"
        self.stop()
        return Outcome(what, time.monotonic() - began, 0, False)


class Report:
    """What came of all files."""

    def __init__(self, seed: int, files: int):
        self.seed, self.files, self.began = seed, files, time.monotonic()
        self.kinds: dict[str, Counter[str]] = {}
        self.slowest, self.largest, self.compiled = (0.0, ""), (0, ""), 0
        self.failures = 0
        self.folder: Path | None = None
        self.lock = threading.Lock()

    def add(self, number: int, outcome: Outcome) -> None:
        """Count a file, and keep it if something went wrong."""
        file = make(number, self.seed)
        what = outcome.what
        if what in ("read", "refused") and outcome.memory > MEMORY and not outcome.compiled:
            what = f"{outcome.memory >> 20} MiB of memory"
        word = what if what in ("read", "refused") else "wrong"
        with self.lock:
            self.kinds.setdefault(file.kind, Counter())[word] += 1
            self.slowest = max(self.slowest, (outcome.seconds, f"file {number}, {file.name}"))
            self.largest = max(self.largest, (outcome.memory, f"file {number}, {file.name}"))
            if word == "wrong":
                self.failures += 1
                self.folder = self.folder or Path(tempfile.mkdtemp(prefix="rosenblatt-fuzz-"))
                kept = self.folder / f"{number}-{file.name}"
                kept.write_bytes(file.content)
                print(f"seed {self.seed}, file {number}, kept as {kept}: {what[:400]!a}", flush=True)
            if (done := self.done()) % 1000 == 0:
                print(f"{done} files in {time.monotonic() - self.began:.0f} s, {self.failures} wrong", flush=True)

    def done(self) -> int:
        """Return how many files there were so far."""
        return sum(map(Counter.total, self.kinds.values()))

    def show(self) -> None:
        """Print it."""
        words = ("read", "refused", "wrong")
        print(f"{'':24}" + "".join(f"{word:>9}" for word in words))
        total: Counter[str] = sum(self.kinds.values(), Counter())
        for kind, counts in [*sorted(self.kinds.items()), ("all", total)]:
            print(f"{kind:24}" + "".join(f"{counts[word]:>9}" for word in words))
        print(f"seed {self.seed}: {self.done()} files in {time.monotonic() - self.began:.0f} s; "
              f"slowest {self.slowest[0]:.2f} s ({self.slowest[1]}); "
              f"most memory {self.largest[0] >> 20} MiB ({self.largest[1]})")  # fmt: skip


def main() -> int:
    """Run it and return 0 if all is well."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--files", type=int, default=20_000)
    options.add_argument("--seed", type=int, default=None)
    options.add_argument("--processes", type=int, default=min(os.cpu_count() or 1, 8))
    options.add_argument("--only", type=int, default=None, metavar="NUMBER", help="read the file of this number alone")
    given = options.parse_args()
    seed = random.SystemRandom().randrange(2**32) if given.seed is None else given.seed
    numbers = iter(range(given.files) if given.only is None else [given.only])
    print(f"seed {seed}", flush=True)
    began = time.monotonic()
    first = Reader(seed)
    refused = first.start()  # compiles what valid files need
    first.stop()
    print(f"ready after {time.monotonic() - began:.0f} s", flush=True)
    if refused:
        print(f"valid files that cannot be read: {refused}")
        return 1
    report = Report(seed, given.files)

    def read_all() -> None:
        reader = Reader(seed)
        for number in numbers:  # of which each thread takes the next
            report.add(number, reader.read(number))
        reader.stop()

    threads = [threading.Thread(target=read_all) for _ in range(given.processes)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    report.show()
    return 1 if report.failures or report.done() == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
