"""A sub-command is a line in a table and a function in the module of the same name; its options are the parameters of the
function. The table is enough for --help; a module is imported when its command runs, and imports what it needs of the
library inside the function.
"""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from rosenblatt import __version__
from rosenblatt.cli import errors

SETTINGS = {"help_option_names": ["--help", "-h"]}


SECTIONS = {
    "Classification and regression": {
        "train": "Train a model on files and save it.",
        "predict": "Predict the label of each row with a trained model.",
        "evaluate": "Measure a model, cross-validate, or compute a learning curve.",
        "explain": "Show the weights of a model, or explain one prediction.",
        "info": "Show what a model file holds.",
        "convert": "Convert a model to ONNX or text, data to LIBSVM format.",
    },
    "Tagging and parsing": {
        "tag": "Tag words: train, run or measure a tagger.",
        "parse": "Parse sentences: train, run or measure a dependency parser.",
    },
    "Serving": {
        "serve": "Serve models that learn, over HTTP, and lose nothing.",
        "token": "Add, list or remove the tokens of a server.",
        "backup": "Copy the folder of a server while it runs.",
    },
    "Proofs": {
        "certify": "Are two classes linearly separable? With a proof either way.",
        "feasible": "Find x with A x > 0, or solve a linear program, with a proof.",
        "trace": "Trace the perceptron, update by update, with its bounds.",
        "lab": "Click points in the browser and watch learners learn them.",
        "count": "Count the operations of a Python function, and how they grow.",
    },
    "This machine": {
        "bench": "Benchmark against scikit-learn.",
        "doctor": "Check the installation.",
    },
}
COMMANDS = {name: help for commands in SECTIONS.values() for name, help in commands.items()}


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
        function = getattr(import_module(f"rosenblatt.cli.{cmd_name}"), cmd_name)  # returns the exit code; None is 0
        app.command(cmd_name, short_help=COMMANDS[cmd_name])(function)
        command: Any = typer.main.get_command(app)
        for parameter in command.params:
            if parameter.param_type_name == "argument":
                parameter.display_type_rich = lambda ctx: ""  # its name is enough
        return command

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        longest = max(map(len, COMMANDS))
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(f"{name:{longest}}", help) for name, help in commands.items()])

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
    epilog="Exit codes: 0 success; 1 the answer is no; 2 wrong usage; 3 input that cannot be read or used; 4 model that "
    "cannot be read; 5 output that cannot be written; 70 a bug; 130 interrupted; 141 output closed.",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"rosenblatt {__version__}")
        raise typer.Exit()


@app.callback()
def rosenblatt(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Train and run linear models, taggers and parsers: the perceptron and its family of online learners.

    Results go to standard output, everything else to standard error; the file "-" is standard input.
    """


def run(argv: list[str]) -> int:
    """Run a command line and return the exit code."""
    try:
        code = typer.main.get_command(app).main(argv or ["--help"], prog_name="rosenblatt", standalone_mode=False)
    except SystemExit as end:  # shell completion ends so, and help that nobody reads any more
        return 141 if isinstance(end.__context__, BrokenPipeError) else int(end.code or 0)
    except Exception as error:
        return errors.report(error)
    return int(code or 0)
