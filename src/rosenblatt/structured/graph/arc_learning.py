"""A tree is the arcs it has: its score is the sum of theirs (McDonald, Crammer and Pereira 2005), and of pairs of
neighbouring modifiers of one head (McDonald and Pereira 2006). Learning finds the best tree under the weights, with a
cost for every wrong head, and where it is not gold moves the weights of the features in which the two differ.

Most of the n² arcs of a sentence are hopeless, and a few templates can tell. They are the pruner, a perceptron that ranks
the heads of each word by itself, and lets the best few through to be scored in full. Arcs from the word before always
pass, so that there is a tree, and in learning the gold ones. A tree of arcs that passed is a tree, so every update is
made on a violation, and Collins's bound holds whatever the pruner does.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rosenblatt.engine.jit import jit
from rosenblatt.rules import step
from rosenblatt.structured.graph import chu_liu_edmonds, eisner
from rosenblatt.structured.graph.arc_weights import ArcWeights, update_weights
from rosenblatt.structured.graph.arcs import (
    ArcTemplates,
    add_arcs,
    add_siblings,
    arc_keys,
    couple_keys,
    hash_sides,
    most_keys,
    pad_sentence,
    triple_keys,
    word_keys,
)

# What a wrong head is worth by itself, so that ties go against gold. Weights that are whole numbers below 2²⁰ leave room
# for it in a float64, and so many heads of it stay below 1: there, the comparison is exact.
TIE = 2.0**-30


class Decoder(NamedTuple):
    """Which algorithm finds the best tree: Eisner's with siblings, unless a field is True. The fields are None instead of
    False, so that algorithms that are not in use are not compiled."""

    crossing: bool | None  # that of Chu, Liu and Edmonds, for trees whose arcs may cross
    arcs_alone: bool | None  # Eisner's for arcs alone, where pairs of siblings do not count
    single_root: bool


@jit
def decode(decoder, scores, siblings):
    """The heads of the best tree."""
    return _decode(decoder.crossing, decoder.arcs_alone, decoder.single_root, scores, siblings)


@jit
def _decode(crossing, arcs_alone, single_root, scores, siblings):
    if crossing is not None:
        return chu_liu_edmonds.best_tree(scores, single_root)
    if arcs_alone is not None:
        return eisner.best_tree(scores, single_root)
    return eisner.best_tree_with_siblings(scores, siblings, single_root)


class ArcScorer(NamedTuple):
    """What scores arcs: the templates, and the weights of their features."""

    templates: ArcTemplates
    weights: ArcWeights


class ScoredArcs(NamedTuple):
    """A sentence whose arcs have scores."""

    sides: np.ndarray  # of words, for the features of arcs
    scores: np.ndarray  # (n + 1, n + 1): −∞ where the pruner let nothing through
    siblings: np.ndarray  # (n + 1, n + 1, n + 1), or empty
    pruner_sides: np.ndarray
    ranks: np.ndarray  # (n + 1, n + 1): the pruner's score of each arc


@jit
def score_arcs(decoder, pruner, scorer, values, candidates, gold):
    """The scores of a sentence's arcs: all of them, or those that the pruner lets through (and the gold ones, if given)."""
    n, width = values.shape
    words = pad_sentence(values)
    sides = hash_sides(scorer.templates, words, width)
    scores = np.full((n + 1, n + 1), -np.inf)
    arcs = every_arc(n)
    pruner_sides, ranks = sides, np.zeros((0, 0))
    if candidates > 0:
        pruner_sides = hash_sides(pruner.templates, words, width)
        ranks = np.zeros((n + 1, n + 1))
        add_arcs(pruner.templates, pruner_sides, pruner.weights, arcs, ranks)
        arcs = prune_arcs(ranks, arcs, candidates, gold)
    for i in range(arcs.shape[0]):
        scores[arcs[i, 0], arcs[i, 1]] = 0.0
    add_arcs(scorer.templates, sides, scorer.weights, arcs, scores)
    room = n + 1 if decoder.crossing is None and decoder.arcs_alone is None else 0
    siblings = np.zeros((room, room, room))
    if room > 0:
        add_siblings(scorer.templates, sides, scorer.weights, scores, siblings)
    return ScoredArcs(sides, scores, siblings, pruner_sides, ranks)


@jit
def every_arc(n):
    """(n², 2): the (head, modifier) of all arcs, modifier by modifier."""
    arcs = np.empty((n * n, 2), np.int32)
    to = 0
    for m in range(1, n + 1):
        for h in range(n + 1):
            if h != m:
                arcs[to, 0], arcs[to, 1] = h, m
                to += 1
    return arcs


@jit
def prune_arcs(ranks, arcs, candidates, gold):
    """Those of all arcs that come from one of the best heads of their word, from the word before, or from gold."""
    n = ranks.shape[0] - 1
    to = 0
    for m in range(1, n + 1):
        least = _at_rank(ranks, m, candidates)
        for h in range(n + 1):
            if h != m and (ranks[h, m] >= least or h == m - 1 or (gold.size > 0 and gold[m - 1] == h)):
                arcs[to, 0], arcs[to, 1] = h, m
                to += 1
    return arcs[:to]


@jit
def _at_rank(ranks, m, k):
    """The k-th highest number in column m, its own row left out; −∞ if there are not so many."""
    highest = np.full(k + 1, -np.inf)
    for h in range(ranks.shape[0]):
        if h != m and ranks[h, m] > highest[k - 1]:
            at = k - 1
            while at > 0 and highest[at - 1] < ranks[h, m]:
                highest[at] = highest[at - 1]
                at -= 1
            highest[at] = ranks[h, m]
    return highest[k - 1]


@jit
def previous_siblings(heads):
    """For each word the modifier of its head before it, seen from the head; the head itself for a first modifier."""
    n = heads.size
    out = np.empty(n, np.int32)
    last = np.arange(n + 1)
    for m in range(1, n + 1):
        if heads[m - 1] < m:
            out[m - 1] = last[heads[m - 1]]
            last[heads[m - 1]] = m
    last = np.arange(n + 1)
    for m in range(n, 0, -1):
        if heads[m - 1] > m:
            out[m - 1] = last[heads[m - 1]]
            last[heads[m - 1]] = m
    return out


@jit
def score_of(heads, scores, siblings):
    """The score of a tree."""
    total = 0.0
    before = previous_siblings(heads)
    for m in range(1, heads.size + 1):
        total += scores[heads[m - 1], m]
        if siblings.size > 0:
            total += siblings[heads[m - 1], m, before[m - 1]]
    return total


@jit
def keys_apart(templates, sides, heads, other, with_siblings, out):
    """Write the keys of the features of those parts of a tree that the other tree has not; how many there are."""
    count = 0
    before, others = previous_siblings(heads), previous_siblings(other)
    for m in range(1, heads.size + 1):
        h, s = np.intp(heads[m - 1]), np.intp(before[m - 1])
        if h != other[m - 1]:
            count += arc_keys(templates, sides, h, m, out[count:])
            count = word_keys(templates, sides, h, m, out, count)
        if with_siblings and (h != other[m - 1] or s != others[m - 1]):
            count += couple_keys(templates, sides, h, m, s, out[count:])
            count += triple_keys(templates, sides, h, m, s, out[count:])
    return count


@jit
def _room(templates, heads):
    """As many features as a tree can have."""
    total = 0
    for m in range(1, heads.size + 1):
        total += most_keys(templates, abs(heads[m - 1] - m))
    return total


@jit
def squared_length(plus, more, minus, fewer):
    """‖Δ‖² of the keys that are added less those that are taken away."""
    keys = np.sort(np.concatenate((plus[:more], minus[:fewer])))
    against = np.sort(minus[:fewer])
    total, i, j = 0.0, 0, 0
    while i < keys.size:
        key, count = keys[i], 0
        while i < keys.size and keys[i] == key:
            i += 1
            count += 1
        while j < against.size and against[j] == key:
            j += 1
            count -= 2
        total += np.float64(count) * count
    return total


@jit
def count_wrong(heads, gold):
    """How many heads differ."""
    wrong = 0
    for m in range(heads.size):
        wrong += heads[m] != gold[m]
    return wrong


@jit
def _with_costs(scores, gold, cost):
    """The scores with a cost for each wrong head."""
    out = scores + cost
    for m in range(1, gold.size + 1):
        out[gold[m - 1], m] = scores[gold[m - 1], m]
    return out


class ArcOptions(NamedTuple):
    """How arcs are learned."""

    margin: float  # the cost of a wrong head
    threshold: float  # the margin up to which the rule moves, whose place the cost takes
    candidates: int  # heads of a word that pass the pruner; 0 for all
    longest: int  # words of a sentence that is decoded as a whole


@jit
def learn_pruner(pruner, sentence, gold, candidates, clock):
    """Move each word's gold head up where it is not clearly among the better half of those that may pass."""
    templates, sides, ranks, weights = pruner.templates, sentence.pruner_sides, sentence.ranks, pruner.weights
    keys = np.empty(most_keys(templates, gold.size), np.uint64)
    for m in range(1, gold.size + 1):
        h, rival = np.intp(gold[m - 1]), -1
        least = _at_rank(ranks, m, (candidates + 1) // 2)
        for x in range(ranks.shape[0]):
            if x != m and x != h and ranks[x, m] >= least and (rival < 0 or ranks[x, m] < ranks[rival, m]):
                rival = x
        if rival >= 0 and ranks[h, m] <= ranks[rival, m] + 1.0:
            count = word_keys(templates, sides, h, m, keys, arc_keys(templates, sides, h, m, keys))
            weights = update_weights(weights, keys, count, 1.0, clock)
            count = word_keys(templates, sides, rival, m, keys, arc_keys(templates, sides, rival, m, keys))
            weights = update_weights(weights, keys, count, -1.0, clock)
    return ArcScorer(templates, weights)


class Counts(NamedTuple):
    """How far learning has come."""

    seen: int
    updates: int
    mistakes: int


@jit
def learn_arcs(decoder, rule, length, options, pruner, scorer, corpus, order, counts):
    """Visit sentences in this order; (pruner, scorer, counts). A sentence counts as a mistake if some wrong tree was as
    good as gold before it was learned from. `length` is None where the rule does not ask for ‖Δ‖²."""
    values, starts, all_heads = corpus
    seen, updates, mistakes = counts
    margin, candidates, templates = options.margin, options.candidates, scorer.templates
    for i in order:
        clock = np.float64(seen)
        seen += 1
        a, b = starts[i], starts[i + 1]
        if a == b or b - a > options.longest:
            continue
        gold = all_heads[a:b]
        sentence = score_arcs(decoder, pruner, scorer, values[a:b], candidates, gold)
        sides, scores, siblings, _, _ = sentence
        if candidates > 0:
            pruner = learn_pruner(pruner, sentence, gold, candidates, clock)
        with_cost = _with_costs(scores, gold, margin + TIE)
        guess = decode(decoder, with_cost, siblings)
        wrong = count_wrong(guess, gold)
        if wrong == 0:
            continue
        m = score_of(gold, scores, siblings) - score_of(guess, scores, siblings)
        if margin > 0 and m > 0:  # without the cost, is there still a tree as good as gold?
            best = decode(decoder, _with_costs(scores, gold, TIE), siblings)
            mistakes += count_wrong(best, gold) > 0 and score_of(best, scores, siblings) >= score_of(gold, scores, siblings)
        else:
            mistakes += m <= 0
        if margin > 0:
            m += options.threshold - margin * wrong
        plus, minus = np.empty(_room(templates, gold), np.uint64), np.empty(_room(templates, guess), np.uint64)
        more = keys_apart(templates, sides, gold, guess, siblings.size > 0, plus)
        fewer = keys_apart(templates, sides, guess, gold, siblings.size > 0, minus)
        square = 1.0 if length is None else squared_length(plus, more, minus, fewer)
        tau = step(rule, m, square, updates + 1, True)
        if tau > 0:
            weights = update_weights(scorer.weights, plus, more, tau, clock)
            scorer = ArcScorer(templates, update_weights(weights, minus, fewer, -tau, clock))
            updates += 1
    return pruner, scorer, Counts(seen, updates, mistakes)


@jit
def parse_arcs(decoder, pruner, scorer, candidates, longest, corpus):
    """Write the heads of all sentences into the corpus; those of one that is too long piece by piece, and all pieces hang
    on the root of the first."""
    values, starts, heads = corpus
    nothing = np.empty(0, np.int32)
    for i in range(starts.size - 1):
        top = 0
        for a in range(starts[i], starts[i + 1], longest):
            b = min(a + longest, starts[i + 1])
            sentence = score_arcs(decoder, pruner, scorer, values[a:b], candidates, nothing)
            piece = decode(decoder, sentence.scores, sentence.siblings)
            for m in range(b - a):
                heads[a + m] = a - starts[i] + piece[m] if piece[m] > 0 else top
            if top == 0:
                top = 1
                while piece[top - 1] > 0:
                    top += 1
