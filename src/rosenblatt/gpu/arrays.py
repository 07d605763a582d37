"""Arrays on a GPU: recognised by DLPack, used without a copy, and for estimators a matrix like any other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from rosenblatt.engine.rows import DeviceRows, numpy_array, refuse_gradients
from rosenblatt.errors import InvalidDataType
from rosenblatt.gpu.card import Card, CardValues, DLPackArray, card_number, find_card, weight_type

T = TypeVar("T")

CUDA_DEVICES = (2, 13)  # of DLPack: the memory of a CUDA device, plain or shared with the processor
MOST_NUMBERS = 1 << 24  # in a piece of scores or of copied rows: 64 MiB of float32


class OnCard(DeviceRows):
    """Rows that a card learns from: in its memory, or in the machine's memory and streamed to it. `chosen` picks some of
    them, by their numbers."""

    def __init__(self, card: Card, values: CardValues, chosen: NDArray | None = None):
        self.card = card
        self.values: CardValues = values
        self.chosen = chosen  # the numbers of the rows; None: all
        self.shape = (values.shape[0] if chosen is None else len(chosen), values.shape[1])
        self.dtype = weight_type(values)

    def __getitem__(self, rows: NDArray | slice) -> OnCard:
        """The rows of these numbers, or of this slice, which are copied only when they are used."""
        if self.chosen is not None:
            return OnCard(self.card, self.values, self.chosen[rows])
        if isinstance(rows, slice):
            return OnCard(self.card, self.card.select(self.values, rows))
        return OnCard(self.card, self.values, rows)

    def __len__(self) -> int:
        return self.shape[0]

    def selected(self) -> CardValues:
        """The values of these rows, in a copy where they are some of many."""
        return self.values if self.chosen is None else self.card.select(self.values, self.chosen)

    def pieces(self, vectors: int = 1) -> Iterator[OnCard]:
        """Yield the rows in pieces. A piece has at most MOST_NUMBERS scores by so many weight vectors and, if its rows have
        to be copied, at most MOST_NUMBERS values."""
        rows, features = self.shape
        size = max(MOST_NUMBERS // max(vectors, 1 if self.chosen is None else features), 1)
        for start in range(0, max(rows, 1), size):  # no rows are one empty piece, which has a type
            yield self[start : start + size]

    def all_finite(self) -> bool:
        """Return whether every value is a number."""
        return self.card.all_finite(self.selected())

    def largest(self) -> float:
        """Return the largest |value|; NaN if there is a NaN."""
        return self.card.largest(self.selected())

    def lengths(self, constant: float) -> NDArray:
        """Return ‖(row, constant)‖² of each row, in float64."""
        return self.card.lengths(self.selected(), constant)

    def scores(self, coef: NDArray, intercept: NDArray) -> NDArray:
        """Return rows @ coef.T + intercept."""
        if self.chosen is None:
            return self.card.scores(self.values, coef, intercept)
        return np.concatenate([self.card.scores(part.selected(), coef, intercept) for part in self.pieces(len(coef))])

    def to_host(self) -> NDArray:
        """Return a copy in the memory of the machine."""
        return self.card.rows_to_host(self.selected())


def cuda_device(array: object) -> str | None:
    """Return the CUDA device that an array of any library lies on, as "cuda:0"; None if it lies on none."""
    if isinstance(array, np.ndarray) or not isinstance(array, DLPackArray):
        return None
    try:
        kind, number = array.__dlpack_device__()
    except (TypeError, ValueError, RuntimeError, BufferError):  # of an array that cannot be read at all
        return None
    return f"cuda:{int(number)}" if int(kind) in CUDA_DEVICES else None


def rows_on_card(X: object, device: str) -> OnCard | None:
    """Return the rows of a matrix that lies on a card, without a copy; None for a matrix anywhere else.

    `device` is where the user wants to learn; on "cpu", or on another card, it is an error that X lies on this one.
    """
    if isinstance(X, OnCard):
        return X
    if (where := cuda_device(X)) is None or not isinstance(X, DLPackArray):
        return None
    if device == "cpu":
        numpy_array(X, "X")  # which says how to copy it
    if device.startswith("cuda:") and card_number(device) != card_number(where):
        hint = f"copy X to {device} first"
        raise InvalidDataType(f"X is on {where}, but device={device!r}", hint=hint, settings={"device": "auto"})
    refuse_gradients(X, "X")
    card = find_card(where)
    return OnCard(card, card.adopt(X))


def send_to_card(X: NDArray, device: str) -> OnCard:
    """Return rows for the card that a device names: a copy in its memory, or X itself, to be streamed, if that is full."""
    card = find_card(device)
    return OnCard(card, card.place(X))


def to_host(array: T, name: str) -> T | NDArray:
    """Return a copy of an array on a card in the machine's memory, anything else as it is; `name` is for errors."""
    if isinstance(array, OnCard):
        return array.to_host()
    if (where := cuda_device(array)) is None or not isinstance(array, DLPackArray):
        return array
    refuse_gradients(array, name)
    return find_card(where).array_to_host(array)
