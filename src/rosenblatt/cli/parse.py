"""`rosenblatt parse`: a dependency tree for every sentence."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rosenblatt.cli import options as opts
from rosenblatt.cli import text
from rosenblatt.cli.cluster import describe_shards, refuse_cluster_options, train_sentences
from rosenblatt.cli.console import Console
from rosenblatt.cli.errors import Code, Failure
from rosenblatt.cli.files import check_plot, load_model, save_plot
from rosenblatt.errors import InvalidData, InvalidParameter, UnreadableModel

if TYPE_CHECKING:
    from rosenblatt.data.conllu import Sentence

TAGS = "upos,xpos"
_KIND = ("taggers", "tags", "beam", "graph", "crossing", "suffixes")  # the options that say what is trained
_FOLDS = 5
_FIRST_SENTENCES = 1000  # that tell which columns have tags, where workers read the rest
_COLUMNS = ("lemma", "upos", "xpos", "feats", "misc")  # that a parser may read as tags; others are the answer itself


@opts.expand_groups
def parse(
    context: typer.Context,
    model: text.Model,
    parallel: opts.ClusterOptions,
    files: text.Files = None,
    train: text.Train = None,
    dev: text.Dev = None,
    test: text.Test = None,
    taggers: Annotated[
        bool,
        opts.option(
            "--taggers/--no-taggers", None, "Also train part-of-speech taggers, so that plain words can be parsed."
        ),
    ] = True,
    tags: Annotated[str, opts.option("--tags", "A,B,…", "Columns with part-of-speech tags that the parser uses.")] = TAGS,
    beam: Annotated[int, opts.option("--beam", "N", "Beam width; 8 is slower, and better on large treebanks.", min=1)] = 1,
    graph: Annotated[bool, opts.option("--graph", None, "Graph-based parser (Eisner): arcs do not cross.")] = False,
    crossing: Annotated[bool, opts.option("--crossing", None, "Graph-based parser whose arcs may cross.")] = False,
    suffixes: Annotated[
        bool, opts.option("--suffixes/--no-suffixes", None, "Use the last letters of words as features of the parser.")
    ] = True,
    epochs: text.Epochs = 10,
    resume: text.Resume = False,
    start: text.From = None,
    output: opts.Output = None,
    plot: opts.Plot = None,
    seed: opts.Seed = 0,
    max_line: opts.MaxLine = "64M",
    json: opts.Json = False,
    quiet: opts.Quiet = False,
) -> int:
    """Parse sentences into dependency trees: train a parser, measure it, annotate files.

    With --train, MODEL is trained on CoNLL-U files and saved; with --test it is measured; FILES are printed as CoNLL-U
    with heads and relations, and tags where MODEL has taggers. --plot draws the tree of the first sentence. Ctrl-C saves
    what is trained; the same command with --resume continues exactly there.
    """
    console = Console(json, quiet)
    text.check_arguments(context, (*_KIND, "epochs", "seed", "resume", "start", "cluster"))
    if not parallel.cluster:
        refuse_cluster_options(context)
    check_plot(plot)
    if graph or crossing:
        opts.refuse_options(context, ("beam",), "a graph-based parser has no beam")
    if crossing:
        opts.refuse_options(context, ("graph",), "it has no effect with --crossing, which trains a graph-based parser too")
    facts: dict[str, Any] = {"model": model}
    lines: list[str] = []
    learner: Any
    warned: set[str] = set()
    if train and parallel.cluster:
        learner = _train_parser_on_cluster(context, parallel, console)
        facts |= _training_facts(learner, learner.n_seen_ // learner.n_iter_)
        facts["cluster"], shards = describe_shards(learner)
        made = f"{learner.n_updates_:,} updates in {learner.n_iter_} epochs of {shards}"
        lines.append(f"{model}: {len(learner.labels_)} relations, {made}")
        held = list(text.read_sentences(dev)) if dev else []
    elif train:
        gold, held = list(text.read_sentences(train)), list(text.read_sentences(dev)) if dev else []
        learner, fit = _learner_to_train(context, gold, console)
        X, y = _examples(gold, learner)
        X_val, y_val = _examples(held, learner) if held else (None, None)
        with text.placed([text.Place(*sentence.place_of(1)) for sentence in gold]):
            if not text.fit_and_save(learner, model, X, y, X_val, y_val, fit):
                _say_stage(learner)
                return Code.INTERRUPTED
        parser = learner.parser_ if _has_taggers(learner) else learner
        facts |= _training_facts(parser, len(gold))
        lines.append(f"{model}: {len(parser.labels_)} relations, {parser.n_updates_:,} updates in {parser.n_iter_} epochs")
        lines += _crossing_trees(facts)
    else:
        learner = _load(model)
    for name, paths in (("dev", dev), ("test", test)):
        if paths:
            measured = held if name == "dev" else list(text.read_sentences(paths))
            facts[name], scores = _measure_trees(learner, measured, warned)
            overall, _, _ = scores.partition("\n\n")
            lines.append(f"{name}: {scores if name == 'test' else overall}")
    if lines:
        console.result(facts, "\n".join(lines))
    if files:
        first: list[Sentence] = []
        text.annotate(
            files, None, lambda sentences: _keep_first(_parse(learner, sentences, warned), first), output, console
        )
        if plot and not first:
            console.note("there is no sentence to plot")
        elif plot:
            from rosenblatt.plot import tree

            names = [name for name in ("upos",) if set(first[0].column(name)) != {"_"}]
            save_plot(tree(first[0].tokens("form", *names) if names else first[0].forms, first[0].tree()), plot)
            console.note(f"the plot is saved in {plot}")
    return Code.DONE


# Training


def _train_parser_on_cluster(context: typer.Context, parallel: opts.ClusterOptions, console: Console) -> Any:
    """The parser that workers have trained; which columns it reads, the first sentences decide."""
    values = context.params
    if values["start"]:
        raise Failure("--from and --cluster cannot be used together", Code.USAGE, "train without --cluster")
    if values["taggers"]:
        raise Failure("--cluster trains the parser alone, without taggers", Code.USAGE, "--no-taggers, and rosenblatt tag")
    first = list(islice(text.read_sentences(values["train"]), _FIRST_SENTENCES))
    given = bool(opts.options_in_use(context, "tags"))
    parser = _parser(values, ("form", *_tag_columns(first, values["tags"], given, console)))
    parser.set_params(max_iter=values["epochs"], random_state=values["seed"])
    return train_sentences(parallel, parser, values["train"], None, None, values["model"], values["resume"], console)


def _learner_to_train(
    context: typer.Context, sentences: Sequence[Sentence], console: Console
) -> tuple[Any, Callable[..., object]]:
    """(learner, fit): what --train trains, and how: anew, from the weights of another, or on from an interruption."""
    values = context.params
    changes = {"max_iter": values["epochs"], "random_state": values["seed"], "verbose": int(not values["quiet"])}
    if values["resume"]:
        return _interrupted(context, changes)
    if values["start"]:
        return _restarted(context, changes, len(sentences))
    given = bool(opts.options_in_use(context, "tags"))
    parser = _parser(values, ("form", *_tag_columns(sentences, values["tags"], given, console))).set_params(**changes)
    if not values["taggers"]:
        return parser, parser.fit
    from rosenblatt.structured import SequenceTagger, TagAndParse

    console.note(f"{len(sentences):,} sentences; training the taggers first, then the parser")
    tagger = SequenceTagger.fast(**changes | {"verbose": 0})
    learner = TagAndParse(parser, tagger, _folds(len(sentences)))
    return learner, learner.fit


def _parser(values: Mapping[str, Any], fields: tuple[str, ...]) -> Any:
    """The parser that the options describe."""
    from rosenblatt.structured import GraphParser, TransitionParser

    common = {"fields": fields, "suffixes": values["suffixes"]}
    if values["graph"] or values["crossing"]:
        return GraphParser(decoder="chu-liu-edmonds" if values["crossing"] else "eisner", **common)
    return TransitionParser(values["beam"], **common)


def _folds(sentences: int) -> int:
    """Parts of the jackknife; a single sentence cannot be cut."""
    return min(_FOLDS, sentences) if sentences > 1 else 0


def _restarted(context: typer.Context, changes: dict[str, Any], sentences: int) -> tuple[Any, Callable[..., object]]:
    """A learner like that of --from, which starts from its weights."""
    from rosenblatt.estimators.interface import clone
    from rosenblatt.structured import TagAndParse

    before = _load(context.params["start"])
    opts.refuse_options(context, _KIND, f"{context.params['start']} keeps its kind of parser, its tags and its taggers")
    if not _has_taggers(before):
        learner = clone(before).set_params(**changes)
        return learner, partial(learner.fit, start=before)
    taggers = {tag: clone(each).set_params(**changes | {"verbose": 0}) for tag, each in before.taggers_.items()}
    pipeline = TagAndParse(clone(before.parser_).set_params(**changes), taggers, _folds(sentences))
    return pipeline, partial(pipeline.fit, start=before)


def _interrupted(context: typer.Context, changes: dict[str, Any]) -> tuple[Any, Callable[..., object]]:
    """The learner of an interrupted training, to go on with the options of then; more epochs are allowed."""
    learner = _load(context.params["model"], complete=False)
    parser = learner.parser if _has_taggers(learner) else learner
    decoder = getattr(parser, "decoder", None)
    then = {
        "taggers": _has_taggers(learner),
        "tags": ",".join(parser.fields[1:]),
        "beam": getattr(parser, "beam", 1),
        "graph": decoder == "eisner",
        "crossing": decoder == "chu-liu-edmonds",
        "suffixes": parser.suffixes,
        "seed": parser.random_state,
    }
    for name, value in then.items():
        if context.params[name] != value and (used := opts.options_in_use(context, name)):
            raise Failure(f"{used[0]}: the interrupted training was begun without it, or with another value", Code.USAGE)
    del changes["random_state"]
    if not opts.options_in_use(context, "epochs"):
        del changes["max_iter"]
    for each in (parser, getattr(learner, "parser_", parser)):
        each.set_params(**changes)
    return learner, learner.resume


def _load(path: str, complete: bool = True) -> Any:
    """The model in a file; a pipeline whose training was interrupted before its parser began is not `complete`."""
    from rosenblatt.structured import GraphParser, TagAndParse, TransitionParser

    learner = load_model(path, TagAndParse, TransitionParser, GraphParser)
    if complete and _has_taggers(learner) and not hasattr(learner, "parser_"):
        raise UnreadableModel(
            "its training was interrupted while the taggers were trained, and there is no parser yet",
            path=path,
            hint="the command that trained it, with --resume",
        )
    return learner


def _has_taggers(learner: Any) -> bool:
    return hasattr(learner, "annotate")


def _say_stage(learner: Any) -> None:
    """Say how far a pipeline came; a parser alone needs no more words."""
    if not _has_taggers(learner) or not hasattr(learner, "taggers_"):
        return
    if hasattr(learner, "parser_"):
        parser = learner.parser_
        stage = f"the taggers are trained, and the parser in {parser.n_iter_} of {parser.max_iter} epochs"
    else:
        tags = len(learner.parser.fields) - 1
        stage = f"{len(learner.taggers_)} of {tags} taggers are trained, and the parser has not begun"
    print(stage, file=sys.stderr)


def _tag_columns(sentences: Sequence[Sentence], tags: str, given: bool, console: Console) -> list[str]:
    """The columns that the parser reads beside the form; by default those of --tags that are not empty in all sentences."""
    names = tags.split(",")
    for name in names:
        if name not in _COLUMNS:
            raise InvalidParameter("fields", name, f"a comma-separated list of {', '.join(_COLUMNS)}")
    if len(set(names)) < len(names):
        raise InvalidParameter("fields", tags, "distinct columns")
    empty = [name for name in names if all(value == "_" for sentence in sentences for value in sentence.column(name))]
    if empty and given:
        raise InvalidData(
            f"--tags {','.join(empty)}: the column is empty (_) in all {len(sentences):,} sentences to train on",
            hint="name columns that have values",
        )
    if empty:
        console.note(f"not used, because empty (_) in all sentences: {', '.join(empty)}")
    return [name for name in names if name not in empty]


def _examples(sentences: Sequence[Sentence], learner: Any) -> tuple[list, list]:
    """(words, tags and trees), or without taggers (words with their tags, trees)."""
    from rosenblatt.structured.pipeline import examples

    if _has_taggers(learner):
        return examples(sentences, learner.parser.fields[1:])
    return [sentence.tokens(*learner.fields) for sentence in sentences], [sentence.tree() for sentence in sentences]


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
    if _has_taggers(learner):
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


def _measure_trees(learner: Any, gold: Sequence[Sentence], warned: set[str]) -> tuple[dict[str, Any], str]:
    import numpy as np

    from rosenblatt.structured import evaluation
    from rosenblatt.structured.trees import is_projective

    true = [sentence.tree() for sentence in gold]
    annotated = list(_parse(learner, gold, warned))
    guess = [sentence.tree() for sentence in annotated]
    scores = evaluation.trees(true, guess)
    facts: dict[str, Any] = {
        "uas": scores.uas,
        "las": scores.las,
        "clas": scores.clas,
        "words": scores.heads.total,
        "sentences": len(gold),
        "relations": {str(name): {**score._asdict(), "f1": score.f1} for name, score in scores.per_label.items()},
    }
    overall, _, table = str(scores).partition("\n\n")
    if crossing := [i for i, tree in enumerate(true) if not is_projective(np.array([head for head, _ in tree]))]:
        part = evaluation.trees([true[i] for i in crossing], [guess[i] for i in crossing])
        facts["crossing"] = {"uas": part.uas, "las": part.las, "words": part.heads.total, "sentences": len(crossing)}
        overall += f"\nof the {len(crossing):,} sentences with crossing arcs: UAS {part.heads}, LAS {part.labelled}"
    lines = []
    for name in getattr(learner, "taggers_", {}):
        tags = evaluation.tags([each.column(name) for each in gold], [each.column(name) for each in annotated])
        facts[name] = tags.accuracy
        lines.append(f"{name} {tags.words}")
    return facts, "\n".join([*lines, f"{overall}\n\n{table}"])
