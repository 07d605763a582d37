"""The options that several commands share, and how they become a reading and a learner.

Options that belong together are the fields of a NamedTuple; `expand_groups` lets a command take it as one parameter, and
shows each field as an option.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from functools import wraps
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_type_hints

import typer

from rosenblatt.cli.errors import Code, Failure
from rosenblatt.errors import InvalidParameter

if TYPE_CHECKING:
    from rosenblatt.data.reading import Reading

Text = str | None
Texts = list[str] | None


def option(flags: str, metavar: str | None, help: str, **limits: Any) -> Any:
    """Return an option with these flags, the name of its value, and its help."""
    return typer.Option(*flags.split(), metavar=metavar, help=help, **limits)


Json = Annotated[bool, option("--json", None, "Print the result as one JSON object.")]
Quiet = Annotated[bool, option("--quiet -q", None, "Print only the result: no progress, no notes.")]
Seed = Annotated[int, option("--seed", "N", "Random seed; the same seed gives the same result.", min=0, max=2**32 - 1)]
Output = Annotated[Text, option("--output -o", "FILE", "Write the result to this file instead of standard output.")]
Plot = Annotated[Text, option("--plot", "FILE", "Save a plot to this file (.png, .svg or .pdf); needs matplotlib.")]
Proof = Annotated[Text, option("--output -o", "FILE", "Save the proof to this file, as JSON.")]
Check = Annotated[Text, option("--check", "FILE", "Check the proof in this file instead of searching for one.")]
Files = Annotated[
    list[str], typer.Argument(metavar="DATA", help='Data files, folders or patterns (*.csv); "-" is standard input.')
]
Model = Annotated[str, typer.Argument(metavar="MODEL", help="A model file.")]


def _use_max_line(text: str) -> str:
    """Let files be read with lines of at most this size."""
    from rosenblatt.data.opening import MAX_LINE

    number, unit = (text[:-1], text[-1].upper()) if text[-1:].upper() in ("K", "M", "G") else (text, "")
    if not number.isdecimal() or int(number) < 1:
        raise InvalidParameter("max_line", text, "a size such as 500K, 64M or 2G")
    MAX_LINE.set(int(number) << {"": 0, "K": 10, "M": 20, "G": 30}[unit])
    return text


MaxLine = Annotated[str, option(
    "--max-line", "SIZE", "Longest line, field or sentence to read, such as 500K or 2G.", callback=_use_max_line
)]  # fmt: skip
Probabilities = Annotated[
    bool,
    option("--probabilities", None, "Predict the most probable label, with its probability; needs train --probabilities."),
]
Threshold = Annotated[
    float | None,
    option(
        "--threshold",
        "T",
        "Predict the second of two classes if its score (or probability) is at least T; default 0 (0.5).",
    ),
]
SkipErrors = Annotated[bool, option("--skip-errors", None, "Skip rows that cannot be read, and say how many.")]


class Mixture(StrEnum):
    """Those of `rosenblatt.cluster.fit`."""

    uniform = "uniform"
    mistakes = "mistakes"
    changed = "changed"


class ClusterOptions(NamedTuple):
    """Where training runs, and how what workers have learned is put together."""

    cluster: Annotated[Text, option(
        "--cluster", "ADDRESS",
        "Train on a Dask cluster: the address of its scheduler, tcp://HOST:8786, or local for processes on this machine.",
    )] = None  # fmt: skip
    shards: Annotated[int | None, option(
        "--shards", "N",
        "Parts of the data that are learned side by side on a cluster; by default one for each 128 MiB, at least 8. The "
        "model depends on this number, not on the number of workers.", min=1,
    )] = None  # fmt: skip
    mixing: Annotated[Mixture | None, option(
        "--mixing", None,
        "How the weights of shards are averaged: equally, by their mistakes, or each weight over those that changed it.",
    )] = None  # fmt: skip


class DataOptions(NamedTuple):
    """How files become rows."""

    format: Annotated[Text, option(
        "--format", "NAME", "File format: svmlight, vw, csv, tsv, parquet, arrow or jsonl; by default detected."
    )] = None  # fmt: skip
    target: Annotated[Text, option("--target", "COLUMN", "Column with the label: its name, or its number from 0.")] = None
    text: Annotated[Texts, option("--text", "COLUMN", "Column with free text (bag of words); repeatable.")] = None
    category: Annotated[Texts, option("--category", "COLUMN", "Column with categories; repeatable.")] = None
    numeric: Annotated[Texts, option("--numeric", "COLUMN", "Column with numbers; repeatable.")] = None
    ignore: Annotated[Texts, option("--ignore", "COLUMN", "Column to leave out; repeatable.")] = None
    weight: Annotated[Text, option("--weight", "COLUMN", "Column with sample weights.")] = None
    header: Annotated[
        bool | None,
        option("--header/--no-header", None, "The first line has the column names, or not; by default detected."),
    ] = None
    delimiter: Annotated[
        Text, option("--delimiter", "C", "Character that separates the fields of CSV, such as ; or tab.")
    ] = None
    missing: Annotated[
        Text, option("--missing", "error|fill", "Missing values: an error, or filled in (with the mean, or a category).")
    ] = None
    scale: Annotated[
        Text,
        option("--scale", "standard|none", "Standardize numbers to mean 0 and variance 1 (the default), or not at all."),
    ] = None
    ngrams: Annotated[
        Text, option("--ngrams", "LOW-HIGH", "Word n-grams of text columns; default 1-2: words and bigrams.")
    ] = None
    characters: Annotated[
        Text, option("--characters", "LOW-HIGH", "Character n-grams of text columns too, such as 3-5.")
    ] = None
    hash_bits: Annotated[
        int | None, option("--hash-bits", "BITS", "Feature hashing into 2^BITS columns: limits memory.", min=1, max=30)
    ] = None

    def make_reading(self, paths: list[str]) -> Any:
        """Return the reading that these options describe."""
        from rosenblatt.data.formats import detect_format
        from rosenblatt.workflow import reading_for

        delimiter = {"\\t": "\t", "tab": "\t"}.get(self.delimiter or "", self.delimiter)
        options: dict[str, Any] = {
            "target": _column(self.target), "weight": _column(self.weight), "header": self.header, "delimiter": delimiter,
            "missing": self.missing, "scale": self.scale, "text": _columns(self.text), "numeric": _columns(self.numeric),
            "categories": _columns(self.category), "ignore": _columns(self.ignore),
            "ngrams": _range("ngrams", self.ngrams), "characters": _range("characters", self.characters),
        }  # fmt: skip
        if self.hash_bits is not None:
            options["bits" if (self.format or detect_format(paths[0])) == "vw" else "hashing"] = self.hash_bits
        return reading_for(paths, self.format, **{name: value for name, value in options.items() if value is not None})

    def with_target(self, reading: Reading) -> Reading:
        """Return the reading of a model with the labels that `--target` names. Those of .npy matrices may be in any file,
        and a model does not keep which one it was."""
        from rosenblatt.data.npy import Npy

        if not isinstance(reading, Npy) or self.target is None:
            return reading
        return reading.with_target(_column(self.target))

    def fixed_by(self, reading: Reading) -> tuple[str, ...]:
        """Return the names of the options that the reading of a model has decided already."""
        return tuple(name for name in self._fields if name != "target" or reading.format != "npy")


class Order(StrEnum):
    """Those of `workflow.Options`."""

    shuffle = "shuffle"
    cyclic = "cyclic"


class Task(StrEnum):
    """Those of `workflow.Options`."""

    classification = "classification"
    regression = "regression"


def complete_learner(incomplete: str) -> list[str]:
    """Return the learners whose names begin so."""
    from rosenblatt.workflow.learners import LEARNERS

    return [name for name in LEARNERS if name.lower().startswith(incomplete.lower())]


class LearnerOptions(NamedTuple):
    """What to learn with."""

    learner: Annotated[Text, option(
        "--learner -l", "NAME",
        "Learning algorithm: perceptron (default), pa (passive-aggressive), arow, mira and others.",
        autocompletion=complete_learner,
    )] = None  # fmt: skip
    set: Annotated[
        Texts, option("--set -s", "NAME=VALUE", "Set a parameter of the learner, such as margin=1; repeatable.")
    ] = None
    passes: Annotated[int | None, option(
        "--passes --epochs -p", "N",
        "Maximum number of epochs (passes over the data); default 10, more if rows are below 5,000, 1 for a stream.", min=1
    )] = None  # fmt: skip
    order: Annotated[Order, option("--order", None, "Shuffle the rows before each epoch, or keep their order.")] = (
        Order.shuffle
    )
    seed: Seed = 0
    task: Annotated[
        Task | None, option("--task", None, "Whether labels are classes or numbers; by default the learner decides.")
    ] = None
    device: Annotated[
        Text, option("--device", "DEVICE", "Learn on the CPU (cpu, the default) or a GPU (cuda; cuda:1 is the second GPU).")
    ] = None

    def make_learner(self) -> Any:
        """Return the learner that these options describe."""
        from rosenblatt.workflow import make_learner
        from rosenblatt.workflow.devices import check_device
        from rosenblatt.workflow.learners import default_learner, parse_setting

        name, defaults = (self.learner, {}) if self.learner else default_learner(self.task)
        settings = defaults | dict(map(parse_setting, self.set or []))
        if self.device is not None:
            settings["device"] = self.device
        learner = make_learner(name, settings)
        if hasattr(learner, "_plan"):
            learner._plan()  # refuses values that are not allowed
        check_device(getattr(learner, "device", "cpu"))
        return learner


def _column(text: str | None) -> str | int | None:
    return int(text) if text is not None and text.isdecimal() else text


def _columns(texts: Texts) -> list[str | int | None] | None:
    return [_column(text) for text in texts] if texts else None


def _range(name: str, text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    low, _, high = text.partition("-")
    if not low.isdecimal() or (high and not high.isdecimal()):
        raise InvalidParameter(name, text, "the shortest and the longest, as 1-2")
    return int(low), int(high or low)


# Groups of options


def expand_groups(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command in which each NamedTuple among the parameters is replaced by its fields."""
    hints = get_type_hints(command, include_extras=True)
    groups = {name: kind for name, kind in hints.items() if hasattr(kind, "_fields")}
    fields: list[Parameter] = []
    for name, parameter in signature(command).parameters.items():
        if name not in groups:
            fields.append(parameter.replace(annotation=hints[name], kind=Parameter.KEYWORD_ONLY))
            continue
        kind = groups[name]
        for field, annotation in get_type_hints(kind, include_extras=True).items():
            default = kind._field_defaults[field]
            fields.append(Parameter(field, Parameter.KEYWORD_ONLY, default=default, annotation=annotation))

    @wraps(command)
    def run(**values: Any) -> Any:
        built = {name: kind(*(values.pop(field) for field in kind._fields)) for name, kind in groups.items()}
        return command(**values, **built)

    own: Any = run
    own.__signature__ = signature(command).replace(parameters=fields)
    own.__annotations__ = {parameter.name: parameter.annotation for parameter in fields}
    del own.__wrapped__  # or inspect.signature would show that of the command
    return run


def options_in_use(context: typer.Context, *names: str) -> list[str]:
    """Return the options, as they are written, of those parameters that the command line sets."""
    used = []
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if parameter.name in names and source is not None and source.name == "COMMANDLINE":
            off = context.params[parameter.name] is False and parameter.secondary_opts  # --no-header
            used.append(next(text for text in off or parameter.opts if text.startswith("--")))
    return used


def refuse_options(context: typer.Context, names: tuple[str, ...], reason: str, hint: str | None = None) -> None:
    """Refuse options that would have no effect; the reason is about one option."""
    if used := options_in_use(context, *names):
        for one, several in (("it has ", "they have "), ("it is ", "they are ")) if len(used) > 1 else ():
            reason = several + reason.removeprefix(one) if reason.startswith(one) else reason
        raise Failure(f"{', '.join(used)}: {reason}", Code.USAGE, hint)
