"""What all pictures share: colours, markers, and the Axes they are drawn on.

matplotlib is not needed to learn, so it is imported when the first picture is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rosenblatt.errors import MissingDependency

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Colour = str | NDArray

# Okabe and Ito's colours, which colour-blind readers can tell apart.
COLOURS = np.array([(213, 94, 0), (0, 114, 178), (0, 158, 115), (204, 121, 167), (230, 159, 0), (86, 180, 233)]) / 255
VERMILION, BLUE, GREEN, SKY = COLOURS[[0, 1, 2, 5]]
GREY = "#777777"
STYLES = ("-", "--", "-.", ":")
MARKERS = ("x", "o", "^", "s", "+", "D", "v", "*")


def new_axes(*shape: int, **options: Any) -> Any:
    """Return new Axes of a new figure, as `pyplot.subplots` makes them."""
    try:
        from matplotlib import pyplot
    except ImportError:
        raise MissingDependency("matplotlib", "plot", "pictures") from None
    return pyplot.subplots(*shape, layout="constrained", **options)[1]


def halo() -> list[Any]:
    """Return the path effects of text that can be read where it crosses a line: it has a white edge."""
    from matplotlib.patheffects import withStroke

    return [withStroke(linewidth=3, foreground="white")]


def marker(epochs: Sequence[int] | NDArray) -> str:
    """Return a marker where epochs are few enough to be told apart."""
    return "o" if len(epochs) <= 30 else ""


def spread(heights: NDArray, apart: float) -> NDArray:
    """Return heights for labels: as given, but for those that are closer than `apart` to the label below."""
    places = np.array(heights, dtype=np.float64)
    order = np.argsort(places, kind="stable")
    for below, above in pairwise(order):
        places[above] = max(places[above], places[below] + apart)
    return places


def label_end(ax: Axes, words: str, end: tuple[float, float], colour: Colour, *, left: bool = False) -> None:
    """Write words beside the end of a line, at its right end or at its left, also where that is beyond the frame."""
    away, side = (-7, "right") if left else (8, "left")
    style: dict[str, Any] = {"textcoords": "offset points", "fontsize": 12, "ha": side, "va": "center"}
    ax.annotate(words, end, (away, 0), color=colour, annotation_clip=False, parse_math=False, **style)


def plain(name: object) -> str:
    """Return a name for a legend or an axis, in which matplotlib would take what is between two dollars for a formula."""
    return str(name).replace("$", r"\$")
