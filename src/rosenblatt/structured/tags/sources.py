"""The features of tokens. A feature is a 64-bit key, and there are three sources of features: templates over words
(`TemplateSource`), attributes given by name (`AttributeSource`), and the columns of a matrix (`MatrixSource`).

While learning, the features of a corpus are numbered once; after that the epochs look at numbers only. A template that
looks at one place is hashed once for each type of token, one that combines places once for each token.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, repeat
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from rosenblatt.engine.hashtable import ABSENT, capacity_for, claim, mix, new_slots, resized
from rosenblatt.engine.jit import jit
from rosenblatt.errors import InvalidData, InvalidDataType, InvalidParameter, shown
from rosenblatt.structured.features.fields import Fields, attribute_names, sentence_starts, word_place
from rosenblatt.structured.features.templates import (
    Templates,
    attributes_used,
    parse_templates,
    parse_terms,
    template_keys,
)
from rosenblatt.structured.features.weight_table import row_keys
from rosenblatt.structured.features.words import OUTSIDE, word_attributes

TAG = "tag"  # the attribute of a template that is not the token's own
PLACES = tuple(str(place) for place in range(-5, 6))
_COLUMN = np.uint64(0x636F6C756D6E2E)  # what the keys of columns are mixed with


class Features(NamedTuple):
    """The features of all tokens of a corpus, numbered."""

    starts: NDArray  # (sentences + 1,) int64: tokens
    indptr: NDArray  # (tokens + 1,) int64: features
    ids: NDArray  # (features,) int32
    keys: NDArray  # (distinct features,) uint64, by number
    values: NDArray | None  # (features,) float32; None where all are 1
    edges: NDArray  # (tokens, templates) int32: features that are weighed with the tag before; −1 for none
    edge_keys: NDArray  # (distinct features of this kind,) uint64
    types: Sequence  # of tokens, in the order in which they are met; or the names of features
    tokens: NDArray  # (tokens,) int32: the type of each, from 1 on; empty where there are none

    def take(self, sentences: Sequence[int]) -> Features:
        """Return the features of these sentences: the same, but for their numbers, as if they were computed for them."""
        chosen = np.asarray(sentences, np.int64)
        starts, tokens = _cut(self.starts, chosen)
        indptr, features = _cut(self.indptr, tokens)
        kinds = self.tokens[tokens]
        met = kinds[np.sort(np.unique(kinds, return_index=True)[1])]
        return self._replace(
            starts=starts,
            indptr=indptr,
            ids=self.ids[features],
            values=None if self.values is None else self.values[features],
            edges=self.edges[tokens],
            types=[self.types[kind - 1] for kind in met.tolist()],
            tokens=kinds,
        )


def _cut(starts: NDArray, chosen: NDArray) -> tuple[NDArray, NDArray]:
    """Return where the chosen parts start once they are end to end, and the numbers of all that is in them."""
    sizes = starts[chosen + 1] - starts[chosen]
    ends = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    return ends, np.repeat(starts[chosen] - ends[:-1], sizes) + np.arange(ends[-1])


class FeatureSource(Protocol):
    """Where the features of tokens come from."""

    kind: ClassVar[str]  # as a file calls it
    what: ClassVar[str]  # as a message calls what it reads

    def features(self, sentences: Sequence) -> Features:
        """Return the features of a corpus."""


class FeaturedSentences(list):
    """Sentences whose features are computed once, however many taggers learn from all or from some of them.

    Parameters
    ----------
    sentences : iterable
        The sentences.
    """

    def __init__(self, sentences: Iterable):
        super().__init__(sentences)
        self._whole: list = self
        self._numbers: list[int] | None = None  # of the whole; None for all of it
        self._features: dict[tuple, Features] = {}  # of the whole, by templates and fields

    def take(self, numbers: Sequence[int]) -> FeaturedSentences:
        """Return the sentences with these numbers, which share the features."""
        some = FeaturedSentences(self[i] for i in numbers)
        some._whole, some._features = self._whole, self._features
        some._numbers = list(numbers) if self._numbers is None else [self._numbers[i] for i in numbers]
        return some

    def features(self, source: TemplateSource) -> Features:
        """Return the features of these sentences by templates."""
        key = (source.texts, source.fields)
        if key not in self._features:
            self._features[key] = source.features(self._whole)
        whole = self._features[key]
        return whole if self._numbers is None else whole.take(self._numbers)


def _seen_places(text: str) -> list[str]:
    """The places of words that a template looks at."""
    return sorted({place for attribute, place in parse_terms(text) if attribute != TAG}, key=int)


def _without_tag(text: str) -> str:
    """A template without its tag, which must be the one before, and not all there is."""
    terms = parse_terms(text)
    if [place for attribute, place in terms if attribute == TAG] != ["-1"] or len(terms) == 1:
        raise InvalidParameter(
            "templates",
            text,
            "such that of tags they name tag[-1] only, once and with other terms, as 'tag[-1] form[0]'",
            hint="sequences of tags alone are weighed always, two or with markov=2 three in a row",
        )
    return " ".join(f"{attribute}[{place}]" for attribute, place in terms if attribute != TAG)


@jit
def number_keys(slots, known, keys):
    """(slots, distinct, ids): a number for each key, −1 for the key 0; those that are new are entered in the table."""
    ids = np.empty(keys.size, np.int32)
    for i in range(keys.size):
        if keys[i] == 0:
            ids[i] = -1
            continue
        if 2 * known + 2 >= slots.shape[0]:
            slots = resized(slots, 2 * slots.shape[0])
        at = claim(slots, keys[i])
        if slots[at, 1] == ABSENT:
            slots[at, 1] = np.uint64(known)
            known += 1
        ids[i] = np.int32(slots[at, 1])
    return slots, known, ids


class SinglePlaceTemplates(NamedTuple):
    """Templates that look at one place each. Their terms number the attributes of that place."""

    templates: Templates
    places: NDArray  # (templates,) int64


class ContextTemplates(NamedTuple):
    """Templates that look at several places."""

    templates: Templates
    offsets: NDArray  # (places,) int64


@jit
def keys_of_types(single, table):
    """(types, templates): the keys of each type of token under the templates that look at one place."""
    keys = np.zeros((table.shape[0], single.templates.seeds.size), np.uint64)
    for t in range(table.shape[0]):
        template_keys(single.templates, table[t], keys[t])
    return keys


@jit
def keys_of_tokens(around, table, extra, types, begin, end, keys):
    """keys[i] = those of token begin + i of the sentence from begin to end. Type numbers go on from `table` to `extra`."""
    offsets = around.offsets
    attributes = table.shape[1]
    values = np.empty(offsets.size * attributes, np.uint64)
    for i in range(begin, end):
        for p in range(offsets.size):
            at = i + offsets[p]
            t = types[at] if begin <= at < end else 0
            row = table[t] if t < len(table) else extra[t - len(table)]
            for a in range(attributes):
                values[p * attributes + a] = row[a]
        template_keys(around.templates, values, keys[i - begin])


@jit
def keys_of_corpus(around, table, types, starts):
    """(tokens, templates): the same for all tokens of a corpus, whose types are all in the table."""
    keys = np.zeros((types.size, around.templates.seeds.size), np.uint64)
    for s in range(starts.size - 1):
        keys_of_tokens(around, table, table, types, starts[s], starts[s + 1], keys[starts[s] : starts[s + 1]])
    return keys


@jit
def join_features(starts, types, places, by_type, by_token):
    """(indptr, ids): the features of each token, from those of the types around it and its own."""
    tokens = types.size
    indptr = np.zeros(tokens + 1, np.int64)
    ids = np.empty(tokens * (places.size + by_token.shape[1]), np.int32)
    to = 0
    for s in range(starts.size - 1):
        for i in range(starts[s], starts[s + 1]):
            for k in range(places.size):
                at = i + places[k]
                found = by_type[types[at] if starts[s] <= at < starts[s + 1] else 0, k]
                ids[to] = found
                to += found >= 0
            for k in range(by_token.shape[1]):
                ids[to] = by_token[i, k]
                to += by_token[i, k] >= 0
            indptr[i + 1] = to
    return indptr, ids[:to].copy()


class TemplateSource:
    """Features that templates read off words, or off tokens of several fields.

    A template with the term `tag[-1]` is weighed for the tag before and the tag together, the others for the tag.
    """

    kind = "templated"
    what = "words, by templates"

    def __init__(self, texts: Sequence[str], fields: Sequence[str]):
        parse_templates(texts, (*attribute_names(fields, (TAG,)), TAG), PLACES)  # refuses what cannot be read
        self.fields = tuple(fields)
        self.texts = tuple(texts)
        around = {text: _seen_places(text) for text in texts}
        history = [text for text in texts if TAG in attributes_used([text])]
        single = [text for text in texts if text not in history and len(around[text]) == 1]
        combined = [text for text in texts if text not in history and len(around[text]) > 1]
        self.attributes = [name for name in attributes_used(texts) if name != TAG]
        self.combining = [name for name in attributes_used(combined + history) if name != TAG]
        self.columns = np.array([self.attributes.index(name) for name in self.combining], np.intp)
        read = parse_templates(single, self.attributes, PLACES)
        self.singles, self.combined, self.history = single, combined, history
        self.single = SinglePlaceTemplates(
            read._replace(terms=read.terms % np.int32(max(len(self.attributes), 1))),
            np.array([int(around[text][0]) for text in single], np.int64),
        )
        self.around = self._around(combined, combined)
        self.edges = self._around(history, [_without_tag(text) for text in history])

    def _around(self, texts: Sequence[str], looking: Sequence[str]) -> ContextTemplates:
        """Templates that are hashed for every token; `looking` are their texts without the tag."""
        places = sorted({place for text in looking for place in _seen_places(text)}, key=int)
        seeds = parse_templates(texts, (*self.combining, TAG), PLACES).seeds
        read = [parse_templates([text], self.combining, places) for text in looking]
        starts = np.cumsum([0, *(part.terms.size for part in read)]).astype(np.int32)
        terms = np.concatenate([np.zeros(0, np.int32), *(part.terms for part in read)])
        return ContextTemplates(Templates(seeds, starts, terms), np.array([int(place) for place in places], np.int64))

    def table(self, types: Sequence) -> NDArray:
        """(types, attributes) uint64: what these types of tokens are."""
        if len(self.fields) == 1:
            return word_attributes(list(types), self.attributes)
        return Fields(self.fields, self.attributes).values([types])[0]

    def numbers(self, sentences: Sequence, known: Mapping) -> tuple[NDArray, NDArray, list]:
        """(starts, types, new): the type number of each token, from `known`; those that are new follow, from len(known) + 1
        on, as 0 stands for no token."""
        starts = sentence_starts(sentences)
        tokens = list(chain.from_iterable(sentences))
        try:
            types = np.fromiter(map(known.get, tokens, repeat(-1)), np.int32, len(tokens))
        except TypeError:  # lists cannot be looked up
            tokens = [tuple(token) if isinstance(token, list) else token for token in tokens]
            self._check(tokens, starts)
            types = np.fromiter(map(known.get, tokens, repeat(-1)), np.int32, len(tokens))
        strange = np.flatnonzero(types < 0)
        new: dict[Any, int] = {}
        for i in strange.tolist():
            types[i] = new.setdefault(tokens[i], len(known) + 1 + len(new))
        if not all(map(self._is_token, new)):
            self._check(tokens, starts)
        return starts, types, list(new)

    def _is_token(self, token: object) -> bool:
        if len(self.fields) == 1:
            return isinstance(token, str)
        return isinstance(token, tuple) and len(token) == len(self.fields) and all(isinstance(part, str) for part in token)

    def _check(self, tokens: list, starts: NDArray) -> None:
        for position, token in enumerate(tokens):
            if not self._is_token(token):
                if len(self.fields) > 1:
                    wanted = f"a tuple of texts ({', '.join(self.fields)})"
                else:
                    wanted = "text; name the parts of a tuple in `fields`, and set templates=None for given attributes"
                raise InvalidDataType(f"{word_place(starts, position)}: a token must be {wanted}; got {shown(token)}")

    def features(self, sentences: Sequence) -> Features:
        """Return the features of a corpus."""
        starts, types, new = self.numbers(sentences, {})
        table = self.with_outside(self.table(new))
        combining = np.ascontiguousarray(table[:, self.columns])
        slots, known = new_slots(capacity_for(1024)), 0
        of_types = keys_of_types(self.single, table)
        slots, known, by_type = number_keys(slots, known, of_types.reshape(-1))
        of_tokens = keys_of_corpus(self.around, combining, types, starts)
        slots, known, by_token = number_keys(slots, known, of_tokens.reshape(-1))
        indptr, ids = join_features(
            starts, types, self.single.places, by_type.reshape(of_types.shape), by_token.reshape(of_tokens.shape)
        )
        of_edges = keys_of_corpus(self.edges, combining, types, starts)
        edge_slots, edge_count, edges = number_keys(new_slots(capacity_for(1024)), 0, of_edges.reshape(-1))
        edges, edge_keys = edges.reshape(of_edges.shape), row_keys(edge_slots, edge_count)
        return Features(starts, indptr, ids, row_keys(slots, known), None, edges, edge_keys, new, types)

    @staticmethod
    def with_outside(table: NDArray) -> NDArray:
        """The table of types, from 1 on: 0 stands for no token."""
        return np.concatenate([np.full((1, table.shape[1]), OUTSIDE), table])


class AttributeSource:
    """Features that are given: each token is a list of names, or a dictionary of names with values, as python-crfsuite
    takes them: a text makes the feature `name:text`, a number or a truth value weighs the feature `name`, and a dictionary
    or a list in a dictionary puts its name and a colon before what is in it."""

    kind = "named"
    what = "tokens with given attributes"

    def features(self, sentences: Sequence) -> Features:
        """Return the features of a corpus."""
        starts = sentence_starts(sentences)
        index: dict[str, int] = {}
        ids: list[int] = []
        values: list[float] = []
        indptr = np.zeros(int(starts[-1]) + 1, np.int64)
        for position, token in enumerate(chain.from_iterable(sentences)):
            try:
                for name, value in attribute_items(token):
                    ids.append(index.setdefault(name, len(index)))
                    values.append(value)
            except (TypeError, ValueError) as error:
                raise InvalidDataType(f"{word_place(starts, position)}: {error}") from None
            indptr[position + 1] = len(ids)
        keys = word_attributes(list(index), ("form",))[:, 0]
        weights = np.array(values, np.float32)
        if not np.isfinite(weights).all():
            position = int(np.searchsorted(indptr, np.flatnonzero(~np.isfinite(weights))[0], side="right")) - 1
            raise InvalidData(f"{word_place(starts, position)}: the value of an attribute must be a finite number")
        return _without_edges(starts, indptr, np.array(ids, np.int32), keys, weights, list(index))


def attribute_items(token: object) -> Iterable[tuple[str, float]]:
    """The (name, value) pairs of a token that is a list or a dictionary."""
    if isinstance(token, str) or not isinstance(token, Mapping | Sequence | set | frozenset):
        raise TypeError(f"with templates=None a token is a list or a dictionary of its attributes; got {token!r}")
    for name in token:
        if not isinstance(name, str):
            raise TypeError(f"the name of an attribute must be text; got {name!r}")
        if not isinstance(token, Mapping):
            yield name, 1.0
            continue
        value = token[name]
        if isinstance(value, str):
            yield f"{name}:{value}", 1.0
        elif isinstance(value, Mapping | Sequence | set | frozenset):
            for inner, weight in attribute_items(value):
                yield f"{name}:{inner}", weight
        else:
            yield name, float(value)


class MatrixSentences(Sequence):
    """The rows of a matrix as sentences, whose lengths are given: what seqlearn takes."""

    def __init__(self, X: ArrayLike, lengths: ArrayLike):
        self.matrix = sparse.csr_array(X)
        lengths = np.asarray(lengths)
        if lengths.ndim != 1 or (lengths.size and (lengths.dtype.kind not in "iu" or lengths.min() < 0)):
            raise InvalidParameter("lengths", lengths, "a list of whole numbers ≥ 0")
        self.starts = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        if self.starts[-1] != self.matrix.shape[0]:
            raise InvalidData(f"the lengths add up to {self.starts[-1]}, but X has {self.matrix.shape[0]} rows")

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, number: Any) -> Any:
        return self.matrix[self.starts[number] : self.starts[number + 1]]

    @classmethod
    def of(cls, matrices: Sequence) -> MatrixSentences:
        """The same from a list of matrices, one a sentence."""
        if isinstance(matrices, MatrixSentences):
            return matrices
        lengths = [matrix.shape[0] for matrix in matrices]
        return cls(sparse.vstack(matrices, format="csr") if lengths else sparse.csr_array((0, 1)), lengths)


class MatrixSource:
    """Features that are the columns of a matrix."""

    kind = "columns"
    what = "rows of a matrix"

    def features(self, sentences: Sequence) -> Features:
        """Return the features of a corpus."""
        rows = MatrixSentences.of(sentences)
        matrix = rows.matrix
        values = matrix.data.astype(np.float32)
        if not np.isfinite(values).all():
            raise InvalidData("X must be finite; it holds NaN or infinity, or a number beyond float32")
        numbers, columns = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32)
        return _without_edges(rows.starts, numbers, columns, column_keys(matrix.shape[1]), values, range(matrix.shape[1]))


def _without_edges(
    starts: NDArray, indptr: NDArray, ids: NDArray, keys: NDArray, values: NDArray, types: Sequence
) -> Features:
    """Return features of which none is weighed with the tag before."""
    edges, none = np.zeros((int(starts[-1]), 0), np.int32), np.zeros(0, np.uint64)
    return Features(starts, indptr, ids, keys, values, edges, none, types, np.zeros(0, np.int32))


@jit
def column_keys(columns):
    """The keys of the columns of a matrix."""
    keys = np.empty(columns, np.uint64)
    for j in range(columns):
        keys[j] = mix(_COLUMN, np.uint64(j))
    return keys
