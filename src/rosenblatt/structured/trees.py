"""A dependency tree over n words is a list of n heads: the number of each word's head, counted from 1, and 0 for a root. It
is a tree if every word reaches 0."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rosenblatt.engine.jit import jit
from rosenblatt.errors import InvalidData


@jit
def first_unrooted(heads):
    """The first word (from 1) whose heads do not lead to 0, or whose head is none of the words; 0 if all is well."""
    n = heads.size
    state = np.zeros(n + 1, np.int8)  # 1 on the way now, 2 known to reach 0
    state[0] = 2
    for word in range(1, n + 1):
        at = word
        while state[at] == 0:
            state[at] = 1
            if heads[at - 1] < 0 or heads[at - 1] > n:
                return at
            at = heads[at - 1]
        if state[at] == 1:
            return at
        end, at = at, word
        while at != end and state[at] == 1:
            state[at] = 2
            at = heads[at - 1]
    return 0


@jit
def is_projective(heads):
    """Whether no two arcs cross, those from 0 included."""
    n = heads.size
    for m in range(1, n + 1):
        low, high = min(m, heads[m - 1]), max(m, heads[m - 1])
        for k in range(1, n + 1):
            inside, head_inside = low < k < high, low < heads[k - 1] < high
            outside, head_outside = k < low or k > high, heads[k - 1] < low or heads[k - 1] > high
            if (inside and head_outside) or (outside and head_inside):
                return False
    return True


def is_tree(heads: Sequence[int] | NDArray, single_root: bool = False) -> bool:
    """Return whether heads are a tree: every word reaches 0.

    Parameters
    ----------
    heads : sequence of int
        The head of each word, from 1; 0 for a root.
    single_root : bool
        Whether only one word may have head 0.

    Returns
    -------
    bool
    """
    array = np.asarray(heads, np.int64)
    return first_unrooted(array) == 0 and (not single_root or array.size == 0 or int(np.sum(array == 0)) == 1)


def check(heads: NDArray, number: int) -> None:
    """Raise InvalidData, with the sentence (`number` counts from 0) and the word, if the heads are not a tree."""
    if problem := why_no_tree(heads):
        raise InvalidData(f"sentence {number + 1}: {problem}", row=number)


def why_no_tree(heads: NDArray) -> str | None:
    """Return why heads are not a tree, with the word; None if they are one."""
    word = first_unrooted(heads)
    if word == 0:
        return None
    head, n = int(heads[word - 1]), len(heads)
    if not 0 <= head <= n:
        return f"word {word} has head {head}, but there are {n} words; a head is 0 (root) or one of 1 to {n}"
    ring, at = [int(word)], head
    while at != word:
        ring.append(at)
        at = int(heads[at - 1])
    circle = " → ".join(map(str, [*ring, word]))
    return f"the heads are not a tree; they form a cycle {circle}"
