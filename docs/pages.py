"""A page of the documentation is Markdown whose Python runs, in order, from top to bottom.

The figures that a page draws are saved in docs/figures under its name and their number: bound-1.png, bound-2.png, …

    python -m docs.pages [PAGE ...]     # draws the figures of these pages again, by default of all (make figures)
"""

from __future__ import annotations

import contextlib
import io
import re
import runpy
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
FIGURES = DOCS / "figures"
GENERATED = DOCS / "reference" / "commands"  # written by docs/reference_pages.py
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(page for page in DOCS.rglob("*.md") if GENERATED not in page.parents),
]


def page_name(page: Path) -> str:
    """The path of a page from the top of the project, as in docs/theory/bound.md."""
    return page.relative_to(ROOT).as_posix()


def code_blocks(page: Path) -> Iterator[str]:
    """Yield the Python of a page, each block moved down to its own line, so that a traceback points there."""
    text = page.read_text(encoding="utf-8")
    for found in re.finditer(r"^```python\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL):
        yield "\n" * text[: found.start(1)].count("\n") + found.group(1)


def write_files(page: Path) -> None:
    """Write the blocks of a page that name a file, such as ```text flowers.csv, to that file in the current folder."""
    text = page.read_text(encoding="utf-8")
    for name, content in re.findall(r"^```\w+ (\S+)\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL):
        Path(name).write_text(content, encoding="utf-8")


def shown_figures(page: Path) -> list[str]:
    """The files of docs/figures that a page shows and draws itself, in its order; README shows those of other pages."""
    found = re.findall(r"!\[[^]]+\]\([./]*(?:docs/)?figures/([^)]+)\)", page.read_text(encoding="utf-8"))
    return [name for name in found if name.rpartition("-")[0] == page.stem]


def run_page(page: Path) -> list[Any]:
    """Run the Python of a page in the current folder, and return the figures of matplotlib that it leaves open."""
    write_files(page)
    names: dict = {"__name__": page.stem}
    for block in code_blocks(page):
        exec(compile(block, str(page), "exec"), names)
    pyplot = sys.modules.get("matplotlib.pyplot")
    return [] if pyplot is None else [pyplot.figure(number) for number in pyplot.get_fignums()]


def draw_family() -> Any:
    """The figure of learners/family.md, the boundary of each learner, which examples/family.py draws."""
    from matplotlib import pyplot

    figure = pyplot.figure(figsize=(13, 11), layout="constrained")
    runpy.run_path(str(ROOT / "examples" / "family.py"))["boundaries"](figure)
    return figure


def save_figures(page: Path, folder: Path) -> list[Path]:
    """Run a page, save its figures in a folder, and return their files in the order in which they are drawn."""
    figures = [draw_family()] if page.stem == "family" else run_page(page)
    paths = [folder / f"{page.stem}-{number}.png" for number in range(1, len(figures) + 1)]
    for path, figure in zip(paths, figures, strict=True):
        figure.savefig(path, dpi=75 if page.stem == "family" else 90)
    return paths


def main(names: list[str]) -> None:
    import matplotlib
    from matplotlib import pyplot

    matplotlib.use("Agg")
    wanted, drawn = {Path(name).stem for name in names}, [page for page in PAGES if shown_figures(page)]
    unknown = wanted - {page.stem for page in drawn}
    if unknown:
        sys.exit(f"no page that shows its figures is called {', '.join(sorted(unknown))}")
    for page in drawn:
        if not wanted or page.stem in wanted:
            pyplot.close("all")
            with (
                tempfile.TemporaryDirectory() as scratch,
                contextlib.chdir(scratch),
                contextlib.redirect_stdout(io.StringIO()),
            ):
                paths = save_figures(page, FIGURES)
            print(*paths, sep="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
