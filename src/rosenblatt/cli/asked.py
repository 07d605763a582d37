"""What a command that learns from files is told: how to read them, and what to learn with."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, NamedTuple

import typer

from rosenblatt.cli.errors import Code, ending
from rosenblatt.cli.options import Seed

Files = Annotated[
    list[str], typer.Argument(metavar="DATA", help='Files, folders or patterns of one format; "-" is standard input.')
]
Model = Annotated[str, typer.Argument(metavar="MODEL", help="A model file.")]
SkipErrors = Annotated[bool, typer.Option("--skip-errors", help="Leave out rows that cannot be read, and count them.")]


class Columns(NamedTuple):
    """How files become rows."""

    format: Annotated[
        str | None,
        typer.Option(
            "--format", metavar="NAME",
            help="svmlight, vw, csv, tsv, parquet, arrow or jsonl; by default the file's name or first line tells.",
        ),
    ] = None  # fmt: skip
    target: Annotated[
        str | None, typer.Option("--target", metavar="COLUMN", help="What to learn: a column's name, or its number from 0.")
    ] = None
    text: Annotated[list[str] | None, typer.Option("--text", metavar="COLUMN", help="A column of text; repeatable.")] = None
    category: Annotated[
        list[str] | None, typer.Option("--category", metavar="COLUMN", help="A column of categories; repeatable.")
    ] = None
    numeric: Annotated[
        list[str] | None, typer.Option("--numeric", metavar="COLUMN", help="A column of numbers; repeatable.")
    ] = None
    ignore: Annotated[
        list[str] | None, typer.Option("--ignore", metavar="COLUMN", help="A column to leave out; repeatable.")
    ] = None
    weight: Annotated[str | None, typer.Option("--weight", metavar="COLUMN", help="A column that weighs the examples.")] = (
        None
    )
    header: Annotated[
        bool | None, typer.Option("--header/--no-header", help="Whether the first line names the columns; else guessed.")
    ] = None
    delimiter: Annotated[
        str | None, typer.Option("--delimiter", metavar="C", help="The character between columns of csv.")
    ] = None
    missing: Annotated[
        str | None, typer.Option("--missing", metavar="error|fill", help="What to do where a value is missing.")
    ] = None
    scale: Annotated[
        str | None, typer.Option("--scale", metavar="standard|none", help="What to do with columns of numbers.")
    ] = None
    ngrams: Annotated[
        str | None, typer.Option("--ngrams", metavar="LOW-HIGH", help="Runs of words that count as features, as 1-2.")
    ] = None
    characters: Annotated[
        str | None, typer.Option("--characters", metavar="LOW-HIGH", help="Runs of characters too, as 3-5.")
    ] = None
    hash_bits: Annotated[
        int | None,
        typer.Option(
            "--hash-bits", min=1, max=30, metavar="BITS", help="Hash features into 2^BITS columns instead of naming them."
        ),
    ] = None

    def reading(self, paths: list[str], error: Code = Code.INPUT) -> Any:
        """The reading that was asked for."""
        from rosenblatt.workflow import reading_for
        from rosenblatt.workflow.choosing import format_of

        with ending(Code.USAGE, ValueError, TypeError):
            options: dict[str, Any] = {
                "target": _column(self.target), "weight": _column(self.weight), "header": self.header,
                "delimiter": {"\\t": "\t", "tab": "\t"}.get(self.delimiter or "", self.delimiter),
                "missing": self.missing, "scale": self.scale,
                "ngrams": _span(self.ngrams, "--ngrams"), "characters": _span(self.characters, "--characters"),
            }  # fmt: skip
            for name, columns in {
                "text": self.text, "categories": self.category, "numeric": self.numeric, "ignore": self.ignore,
            }.items():  # fmt: skip
                options[name] = [_column(column) for column in columns] if columns else None
            if self.hash_bits is not None:
                options["bits" if (self.format or format_of(paths[0])) == "vw" else "hashing"] = self.hash_bits
            return reading_for(paths, self.format, **{name: value for name, value in options.items() if value is not None})


class Order(StrEnum):
    """Those of `workflow.Options`."""

    shuffle = "shuffle"
    cyclic = "cyclic"


def _learners(incomplete: str) -> list[str]:
    from rosenblatt.workflow.choosing import LEARNERS

    return [name for name in LEARNERS if name.lower().startswith(incomplete.lower())]


class Learning(NamedTuple):
    """What to learn with."""

    learner: Annotated[
        str,
        typer.Option(
            "--learner", "-l", metavar="NAME", autocompletion=_learners,
            help="Which of the family: perceptron, pa, arow, mira, …",
        ),
    ] = "perceptron"  # fmt: skip
    set: Annotated[
        list[str] | None,
        typer.Option("--set", "-s", metavar="NAME=VALUE", help="A parameter of the learner, as margin=1; repeatable."),
    ] = None
    passes: Annotated[
        int | None,
        typer.Option("--passes", "-p", min=1, metavar="N", help="Over the data; default 10, and 1 for a stream."),
    ] = None
    order: Annotated[Order, typer.Option("--order", help="Of the rows, in each pass over loaded data.")] = Order.shuffle
    seed: Seed = 0

    def made(self) -> Any:
        """The learner that was asked for."""
        from rosenblatt.workflow import learner_named
        from rosenblatt.workflow.choosing import setting

        with ending(Code.USAGE, ValueError, TypeError):
            learner = learner_named(self.learner, dict(map(setting, self.set or [])))
            if hasattr(learner, "_plan"):
                learner._plan()  # refuses values that are not allowed
            return learner


def _column(text: str | None) -> str | int | None:
    return int(text) if text is not None and text.isdecimal() else text


def _span(text: str | None, option: str) -> tuple[int, int] | None:
    if text is None:
        return None
    low, _, high = text.partition("-")
    if not low.isdecimal() or (high and not high.isdecimal()):
        raise ValueError(f"{option} {text}: give the shortest and the longest, as 1-2")
    return int(low), int(high or low)
