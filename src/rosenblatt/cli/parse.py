"""`rosenblatt parse`: a dependency tree for every sentence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rosenblatt.cli import options as opts
from rosenblatt.cli import text
from rosenblatt.cli.console import Console
from rosenblatt.cli.errors import Code
from rosenblatt.cli.files import check_plot, load_model, save_plot
from rosenblatt.errors import InvalidParameter

if TYPE_CHECKING:
    from rosenblatt.data.conllu import Sentence


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
    tags: Annotated[str, opts.option("--tags", "A,B,…", "Columns with tags that the parser uses.")] = "upos,xpos",
    beam: Annotated[int, opts.option("--beam", "N", "Beam width; 8 is slower and more accurate.", min=1)] = 1,
    graph: Annotated[bool, opts.option("--graph", None, "Graph-based parser: projective trees (Eisner).")] = False,
    crossing: Annotated[bool, opts.option("--crossing", None, "Graph-based parser: non-projective trees.")] = False,
    epochs: text.Epochs = 10,
    output: opts.Output = None,
    plot: opts.Plot = None,
    seed: opts.Seed = 0,
    max_line: opts.MaxLine = "64M",
    json: opts.Json = False,
    quiet: opts.Quiet = False,
) -> int:
    """Parse sentences into dependency trees: train a parser, measure it, annotate files.

    With --train, MODEL is trained on CoNLL-U files and saved; with --test it is measured; FILES are printed as CoNLL-U
    with heads and relations, and tags where MODEL has taggers. --plot draws the tree of the first sentence.
    """
    from rosenblatt.structured import GraphParser, SequenceTagger, TagAndParse, TransitionParser
    from rosenblatt.structured.pipeline import examples

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
    if train:
        fields = ("form", *tags.split(","))
        common: dict[str, Any] = {"fields": fields, "max_iter": epochs, "random_state": seed, "verbose": int(not quiet)}
        if graph or crossing:
            learner = GraphParser(decoder="chu-liu-edmonds" if crossing else "eisner", **common)
        else:
            learner = TransitionParser(beam, **common)
        read = examples if taggers else _tagged_examples
        try:
            X, y = read(text.read_sentences(train), fields[1:])
            validation = read(text.read_sentences(dev), fields[1:]) if dev else (None, None)
        except InvalidParameter as error:
            if error.parameter != "column":
                raise
            raise InvalidParameter("fields", error.value, error.allowed or "columns of the files") from None
        if taggers:
            learner = TagAndParse(learner, SequenceTagger.fast(random_state=seed, max_iter=epochs), min(5, len(X)))
            console.note(f"{len(X):,} sentences; training the taggers first, then the parser")
        if not text.fit_and_save(learner, model, X, y, *validation):
            return Code.INTERRUPTED
        parser = learner.parser_ if taggers else learner
        facts |= {"labels": parser.labels_, "updates": parser.n_updates_, "epochs": parser.n_iter_}
        lines.append(f"{model}: {len(parser.labels_)} relations, {parser.n_updates_:,} updates in {parser.n_iter_} epochs")
    else:
        learner = load_model(model, TagAndParse, TransitionParser, GraphParser)
    for name, held in (("dev", dev), ("test", test)):
        if held:
            facts[name], scores = _measure(learner, held)
            lines.append(f"{name}: {scores}")
    if lines:
        console.result(facts, "\n".join(lines))
    if files:
        first: list[Sentence] = []
        text.annotate(files, None, lambda sentences: _keep_first(_parse(learner, sentences), first), output, console)
        if plot and first:
            from rosenblatt.plot import tree

            names = [name for name in ("upos",) if set(first[0].column(name)) != {"_"}]
            save_plot(tree(first[0].tokens("form", *names) if names else first[0].forms, first[0].tree()), plot)
            console.note(f"the plot is saved in {plot}")
    return Code.DONE


def _tagged_examples(sentences: Iterable[Sentence], tags: Sequence[str]) -> tuple[list, list]:
    """(tokens with their tags, trees)."""
    X, y = [], []
    for sentence in sentences:
        X.append(sentence.tokens("form", *tags))
        y.append(sentence.tree())
    return X, y


def _parse(learner: Any, sentences: list[Sentence]) -> Iterator[Sentence]:
    """The sentences with their trees, and tags where the model has taggers."""
    if hasattr(learner, "annotate"):
        yield from learner.annotate(sentences)
        return
    answers = learner.predict([sentence.tokens(*learner.fields) for sentence in sentences])
    for sentence, answer in zip(sentences, answers, strict=True):
        heads, labels = zip(*answer, strict=True)
        yield sentence.with_columns(head=heads, deprel=labels)


def _keep_first(sentences: Iterable[Sentence], first: list[Sentence]) -> Iterator[Sentence]:
    for sentence in sentences:
        if not first:
            first.append(sentence)
        yield sentence


def _measure(learner: Any, files: Sequence[str]) -> tuple[dict[str, Any], str]:
    from rosenblatt.structured import evaluation

    gold = list(text.read_sentences(files))
    guess = list(_parse(learner, gold))
    scores = evaluation.trees([sentence.tree() for sentence in gold], [sentence.tree() for sentence in guess])
    facts: dict[str, Any] = {"uas": scores.uas, "las": scores.las, "clas": scores.clas, "words": scores.heads.total}
    lines = []
    for name in getattr(learner, "taggers_", {}):
        tags = evaluation.tags([sentence.column(name) for sentence in gold], [sentence.column(name) for sentence in guess])
        facts[name] = tags.accuracy
        lines.append(f"{name} {tags.words}")
    return facts, "\n".join([*lines, *str(scores).splitlines()[:4]])
