"""Notebooks hold the code of their pages, run, and hide the answers of their exercises."""

import re

import nbformat
import pytest

from docs.notebooks import LINK, SOURCES, make_notebook, write_notebook
from docs.pages import DOCS, code_blocks, page_name

PLACEHOLDER = "# Your answer\n"


def code_of(notebook):
    return [cell.source for cell in notebook.cells if cell.cell_type == "code" and cell.source != PLACEHOLDER]


@pytest.mark.parametrize("page", SOURCES, ids=page_name)
def test_a_notebook_has_the_code_of_its_page_and_links_that_lead_somewhere(page, tmp_path):
    notebook = make_notebook(page, tmp_path)
    assert code_of(notebook) == [block.strip() for block in code_blocks(page)]
    for other in SOURCES:
        (tmp_path / other.relative_to(DOCS)).parent.mkdir(exist_ok=True)
        (tmp_path / other.relative_to(DOCS).with_suffix(".ipynb")).touch()
    for cell in notebook.cells:
        for link in LINK.finditer(cell.source) if cell.cell_type == "markdown" else ():
            assert (tmp_path / page.parent.name / link["file"]).exists(), link.group()


@pytest.mark.parametrize("page", SOURCES, ids=page_name)
def test_an_exercise_has_an_empty_cell_and_then_its_answer_folded(page, tmp_path):
    made = make_notebook(page, tmp_path).cells
    asked = [number for number, cell in enumerate(made) if "exercise" in cell.metadata.get("tags", ())]
    assert len(asked) == len(re.findall(r"^> \*\*Exercise\.\*\*", page.read_text(encoding="utf-8"), flags=re.MULTILINE))
    for number in asked:
        assert made[number + 1].source == PLACEHOLDER
        answer = made[number + 2 : next(i for i in range(number + 2, len(made)) if made[i].cell_type == "code") + 1]
        assert all(cell.metadata.jupyter.source_hidden for cell in answer)
    folded = sum("answer" in cell.metadata.get("tags", ()) and cell.cell_type == "code" for cell in made)
    assert folded == len(asked)


def test_a_notebook_runs_from_its_file(tmp_path, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.chdir(tmp_path)
    path = write_notebook(DOCS / "notes" / "georgia_tech.md", tmp_path)
    names = {"__name__": "__main__"}
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "code":
            exec(cell.source, names)
    assert names["run"].updates == (4**6 - 1) // 3


def test_a_page_makes_the_same_notebook_twice(tmp_path):
    one, other = (write_notebook(SOURCES[0], tmp_path).read_bytes() for _ in range(2))
    assert one == other
