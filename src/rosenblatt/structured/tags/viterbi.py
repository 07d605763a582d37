"""The tags of a sentence are a path through a lattice, and the best of the Kⁿ paths is found tag by tag, since what comes
next depends on the last tag only (first order) or on the last two (second order).

A path scores the sum of its emissions (n, K), of `pairs`[a, b] for b after a, and of `triples`[a, b, c] for c after a and
b, where there are any; all float32. In both, K stands for what is beyond the sentence: pairs[K, b] is for a first tag b,
pairs[a, K] for a last tag a. `local` (n, K + 1, K + 1), where there is any, takes the place of `pairs` for the tag at each
place and the one before. What weighs −∞ is forbidden. A path that scores −∞ does not exist: then the answer is −∞.

Forward only scores are kept; the path is found from its last tag back. Of tags that lead to equally good paths it takes the
lowest, but gold's only if there is no other: learning starts from weights of zero, where every path is a best one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rosenblatt.engine.jit import jit

NEVER = np.float32(-np.inf)


@jit
def best(emissions, pairs, triples, local, gold, path):
    """The score of the best path, which is written into `path` (n,) int32; ties go against `gold`, unless it is None."""
    if len(path) == 0:
        return pairs[-1, -1]
    if triples is None:
        return first_order(emissions, pairs, local, gold, path)
    return second_order(emissions, pairs, triples, local, gold, path)


@jit
def first_order(emissions, pairs, local, gold, path):
    """The best path where a tag depends on the one before."""
    n, tags = emissions.shape
    edge = tags
    score = np.empty((n, tags), np.float32)  # of the best path to here that ends in this tag
    for b in range(tags):
        score[0, b] = emissions[0, b] + pair(pairs, local, 0, edge, b)
    for i in range(1, n):
        steps = pairs if local is None else local[i]
        climb(score[i], score[i - 1].reshape(tags, 1), steps.reshape(tags + 1, 1, tags + 1), 0, 0, tags)
        for b in range(tags):
            score[i, b] += emissions[i, b]
    after, total = edge, NEVER
    for i in range(n - 1, -1, -1):
        most, last = NEVER, -1
        for a in range(tags):
            s = score[i, a] + pair(pairs, local, i + 1, a, after)
            if last < 0 or wins(s, most, last, gold, i):
                most, last = s, a
        if i == n - 1:
            total = most
        path[i] = after = last
    return total


@jit
def second_order(emissions, pairs, triples, local, gold, path):
    """The best path where a tag depends on the two before."""
    n, tags = emissions.shape
    edge = tags
    score = np.empty((n, tags + 1, tags), np.float32)  # [i, tag before, tag]: of the best path to here
    score[0] = NEVER
    for b in range(tags):
        score[0, edge, b] = emissions[0, b] + pair(pairs, local, 0, edge, b) + triples[edge, edge, b]
    for i in range(1, n):
        first, end = tags_before(i - 1, tags)
        score[i, edge] = NEVER
        for b in range(tags):
            here = score[i, b]
            climb(here, score[i - 1], triples, b, first, end)
            for c in range(tags):
                here[c] += emissions[i, c] + pair(pairs, local, i, b, c)
    total, previous, last = NEVER, -1, -1
    for b in range(tags):
        most, origin = best_before(score[n - 1], triples, b, edge, gold, n - 2)
        most += pairs[b, edge]
        if last < 0 or wins(most, total, last, gold, n - 1):
            total, previous, last = most, origin, b
    path[n - 1] = last
    for i in range(n - 2, -1, -1):
        after, last = last, previous
        path[i] = last
        most, previous = best_before(score[i], triples, last, after, gold, i - 1)
    return total


@jit
def pair(pairs, local, i, a, b):
    """The score of b at place i after a."""
    if local is None:
        return pairs[a, b]
    return local[i, a, b] if i < len(local) else pairs[a, b]


@jit
def tags_before(i, tags):
    """The range of what may stand before the i-th tag: a tag, or before the first one the edge."""
    return (tags, tags + 1) if i == 0 else (0, tags)


@jit
def climb(here, score, weights, b, first, end):
    """here[c] = max over a of score[a, b] + weights[a, b, c]. Four a at a time: twice as fast as one."""
    for c in range(len(here)):
        here[c] = NEVER
    a = first
    while a + 4 <= end:
        s, t, u, v = score[a, b], score[a + 1, b], score[a + 2, b], score[a + 3, b]
        s_c, t_c, u_c, v_c = weights[a, b], weights[a + 1, b], weights[a + 2, b], weights[a + 3, b]
        for c in range(len(here)):
            most = max(max(s + s_c[c], t + t_c[c]), max(u + u_c[c], v + v_c[c]))
            here[c] = most if most > here[c] else here[c]
        a += 4
    while a < end:
        s, s_c = score[a, b], weights[a, b]
        for c in range(len(here)):
            most = s + s_c[c]
            here[c] = most if most > here[c] else here[c]
        a += 1


@jit
def best_before(score, triples, b, c, gold, i):
    """(score, tag) of the best way to b and then c: the tag i, before both, or the edge."""
    tags = score.shape[1]
    first, end = tags_before(i + 1, tags)
    most, holder = NEVER, -1
    for a in range(first, end):
        s = score[a, b] + triples[a, b, c]
        if holder < 0 or wins(s, most, holder, gold, i):
            most, holder = s, a
    return most, holder


@jit
def wins(score, most, holder, gold, i):
    """Whether a tag with this score takes the place of a lower one: where the scores are equal, only from gold."""
    if gold is None:
        return score > most
    return score > most or (score == most and i >= 0 and holder == gold[i])


@jit
def k_best(emissions, pairs, triples, local, k):
    """(scores (found,), paths (found, n)): the k best paths, or all if there are fewer, best first.

    Equal paths stand in the order of their last tags, then of the tags before, and so on.
    """
    n, tags = emissions.shape
    edge = tags
    width = 1 if triples is None else tags + 1  # a state is (tag before, tag), where the tag before matters
    score = np.full((n + 1, width, tags + 1, k), NEVER)
    state = np.zeros((n + 1, width, tags + 1, k, 3), np.int32)  # where it comes from: (tag before, tag, rank)
    for i in range(n + 1):
        for c in range(tags) if i < n else range(edge, edge + 1):
            for b in range(tags) if i > 0 else range(edge, edge + 1):
                first, end = tags_before(i - 1, tags)
                for a in range(first, end) if width > 1 and i > 0 else range(1):
                    gain = pair(pairs, local, i, b, c) + (emissions[i, c] if i < n else np.float32(0.0))
                    if triples is not None:
                        gain += triples[a if i > 0 else edge, b, c]
                    to = b if width > 1 else 0
                    for rank in range(k if i > 0 else 1):
                        s = gain + (score[i - 1, a, b, rank] if i > 0 else np.float32(0.0))
                        if s == NEVER or not enter(score[i, to, c], state[i, to, c], s, a, b, rank):
                            break
    return trace_k_best(score[n, :, edge], state, n)


@jit
def enter(scores, states, score, a, b, rank):
    """Whether a score was among the k best, and entered there, behind those as good."""
    k = len(scores)
    if not score > scores[k - 1]:
        return False
    at = k - 1
    while at > 0 and score > scores[at - 1]:
        scores[at] = scores[at - 1]
        for part in range(3):
            states[at, part] = states[at - 1, part]
        at -= 1
    scores[at] = score
    states[at, 0], states[at, 1], states[at, 2] = a, b, rank
    return True


@jit
def trace_k_best(ends, state, n):
    """The paths that end in the best of these scores (tags before the end, k)."""
    width, k = ends.shape
    edge = state.shape[2] - 1
    scores, paths = np.empty(k, np.float32), np.empty((k, n), np.int32)
    taken = np.zeros(width, np.int64)
    found = 0
    while found < k:
        row = -1
        for b in range(width):
            if taken[b] < k and ends[b, taken[b]] > (NEVER if row < 0 else ends[row, taken[row]]):
                row = b
        if row < 0:
            break
        scores[found] = ends[row, taken[row]]
        a, b, rank = row, edge, taken[row]
        for i in range(n, 0, -1):
            a, b, rank = state[i, a, b, rank]
            paths[found, i - 1] = b
        taken[row] += 1
        found += 1
    return scores[:found], paths[:found]


class Beam(NamedTuple):
    """The hypotheses at each place, best first."""

    score: NDArray  # (n, width) float32
    tag: NDArray  # (n, width) int32
    back: NDArray  # (n, width) int32: the hypothesis of the place before
    left: NDArray  # (n, width) bool: whether it has left gold
    size: NDArray  # (n,) int64


@jit
def search_beam(emissions, pairs, triples, local, width, gold):
    """The `width` best hypotheses at each place, from left to right. Hypotheses with the same future are one.

    Of equal hypotheses the first is one that has left gold, then the one from the better hypothesis, then the lower tag.
    """
    n, edge = emissions.shape
    beam = Beam(
        np.full((n, width), NEVER),
        np.zeros((n, width), np.int32),
        np.zeros((n, width), np.int32),
        np.zeros((n, width), np.bool_),
        np.zeros(n, np.int64),
    )
    score, tag, left, size = beam.score, beam.tag, beam.left, beam.size
    reached = np.empty((1 if triples is None else width, edge), np.float32)
    origin = np.zeros((1 if triples is None else width, edge), np.int32)
    for i in range(n):
        reached[:] = NEVER
        for h in range(size[i - 1] if i > 0 else 1):
            a, b = last_two(beam, i - 1, h, edge)
            row = 0
            if triples is not None and i > 0:  # of hypotheses with the same tag, the first has the row
                while tag[i - 1, row] != b:
                    row += 1
            base = score[i - 1, h] if i > 0 else np.float32(0.0)
            for c in range(edge):
                s = base + (emissions[i, c] + pair(pairs, local, i, b, c))
                if triples is not None:
                    s += triples[a, b, c]
                first = s > reached[row, c]
                if gold is not None and i > 0 and s == reached[row, c] > NEVER:
                    first = left[i - 1, h] and not left[i - 1, origin[row, c]]
                if first:
                    reached[row, c], origin[row, c] = s, h
        for row in range(len(reached)):
            for c in range(edge):
                if reached[row, c] > NEVER:
                    h = origin[row, c]
                    away = gold is not None and (c != gold[i] or (i > 0 and left[i - 1, h]))
                    keep_hypothesis(beam, i, reached[row, c], c, h, away)
    return beam


@jit
def keep_hypothesis(beam, i, s, c, h, away):
    """Put a hypothesis in its place among the best, if it is one of them."""
    score, tag, back, left = beam.score[i], beam.tag[i], beam.back[i], beam.left[i]
    at = beam.size[i]
    while at > 0 and (
        s > score[at - 1] or (s == score[at - 1] and (away > left[at - 1] or (away == left[at - 1] and h < back[at - 1])))
    ):
        if at < len(score):
            score[at], tag[at], back[at], left[at] = score[at - 1], tag[at - 1], back[at - 1], left[at - 1]
        at -= 1
    if at < len(score):
        score[at], tag[at], back[at], left[at] = s, c, h, away
        beam.size[i] = min(beam.size[i] + 1, len(score))


@jit
def last_two(beam, i, h, edge):
    """The last two tags of a hypothesis at place i."""
    b = beam.tag[i, h] if i >= 0 else edge
    a = beam.tag[i - 1, beam.back[i, h]] if i >= 1 else edge
    return a, b


@jit
def ending(pairs, triples, a, b):
    """What it is worth to end after a and b."""
    return pairs[b, -1] if triples is None else pairs[b, -1] + triples[a, b, -1]


@jit
def trace(beam, i, h, path):
    """Write the tags of a hypothesis at place i into path[: i + 1]."""
    while i >= 0:
        path[i] = beam.tag[i, h]
        h = beam.back[i, h]
        i -= 1


@jit
def best_of_beam(emissions, pairs, triples, local, width, path):
    """The score of the best path that a beam of this width finds, which is written into `path`."""
    n, edge = emissions.shape
    if n == 0:
        return pairs[-1, -1]
    beam = search_beam(emissions, pairs, triples, local, width, None)
    total, end = NEVER, 0
    for h in range(beam.size[n - 1]):
        s = beam.score[n - 1, h] + ending(pairs, triples, *last_two(beam, n - 1, h, edge))
        if s > total:
            total, end = s, h
    if total > NEVER:
        trace(beam, n - 1, end, path)
    return total


@jit
def greatest_violation(emissions, pairs, triples, local, width, gold, path):
    """The length of the prefix at which a hypothesis is furthest ahead of gold's, and whose tags are written into `path`;
    0 if none is (Huang, Fayong and Guo 2012). The longest of equals. A hypothesis as good as gold's is ahead."""
    n, edge = emissions.shape
    beam = search_beam(emissions, pairs, triples, local, width, gold)
    right, length, most = np.float32(0.0), 0, np.float32(0.0)
    a, b = edge, edge
    for i in range(n):
        c = gold[i]
        right += emissions[i, c] + pair(pairs, local, i, b, c)
        if triples is not None:
            right += triples[a, b, c]
        a, b = b, c
        end = i == n - 1
        whole = right + ending(pairs, triples, a, b) if end else right
        for h in range(beam.size[i]):
            s = beam.score[i, h]
            if end:
                s += ending(pairs, triples, *last_two(beam, i, h, edge))
            if beam.left[i, h] and s - whole >= most:
                length, most = i + 1, s - whole
                trace(beam, i, h, path)
    return length
