"""What a tagger has learned, and how it is used: weights that grow with features and tags, their average as lists, and what
each type of word adds to the scores around it, summed once.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rosenblatt.engine.hashtable import capacity_for, claim, new_slots, resized
from rosenblatt.engine.jit import jit
from rosenblatt.engine.mixing import TableChange, WeightChange, table_change
from rosenblatt.errors import DamagedModel, InvalidData
from rosenblatt.modelfile.parts import Parts
from rosenblatt.modelfile.values import check_list
from rosenblatt.structured.base import StructuredModel, shard_seed
from rosenblatt.structured.features.weight_table import (
    FrozenTable,
    WeightLists,
    WeightTable,
    find_rows,
    freeze_lists,
    index_lists,
    new_weight_table,
    outcome_type,
    squared_norm,
)
from rosenblatt.structured.features.words import texts_from_parts, texts_to_parts
from rosenblatt.structured.tags import linear_chain, node_changes, schemes
from rosenblatt.structured.tags.linear_chain import SEEN, UPDATES, USED, StepWeights, TagWeights, TypeScores
from rosenblatt.structured.tags.sources import Features, FeatureSource, TemplateSource, keys_of_types
from rosenblatt.structured.tags.viterbi import k_best

BLOCK = 4096  # tokens that a thread takes at once


@jit
def index_rows(slots, keys, first, used):
    """The table, with the keys of rows from `first` on."""
    if 2 * used + 2 > slots.shape[0]:
        slots = resized(slots, capacity_for(2 * used))
    for row in range(first, used):
        slots[claim(slots, keys[row]), 1] = np.uint64(row)
    return slots


def add_tags(array: NDArray, tags: int) -> NDArray:
    """Return weights of pairs or triples with more tags; what was beyond the sentence still is."""
    before = len(array) - 1
    result = np.zeros((tags + 1,) * array.ndim, array.dtype)
    where = np.array([*range(before), tags])
    result[np.ix_(*[where] * array.ndim)] = array
    return result


def steps_since(now: StepWeights, start: StepWeights, clock: int) -> TableChange:
    """Return what has changed in weights of pairs or triples; what is forbidden has not."""
    allowed = np.isfinite(start.w)
    w = np.zeros(now.w.shape)
    w[allowed] = now.w[allowed].astype(np.float64) - start.w[allowed]
    return table_change(w.ravel(), now.drift.ravel(), clock)


def mix_steps(steps: StepWeights, change: TableChange, clock: int) -> None:
    """Mix a change into weights of pairs or triples; what is forbidden stays so."""
    places = np.arange(len(change.w)) if change.keys is None else change.keys[0]
    allowed = np.isfinite(steps.w.ravel()[places])
    places = places[allowed]
    w, drift = steps.w.reshape(-1), steps.drift.reshape(-1)
    then = w[places].astype(np.float64)
    w[places] = then + change.w[allowed]
    drift[places] += clock * (w[places] - then)
    if change.passed is not None:
        drift[places] += change.passed[allowed]


class TaggerModel(StructuredModel):
    """What a tagger has learned.

    Parameters
    ----------
    source : FeatureSource
        Where the features of tokens come from.
    scheme : str or None
        The scheme that sequences of tags obey.
    second : bool
        Whether triples of tags have weights.
    edges : bool
        Whether there are features that are weighed with the tag before.
    seed : int
        What dropout is drawn from.
    """

    def __init__(self, source: FeatureSource, scheme: str | None, second: bool, edges: bool, seed: int):
        self.source: Any = source
        self.scheme = scheme
        self.seed = seed
        self.tags: list = []
        self.vocabulary: dict[Hashable, int] = {}  # types of tokens, or names of features, from 1 on
        nothing = np.zeros((0, 0), np.float32)
        self.nodes = TagWeights(np.zeros(0, np.uint64), nothing, np.zeros((0, 0)), np.zeros(3, np.int64))
        self.pairs = StepWeights(np.zeros((1, 1), np.float32), np.zeros((1, 1)))
        self.triples = StepWeights(np.zeros((1, 1, 1), np.float32), np.zeros((1, 1, 1))) if second else None
        self.table: WeightTable | None = new_weight_table() if edges else None
        self.columns = 0  # of matrices
        self.slots = new_slots(16)
        self.indexed = 0  # rows whose keys are in the slots

    @property
    def seen(self) -> int:
        """Sentences visited."""
        return int(self.nodes.counts[SEEN])

    @property
    def updates(self) -> int:
        """Changes of the weights."""
        return int(self.nodes.counts[UPDATES])

    def copy(self) -> Self:
        """Return the same model, sharing nothing that learning changes."""
        model = super().copy()
        model.tags, model.vocabulary = list(self.tags), dict(self.vocabulary)
        keys, w, drift, counts = self.nodes
        used = counts[USED]  # what is only reserved is not copied
        model.nodes = TagWeights(keys[:used].copy(), w[:used].copy(), drift[:used].copy(), counts.copy())
        model.pairs = StepWeights(*(part.copy() for part in self.pairs))
        model.triples = None if self.triples is None else StepWeights(*(part.copy() for part in self.triples))
        model.table = None if self.table is None else self.table.copy()
        model.slots = self.slots.copy()
        return model

    def restart(self, average: bool, prune: float, seed: int) -> TaggerModel:
        """Return a model that has learned nothing yet and begins with the weights that predict here."""
        frozen: TaggerPredictor = self.freeze(average, prune)
        model = TaggerModel(self.source, self.scheme, frozen.triples is not None, False, seed)
        model.tags, model.vocabulary, model.columns = list(self.tags), dict(self.vocabulary), self.columns
        keys, sizes, outcomes, weights = frozen.lists
        w = np.zeros((len(keys), len(self.tags)), np.float32)
        w[np.repeat(np.arange(len(keys)), sizes), outcomes] = weights
        model.nodes = TagWeights(keys.copy(), w, np.zeros(w.shape), np.array([len(keys), 0, 0], np.int64))
        model.pairs = StepWeights(frozen.pairs.copy(), np.zeros(frozen.pairs.shape))
        if frozen.triples is not None:
            model.triples = StepWeights(frozen.triples.copy(), np.zeros(frozen.triples.shape))
        if frozen.edge_lists is not None:
            model.table = frozen.edge_lists.to_table()
        model.index_new_rows()
        return model

    # Mixing: see `engine.mixing`

    def branch(self, features: Features, shard: int) -> TaggerModel:
        """Return a copy for a shard with these features to learn into: it has no weights of others and no words, its drift
        is its own, and it drops out other features than other shards."""
        model = StructuredModel.copy(self)
        model.tags, model.vocabulary, model.seed = list(self.tags), {}, shard_seed(self.seed, shard)
        rows = find_rows(self.slots, features.keys)
        known = rows >= 0
        used = int(np.count_nonzero(known))
        keys, w = np.empty(len(rows), np.uint64), np.empty((len(rows), len(self.tags)), np.float32)  # room for all
        keys[:used] = features.keys[known]
        model.nodes = TagWeights(keys, w, np.zeros(w.shape), np.array([used, self.seen, self.updates]))
        node_changes.take_rows(self.nodes.w, rows[known], w)
        model.pairs = self.pairs.branch()
        model.triples = None if self.triples is None else self.triples.branch()
        model.table = None if self.table is None else self.table.branch_of(features.edge_keys)
        model.slots, model.indexed = new_slots(16), 0
        model.index_new_rows()
        return model

    def change_since(self, start: TaggerModel) -> WeightChange:
        """Return what has changed since this model was branched off."""
        (all_keys, w, drift, counts), (_, before, _, counts_before) = self.nodes, start.nodes
        keys, clock = all_keys[: counts[USED]], self.seen
        origin = find_rows(start.slots, keys)
        changed = node_changes.count_row_changes(w, drift, before, origin)
        rows = np.flatnonzero(changed)
        rows = rows[np.argsort(keys[rows])]
        *names, grown, passed = node_changes.list_row_changes(
            keys, w, drift, before, origin, rows, int(changed.sum()), float(clock)
        )
        tables = {"nodes": TableChange(tuple(names), grown, passed), "pairs": steps_since(self.pairs, start.pairs, clock)}
        if self.triples is not None and start.triples is not None:
            tables["triples"] = steps_since(self.triples, start.triples, clock)
        if self.table is not None and start.table is not None:
            tables["edges"] = self.table.change_since(start.table, clock)
        return WeightChange(tables, (counts - counts_before)[[SEEN, UPDATES]])

    def add_change(self, change: WeightChange) -> None:
        """Go over to the mixture of which this is the change; rows of new features come in the order of their keys."""
        self._frozen = None
        counts = self.nodes.counts
        counts[[SEEN, UPDATES]] += change.counts
        tables, clock = change.tables, self.seen
        keys, tags = tables["nodes"].keys or ()
        rows, used = node_changes.number_rows(self.slots, keys, counts[USED])
        if used > len(self.nodes.keys):
            self.extend(used)
        of_rows = (keys, tags, rows, tables["nodes"].w, tables["nodes"].passed, float(clock))
        node_changes.mix_rows(*self.nodes[:3], counts[USED], *of_rows)
        counts[USED] = used
        self.index_new_rows()
        mix_steps(self.pairs, tables["pairs"], clock)
        if self.triples is not None:
            mix_steps(self.triples, tables["triples"], clock)
        if self.table is not None:
            self.table = self.table.with_change(tables["edges"], clock)

    def norm(self) -> float:
        """Return the norm of all weights that are not −∞."""
        w = self.nodes.w[: self.nodes.counts[USED]]
        pairs = self.pairs.w[np.isfinite(self.pairs.w)]
        total = float(np.vdot(w, w)) + float(np.vdot(pairs, pairs))
        if self.triples is not None:
            total += float(np.square(self.triples.w).sum())
        if self.table is not None:
            total += float(squared_norm(self.table))
        return total**0.5

    def weights_now(self) -> NDArray:
        """Return the weights of features."""
        return self.nodes.w

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays, and of the dictionary of types."""
        arrays = [self.slots, *self.nodes, *self.pairs, *(self.triples or ()), *(self.table or ())]
        return sum(array.nbytes for array in arrays) + sys.getsizeof(self.vocabulary)

    # Learning

    def add_types(self, types: Iterable[Hashable]) -> None:
        """Number the types of tokens, or the names of features, that are new."""
        if isinstance(types, range):
            self.columns = max(self.columns, len(types))
            return
        for token in types:
            self.vocabulary.setdefault(token, len(self.vocabulary) + 1)

    def corpus(self, features: Features, gold: NDArray) -> linear_chain.NumberedCorpus:
        """Return the features of a corpus, with the rows of their weights."""
        return linear_chain.NumberedCorpus(
            features.starts,
            features.indptr,
            features.ids,
            features.keys,
            find_rows(self.slots, features.keys),
            features.edges,
            features.edge_keys,
            find_rows(new_slots(2) if self.table is None else self.table.slots, features.edge_keys),
            gold,
        )

    def grow(self, names: Sequence) -> None:
        """Make room for these tags, which begin with those that are known."""
        self._frozen = None
        before, tags = len(self.tags), len(names)
        if tags == before:
            return
        keys, w, drift, counts = self.nodes
        more = ((0, 0), (0, tags - before))
        self.nodes = TagWeights(keys, np.pad(w, more), np.pad(drift, more), counts)
        self.pairs = StepWeights(*(add_tags(part, tags) for part in self.pairs))
        if self.triples is not None:
            self.triples = StepWeights(*(add_tags(part, tags) for part in self.triples))
        if self.table is not None:
            a, b = np.divmod(self.table.outcomes.astype(np.int64), before + 1)
            codes = np.where(a == before, tags, a) * (tags + 1) + b
            self.table = self.table._replace(outcomes=codes.astype(outcome_type((tags + 1) ** 2)))
        self.tags = list(names)
        if self.scheme is not None:
            self.pairs.w[~schemes.allowed_pairs(self.tags, self.scheme)] = -np.inf

    def make_room(self, features: Features, sentence: int) -> None:
        """Make room for half as many rows again, and for all features of a sentence at least."""
        begin, end = features.indptr[features.starts[sentence : sentence + 2]]
        self.extend(int(self.nodes.counts[USED] + end - begin))

    def extend(self, rows: int) -> None:
        """Make room for so many rows at least, and for half as many again as there was room for."""
        keys, w, drift, counts = self.nodes
        room = max(rows, 1024, len(keys) * 3 // 2)

        def larger(array: NDArray) -> NDArray:
            result = np.empty((room, *array.shape[1:]), array.dtype)  # what is not used is never touched
            result[: len(array)] = array
            return result

        self.nodes = TagWeights(larger(keys), larger(w), larger(drift), counts)

    def index_new_rows(self) -> None:
        """Enter the keys of new rows into the slots."""
        used = int(self.nodes.counts[USED])
        self.slots = index_rows(self.slots, self.nodes.keys, self.indexed, used)
        self.indexed = used

    # Predicting

    def _predictor(self, average: bool, prune: float) -> TaggerPredictor:
        clock = max(self.seen, 1)

        def final(steps: StepWeights) -> NDArray:
            return (steps.w - steps.drift / clock).astype(np.float32) if average else steps.w.copy()

        return TaggerPredictor(
            self,
            WeightLists(*linear_chain.freeze_nodes(self.nodes, float(clock), average, prune)),
            None if self.table is None else freeze_lists(self.table, clock, average, prune),
            final(self.pairs),
            None if self.triples is None else final(self.triples),
        )

    # Files

    def to_parts(self, resume: bool) -> Parts:
        """Return the model for a file, after `freeze`; with `resume`, all that learning needs to go on."""
        frozen: TaggerPredictor = self._frozen[1]  # type: ignore[index]
        parts = Parts(
            {
                "tags": self.tags,
                "scheme": self.scheme,
                "seed": self.seed,
                "source": self.source.kind,
                "columns": self.columns,
                "seen": self.seen,
                "updates": self.updates,
            }
        )
        words: list = list(self.vocabulary)
        if words and not isinstance(words[0], str):
            words = [part for word in words for part in word]
        parts.put_parts("", texts_to_parts(words), "vocabulary_")
        parts.put_parts("", frozen.lists.to_parts(np.uint16, np.uint8 if len(self.tags) < 2**8 else np.uint16), "")
        if frozen.edge_lists is not None:
            parts.put_parts("", frozen.edge_lists.to_parts(np.int32), "edge_")
        parts.put("pairs", frozen.pairs, minus_infinity=True)
        if frozen.triples is not None:
            parts.put("triples", frozen.triples)
        if resume:
            used = int(self.nodes.counts[USED])
            for name in ("keys", "w", "drift"):
                parts.put(f"all_{name}", getattr(self.nodes, name)[:used])
            for name, steps in (("pairs", self.pairs), ("triples", self.triples)):
                if steps is not None:
                    parts.put(f"{name}_w", steps.w, minus_infinity=True)
                    parts.put(f"{name}_drift", steps.drift)
            if self.table is not None:
                parts.put_parts("", self.table.to_parts(), "ledger_")
        return parts

    @classmethod
    def from_parts(cls, parts: Parts, source: FeatureSource) -> TaggerModel:
        """Return the model that was saved, which reads tokens from this source."""
        scheme = None if parts.facts["scheme"] is None else parts.text("scheme")
        model = cls(source, scheme, False, False, parts.whole("seed"))
        model.tags, model.columns = list(check_list(parts.facts["tags"], "tags")), parts.whole("columns")
        tags, arrays = len(model.tags), parts.arrays
        words: list = texts_from_parts(parts.parts("", "vocabulary_"))
        fields = len(source.fields) if isinstance(source, TemplateSource) else 1
        if fields > 1:
            words = list(zip(*[iter(words)] * fields, strict=True))
        model.vocabulary = {word: number for number, word in enumerate(words, 1)}
        if len(model.vocabulary) < len(words):
            raise DamagedModel("a word stands twice in the vocabulary")

        def square(name: str, dimensions: int, dtype: type = np.float32) -> NDArray:
            return parts.array(name, dtype, (tags + 1,) * dimensions, minus_infinity=dimensions == 2).copy()

        counts = np.array([0, parts.whole("seen"), parts.whole("updates")], np.int64)
        resume = "all_keys" in arrays
        if resume:
            counts[USED] = used = len(arrays["all_keys"])
            keys, shape = parts.array("all_keys", np.uint64, (used,)), (used, tags)
            w, drift = parts.array("all_w", np.float32, shape), parts.array("all_drift", np.float64, shape)
            model.nodes = TagWeights(keys.copy(), w.copy(), drift.copy(), counts)
            model.pairs = StepWeights(square("pairs_w", 2), square("pairs_drift", 2, np.float64))
            if "triples_w" in arrays:
                model.triples = StepWeights(square("triples_w", 3), square("triples_drift", 3, np.float64))
            if "ledger_w" in arrays:
                model.table = WeightTable.from_parts(parts.parts("", "ledger_"), (tags + 1) ** 2)
            model.index_new_rows()
        else:
            empty = np.zeros((0, tags), np.float32)
            model.nodes = TagWeights(np.zeros(0, np.uint64), empty, np.zeros((0, tags)), counts)
        predictor = TaggerPredictor(
            model,
            WeightLists.from_parts(parts, tags),
            WeightLists.from_parts(parts.parts("", "edge_"), (tags + 1) ** 2) if "edge_keys" in arrays else None,
            square("pairs", 2),
            square("triples", 3) if "triples" in arrays else None,
        )
        if not resume:  # else it is made again, for the parameters there will be
            model.pairs = StepWeights(predictor.pairs, np.zeros((0, 0)))
            model._frozen = (True, 0.0), predictor
        return model


class TaggerPredictor:
    """The weights that predict, with what each known type of token adds to the scores around it."""

    def __init__(
        self,
        model: TaggerModel,
        lists: WeightLists,
        edge_lists: WeightLists | None,
        pairs: NDArray,
        triples: NDArray | None,
    ):
        self.source = model.source
        self.tags = len(model.tags)
        self.vocabulary = model.vocabulary
        self.lists, self.edge_lists, self.pairs, self.triples = lists, edge_lists, pairs, triples

    @cached_property
    def table(self) -> FrozenTable:
        """The lists, as the kernels look them up."""
        return index_lists(*self.lists)

    @cached_property
    def edge_table(self) -> FrozenTable | None:
        """The same of features that are weighed with the tag before."""
        return None if self.edge_lists is None else index_lists(*self.edge_lists)

    @cached_property
    def known(self) -> TypeScores:
        """What the types of tokens met while learning add to the scores around them."""
        return self.type_scores(self.source.with_outside(self.source.table(list(self.vocabulary))))

    def type_scores(self, table: NDArray) -> TypeScores:
        """Return what these types of tokens add to the scores around them."""
        source = self.source
        offsets = np.unique(source.single.places)
        scores = np.zeros((len(table), len(offsets), self.tags), np.float32)
        linear_chain.add_type_scores(self.table, keys_of_types(source.single, table), source.single.places, offsets, scores)
        return TypeScores(offsets, scores, np.ascontiguousarray(table[:, source.columns]))


class EncodedSentences:
    """Sentences as numbers, for weights that predict."""

    def __init__(self, predictor: TaggerPredictor, X: Sequence):
        self.predictor = predictor
        source = predictor.source
        if isinstance(source, TemplateSource):
            self.starts, self.types, new = source.numbers(X, predictor.vocabulary)
            self.extra = predictor.type_scores(source.table(new))
        else:
            self.features = source.features(X)
            self.starts = self.features.starts
            self.found = linear_chain.find_keys(predictor.table, self.features.keys)
            self.types = np.zeros(0, np.int32)

    def emissions(self, first: int, end: int) -> NDArray:
        """Return the scores of the sentences from `first` to `end`: (tokens, tags)."""
        predictor, begin, stop = self.predictor, self.starts[first], self.starts[end]
        table, source = predictor.table, predictor.source
        out = np.empty((stop - begin, predictor.tags), np.float32)
        if isinstance(source, TemplateSource):
            starts, types = self.starts[first : end + 1] - begin, self.types[begin:stop]
            linear_chain.emit_types(source.around, table, predictor.known, self.extra, starts, types, out)
        else:
            features = self.features
            linear_chain.emit_features(table, features.indptr, features.ids, self.found, features.values, begin, out)
        return out

    def decode(self, first: int, end: int, width: int | None, tags: NDArray) -> int:
        """Write the tags of the sentences from `first` to `end`; return the sentence that has no path, or −1."""
        predictor, begin, stop = self.predictor, self.starts[first], self.starts[end]
        edges = predictor.edge_table is not None
        broken = linear_chain.decode_tags(
            self.starts[first : end + 1] - begin,
            self.emissions(first, end),
            predictor.pairs,
            predictor.triples,
            predictor.source.edges if edges else None,
            predictor.edge_table,
            predictor.known if edges else None,
            self.extra if edges else None,
            self.types[begin:stop],
            width,
            tags[begin:stop],
        )
        return first + broken if broken >= 0 else -1

    def k_best(self, number: int, k: int) -> tuple[NDArray, NDArray]:
        """Return the scores and the paths of the k best sequences of a sentence."""
        predictor, local = self.predictor, None
        begin, end = self.starts[number], self.starts[number + 1]
        if predictor.edge_table is not None:
            edges, extra = predictor.source.edges, self.extra
            weights = (predictor.edge_table, predictor.pairs, predictor.known)
            local = linear_chain.local_lists(edges, *weights, extra, self.types, begin, end)
        return k_best(self.emissions(number, number + 1), predictor.pairs, predictor.triples, local, k)


def predict_tags(model: TaggerModel, sentences: EncodedSentences, width: int | None, threads: int) -> list[list]:
    """Return the tags of all sentences, by blocks of them, which threads may share."""
    starts = sentences.starts
    edges = np.unique(np.searchsorted(starts, np.arange(0, int(starts[-1]) + BLOCK, BLOCK), side="right") - 1)
    bounds = np.unique([0, *edges, len(starts) - 1])
    tags = np.empty(int(starts[-1]), np.int32)
    blocks = list(pairwise(bounds.tolist()))
    if threads > 1 and len(blocks) > 1:
        with ThreadPoolExecutor(min(threads, len(blocks))) as pool:
            broken = list(pool.map(lambda block: sentences.decode(block[0], block[1], width, tags), blocks))
    else:
        broken = [sentences.decode(first, end, width, tags) for first, end in blocks]
    for number in broken:
        if number >= 0:
            raise InvalidData(
                f"sentence {number + 1}: no sequence of {starts[number + 1] - starts[number]} of the tags {model.tags} is "
                f"allowed by the scheme {model.scheme!r}",
                row=number,
            )
    names = list(map(model.tags.__getitem__, tags.tolist()))
    return [names[start:end] for start, end in pairwise(starts.tolist())]
