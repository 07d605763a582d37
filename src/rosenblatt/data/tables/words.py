"""A text is a row of symbols, words or single characters, and its features are the runs of up to n symbols that stand side
by side. A run is a shorter run and one more symbol, so that a pair of numbers names it exactly and no text is copied.

Texts come as Arrow keeps them: all bytes of a batch in one buffer of UTF-8, and the offset at which each text begins. Spans
are found in it (`words`, `characters`), become symbols (their numbers in a `Lexicon`, or hashes), and the runs of each text
are counted (`counted`).
"""

from __future__ import annotations

import unicodedata
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rosenblatt.engine.hashtable import ABSENT, claim, find, mix, new_slots
from rosenblatt.engine.jit import exact, generic, jit

BREAK = np.uint64(2**64 - 2)  # no run goes over it
ROOT = np.uint64(2**64 - 3)  # the run of no symbols
GAP, LETTER, ALONE = 0, 1, 2  # what a character is: between words, a part of one, or a word by itself
_EIGHT, _HALF, _ONE = np.uint64(8), np.uint64(32), np.uint64(1)
_REPLACEMENT = 0xFFFD
_SEED = np.uint64(0x51ED270B9F27C5A7)


@cache
def kinds(ascii_only: bool) -> NDArray[np.uint8]:
    """What each character is, by its code point. Letters, digits and the underscore, as Python's \\w has it, and marks
    (accents that stand by themselves, vowels of Devanagari) are parts of words. An ideograph or a Hiragana is a word by
    itself, as in the word boundaries of Unicode (UAX #29), for they stand without blanks between."""
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
    """The character that begins here, in UTF-8 that ends there, and how many bytes it has; one that is cut off has one."""
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


@jit
def words(data, offsets, kind):
    """The words of each text, of any length: spans (n, 2) into the data, and where those of each text begin."""
    spans = np.empty(((offsets[-1] - offsets[0] + offsets.size) // 2 + 1, 2), np.int64)
    pointers = np.zeros(offsets.size, np.int64)
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
    return spans[:n].copy(), pointers


@jit
def characters(data, offsets):
    """The characters of each text. A blank between words ends one and begins the next: it is there twice, with a break
    between."""
    spans = np.empty((3 * (offsets[-1] - offsets[0]), 2), np.int64)
    pointers = np.zeros(offsets.size, np.int64)
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
    return spans[:n].copy(), pointers


@jit
def fingerprint(data, begin, end):
    """A hash of some bytes; never 0."""
    h = mix(_SEED, np.uint64(end - begin))
    at = begin
    while at < end:
        block = np.uint64(0)
        for byte in range(at, min(at + 8, end)):
            block = block << _EIGHT | np.uint64(data[byte])
        h = mix(h, block)
        at += 8
    return h


@jit
def hashes(data, spans):
    """The symbols of spans as hashes of their bytes: nothing is remembered."""
    symbols = np.empty(spans.shape[0], np.uint64)
    for i in range(spans.shape[0]):
        symbols[i] = min(fingerprint(data, spans[i, 0], spans[i, 1]), ROOT - _ONE) if spans[i, 1] > spans[i, 0] else BREAK
    return symbols


class Lexicon(NamedTuple):
    """Byte strings by number: those of number i are letters[offsets[i] : offsets[i + 1]]. The arrays have room to grow."""

    slots: NDArray[np.uint64]  # (capacity, 2): hash and number; two strings may share a hash, never a slot
    offsets: NDArray[np.int64]
    letters: NDArray[np.uint8]


@jit
def seat(slots, letters, offsets, key, data, begin, end):
    """The slot of a string: where it is, or else the free one where it belongs."""
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
def numbered(lexicon, data, spans, symbols, first, known, room):
    """Writes the numbers of spans into `symbols`, from the first on, and says where it stopped and how many strings are
    known: at the end, or where it would know more than there is `room` for. Without room, new strings are ABSENT."""
    slots, offsets, letters = lexicon.slots, lexicon.offsets, lexicon.letters
    for i in range(first, spans.shape[0]):
        begin, end = spans[i, 0], spans[i, 1]
        if begin == end:
            symbols[i] = BREAK
            continue
        key = fingerprint(data, begin, end)
        at = seat(slots, letters, offsets, key, data, begin, end)
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


@jit
def seated(letters, offsets, known, capacity):
    """A table of the strings of a lexicon that has none, or one that is too small."""
    slots = new_slots(capacity)
    for number in range(known):
        key = fingerprint(letters, offsets[number], offsets[number + 1])
        at = seat(slots, letters, offsets, key, letters, offsets[number], offsets[number + 1])
        slots[at, 0] = key
        slots[at, 1] = np.uint64(number)
    return slots


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
    """The run that is one symbol longer; ABSENT where nobody knows it."""
    raise TypeError(f"no runs are kept in {type(store).__name__}")


@generic
def place(store, run):
    """The number of a run."""
    raise TypeError(f"no runs are kept in {type(store).__name__}")


@jit
def pair_key(prefix, symbol):
    """A pair of numbers below 2³¹, or −1, as one that is not 0; no two pairs have the same."""
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


@jit
def counted(store, symbols, pointers, first, low, high, marks, room):
    """The runs of low to high symbols in each text from the first on, until the next might find more new ones than there is
    room for: where it stopped, the numbers of the runs, how often each occurs, and where those of each text begin.

    marks  zeros, one for each number: where the run stands in the output (from 1)
    """
    most = (pointers[-1] - pointers[first]) * (high - low + 1)
    numbers, counts = np.empty(most, np.int64), np.empty(most, np.int64)
    ends = np.zeros(pointers.size - first, np.int64)
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
    return stop, numbers[:n].copy(), counts[:n].copy(), ends[: stop - first + 1]


@jit
def tally(numbers, counts):
    """Count each number once more."""
    for i in range(numbers.size):
        counts[numbers[i]] += 1


@jit
def linked(prefix, symbol, capacity):
    """A table of runs, which are given as pairs."""
    slots = new_slots(capacity)
    for number in range(prefix.size):
        slots[claim(slots, pair_key(np.int64(prefix[number]), np.int64(symbol[number]))), 1] = np.uint64(number)
    return slots


@exact
def lengthened_to_one(values, ends):
    """Divide each row by its length; a row of nothing stays."""
    for row in range(ends.size - 1):
        total = 0.0
        for at in range(ends[row], ends[row + 1]):
            total += values[at] * values[at]
        if total > 0.0:
            length = np.sqrt(total)
            for at in range(ends[row], ends[row + 1]):
                values[at] /= length
