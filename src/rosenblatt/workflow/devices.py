"""Rows of files go to the device that a learner learns on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import scipy.sparse as sp

from rosenblatt.errors import InvalidParameter, UnsupportedOperation
from rosenblatt.estimators.interface import Learner
from rosenblatt.gpu.arrays import send_to_card
from rosenblatt.gpu.card import DEVICES, card_number, find_card

LEAST_FILLED = 1 / 20  # share of values that are not zero, below which rows are not made dense


def check_device(device: str) -> None:
    """Raise an error if a device is not there to learn on, before files are read.

    Parameters
    ----------
    device : str
        The parameter `device` of a learner.
    """
    if device in ("auto", "cpu"):
        return
    if card_number(device) is None:
        raise InvalidParameter("device", device, DEVICES)
    find_card(device)


def uses_card(learner: Learner) -> bool:
    """Return whether a learner learns on a GPU from rows in the memory of the machine."""
    return card_number(getattr(learner, "device", "cpu")) is not None


def rows_to_device(X: Any, learner: Learner, files: Sequence[str]) -> Any:
    """Return rows on the device that a learner learns on; a GPU gets them dense.

    Parameters
    ----------
    X : CSR matrix or array of shape (rows, features)
        The rows.
    learner : estimator
        The learner.
    files : sequence of str
        Where the rows are from, for the error.

    Returns
    -------
    CSR matrix, array or OnCard
        X itself where the learner learns on the CPU.

    Raises
    ------
    UnsupportedOperation
        If the learner has learned nothing yet, and most values are zero.
    """
    device = getattr(learner, "device", "cpu")
    if card_number(device) is None:
        return X
    if sp.issparse(X):
        filled = X.nnz / max(X.shape[0] * X.shape[1], 1)
        if filled < LEAST_FILLED and not hasattr(learner, "n_features_in_"):
            raise UnsupportedOperation(
                f"a GPU learns from dense rows, and of the values of these rows only {filled:.2%} are not zero, "
                f"in {X.shape[1]:,} columns",
                path=", ".join(files) or None,
                settings={"device": "cpu"},
            )
        X = X.toarray()
    return send_to_card(X, device)
