"""What all pictures share: colours, markers, and the Axes they are drawn on.

matplotlib is not needed to learn, so it is imported when the first picture is drawn.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

# Okabe and Ito's colours, which colour-blind readers can tell apart.
COLOURS = np.array([(213, 94, 0), (0, 114, 178), (0, 158, 115), (204, 121, 167), (230, 159, 0), (86, 180, 233)]) / 255
VERMILION, BLUE, GREEN, SKY = COLOURS[[0, 1, 2, 5]]
GREY = "#777777"
STYLES = ("-", "--", "-.", ":")
MARKERS = ("x", "o", "^", "s", "+", "D", "v", "*")


def axes(ax: Any) -> Any:
    """The Axes given, or new ones."""
    if ax is not None:
        return ax
    return pyplot().subplots(layout="constrained")[1]


def pyplot() -> Any:
    try:
        import matplotlib.pyplot
    except ImportError as error:
        raise ImportError("rosenblatt.plot draws with matplotlib: pip install rosenblatt[plot]") from error
    return matplotlib.pyplot


def dot(epochs: NDArray) -> str:
    """A marker where epochs are few enough to be told apart."""
    return "o" if len(epochs) <= 30 else ""
