"""Run the code on the pages of docs/ that show figures, and save the figures in the order in which they are drawn.

python examples/figures.py [FOLDER, by default docs/figures]
"""

from __future__ import annotations

import contextlib
import re
import sys
import tempfile
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot

DOCS = Path(__file__).parents[1] / "docs"
PAGES = ("theory", "geometry", "feasibility", "sigma", "networks", "structured")


def draw(page: Path, folder: Path) -> None:
    pyplot.close("all")
    names: dict = {"__name__": page.stem}
    text = page.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as scratch, contextlib.chdir(scratch):
        for found in re.finditer(r"^```python\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL):
            lines = text[: found.start(1)].count("\n")
            exec(compile("\n" * lines + found.group(1), str(page), "exec"), names)
    for number in pyplot.get_fignums():
        path = folder / f"{page.stem}-{number}.png"
        pyplot.figure(number).savefig(path, dpi=90)
        print(path)
    pyplot.close("all")


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for page in PAGES:
        draw(DOCS / f"{page}.md", folder.absolute())


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else DOCS / "figures")
