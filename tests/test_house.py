"""The house stays in order: one meaning for a name, no word that hides who does what, types instead of Any."""

import ast
from collections import defaultdict
from pathlib import Path

import rosenblatt

SOURCES = Path(rosenblatt.__file__).parent
TREES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(SOURCES.rglob("*.py"))}
FUNCTIONS = [(path, node) for path, tree in TREES.items() for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
VAGUE = {"told", "asked", "said", "spoken", "taken_up", "written", "restored", "grouped", "sniffed", "clarified"}
# The same thing for each of several formats or decoders, under the same name.
SAME_MEANING = {"Sentence", "__getattr__", "best_tree", "parse", "read"}


def arguments(function):
    args = function.args
    return [*args.posonlyargs, *args.args, *args.kwonlyargs, *filter(None, (args.vararg, args.kwarg))]


def test_a_name_has_one_meaning_in_a_package():
    homes = defaultdict(set)
    for path, tree in TREES.items():
        for node in tree.body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name != "_":
                homes[path.parent, node.name].add(path.name)
    assert {name for (_, name), files in homes.items() if len(files) > 1} <= SAME_MEANING


def test_names_say_what_a_thing_is_or_does():
    names = {node.name.strip("_") for _, node in FUNCTIONS} | {
        argument.arg for _, function in FUNCTIONS for argument in arguments(function)
    }
    assert not names & VAGUE


def test_few_parameters_are_of_any_type():
    count = sum(
        any(isinstance(node, ast.Name) and node.id == "Any" for node in ast.walk(argument.annotation))
        for _, function in FUNCTIONS
        for argument in arguments(function)
        if argument.annotation is not None
    )
    assert count <= 608  # half of what there were before they were counted


def test_the_command_line_tells_errors_apart_by_type():
    """No regular expression over messages, no bytecode and no traceback decides what an error is."""
    tree = TREES[SOURCES / "cli" / "errors.py"]
    imports = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    imports |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not imports & {"re", "opcode", "dis", "types"}
