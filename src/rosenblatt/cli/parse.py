"""`rosenblatt parse`: a tree for every sentence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any

import typer

from rosenblatt.cli import pictures, text
from rosenblatt.cli.console import Console
from rosenblatt.cli.errors import Code, Failure
from rosenblatt.cli.options import Json, Output, Plot, Quiet, Seed


def parse(
    model: text.Model,
    files: text.Files = None,
    train: text.Train = None,
    dev: text.Dev = None,
    test: text.Test = None,
    taggers: Annotated[
        bool,
        typer.Option("--taggers/--no-taggers", help="Learn taggers too, for plain words; else tags come with the files."),
    ] = True,
    tags: Annotated[str, typer.Option(metavar="A,B,…", help="The columns with tags that the parser reads.")] = "upos,xpos",
    beam: Annotated[int, typer.Option(min=1, metavar="N", help="How many parses to keep; 8 is slower and better.")] = 1,
    graph: Annotated[bool, typer.Option("--graph", help="A graph parser, which searches all projective trees.")] = False,
    crossing: Annotated[bool, typer.Option("--crossing", help="A graph parser whose arcs may cross.")] = False,
    epochs: text.Epochs = 10,
    output: Output = None,
    plot: Plot = None,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Give each sentence its dependency tree: train a parser, measure it, run it.

    With --train, MODEL is learned from CoNLL-U files and saved; with --test it is measured; FILES are printed as CoNLL-U
    with heads and relations, and tags where MODEL has taggers. --plot draws the tree of the first sentence.
    """
    from rosenblatt.structured import GraphParser, TagAndParse, TransitionParser

    console = Console(json, quiet)
    text.prepared(model, files, train, test, dev, output)
    pictures.prepared(plot)
    if plot and not files:
        raise Failure("--plot draws the first tree of FILES, and there are none", Code.USAGE)
    facts: dict[str, Any] = {"model": model}
    said: list[str] = []
    if train:
        fields = ("form", *tags.split(","))
        common: dict[str, Any] = {"fields": fields, "max_iter": epochs, "random_state": seed, "verbose": int(not quiet)}
        made = (
            GraphParser(decoder="chu-liu-edmonds" if crossing else "eisner", **common)
            if graph or crossing
            else TransitionParser(beam, **common)
        )
        going, learner = (_both if taggers else _alone)(made, train, dev, model, console)
        if not going:
            return Code.INTERRUPTED
        parser = learner.parser_ if taggers else learner
        facts |= {"labels": parser.labels_, "updates": parser.n_updates_, "epochs": parser.n_iter_}
        said.append(f"{model}: {len(parser.labels_)} relations, {parser.n_updates_:,} updates in {parser.n_iter_} epochs")
        if dev and not taggers:
            facts["dev"] = 1 - (parser.history_[-1].validation_error or 0.0)
            said.append(f"dev: {facts['dev']:.2%} of the heads and relations are right")
    else:
        learner = text.loaded(model, [TagAndParse, TransitionParser, GraphParser])
    for name, held in (("dev", dev if train and taggers else None), ("test", test)):
        if held:
            facts[name], words = _measured(learner, held)
            said.append(f"{name}: {words}")
    if said:
        console.result(facts, "\n".join(said))
    if files:
        first: list[Any] = []
        text.annotated(files, None, lambda some: _kept(_parsed(learner, some), first), output, console)
        if plot and first:
            from rosenblatt.plot import tree

            names = [name for name in ("upos",) if set(first[0].column(name)) != {"_"}]
            pictures.saved(tree(first[0].tokens("form", *names) if names else first[0].forms, first[0].tree()), plot)
            console.note(f"drawn in {plot}")
    return Code.DONE


def _both(made: Any, train: Sequence[str], dev: Any, path: str, console: Console) -> tuple[bool, Any]:
    from rosenblatt.structured import SequenceTagger, TagAndParse
    from rosenblatt.structured.pipeline import examples

    X, y = examples(text.sentences(train), made.fields[1:])
    both = TagAndParse(made, SequenceTagger.fast(random_state=made.random_state, max_iter=made.max_iter), min(5, len(X)))
    console.note(f"{len(X):,} sentences; taggers learn first, from parts of them, then the parser")
    return text.learned(lambda: both.fit(X, y), lambda: both.save(path), path, console), both


def _alone(made: Any, train: Sequence[str], dev: Any, path: str, console: Console) -> tuple[bool, Any]:
    X, y = _examples(text.sentences(train), made.fields)
    judged = _examples(text.sentences(dev), made.fields) if dev else (None, None)
    return text.learned(lambda: made.fit(X, y, *judged), lambda: made.save(path), path, console), made


def _examples(sentences: Iterable[Any], fields: Sequence[str]) -> tuple[list, list]:
    X, y = [], []
    for sentence in sentences:
        X.append(sentence.tokens(*fields))
        y.append(sentence.tree())
    return X, y


def _parsed(learner: Any, some: list[Any]) -> Iterator[Any]:
    """The sentences with their trees, and tags where the model has taggers."""
    if hasattr(learner, "annotate"):
        yield from learner.annotate(some)
        return
    answers = learner.predict([sentence.tokens(*learner.fields) for sentence in some])
    for sentence, answer in zip(some, answers, strict=True):
        heads, labels = zip(*answer, strict=True)
        yield sentence.with_columns(head=heads, deprel=labels)


def _kept(sentences: Iterable[Any], first: list[Any]) -> Iterator[Any]:
    for sentence in sentences:
        if not first:
            first.append(sentence)
        yield sentence


def _measured(learner: Any, files: Sequence[str]) -> tuple[dict[str, Any], str]:
    from rosenblatt.structured import evaluation

    gold = list(text.sentences(files))
    guess = list(_parsed(learner, gold))
    scores = evaluation.trees([sentence.tree() for sentence in gold], [sentence.tree() for sentence in guess])
    facts: dict[str, Any] = {"uas": scores.uas, "las": scores.las, "clas": scores.clas, "words": scores.heads.total}
    lines = []
    for name in getattr(learner, "taggers_", {}):
        tags = evaluation.tags([sentence.column(name) for sentence in gold], [sentence.column(name) for sentence in guess])
        facts[name] = tags.accuracy
        lines.append(f"{name} {tags.words}")
    return facts, "\n".join([*lines, *str(scores).splitlines()[:4]])
