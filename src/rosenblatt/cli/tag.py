"""`rosenblatt tag`: a tag for every word."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any

import typer

from rosenblatt.cli import text
from rosenblatt.cli.console import Console
from rosenblatt.cli.errors import Code
from rosenblatt.cli.options import Json, Output, Quiet, Seed


class Preset(StrEnum):
    """Those of `SequenceTagger`."""

    fast = "fast"
    accurate = "accurate"
    chunking = "chunking"


def tag(
    model: text.Model,
    files: text.Files = None,
    train: text.Train = None,
    dev: text.Dev = None,
    test: text.Test = None,
    column: Annotated[
        str | None, typer.Option(metavar="NAME", help="The column with the tags; upos in CoNLL-U, else the last.")
    ] = None,
    columns: Annotated[
        str | None, typer.Option(metavar="A,B,…", help="The files are columns with these names, as form,pos,chunk.")
    ] = None,
    preset: Annotated[Preset, typer.Option(help="What to train; chunking reads form and pos.")] = Preset.fast,
    epochs: text.Epochs = 10,
    output: Output = None,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Give each word its tag: train a tagger, measure it, run it.

    With --train, MODEL is learned and saved; with --test it is measured; FILES are printed with their tags, CoNLL-U as
    CoNLL-U with nothing else changed, columns as columns, and lines of words (a sentence a line, blanks between words) as
    CoNLL-U.
    """
    from rosenblatt.structured import SequenceTagger

    console = Console(json, quiet)
    text.prepared(model, files, train, test, dev, output)
    names = columns.split(",") if columns else None
    corpus = _Corpus(column, names)
    facts: dict[str, Any] = {"model": model}
    said: list[str] = []
    if train:
        make = {"fast": SequenceTagger.fast, "accurate": SequenceTagger.accurate, "chunking": SequenceTagger.chunking}
        tagger = make[preset.value](max_iter=epochs, random_state=seed, verbose=int(not quiet))
        X, y = corpus.read(train, tagger.fields)
        judged = corpus.read(dev, tagger.fields) if dev else (None, None)
        going = text.learned(lambda: tagger.fit(X, y, *judged), lambda: tagger.save(model), model, console)
        if not going:
            return Code.INTERRUPTED
        words = sum(map(len, X))
        facts |= {"sentences": len(X), "words": words, "tags": [str(t) for t in tagger.classes_], "epochs": tagger.n_iter_}
        said.append(f"{model}: {len(tagger.classes_)} tags, learned from {len(X):,} sentences, {words:,} words")
        if dev:
            facts["dev"] = 1 - (tagger.history_[-1].validation_error or 0.0)
            said.append(f"dev: {facts['dev']:.2%} of the tags are right")
    else:
        tagger = text.loaded(model, [SequenceTagger])
    if test:
        from rosenblatt.structured import evaluation

        X, y = corpus.read(test, tagger.fields)
        scores = evaluation.tags(y, tagger.predict(X))
        facts["test"] = {
            "accuracy": scores.accuracy,
            "words": scores.words.total,
            "sentences": scores.sentences.value,
            "tags": {str(name): {**score._asdict(), "f1": score.f1} for name, score in scores.per_tag.items()},
        }
        said.append(str(scores))
    if said:
        console.result(facts, "\n".join(said))
    if files:
        text.annotated(files, names, lambda some: corpus.tagged(tagger, some), output, console)
    return Code.DONE


class _Corpus:
    """Where words and tags are in files."""

    def __init__(self, column: str | None, columns: list[str] | None):
        self.column, self.columns = column, columns

    def read(self, files: Sequence[str], fields: Sequence[str]) -> tuple[list, list]:
        """(tokens, tags) of the sentences."""
        X, y = [], []
        for sentence in text.sentences(files, self.columns):
            X.append(tokens(sentence, fields))
            y.append(sentence.column(self.column or (self.columns[-1] if self.columns else "upos")))
        return X, y

    def tagged(self, tagger: Any, some: list[Any]) -> list[Any]:
        """The sentences with their tags written in; a column that the file does not have is added."""
        answers = tagger.predict([tokens(sentence, tagger.fields) for sentence in some])
        name = self.column or ("tag" if self.columns else "upos")
        return [sentence.with_columns(**{name: answer}) for sentence, answer in zip(some, answers, strict=True)]


def tokens(sentence: Any, fields: Sequence[str]) -> list:
    """The words of a sentence as a learner reads them."""
    return sentence.forms if len(fields) == 1 else sentence.tokens(*fields)
