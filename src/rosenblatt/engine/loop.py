"""The loops over rows: take the row, measure, confront, and where a rule says so, push.

Weights are (columns of X + 1,) for two classes and (columns of X + 1, weight vectors) for many; the last coordinate is
the constant feature's. Dense rows keep them in Fortran order, a weight vector in one run; sparse rows in C order, the
weights of one feature in one run. The bodies are the same, only the nesting of the two loops follows the memory.

`weights` is anything with `w`, `drift`, `tally` and `clock`. The drift is the sum of clock·τΔ, in float64 whatever w is:
w − drift/clock is then the average of the weights after every example seen, at no cost to examples that change nothing.
Until the average is asked for it is enough to keep, for each row, the sum of clock·τ (`pending`): `add_pending` then
adds each row to the drift once, however many epochs there were. When a sparse row is learned from, the weights of its
features are in the processor's cache and their drift is not: adding to it at once was measured at 80 % of the time of an
epoch.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rosenblatt.engine.jit import flat_slice, inlined, is_number, jit, noalias_jit, prefetch
from rosenblatt.engine.problems import MOVE, Problem, confront, counters, faced
from rosenblatt.engine.rows import fetch, take


class Pace(NamedTuple):
    """How fast the weights follow the examples."""

    batch: int | None  # rows confronted with the same weights before these change; None: one
    mean: bool  # whether a batch moves by the mean of its moves rather than by their sum
    budget: int  # stop after the batch that makes this many updates
    room: int  # the most moves that one row can call for
    ahead: int  # prefetch the row that comes this many positions later; 0: none


class Scratch(NamedTuple):
    """The work arrays of a kernel, allocated by Python: for each array that a kernel allocates itself, it takes a tenth of
    a second longer to compile."""

    moves: NDArray  # MOVE records: those of a batch, or with a log as many as should be kept
    share: NDArray  # (counters,) int64: zero before and after a batch
    scores: NDArray  # (weight vectors that an example faces,): float64 for one, the precision of the weights for many
    pending: NDArray | None  # (rows, weight vectors) float64: the sum of clock·τ not yet in the drift; None: all is in it


def scratch_for(w: NDArray, problem: Problem, most_moves: int, pending: NDArray | None) -> Scratch:
    """Allocate the work arrays for learning a problem with weights like w, with room for so many moves."""
    scores = np.empty(faced(problem, 0)[1], np.float64 if w.ndim == 1 else w.dtype)
    return Scratch(np.empty(most_moves, MOVE), np.zeros(counters(problem), np.int64), scores, pending)


class Progress(NamedTuple):
    """What a stretch of learning did. `position` is the first place in the order that was not visited."""

    position: int
    mistakes: int
    updates: int
    broken: int  # a row whose score is not a number, or -1
    loss: float | None = None  # the mean loss of the rows when they were visited, of learners that have one


@jit
def place(columns, j):
    """The feature that the j-th value of a row belongs to."""
    if columns is None:
        return np.uint64(j)
    return columns[j]


@jit
def dot(columns, values, w):
    """⟨row, w⟩ in float64."""
    if columns is not None:
        return sparse_dot(columns, values, w)
    total = 0.0
    for j in range(values.size):
        total += np.float64(values[j]) * np.float64(w[j])
    return total


@inlined
def sparse_dot(columns, values, w):
    """⟨row, w⟩ of a sparse row, in float64. The order of the additions depends on the length of the row alone, so a row has
    the same score, to the last bit, in whichever part of a stream it comes.

    Because the sum must not be regrouped, the compiler does not vectorise it with gather instructions, which were measured
    at more than twice the time of single loads. Prefetching the weights of a later row meanwhile was measured at two to
    four times the time of the sum where rows are short, and at no gain where they are long: the processor looks as far
    ahead by itself.
    """
    total = 0.0
    for j in range(values.size):
        total += np.float64(values[j]) * np.float64(w[columns[j]])
    return total


@noalias_jit
def dots(columns, values, w, first, scores):
    """scores[k] = ⟨row, w[:, first + k]⟩ for as many columns as there are scores, in the precision of the weights.

    Float64 sums of float32 products were measured at 1.6 times the time. A dense row is read once for four weight vectors;
    of a sparse row four values at a time are multiplied with the runs of weights that belong to them.
    """
    wanted, size = scores.size, w.shape[0]
    if columns is None:
        zero = scores.dtype.type(0)
        k = 0
        while k + 4 <= wanted:
            one, two = flat_slice(w, (first + k) * size, size), flat_slice(w, (first + k + 1) * size, size)
            three, four = flat_slice(w, (first + k + 2) * size, size), flat_slice(w, (first + k + 3) * size, size)
            a, b, c, d = zero, zero, zero, zero
            for j in range(values.size):
                x = values[j]
                a += x * one[j]
                b += x * two[j]
                c += x * three[j]
                d += x * four[j]
            scores[k], scores[k + 1], scores[k + 2], scores[k + 3] = a, b, c, d
            k += 4
        while k < wanted:
            one = flat_slice(w, (first + k) * size, size)
            a = zero
            for j in range(values.size):
                a += values[j] * one[j]
            scores[k] = a
            k += 1
    else:
        vectors = w.shape[1]
        for k in range(wanted):
            scores[k] = 0
        fours = values.size - values.size % 4
        for j in range(0, fours, 4):
            x, y, u, v = values[j], values[j + 1], values[j + 2], values[j + 3]
            one = flat_slice(w, np.int64(columns[j]) * vectors + first, wanted)
            two = flat_slice(w, np.int64(columns[j + 1]) * vectors + first, wanted)
            three = flat_slice(w, np.int64(columns[j + 2]) * vectors + first, wanted)
            four = flat_slice(w, np.int64(columns[j + 3]) * vectors + first, wanted)
            for k in range(wanted):
                scores[k] += (x * one[k] + y * two[k]) + (u * three[k] + v * four[k])
        for j in range(fours, values.size):
            x, one = values[j], flat_slice(w, np.int64(columns[j]) * vectors + first, wanted)
            for k in range(wanted):
                scores[k] += x * one[k]


@jit
def measure(columns, values, constant, w, first, scores):
    """Fill `scores` with the scores of the row, constant feature included."""
    if w.ndim == 1:
        scores[0] = dot(columns, values, w) + constant * w[-1]
    else:
        dots(columns, values, w, first, scores)
        for k in range(scores.size):
            scores[k] += scores.dtype.type(constant) * w[-1, first + k]


@jit
def lay_out(columns, w, column):
    """(place of the first weight of a column in the order of memory, distance from one weight of it to the next)."""
    if w.ndim == 1:
        return np.uint64(0), np.uint64(1)
    if columns is None:
        return np.uint64(column * w.shape[0]), np.uint64(1)
    return np.uint64(column), np.uint64(w.shape[1])


@noalias_jit
def axpy(columns, values, constant, w, column, tau):
    """w[:, column] += τ · (row, constant)."""
    step = w.dtype.type(tau)
    first, distance = lay_out(columns, w, column)
    weights = flat_slice(w, 0, w.size)
    for j in range(values.size):
        weights[first + distance * place(columns, j)] += step * values[j]
    weights[first + distance * np.uint64(w.shape[0] - 1)] += step * w.dtype.type(constant)


@jit
def length_of(lengths, i):
    """The squared length of row i; 0 where the rule has no use for it."""
    return 0.0 if lengths is None else lengths[i]


@jit
def weight_of(weight, i):
    """The two weights of example i, 1 where none are given."""
    if weight is None:
        return 1.0, 1.0
    return weight[i, 0], weight[i, 1]


@jit
def carry_out(rows, constant, w, drift, pending, move):
    """Make one move: w += τΔ, and drift += clock·τΔ, at once or, with a `pending`, when `add_pending` is called."""
    row, gains, loses, tau, due = move["row"], move["gains"], move["loses"], move["tau"], move["tau"] * move["clock"]
    columns, values = take(rows, row)
    axpy(columns, values, constant, w, gains, tau)
    if loses >= 0:
        axpy(columns, values, constant, w, loses, -tau)
    if pending is not None:
        pending[row, gains] += due
        if loses >= 0:
            pending[row, loses] -= due
    elif drift is not None:
        axpy(columns, values, constant, drift, gains, due)
        if loses >= 0:
            axpy(columns, values, constant, drift, loses, -due)


@jit
def prefetch_weights(columns, w, column):
    """Prefetch the weights of a sparse row in a column of w."""
    if columns is not None:
        first, distance = lay_out(columns, w, column)
        for j in range(columns.size):
            prefetch(w, np.intp(first + distance * columns[j]))


@jit
def add_pending(examples, drift, order, pending):
    """Add the pending sums of the rows of `order` to the drift, and set them to zero."""
    for s in range(order.size):
        i = order[s]
        soon = order[min(s + 2, order.size - 1)]  # it is known which drifts come next, so nothing need wait for them
        for k in range(pending.shape[1]):
            if pending[soon, k] != 0.0:
                prefetch_weights(take(examples.rows, soon)[0], drift, k)
            if pending[i, k] != 0.0:
                columns, values = take(examples.rows, i)
                axpy(columns, values, examples.constant, drift, k, pending[i, k])
                pending[i, k] = 0.0


@jit
def apply_moves(examples, weights, moves, scratch, mean):
    """Carry out moves that were all found with the same weights, as one change; return how many counters it raises."""
    rows, constant, share = examples.rows, examples.constant, scratch.share
    w, drift, tally = weights.w, weights.drift, weights.tally
    updates = 0
    for q in range(moves.size):
        share[moves[q]["counter"]] += 1
    for q in range(moves.size):
        if mean:
            moves[q]["tau"] /= share[moves[q]["counter"]]
        carry_out(rows, constant, w, drift, scratch.pending, moves[q])
    for q in range(moves.size):
        if share[moves[q]["counter"]] > 0:
            share[moves[q]["counter"]] = 0
            tally[moves[q]["counter"]] += 1
            updates += 1
    return updates


@jit
def end_of_batch(batch, start, rows):
    """Return where the batch that begins at `start` ends. None compiles a loop for batches of one row, which saves a fifth
    of the time."""
    if batch is None:
        return start + 1
    return min(start + batch, rows)


@noalias_jit  # of short rows, an epoch was measured at a twentieth less
def epoch(examples, weights, problem, rule, pace, order, start, scratch, log, run):
    """Visit the rows that `order` lists, from position `start` on, and learn from them.

    A batch of one row is the online algorithm. With a `log`, which counts the moves in the scratch, every move is kept, and
    the loop returns when another batch might not fit. With a `run` (current run of right answers, longest run pocketed) it
    returns at the mistake that ends a run longer than the longest, before learning from it, so that the caller may judge
    the weights that made it; with `run[0] = 0` the loop goes on from there.
    """
    moves, scores = scratch.moves, scratch.scores
    rows, labels, constant = examples.rows, examples.labels, examples.constant
    w, drift, tally, seen = weights.w, weights.drift, weights.tally, weights.clock
    mistakes, updates, t = 0, 0, start
    while t < order.size and updates < pace.budget:
        end = end_of_batch(pace.batch, t, order.size)
        base = np.int64(0) if log is None else log[0]
        if base + (end - t) * pace.room > moves.size:
            break
        clock = seen[0] + (end - t) - 1
        found = base
        for s in range(t, end):
            i = order[s]
            if pace.ahead > 0 and s + pace.ahead < order.size:
                fetch(rows, order[s + pace.ahead])
            columns, values = take(rows, i)
            label = labels[i]
            first, _ = faced(problem, label)
            measure(columns, values, constant, w, first, scores)
            if not is_number(scores[0]):
                return Progress(s, mistakes, updates, i)
            length = length_of(examples.lengths, i)
            weight = weight_of(examples.weight, i)
            before = found
            _, right, found = confront(problem, rule, scores, label, length, weight, tally, moves, found)
            for q in range(before, found):
                moves[q]["row"] = i
                moves[q]["clock"] = clock
            if run is not None:
                if right:
                    run[0] += 1
                elif run[0] > run[1]:
                    return Progress(s, mistakes, updates, -1)
                else:
                    run[0] = 0
            mistakes += not right
        if found > base:
            if found == base + 1:  # as apply_moves does, without the call, which was measured at a fifth of an epoch
                carry_out(rows, constant, w, drift, scratch.pending, moves[base])
                tally[moves[base]["counter"]] += 1
                updates += 1
            else:
                updates += apply_moves(examples, weights, flat_slice(moves, base, found - base), scratch, pace.mean)
            if log is not None:
                log[0] = found
        seen[0] += end - t
        t = end
    return Progress(t, mistakes, updates, -1)


@jit
def sum_of_squares(flat):
    """The sum of all squares, in float64."""
    total = 0.0
    for j in range(flat.size):
        total += np.float64(flat[j]) * np.float64(flat[j])
    return total


@jit
def epochs(examples, weights, problem, rule, pace, orders, scratch, results):
    """Learn for several epochs; return (epochs made, row whose score is not a number or −1).

    `orders` (orders, rows) lists the rows of each epoch; after the last order the first is used again. `results` is where
    the epochs are written, one line each, and says how many there are at most: (epochs, 2) int64 mistakes and updates, and
    (epochs,) float64 squared norms of the weights, or (0,) where nobody asks for them. The loop ends early after an epoch
    without mistakes or without updates, or when the squared norm overflows.
    """
    counts, squares = results
    flat = flat_slice(weights.w, 0, weights.w.size)
    for e in range(counts.shape[0]):
        order = flat_slice(orders, (e % orders.shape[0]) * orders.shape[1], orders.shape[1])
        done = epoch(examples, weights, problem, rule, pace, order, 0, scratch, None, None)
        counts[e, 0], counts[e, 1] = done.mistakes, done.updates
        if squares.size > 0:
            squares[e] = sum_of_squares(flat)
            if not is_number(squares[e]):
                return e + 1, done.broken
        if done.broken >= 0 or done.mistakes == 0 or done.updates == 0:
            return e + 1, done.broken
    return counts.shape[0], -1


@jit
def most_violated(examples, weights, problem, rule, order, scratch, scales):
    """(row, broken): of the rows of `order` that call for a move, the one whose lowest margin, divided by its `scales`
    (None: by 1), is lowest; −1 when no row calls for one. Ties go to the row that comes first."""
    moves, scores = scratch.moves, scratch.scores
    lowest, chosen = np.inf, -1
    for s in range(order.size):
        i = order[s]
        columns, values = take(examples.rows, i)
        label = examples.labels[i]
        first, _ = faced(problem, label)
        measure(columns, values, examples.constant, weights.w, first, scores)
        if not is_number(scores[0]):
            return -1, i
        length = length_of(examples.lengths, i)
        weight = weight_of(examples.weight, i)
        m, _, found = confront(problem, rule, scores, label, length, weight, weights.tally, moves, 0)
        if scales is not None:
            m /= scales[i]
        if found > 0 and m < lowest:
            lowest, chosen = m, i
    return chosen, -1


@jit
def worst_first(examples, weights, problem, rule, pace, order, start, scratch, log, scales):
    """Learn from the most violated row of `order`, again and again: as often as `order` has rows, less `start`, or until
    no row is violated, which `position` −1 tells. Each time costs a pass over the data."""
    chosen = np.empty(1, np.int64)
    mistakes, updates, t = 0, 0, start
    while t < order.size and updates < pace.budget:
        chosen[0], broken = most_violated(examples, weights, problem, rule, order, scratch, scales)
        if chosen[0] < 0:
            return Progress(-1, mistakes, updates, broken)
        done = epoch(examples, weights, problem, rule, pace, chosen, 0, scratch, log, None)
        if done.position == 0:
            break
        mistakes += done.mistakes
        updates += done.updates
        t += 1
    return Progress(t, mistakes, updates, -1)
