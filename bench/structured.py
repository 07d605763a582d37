"""Taggers and parsers: accuracy, speed and size, beside CRFsuite and NLTK. UD English-EWT and CoNLL-2000 from the folder of
data, gold tokens throughout; accuracy is counted as conlleval and the script of CoNLL 2018 count it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from bench.data import Missing, file_in
from bench.measure import in_new_process
from bench.report import Result
from bench.taggers import NLTK, CRFsuite, plain_features, rich_features
from rosenblatt.cli.workloads import measure_in_turns, timed
from rosenblatt.data import columns, conllu
from rosenblatt.structured import GraphParser, SequenceTagger, TagAndParse, TransitionParser, evaluation
from rosenblatt.structured.pipeline import examples

TREEBANK = "en_ewt-ud-{}.conllu.gz"
MODELS: dict[str, Callable[[], Any]] = {
    "fast": SequenceTagger.fast,
    "accurate": SequenceTagger.accurate,
    "graph": GraphParser,
    "greedy": TransitionParser,
    "beam": lambda: TransitionParser(beam=8),
}


@cache
def treebank(folder: Path | None, part: str, name: str = TREEBANK) -> list[conllu.Sentence]:
    return list(conllu.read(file_in(folder, name.format(part))))


def tagger_examples(folder: Path | None, part: str, name: str = TREEBANK) -> tuple[list, list]:
    bank = treebank(folder, part, name)
    return [sentence.forms for sentence in bank], [sentence.column("upos") for sentence in bank]


def parser_examples(folder: Path | None, part: str) -> tuple[list, list]:
    bank = treebank(folder, part)
    return [sentence.tokens("form", "upos", "xpos") for sentence in bank], [sentence.tree() for sentence in bank]


def count_words(sentences: Sequence) -> int:
    return sum(map(len, sentences))


def examples_for(name: str) -> Callable[[Path | None, str], tuple[list, list]]:
    return tagger_examples if name in ("fast", "accurate") else parser_examples


@cache
def fit(folder: Path | None, name: str) -> Any:
    """Return the model of this name, fitted once for all workloads that use it."""
    return MODELS[name]().fit(*examples_for(name)(folder, "train"))


def fitted_model(folder: Path | None, name: str, keep: str = "average") -> Any:
    """Return the same model, predicting with the average or with the last weights."""
    return fit(folder, name).set_params(keep=keep)


@cache
def crfsuite(folder: Path | None, rich: bool) -> CRFsuite:
    return CRFsuite(rich_features if rich else plain_features, 5).fit(*tagger_examples(folder, "train"))


def accuracy(model: Any, X: list, y: list) -> float:
    return evaluation.tags(y, model.predict(X)).accuracy


def tagging(folder: Path | None, repeat: int, name: str) -> Result:
    """Return the share of words of the test part whose UPOS is right."""
    X, y = tagger_examples(folder, "test")
    ours, last = (accuracy(fitted_model(folder, name, keep), X, y) for keep in ("average", "last"))
    peer = accuracy(crfsuite(folder, rich=True), X, y)
    plain = accuracy(crfsuite(folder, rich=False), X, y)
    note = f"averaged {ours:.4f}, last {last:.4f}; peer: CRFsuite, rich features (plain ones {plain:.4f})"
    return Result(f"UPOS of EWT, {name} tagger", ours, peer, ours, last < ours, note, "accuracy")


def language(folder: Path | None, repeat: int, bank: str) -> Result:
    """Return the same of a treebank of another language, with the defaults and beside NLTK."""
    (X, y), (X_test, y_test) = (tagger_examples(folder, part, bank + "-ud-{}.conllu.gz") for part in ("train", "test"))
    ours, nltk = timed(lambda: SequenceTagger().fit(X, y))(), timed(lambda: NLTK(5).fit(X, y))()
    scores = evaluation.tags(y_test, ours.result.predict(X_test), X_test, ours.result.vocabulary_)
    peer = accuracy(nltk.result, X_test, y_test)
    note = (
        f"known words {scores.known.value:.4f}, unknown words {scores.unknown.value:.4f}; trained in {ours.cost:.1f} s; "
        f"peer: NLTK, 5 epochs, {nltk.cost:.1f} s"
    )
    return Result(f"UPOS of {bank}, default tagger", scores.accuracy, peer, scores.accuracy, True, note, "accuracy")


def chunking(folder: Path | None, repeat: int) -> Result:
    """Return the F1 of all chunks of CoNLL-2000, from words and their given parts of speech."""
    (X, y), (X_test, y_test) = (chunks(file_in(folder, f"conll2000.{part}.txt.gz")) for part in ("train", "test"))
    tagger, f1 = SequenceTagger.chunking().fit(X, y), {}
    for keep in ("average", "last"):
        f1[keep] = evaluation.spans(y_test, tagger.set_params(keep=keep).predict(X_test)).f1
    ours, last = f1["average"], f1["last"]
    note = f"averaged {ours:.4f}, last {last:.4f}"
    return Result("chunks of CoNLL-2000, F1", ours, None, ours, last < ours, note, "accuracy")


def chunks(path: Path) -> tuple[list, list]:
    sentences = list(columns.read(path, columns=("form", "pos", "chunk")))
    return [sentence.tokens("form", "pos") for sentence in sentences], [sentence.column("chunk") for sentence in sentences]


def parsing(folder: Path | None, repeat: int, name: str) -> Result:
    """Return the labelled attachment score on the test part, gold tags."""
    X, y = parser_examples(folder, "test")
    ours, last = (evaluation.trees(y, fitted_model(folder, name, keep).predict(X)) for keep in ("average", "last"))
    note = f"UAS {ours.uas:.4f}, LAS {ours.las:.4f}, CLAS {ours.clas:.4f}; last UAS {last.uas:.4f}, LAS {last.las:.4f}"
    return Result(f"trees of EWT, {name} parser, LAS", ours.las, None, ours.las, last.las < ours.las, note, "accuracy")


def plain_words(folder: Path | None, repeat: int) -> Result:
    """Return the labelled attachment score on plain words, tagged and parsed by our own models."""
    pipeline = TagAndParse(MODELS["beam"](), SequenceTagger.fast()).fit(*examples(treebank(folder, "train")))
    X, y = examples(treebank(folder, "test"))
    guess = pipeline.predict(X)
    scores = evaluation.trees(*([[word[-2:] for word in sentence] for sentence in part] for part in (y, guess)))
    upos = evaluation.tags(*([[word[0] for word in sentence] for sentence in part] for part in (y, guess))).accuracy
    note = f"UAS {scores.uas:.4f}, LAS {scores.las:.4f}, CLAS {scores.clas:.4f}, UPOS {upos:.4f}; jackknife of 5 parts"
    return Result("trees of EWT from plain words, beam, LAS", scores.las, None, scores.las, True, note, "accuracy")


def training(folder: Path | None, repeat: int) -> Result:
    """Return CRFsuite's time / ours: from the file to a model, ten epochs of ours against five of CRFsuite's."""
    path = file_in(folder, TREEBANK.format("train"))

    def read() -> tuple[list, list]:
        bank = list(conllu.read(path))
        return [sentence.forms for sentence in bank], [sentence.column("upos") for sentence in bank]

    ours, peer = measure_in_turns(
        timed(lambda: SequenceTagger.fast().set_params(max_iter=10).fit(*read())),
        timed(lambda: CRFsuite(rich_features, 5).fit(*read())),
        repeat=min(repeat, 3),
        warm_up=1,
    )
    plain = timed(lambda: CRFsuite(plain_features, 5).fit(*read()))()
    X, y = tagger_examples(folder, "test")
    note = (
        f"accuracy {accuracy(ours.result, X, y):.4f} and {accuracy(peer.result, X, y):.4f}; CRFsuite with plain features "
    )
    note += f"{plain.cost:.1f} s"
    ratio = peer.cost / ours.cost
    return Result("a tagger from the file, 10 epochs against CRFsuite's 5", ours.cost, peer.cost, ratio, True, note, "s")


def tagging_speed(folder: Path | None, repeat: int, name: str) -> Result:
    """Return the words tagged per second on one core, lists in and lists out."""
    X, _ = tagger_examples(folder, "test")
    model = fitted_model(folder, name).set_params(n_jobs=1)
    suite = crfsuite(folder, rich=True)
    ours, peer = measure_in_turns(
        timed(lambda: model.predict(X)), timed(lambda: suite.predict(X)), repeat=repeat, warm_up=2
    )
    nltk = NLTK(1).fit(*tagger_examples(folder, "dev"))
    slow = timed(lambda: nltk.predict(X[:500]))()
    note = f"NLTK (of fewer features: trained on the small part) {count_words(X[:500]) / slow.cost:,.0f}"
    speeds = count_words(X) / ours.cost, count_words(X) / peer.cost
    return Result(f"tagging, {name}, one core", *speeds, speeds[0], True, note, "tokens/s")


def parsing_speed(folder: Path | None, repeat: int, name: str) -> Result:
    """Return the words parsed per second on one core, lists in and lists out."""
    X, _ = parser_examples(folder, "test")
    model = fitted_model(folder, name).set_params(n_jobs=1)
    (ours,) = measure_in_turns(timed(lambda: model.predict(X)), repeat=repeat, warm_up=1)
    speed = count_words(X) / ours.cost
    return Result(f"parsing, {name}, one core", speed, None, speed, True, "", "tokens/s")


def size(folder: Path | None, repeat: int, name: str) -> Result:
    """Return the size of the file of a model."""
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "model"
        fitted_model(folder, name).save(path)
        megabytes = path.stat().st_size / 1e6
    return Result(f"file of the {name} model", megabytes, None, megabytes, True, "what predicts, ready to load", "MB")


def memory(folder: Path | None, repeat: int, name: str) -> Result:
    """Return the peak memory of a process that trains a parser."""
    file_in(folder, TREEBANK.format("train"))
    if not Path("/proc/self/clear_refs").exists():
        raise Missing("peak memory is read from /proc, which this system does not have")
    megabytes = in_new_process("parser_megabytes", f"{name} {folder}")().cost
    note = "peak resident memory of the whole process, Python, the libraries and the treebank included"
    return Result(f"memory while training, {name} parser", megabytes, None, megabytes, True, note, "MB")
