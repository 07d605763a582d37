"""A tree is built from left to right by three kinds of actions on a configuration: a stack of words whose head is still
sought, and the words that follow them, of which the first is the front (arc-hybrid: Kuhlmann, Gómez-Rodríguez and Satta
2011).

    SHIFT     the front goes onto the stack
    LEFT(l)   the top of the stack becomes a left child of the front, with label l, and leaves the stack
    RIGHT(l)  the top of the stack becomes a right child of the word below it, with label l, and leaves the stack

The root stands behind the last word and is never shifted. So a sentence of n words takes n shifts and n arcs, whatever is
chosen; every word gets one head; and the result is always a projective tree. With a single root, the root may only take
the last word on the stack.

A configuration is a chain of cells: the front, below it the top of the stack, and so on down. A cell is never changed
once it is made, so the configurations of a beam share what they have in common, and an action costs the same at any
length.
"""

from __future__ import annotations

import numpy as np

from rosenblatt.engine.jit import jit
from rosenblatt.structured.trees import is_projective

SHIFT = 0  # and 1 + 2l is LEFT(l), 2 + 2l is RIGHT(l)

# What a cell holds, as columns of (cells, COLUMNS) int64. A child is the word and the label of its arc; −1 for none.
WORD, BELOW, DEPTH = 0, 1, 2  # the word, the cell below (−1 at the bottom), how many cells lie below
# Of each side the outermost child and its label, the next and its label, how many there are, and which labels they have.
LEFT, LEFT_LABEL, LEFT2, LEFT2_LABEL, LEFTS, LEFT_SET = 3, 4, 5, 6, 7, 8
RIGHT, RIGHT_LABEL, RIGHT2, RIGHT2_LABEL, RIGHTS, RIGHT_SET = 9, 10, 11, 12, 13, 14
COLUMNS = 16  # two cache lines

# Which arcs a label has been seen on, as bits.
ON_ROOT, ON_LEFT, ON_RIGHT = 1, 2, 4


@jit
def new_cells(room):
    """(room, COLUMNS) int64, in which `begin` and `act` write."""
    return np.empty((room, COLUMNS), np.int64)


@jit
def _write_bare(cells, at, word, below):
    """Write the cell of a word without children."""
    for column in range(COLUMNS):
        cells[at, column] = -1
    cells[at, WORD], cells[at, BELOW] = word, below
    cells[at, DEPTH] = cells[below, DEPTH] + 1 if below >= 0 else 0
    cells[at, LEFTS] = cells[at, LEFT_SET] = cells[at, RIGHTS] = cells[at, RIGHT_SET] = 0


@jit
def begin(cells):
    """Write the configuration before the first action: word 0 at the front, nothing on the stack. Its cell is 0."""
    _write_bare(cells, 0, 0, -1)
    return 1


@jit
def _write_copy(cells, at, other, below):
    """Write a copy of another cell that lies on `below`."""
    for column in range(COLUMNS):
        cells[at, column] = cells[other, column]
    cells[at, BELOW] = below
    cells[at, DEPTH] = cells[below, DEPTH] + 1 if below >= 0 else 0


@jit
def act(cells, used, front, action):
    """Write the configuration after an action; (its cell, the number of cells used now). At most two cells are written."""
    top = cells[front, BELOW]
    if action == SHIFT:
        _write_bare(cells, used, cells[front, WORD] + 1, front)
        return used, used + 1
    label = (action - 1) >> 1
    bit = np.int64(1) << np.int64(label & 63)
    if action & 1:
        _write_copy(cells, used, front, cells[top, BELOW])
        cells[used, LEFT2], cells[used, LEFT2_LABEL] = cells[used, LEFT], cells[used, LEFT_LABEL]
        cells[used, LEFT], cells[used, LEFT_LABEL] = cells[top, WORD], label
        cells[used, LEFTS] += 1
        cells[used, LEFT_SET] |= bit
        return used, used + 1
    head = cells[top, BELOW]
    _write_copy(cells, used, head, cells[head, BELOW])
    cells[used, RIGHT2], cells[used, RIGHT2_LABEL] = cells[used, RIGHT], cells[used, RIGHT_LABEL]
    cells[used, RIGHT], cells[used, RIGHT_LABEL] = cells[top, WORD], label
    cells[used, RIGHTS] += 1
    cells[used, RIGHT_SET] |= bit
    _write_copy(cells, used + 1, front, used)
    return used + 1, used + 2


@jit
def legal_actions(cells, front, n, single_root):
    """(whether SHIFT, LEFT, RIGHT) may be taken in a sentence of n words; before the end, one of them always may."""
    depth, ended = cells[front, DEPTH], cells[front, WORD] == n
    return not ended, depth == 1 or (depth > 1 and not (ended and single_root)), depth > 1


@jit
def new_arc(cells, front, side):
    """(head, word) of the arc that LEFT (side 1) or RIGHT (side 2) makes."""
    top = cells[front, BELOW]
    return cells[front if side == 1 else cells[top, BELOW], WORD], cells[top, WORD]


@jit
def arc_kind(cells, front, n, side):
    """What kind of arc LEFT (side 1) or RIGHT (side 2) makes: one of the bits of `note_uses`."""
    return ON_RIGHT if side == 2 else (ON_ROOT if cells[front, WORD] == n else ON_LEFT)


@jit
def costs(cells, front, heads, single_root):
    """(cost of SHIFT, of LEFT, of RIGHT): how many arcs of the gold tree can be reached now and not after the action
    (Goldberg and Nivre 2013).

    `heads` are the gold heads, with the root as n. Where the gold tree is projective (and has a single root, if that is
    asked for), an action of cost 0 exists in every configuration, and such actions lead to all arcs that can be reached.
    Where it is not, arcs that cannot be reached together are counted one by one, and the least cost may be more than 0.
    """
    n = heads.size
    b, top = cells[front, WORD], cells[front, BELOW]
    shift = left = right = 0
    if b < n:
        below, first = top, True
        while below >= 0:  # a child of b on the stack is out of reach below b; so is b's head, unless it lies right below
            word = cells[below, WORD]
            if heads[word] == b or (heads[b] == word and not first):
                shift += 1
            below, first = cells[below, BELOW], False
        if single_root and heads[b] == n and top >= 0:  # the one root must come to lie at the bottom
            shift += 1
    if top >= 0:
        s = cells[top, WORD]
        children = 0
        for word in range(b, n):
            if heads[word] == s:
                children += 1
        head, below = heads[s], cells[top, BELOW]
        left = right = children  # who has left the stack takes no more children
        ahead = head >= b and not (single_root and head == n and below >= 0)
        if (ahead and head != b) or (below >= 0 and head == cells[below, WORD]):
            left += 1
        if ahead:
            right += 1
    return shift, left, right


@jit
def gold_action(cells, front, heads, labels, single_root):
    """The action that the gold tree asks for, an arc as soon as it may be made; −1 where the tree is out of reach."""
    shift, left, right = costs(cells, front, heads, single_root)
    may_shift, may_left, may_right = legal_actions(cells, front, heads.size, single_root)
    if may_left or may_right:
        s = cells[cells[front, BELOW], WORD]
        if may_left and left == 0 and heads[s] == cells[front, WORD]:
            return 1 + 2 * labels[s]
        if may_right and right == 0 and heads[s] == cells[cells[cells[front, BELOW], BELOW], WORD]:
            return 2 + 2 * labels[s]
    return SHIFT if may_shift and shift == 0 else -1


@jit
def note_uses(heads, labels, uses):
    """Mark in `uses` which kinds of arcs the labels of a gold tree are on."""
    n = heads.size
    for word in range(n):
        uses[labels[word]] |= ON_ROOT if heads[word] == n else (ON_LEFT if heads[word] > word else ON_RIGHT)


@jit
def note_corpus_uses(starts, heads, labels, uses):
    """The same for all gold trees of a corpus, whose heads count from 1 with 0 for the root."""
    for sentence in range(starts.size - 1):
        start, n = starts[sentence], starts[sentence + 1] - starts[sentence]
        tree = np.empty(n, np.int64)
        for word in range(n):
            tree[word] = heads[start + word] - 1 if heads[start + word] > 0 else n
        note_uses(tree, labels[start : start + n], uses)


@jit
def write_usable(uses, usable):
    """Write which kinds of arcs each label may be on: those it has been seen on, and those that no label has been seen on.
    So every action that a configuration allows has a label. One that has not been seen at all waits, if others have."""
    seen = 0
    for label in range(uses.size):
        seen |= uses[label]
    for label in range(uses.size):
        open_to_all = ~seen & (ON_ROOT | ON_LEFT | ON_RIGHT)
        usable[label] = uses[label] | open_to_all if uses[label] or not seen else 0


@jit
def load_gold(heads, labels, tree, uses, usable):
    """Write gold as the system counts, words from 0 and the root behind the last; note the labels that it uses."""
    for word in range(tree.size):
        tree[word] = heads[word] - 1 if heads[word] > 0 else tree.size
    note_uses(tree, labels, uses)
    write_usable(uses, usable)


@jit
def lift(heads):
    """Make a tree projective, by hanging words whose arc is not onto the head of their head, shortest arcs first (Nivre and
    Nilsson 2005). The root is n."""
    n = heads.size
    moved = True
    while moved:
        moved = False
        for length in range(2, n):
            for word in range(n):
                if abs(heads[word] - word) == length and heads[word] < n and not _spans_its_own(heads, word):
                    heads[word] = heads[heads[word]]
                    moved = True


@jit
def _spans_its_own(heads, word):
    """Whether the head of a word is above every word between them."""
    n, head = heads.size, heads[word]
    for between in range(min(word, head) + 1, max(word, head)):
        above = heads[between]
        while above != head and above != n:
            above = heads[above]
        if above == n:
            return False
    return True


@jit
def make_projective(heads, starts):
    """Lift all sentences of a corpus, whose heads count from 1 with 0 for the root; (sentences that were not projective,
    words that have another head now)."""
    crossing, lifted = 0, 0
    for sentence in range(starts.size - 1):
        start, n = starts[sentence], starts[sentence + 1] - starts[sentence]
        if not is_projective(heads[start : start + n]):
            tree = np.empty(n, np.int64)
            for word in range(n):
                tree[word] = heads[start + word] - 1 if heads[start + word] > 0 else n
            lift(tree)
            crossing += 1
            for word in range(n):
                head = tree[word] + 1 if tree[word] < n else 0
                lifted += head != heads[start + word]
                heads[start + word] = head
    return crossing, lifted


@jit
def write_arcs(actions, heads, labels):
    """Write the heads (counted from 1, 0 for the root) and the labels of the tree that these 2n actions build."""
    n = heads.size
    stack = np.empty(n + 1, np.int64)
    depth, b = 0, 0
    for action in actions:
        if action == SHIFT:
            stack[depth] = b
            depth += 1
            b += 1
        else:
            depth -= 1
            head = b if action & 1 else stack[depth - 1]
            heads[stack[depth]] = head + 1 if head < n else 0
            labels[stack[depth]] = (action - 1) >> 1
