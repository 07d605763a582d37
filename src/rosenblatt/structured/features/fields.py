"""Tokens may have several fields, a form and tags. Whatever a token is made of, what templates ask of it becomes a row of
hashes, and each type is looked at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from rosenblatt.errors import DamagedModel, InvalidData, InvalidDataType, InvalidParameter, shown
from rosenblatt.modelfile.parts import Parts
from rosenblatt.structured.features.words import ATTRIBUTES, NotText, Words, texts_from_parts, texts_to_parts


class Fields:
    """Tokens of several fields: a form, whose attributes are those of words, and tags, each with one attribute, which bears
    the field's name. Each type of each field is looked at once."""

    def __init__(self, fields: Sequence[str], attributes: Sequence[str], types: Mapping[str, Sequence[str]] | None = None):
        self.fields = tuple(fields)
        self.attributes = tuple(attributes)
        self.parts: list[tuple[int, list[int], Words]] = []  # (field, columns of its attributes, its types)
        for number, field in enumerate(self.fields):
            where = [
                i for i, name in enumerate(self.attributes) if (name == field if number else name not in self.fields[1:])
            ]
            if where:
                names = [self.attributes[i] for i in where] if number == 0 else ["form"]
                self.parts.append((number, where, Words(names, (types or {}).get(field, ()))))

    def types(self) -> dict[str, list[str]]:
        """Return the types met while learning, by field."""
        return {self.fields[number]: words.types for number, _, words in self.parts}

    def copy(self) -> Fields:
        """Return the same fields, sharing nothing that learning changes."""
        other = copy(self)
        other.parts = [(number, where, copy(words)) for number, where, words in self.parts]
        for _, _, words in other.parts:
            words.index = dict(words.index)
        return other

    def learn(self, sentences: Sequence) -> None:
        """Enter the types of tokens that are new."""
        columns = self._columns(list(chain.from_iterable(sentences)), sentence_starts(sentences))
        for number, _, words in self.parts:
            words.learn(columns[number])

    def learn_types(self, types: Mapping[str, Sequence[str]]) -> None:
        """Enter types, by field, that are new."""
        for number, _, words in self.parts:
            words.learn(types[self.fields[number]])

    def values(self, sentences: Sequence) -> tuple[NDArray, NDArray]:
        """Return the attributes of all words, (words, attributes) uint64, and where each sentence starts."""
        starts = sentence_starts(sentences)
        tokens = list(chain.from_iterable(sentences))
        columns = self._columns(tokens, starts)
        out = np.zeros((len(tokens), len(self.attributes)), np.uint64)
        for number, where, words in self.parts:
            try:
                out[:, where] = words.hashes(columns[number])
            except NotText as error:
                place, field = word_place(starts, error.position), self.fields[number]
                raise InvalidDataType(f"{place}: the {field} must be text; got {shown(error.token)}") from None
        return out, starts

    def _columns(self, tokens: list, starts: NDArray) -> list[Sequence[str]]:
        """Return the tokens field by field."""
        if len(self.fields) == 1 and all(isinstance(token, str) for token in tokens):
            return [tokens]
        plain = set(map(type, tokens)) <= {tuple, list} and set(map(len, tokens)) <= {len(self.fields)}
        if not plain:
            for position, token in enumerate(tokens):
                if isinstance(token, str) or not isinstance(token, Sequence) or len(token) != len(self.fields):
                    raise InvalidData(
                        f"{word_place(starts, position)}: a token must be ({', '.join(self.fields)}); got {shown(token)}",
                        hint="a sentence is a list of tokens, and `fields` names what tokens are made of",
                    )
        return list(zip(*tokens, strict=True)) or [()] * len(self.fields)

    def to_parts(self) -> Parts:
        """Return the fields, the attributes and the types of words for a file."""
        parts = Parts({"fields": list(self.fields), "attributes": list(self.attributes)})
        for field, types in self.types().items():
            parts.put_parts("", texts_to_parts(types), f"{field}.")
        return parts

    @classmethod
    def from_parts(cls, parts: Parts) -> Fields:
        """Return the fields that were saved."""
        types, fields = {}, parts.values("fields", str)
        for field in fields:
            if f"{field}.bytes" in parts.arrays:
                own = {name: parts.arrays.pop(f"{field}.{name}") for name in ("bytes", "lengths")}
                types[field] = texts_from_parts(Parts(arrays=own))
        attributes = parts.values("attributes", str)
        if unknown := set(attributes) - {*ATTRIBUTES, *fields}:
            raise DamagedModel(f"attributes must be those of words or fields; {sorted(unknown)[0]!r:.40} is neither")
        return cls(fields, attributes, types)


def attribute_names(fields: Sequence[str], reserved: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the attributes that tokens of these fields have, after a check of the fields."""
    names = tuple(fields) if isinstance(fields, Iterable) else ()
    texts = not isinstance(fields, str) and all(isinstance(name, str) for name in names)
    if not texts or not names or len(set(names)) < len(names) or set(names) & set(reserved):
        other = f", none of them {', '.join(map(repr, reserved))}" if reserved else ""
        raise InvalidParameter("fields", fields, f"a list of different names, the form first{other}")
    return ATTRIBUTES + names[1:]


def sentence_starts(sentences: Sequence) -> NDArray:
    """Return where each sentence starts if all are put end to end, and where the last ends."""
    for number, sentence in enumerate(sentences):
        if isinstance(sentence, str | bytes) or not hasattr(sentence, "__len__"):
            hint = "cut it into tokens" if isinstance(sentence, str) else None
            raise InvalidDataType(
                f"sentence {number + 1} must be a list of tokens; got {shown(sentence)}", hint=hint, row=number
            )
    starts = np.zeros(len(sentences) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, sentences), np.int64, len(sentences)), out=starts[1:])
    return starts


def word_place(starts: NDArray, position: int) -> str:
    """Return where a word of the whole corpus stands, for a message: "sentence 2, word 5"."""
    sentence = int(np.searchsorted(starts, position, side="right")) - 1
    return f"sentence {sentence + 1}, word {position - int(starts[sentence]) + 1}"
