"""A notebook of a page: its text, its code, and a cell for the reader's answer after each exercise.

An exercise is a quotation that begins with **Exercise.** What follows, up to and with the next Python block, is its answer.
In the notebook the answer is folded away, and above it is an empty cell. Figures are drawn by running the cells.

    python -m docs.notebooks [PAGE ...]     # build/notebooks, by default all of docs/notes and docs/theory (make notebooks)
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from docs.pages import DOCS, ROOT, page_name

BUILD = ROOT / "build" / "notebooks"
SOURCES = [page for folder in ("notes", "theory") for page in sorted((DOCS / folder).glob("*.md")) if page.stem != "index"]
PIECES = re.compile(
    r"^```python\n(?P<code>.*?)^```$|(?P<exercise>^> \*\*Exercise\.\*\*[^\n]*(?:\n>[^\n]*)*)", re.MULTILINE | re.DOTALL
)
LINK = re.compile(r"\]\((?![a-z]+:)(?P<file>[^)#]*)(?:#(?P<anchor>[^)]*))?\)")
FOLDED = {"jupyter": {"source_hidden": True}, "tags": ["answer"]}


def notebook_path(page: Path, folder: Path) -> Path:
    """The notebook of a page of docs/, in the same folder of the notebooks."""
    return folder / page.relative_to(DOCS).with_suffix(".ipynb")


def headings(page: Path) -> dict[str, str]:
    """The headings of a page by their anchors on the web."""
    found: dict[str, str] = {}
    for heading in re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE):
        anchor = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        found.setdefault(anchor, heading)
    return found


def with_links(text: str, page: Path, folder: Path) -> str:
    """Text whose links lead from the notebook of its page to other notebooks, or else to files of docs/."""
    home = notebook_path(page, folder).parent

    def moved(found: re.Match[str]) -> str:
        target, anchor = (page.parent / found["file"]).resolve() if found["file"] else page, found["anchor"]
        if target not in SOURCES:
            return f"]({Path(os.path.relpath(target, home)).as_posix()}{f'#{anchor}' if anchor else ''})"
        file = Path(os.path.relpath(notebook_path(target, folder), home)).as_posix() if found["file"] else ""
        if not anchor:
            return f"]({file})"
        if anchor not in headings(target):
            raise ValueError(f"{page_name(page)} links to {anchor!r} in {page_name(target)}, which has no such heading")
        return f"]({file}#{headings(target)[anchor].replace(' ', '-')})"  # as Jupyter makes anchors of headings

    return LINK.sub(moved, text)


def cells(page: Path, folder: Path) -> Iterator[NotebookNode]:
    """Yield the cells of a page."""
    drawn = re.compile(rf"^!\[[^]]*\]\([./]*figures/{page.stem}-\d+\.png\)\n?", re.MULTILINE)
    text, end, answering = page.read_text(encoding="utf-8"), 0, False
    for piece in [*PIECES.finditer(text), None]:
        between = drawn.sub("", text[end : piece.start() if piece else len(text)]).strip()
        if between:
            yield new_markdown_cell(with_links(between, page, folder), metadata=FOLDED if answering else {})
        if piece is None:
            return
        end = piece.end()
        if piece["exercise"]:
            yield new_markdown_cell(with_links(piece["exercise"], page, folder), metadata={"tags": ["exercise"]})
            yield new_code_cell("# Your answer\n")
        else:
            yield new_code_cell(piece["code"].rstrip(), metadata=FOLDED if answering else {})
        answering = piece["exercise"] is not None


def make_notebook(page: Path, folder: Path) -> NotebookNode:
    """The notebook of a page, as it lies in a folder of notebooks; the same page makes the same bytes."""
    made = list(cells(page, folder))
    for number, cell in enumerate(made):
        cell["id"] = f"{page.stem}-{number}"
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    notebook = new_notebook(cells=made, metadata=kernel)
    nbformat.validate(notebook)
    return notebook


def write_notebook(page: Path, folder: Path) -> Path:
    """Save the notebook of a page in a folder of notebooks, and return its path."""
    path = notebook_path(page, folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(make_notebook(page, folder), path)
    return path


def main(names: list[str]) -> None:
    wanted = {Path(name).stem for name in names}
    unknown = wanted - {page.stem for page in SOURCES}
    if unknown:
        sys.exit(f"no page of docs/notes or docs/theory is called {', '.join(sorted(unknown))}")
    for page in SOURCES:
        if not wanted or page.stem in wanted:
            print(write_notebook(page, BUILD))


if __name__ == "__main__":
    main(sys.argv[1:])
