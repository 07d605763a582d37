"""What a tagger has learned, and how it is used: weights that grow with features and tags, their average as lists, and what
each type of word adds to the scores around it, summed once.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rosenblatt.engine.hashtable import ABSENT, capacity_for, claim, find, new_slots, resized
from rosenblatt.engine.jit import jit
from rosenblatt.structured.features import ledger
from rosenblatt.structured.features.ledger import Book, Ledger
from rosenblatt.structured.features.words import packed, unpacked
from rosenblatt.structured.tags import chain, schemes
from rosenblatt.structured.tags.sources import Features, Templated, keys_of_types
from rosenblatt.structured.tags.viterbi import k_best

BLOCK = 4096  # tokens that a thread takes at once


class Frozen(NamedTuple):
    """The weights that predict."""

    lists: tuple[NDArray, NDArray, NDArray, NDArray]  # keys, sizes, outcomes, weights
    edge_lists: tuple[NDArray, NDArray, NDArray, NDArray] | None
    pairs: NDArray
    triples: NDArray | None


@jit
def rows_of(slots, keys):
    """The row of each key, −1 where it has none."""
    rows = np.empty(keys.size, np.int32)
    for i in range(keys.size):
        found = find(slots, keys[i])
        rows[i] = np.int32(found) if found != ABSENT else np.int32(-1)
    return rows


@jit
def entered_rows(slots, keys, first, used):
    """The table, with the keys of rows from `first` on."""
    if 2 * used + 2 > slots.shape[0]:
        slots = resized(slots, capacity_for(2 * used))
    for row in range(first, used):
        slots[claim(slots, keys[row]), 1] = np.uint64(row)
    return slots


def stretched(array: NDArray, tags: int) -> NDArray:
    """Weights of pairs or triples with more tags; what was beyond the sentence still is."""
    before = len(array) - 1
    result = np.zeros((tags + 1,) * array.ndim, array.dtype)
    where = np.array([*range(before), tags])
    result[np.ix_(*[where] * array.ndim)] = array
    return result


class Model:
    """All that has been learned."""

    only_predicts = False

    def __init__(self, source: Any, scheme: str | None, seed: int):
        self.source = source
        self.scheme = scheme
        self.seed = seed
        self.tags: list = []
        self.vocabulary: dict[Any, int] = {}  # types of tokens, or names of features, from 1 on
        self.nodes: chain.Nodes
        self.pairs: chain.Steps
        self.triples: chain.Steps | None
        self.ledger: Ledger | None
        self.columns = 0  # of matrices
        self.slots = new_slots(16)
        self.entered = 0  # rows whose keys are in the table
        self._frozen: tuple[Any, Frozen] | None = None
        self._ready: Ready | None = None

    @classmethod
    def new(cls, source: Any, scheme: str | None, second: bool, edges: bool, seed: int) -> Model:
        """A model that has learned nothing."""
        model = cls(source, scheme, seed)
        model.nodes = chain.Nodes(
            np.zeros(0, np.uint64), np.zeros((0, 0), np.float32), np.zeros((0, 0)), np.zeros(3, np.int64)
        )
        model.pairs = chain.Steps(np.zeros((1, 1), np.float32), np.zeros((1, 1)))
        model.triples = chain.Steps(np.zeros((1, 1, 1), np.float32), np.zeros((1, 1, 1))) if second else None
        model.ledger = ledger.new_ledger() if edges else None
        return model

    @property
    def seen(self) -> int:
        return int(self.nodes.counts[chain.SEEN])

    @property
    def updates(self) -> int:
        return int(self.nodes.counts[chain.UPDATES])

    def copy(self) -> Model:
        """The same, sharing nothing that learning changes."""
        model = Model(self.source, self.scheme, self.seed)
        model.__dict__.update(self.__dict__)
        model.tags, model.vocabulary = list(self.tags), dict(self.vocabulary)
        model.nodes = chain.Nodes(*(part.copy() for part in self.nodes))
        model.pairs = chain.Steps(*(part.copy() for part in self.pairs))
        model.triples = None if self.triples is None else chain.Steps(*(part.copy() for part in self.triples))
        model.ledger = None if self.ledger is None else ledger.copied(self.ledger)
        model.slots = self.slots.copy()
        return model

    def norm(self) -> float:
        """The norm of all weights that are not −∞."""
        w = self.nodes.w[: self.nodes.counts[chain.USED]]
        pairs = self.pairs.w[np.isfinite(self.pairs.w)]
        total = float(np.vdot(w, w)) + float(np.vdot(pairs, pairs))
        if self.triples is not None:
            total += float(np.square(self.triples.w).sum())
        if self.ledger is not None:
            total += float(ledger.squared_norm(self.ledger))
        return total**0.5

    def bytes(self) -> int:
        """The bytes of all arrays, and of the table of types."""
        arrays = [self.slots, *self.nodes, *self.pairs, *(self.triples or ()), *(self.ledger or ())]
        return sum(array.nbytes for array in arrays) + sys.getsizeof(self.vocabulary)

    # Learning

    def meet(self, types: Iterable) -> None:
        """Number the types of tokens, or the names of features, that are new."""
        if isinstance(types, range):
            self.columns = max(self.columns, len(types))
            return
        for token in types:
            self.vocabulary.setdefault(token, len(self.vocabulary) + 1)

    def corpus(self, features: Features, gold: NDArray) -> chain.Corpus:
        """The features of a corpus, with the rows of their weights."""
        return chain.Corpus(
            features.starts,
            features.indptr,
            features.ids,
            features.keys,
            rows_of(self.slots, features.keys),
            features.edges,
            features.edge_keys,
            rows_of(new_slots(2) if self.ledger is None else self.ledger.slots, features.edge_keys),
            gold,
        )

    def grow(self, names: Sequence) -> None:
        """Get ready for these tags, which begin with those that are known."""
        self._frozen = self._ready = None
        before, tags = len(self.tags), len(names)
        if tags == before:
            return
        keys, w, drift, counts = self.nodes
        more = ((0, 0), (0, tags - before))
        self.nodes = chain.Nodes(keys, np.pad(w, more), np.pad(drift, more), counts)
        self.pairs = chain.Steps(*(stretched(part, tags) for part in self.pairs))
        if self.triples is not None:
            self.triples = chain.Steps(*(stretched(part, tags) for part in self.triples))
        if self.ledger is not None:
            a, b = np.divmod(self.ledger.outcomes, before + 1)
            self.ledger.outcomes[:] = np.where(a == before, tags, a).astype(np.int64) * (tags + 1) + b
        self.tags = list(names)
        if self.scheme is not None:
            self.pairs.w[~schemes.allowed(self.tags, self.scheme)] = -np.inf

    def make_room(self, features: Features, sentence: int) -> None:
        """Make room for half as many rows again, and for all features of a sentence at least."""
        keys, w, drift, counts = self.nodes
        begin, end = features.indptr[features.starts[sentence : sentence + 2]]
        room = int(max(counts[chain.USED] + end - begin, 1024, len(keys) * 3 // 2))

        def larger(array: NDArray) -> NDArray:
            result = np.empty((room, *array.shape[1:]), array.dtype)  # what is not used is never touched
            result[: len(array)] = array
            return result

        self.nodes = chain.Nodes(larger(keys), larger(w), larger(drift), counts)

    def remember(self) -> None:
        """Enter the keys of new rows into the table."""
        used = int(self.nodes.counts[chain.USED])
        self.slots = entered_rows(self.slots, self.nodes.keys, self.entered, used)
        self.entered = used

    # Predicting

    def frozen(self, average: bool, prune: float) -> Frozen:
        """The weights that predict."""
        asked = (average, prune)
        if self._frozen is not None and (self._frozen[0] == asked or self.only_predicts):
            return self._frozen[1]
        clock = max(self.seen, 1)

        def final(steps: chain.Steps) -> NDArray:
            return (steps.w - steps.drift / clock).astype(np.float32) if average else steps.w.copy()

        frozen = Frozen(
            chain.lists(self.nodes, float(clock), average, prune),
            None if self.ledger is None else ledger.kept(self.ledger, clock, average, prune),
            final(self.pairs),
            None if self.triples is None else final(self.triples),
        )
        self._frozen, self._ready = (asked, frozen), None
        return frozen

    def ready(self, average: bool, prune: float) -> Ready:
        """The weights that predict, as the kernels look them up."""
        frozen = self.frozen(average, prune)
        if self._ready is None:
            self._ready = Ready(self, frozen)
        return self._ready

    # Files

    def arrays(self, average: bool, prune: float, resume: bool) -> tuple[dict[str, Any], dict[str, NDArray]]:
        """The model as facts and arrays."""
        frozen = self.frozen(average, prune)
        facts = {
            "tags": self.tags,
            "scheme": self.scheme,
            "seed": self.seed,
            "source": self.source.kind,
            "columns": self.columns,
            "seen": self.seen,
            "updates": self.updates,
        }
        words = list(self.vocabulary)
        if words and not isinstance(words[0], str):
            words = [part for word in words for part in word]
        small = np.uint8 if len(self.tags) <= np.iinfo(np.uint8).max else np.uint16
        keys, sizes, outcomes, weights = frozen.lists
        arrays = {f"vocabulary_{name}": array for name, array in packed(words).items()}
        arrays |= {"keys": keys, "sizes": sizes.astype(np.uint16), "outcomes": outcomes.astype(small), "weights": weights}
        if frozen.edge_lists is not None:
            keys, sizes, outcomes, weights = frozen.edge_lists
            arrays |= {"edge_keys": keys, "edge_sizes": sizes.astype(np.int32)}
            arrays |= {"edge_outcomes": outcomes, "edge_weights": weights}
        arrays["pairs"] = frozen.pairs
        if frozen.triples is not None:
            arrays["triples"] = frozen.triples
        if resume:
            used = int(self.nodes.counts[chain.USED])
            arrays |= {
                "all_keys": self.nodes.keys[:used],
                "all_w": self.nodes.w[:used],
                "all_drift": self.nodes.drift[:used],
            }
            arrays |= {"pairs_w": self.pairs.w, "pairs_drift": self.pairs.drift}
            if self.triples is not None:
                arrays |= {"triples_w": self.triples.w, "triples_drift": self.triples.drift}
            if self.ledger is not None:
                arrays |= {f"ledger_{name}": part for name, part in ledger.written(self.ledger).items()}
        return facts, arrays

    @classmethod
    def restored(cls, source: Any, facts: Mapping[str, Any], arrays: Mapping[str, NDArray]) -> Model:
        """The model that these facts and arrays describe."""
        model = cls(source, facts["scheme"], int(facts["seed"]))
        model.tags, model.columns = list(facts["tags"]), int(facts["columns"])
        tags = len(model.tags)
        words: list = unpacked({"bytes": arrays["vocabulary_bytes"], "lengths": arrays["vocabulary_lengths"]})
        parts = len(source.fields) if isinstance(source, Templated) else 1
        if parts > 1:
            words = list(zip(*[iter(words)] * parts, strict=True))
        model.vocabulary = {word: number for number, word in enumerate(words, 1)}
        if len(model.vocabulary) < len(words):
            raise ValueError("a word stands twice in the vocabulary")
        counts = np.array([0, facts["seen"], facts["updates"]], np.int64)
        if "all_keys" in arrays:
            counts[chain.USED] = used = len(arrays["all_keys"])
            keys, w, drift = (arrays[f"all_{name}"].copy() for name in ("keys", "w", "drift"))
            model.nodes = chain.Nodes(keys.astype(np.uint64), _shaped(w, (used, tags)), drift.reshape(used, tags), counts)
            model.pairs = _steps(arrays, "pairs", (tags + 1,) * 2)
            model.triples = _steps(arrays, "triples", (tags + 1,) * 3) if "triples_w" in arrays else None
            model.ledger = None
            if "ledger_w" in arrays:
                lists = {name[7:]: part for name, part in arrays.items() if name.startswith("ledger_")}
                model.ledger = ledger.taken_up(lists)
                if len(lists["outcomes"]) and lists["outcomes"].max() >= (tags + 1) ** 2:
                    raise ValueError("the ledger names pairs of tags that there are not")
            model.remember()
        else:
            model.nodes = chain.Nodes(np.zeros(0, np.uint64), np.zeros((0, tags), np.float32), np.zeros((0, tags)), counts)
            model.pairs, model.triples, model.ledger = chain.Steps(arrays["pairs"], np.zeros((0, 0))), None, None
        model._frozen = (
            None,
            Frozen(
                _checked_lists(arrays, "", tags),
                _checked_lists(arrays, "edge_", (tags + 1) ** 2) if "edge_keys" in arrays else None,
                _shaped(arrays["pairs"], (tags + 1,) * 2),
                _shaped(arrays["triples"], (tags + 1,) * 3) if "triples" in arrays else None,
            ),
        )
        return model


def _checked_lists(arrays: Mapping[str, NDArray], prefix: str, outcomes: int) -> tuple[NDArray, NDArray, NDArray, NDArray]:
    """Lists as the kernels take them, which trust them."""
    keys, sizes = arrays[f"{prefix}keys"].astype(np.uint64), arrays[f"{prefix}sizes"].astype(np.int64)
    named, weights = arrays[f"{prefix}outcomes"].astype(np.uint16), arrays[f"{prefix}weights"].astype(np.float32)
    ledger.check_lists(keys, sizes, named, weights)
    if len(named) and named.max() >= outcomes:
        raise ValueError(f"a list names outcome {named.max()}, but there are {outcomes}")
    return keys, sizes, named, weights


def _steps(arrays: Mapping[str, NDArray], name: str, shape: tuple[int, ...]) -> chain.Steps:
    return chain.Steps(
        _shaped(arrays[f"{name}_w"].copy(), shape), arrays[f"{name}_drift"].astype(np.float64).reshape(shape)
    )


def _shaped(array: NDArray, shape: tuple[int, ...]) -> NDArray:
    if array.shape != shape or array.dtype != np.float32:
        raise ValueError(f"weights must be float32 of shape {shape}; they are {array.dtype} of shape {array.shape}")
    return np.ascontiguousarray(array)


class Ready:
    """Frozen weights as the kernels look them up, with what each known type of token adds to the scores around it."""

    def __init__(self, model: Model, frozen: Frozen):
        self.source = model.source
        self.tags = len(model.tags)
        self.vocabulary = model.vocabulary
        self.frozen = frozen
        self.book: Book = ledger.bound(*frozen.lists)
        self.edge_book: Book | None = None if frozen.edge_lists is None else ledger.bound(*frozen.edge_lists)
        self.known: chain.Sums | None = None
        if isinstance(self.source, Templated):
            table = self.source.with_outside(self.source.table(list(model.vocabulary)))
            self.known = self.sums(table)

    def sums(self, table: NDArray) -> chain.Sums:
        """What these types of tokens add to the scores around them."""
        source = self.source
        offsets = np.unique(source.single.places)
        scores = np.zeros((len(table), len(offsets), self.tags), np.float32)
        chain.summed(self.book, keys_of_types(source.single, table), source.single.places, offsets, scores)
        return chain.Sums(offsets, scores, np.ascontiguousarray(table[:, source.columns]))


class Reading:
    """Sentences as numbers, for weights that predict."""

    def __init__(self, ready: Ready, X: Any):
        self.ready = ready
        source = ready.source
        if isinstance(source, Templated):
            self.starts, self.types, new = source.numbers(X, ready.vocabulary)
            self.extra = ready.sums(source.table(new))
        else:
            self.features, _ = source.features(X)
            self.starts = self.features.starts
            self.found = chain.found(ready.book, self.features.keys)
            self.types = np.zeros(0, np.int32)

    def emissions(self, first: int, end: int) -> NDArray:
        """(tokens, tags): the scores of the sentences from `first` to `end`."""
        ready, begin, stop = self.ready, self.starts[first], self.starts[end]
        out = np.empty((stop - begin, ready.tags), np.float32)
        if isinstance(ready.source, Templated):
            starts = self.starts[first : end + 1] - begin
            chain.emit_types(ready.source.around, ready.book, ready.known, self.extra, starts, self.types[begin:stop], out)
        else:
            features = self.features
            chain.emit_features(ready.book, features.indptr, features.ids, self.found, features.values, begin, out)
        return out

    def decode(self, first: int, end: int, width: int | None, tags: NDArray) -> int:
        """Write the tags of the sentences from `first` to `end`; the sentence that has no path, or −1."""
        ready, begin, stop = self.ready, self.starts[first], self.starts[end]
        frozen, edged = ready.frozen, ready.edge_book is not None
        broken = chain.decode(
            self.starts[first : end + 1] - begin,
            self.emissions(first, end),
            frozen.pairs,
            frozen.triples,
            ready.source.edges if edged else None,
            ready.edge_book,
            ready.known if edged else None,
            self.extra if edged else None,
            self.types[begin:stop],
            width,
            tags[begin:stop],
        )
        return first + broken if broken >= 0 else -1

    def local(self, number: int) -> NDArray | None:
        """(n, K + 1, K + 1): the weights of pairs of tags in a sentence, where its features take part in them."""
        ready = self.ready
        if ready.edge_book is None:
            return None
        begin, end = self.starts[number], self.starts[number + 1]
        return chain.local_lists(
            ready.source.edges, ready.edge_book, ready.frozen.pairs, ready.known, self.extra, self.types, begin, end
        )

    def k_best(self, number: int, k: int) -> tuple[NDArray, NDArray]:
        """The scores and the paths of the k best sequences of a sentence."""
        frozen = self.ready.frozen
        return k_best(self.emissions(number, number + 1), frozen.pairs, frozen.triples, self.local(number), k)


def tagged(model: Model, reading: Reading, width: int | None, threads: int) -> list[list]:
    """The tags of all sentences, by blocks of them, which threads may share."""
    starts = reading.starts
    edges = np.unique(np.searchsorted(starts, np.arange(0, int(starts[-1]) + BLOCK, BLOCK), side="right") - 1)
    bounds = np.unique([0, *edges, len(starts) - 1])
    tags = np.empty(int(starts[-1]), np.int32)
    blocks = list(pairwise(bounds.tolist()))
    if threads > 1 and len(blocks) > 1:
        with ThreadPoolExecutor(min(threads, len(blocks))) as pool:
            broken = list(pool.map(lambda block: reading.decode(block[0], block[1], width, tags), blocks))
    else:
        broken = [reading.decode(first, end, width, tags) for first, end in blocks]
    for number in broken:
        if number >= 0:
            raise ValueError(
                f"sentence {number}: no sequence of {starts[number + 1] - starts[number]} of the tags {model.tags} is "
                f"allowed by the scheme {model.scheme!r}"
            )
    names = list(map(model.tags.__getitem__, tags.tolist()))
    return [names[start:end] for start, end in pairwise(starts.tolist())]
