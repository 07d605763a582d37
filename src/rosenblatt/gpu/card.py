"""The interface of a graphics card (GPU). The rows stay in its memory; results are copied to the machine's memory: weights
after each epoch, scores, squared lengths.

    card = find_card("cuda:0")
    run = card.begin(CardTask(card.adopt(X), labels, None, 1.0, weights, Binary(2), rules.Perceptron(0.0, 1.0)))
    done = run.epoch(order)  # the weights have changed

Here are protocols only, and no library for GPUs is imported. `gpu/cuda.py` implements them with CUDA, and
`gpu/emulated.py` with numpy, so that all that uses a card can be tested where there is none.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from rosenblatt.engine.loop import Progress
from rosenblatt.engine.problems import Problem
from rosenblatt.engine.weights import Weights
from rosenblatt.errors import InvalidParameter, MissingDependency

GPUS = "'cuda', or 'cuda:' and the number of a GPU, as in 'cuda:0'"
DEVICES = f"'auto', 'cpu', {GPUS}"
_CUDA = re.compile(r"cuda(?::([0-9]{1,4}))?")


class CardFacts(NamedTuple):
    """What is known of a card."""

    name: str  # "NVIDIA H200"
    total_bytes: int
    free_bytes: int
    capability: str  # "9.0"
    driver: str  # the version of CUDA that the driver can run: "13.0"
    library: str  # "CuPy 14.2.0"


@runtime_checkable
class DLPackArray(Protocol):
    """An array that other libraries can read where it lies: one of CuPy, PyTorch, JAX, numpy, …"""

    def __dlpack__(self, **options: Any) -> Any:
        """Return the array as a capsule of DLPack."""

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return where it lies: the type of the device, as DLPack numbers them, and its number."""


class CardArray(Protocol):
    """Rows in the memory of a card."""

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows and of columns."""

    @property
    def kind(self) -> str:
        """The type of the values: "float16", "bfloat16", "float32" or "float64"."""


CardValues = CardArray | NDArray  # rows on a card, or in the memory of the machine, from where they are streamed to it


class CardTask(NamedTuple):
    """What a run of learning on a card works with."""

    values: CardValues
    labels: NDArray  # (rows,) int64 class numbers
    weight: NDArray | None  # (rows, 2) float64: of each example and of its class; None: all are 1
    constant: float  # the constant feature, whose weight is the intercept
    weights: Weights  # in the memory of the machine; each epoch changes them in place
    problem: Problem  # Binary, Joint or OneVsRest, of at least two classes
    rule: Any  # of rosenblatt.rules
    batch: int = 1  # rows that are predicted with the same weights before these change
    mean: bool = False  # whether a batch moves by the mean of its moves, not by their sum


class CardRun(Protocol):
    """A run of learning on a card. It may keep what does not depend on the weights, such as Gram matrices."""

    def epoch(self, order: NDArray) -> Progress:
        """Learn from the rows that `order` (int64) lists, as `engine.loop.epoch` does.

        The weights of the task are read first, and written only when all rows have been learned from: an exception leaves
        them as they were. If a score is not a finite number, `broken` is its row, and the weights do not count any more.
        """


class Card(Protocol):
    """A graphics card: rows on it, and what can be computed from them there."""

    def describe(self) -> CardFacts:
        """Return what is known of the card."""

    def adopt(self, X: DLPackArray) -> CardArray:
        """Return the rows of an array that lies on this card, of any library that speaks DLPack, without a copy.

        An array that is not in C order, or of integers or booleans (which become float64, as on the CPU), is copied on the
        card. Any other type of values is refused with InvalidDataType, other than two axes with InvalidData.
        """

    def place(self, X: NDArray) -> CardValues:
        """Return a copy of float16, float32 or float64 rows on the card, or X itself if there is no room for a copy."""

    def rows_to_host(self, values: CardValues) -> NDArray:
        """Return a copy of rows in the memory of the machine, in the type of the weights that are learned from them."""

    def array_to_host(self, array: DLPackArray) -> NDArray:
        """Return a copy of any array on this card in the memory of the machine, such as labels, in its own type."""

    def all_finite(self, values: CardValues) -> bool:
        """Return whether every value is a number: no NaN, no infinity."""

    def largest(self, values: CardValues) -> float:
        """Return the largest |value|; NaN if there is a NaN, and 0 if there are no values."""

    def lengths(self, values: CardValues, constant: float) -> NDArray:
        """Return ‖(row, constant)‖² of each row, in float64."""

    def select(self, values: CardValues, rows: NDArray | slice) -> CardValues:
        """Return the rows of these numbers, in a copy; or those of a slice, without one where that is possible."""

    def scores(self, values: CardValues, coef: NDArray, intercept: NDArray) -> NDArray:
        """Return values @ coef.T + intercept (rows, vectors), in the wider type of the weights of these rows and of
        `coef`. The card computes some rows at a time, so that it needs little memory for any number of them."""

    def begin(self, task: CardTask) -> CardRun:
        """Begin a run of learning."""


def weight_type(values: CardValues) -> np.dtype:
    """The type of the weights that are learned from these rows: float64 for float64 rows, else float32."""
    kind = values.dtype.name if isinstance(values, np.ndarray) else values.kind
    return np.dtype(np.float64 if kind == "float64" else np.float32)


def card_number(device: str) -> int | None:
    """Return the number of the card that a device names, 0 for "cuda"; None if it names no card."""
    match = _CUDA.fullmatch(device)
    return None if match is None else int(match[1] or 0)


_CARDS: dict[int, Card] = {}  # those in use, by number


def find_card(device: str) -> Card:
    """Return the card that a device names; the same object each time.

    Parameters
    ----------
    device : str
        "cuda", or "cuda:1" for the second GPU.

    Returns
    -------
    Card

    Raises
    ------
    InvalidParameter
        If it is not the name of a GPU.
    MissingDependency
        If CuPy is not installed.
    GpuUnavailable
        If there is no such GPU, or no driver.
    """
    number = card_number(device)
    if number is None:
        raise InvalidParameter("device", device, GPUS)
    if number not in _CARDS:
        try:
            from rosenblatt.gpu.cuda import CudaCard
        except ModuleNotFoundError as error:
            raise MissingDependency("cupy", "cuda", "GPUs") from error
        _CARDS[number] = CudaCard(number)
    return _CARDS[number]


def use_card(number: int, card: Card | None) -> Card | None:
    """Make `find_card` return this card for this number, or the CUDA device again if it is None; return the card that was
    there before. Tests put emulated cards there."""
    before = _CARDS.pop(number, None)
    if card is not None:
        _CARDS[number] = card
    return before
