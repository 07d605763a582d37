"""The documentation runs, and it leaves nothing out."""

import doctest
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

import rosenblatt
from rosenblatt import Perceptron, train

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
MODULES = sorted(module.name for module in pkgutil.walk_packages(rosenblatt.__path__, "rosenblatt."))


def blocks(page):
    """The python blocks of a page, each moved down to the line it stands on, so that a traceback points there."""
    text = page.read_text(encoding="utf-8")
    for found in re.finditer(r"^```python\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL):
        yield "\n" * text[: found.start(1)].count("\n") + found.group(1)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": page.stem}
    for block in blocks(page):
        exec(compile(block, str(page), "exec"), names)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    for link in re.findall(r"\]\(([^)#]+)[^)]*\)", text):
        assert "://" in link or (page.parent / link).exists(), f"{page.name} links to {link}"


@pytest.mark.parametrize("name", ["rosenblatt", *MODULES])
def test_docstrings_run(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_the_perceptron_shows_its_use():
    assert doctest.DocTestFinder().find(Perceptron)[0].examples


def test_the_guide_names_every_parameter_and_every_reason_to_stop():
    guide = (ROOT / "docs" / "guide.md").read_text(encoding="utf-8")
    for parameter in [*inspect.signature(Perceptron).parameters, *inspect.signature(Perceptron.fit).parameters]:
        assert parameter in ("self", "X", "y") or re.search(rf"\b{parameter}\b", guide), f"{parameter} is not in the guide"
    for word in reasons():
        assert f"| `{word}` |" in guide, f"stop_reason_ {word} is not in the guide"


def reasons():
    """The words that the trainer can answer, read from its source, and the one of a stream."""
    source = inspect.getsource(train.train)
    words = {word for line in re.findall(r"return history, (.*)", source) for word in re.findall(r'"(\w+)"', line)}
    assert len(words) >= 9
    return words | {"partial_fit"}


def test_the_readme_lists_every_module():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = [row for row in readme.splitlines() if row.startswith("| `")]
    for name in MODULES:
        *folder, file = name.removeprefix("rosenblatt.").split(".")
        if importlib.import_module(name).__file__.endswith("__init__.py"):
            known = f"`{file}/" in readme
        elif folder:  # a row for the folder names its files, or the file has a row of its own
            known = any(row.startswith(f"| `{folder[0]}/`") and f"`{file}.py`" in row for row in rows)
            known = known or f"`{folder[0]}/{file}.py`" in readme
        else:
            known = f"`{file}.py`" in readme
        assert known, f"{name} is not on the map in README.md"


def test_the_family_lists_every_learner():
    family = (ROOT / "docs" / "family.md").read_text(encoding="utf-8")
    learners = [name for name in rosenblatt.__all__ if hasattr(getattr(rosenblatt, name), "predict")]
    assert len(learners) > 20
    for name in learners:
        assert f"`{name}" in family, f"{name} is not on the page of the family"


def test_the_readme_leads_to_every_page():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for page in PAGES[1:]:
        assert f"{page.name})" in readme, f"README.md does not lead to {page.name}"
