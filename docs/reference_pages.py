"""The pages of the reference, written when the site is built: one for each module with public names, one for each learner,
one for each command.

docs/reference/api/        from docstrings: theory.rst, theory/bounds.rst, rosenblatt/Perceptron.rst, …
docs/reference/commands/   what `rosenblatt COMMAND --help` prints
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from textwrap import dedent, indent
from types import ModuleType
from typing import Any

from typer.testing import CliRunner

from docs.public import names_of, public_modules, public_names
from rosenblatt.cli.app import SECTIONS, app
from rosenblatt.modelfile.atomic import atomic_write

REFERENCE = Path(__file__).parent / "reference"
API, COMMANDS = REFERENCE / "api", REFERENCE / "commands"


def write_pages() -> None:
    """Write the pages that are new or have changed, and remove those of what is no longer there."""
    pages = dict([*api_pages(), *command_pages()])
    for path, text in pages.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            with atomic_write(path) as file:  # two builds at a time write the same
                file.write(text.encode())
    for path in [*API.rglob("*.rst"), *COMMANDS.rglob("*.md")]:
        if path not in pages:
            path.unlink(missing_ok=True)


# From docstrings


def api_pages() -> Iterator[tuple[Path, str]]:
    """Yield (path, text) of the page of each module, of each learner in it, and of their list."""
    modules = {module.__name__: module for module in public_modules()}
    for package in {name.rpartition(".")[0] for name in modules} - {"", *modules}:
        modules[package] = import_module(package)  # such as rosenblatt.data, whose names are in its modules
    homes = find_homes()
    for name, module in modules.items():
        page = page_of(name)
        things = {each: getattr(module, each) for each in names_of(module)}
        learners = [each for each, thing in things.items() if is_learner(thing) and homes[id(thing)] == f"{name}.{each}"]
        for each in learners:
            yield (
                page.with_suffix("") / f"{each}.rst",
                title(each) + f".. currentmodule:: {name}\n\n" + entry(each, things[each]),
            )
        parts = sorted(other for other in modules if other.rpartition(".")[0] == name != "rosenblatt")
        below = [f"{other.removeprefix('rosenblatt.')} <{page.stem}/{page_of(other).stem}>" for other in parts]
        yield page, module_page(module, things, [*below, *(f"{page.stem}/{each}" for each in learners)], homes)
    tops = sorted(name for name in modules if name.count(".") < 2)
    yield (
        API / "index.rst",
        title("Python")
        + toctree(page_of(name).stem for name in tops)
        + table((f":py:mod:`{name}`", summary(modules[name])) for name in tops),
    )


def page_of(name: str) -> Path:
    """The page of a module: theory/bounds.rst for rosenblatt.theory.bounds."""
    return API.joinpath(*name.removeprefix("rosenblatt.").split(".")).with_suffix(".rst")


def find_homes() -> dict[int, str]:
    """The name under which each public object is described; its other names lead there.

    It is the first one in public modules, the earlier names of functions aside.
    """
    homes: dict[int, str] = {}
    for module, name, thing in sorted(public_names(), key=lambda each: getattr(each[2], "__name__", each[1]) != each[1]):
        homes.setdefault(id(thing), f"{module}.{name}")
    return homes


def is_learner(thing: Any) -> bool:
    """Learners have a page of their own; other classes and functions share that of their module."""
    return inspect.isclass(thing) and (hasattr(thing, "predict") or hasattr(thing, "predict_one"))


def module_page(module: ModuleType, things: dict[str, Any], below: list[str], homes: dict[int, str]) -> str:
    """What the module says of itself, a table of its names with their first sentences, and what each of them is."""
    name = module.__name__
    text = title(name) + f".. automodule:: {name}\n\n" + toctree(below)
    modules = (each.partition(" ")[0] for each in below if " " in each)
    rows = [(f":py:mod:`rosenblatt.{each}`", summary(import_module(f"rosenblatt.{each}"))) for each in modules]
    text += table([*rows, *((f":py:obj:`~{name}.{each}`", summary(thing)) for each, thing in things.items())])
    for each, thing in things.items():
        home = homes[id(thing)]
        if home != f"{name}.{each}":
            text += f".. py:data:: {each}\n\n   The same as :py:obj:`{home}`.\n\n"
        elif not is_learner(thing):
            text += entry(each, thing)
    return text


def title(text: str) -> str:
    return f"{text}\n{'=' * len(text)}\n\n"


def toctree(entries: Iterable[str]) -> str:
    lines = "".join(f"   {each}\n" for each in entries)
    return f".. toctree::\n   :hidden:\n\n{lines}\n" if lines else ""


def table(rows: Iterable[tuple[str, str]]) -> str:
    """A table of names, each with a sentence."""
    lines = "".join(f"   * - {name}\n     - {sentence}\n" for name, sentence in rows)
    return f".. list-table::\n   :class: names\n   :widths: auto\n\n{lines}\n" if lines else ""


def is_described(thing: Any) -> bool:
    """Whether an object has a docstring of its own."""
    return inspect.ismodule(thing) or inspect.isclass(thing) or inspect.isroutine(thing) or hasattr(thing, "py_func")


def summary(thing: Any) -> str:
    """The first sentence of a docstring; of a constant, its value."""
    if not is_described(thing):
        return value(thing)
    paragraph = " ".join((inspect.getdoc(thing) or "").partition("\n\n")[0].split())
    return escape_bars(re.split(r"(?<=\.)\s", paragraph, maxsplit=1)[0])


def value(thing: Any) -> str:
    """A constant in code: the names in a table, or all of it."""
    if isinstance(thing, dict | tuple) and not hasattr(thing, "_fields"):
        return ", ".join(f"``{getattr(each, '__name__', each)}``" for each in thing)
    return f"``{thing!r}``"


def entry(name: str, thing: Any) -> str:
    """The directive that describes an object with its methods, those of scikit-learn and of Python aside."""
    if not is_described(thing):
        return f".. py:data:: {name}\n\n   {value(thing)}\n\n"
    if not inspect.isclass(thing):
        return f".. autofunction:: {name}\n\n"
    is_error = issubclass(thing, BaseException)  # what all errors inherit is described once
    found = sorted(vars(thing).items()) if is_error else inspect.getmembers_static(thing)
    members = [each for each, member in found if is_our_method(thing, each, member)]
    kind = "exception" if is_error else "class"
    return f".. auto{kind}:: {name}\n" + (f"   :members: {', '.join(members)}\n" if members else "") + "\n"


def is_our_method(owner: type, name: str, member: Any) -> bool:
    """Whether a member of a class is public, this library's, and a method or a property with a docstring."""
    if name.startswith("_") or not (getattr(owner, name, None).__doc__):
        return False
    function = getattr(member, "fget", None) or getattr(member, "func", None) or getattr(member, "fn", None)
    function = function or getattr(member, "__func__", member)
    return inspect.isroutine(function) and (getattr(function, "__module__", "") or "").startswith("rosenblatt")


def as_rst(lines: list[str]) -> None:
    """Turn what docstrings say in the manner of Markdown into reStructuredText, line by line in place.

    Before the first section of numpydoc, a paragraph that is indented or whose columns are aligned by spaces is shown as it
    is. A bar is a bar everywhere, and no substitution.
    """
    text = "\n".join(lines)
    start = re.search(r"^\w[\w ]*\n-{3,}$", text, re.MULTILINE)
    prose, sections = (text[: start.start()], text[start.start() :]) if start else (text, "")
    paragraphs = re.findall(r"(?:^(?: {4}.*)?(?:\n|$))+|(?:^ {0,3}\S.*(?:\n|$))+", prose, re.MULTILINE)
    parts = [literal(each) if is_literal(each) else escape_bars(each) for each in paragraphs]
    lines[:] = ("".join(parts) + escape_bars(sections)).splitlines()


def is_literal(paragraph: str) -> bool:
    aligned = re.search(r"\S {3,}\S", paragraph) and not paragraph.startswith(">>>")
    return bool(aligned or re.match(r"\s* {4}\S", paragraph))


def literal(paragraph: str) -> str:
    """A paragraph as a block of code, in Python if it is."""
    code = dedent(paragraph).strip("\n")
    try:
        ast.parse(code)
        language = "python"
    except SyntaxError:
        language = "text"
    return f"\n.. code-block:: {language}\n\n{indent(code, '    ')}\n\n"


def escape_bars(text: str) -> str:
    """Escape the bars outside backticks and examples."""
    return "\n".join(
        line if line.lstrip().startswith((">>>", "...")) else re.sub(r"(`[^`]*`)|\|", lambda m: m[1] or r"\|", line)
        for line in text.split("\n")
    )


# From the command line


def command_pages() -> Iterator[tuple[Path, str]]:
    """Yield (path, text) of the page of each command, and of their list."""
    index = "# Commands\n\nWhat they share, and examples of each: [the command line](../../howto/command_line.md).\n"
    manual = (REFERENCE.parent / "howto" / "command_line.md").read_text(encoding="utf-8")
    for section, commands in SECTIONS.items():
        rows = "".join(f"| [`{name}`]({name}.md) | {sentence} |\n" for name, sentence in commands.items())
        entries = "".join(f"{name} <{name}>\n" for name in commands)
        index += f"\n## {section}\n\n| | |\n|---|---|\n{rows}\n```{{toctree}}\n:hidden:\n\n{entries}```\n"
        for name, sentence in commands.items():
            anchor = f"#{name}" if f"\n## {name}\n" in manual else ""
            seen = f"[Examples, and what each option is for](../../howto/command_line.md{anchor})."
            yield COMMANDS / f"{name}.md", f"# rosenblatt {name}\n\n{sentence} {seen}\n\n```text\n{help_text(name)}\n```\n"
    yield COMMANDS / "index.md", index


def help_text(command: str) -> str:
    """What a command prints for --help, without colours, at the width of a page."""
    result = CliRunner().invoke(app, [command, "--help"], prog_name="rosenblatt", color=False, terminal_width=90)
    return result.output.rstrip()
