"""A tagger weighs (feature, tag), pairs of tags and, in the second order, triples. It guesses the best path, and where the
guess is not gold it moves by τ towards gold's features and away from the guess's.

A feature has a row of weights, one a tag, from its first update on. A row is dense: of K = 17 tags 4 have weights, but
reading 17 numbers in a row is three times as fast as looking through a list of 4, and 200,000 rows are 40 MB.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rosenblatt.engine.hashtable import ABSENT, capacity_for, claim, find, mix, new_slots, request
from rosenblatt.engine.jit import jit, prefetch
from rosenblatt.rules import step
from rosenblatt.structured.features.weight_table import (
    add_list,
    add_row,
    add_row_scores,
    mean_weight,
    prefetch_list,
    prefetch_row,
    reserve,
    update_row,
)
from rosenblatt.structured.tags.sources import keys_of_tokens
from rosenblatt.structured.tags.viterbi import NEVER, best, best_of_beam, greatest_violation, pair

USED, SEEN, UPDATES = 0, 1, 2
MOST_TAGS = 2**16 - 1  # which are numbered in 16 bits, and their pairs, a · (K + 1) + b, in 32
_LOW = np.uint64(2**32 - 1)


class TagWeights(NamedTuple):
    """Weights of (feature, tag), of the features that took part in an update."""

    keys: NDArray  # (room,) uint64
    w: NDArray  # (room, tags) float32
    drift: NDArray  # (room, tags) float64
    counts: NDArray  # (3,) int64: rows used, sentences seen, updates made


class StepWeights(NamedTuple):
    """Weights of pairs or of triples of tags: (K + 1,) * 2 or 3; K stands for what is beyond the sentence."""

    w: NDArray  # float32
    drift: NDArray  # float64

    def branch(self) -> StepWeights:
        """Return a copy for a shard to learn into, whose drift is its own."""
        return StepWeights(self.w.copy(), np.zeros(self.drift.shape))


class NumberedCorpus(NamedTuple):
    """Sentences whose features have numbers."""

    starts: NDArray  # (sentences + 1,) int64: tokens
    indptr: NDArray  # (tokens + 1,) int64: features
    ids: NDArray  # (features,) int32
    keys: NDArray  # (distinct features,) uint64
    rows: NDArray  # (distinct features,) int32: the row of a feature in TagWeights, −1 before its first update
    edges: NDArray  # (tokens, templates) int32: features that are weighed with the tag before; −1 for none
    edge_keys: NDArray  # (distinct features of this kind,) uint64
    edge_rows: NDArray  # (distinct features of this kind,) int32: rows of the table, −1 before the first update
    gold: NDArray  # (tokens,) int32


class TaggerOptions(NamedTuple):
    """How a sentence is learned."""

    margin: float  # the cost of a wrong tag
    dropout: float  # the share of features that a visit to a sentence does not see
    seed: np.uint64
    offset: float  # what is added to a margin before the rule sees it


@jit
def learn_tags(corpus, values, nodes, table, pairs, triples, width, rule, length, options, order):
    """(sentences visited, table, mistakes): visit the sentences of `order` once, until the nodes have no room for all
    features of the next. A mistake is a sentence whose guess, with its costs, is not gold. The guess is a beam's with
    `width`, else Viterbi's. `length` is None where the rule does not ask for the length of the direction."""
    starts, indptr, all_gold, counts = corpus.starts, corpus.indptr, corpus.gold, nodes.counts
    tags = pairs.w.shape[0] - 1
    mistakes = 0
    held = table  # a name of its own: numba drops what a table of None makes impossible only if it is never set
    for visit in range(len(order)):
        s = order[visit]
        begin, n = starts[s], starts[s + 1] - starts[s]
        if counts[USED] + indptr[begin + n] - indptr[begin] > len(nodes.keys):
            return visit, held, mistakes
        clock = np.float64(counts[SEEN])  # so that the average is the mean of the weights after each sentence
        counts[SEEN] += 1
        if n == 0:
            continue
        gold, path = all_gold[begin : begin + n], np.empty(n, np.int32)
        emissions = np.empty((n, tags), np.float32)
        seed = mix(options.seed, np.uint64(counts[SEEN]))
        emit(corpus, values, nodes, begin, seed, options.dropout, emissions)
        augment(emissions, gold, np.float32(options.margin))
        local = None if table is None else local_pairs(corpus, held, pairs.w, begin, n)
        threes = None if triples is None else triples.w
        moved = guess_path(emissions, pairs.w, threes, local, width, gold, path)
        if moved == 0:
            continue
        mistakes += 1
        gold, path, whole = gold[:moved], path[:moved], moved == n
        m = path_score(emissions, pairs.w, threes, local, gold, whole)
        m -= path_score(emissions, pairs.w, threes, local, path, whole)
        square = 0.0
        if length is not None:
            square = squared_length(corpus, values, begin, seed, options.dropout, gold, path, triples, whole, tags)
        tau = step(rule, m + options.offset, square, counts[UPDATES] + 1, True)
        if tau == 0.0:
            continue
        counts[UPDATES] += 1
        update_nodes(corpus, values, nodes, begin, seed, options.dropout, gold, path, tau, clock)
        update_steps(pairs, triples, gold, path, whole, tau, clock)
        if table is not None:
            held = update_edges(corpus, held, begin, gold, path, tau, clock, tags)
    return len(order), held, mistakes


@jit
def augment(emissions, gold, margin):
    """Add the margin to every tag but gold's."""
    for i in range(len(gold)):
        for tag in range(emissions.shape[1]):
            emissions[i, tag] += margin
        emissions[i, gold[i]] -= margin


@jit
def guess_path(emissions, pairs, triples, local, width, gold, path):
    """How many tags of `path`, where the guess is written, take part in the update; 0 if the guess is gold."""
    if width is not None:
        return greatest_violation(emissions, pairs, triples, local, width, gold, path)
    best(emissions, pairs, triples, local, gold, path)
    for i in range(len(path)):
        if path[i] != gold[i]:
            return len(path)
    return 0


@jit
def is_seen(seed, at, dropout):
    """Whether a visit sees the feature at this place of its sentence."""
    return dropout == 0.0 or (mix(seed, np.uint64(at)) & _LOW) * 2.0**-32 >= dropout


@jit
def emit(corpus, values, nodes, begin, seed, dropout, emissions):
    """emissions[i] = the sum of the weights of the features of token begin + i."""
    indptr, ids, rows = corpus.indptr, corpus.ids, corpus.rows
    w = nodes.w
    tags = emissions.shape[1]
    first = indptr[begin]
    for i in range(len(emissions)):
        here = emissions[i]
        for tag in range(tags):
            here[tag] = 0.0
        if i + 1 < len(emissions):
            for at in range(indptr[begin + i + 1], indptr[begin + i + 2]):
                prefetch(w, rows[ids[at]] * tags)
        for at in range(indptr[begin + i], indptr[begin + i + 1]):
            row = rows[ids[at]]
            if row >= 0 and is_seen(seed, at - first, dropout):
                weights = w[row]
                if values is None:
                    for tag in range(tags):
                        here[tag] += weights[tag]
                else:
                    value = values[at]
                    for tag in range(tags):
                        here[tag] += value * weights[tag]


@jit
def path_score(emissions, pairs, triples, local, path, whole):
    """The score of a path, or of a prefix: of the whole path with what it ends in."""
    n, tags = len(path), emissions.shape[1]
    total = 0.0
    a, b = tags, tags
    for i in range(n + whole):
        c = path[i] if i < n else tags
        total += pair(pairs, local, i, b, c)
        if i < n:
            total += emissions[i, c]
        if triples is not None:
            total += triples[a, b, c]
        a, b = b, c
    return total


@jit
def update_nodes(corpus, values, nodes, begin, seed, dropout, right, path, tau, clock):
    """Move by τ towards the tags that are right and away from those of the path; a new feature gets a row of zeros."""
    indptr, ids, keys, rows = corpus.indptr, corpus.ids, corpus.keys, corpus.rows
    row_keys, w, drift, counts = nodes
    first = indptr[begin]
    for i in range(len(path)):
        if right[i] == path[i]:
            continue
        for at in range(indptr[begin + i], indptr[begin + i + 1]):
            if is_seen(seed, at - first, dropout):
                feature = ids[at]
                row = rows[feature]
                if row < 0:
                    row = counts[USED]
                    counts[USED] += 1
                    rows[feature] = row
                    row_keys[row] = keys[feature]
                    for tag in range(w.shape[1]):
                        w[row, tag], drift[row, tag] = 0.0, 0.0
                amount = tau if values is None else tau * values[at]
                move(w, drift, (row, right[i]), (row, path[i]), amount, clock)


@jit
def update_steps(pairs, triples, right, path, whole, tau, clock):
    """The same for pairs and triples of tags."""
    n, tags = len(path), pairs.w.shape[0] - 1
    a, b, a_, b_ = tags, tags, tags, tags
    for i in range(n + whole):
        c, c_ = (right[i], path[i]) if i < n else (tags, tags)
        if b != b_ or c != c_:
            move(pairs.w, pairs.drift, (b, c), (b_, c_), tau, clock)
        if triples is not None and (a != a_ or b != b_ or c != c_):
            move(triples.w, triples.drift, (a, b, c), (a_, b_, c_), tau, clock)
        a, b, a_, b_ = b, c, b_, c_


@jit
def update_edges(corpus, table, begin, right, path, tau, clock, tags):
    """The table, moved in the same way for features that are weighed with the tag before."""
    edges, keys, rows = corpus.edges, corpus.edge_keys, corpus.edge_rows
    table = reserve(table, 2 * edges.shape[1] * len(path))
    b, b_ = tags, tags
    for i in range(len(path)):
        c, c_ = right[i], path[i]
        if b != b_ or c != c_:
            for k in range(edges.shape[1]):
                feature = edges[begin + i, k]
                if feature >= 0:
                    if rows[feature] < 0:
                        rows[feature] = add_row(table, keys[feature])
                    update_row(table, rows[feature], b * (tags + 1) + c, np.float32(tau), clock)
                    update_row(table, rows[feature], b_ * (tags + 1) + c_, np.float32(-tau), clock)
        b, b_ = c, c_
    return table


@jit
def repeat_pairs(pairs, n):
    """(n, (K + 1)²): the weights of pairs, once for each place."""
    flat = pairs.reshape(-1)
    result = np.empty((n, flat.size), np.float32)
    for i in range(n):
        for k in range(flat.size):
            result[i, k] = flat[k]
    return result


@jit
def local_pairs(corpus, table, pairs, begin, n):
    """(n, K + 1, K + 1): the weights of pairs with those of the features that are weighed with the tag before."""
    edges, rows = corpus.edges, corpus.edge_rows
    local = repeat_pairs(pairs, n)
    for i in range(n):
        here = local[i]
        for k in range(edges.shape[1] if i + 1 < n else 0):
            feature = edges[begin + i + 1, k]
            if feature >= 0 and rows[feature] >= 0:
                prefetch_row(table, rows[feature])
        for k in range(edges.shape[1]):
            feature = edges[begin + i, k]
            if feature >= 0 and rows[feature] >= 0:
                add_row_scores(table, rows[feature], here)
    return local.reshape(n, pairs.shape[0], pairs.shape[1])


@jit
def move(w, drift, gold, guess, tau, clock):
    """One step of weights and of what their average needs."""
    w[gold] += np.float32(tau)
    drift[gold] += clock * tau
    w[guess] -= np.float32(tau)
    drift[guess] -= clock * tau


@jit
def squared_length(corpus, values, begin, seed, dropout, right, path, triples, whole, tags):
    """‖φ(gold) − φ(guess)‖², in which a feature that occurs twice counts four times."""
    indptr, ids, edges = corpus.indptr, corpus.ids, corpus.edges
    n = len(path)
    base = np.int64(tags + 1)
    room = 2 * (indptr[begin + n] - indptr[begin]) + (4 + 2 * edges.shape[1]) * (n + 1)
    codes, amounts = np.empty(room, np.int64), np.empty(room)
    to = 0
    first = indptr[begin]
    for i in range(n):
        if right[i] != path[i]:
            for at in range(indptr[begin + i], indptr[begin + i + 1]):
                if is_seen(seed, at - first, dropout):
                    value = 1.0 if values is None else np.float64(values[at])
                    codes[to], amounts[to] = ids[at] * base + right[i], value
                    codes[to + 1], amounts[to + 1] = ids[at] * base + path[i], -value
                    to += 2
    a, b, a_, b_ = base - 1, base - 1, base - 1, base - 1
    for i in range(n + whole):
        c, c_ = (np.int64(right[i]), np.int64(path[i])) if i < n else (base - 1, base - 1)
        codes[to], amounts[to] = -1 - (b * base + c), 1.0
        codes[to + 1], amounts[to + 1] = -1 - (b_ * base + c_), -1.0
        to += 2
        if triples is not None:
            codes[to], amounts[to] = -1 - ((a + 1) * base * base + b * base + c), 1.0
            codes[to + 1], amounts[to + 1] = -1 - ((a_ + 1) * base * base + b_ * base + c_), -1.0
            to += 2
        for k in range(edges.shape[1] if i < n else 0):
            if edges[begin + i, k] >= 0:  # beyond the codes of features, and of triples
                beyond = (edges[begin + i, k] + base + 2) * base * base
                codes[to], amounts[to] = -1 - (beyond + b * base + c), 1.0
                codes[to + 1], amounts[to + 1] = -1 - (beyond + b_ * base + c_), -1.0
                to += 2
        a, b, a_, b_ = b, c, b_, c_
    slots, sums = new_slots(capacity_for(to)), np.zeros(to)
    for j in range(to):
        at = claim(slots, mix(np.uint64(0), np.uint64(codes[j])))
        if slots[at, 1] == ABSENT:
            slots[at, 1] = np.uint64(j)
        sums[np.int64(slots[at, 1])] += amounts[j]
    total = 0.0
    for j in range(to):
        total += sums[j] * sums[j]
    return total


# Predicting


@jit
def freeze_nodes(nodes, clock, average, prune):
    """(keys, sizes, outcomes, weights): the weights that predict, feature by feature; |w| ≤ prune are dropped."""
    all_keys, w, drift, counts = nodes
    used, tags = counts[USED], w.shape[1]
    sizes = np.zeros(used, np.int64)
    total = 0
    for row in range(used):
        for tag in range(tags):
            value = mean_weight(w[row, tag], drift[row, tag], clock) if average else w[row, tag]
            sizes[row] += abs(value) > prune
        total += sizes[row]
    outcomes, weights = np.empty(total, np.uint16), np.empty(total, np.float32)
    to = 0
    for row in range(used):
        if sizes[row] > 0:
            for tag in range(tags):
                value = mean_weight(w[row, tag], drift[row, tag], clock) if average else w[row, tag]
                if abs(value) > prune:
                    outcomes[to], weights[to] = tag, value
                    to += 1
    live = sizes > 0
    return all_keys[:used][live], sizes[live], outcomes, weights


class TypeScores(NamedTuple):
    """What each type of token adds to the emissions of the tokens around it."""

    offsets: NDArray  # (places,) int64
    scores: NDArray  # (types, places, tags) float32; type 0 stands for no token
    table: NDArray  # (types, attributes that are combined) uint64


@jit
def add_type_scores(frozen, keys, places, offsets, scores):
    """scores[t, p] += the weights of the features of type t seen from place p."""
    for t in range(keys.shape[0]):
        for k in range(keys.shape[1]):
            if keys[t, k] != 0:
                found = find(frozen.slots, keys[t, k])
                if found != ABSENT:
                    p = 0
                    while offsets[p] != places[k]:
                        p += 1
                    add_list(frozen, found, scores[t, p])


@jit
def emit_types(around, frozen, known, extra, starts, types, emissions):
    """emissions[i] = the sum of the weights of the features of token i, by the sums of types and the combined templates."""
    offsets, scores, table = known
    _, new_scores, new_table = extra
    templates = around.templates.seeds.size
    emissions[:] = 0.0
    for s in range(starts.size - 1):
        begin, end = starts[s], starts[s + 1]
        for p in range(offsets.size):
            for i in range(begin, end):
                if not begin <= i + offsets[p] < end:
                    add(emissions[i], scores[0, p])
        for j in range(begin, end):
            row = scores[types[j]] if types[j] < len(scores) else new_scores[types[j] - len(scores)]
            for p in range(offsets.size):
                i = j - offsets[p]
                if begin <= i < end:
                    add(emissions[i], row[p])
        if templates > 0:
            found = find_lists(around, frozen, table, new_table, types, begin, end)
            for i in range(end - begin):
                for k in range(templates):
                    if found[i, k] != ABSENT:
                        add_list(frozen, found[i, k], emissions[begin + i])


@jit
def find_lists(around, frozen, table, extra, types, begin, end):
    """(tokens, templates): where the lists of a sentence's features are; ABSENT where it has none. All are asked
    for before the first is needed."""
    keys = np.empty((end - begin, around.templates.seeds.size), np.uint64)
    keys_of_tokens(around, table, extra, types, begin, end, keys)
    for i in range(keys.shape[0]):
        for k in range(keys.shape[1]):
            request(frozen.slots, keys[i, k])
    for i in range(keys.shape[0]):
        for k in range(keys.shape[1]):
            found = find(frozen.slots, keys[i, k]) if keys[i, k] != 0 else ABSENT
            keys[i, k] = found
            if found != ABSENT:
                prefetch_list(frozen, found)
    return keys


@jit
def local_lists(edges, frozen, pairs, known, extra, types, begin, end):
    """(n, K + 1, K + 1): the weights of pairs with those of the features that are weighed with the tag before."""
    found = find_lists(edges, frozen, known.table, extra.table, types, begin, end)
    local = repeat_pairs(pairs, end - begin)
    for i in range(end - begin):
        here = local[i]
        for k in range(found.shape[1]):
            if found[i, k] != ABSENT:
                add_list(frozen, found[i, k], here)
    return local.reshape(end - begin, pairs.shape[0], pairs.shape[1])


@jit
def add(to, row):
    """to += row."""
    for k in range(len(row)):
        to[k] += row[k]


@jit
def find_keys(frozen, keys):
    """Where the lists of these keys are; ABSENT where it has none."""
    result = np.empty(keys.size, np.uint64)
    for feature in range(keys.size):
        result[feature] = find(frozen.slots, keys[feature])
    return result


@jit
def emit_features(frozen, indptr, ids, found, values, first, emissions):
    """The same of tokens first, first + 1, … whose features have numbers and values."""
    scores = np.empty(emissions.shape[1], np.float32)
    emissions[:] = 0.0
    for i in range(len(emissions)):
        for at in range(indptr[first + i], indptr[first + i + 1]):
            if found[ids[at]] != ABSENT:
                scores[:] = 0.0
                add_list(frozen, found[ids[at]], scores)
                for tag in range(scores.size):
                    emissions[i, tag] += values[at] * scores[tag]


@jit
def decode_tags(starts, emissions, pairs, triples, edges, frozen, known, extra, types, width, tags):
    """The sentence that no path is allowed for, or −1: the best paths of all sentences are written into `tags`."""
    for s in range(starts.size - 1):
        begin, end = starts[s], starts[s + 1]
        if begin == end:
            continue
        local = None if edges is None else local_lists(edges, frozen, pairs, known, extra, types, begin, end)
        score = best_path(emissions[begin:end], pairs, triples, local, width, tags[begin:end])
        if not score > NEVER:
            return s
    return -1


@jit
def best_path(emissions, pairs, triples, local, width, path):
    """The score of the best path; of a beam's, if it finds any."""
    if width is not None:
        score = best_of_beam(emissions, pairs, triples, local, width, path)
        if score > NEVER:
            return score
    return best(emissions, pairs, triples, local, None, path)
