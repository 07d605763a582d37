"""A vocabulary numbers the runs of symbols of all texts it has seen, in the order in which they first came, and knows in
how many texts each stood. Buckets do the same for hashes: their number is fixed, so that memory is, and they have no names.

Which texts come in one batch makes no difference to either.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from rosenblatt.data.tables import words
from rosenblatt.engine.hashtable import ABSENT, capacity_for, new_slots, resized

_MOST = 2**31 - 2  # runs, which are numbered in 32 bits


class Spans(NamedTuple):
    """The symbols of some texts: where each stands in the data, and which are those of each text."""

    data: NDArray[np.uint8]
    spans: NDArray[np.int64]  # (symbols, 2): begin and end; one that is empty is a break
    pointers: NDArray[np.int64]  # (texts + 1,)


class Counts(NamedTuple):
    """What stands in each text: columns, how often, and where those of each text end (as indptr of CSR)."""

    columns: NDArray[np.int64]
    counts: NDArray[np.int64]
    ends: NDArray[np.int64]
    unseen: int  # symbols that the vocabulary does not have


class Store(Protocol):
    """Where the runs of texts have their columns."""

    texts: int  # how many were seen

    @property
    def frequency(self) -> NDArray[np.int64]:
        """Of each column: in how many texts it stood."""

    def see(self, texts: Spans) -> None:
        """Number what is new, and count the texts in which each run stands."""

    def finish(self, min_count: int) -> None:
        """Nothing more will be seen; what stood in fewer texts than this counts as nothing."""

    def counts(self, texts: Spans) -> Counts:
        """What stands in these texts, as columns."""

    def name(self, column: int, joint: str) -> str:
        """The symbols of a column, with `joint` between them."""

    def written(self) -> tuple[dict[str, Any], dict[str, NDArray]]: ...


class Vocabulary:
    """Runs of `low` to `high` symbols, each with a column and a name."""

    def __init__(self, low: int, high: int):
        self.low, self.high = low, high
        self.texts = 0
        self._strings = 0
        self._lexicon = words.Lexicon(new_slots(1 << 10), np.zeros((1 << 9) + 1, np.int64), np.empty(1 << 14, np.uint8))
        self._runs = _runs(1 << 10)
        self._seen = np.zeros(1 << 9, np.int64)  # of each run: the number of texts
        self._columns = np.empty(0, np.int64)  # of each run, once finished: its column, or −1
        self._counts = np.empty(0, np.int64)  # of each column: its run

    def see(self, texts: Spans) -> None:
        symbols = self._numbers(texts, grow=True)
        self.texts += len(texts.pointers) - 1
        for _, numbers, _, _ in self._counted(symbols, texts.pointers):
            words.tally(numbers, self._seen)

    def finish(self, min_count: int) -> None:
        prefix, symbol = self._pairs()
        length = _lengths(prefix, self.high)
        keep = (self._seen[: len(prefix)] >= min_count) & (length >= self.low)
        has_column = keep.copy()
        for longest in range(self.high, 1, -1):  # what a run consists of is kept with it
            keep[prefix[keep & (length == longest)]] = True
        self._seen = self._seen[: len(prefix)][has_column]
        strings = np.zeros(self._strings, bool)
        strings[symbol[keep]] = True
        number, string = np.cumsum(keep) - 1, np.cumsum(strings) - 1
        shorter = prefix[keep]
        lexicon, offsets = self._lexicon, self._lexicon.offsets[: self._strings + 1]
        self._settle(
            np.where(shorter < 0, -1, number[shorter]).astype(np.int32),
            string[symbol[keep]].astype(np.int32),
            np.concatenate([[0], np.cumsum(np.diff(offsets)[strings])]),
            lexicon.letters[: offsets[-1]][np.repeat(strings, np.diff(offsets))],
        )

    def counts(self, texts: Spans) -> Counts:
        symbols = self._numbers(texts, grow=False)
        [(_, numbers, counts, ends)] = self._counted(symbols, texts.pointers)
        return Counts(self._columns[numbers], counts, ends, int(np.count_nonzero(symbols == ABSENT)))

    @property
    def frequency(self) -> NDArray[np.int64]:
        return self._seen

    def name(self, column: int, joint: str) -> str:
        run, symbols = int(self._counts[column]), []
        while run >= 0:
            begin, end = self._lexicon.offsets[self._runs.symbol[run] :][:2]
            symbols.append(self._lexicon.letters[begin:end].tobytes().decode())
            run = int(self._runs.prefix[run])
        return joint.join(reversed(symbols))

    def written(self) -> tuple[dict[str, Any], dict[str, NDArray]]:
        prefix, symbol = self._pairs()
        lexicon = self._lexicon
        arrays: dict[str, NDArray] = {"prefix": prefix, "symbol": symbol, "frequency": self._seen}
        return {"texts": self.texts}, {**arrays, "offsets": lexicon.offsets, "letters": lexicon.letters}

    @classmethod
    def restored(cls, low: int, high: int, facts: Mapping[str, Any], arrays: Mapping[str, NDArray]) -> Vocabulary:
        """The vocabulary that was written so; ValueError where none can have been."""
        types = {"prefix": np.int32, "symbol": np.int32, "offsets": np.int64, "letters": np.uint8, "frequency": np.int64}
        prefix, symbol, offsets, letters, frequency = (_array(arrays, name, kind) for name, kind in types.items())
        self = cls(low, high)
        self.texts = _texts(facts)
        number = np.arange(len(prefix))
        if len(symbol) != len(prefix) or np.any(prefix < -1) or np.any(prefix >= number):
            raise ValueError("the runs of a vocabulary are not made of earlier ones")
        if len(offsets) < 1 or offsets[0] != 0 or np.any(np.diff(offsets) <= 0) or offsets[-1] != len(letters):
            raise ValueError("the offsets of a vocabulary do not go up from 0 to the number of its letters")
        if np.any(symbol < 0) or np.any(symbol >= len(offsets) - 1):
            raise ValueError("a vocabulary has runs of symbols that it does not have")
        length = _lengths(prefix, high)
        if np.any(length > high):
            raise ValueError(f"a vocabulary of runs of {low} to {high} symbols has longer ones")
        try:
            letters.tobytes().decode()
        except UnicodeDecodeError as reason:
            raise ValueError(f"the words of a vocabulary are not UTF-8: {reason}") from None
        if np.any((letters[offsets[:-1]] & 0xC0) == 0x80):
            raise ValueError("a word of a vocabulary begins inside a character")
        self._seen = frequency
        self._settle(prefix, symbol, offsets, letters)
        if len(frequency) != np.count_nonzero(length >= low) or np.any(frequency < 1) or np.any(frequency > self.texts):
            raise ValueError("the document frequencies of a vocabulary do not fit its runs and its texts")
        if np.count_nonzero(self._lexicon.slots[:, 0]) != len(offsets) - 1:
            raise ValueError("a vocabulary has a word twice")
        if np.count_nonzero(self._runs.slots[:, 0]) != len(prefix):
            raise ValueError("a vocabulary has a run twice")
        return self

    def _numbers(self, texts: Spans, grow: bool) -> NDArray[np.uint64]:
        """The number of each symbol; ABSENT where it has none and must not grow."""
        symbols = np.empty(len(texts.spans), np.uint64)
        done = 0
        while done < len(symbols):
            room = len(self._lexicon.offsets) - 1 if grow else 0
            arguments = (self._lexicon, texts.data, texts.spans, symbols, done, self._strings, room)
            done, self._strings = map(int, words.numbered(*arguments))
            if done < len(symbols):
                self._lexicon = self._larger(int(texts.spans[done, 1] - texts.spans[done, 0]))
        return symbols

    def _larger(self, bytes_needed: int) -> words.Lexicon:
        slots, offsets, letters = self._lexicon
        room = len(offsets) - 1
        if self._strings == room:
            offsets = np.concatenate([offsets, np.zeros(room, np.int64)])
            slots = words.seated(letters, offsets, self._strings, capacity_for(2 * room))
        else:
            letters = np.concatenate([letters, np.empty(len(letters) + bytes_needed, np.uint8)])
        return words.Lexicon(slots, offsets, letters)

    def _counted(self, symbols: NDArray, pointers: NDArray) -> Iterator[tuple]:
        """What `counted` answers, as often as room must be made for more runs."""
        done, last = 0, len(pointers) - 1
        while True:
            room = len(self._runs.prefix) - int(self._runs.known[0]) if self._runs.grows else -1
            marks = np.zeros(len(self._runs.prefix), np.int64)
            answer = words.counted(self._runs, symbols, pointers, done, self.low, self.high, marks, room)
            yield answer
            done = int(answer[0])
            if done == last:
                return
            self._make_room(self.high * int(pointers[done + 1] - pointers[done]))

    def _make_room(self, needed: int) -> None:
        known = int(self._runs.known[0])
        size = max(2 * len(self._runs.prefix), known + needed)
        if size > _MOST:
            raise MemoryError(f"a vocabulary holds at most {_MOST} runs of words; hashing=22 needs none")
        larger = _runs(capacity_for(size), self._runs.known)
        larger.prefix[:known], larger.symbol[:known] = self._pairs()
        self._runs = larger._replace(slots=resized(self._runs.slots, len(larger.slots)))
        self._seen = np.concatenate([self._seen, np.zeros(len(larger.prefix) - len(self._seen), np.int64)])

    def _pairs(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        known = int(self._runs.known[0])
        return self._runs.prefix[:known], self._runs.symbol[:known]

    def _settle(self, prefix: NDArray, symbol: NDArray, offsets: NDArray, letters: NDArray) -> None:
        """Hold these runs of these strings and no others, from now on."""
        self._strings = len(offsets) - 1
        slots = words.seated(letters, offsets, self._strings, capacity_for(self._strings))
        self._lexicon = words.Lexicon(slots, offsets, letters)
        slots = words.linked(prefix, symbol, capacity_for(len(prefix)))
        self._runs = words.Runs(slots, prefix, symbol, np.array([len(prefix)]), False)
        counts = _lengths(prefix, self.high) >= self.low
        self._columns = np.where(counts, np.cumsum(counts) - 1, -1)
        self._counts = np.flatnonzero(counts)


class Hashed:
    """Runs of `low` to `high` symbols in 2**bits buckets, which may share one."""

    def __init__(self, low: int, high: int, bits: int):
        self.low, self.high, self.bits = low, high, bits
        self.texts = 0
        self.frequency = np.zeros(1 << bits, np.int64)
        self._least = 0

    def see(self, texts: Spans) -> None:
        self.texts += len(texts.pointers) - 1
        words.tally(self._numbers(texts).columns, self.frequency)

    def finish(self, min_count: int) -> None:
        self._least = min_count

    def counts(self, texts: Spans) -> Counts:
        found = self._numbers(texts)
        return found._replace(columns=np.where(self.frequency[found.columns] < self._least, -1, found.columns))

    def name(self, column: int, joint: str) -> str:
        return f"bucket {column}"

    def written(self) -> tuple[dict[str, Any], dict[str, NDArray]]:
        return {"texts": self.texts}, {"frequency": self.frequency}

    @classmethod
    def restored(cls, low: int, high: int, bits: int, facts: Mapping[str, Any], arrays: Mapping[str, NDArray]) -> Hashed:
        """The buckets that were written so; ValueError where none can have been."""
        texts, frequency = _texts(facts), _array(arrays, "frequency", np.int64)
        if len(frequency) != 1 << bits or np.any(frequency < 0) or np.any(frequency > texts):
            raise ValueError(f"there must be {1 << bits} document frequencies, of {texts} texts at most")
        self = cls(low, high, bits)
        self.texts, self.frequency = texts, frequency
        return self

    def _numbers(self, texts: Spans) -> Counts:
        symbols = words.hashes(texts.data, texts.spans)
        buckets = words.Buckets(np.uint64((1 << self.bits) - 1))
        marks = np.zeros(1 << self.bits, np.int64)
        _, numbers, counts, ends = words.counted(buckets, symbols, texts.pointers, 0, self.low, self.high, marks, -1)
        return Counts(numbers, counts, ends, 0)


def _runs(capacity: int, known: NDArray | None = None) -> words.Runs:
    """No runs, and room for half as many as there are slots."""
    prefix, symbol = np.empty(capacity // 2, np.int32), np.empty(capacity // 2, np.int32)
    return words.Runs(new_slots(capacity), prefix, symbol, np.zeros(1, np.int64) if known is None else known, True)


def _lengths(prefix: NDArray, high: int) -> NDArray[np.int64]:
    """The length of each run; high + 1 of one that is longer."""
    length = np.ones(len(prefix), np.int64)
    longer = prefix >= 0
    for _ in range(high):
        length[longer] = 1 + length[prefix[longer]]
    return length


def _texts(facts: Mapping[str, Any]) -> int:
    texts = facts.get("texts")
    if not isinstance(texts, int) or isinstance(texts, bool) or not 0 <= texts < 2**62:
        raise ValueError(f"the number of texts is {texts!r}")
    return texts


def _array(arrays: Mapping[str, NDArray], name: str, kind: type) -> NDArray:
    array = arrays.get(name)
    if not isinstance(array, np.ndarray) or array.dtype != kind or array.ndim != 1:
        raise ValueError(f"a vocabulary needs {name}, a list of {np.dtype(kind).name}")
    return np.ascontiguousarray(array)
