"""A score is a sum, and every part of it has a name: what a template saw, or which tag stands before. A hash has no way
back, so a name is made from the words again: those of the sentence that is explained, or those met while learning. Of
templates that combine places only the sentence can tell; among all weights they are shown by their key.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rosenblatt.errors import InvalidParameter
from rosenblatt.structured.features.templates import parse_terms
from rosenblatt.structured.features.weight_table import FrozenTable, add_feature_scores
from rosenblatt.structured.features.words import attribute_text, word_attributes
from rosenblatt.structured.tags.model import EncodedSentences, TaggerPredictor
from rosenblatt.structured.tags.sources import (
    TAG,
    AttributeSource,
    ContextTemplates,
    MatrixSource,
    TemplateSource,
    attribute_items,
    column_keys,
    keys_of_corpus,
    keys_of_types,
)

Tag = str | int
NOTHING = "∅"  # what stands at a place beyond the sentence


class Reason(NamedTuple):
    """The weights of one feature.

    Attributes
    ----------
    feature : str
        The template or attribute and what it sees.
    weight, rival : float
        What it adds to the score of the tag, and to that of its rival.
    """

    feature: str
    weight: float
    rival: float


class Explanation(NamedTuple):
    """Why a token has its tag.

    Attributes
    ----------
    tag : str or int
        The tag of the token.
    rival : str, int or None
        The best other tag here, with all other tags as they are; None where there is no other.
    margin : float
        The score of all tags less that with the rival here.
    reasons : list of Reason
        What adds up to the margin, those that decide most first.
    """

    tag: Tag
    rival: Tag | None
    margin: float
    reasons: list[Reason]


def explain_tag(
    encoded: EncodedSentences, sentence: Sequence, tags: list[Tag], path: NDArray, position: int
) -> Explanation:
    """Why the sentence, the first of those read, has this tag of its path at this position."""
    frozen, count = encoded.predictor, len(tags)
    parts = [*_own_features(encoded, sentence, position, count), *_edge_features(encoded, sentence, path, position, count)]
    around = [count, count, *path.tolist(), count, count]
    a, b, d, e = (around[position + 2 + k] for k in (-2, -1, 1, 2))
    shown = [tags[k] if k < count else NOTHING for k in (a, b, d, e)]
    parts.append((f"{TAG}[-1]={shown[1]}", frozen.pairs[b, :count]))
    parts.append((f"{TAG}[1]={shown[2]}", frozen.pairs[:count, d]))
    if frozen.triples is not None:
        parts.append((f"{TAG}[-2] {TAG}[-1]={shown[0]} {shown[1]}", frozen.triples[a, b, :count]))
        parts.append((f"{TAG}[-1] {TAG}[1]={shown[1]} {shown[2]}", frozen.triples[b, :count, d]))
        if position + 1 < len(path):
            parts.append((f"{TAG}[1] {TAG}[2]={shown[2]} {shown[3]}", frozen.triples[:count, d, e]))
    total = np.array([weights for _, weights in parts], np.float64).sum(axis=0)
    chosen = int(path[position])
    others = [k for k in range(count) if k != chosen and total[k] > -np.inf]
    rival = max(others, key=lambda k: total[k], default=None)
    if rival is None:
        reasons = [Reason(name, float(weights[chosen]), 0.0) for name, weights in parts]
    else:
        reasons = [Reason(name, float(weights[chosen]), float(weights[rival])) for name, weights in parts]
    reasons = sorted((r for r in reasons if r.weight != r.rival), key=lambda r: -abs(r.weight - r.rival))
    margin = float(total[chosen] - (0.0 if rival is None else total[rival]))
    return Explanation(tags[chosen], None if rival is None else tags[rival], margin, reasons)


def _own_features(encoded: EncodedSentences, sentence: Sequence, position: int, count: int) -> list[tuple[str, NDArray]]:
    """The (name, weights of tags) of a token's own features."""
    predictor, source = encoded.predictor, encoded.predictor.source
    if isinstance(source, TemplateSource):
        of_types = keys_of_types(source.single, source.with_outside(source.table(sentence)))
        of_tokens = _keys(source, source.around, sentence)
        there = [position + int(place) for place in source.single.places]
        keys = [of_types[at + 1 if 0 <= at < len(sentence) else 0, k] for k, at in enumerate(there)]
        return [
            (_name(source, template, sentence, position), _weights(predictor.table, key, count))
            for template, key in zip(source.singles + source.combined, [*keys, *of_tokens[position]], strict=True)
        ]
    if isinstance(source, AttributeSource):
        given = list(attribute_items(sentence[position]))
        hashes = word_attributes([name for name, _ in given], ("form",))[:, 0]
    else:
        matrix: Any = sentence
        row = matrix[[position]].tocoo()
        given = [(str(j), value) for j, value in zip(row.coords[-1], row.data, strict=True)]
        hashes = column_keys(row.shape[1])[row.coords[-1]]
    return [
        (name if value == 1 else f"{name}·{value:g}", value * _weights(predictor.table, key, count))
        for (name, value), key in zip(given, hashes, strict=True)
    ]


def _edge_features(
    encoded: EncodedSentences, sentence: Sequence, path: NDArray, position: int, count: int
) -> list[tuple[str, NDArray]]:
    """The same of features that are weighed with the tag before: this token's, and the next one's."""
    predictor, source = encoded.predictor, encoded.predictor.source
    if predictor.edge_table is None:
        return []
    keys = _keys(source, source.edges, sentence)
    parts = []
    for k, template in enumerate(source.history):
        pairs = _weights(predictor.edge_table, keys[position, k], (count + 1) ** 2).reshape(count + 1, count + 1)
        before = path[position - 1] if position > 0 else count
        parts.append((_name(source, template, sentence, position), pairs[before, :count]))
        if position + 1 < len(sentence):
            pairs = _weights(predictor.edge_table, keys[position + 1, k], (count + 1) ** 2).reshape(count + 1, count + 1)
            parts.append((f"next: {_name(source, template, sentence, position + 1)}", pairs[:count, path[position + 1]]))
    return parts


def _keys(source: TemplateSource, around: ContextTemplates, sentence: Sequence) -> NDArray:
    """(tokens, templates): the keys of a sentence under templates that are hashed for every token."""
    table = source.with_outside(source.table(sentence))
    types, starts = np.arange(1, len(sentence) + 1, dtype=np.int32), np.array([0, len(sentence)])
    return keys_of_corpus(around, np.ascontiguousarray(table[:, source.columns]), types, starts)


def _weights(table: FrozenTable, key: np.uint64, outcomes: int) -> NDArray:
    scores = np.zeros(outcomes, np.float32)
    if key != 0:
        add_feature_scores(table, key, scores)
    return scores


def _name(source: TemplateSource, template: str, sentence: Sequence, position: int) -> str:
    """A template and what it sees: 'suffix3[0]=ing'."""
    seen = []
    for attribute, place in parse_terms(template):
        at = position + int(place)
        if attribute == TAG:
            continue
        seen.append(_value(source, sentence[at], attribute) if 0 <= at < len(sentence) else NOTHING)
    return f"{template}={' '.join(seen)}"


def _value(source: TemplateSource, token: str | tuple[str, ...], attribute: str) -> str:
    if attribute in source.fields[1:]:
        return token[source.fields.index(attribute)]
    return attribute_text(token if isinstance(token, str) else token[0], attribute)


def extreme_weights(predictor: TaggerPredictor, tag: int, n: int, columns: int) -> list[tuple[str, float]]:
    """The n features with the greatest weights for a tag, and the n with the least, in order."""
    if n < 1:
        raise InvalidParameter("n", n, "at least 1")
    source = predictor.source
    keys, sizes, outcomes, weights = predictor.lists
    mine = outcomes == tag
    keys, weights = np.repeat(keys, sizes)[mine], weights[mine]
    order = np.argsort(-weights, kind="stable")
    order = order if len(order) <= 2 * n else np.concatenate([order[:n], order[-n:]])
    wanted = keys[order]
    names: dict[int, str] = {}
    words: list[Any] = list(predictor.vocabulary)
    if isinstance(source, TemplateSource):
        of_types = keys_of_types(source.single, source.with_outside(source.table(words)))
        for t, k in zip(*np.nonzero(np.isin(of_types, wanted)), strict=True):
            template = source.singles[k]
            seen = (NOTHING if t == 0 else _value(source, words[t - 1], a) for a, _ in parse_terms(template))
            names.setdefault(int(of_types[t, k]), f"{template}={' '.join(seen)}")
    elif isinstance(source, AttributeSource):
        names = dict(zip(word_attributes(words, ("form",))[:, 0].tolist(), words, strict=True))
    elif isinstance(source, MatrixSource):
        names = {int(key): str(j) for j, key in enumerate(column_keys(columns))}
    return [
        (names.get(int(key), f"combined {int(key):016x}"), float(weight))
        for key, weight in zip(wanted, weights[order], strict=True)
    ]
