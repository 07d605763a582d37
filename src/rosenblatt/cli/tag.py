"""`rosenblatt tag`: a tag for every word."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from rosenblatt.cli import options as opts
from rosenblatt.cli import text
from rosenblatt.cli.cluster import describe_shards, refuse_cluster_options, train_sentences
from rosenblatt.cli.console import Console, count_text
from rosenblatt.cli.errors import Code, Failure
from rosenblatt.cli.files import load_model
from rosenblatt.errors import InvalidData, InvalidParameter

if TYPE_CHECKING:
    from rosenblatt.structured import SequenceTagger
    from rosenblatt.structured.evaluation import Score

NO_TAG = "_"  # of CoNLL-U
NO_TAGS = ("id", "head", "deps")  # columns of CoNLL-U whose values are numbers of words of the sentence


class Preset(StrEnum):
    """Those of `SequenceTagger`."""

    fast = "fast"
    accurate = "accurate"
    chunking = "chunking"


class Corpus(NamedTuple):
    """Sentences with their tags."""

    X: list[list]
    y: list[list[str]]
    places: list[text.Place]


@opts.expand_groups
def tag(
    context: typer.Context,
    model: text.Model,
    parallel: opts.ClusterOptions,
    files: text.Files = None,
    train: text.Train = None,
    dev: text.Dev = None,
    test: text.Test = None,
    column: Annotated[
        opts.Text, opts.option("--column", "NAME", "Column with the tags; by default upos, or the last of --columns.")
    ] = None,
    columns: Annotated[
        opts.Text, opts.option("--columns", "A,B,…", "Names of the columns of the files, such as form,pos,chunk.")
    ] = None,
    preset: Annotated[
        Preset, opts.option("--preset", None, "Kind of tagger to train; chunking reads form and pos.")
    ] = Preset.fast,
    epochs: text.Epochs = 10,
    resume: text.Resume = False,
    start: text.From = None,
    output: opts.Output = None,
    seed: opts.Seed = 0,
    max_line: opts.MaxLine = "64M",
    json: opts.Json = False,
    quiet: opts.Quiet = False,
) -> int:
    """Tag words (part-of-speech tags, chunks, named entities): train a tagger, measure it, annotate files.

    With --train, MODEL is trained and saved; with --test it is measured; FILES are printed with their tags: CoNLL-U as
    CoNLL-U with nothing else changed, columns as columns, and plain text (a sentence a line, blanks between words) as
    CoNLL-U. Ctrl-C saves the model after the current epoch; the same command with --resume continues exactly there.
    """
    from rosenblatt.structured import SequenceTagger

    console = Console(json, quiet)
    text.check_arguments(context, ("preset", "epochs", "seed", "resume", "start", "cluster"))
    if not parallel.cluster:
        refuse_cluster_options(context)
    names = _column_names(columns)
    facts: dict[str, Any] = {"model": model}
    lines: list[str] = []
    measured: Corpus | None = None
    if train and parallel.cluster:
        tagger = _train_tagger_on_cluster(context, parallel, names, console)
        measured = _read(test, names, tagger) if test else None
        seen = tagger.n_seen_ // tagger.n_iter_
        tags = [str(tag) for tag in tagger.classes_]
        facts |= {"sentences": seen, "tags": tags, "column": tagger.column, "epochs": tagger.n_iter_}
        facts["cluster"], shards = describe_shards(tagger)
        lines.append(f"{model}: {count_text(len(tags), 'tag')}, trained on {count_text(seen, 'sentence')} in {shards}")
    elif train:
        tagger, fit = _tagger_to_train(context, names)
        corpus = _read(train, names, tagger)
        held = _read(dev, names, tagger) if dev else None
        X_val, y_val = (None, None) if held is None else (held.X, held.y)
        measured = _read(test, names, tagger) if test else None  # before the work, in case there is something wrong with it
        with text.placed(corpus.places):
            if not text.fit_and_save(tagger, model, corpus.X, corpus.y, X_val, y_val, fit):
                return Code.INTERRUPTED
        words = sum(map(len, corpus.X))
        tags = [str(tag) for tag in tagger.classes_]
        facts |= {
            "sentences": len(corpus.X),
            "words": words,
            "tags": tags,
            "column": tagger.column,
            "epochs": tagger.n_iter_,
        }
        counts = ", ".join(count_text(*count) for count in ((len(corpus.X), "sentence"), (words, "word")))
        lines.append(f"{model}: {count_text(len(tags), 'tag')}, trained on {counts}")
        if dev:
            facts["dev"] = 1 - (tagger.history_[-1].validation_error or 0.0)
            lines.append(f"dev: {facts['dev']:.2%} of the tags are right")
    else:
        tagger = load_model(model, SequenceTagger)
        _check_column(tagger, model, column, names, test)
        if test:
            tagger.column = tagger.column or column or (names[-1] if names else "upos")  # which older files do not say
            measured = _read(test, names, tagger)
    if measured:
        facts["test"], table = _measure_tags(tagger, measured)
        lines.append(table)
    if lines:
        console.result(facts, "\n".join(lines))
    if files:
        target = column or str(tagger.column or ("tag" if names else "upos"))
        text.annotate(files, names, lambda sentences: _add_tags(tagger, sentences, target), output, console)
    return Code.DONE


def _train_tagger_on_cluster(
    context: typer.Context, parallel: opts.ClusterOptions, names: Sequence[str] | None, console: Console
) -> SequenceTagger:
    """The tagger that workers have trained."""
    values = context.params
    for option in ("dev", "start"):
        if values[option]:
            name = {"dev": "--dev", "start": "--from"}[option]
            raise Failure(f"{name} and --cluster cannot be used together", Code.USAGE, "train without --cluster")
    tagger = _new_tagger(values, names)
    return train_sentences(parallel, tagger, values["train"], str(tagger.column), names, values["model"],
                           values["resume"], console)  # fmt: skip


def _new_tagger(values: Mapping[str, Any], names: Sequence[str] | None) -> SequenceTagger:
    """The tagger that the options describe, which has learned nothing."""
    from rosenblatt.structured import SequenceTagger

    changes = {"max_iter": values["epochs"], "random_state": values["seed"], "verbose": int(not values["quiet"])}
    make = {"fast": SequenceTagger.fast, "accurate": SequenceTagger.accurate, "chunking": SequenceTagger.chunking}
    tagger = make[values["preset"].value](**changes)
    tagger.column = values["column"] or (names[-1] if names else "upos")
    return tagger


def _column_names(columns: str | None) -> list[str] | None:
    """The names that --columns gives."""
    names = None if columns is None else [name.strip() for name in columns.split(",")]
    if names is not None and ("form" not in names or "" in names or len(set(names)) < len(names)):
        allowed = "distinct names separated by commas, one of them form (the words), such as form,pos,chunk"
        raise InvalidParameter("columns", columns, allowed)
    return names


def _tagger_to_train(context: typer.Context, names: Sequence[str] | None) -> tuple[SequenceTagger, Callable[..., object]]:
    """(tagger, fit): what --train trains, and how: anew, from the weights of another, or on from an interruption."""
    from rosenblatt.estimators.interface import clone
    from rosenblatt.structured import SequenceTagger

    values = context.params
    model, column, start = values["model"], values["column"], values["start"]
    changes = {"max_iter": values["epochs"], "random_state": values["seed"], "verbose": int(not values["quiet"])}
    if not (values["resume"] or start):
        tagger = _new_tagger(values, names)
        return tagger, tagger.fit
    before: SequenceTagger = load_model(start or model, SequenceTagger)
    opts.refuse_options(context, ("preset",), f"{start or model} keeps the templates that it was trained with")
    _check_column(before, start or model, column, names, ["--train"])
    if start:
        tagger = clone(before).set_params(**changes)
        tagger.column = before.column or column or (names[-1] if names else "upos")
        return tagger, partial(tagger.fit, start=before)
    if opts.options_in_use(context, "seed") and before.random_state != values["seed"]:
        raise Failure(f"--seed {values['seed']}: the interrupted training has {before.random_state}", Code.USAGE)
    if not opts.options_in_use(context, "epochs"):
        changes["max_iter"] = before.max_iter
    return before.set_params(**changes | {"random_state": before.random_state}), before.resume


def _check_column(
    tagger: SequenceTagger, model: str, column: str | None, names: Sequence[str] | None, gold: Sequence[str] | None
) -> None:
    """Refuse another column than that of the model, to read gold tags from or to overwrite. A new one may be added."""
    added = names is not None and column not in names and not gold
    if tagger.column is not None and column not in (None, tagger.column) and not added:
        raise Failure(
            f"--column {column}: {model} was trained on the column {tagger.column}",
            Code.USAGE,
            f"leave out --column, or train a tagger with --column {column}",
        )


def _read(files: Sequence[str], names: Sequence[str] | None, tagger: SequenceTagger) -> Corpus:
    """The sentences of files, with the tags in the column of the tagger."""
    column = str(tagger.column)
    if column == "form" or column in tagger.fields:
        raise InvalidParameter(
            "column", column, f"a column that the tagger does not read: it reads {', '.join(tagger.fields)}"
        )
    if column in NO_TAGS:
        raise InvalidParameter("column", column, "a column with tags", hint="rosenblatt parse, for heads")
    corpus = Corpus([], [], [])
    tagged: dict[str, bool] = {}  # whether a file has tags
    for sentence in text.read_sentences(files, names):
        if column not in sentence.columns:
            raise InvalidData(
                f"there is no column {column}, where the tags should be; the columns are {', '.join(sentence.columns)}",
                path=sentence.path,
                line=sentence.line,
                hint="the names of the columns of a file in columns, as --columns form,pos,tag",
            )
        tags = sentence.column(column)
        corpus.X.append(_tokens(sentence, tagger.fields))
        corpus.y.append(tags)
        corpus.places.append(text.Place(sentence.path, sentence.line))
        tagged[sentence.path] = tagged.get(sentence.path, False) or any(tag != NO_TAG for tag in tags)
    for path, some in tagged.items():
        if not some:
            raise InvalidData(
                f"there are no tags to learn or to compare with: {column} is {NO_TAG} for every word",
                path=path,
                hint="plain text has no tags; for a file in columns give their names with --columns form,pos,tag",
            )
    return corpus


def _measure_tags(tagger: SequenceTagger, corpus: Corpus) -> tuple[dict[str, Any], str]:
    """(facts, text): accuracy, and precision, recall and F1 of each tag, or of each type of chunk."""
    from rosenblatt.structured import evaluation

    with text.placed(corpus.places):
        guess = tagger.predict(corpus.X)
    words = [[token if isinstance(token, str) else token[0] for token in sentence] for sentence in corpus.X]
    scores = evaluation.tags(corpus.y, guess, words, tagger.vocabulary_)
    facts = {
        "accuracy": scores.accuracy,
        "words": scores.words.total,
        "sentences": scores.sentences.value,
        "known": _share(scores.known),
        "unknown": _share(scores.unknown),
        "tags": {str(name): _ratios(score) for name, score in scores.per_tag.items()},
    }
    if not evaluation.are_chunks([*corpus.y, *guess]):
        return facts, str(scores)
    spans = evaluation.spans(corpus.y, guess)
    facts["chunks"] = {**_ratios(spans.total), "types": {kind: _ratios(score) for kind, score in spans.per_type.items()}}
    head, _, _ = str(scores).partition("\n\n")
    _, _, table = str(spans).partition("\n\n")
    return facts, f"{head}\n\n{table}"


def _ratios(score: Score) -> dict[str, float]:
    return {**score._asdict(), "precision": score.precision, "recall": score.recall, "f1": score.f1}


def _share(share: Any) -> dict[str, float]:
    return {"accuracy": share.value, "words": share.total}


def _add_tags(tagger: SequenceTagger, sentences: list[Any], column: str) -> list[Any]:
    """The sentences with predicted tags; a column that the file does not have is added."""
    if sentences and column not in sentences[0].columns and "id" in sentences[0].columns:
        raise InvalidData(
            f"the tagger predicts the column {column}, which CoNLL-U does not have",
            path=sentences[0].path,
            hint="for a file in columns give their names with --columns; for CoNLL-U train a tagger of upos, xpos or feats",
        )
    places = [text.Place(sentence.path, sentence.line) for sentence in sentences]
    with text.placed(places):
        answers = tagger.predict([_tokens(sentence, tagger.fields) for sentence in sentences])
    return [sentence.with_columns(**{column: answer}) for sentence, answer in zip(sentences, answers, strict=True)]


def _tokens(sentence: Any, fields: Sequence[str]) -> list:
    """The words of a sentence as the tagger reads them."""
    if missing := [name for name in fields if name not in sentence.columns]:
        raise InvalidData(
            f"the tagger reads {' and '.join(fields)}, and there is no column {missing[0]}",
            path=sentence.path,
            line=sentence.line,
            hint=f"files in columns, whose names are given with --columns {','.join(fields)},tag",
        )
    return sentence.forms if len(fields) == 1 else sentence.tokens(*fields)
