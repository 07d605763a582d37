"""A sub-command is a line in a table and a function in its module. The table is enough to show what there is; a module is
imported when its command runs, and imports what it needs of the library inside the function.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperGroup

from rosenblatt import __version__
from rosenblatt.cli import errors

SETTINGS = {"help_option_names": ["--help", "-h"]}


class Command(NamedTuple):
    """Where a sub-command is and what it does; its options are the parameters of its function, its help the docstring."""

    module: str
    help: str  # no longer than a line of the table

    def function(self, name: str) -> Callable[..., int | None]:
        """The function, of the same name as the command. What it gives back is the exit code; None is 0."""
        return getattr(import_module(self.module), name)


SECTIONS = {
    "Models from files": {
        "train": Command("rosenblatt.cli.train", "Learn from files and save a model."),
        "predict": Command("rosenblatt.cli.predict", "Print what each row of files is."),
        "evaluate": Command("rosenblatt.cli.evaluate", "Measure a model, or cross-validate a learner."),
        "explain": Command("rosenblatt.cli.explain", "Show what speaks for each class, or why a row got its label."),
        "info": Command("rosenblatt.cli.info", "Show what a model file says about itself."),
        "convert": Command("rosenblatt.cli.convert", "Write a model as ONNX or text, data as LIBSVM text."),
    },
    "Tags and trees": {
        "tag": Command("rosenblatt.cli.tag", "Give each word its tag: train, run, measure a tagger."),
        "parse": Command("rosenblatt.cli.parse", "Give each sentence its tree: train, run, measure a parser."),
    },
    "Proofs": {
        "certify": Command("rosenblatt.cli.certify", "Can a hyperplane separate two classes? With a proof either way."),
        "feasible": Command("rosenblatt.cli.feasible", "Find x with A x > 0, or solve a linear program, with a proof."),
        "trace": Command("rosenblatt.cli.trace", "Watch the perceptron learn, between the walls of its theorem."),
    },
    "This machine": {
        "bench": Command("rosenblatt.cli.bench", "Measure a few workloads beside scikit-learn."),
        "doctor": Command("rosenblatt.cli.doctor", "Say what is installed, and test that it works."),
    },
}
COMMANDS = {name: command for commands in SECTIONS.values() for name, command in commands.items()}


class Commands(TyperGroup):
    """The sub-commands of the table."""

    def __init__(self, **settings: Any):
        super().__init__(**settings)
        self.commands: Any = dict.fromkeys(COMMANDS)  # the names, for the suggestion after a wrong one

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        app = typer.Typer(add_completion=False, rich_markup_mode=None, context_settings=SETTINGS)
        app.command(cmd_name, short_help=COMMANDS[cmd_name].help)(COMMANDS[cmd_name].function(cmd_name))
        command: Any = typer.main.get_command(app)
        for parameter in command.params:
            if parameter.param_type_name == "argument":
                parameter.display_type_rich = lambda ctx: ""  # its name says it, and <list[str]> says nothing
        return command

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        longest = max(map(len, COMMANDS))
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(f"{name:{longest}}", command.help) for name, command in commands.items()])

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (typer.Exit, typer.Abort):
            raise
        except (Exception, KeyboardInterrupt) as error:  # typer has answers of its own to some
            return errors.report(error)


app = typer.Typer(
    cls=Commands,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings=SETTINGS,
    epilog="Exit codes: 0 done; 1 the answer is no; 2 wrong usage; 3 unreadable input; 4 unreadable or unfitting model; "
    "5 output that cannot be written; 70 a bug; 130 interrupted; 141 nobody reads on.",
)


def _version(asked: bool) -> None:
    if asked:
        print(f"rosenblatt {__version__}")
        raise typer.Exit()


@app.callback()
def rosenblatt(
    version: Annotated[bool, typer.Option("--version", help="Show the version.", callback=_version, is_eager=True)] = False,
) -> None:
    """Mistake-driven learning: the perceptron and the family that grew from it.

    Results go to standard output, everything else to standard error; "-" is standard input.
    """


def run(argv: list[str]) -> int:
    """Run a command line and give back its exit code."""
    try:
        code = typer.main.get_command(app).main(argv or ["--help"], prog_name="rosenblatt", standalone_mode=False)
    except SystemExit as end:  # shell completion ends so, and help that nobody reads any more
        return 141 if isinstance(end.__context__, BrokenPipeError) else int(end.code or 0)
    except Exception as error:
        return errors.report(error)
    return int(code or 0)
