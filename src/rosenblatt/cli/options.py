"""The options that several commands share, and how they become a reading and a learner.

Options that belong together are the fields of a NamedTuple; `expand_groups` lets a command take it as one parameter, and
shows each field as an option.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from functools import wraps
from inspect import Parameter, signature
from typing import Annotated, Any, NamedTuple, get_type_hints

import typer

from rosenblatt.cli.errors import Code, Failure
from rosenblatt.errors import InvalidParameter

Json = Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only the result: no progress, no notes.")]
Seed = Annotated[
    int, typer.Option("--seed", metavar="N", min=0, max=2**32 - 1, help="Random seed: the same seed gives the same result.")
]
Output = Annotated[
    str | None, typer.Option("--output", "-o", metavar="FILE", help="Write the result to this file instead of stdout.")
]
Plot = Annotated[
    str | None, typer.Option("--plot", metavar="FILE", help="Save a plot as .png, .svg or .pdf. Needs matplotlib.")
]
Proof = Annotated[str | None, typer.Option("--output", "-o", metavar="FILE", help="Save the proof to this file, as JSON.")]
Check = Annotated[
    str | None, typer.Option("--check", metavar="FILE", help="Check the proof in this file instead of searching for one.")
]
Files = Annotated[
    list[str], typer.Argument(metavar="DATA", help='Files, folders or patterns of one format; "-" is standard input.')
]
Model = Annotated[str, typer.Argument(metavar="MODEL", help="A model file.")]
SkipErrors = Annotated[
    bool, typer.Option("--skip-errors", help="Leave out rows that cannot be read, and say how many there were.")
]


class DataOptions(NamedTuple):
    """How files become rows."""

    format: Annotated[
        str | None,
        typer.Option(
            "--format", metavar="NAME",
            help="File format: svmlight, vw, csv, tsv, parquet, arrow or jsonl; by default detected from the file.",
        ),
    ] = None  # fmt: skip
    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            metavar="COLUMN",
            help="Column that holds the label: its name, or its number from 0.",
        ),
    ] = None
    text: Annotated[
        list[str] | None,
        typer.Option("--text", metavar="COLUMN", help="Column with free text, split into words; repeatable."),
    ] = None
    category: Annotated[
        list[str] | None, typer.Option("--category", metavar="COLUMN", help="Column with categories (one-hot); repeatable.")
    ] = None
    numeric: Annotated[
        list[str] | None, typer.Option("--numeric", metavar="COLUMN", help="Column with numbers; repeatable.")
    ] = None
    ignore: Annotated[
        list[str] | None, typer.Option("--ignore", metavar="COLUMN", help="Column to leave out; repeatable.")
    ] = None
    weight: Annotated[
        str | None, typer.Option("--weight", metavar="COLUMN", help="Column with the weight of each row (sample weight).")
    ] = None
    header: Annotated[
        bool | None,
        typer.Option("--header/--no-header", help="Whether the first line has the column names; by default detected."),
    ] = None
    delimiter: Annotated[
        str | None, typer.Option("--delimiter", metavar="C", help="Character between the columns of csv.")
    ] = None
    missing: Annotated[
        str | None,
        typer.Option("--missing", metavar="error|fill", help="Missing values: an error (default), or filled in."),
    ] = None
    scale: Annotated[
        str | None,
        typer.Option("--scale", metavar="standard|none", help="Scale numbers to mean 0 and variance 1, or keep them."),
    ] = None
    ngrams: Annotated[
        str | None, typer.Option("--ngrams", metavar="LOW-HIGH", help="Word n-grams of text columns: 1-2 adds bigrams.")
    ] = None
    characters: Annotated[
        str | None, typer.Option("--characters", metavar="LOW-HIGH", help="Character n-grams of text columns too, as 3-5.")
    ] = None
    hash_bits: Annotated[
        int | None,
        typer.Option(
            "--hash-bits", min=1, max=30, metavar="BITS", help="Hash features into 2^BITS columns (the hashing trick)."
        ),
    ] = None

    def make_reading(self, paths: list[str]) -> Any:
        """Return the reading that these options describe."""
        from rosenblatt.data.formats import detect_format
        from rosenblatt.workflow import reading_for

        options: dict[str, Any] = {
            "target": _column(self.target), "weight": _column(self.weight), "header": self.header,
            "delimiter": {"\\t": "\t", "tab": "\t"}.get(self.delimiter or "", self.delimiter),
            "missing": self.missing, "scale": self.scale,
            "ngrams": _range("ngrams", self.ngrams), "characters": _range("characters", self.characters),
        }  # fmt: skip
        for name, columns in {
            "text": self.text, "categories": self.category, "numeric": self.numeric, "ignore": self.ignore,
        }.items():  # fmt: skip
            options[name] = [_column(column) for column in columns] if columns else None
        if self.hash_bits is not None:
            options["bits" if (self.format or detect_format(paths[0])) == "vw" else "hashing"] = self.hash_bits
        return reading_for(paths, self.format, **{name: value for name, value in options.items() if value is not None})


class Order(StrEnum):
    """Those of `workflow.Options`."""

    shuffle = "shuffle"
    cyclic = "cyclic"


def complete_learner(incomplete: str) -> list[str]:
    """Return the learners whose names begin so."""
    from rosenblatt.workflow.learners import LEARNERS

    return [name for name in LEARNERS if name.lower().startswith(incomplete.lower())]


class LearnerOptions(NamedTuple):
    """What to learn with."""

    learner: Annotated[
        str,
        typer.Option(
            "--learner", "-l", metavar="NAME", autocompletion=complete_learner,
            help="Learning algorithm: perceptron, pa (passive-aggressive), arow, mira, …",
        ),
    ] = "perceptron"  # fmt: skip
    set: Annotated[
        list[str] | None,
        typer.Option("--set", "-s", metavar="NAME=VALUE", help="Parameter of the learner, as margin=1; repeatable."),
    ] = None
    passes: Annotated[
        int | None,
        typer.Option(
            "--passes",
            "--epochs",
            "-p",
            min=1,
            metavar="N",
            help="Number of epochs (passes over the data); default 10, or 1 for a stream.",
        ),
    ] = None
    order: Annotated[
        Order, typer.Option("--order", help="Shuffle loaded rows before each epoch, or take them in order (cyclic).")
    ] = Order.shuffle
    seed: Seed = 0

    def make_learner(self) -> Any:
        """Return the learner that these options describe."""
        from rosenblatt.workflow import make_learner
        from rosenblatt.workflow.learners import parse_setting

        learner = make_learner(self.learner, dict(map(parse_setting, self.set or [])))
        if hasattr(learner, "_plan"):
            learner._plan()  # refuses values that are not allowed
        return learner


def _column(text: str | None) -> str | int | None:
    return int(text) if text is not None and text.isdecimal() else text


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
            used.append(next(text for text in parameter.opts if text.startswith("--")))
    return used


def refuse_options(context: typer.Context, names: tuple[str, ...], reason: str, hint: str | None = None) -> None:
    """Refuse options that would have no effect."""
    if used := options_in_use(context, *names):
        raise Failure(f"{', '.join(used)}: {reason}", Code.USAGE, hint)
