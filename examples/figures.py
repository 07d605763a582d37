"""Run docs/theory.md and save the pictures that its code draws, in the order in which it draws them.

python examples/figures.py [folder, docs/figures unless given]
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot

PAGE = Path(__file__).parents[1] / "docs" / "theory.md"


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    pyplot.close("all")
    names: dict = {"__name__": PAGE.stem}
    text = PAGE.read_text(encoding="utf-8")
    for found in re.finditer(r"^```python\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL):
        lines = text[: found.start(1)].count("\n")
        exec(compile("\n" * lines + found.group(1), str(PAGE), "exec"), names)
    for number in pyplot.get_fignums():
        path = folder / f"{PAGE.stem}-{number}.png"
        pyplot.figure(number).savefig(path, dpi=90)
        print(path)
    pyplot.close("all")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else PAGE.parent / "figures")
