"""Tokens may have several fields, a form and tags. Whatever a token is made of, what templates ask of it becomes a row of
hashes, and each type is looked at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from rosenblatt.structured.features.words import ATTRIBUTES, NotText, Words


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
                asked = [self.attributes[i] for i in where] if number == 0 else ["form"]
                self.parts.append((number, where, Words(asked, (types or {}).get(field, ()))))

    @staticmethod
    def names(fields: Sequence[str]) -> tuple[str, ...]:
        """The attributes that tokens of these fields have."""
        return ATTRIBUTES + tuple(fields[1:])

    def types(self) -> dict[str, list[str]]:
        """The types met while learning, by field."""
        return {self.fields[number]: words.types for number, _, words in self.parts}

    def values(self, sentences: Sequence, learn: bool = False) -> tuple[NDArray, NDArray]:
        """((words, attributes) uint64, where each sentence starts)."""
        starts = starts_of(sentences)
        tokens = list(chain.from_iterable(sentences))
        columns = self._columns(tokens, starts)
        out = np.zeros((len(tokens), len(self.attributes)), np.uint64)
        for number, where, words in self.parts:
            try:
                if learn:
                    words.learn(columns[number])
                out[:, where] = words.hashes(columns[number])
            except NotText as strange:
                field = self.fields[number]
                raise TypeError(
                    f"{located(starts, strange.position)}: the {field} must be text; got {strange.token!r}"
                ) from None
        return out, starts

    def _columns(self, tokens: list, starts: NDArray) -> list[Sequence[str]]:
        """The tokens field by field."""
        if len(self.fields) == 1 and all(isinstance(token, str) for token in tokens):
            return [tokens]
        plain = set(map(type, tokens)) <= {tuple, list} and set(map(len, tokens)) <= {len(self.fields)}
        if not plain:
            for position, token in enumerate(tokens):
                if isinstance(token, str) or not isinstance(token, Sequence) or len(token) != len(self.fields):
                    raise ValueError(
                        f"{located(starts, position)}: a token must be ({', '.join(self.fields)}); got {token!r}. A "
                        "sentence is a list of tokens, and `fields` names what tokens are made of"
                    )
        return list(zip(*tokens, strict=True)) or [()] * len(self.fields)


def starts_of(sentences: Sequence) -> NDArray:
    """Where each sentence starts if all are put end to end, and where the last ends."""
    for number, sentence in enumerate(sentences):
        if isinstance(sentence, str | bytes) or not hasattr(sentence, "__len__"):
            raise TypeError(f"sentence {number} must be a list of tokens; got {sentence!r}")
    starts = np.zeros(len(sentences) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, sentences), np.int64, len(sentences)), out=starts[1:])
    return starts


def located(starts: NDArray, position: int) -> str:
    """Where a word of the whole corpus stands, as a person would say it."""
    sentence = int(np.searchsorted(starts, position, side="right")) - 1
    return f"sentence {sentence}, word {position - int(starts[sentence]) + 1}"
