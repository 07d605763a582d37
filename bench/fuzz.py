"""Whatever a file holds, reading it ends in rows, a model, or an error of the library; never in a crash, a hang or a word
of Python.

    make fuzz                                # 20,000 files
    python -m bench.fuzz --files 500 --seed 1

A process of its own reads the files, so that one that kills it, or takes more than 20 seconds, is known by its number; it
tells the most memory it used. Files are valid ones of every format and the golden models of the tests, changed at random:
bytes flipped, cut off, repeated, replaced by numbers and marks that formats care about; headers of models also field by
field.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import faulthandler
import io
import json
import multiprocessing
import random
import re
import resource
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

from rosenblatt.errors import RosenblattError

LIMIT = 20  # seconds for a file
MEMORY = 1 << 30  # bytes for all of them
GOLDEN = Path(__file__).parents[1] / "tests" / "golden"
PYTHON = re.compile(
    r"KeyError|TypeError|AttributeError|IndexError|ValueError|unexpected keyword|NoneType|index out of range|positional arg"
    r"|object is not|object has no|not iterable|to unpack|<class|Traceback"
)  # words of Python that no message may have
TABLE = 'label,n,colour,text\na,1,red,see you\nb,-2.5e3,blue,"a prize, now"\na,3,red,see me\nb,nan,,"two\nlines"\n'
JSON = '{"label":"a","n":1,"t":"see you"}\n{"label":"b","n":2.5,"t":null,"x":[1,{"y":2}]}\n{"label":"a","n":-3,"t":"é"}\n'
CONLLU = (
    "# text = a dog\n1-2\ta\t_\t_\t_\t_\t_\t_\t_\t_\n1\ta\ta\tDET\t_\t_\t2\tdet\t_\t_\n"
    "2\tdog\tdog\tNOUN\t_\t_\t0\troot\t_\t_\n\n"
    "1\tbarks\tbark\tVERB\t_\t_\t0\troot\t_\t_\n1.1\tx\t_\t_\t_\t_\t_\t_\t_\t_\n\n"
)
SEEDS = {
    "a.csv": TABLE, "a.tsv": TABLE.replace(",", "\t"), "a.jsonl": JSON, "a.conllu": CONLLU,
    "a.svm": "1 1:0.5 3:-2 # x\n-1 qid:3 2:1e-3\n+1 1:1 2:2 7:nan\n0.5 4:4\n",
    "a.vw": "1 2 'tag |f a:2 b |g c\n-1 |f b:0.5 d\n1 |f:3 a\n",
    "a.columns": "a DT B-NP\ndog NN I-NP\n\n-DOCSTART- X O\n\nbarks VB B-VP\n\n",
    "a.words": "a dog barks\n\nthe end\n", "a.matrix": "1 2/3 -4\n5,6,7e2\n",
    "a.json": '{"c":[1,"1/3"],"A_ub":[[1,2]],"b_ub":[3]}',
}  # fmt: skip
PACKED = (".gz", ".bz2", ".xz", ".zst")
MARKS = [b"\0", b"\xff", b'"', b"\n", b"\r", b"\t", b",", b":", b"|", b"1e999", b"-1", b"9" * 400, b"[" * 3000, b"{",
         b"\xed\xa0\x80", b"\xef\xbb\xbf", b"nan", b"#", b"18446744073709551616", b"\x1f\x8b\x08", b'\\ud800']  # fmt: skip
VALUES = [
    ...,
    None,
    True,
    "x",
    -1,
    0,
    3,
    2**61,
    1.5,
    1e300,
    [],
    {},
    [1, 2],
    ["a", None],
    {"float": "nan"},
    {"a": 1},
    "\ud800",
    [[]],
]


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


def change_model(content: bytes, draw: random.Random) -> bytes:
    """Return a model with some facts or descriptions of arrays changed, without the sums that would tell."""
    size = int.from_bytes(content[:8], "little")
    table, data = json.loads(content[8 : 8 + size]), content[8 + size :]
    facts = json.loads(table.pop("__metadata__")["rosenblatt"])
    whole = copy.deepcopy({"facts": facts, "table": table})
    for _ in range(draw.randint(1, 2)):
        found = [path for path in places(whole) if len(path) > 1]
        *path, last = draw.choice([p for p in found if p[0] == "facts"] if draw.random() < 0.8 else found)
        inner: Any = whole
        for key in path:
            inner = inner[key]
        new = draw.choice(VALUES)
        if new is ...:
            del inner[last]
        else:
            inner[last] = copy.deepcopy(new)
    if draw.random() < 0.3 and data:
        data = change(data, draw)
    text = json.dumps(whole["facts"]) if isinstance(whole["facts"], dict) else "{}"
    header = json.dumps({"__metadata__": {"rosenblatt": text}, **whole["table"]}).encode()
    return len(header).to_bytes(8, "little") + header + data


def make(number: int, seed: int) -> tuple[str, bytes]:
    """Return the name and the content of a file."""
    draw = random.Random(f"{seed} {number}")
    if draw.random() < 0.4:
        path = draw.choice(sorted(GOLDEN.glob("*.model")))
        content = path.read_bytes()
        return path.name, change_model(content, draw) if draw.random() < 0.7 else change(content, draw)
    from rosenblatt.data.opening import SUFFIXES

    name = draw.choice(sorted(SEEDS))
    content = SEEDS[name].encode()
    if draw.random() < 0.25:
        suffix = draw.choice(PACKED)
        content = change(content, draw) if draw.random() < 0.5 else content
        packed = io.BytesIO()
        with contextlib.closing(SUFFIXES[suffix].writer(packed)) as writer:
            writer.write(content)
        content = packed.getvalue() if draw.random() < 0.3 else change(packed.getvalue(), draw)
        return name + suffix, content
    return name, change(content, draw)


def use(path: Path) -> None:
    """Read a file as what its name says."""
    import rosenblatt
    from rosenblatt.data import columns, conllu, matrix, sentences
    from rosenblatt.data.formats import reading_for
    from rosenblatt.workflow import Options, make_learner, train

    kind = path.name.split(".")[1]
    if kind == "model":
        model = rosenblatt.load(path)
        answers(model)
    elif kind in ("csv", "tsv", "jsonl", "svm", "vw"):
        reading = reading_for([str(path)])
        on_error = "skip" if len(path.name) % 2 else "error"
        train([str(path)], reading, make_learner("perceptron"), Options(passes=1, on_error=on_error))
    elif kind == "conllu":
        for sentence in conllu.read(path):
            sentence.tokens()
    elif kind == "columns":
        list(columns.read(path))
    elif kind == "words":
        list(sentences.read(str(path)))
    else:
        (matrix.read_program if kind == "json" else matrix.read)(str(path))


def answers(model: Any) -> None:
    """Ask a model, as the tests of golden files do."""
    sys.path.insert(0, str(GOLDEN))
    try:
        import make as golden
    finally:
        sys.path.pop(0)
    golden.answers(model)


def work(pipe: Any, seed: int) -> None:
    """Read the files whose numbers come, and tell what came of each."""
    warnings.simplefilter("ignore")
    faulthandler.enable()
    with tempfile.TemporaryDirectory() as folder:
        for name, content in [*SEEDS.items(), *((path.name, path.read_bytes()) for path in GOLDEN.glob("*.model"))]:
            path = Path(folder) / name  # what is compiled when it is first used takes longer than a file may
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
            with contextlib.suppress(RosenblattError):
                use(path)
        pipe.send("ready")
        while (number := pipe.recv()) is not None:
            name, content = make(number, seed)
            path = Path(folder) / name
            path.write_bytes(content)
            try:
                use(path)
                outcome = "read"
            except RosenblattError as error:
                outcome = f"words of Python: {error}" if PYTHON.search(str(error)) else "refused"
            except (Exception, RecursionError) as error:
                outcome = f"{type(error).__name__}: {error}"
            path.unlink()
            pipe.send((outcome, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10))


def main() -> int:
    """Run it and return 0 if all is well."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--files", type=int, default=20_000)
    options.add_argument("--seed", type=int, default=None)
    given = options.parse_args()
    seed = random.SystemRandom().randrange(2**32) if given.seed is None else given.seed
    print(f"seed {seed}", flush=True)
    found: Counter[str] = Counter()
    bad, peak, worker = 0, 0, None
    for number in range(given.files):
        if worker is None:
            pipe, other = multiprocessing.Pipe()
            worker = multiprocessing.get_context("spawn").Process(target=work, args=(other, seed), daemon=True)
            worker.start()
            other.close()
            pipe.recv()  # when it is ready
        pipe.send(number)
        name = make(number, seed)[0]
        try:
            outcome, used = pipe.recv() if pipe.poll(LIMIT) else ("hang", 0)
        except EOFError:
            outcome, used = "crash", 0
        peak = max(peak, used)
        found[outcome if outcome in ("read", "refused") else "wrong"] += 1
        if outcome not in ("read", "refused"):
            bad += 1
            print(f"file {number}, {name}: {outcome[:300]}", flush=True)
            if outcome in ("hang", "crash"):
                worker.kill()
                worker.join()
                worker = None
        if (number + 1) % 1000 == 0:
            print(f"{number + 1} files: {dict(found)}, {peak >> 20} MiB at most", flush=True)
    if worker is not None:
        pipe.send(None)
        worker.join(60)
    print(f"seed {seed}: {given.files} files, {dict(found)}, {peak >> 20} MiB at most")
    return 1 if bad or peak > MEMORY else 0


if __name__ == "__main__":
    sys.exit(main())
