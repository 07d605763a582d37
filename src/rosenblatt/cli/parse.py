"""`rosenblatt parse`: a dependency tree for every sentence."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rosenblatt.cli import options as opts
from rosenblatt.cli import text
from rosenblatt.cli.console import Console
from rosenblatt.cli.errors import Code
from rosenblatt.cli.files import check_plot, load_model, save_plot
from rosenblatt.errors import InvalidData, InvalidParameter, RosenblattError

if TYPE_CHECKING:
    from rosenblatt.data.conllu import Sentence

TAGS = "upos,xpos"
_COLUMNS = ("lemma", "upos", "xpos", "feats", "misc")  # that a parser may read as tags; others are the answer itself


def parse(
    context: typer.Context,
    model: text.Model,
    files: text.Files = None,
    train: text.Train = None,
    dev: text.Dev = None,
    test: text.Test = None,
    taggers: Annotated[
        bool, opts.option("--taggers/--no-taggers", None, "Train taggers too, for input without tags.")
    ] = True,
    tags: Annotated[str, opts.option("--tags", "A,B,…", "Columns with tags that the parser uses.")] = TAGS,
    beam: Annotated[int, opts.option("--beam", "N", "Beam width; 8 is slower and more accurate.", min=1)] = 1,
    graph: Annotated[bool, opts.option("--graph", None, "Graph-based parser: projective trees (Eisner).")] = False,
    crossing: Annotated[bool, opts.option("--crossing", None, "Graph-based parser: non-projective trees.")] = False,
    epochs: text.Epochs = 10,
    output: opts.Output = None,
    plot: opts.Plot = None,
    seed: opts.Seed = 0,
    json: opts.Json = False,
    quiet: opts.Quiet = False,
) -> int:
    """Parse sentences into dependency trees: train a parser, measure it, annotate files.

    With --train, MODEL is trained on CoNLL-U files and saved; with --test it is measured; FILES are printed as CoNLL-U
    with heads and relations, and tags where MODEL has taggers. --plot draws the tree of the first sentence.
    """
    from rosenblatt.structured import GraphParser, TagAndParse, TransitionParser

    console = Console(json, quiet)
    text.check_arguments(context, ("taggers", "tags", "beam", "graph", "crossing", "epochs", "seed"))
    check_plot(plot)
    if graph or crossing:
        opts.refuse_options(context, ("beam",), "a graph-based parser has no beam")
    if crossing:
        opts.refuse_options(context, ("graph",), "it has no effect with --crossing, which trains a graph-based parser too")
    facts: dict[str, Any] = {"model": model}
    lines: list[str] = []
    learner: Any
    warned: set[str] = set()
    if train:
        gold, held = _read(train), _read(dev) if dev else []
        fields = ("form", *_tag_columns(gold, tags, bool(opts.options_in_use(context, "tags")), console))
        common: dict[str, Any] = {"fields": fields, "max_iter": epochs, "random_state": seed, "verbose": int(not quiet)}
        if graph or crossing:
            learner = GraphParser(decoder="chu-liu-edmonds" if crossing else "eisner", **common)
        else:
            learner = TransitionParser(beam, **common)
        learner = _with_taggers(learner, len(gold), console) if taggers else learner
        X, y = _examples(gold, fields, taggers)
        validation = _examples(held, fields, taggers) if held else (None, None)
        try:
            done = text.fit_and_save(learner, model, X, y, *validation)
        except RosenblattError as error:
            raise _with_place(error, gold) from None
        if not done:
            return Code.INTERRUPTED
        parser = learner.parser_ if taggers else learner
        facts |= _training_facts(parser, len(gold))
        lines.append(f"{model}: {len(parser.labels_)} relations, {parser.n_updates_:,} updates in {parser.n_iter_} epochs")
        lines += _crossing_trees(facts)
    else:
        learner = load_model(model, TagAndParse, TransitionParser, GraphParser)
    for name, paths in (("dev", dev), ("test", test)):
        if paths:
            facts[name], scores = _measure(learner, held if name == "dev" else _read(paths), warned)
            overall, _, _ = scores.partition("\n\n")
            lines.append(f"{name}: {scores if name == 'test' else overall}")
    if lines:
        console.result(facts, "\n".join(lines))
    if files:
        first: list[Sentence] = []
        text.annotate(
            files, None, lambda sentences: _keep_first(_parse(learner, sentences, warned), first), output, console
        )
        if plot and first:
            from rosenblatt.plot import tree

            names = [name for name in ("upos",) if set(first[0].column(name)) != {"_"}]
            save_plot(tree(first[0].tokens("form", *names) if names else first[0].forms, first[0].tree()), plot)
            console.note(f"the plot is saved in {plot}")
    return Code.DONE


# Training


def _read(files: Sequence[str]) -> list[Sentence]:
    """The sentences of files, of which there must be some."""
    sentences = list(text.read_sentences(files))
    if not sentences:
        raise InvalidData("there is no sentence in the file", path=", ".join(files))
    return sentences


def _tag_columns(sentences: Sequence[Sentence], tags: str, given: bool, console: Console) -> list[str]:
    """The columns that the parser reads beside the form; by default those of --tags that are not empty in all sentences."""
    names = tags.split(",")
    for name in names:
        if name not in _COLUMNS:
            raise InvalidParameter("fields", name, f"some of {', '.join(_COLUMNS)}, with commas between them")
    if len(set(names)) < len(names):
        raise InvalidParameter("fields", tags, "columns that differ from each other")
    empty = [name for name in names if all(value == "_" for sentence in sentences for value in sentence.column(name))]
    if empty and given:
        raise InvalidData(
            f"--tags {','.join(empty)}: the column is empty (_) in all {len(sentences):,} sentences to train on",
            hint="name columns that have values",
        )
    if empty:
        console.note(f"not used, because empty (_) in all sentences: {', '.join(empty)}")
    return [name for name in names if name not in empty]


def _with_taggers(parser: Any, sentences: int, console: Console) -> Any:
    """The parser behind taggers for the tags that it reads."""
    from rosenblatt.structured import SequenceTagger, TagAndParse

    console.note(f"{sentences:,} sentences; training the taggers first, then the parser")
    tagger = SequenceTagger.fast(random_state=parser.random_state, max_iter=parser.max_iter)
    return TagAndParse(parser, tagger, min(5, sentences) if sentences > 1 else 0)


def _examples(sentences: Sequence[Sentence], fields: Sequence[str], taggers: bool) -> tuple[list, list]:
    """(words, tags and trees), or without taggers (words with their tags, trees)."""
    from rosenblatt.structured.pipeline import examples

    if taggers:
        return examples(sentences, fields[1:])
    return [sentence.tokens(*fields) for sentence in sentences], [sentence.tree() for sentence in sentences]


def _with_place(error: RosenblattError, sentences: Sequence[Sentence]) -> RosenblattError:
    """The error, with file and line where it is about a sentence."""
    if error.row is not None and error.path is None and error.row < len(sentences):
        error.path, error.line = sentences[error.row].place_of(1)
    return error


def _training_facts(parser: Any, sentences: int) -> dict[str, Any]:
    facts = {
        "sentences": sentences,
        "labels": parser.labels_,
        "updates": parser.n_updates_,
        "epochs": parser.n_iter_,
        "crossing_trees": parser.n_nonprojective_,
    }
    return facts | ({"lifted_words": parser.n_lifted_} if hasattr(parser, "n_lifted_") else {})


def _crossing_trees(facts: dict[str, Any]) -> list[str]:
    """How many trees have crossing arcs, where there are any, and what was done about it."""
    if not facts["crossing_trees"]:
        return []
    line = f"trees with crossing arcs: {facts['crossing_trees']:,} of {facts['sentences']:,}"
    if "lifted_words" in facts:
        line += f"; words lifted to the head of their head, for trees without: {facts['lifted_words']:,}"
    return [line]


# Using


def _parse(learner: Any, sentences: Sequence[Sentence], warned: set[str]) -> Iterator[Sentence]:
    """The sentences with their trees, and tags where the model has taggers; each warning is printed once."""
    if hasattr(learner, "annotate"):
        yield from learner.annotate(sentences)
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        answers = learner.predict([sentence.tokens(*learner.fields) for sentence in sentences])
    for message in dict.fromkeys(str(warning.message) for warning in caught):
        if message not in warned:
            print(f"warning: {message}", file=sys.stderr)
            warned.add(message)
    for sentence, answer in zip(sentences, answers, strict=True):
        heads, labels = zip(*answer, strict=True)
        yield sentence.with_columns(head=heads, deprel=labels)


def _keep_first(sentences: Iterable[Sentence], first: list[Sentence]) -> Iterator[Sentence]:
    for sentence in sentences:
        if not first:
            first.append(sentence)
        yield sentence


def _measure(learner: Any, gold: Sequence[Sentence], warned: set[str]) -> tuple[dict[str, Any], str]:
    from rosenblatt.structured import evaluation

    true = [sentence.tree() for sentence in gold]
    guess = list(_parse(learner, gold, warned))
    scores = evaluation.trees(true, [sentence.tree() for sentence in guess])
    facts: dict[str, Any] = {
        "uas": scores.uas,
        "las": scores.las,
        "clas": scores.clas,
        "words": scores.heads.total,
        "sentences": len(gold),
        "relations": {str(name): {**score._asdict(), "f1": score.f1} for name, score in scores.per_label.items()},
    }
    lines = []
    for name in getattr(learner, "taggers_", {}):
        tags = evaluation.tags([sentence.column(name) for sentence in gold], [sentence.column(name) for sentence in guess])
        facts[name] = tags.accuracy
        lines.append(f"{name} {tags.words}")
    return facts, "\n".join([*lines, str(scores)])
