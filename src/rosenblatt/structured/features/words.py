"""A word is looked at once per type. What a template may ask of it (its form, its ends, its shape) is a 64-bit hash, the
same in every process, computed for a batch of new words in one compiled pass over their code points.

A hash of 0 means that the word has no such attribute (a suffix of four letters of a word of three, a digit in a word
without one): templates with that attribute make no feature of the word.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby, repeat

import numpy as np
from numpy.typing import NDArray

from rosenblatt.engine.hashtable import mix
from rosenblatt.engine.jit import jit
from rosenblatt.errors import DamagedModel, InvalidDataType, shown
from rosenblatt.modelfile.parts import Parts

LONGEST_AFFIX = 9
PLAIN = ("form", "lower", "shape", "longshape", "digit", "hyphen", "capital", "length")
ATTRIBUTES = PLAIN + tuple(f"{end}{n}" for end in ("prefix", "suffix") for n in range(1, LONGEST_AFFIX + 1))
OUTSIDE = np.uint64(0x6F7574736964652E)  # the value of every attribute at a place that is not there

_LONGEST_SHAPE = 12  # letters of a word that its long shape shows
_SEED = np.uint64(0x776F72642E)
_UPPER, _LOWER, _LETTER, _DIGIT, _HYPHEN, _OTHER = (np.uint8(kind) for kind in range(1, 7))
_SHOWN = {_UPPER: "X", _LOWER: "x", _LETTER: "o", _DIGIT: "d", _HYPHEN: "-"}
_KINDS = np.zeros(0x110000, np.uint8)  # the kind of each code point met so far; 0 before


def _kind(character: str) -> np.uint8:
    if character.isupper() or character.istitle():
        return _UPPER
    if character.islower():
        return _LOWER
    if character.isdigit():
        return _DIGIT
    if character.isalpha():
        return _LETTER
    return _HYPHEN if character in "-‐‑‒–—" else _OTHER


def _codes(words: Sequence[str]) -> tuple[NDArray, NDArray]:
    """The code points of all words in a row, and where each word starts (with one more, where the last ends)."""
    starts = np.zeros(len(words) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, words), np.int64, len(words)), out=starts[1:])
    codes = np.frombuffer("".join(words).encode("utf-32-le", "surrogatepass"), np.uint32)
    for code in np.unique(codes[_KINDS[codes] == 0]):
        _KINDS[code] = _kind(chr(code))
    return codes, starts


@jit
def _affixes(codes, starts, prefixes, suffixes, out):
    """Write into out (words, prefixes.size + suffixes.size) the hashes of these many first and last letters."""
    for word in range(starts.size - 1):
        start, end = starts[word], starts[word + 1]
        for side in range(2):
            wanted = prefixes if side == 0 else suffixes
            h, done = _SEED, 0
            for j in range(wanted.size):  # in increasing order, each from the one before
                if end - start < wanted[j]:
                    break
                while done < wanted[j]:
                    h = mix(h, np.uint64(codes[start + done] if side == 0 else codes[end - 1 - done]))
                    done += 1
                out[word, side * prefixes.size + j] = h


@jit
def _plain(codes, starts, kinds, out):
    """Write into out (words, 7) the hashes of form, shape, long shape, digit, hyphen, capital and length."""
    for word in range(starts.size - 1):
        start, end = starts[word], starts[word + 1]
        form, shape, long = _SEED, _SEED, _SEED
        before = np.uint64(0)
        digit, hyphen = False, False
        for at in range(start, end):
            code = np.uint64(codes[at])
            kind = kinds[codes[at]]
            digit |= kind == _DIGIT
            hyphen |= kind == _HYPHEN
            form = mix(form, code)
            sign = np.uint64(kind) if kind != _OTHER else code + np.uint64(8)
            if sign != before:
                shape = mix(shape, sign)
            if at - start < _LONGEST_SHAPE:
                long = mix(long, sign)
            before = sign
        out[word, 0], out[word, 1], out[word, 2] = form, shape, long
        out[word, 3] = np.uint64(digit)
        out[word, 4] = np.uint64(hyphen)
        out[word, 5] = np.uint64(end > start and kinds[codes[start]] == _UPPER)
        out[word, 6] = np.uint64(min(end - start, 15)) + np.uint64(1)


_ORDER = ("form", "shape", "longshape", "digit", "hyphen", "capital", "length")


def word_attributes(words: Sequence[str], attributes: Sequence[str]) -> NDArray:
    """(words, attributes) uint64: what the words are, 0 where one has no such attribute."""
    out = np.zeros((len(words), len(attributes)), np.uint64)
    if not words:
        return out
    lowered = [word.lower() for word in words]
    plain = np.zeros((len(words), len(_ORDER)), np.uint64)
    _plain(*_codes(words), _KINDS, plain)
    low_codes, low_starts = _codes(lowered)
    lengths = {end: sorted(int(a[6:]) for a in set(attributes) if a.startswith(end)) for end in ("prefix", "suffix")}
    affixes = np.zeros((len(words), len(lengths["prefix"]) + len(lengths["suffix"])), np.uint64)
    wanted = [np.array(lengths[end], np.int64) for end in ("prefix", "suffix")]
    _affixes(low_codes, low_starts, *wanted, affixes)
    for i, name in enumerate(attributes):
        if name in _ORDER:
            out[:, i] = plain[:, _ORDER.index(name)]
        elif name == "lower":
            low = np.zeros_like(plain)
            _plain(low_codes, low_starts, _KINDS, low)
            out[:, i] = low[:, 0]
        else:
            first = 0 if name.startswith("prefix") else len(lengths["prefix"])
            out[:, i] = affixes[:, first + lengths[name[:6]].index(int(name[6:]))]
    return out


def attribute_text(word: str, attribute: str) -> str:
    """What an attribute of a word is, in letters: the suffix, the shape."""
    if attribute.startswith(("prefix", "suffix")):
        n, low = int(attribute[6:]), word.lower()
        if len(low) < n:
            return ""
        return low[:n] if attribute.startswith("prefix") else low[len(low) - n :]
    signs = [_SHOWN.get(_kind(letter), letter) for letter in word]
    answers = {
        "form": word,
        "lower": word.lower(),
        "shape": "".join(sign for sign, _ in groupby(signs)),
        "longshape": "".join(signs[:_LONGEST_SHAPE]),
        "digit": "yes" if "d" in signs else "",
        "hyphen": "yes" if "-" in signs else "",
        "capital": "yes" if signs[:1] == ["X"] else "",
        "length": str(min(len(word), 15)),
    }
    return answers[attribute]


class NotText(InvalidDataType):
    """A token that is no text; `position` is its place in the list."""

    def __init__(self, position: int, token: object):
        super().__init__(f"a token must be text; got {shown(token)}, of type {type(token).__name__}")
        self.position = position
        self.token = token


class Words:
    """The word types met while learning, numbered, each with its attributes."""

    def __init__(self, attributes: Sequence[str], types: Iterable[str] = ()):
        self.attributes = tuple(attributes)
        self.index: dict[str, int] = {}
        self.table = np.zeros((0, len(self.attributes)), np.uint64)
        self._enter(list(types))

    def __len__(self) -> int:
        return len(self.index)

    @property
    def types(self) -> list[str]:
        """The types, by number."""
        return list(self.index)

    def _enter(self, new: list[str]) -> None:
        before = len(self.index)
        self.index.update(zip(new, range(len(self.index), len(self.index) + len(new)), strict=True))
        if len(self.index) < before + len(new):
            raise DamagedModel("a type stands twice in the list of types")
        self.table = np.concatenate([self.table, word_attributes(new, self.attributes)])

    def learn(self, tokens: Sequence[str]) -> NDArray:
        """The numbers of the tokens' types; those that are new are entered."""
        ids, new = self._numbers(tokens)
        if new:
            self._enter(new)
        return ids

    def numbers(self, tokens: Sequence[str]) -> tuple[NDArray, NDArray]:
        """(numbers, attributes of new types): numbers from len(self) on are types that have not been learned, and are
        numbered for this answer only."""
        ids, new = self._numbers(tokens)
        return ids, word_attributes(new, self.attributes)

    def _numbers(self, tokens: Sequence[str]) -> tuple[NDArray, list[str]]:
        index, known = self.index, len(self.index)
        try:
            ids = np.fromiter(map(index.get, tokens, repeat(-1)), np.int64, len(tokens))
        except TypeError:  # a list or a dictionary cannot be looked up
            position = next(i for i, token in enumerate(tokens) if not isinstance(token, str))
            raise NotText(position, tokens[position]) from None
        new: dict[str, int] = {}
        for i in np.flatnonzero(ids < 0).tolist():
            token = tokens[i]
            if not isinstance(token, str):
                raise NotText(i, token)
            ids[i] = known + new.setdefault(token, len(new))
        return ids, list(new)

    def hashes(self, tokens: Sequence[str]) -> NDArray:
        """(tokens, attributes) uint64: what each token is."""
        ids, extra = self.numbers(tokens)
        return (np.concatenate([self.table, extra]) if len(extra) else self.table)[ids]


def texts_to_parts(words: Sequence[str]) -> Parts:
    """Return texts as two arrays, for a file."""
    encoded = [word.encode("utf-8", "surrogatepass") for word in words]
    lengths = np.fromiter(map(len, encoded), np.int32, len(encoded))
    return Parts(arrays={"bytes": np.frombuffer(b"".join(encoded), np.uint8), "lengths": lengths})


def texts_from_parts(parts: Parts) -> list[str]:
    """Return the texts that were saved."""
    whole = parts.array("bytes", np.uint8, (None,)).tobytes()
    lengths = parts.array("lengths", np.int32, (None,), 0)
    ends = np.cumsum(lengths, dtype=np.int64)
    if len(ends) and ends[-1] != len(whole):
        raise DamagedModel(f"the lengths of {len(ends)} texts add up to {ends[-1]}, but there are {len(whole)} bytes")
    try:
        return [
            whole[end - length : end].decode("utf-8", "surrogatepass")
            for end, length in zip(ends.tolist(), lengths.tolist(), strict=True)
        ]
    except UnicodeDecodeError:
        raise DamagedModel("texts must be UTF-8") from None
