"""The runs of words or characters of texts, numbered and counted.

A text is a sequence of symbols, words or single characters, and its features are the runs of up to n symbols side by side.
A run is a shorter run and one more symbol, so that a pair of numbers names it exactly and no text is copied.

Texts come as Arrow keeps them: all bytes of a batch in one buffer of UTF-8, and the offset at which each text begins. Spans
are found in it (`find_words`, `find_characters`), become symbols (their numbers in a `Lexicon`, or hashes), and the runs of
each text are counted (`count_runs`). A `Vocabulary` numbers the runs of all texts it has seen, in the order in which they
first came, and knows in how many texts each occurred; `HashedRuns` puts them into buckets: their number is fixed, so that
memory is, and they have no names. How texts are cut into batches makes no difference to either.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from rosenblatt.engine.hashtable import ABSENT, capacity_for, claim, find, mix, new_slots, resized
from rosenblatt.engine.jit import exact, generic, jit
from rosenblatt.errors import DamagedModel, InvalidData
from rosenblatt.modelfile.parts import Parts
from rosenblatt.modelfile.values import decode_strings

BREAK = np.uint64(2**64 - 2)  # no run goes over it
ROOT = np.uint64(2**64 - 3)  # the run of no symbols
GAP, LETTER, ALONE = 0, 1, 2  # what a character is: between words, a part of one, or a word by itself
_EIGHT, _HALF, _ONE = np.uint64(8), np.uint64(32), np.uint64(1)
_REPLACEMENT = 0xFFFD
_MOST = 2**31 - 2  # runs, which are numbered in 32 bits
_SEED = np.uint64(0x51ED270B9F27C5A7)


@cache
def character_kinds(ascii_only: bool) -> NDArray[np.uint8]:
    """Return what each character is, by its code point. Letters, digits and the underscore, as Python's \\w has it, and
    marks (accents that stand by themselves, vowels of Devanagari) are parts of words. An ideograph or a Hiragana is a word
    by itself, as in the word boundaries of Unicode (UAX #29), for they stand without blanks between."""
    kind = np.zeros(128 if ascii_only else 0x40000, np.uint8)
    for code in range(min(len(kind), 0x20000)):
        kind[code] = LETTER if unicodedata.category(chr(code))[0] in "LNM" or code == ord("_") else GAP
    for first, last in ((0x3005, 0x3007), (0x3041, 0x3096), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF)):
        kind[first : last + 1] *= ALONE
    kind[0x20000:] = ALONE  # planes 2 and 3 are ideographs throughout
    kind.flags.writeable = False
    return kind


@jit
def code_point(data, at, end):
    """Return the character that begins here, in UTF-8 that ends there, and how many bytes it has; one cut off has one."""
    lead = np.int64(data[at])
    if lead < 0x80:
        return lead, 1
    if at + (2 if lead < 0xE0 else 3 if lead < 0xF0 else 4) > end:
        return _REPLACEMENT, 1
    if lead < 0xE0:
        return (lead & 0x1F) << 6 | (data[at + 1] & 0x3F), 2
    if lead < 0xF0:
        return (lead & 0x0F) << 12 | np.int64(data[at + 1] & 0x3F) << 6 | (data[at + 2] & 0x3F), 3
    high = (lead & 0x07) << 18 | np.int64(data[at + 1] & 0x3F) << 12
    return high | np.int64(data[at + 2] & 0x3F) << 6 | (data[at + 3] & 0x3F), 4


def find_words(data: NDArray, offsets: NDArray, kind: NDArray) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the words of each text, of any length: spans (n, 2) into the data, and where those of each text begin."""
    spans = np.empty(((offsets[-1] - offsets[0] + offsets.size) // 2 + 1, 2), np.int64)
    pointers = np.zeros(offsets.size, np.int64)
    cut_into_words(data, offsets, kind, spans, pointers)
    return spans[: pointers[-1]].copy(), pointers


@jit
def cut_into_words(data, offsets, kind, spans, pointers):
    """Write the words of each text into `spans`, and into `pointers` where those of each text begin (as indptr of CSR)."""
    n = 0
    for text in range(offsets.size - 1):
        at, end = offsets[text], offsets[text + 1]
        inside = False
        while at < end:
            code, width = code_point(data, at, end)
            what = kind[code] if code < kind.size else GAP
            if inside and what != LETTER:
                spans[n, 1] = at
                n += 1
            if what == ALONE:
                spans[n, 0], spans[n, 1] = at, at + width
                n += 1
            elif what == LETTER and not inside:
                spans[n, 0] = at
            inside = what == LETTER
            at += width
        if inside:
            spans[n, 1] = end
            n += 1
        pointers[text + 1] = n


def find_characters(data: NDArray, offsets: NDArray) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the characters of each text. A blank between words ends one and begins the next: it is there twice, with a
    break between."""
    spans = np.empty((3 * (offsets[-1] - offsets[0]), 2), np.int64)
    pointers = np.zeros(offsets.size, np.int64)
    cut_into_characters(data, offsets, spans, pointers)
    return spans[: pointers[-1]].copy(), pointers


@jit
def cut_into_characters(data, offsets, spans, pointers):
    """Write the characters of each text into `spans`, and into `pointers` where those of each text begin."""
    n = 0
    for text in range(offsets.size - 1):
        at, end = offsets[text], offsets[text + 1]
        while at < end:
            _, width = code_point(data, at, end)
            if data[at] == 32 and offsets[text] < at < end - 1:
                spans[n, 0], spans[n, 1] = at, at + 1
                spans[n + 1, 0], spans[n + 1, 1] = at, at
                n += 2
            spans[n, 0], spans[n, 1] = at, at + width
            n += 1
            at += width
        pointers[text + 1] = n


@jit
def hash_bytes(data, begin, end):
    """Return a hash of some bytes; never 0."""
    h = mix(_SEED, np.uint64(end - begin))
    at = begin
    while at < end:
        block = np.uint64(0)
        for byte in range(at, min(at + 8, end)):
            block = block << _EIGHT | np.uint64(data[byte])
        h = mix(h, block)
        at += 8
    return h


def hash_spans(data: NDArray, spans: NDArray) -> NDArray[np.uint64]:
    """Return the symbols of spans as hashes of their bytes: nothing is remembered."""
    symbols = np.empty(len(spans), np.uint64)
    write_hashes(data, spans, symbols)
    return symbols


@jit
def write_hashes(data, spans, symbols):
    """Write the hash of each span into `symbols`."""
    for i in range(spans.shape[0]):
        symbols[i] = min(hash_bytes(data, spans[i, 0], spans[i, 1]), ROOT - _ONE) if spans[i, 1] > spans[i, 0] else BREAK


class Lexicon(NamedTuple):
    """Byte strings by number: those of number i are letters[offsets[i] : offsets[i + 1]]. The arrays have room to grow."""

    slots: NDArray[np.uint64]  # (capacity, 2): hash and number; two strings may share a hash, never a slot
    offsets: NDArray[np.int64]
    letters: NDArray[np.uint8]


@jit
def find_slot(slots, letters, offsets, key, data, begin, end):
    """Return the slot of a string: where it is, or else the free one where it belongs."""
    mask = np.uint64(slots.shape[0] - 1)
    at = key & mask
    while slots[at, 0] != 0:
        if slots[at, 0] == key:
            first = offsets[slots[at, 1]]
            if offsets[slots[at, 1] + _ONE] - first == end - begin:
                same = True
                for i in range(end - begin):
                    if letters[first + i] != data[begin + i]:
                        same = False
                        break
                if same:
                    return at
        at = (at + _ONE) & mask
    return at


@jit
def number_spans(lexicon, data, spans, symbols, first, known, room):
    """Write the numbers of spans into `symbols`, from the first on; return where it stopped and how many strings are
    known: at the end, or where it would know more than there is `room` for. Without room, new strings are ABSENT."""
    slots, offsets, letters = lexicon.slots, lexicon.offsets, lexicon.letters
    for i in range(first, spans.shape[0]):
        begin, end = spans[i, 0], spans[i, 1]
        if begin == end:
            symbols[i] = BREAK
            continue
        key = hash_bytes(data, begin, end)
        at = find_slot(slots, letters, offsets, key, data, begin, end)
        if slots[at, 0] == 0:
            if room == 0:
                symbols[i] = ABSENT
                continue
            if known == room or offsets[known] + end - begin > letters.size:
                return i, known
            slots[at, 0] = key
            slots[at, 1] = np.uint64(known)
            for j in range(end - begin):
                letters[offsets[known] + j] = data[begin + j]
            offsets[known + 1] = offsets[known] + end - begin
            known += 1
        symbols[i] = slots[at, 1]
    return spans.shape[0], known


def lexicon_of(letters: NDArray[np.uint8], offsets: NDArray[np.int64], room: int) -> Lexicon:
    """Return a lexicon of these strings, with room for `room` strings."""
    lexicon = Lexicon(new_slots(capacity_for(room)), np.zeros(room + 1, np.int64), np.empty_like(letters))
    strings = np.column_stack([offsets[:-1], offsets[1:]])
    number_spans(lexicon, read_only(letters), strings, np.empty(len(strings), np.uint64), 0, 0, room)
    return lexicon


class Runs(NamedTuple):
    """Runs of symbols by number: a run is `prefix`, the number of a shorter one or −1, and one symbol more."""

    slots: NDArray[np.uint64]  # (capacity, 2): the pair, scrambled one to one, and the number of the run
    prefix: NDArray[np.int32]
    symbol: NDArray[np.int32]
    known: NDArray[np.int64]  # (1,) how many there are
    grows: bool


class Buckets(NamedTuple):
    """Runs of symbols by hash: the last bits of it number a bucket."""

    mask: np.uint64


@generic
def longer(store, run, symbol):
    """Return the run that is one symbol longer; ABSENT where it is unknown."""
    raise TypeError(f"no runs are kept in {type(store).__name__}")


@generic
def place(store, run):
    """Return the number of a run."""
    raise TypeError(f"no runs are kept in {type(store).__name__}")


@jit
def pair_key(prefix, symbol):
    """Return a pair of numbers below 2³¹, or −1, as one that is not 0; no two pairs have the same."""
    return mix(np.uint64(0), np.uint64(prefix + 1) << _HALF | np.uint64(symbol + 1))


@longer.register
def _(store: Runs, run, symbol):
    prefix = -1 if run == ROOT else np.int64(run)
    key = pair_key(prefix, np.int64(symbol))
    if not store.grows:
        return find(store.slots, key)
    at = claim(store.slots, key)
    if store.slots[at, 1] == ABSENT:
        number = store.known[0]
        store.slots[at, 1] = np.uint64(number)
        store.prefix[number] = prefix
        store.symbol[number] = np.int64(symbol)
        store.known[0] += 1
    return store.slots[at, 1]


@place.register
def _(store: Runs, run):
    return np.int64(run)


@longer.register
def _(store: Buckets, run, symbol):
    return min(mix(run, symbol), ROOT - np.uint64(1))


@place.register
def _(store: Buckets, run):
    return np.int64(run & store.mask)


class Occurrences(NamedTuple):
    """The runs in each text: their numbers, how often each occurs, and where those of each text end (as indptr of CSR)."""

    numbers: NDArray[np.int64]
    counts: NDArray[np.int64]
    ends: NDArray[np.int64]


def count_runs(
    store: Runs | Buckets, symbols: NDArray, pointers: NDArray, first: int, lengths: tuple[int, int], sizes: tuple[int, int]
) -> tuple[int, Occurrences]:
    """Find the runs of low to high symbols in the texts from `first` on; return the text at which it stopped, and the runs.

    lengths  low and high
    sizes    how many runs the store can number, and how many of these numbers are free: it stops before a text that might
             need more; −1 if the store takes no new runs
    """
    low, high = lengths
    most = int(pointers[-1] - pointers[first]) * (high - low + 1)
    found = Occurrences(np.empty(most, np.int64), np.empty(most, np.int64), np.zeros(len(pointers) - first, np.int64))
    stop, n = write_runs(store, symbols, pointers, first, lengths, np.zeros(sizes[0], np.int64), sizes[1], found)
    return stop, Occurrences(found.numbers[:n].copy(), found.counts[:n].copy(), found.ends[: stop - first + 1])


@jit
def write_runs(store, symbols, pointers, first, lengths, marks, room, found):
    """Write the runs of low to high symbols in each text into `found`; return the text at which it stopped, and how many
    runs there are.

    marks  zeros, one for each number that a run can have: filled with its last place in the output, from 1
    room   how many new runs the store has room for; −1 if it takes none
    """
    low, high = lengths
    numbers, counts, ends = found.numbers, found.counts, found.ends
    n = 0
    stop = pointers.size - 1
    for text in range(first, pointers.size - 1):
        begin, end = pointers[text], pointers[text + 1]
        if room >= 0:
            room -= (end - begin) * high
            if room < 0:
                stop = text
                break
        start = n
        for at in range(begin, end):
            run = ROOT
            for to in range(at, min(at + high, end)):
                if symbols[to] >= BREAK:
                    break
                run = longer(store, run, symbols[to])
                if run == ABSENT:
                    break
                if to - at + 1 >= low:
                    number = place(store, run)
                    if marks[number] > start:
                        counts[marks[number] - 1] += 1
                    else:
                        numbers[n], counts[n] = number, 1
                        n += 1
                        marks[number] = n
        ends[text - first + 1] = n
    return stop, n


@jit
def link_runs(prefix, symbol, slots):
    """Put runs, each a pair of prefix and symbol, into an empty hash table."""
    for number in range(prefix.size):
        slots[claim(slots, pair_key(np.int64(prefix[number]), np.int64(symbol[number]))), 1] = np.uint64(number)


@exact
def normalize_rows(values, ends):
    """Divide each row by its length; a row of nothing stays."""
    for row in range(ends.size - 1):
        total = 0.0
        for at in range(ends[row], ends[row + 1]):
            total += values[at] * values[at]
        if total > 0.0:
            length = np.sqrt(total)
            for at in range(ends[row], ends[row + 1]):
                values[at] /= length


def read_only(letters: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return a read-only view, the one type of array for which kernels are compiled."""
    view = letters.view()
    view.flags.writeable = False
    return view


class Spans(NamedTuple):
    """The symbols of some texts: where each is in the data, and which are those of each text."""

    data: NDArray[np.uint8]
    spans: NDArray[np.int64]  # (symbols, 2): begin and end; one that is empty is a break
    pointers: NDArray[np.int64]  # (texts + 1,)


class Counts(NamedTuple):
    """The runs in each text: columns, how often, and where those of each text end (as indptr of CSR)."""

    columns: NDArray[np.int64]
    counts: NDArray[np.int64]
    ends: NDArray[np.int64]
    unseen: int  # symbols that the vocabulary does not have


class RunStore(Protocol):
    """Where the runs of texts have their columns."""

    texts: int  # how many were seen

    @property
    def frequency(self) -> NDArray[np.int64]:
        """The number of texts in which each column occurs."""

    def see(self, texts: Spans) -> None:
        """Number what is new, and count the texts in which each run occurs."""

    def finish(self, min_count: int) -> None:
        """End learning; what occurs in fewer texts than this is dropped."""

    def counts(self, texts: Spans) -> Counts:
        """Return the runs of these texts, as columns."""

    def name(self, column: int, joint: str) -> str:
        """Return the symbols of a column, with `joint` between them."""

    def to_parts(self) -> Parts:
        """Return what was learned, for a model file."""


class Vocabulary:
    """Runs of `low` to `high` symbols, each with a column and a name."""

    def __init__(self, low: int, high: int):
        self.low, self.high = low, high
        self.texts = 0
        self._strings = 0
        self._lexicon = Lexicon(new_slots(1 << 10), np.zeros((1 << 9) + 1, np.int64), np.empty(1 << 14, np.uint8))
        self._runs = _runs(1 << 10)
        self._seen = np.zeros(1 << 9, np.int64)  # of each run: the number of texts
        self._columns = np.empty(0, np.int64)  # of each run, once finished: its column, or −1
        self._column_runs = np.empty(0, np.int64)  # of each column: its run

    def see(self, texts: Spans) -> None:
        symbols = self._numbers(texts, grow=True)
        self.texts += len(texts.pointers) - 1
        for found in self._count(symbols, texts.pointers):
            self._seen += np.bincount(found.numbers, minlength=len(self._seen))

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
        self._hold(
            np.where(shorter < 0, -1, number[shorter]).astype(np.int32),
            string[symbol[keep]].astype(np.int32),
            np.concatenate([[0], np.cumsum(np.diff(offsets)[strings])]),
            lexicon.letters[: offsets[-1]][np.repeat(strings, np.diff(offsets))],
        )

    def counts(self, texts: Spans) -> Counts:
        symbols = self._numbers(texts, grow=False)
        [found] = self._count(symbols, texts.pointers)
        return Counts(self._columns[found.numbers], found.counts, found.ends, int(np.count_nonzero(symbols == ABSENT)))

    @property
    def frequency(self) -> NDArray[np.int64]:
        return self._seen

    def name(self, column: int, joint: str) -> str:
        run, symbols = int(self._column_runs[column]), []
        while run >= 0:
            begin, end = self._lexicon.offsets[self._runs.symbol[run] :][:2]
            symbols.append(self._lexicon.letters[begin:end].tobytes().decode())
            run = int(self._runs.prefix[run])
        return joint.join(reversed(symbols))

    def to_parts(self) -> Parts:
        prefix, symbol = self._pairs()
        lexicon = self._lexicon
        arrays: dict[str, NDArray] = {"prefix": prefix, "symbol": symbol, "frequency": self._seen}
        return Parts({"texts": self.texts}, {**arrays, "offsets": lexicon.offsets, "letters": lexicon.letters})

    @classmethod
    def from_parts(cls, parts: Parts, low: int, high: int) -> Vocabulary:
        """Return the vocabulary that `to_parts` described; raise DamagedModel if it is invalid."""
        self = cls(low, high)
        self.texts = parts.whole("texts")
        types = {"offsets": np.int64, "letters": np.uint8, "prefix": np.int32, "frequency": np.int64}
        offsets, letters, prefix, frequency = (_one_axis(parts, name, kind) for name, kind in types.items())
        symbol = np.ascontiguousarray(parts.array("symbol", np.int32, prefix.shape, 0, len(offsets) - 2))
        if np.any(np.diff(offsets) == 0):
            raise DamagedModel("a vocabulary has an empty word")
        if np.any(prefix < -1) or np.any(prefix >= np.arange(len(prefix))):
            raise DamagedModel("the n-grams of a vocabulary do not extend earlier ones")
        length = _lengths(prefix, high)
        if np.any(length > high):
            raise DamagedModel(f"a vocabulary of n-grams of {low} to {high} symbols has longer ones")
        decode_strings(letters, offsets)
        self._seen = frequency
        self._hold(prefix, symbol, offsets, letters)
        if len(frequency) != np.count_nonzero(length >= low) or np.any(frequency < 1) or np.any(frequency > self.texts):
            raise DamagedModel("the document frequencies of a vocabulary do not fit its n-grams and texts")
        if np.count_nonzero(self._lexicon.slots[:, 0]) != len(offsets) - 1:
            raise DamagedModel("a vocabulary has a word twice")
        if np.count_nonzero(self._runs.slots[:, 0]) != len(prefix):
            raise DamagedModel("a vocabulary has an n-gram twice")
        return self

    def _numbers(self, texts: Spans, grow: bool) -> NDArray[np.uint64]:
        """Return the number of each symbol; ABSENT where it has none and must not grow."""
        symbols = np.empty(len(texts.spans), np.uint64)
        done = 0
        while done < len(symbols):
            room = len(self._lexicon.offsets) - 1 if grow else 0
            arguments = (self._lexicon, read_only(texts.data), texts.spans, symbols, done, self._strings, room)
            done, self._strings = map(int, number_spans(*arguments))
            if done < len(symbols):
                self._lexicon = self._larger(int(texts.spans[done, 1] - texts.spans[done, 0]))
        return symbols

    def _larger(self, bytes_needed: int) -> Lexicon:
        slots, offsets, letters = self._lexicon
        room = len(offsets) - 1
        if self._strings == room:
            return lexicon_of(letters, offsets, 2 * room)
        letters = np.concatenate([letters, np.empty(len(letters) + bytes_needed, np.uint8)])
        return Lexicon(slots, offsets, letters)

    def _count(self, symbols: NDArray, pointers: NDArray) -> Iterator[Occurrences]:
        """Yield the runs of these texts, in several pieces where the store has to grow in between."""
        done, last = 0, len(pointers) - 1
        while True:
            size = len(self._runs.prefix)
            room = size - int(self._runs.known[0]) if self._runs.grows else -1
            done, found = count_runs(self._runs, symbols, pointers, done, (self.low, self.high), (size, room))
            yield found
            if done == last:
                return
            self._make_room(self.high * int(pointers[done + 1] - pointers[done]))

    def _make_room(self, more: int) -> None:
        known = int(self._runs.known[0])
        size = max(2 * len(self._runs.prefix), known + more)
        if size > _MOST:
            raise InvalidData(f"a vocabulary holds at most {_MOST} runs of words", settings={"hashing": 22})
        larger = _runs(capacity_for(size), self._runs.known)
        larger.prefix[:known], larger.symbol[:known] = self._pairs()
        self._runs = larger._replace(slots=resized(self._runs.slots, len(larger.slots)))
        self._seen = np.concatenate([self._seen, np.zeros(len(larger.prefix) - len(self._seen), np.int64)])

    def _pairs(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        known = int(self._runs.known[0])
        return self._runs.prefix[:known], self._runs.symbol[:known]

    def _hold(self, prefix: NDArray, symbol: NDArray, offsets: NDArray, letters: NDArray) -> None:
        """Hold these runs of these strings and no others, from now on."""
        self._strings = len(offsets) - 1
        self._lexicon = lexicon_of(letters, offsets, self._strings)
        slots = new_slots(capacity_for(len(prefix)))
        link_runs(prefix, symbol, slots)
        self._runs = Runs(slots, prefix, symbol, np.array([len(prefix)]), False)
        counts = _lengths(prefix, self.high) >= self.low
        self._columns = np.where(counts, np.cumsum(counts) - 1, -1)
        self._column_runs = np.flatnonzero(counts)


class HashedRuns:
    """Runs of `low` to `high` symbols in 2**bits buckets, which may share one."""

    def __init__(self, low: int, high: int, bits: int):
        self.low, self.high, self.bits = low, high, bits
        self.texts = 0
        self.frequency = np.zeros(1 << bits, np.int64)
        self._least = 0

    def see(self, texts: Spans) -> None:
        self.texts += len(texts.pointers) - 1
        self.frequency += np.bincount(self._numbers(texts).columns, minlength=len(self.frequency))

    def finish(self, min_count: int) -> None:
        self._least = min_count

    def counts(self, texts: Spans) -> Counts:
        found = self._numbers(texts)
        return found._replace(columns=np.where(self.frequency[found.columns] < self._least, -1, found.columns))

    def name(self, column: int, joint: str) -> str:
        return f"bucket {column}"

    def to_parts(self) -> Parts:
        return Parts({"texts": self.texts}, {"frequency": self.frequency})

    @classmethod
    def from_parts(cls, parts: Parts, low: int, high: int, bits: int) -> HashedRuns:
        """Return the buckets that `to_parts` described; raise DamagedModel if they are invalid."""
        self = cls(low, high, bits)
        self.texts = parts.whole("texts")
        self.frequency = np.ascontiguousarray(parts.array("frequency", np.int64, (1 << bits,), 0, self.texts))
        return self

    def _numbers(self, texts: Spans) -> Counts:
        symbols = hash_spans(texts.data, texts.spans)
        buckets = Buckets(np.uint64((1 << self.bits) - 1))
        _, found = count_runs(buckets, symbols, texts.pointers, 0, (self.low, self.high), (1 << self.bits, -1))
        return Counts(*found, 0)


def _runs(capacity: int, known: NDArray | None = None) -> Runs:
    """No runs, and room for half as many as there are slots."""
    prefix, symbol = np.empty(capacity // 2, np.int32), np.empty(capacity // 2, np.int32)
    return Runs(new_slots(capacity), prefix, symbol, np.zeros(1, np.int64) if known is None else known, True)


def _lengths(prefix: NDArray, high: int) -> NDArray[np.int64]:
    """Return the length of each run; high + 1 of one that is longer."""
    length = np.ones(len(prefix), np.int64)
    longer = prefix >= 0
    for _ in range(high):
        length[longer] = 1 + length[prefix[longer]]
    return length


def _one_axis(parts: Parts, name: str, kind: type) -> NDArray:
    return np.ascontiguousarray(parts.array(name, kind, (None,)))
