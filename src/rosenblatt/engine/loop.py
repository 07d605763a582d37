"""The loops over rows: take the row, measure, confront, and where a rule says so, push.

Weights are (columns of X + 1,) for two classes and (columns of X + 1, weight vectors) for many; the last coordinate is
the constant feature's. Dense rows keep them in Fortran order, a weight vector in one run; sparse rows in C order, the
weights of one feature in one run. The bodies are the same, only the nesting of the two loops follows the memory.

`weights` is anything with `w`, `drift`, `tally` and `clock`. The drift is the sum of clock·τΔ, in float64 whatever w is:
w − drift/clock is then the average of the weights after every example seen, at no cost to examples that change nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rosenblatt.engine.jit import inlined, is_number, jit, prefetch
from rosenblatt.engine.problems import MOVE, confront, faced
from rosenblatt.engine.rows import columns_of, fetch, take


class Pace(NamedTuple):
    """How fast the weights follow the examples."""

    batch: int | None  # rows confronted with the same weights before these change; None: one
    mean: bool  # whether a batch moves by the mean of its moves rather than by their sum
    budget: int  # stop after the batch that makes this many updates
    room: int  # the most moves that one row can call for
    ahead: int  # ask for this many rows ahead


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
def dot(columns, values, w, coming):
    """⟨row, w⟩ in float64; on the way, ask for the weights of the row whose columns are coming."""
    if columns is not None:
        return gathered(columns, values, w, coming)
    total = 0.0
    for j in range(values.size):
        total += np.float64(values[j]) * np.float64(w[j])
    return total


@inlined
def gathered(columns, values, w, coming):
    """The same for a sparse row, summed in its order whatever comes next: a row has the same score in whichever stretch of
    a stream it stands, to the last bit.

    Random access to weights is what a sparse epoch waits for. A sum that must not be regrouped is not vectorised with
    gather instructions, which were measured at more than twice the time of single loads.
    """
    total = 0.0
    both = min(values.size, coming.size)
    for j in range(both):
        prefetch(w, np.int64(coming[j]))
        total += np.float64(values[j]) * np.float64(w[columns[j]])
    for j in range(both, values.size):
        total += np.float64(values[j]) * np.float64(w[columns[j]])
    for j in range(both, coming.size):
        prefetch(w, np.int64(coming[j]))
    return total


@jit
def dots(columns, values, w, first, scores):
    """scores[k] = ⟨row, w[:, first + k]⟩ for as many columns as there are scores, in the precision of the weights.

    Float64 sums of float32 products were measured at 1.6 times the time. A dense row is read once for four weight vectors;
    of a sparse row four values at a time are multiplied with the runs of weights that belong to them.
    """
    wanted = scores.size
    if columns is None:
        zero = scores.dtype.type(0)
        k = 0
        while k + 4 <= wanted:
            a, b, c, d = zero, zero, zero, zero
            for j in range(values.size):
                x = values[j]
                a += x * w[j, first + k]
                b += x * w[j, first + k + 1]
                c += x * w[j, first + k + 2]
                d += x * w[j, first + k + 3]
            scores[k], scores[k + 1], scores[k + 2], scores[k + 3] = a, b, c, d
            k += 4
        while k < wanted:
            a = zero
            for j in range(values.size):
                a += values[j] * w[j, first + k]
            scores[k] = a
            k += 1
    else:
        scores[:] = 0
        offset = np.uint64(first)  # a sum of signed numbers might be an index from the end, and a test for that is slow
        fours = values.size - values.size % 4
        for j in range(0, fours, 4):
            x, y, u, v = values[j], values[j + 1], values[j + 2], values[j + 3]
            f, g, h, i = columns[j], columns[j + 1], columns[j + 2], columns[j + 3]
            for k in range(wanted):
                c = offset + np.uint64(k)
                scores[k] += (x * w[f, c] + y * w[g, c]) + (u * w[h, c] + v * w[i, c])
        for j in range(fours, values.size):
            x, f = values[j], columns[j]
            for k in range(wanted):
                scores[k] += x * w[f, offset + np.uint64(k)]


@jit
def room_for_scores(w, wanted):
    """An array for scores: float64 for one weight vector, the precision of the weights for many."""
    if w.ndim == 1:
        return np.empty(wanted, np.float64)
    return np.empty(wanted, w.dtype)


@jit
def measure(columns, values, constant, w, first, scores, coming):
    """Fill `scores` with the scores of the row, constant feature included."""
    if w.ndim == 1:
        scores[0] = dot(columns, values, w, coming) + constant * w[-1]
    else:
        dots(columns, values, w, first, scores)
        for k in range(scores.size):
            scores[k] += scores.dtype.type(constant) * w[-1, first + k]


@jit
def axpy(columns, values, constant, w, drift, column, tau, clock):
    """w[:, column] += τ · (row, constant), and drift[:, column] += clock · τ · (row, constant) where a drift is kept."""
    step, late = w.dtype.type(tau), tau * clock
    if w.ndim == 1:
        for j in range(values.size):
            f = place(columns, j)
            w[f] += step * values[j]
            if drift is not None:
                drift[f] += late * values[j]
        w[-1] += step * w.dtype.type(constant)
        if drift is not None:
            drift[-1] += late * constant
    else:
        for j in range(values.size):
            f = place(columns, j)
            w[f, column] += step * values[j]
            if drift is not None:
                drift[f, column] += late * values[j]
        w[-1, column] += step * w.dtype.type(constant)
        if drift is not None:
            drift[-1, column] += late * constant


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
def carry_out(rows, constant, w, drift, move):
    """Make one move: w += τΔ, and drift += clock·τΔ."""
    columns, values = take(rows, move["row"])
    axpy(columns, values, constant, w, drift, move["gains"], move["tau"], move["clock"])
    if move["loses"] >= 0:
        axpy(columns, values, constant, w, drift, move["loses"], -move["tau"], move["clock"])


@jit
def apply_moves(examples, weights, moves, share, mean):
    """Carry out moves that were all found with the same weights, as one change; how many counters it counts for.

    `share` is scratch, zero for every counter before and after.
    """
    rows, constant = examples.rows, examples.constant
    w, drift, tally = weights.w, weights.drift, weights.tally
    updates = 0
    for q in range(moves.size):
        share[moves[q]["counter"]] += 1
    for q in range(moves.size):
        if mean:
            moves[q]["tau"] /= share[moves[q]["counter"]]
        carry_out(rows, constant, w, drift, moves[q])
    for q in range(moves.size):
        if share[moves[q]["counter"]] > 0:
            share[moves[q]["counter"]] = 0
            tally[moves[q]["counter"]] += 1
            updates += 1
    return updates


@jit
def end_of_batch(batch, start, rows):
    """Where the batch that begins at `start` ends. A compiler that knows it to be one row saves a fifth of the time."""
    if batch is None:
        return start + 1
    return min(start + batch, rows)


@jit
def epoch(examples, weights, problem, rule, pace, order, start, log, run):
    """Visit the rows that `order` lists, from position `start` on, and learn from them.

    A batch of one row is the online algorithm. With a `log` (moves, and how many there are) every move is kept, and the
    loop returns when another batch might not fit. With a `run` (current run of right answers, longest run pocketed) it
    returns at the mistake that ends a run longer than the longest, before learning from it, so that the caller may judge
    the weights that made it; with `run[0] = 0` the loop goes on from there.
    """
    moves = np.empty(end_of_batch(pace.batch, 0, order.size) * pace.room, MOVE) if log is None else log[0]
    share = np.zeros(weights.tally.size, np.int64)
    scores = room_for_scores(weights.w, faced(problem, 0)[1])
    rows, labels, constant = examples.rows, examples.labels, examples.constant
    w, drift, tally, seen = weights.w, weights.drift, weights.tally, weights.clock
    mistakes, updates, t = 0, 0, start
    while t < order.size and updates < pace.budget:
        end = end_of_batch(pace.batch, t, order.size)
        base = 0 if log is None else log[1][0]
        if base + (end - t) * pace.room > moves.size:
            break
        clock = seen[0] + (end - t) - 1
        found = base
        for s in range(t, end):
            i = order[s]
            if s + pace.ahead < order.size:
                fetch(rows, order[s + pace.ahead])
            columns, values = take(rows, i)
            coming = columns_of(rows, order[min(s + 2, order.size - 1)])
            label = labels[i]
            first, _ = faced(problem, label)
            measure(columns, values, constant, w, first, scores, coming)
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
            if found == base + 1:  # what apply_moves would do, without the call: it was measured at a fifth of an epoch
                carry_out(rows, constant, w, drift, moves[base])
                tally[moves[base]["counter"]] += 1
                updates += 1
            else:
                updates += apply_moves(examples, weights, moves[base:found], share, pace.mean)
            if log is not None:
                log[1][0] = found
        seen[0] += end - t
        t = end
    return Progress(t, mistakes, updates, -1)


@jit
def most_violated(examples, weights, problem, rule, room, order, scales):
    """(row, broken): of the rows of `order` that call for a move, the one whose lowest margin, divided by its `scales`
    (None: by 1), is lowest; −1 when no row calls for one. Ties go to the row that comes first."""
    moves = np.empty(room, MOVE)
    scores = room_for_scores(weights.w, faced(problem, 0)[1])
    lowest, chosen = np.inf, -1
    for s in range(order.size):
        i = order[s]
        columns, values = take(examples.rows, i)
        coming = columns_of(examples.rows, order[min(s + 2, order.size - 1)])
        label = examples.labels[i]
        first, _ = faced(problem, label)
        measure(columns, values, examples.constant, weights.w, first, scores, coming)
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
def worst_first(examples, weights, problem, rule, pace, order, start, log, scales):
    """Learn from the most violated row of `order`, again and again: as often as `order` has rows, less `start`, or until
    no row is violated, which `position` −1 tells. Each time costs a pass over the data."""
    chosen = np.empty(1, np.int64)
    mistakes, updates, t = 0, 0, start
    while t < order.size and updates < pace.budget:
        chosen[0], broken = most_violated(examples, weights, problem, rule, pace.room, order, scales)
        if chosen[0] < 0:
            return Progress(-1, mistakes, updates, broken)
        done = epoch(examples, weights, problem, rule, pace, chosen, 0, log, None)
        if done.position == 0:
            break
        mistakes += done.mistakes
        updates += done.updates
        t += 1
    return Progress(t, mistakes, updates, -1)
