"""The best projective tree is put together from spans: a half-tree reaches from its head to one side, an arc joins two of
them, and every split of a span is tried once, so O(n³) (Eisner 1996). With scores for neighbouring modifiers of one
head, a third kind of span, between two such modifiers, keeps it at O(n³) (McDonald and Pereira 2006).

Scores are (n+1, n+1) floats, scores[h, m] for the arc from head h to modifier m, words counted from 1 and 0 the root; −∞
forbids an arc. The answer is (n,) heads, that of word m at m − 1. Among trees of equal score it is always the same one.
If every projective tree has a forbidden arc, the answer is one of these trees.

    right[i, j]   half-tree of head i whose words are i … j           left[i, j]   half-tree of head j whose words are i … j
    out[i, j]     arc i → j and what lies between                     back[i, j]   arc j → i and what lies between

The other end of each inner loop is kept transposed, so that both its operands run through memory. No back-pointer is
stored: n splits are found again on the way back, which is less work than storing n² of them.
"""

from __future__ import annotations

import numpy as np

from rosenblatt.engine.jit import jit


@jit
def best_tree(scores, single_root):
    """The heads of a projective tree of highest score; with `single_root`, of those in which the root has one modifier."""
    size = scores.shape[0]
    chart = np.empty((6, size, size), scores.dtype)
    right, left, out, back, right_t, left_t = chart[0], chart[1], chart[2], chart[3], chart[4], chart[5]
    for i in range(size):
        right[i, i] = left[i, i] = right_t[i, i] = left_t[i, i] = 0.0
    for width in range(1, size):
        for i in range(size - width):
            j = i + width
            k = _joint(right, left_t, i, j, single_root)
            inside = right[i, k] + left_t[j, k + 1]
            out[i, j] = inside + scores[i, j]
            back[j, i] = inside + scores[j, i]
            _close(out, back, (right, right_t), (left, left_t), i, j)
    heads = np.zeros(size - 1, np.int32)
    spans = _begin(size)
    top = 1 if size > 1 else 0
    while top > 0:
        top -= 1
        i, j, kind = spans[top]
        if i == j:
            continue
        if kind == RIGHT:
            k = best_split(out[i], right_t[j], i + 1, j + 1, 0)
            heads[k - 1] = i
            top = _push(spans, top, k, j, RIGHT)
            j = k
        else:
            k = best_split(left[i], back[j], i, j, 0)
            heads[k - 1] = j
            top = _push(spans, top, i, k, LEFT)
            i = k
        k = _joint(right, left_t, i, j, single_root)
        top = _push(spans, top, i, k, RIGHT)
        top = _push(spans, top, k + 1, j, LEFT)
    return heads


@jit
def best_tree_with_siblings(scores, siblings, single_root):
    """The same where a tree also scores siblings[h, m, s] for each modifier m of h whose neighbour on the side of h is the
    modifier s of h; s = h where m is the first on its side."""
    size = scores.shape[0]
    chart = np.empty((8, size, size), scores.dtype)
    right, left, out, back, right_t, left_t = chart[0], chart[1], chart[2], chart[3], chart[4], chart[5]
    between, between_t = chart[6], chart[7]
    for i in range(size):
        right[i, i] = left[i, i] = right_t[i, i] = left_t[i, i] = 0.0
    for width in range(1, size):
        for i in range(size - width):
            j = i + width
            k = best_split(right[i], left_t[j], i, j, 1)
            between[i, j] = between_t[j, i] = right[i, k] + left_t[j, k + 1]
            out[i, j] = back[j, i] = -np.inf
            if scores[i, j] > -np.inf:
                k = _elder_out(left_t, out, between_t, siblings, i, j, single_root)
                inside = left_t[j, i + 1] if k == i else out[i, k] + between_t[j, k]
                out[i, j] = inside + siblings[i, j, k] + scores[i, j]
            if scores[j, i] > -np.inf:
                k = _elder_back(right, back, between, siblings, i, j)
                inside = right[i, j - 1] if k == j else between[i, k] + back[j, k]
                back[j, i] = inside + siblings[j, i, k] + scores[j, i]
            _close(out, back, (right, right_t), (left, left_t), i, j)
    heads = np.zeros(size - 1, np.int32)
    spans = _begin(size)
    top = 1 if size > 1 else 0
    while top > 0:
        top -= 1
        i, j, kind = spans[top]
        if i == j:
            continue
        if kind == BETWEEN:
            k = best_split(right[i], left_t[j], i, j, 1)
            top = _push(spans, top, i, k, RIGHT)
            top = _push(spans, top, k + 1, j, LEFT)
        elif kind == RIGHT:  # the half-tree beyond the last modifier k, then modifier after modifier inwards
            k = best_split(out[i], right_t[j], i + 1, j + 1, 0)
            top = _push(spans, top, k, j, RIGHT)
            while k != i:
                heads[k - 1] = i
                elder = _elder_out(left_t, out, between_t, siblings, i, k, single_root)
                top = _push(spans, top, i + 1, k, LEFT) if elder == i else _push(spans, top, elder, k, BETWEEN)
                k = elder
        else:
            k = best_split(left[i], back[j], i, j, 0)
            top = _push(spans, top, i, k, LEFT)
            while k != j:
                heads[k - 1] = j
                elder = _elder_back(right, back, between, siblings, k, j)
                top = _push(spans, top, k, j - 1, RIGHT) if elder == j else _push(spans, top, k, elder, BETWEEN)
                k = elder
    return heads


RIGHT, LEFT, BETWEEN = 0, 1, 2  # what a span on the way back is


@jit
def best_split(a, b, first, end, shift):
    """The first k of first … end − 1 with the largest a[k] + b[k + shift]."""
    best, at = a[first] + b[first + shift], first
    for k in range(first + 1, end):
        value = a[k] + b[k + shift]
        if value > best:
            best, at = value, k
    return at


@jit
def _close(out, back, rights, lefts, i, j):
    """Make the half-trees from i to j: an arc and the half-tree behind it, to the right and to the left."""
    right, right_t = rights
    left, left_t = lefts
    k = best_split(out[i], right_t[j], i + 1, j + 1, 0)
    right[i, j] = right_t[j, i] = out[i, k] + right_t[j, k]
    k = best_split(left[i], back[j], i, j, 0)
    left[i, j] = left_t[j, i] = left[i, k] + back[j, k]


@jit
def _joint(right, left_t, i, j, single_root):
    """Where the two half-trees under an arc between i and j meet; a root with one modifier has nothing before it."""
    return 0 if single_root and i == 0 else best_split(right[i], left_t[j], i, j, 1)


@jit
def _elder_out(left_t, out, between_t, siblings, i, j, single_root):
    """The best modifier of i before its modifier j on the right; i if there is none."""
    best, at = left_t[j, i + 1] + siblings[i, j, i], i
    for k in range(i + 1, i + 1 if single_root and i == 0 else j):
        value = out[i, k] + between_t[j, k] + siblings[i, j, k]
        if value > best:
            best, at = value, k
    return at


@jit
def _elder_back(right, back, between, siblings, i, j):
    """The best modifier of j before its modifier i on the left, seen from j; j if there is none."""
    best, at = right[i, j - 1] + siblings[j, i, j], j
    for k in range(i + 1, j):
        value = between[i, k] + back[j, k] + siblings[j, i, k]
        if value > best:
            best, at = value, k
    return at


@jit
def _begin(size):
    """Room for the spans that wait on the way back, and the first of them: the half-tree of the root."""
    spans = np.empty((4 * size + 4, 3), np.int64)
    _push(spans, 0, 0, size - 1, RIGHT)
    return spans


@jit
def _push(spans, top, i, j, kind):
    spans[top, 0], spans[top, 1], spans[top, 2] = i, j, kind
    return top + 1
