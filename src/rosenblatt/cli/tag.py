"""`rosenblatt tag`: a tag for every word."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rosenblatt.cli import options as opts
from rosenblatt.cli import text
from rosenblatt.cli.console import Console
from rosenblatt.cli.errors import Code
from rosenblatt.cli.files import load_model

if TYPE_CHECKING:
    from rosenblatt.data.conllu import Sentence
    from rosenblatt.structured import SequenceTagger


class Preset(StrEnum):
    """Those of `SequenceTagger`."""

    fast = "fast"
    accurate = "accurate"
    chunking = "chunking"


def tag(
    context: typer.Context,
    model: text.Model,
    files: text.Files = None,
    train: text.Train = None,
    dev: text.Dev = None,
    test: text.Test = None,
    column: Annotated[
        opts.Text, opts.option("--column", "NAME", "Column with the tags; default: upos, or the last.")
    ] = None,
    columns: Annotated[
        opts.Text, opts.option("--columns", "A,B,…", "Names of the columns of the files: form,pos,chunk.")
    ] = None,
    preset: Annotated[
        Preset, opts.option("--preset", None, "Kind of tagger to train; chunking reads form and pos.")
    ] = Preset.fast,
    epochs: text.Epochs = 10,
    output: opts.Output = None,
    seed: opts.Seed = 0,
    max_line: opts.MaxLine = "64M",
    json: opts.Json = False,
    quiet: opts.Quiet = False,
) -> int:
    """Tag words (part-of-speech tags, chunks, named entities): train a tagger, measure it, annotate files.

    With --train, MODEL is trained and saved; with --test it is measured; FILES are printed with their tags: CoNLL-U as
    CoNLL-U with nothing else changed, columns as columns, and plain text (a sentence a line, blanks between words) as
    CoNLL-U.
    """
    from rosenblatt.structured import SequenceTagger

    console = Console(json, quiet)
    text.check_arguments(context, ("preset", "epochs", "seed"))
    names = columns.split(",") if columns else None
    facts: dict[str, Any] = {"model": model}
    lines: list[str] = []
    if train:
        make = {"fast": SequenceTagger.fast, "accurate": SequenceTagger.accurate, "chunking": SequenceTagger.chunking}
        tagger = make[preset.value](max_iter=epochs, random_state=seed, verbose=int(not quiet))
        column = tagger.column = column or (names[-1] if names else "upos")
        X, y = _read(train, names, tagger, column)
        X_val, y_val = _read(dev, names, tagger, column) if dev else (None, None)
        if not text.fit_and_save(tagger, model, X, y, X_val, y_val):
            return Code.INTERRUPTED
        words = sum(map(len, X))
        facts |= {"sentences": len(X), "words": words, "tags": [str(t) for t in tagger.classes_], "epochs": tagger.n_iter_}
        lines.append(f"{model}: {len(tagger.classes_)} tags, trained on {len(X):,} sentences, {words:,} words")
        if dev:
            facts["dev"] = 1 - (tagger.history_[-1].validation_error or 0.0)
            lines.append(f"dev: {facts['dev']:.2%} of the tags are right")
    else:
        tagger = load_model(model, SequenceTagger)
    target = column or str(tagger.column or "")  # which older files do not say
    if test:
        from rosenblatt.structured import evaluation

        X, y = _read(test, names, tagger, target or (names[-1] if names else "upos"))
        scores = evaluation.tags(y, tagger.predict(X))
        facts["test"] = {
            "accuracy": scores.accuracy,
            "words": scores.words.total,
            "sentences": scores.sentences.value,
            "tags": {str(name): {**score._asdict(), "f1": score.f1} for name, score in scores.per_tag.items()},
        }
        lines.append(str(scores))
    if lines:
        console.result(facts, "\n".join(lines))
    if files:
        target = target or ("tag" if names else "upos")
        text.annotate(files, names, lambda sentences: _add_tags(tagger, sentences, target), output, console)
    return Code.DONE


def _read(files: Sequence[str], columns: Sequence[str] | None, tagger: SequenceTagger, column: str) -> tuple[list, list]:
    """(tokens, tags) of the sentences of files."""
    X, y = [], []
    for sentence in text.read_sentences(files, columns):
        X.append(_tokens(sentence, tagger.fields))
        y.append(sentence.column(column))
    return X, y


def _add_tags(tagger: SequenceTagger, sentences: list[Sentence], column: str) -> list[Sentence]:
    """The sentences with predicted tags; a column that the file does not have is added."""
    answers = tagger.predict([_tokens(sentence, tagger.fields) for sentence in sentences])
    return [sentence.with_columns(**{column: answer}) for sentence, answer in zip(sentences, answers, strict=True)]


def _tokens(sentence: Sentence, fields: Sequence[str]) -> list:
    """The words of a sentence as the tagger reads them."""
    return sentence.forms if len(fields) == 1 else sentence.tokens(*fields)
