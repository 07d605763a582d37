"""The compiled loop over lines of Vowpal Wabbit text: rows of hashed features, in the buckets where VW puts them.

A line is [label [importance [base]]] ['tag]|namespace[:value] feature[:value] …|namespace …; a tag is what touches the
first bar or begins with an apostrophe. A feature has the bucket hash(name, hash(namespace)) modulo 2^bits, where hash is
MurmurHash3 of 32 bits with the second argument as its seed, and a name of digits is its number plus the seed. Its value is
multiplied by that of the namespace. A value that is no number is hashed once more: the feature is name and value, and
counts one. A value without a name belongs to the number of such values before it in the namespace.

There must be room for a row per line and a non-zero per byte of SEPARATORS. See `parsing.line_parser` for what the loop
does not decide.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

import numpy as np

from rosenblatt.data.parsing.decimals import CERTAIN, DOUBTFUL, NONE, left, number
from rosenblatt.data.parsing.line_parser import COUNT, DOUBTS, OWN, PLACE, ROWS, WHERE, WRONG
from rosenblatt.data.parsing.swar import U, byte, first, line_end, start, word
from rosenblatt.engine.jit import exact, inlined
from rosenblatt.engine.murmur import LOW, add_block, finish

BARE, WEIGHTED = OWN, OWN + 1  # how many rows have no label, and an importance, in `state`

BAR, LABEL, STRUCTURED, LONG, UNLABELLED, TOUCHING, NAMESPACE, SCALE, VALUE, FINITE = range(1, 11)

SEPARATORS = b" \t\r"  # the bytes that `_separates` knows: at least one is before each feature


class LineOptions(NamedTuple):
    """What lines may contain, and how features are hashed."""

    mask: np.uint64  # of the buckets
    labelled: bool  # whether each line must have a label
    strings: bool  # whether a name of digits is its number
    features: bool  # whether to read them; without, rows are empty


@exact
def murmur(text, begin, end, seed):
    """MurmurHash3 of 32 bits of the bytes between two places."""
    h = U(seed) & LOW
    place = begin
    while place + 4 <= end:
        h = add_block(h, word(text, place) & LOW)
        place += 4
    return finish(h, word(text, place) & ((U(1) << U(8 * (end - place))) - U(1)), end - begin)


@exact
def hash_name(text, begin, end, seed, strings):
    """Return the hash of a name: with `strings`, one of digits is its number plus the seed."""
    if strings:
        total = U(0)
        place = begin
        while place < end:
            c = byte(text, place) - 48
            if not 0 <= c <= 9:
                break
            total = total * U(10) + U(c)
            place += 1
        if place == end:
            return total + seed
    return murmur(text, begin, end, seed)


@inlined
def _separates(c):
    """Return whether the byte separates features."""
    return c == 32 or c == 9 or c == 13


@inlined
def _ends(c):
    """Return whether a feature ends before this byte: a blank, a bar or the end of the line."""
    return _separates(c) or c == 124 or c == 10


@exact
def _name_end(text, place):
    while True:
        c = byte(text, place)
        if c == 58 or _ends(c):
            return place
        place += 1


@exact
def _word_end(text, place, end):
    while place < end and byte(text, place) != 32:
        place += 1
    return place


@exact
def _is_blank(text, place, end):
    while place < end:
        if byte(text, place) != 32:
            return False
        place += 1
    return True


@exact
def _head(text, line, bar):
    """Label, importance, how many of these numbers there are, what is wrong or 0, and where."""
    place = line
    for k in range(line, bar):  # VW passes over what stands before a tab
        if byte(text, k) == 9:
            place = k + 1
            break
    label = weight = 1.0
    count = 0
    while True:
        while place < bar and byte(text, place) == 32:
            place += 1
        if place == bar:
            return label, weight, count, 0, place
        after = _word_end(text, place, bar)
        if after == bar or (byte(text, place) == 39 and _is_blank(text, after, bar)):
            return label, weight, count, 0, place  # a tag
        x, behind, kind = number(text, place)
        if kind == NONE or behind != after or x == inf or x == -inf:
            wrong = LABEL
            for k in range(place, after):
                if byte(text, k) == 58:
                    wrong = STRUCTURED
            if count == 0 and after - place == 6 and (word(text, place) & U(0xFFFFFFFFFFFF)) == SHARED:
                wrong = STRUCTURED
            return label, weight, count, wrong, place
        if kind == DOUBTFUL:
            x = left(place)
        if count == 0:
            label = x
        elif count == 1:
            weight = x
        elif count == 3:
            return label, weight, count, LONG, place
        count += 1
        place = after


SHARED = U(int.from_bytes(b"shared", "little"))


@exact
def parse(data, end, room, options, state):
    """Rows from all lines between state[PLACE] and `end`, or from those before one that is wrong."""
    text = start(data)
    indptr, indices, values, labels, begins, weights = room
    mask, labelled, strings, features = options
    place, row, count = state[PLACE], state[ROWS], state[COUNT]
    doubts = bare = weighted = wrong = 0
    where = place
    while place < end:
        c = byte(text, place)
        if c == 10 or _separates(c):
            place += 1
            continue
        line, began = place, count
        finish = line_end(text, line)
        bar = line
        while bar < finish:
            step = first(word(text, bar), 124)
            bar += step
            if step < 8:
                break
        if bar >= finish:
            wrong, where = BAR, line
            break
        label, weight, given, wrong, where = _head(text, line, bar)
        if wrong == 0 and labelled and given == 0:
            wrong = TOUCHING if where < bar else UNLABELLED
        if wrong != 0:
            break
        place = bar if features else finish
        while byte(text, place) == 124:
            place += 1
            scale = 1.0
            seed = U(0)
            c = byte(text, place)
            if not _ends(c):
                after = _name_end(text, place)
                if after == place:
                    wrong, where = NAMESPACE, place
                    break
                seed = hash_name(text, place, after, U(0), strings)
                place = after
                if byte(text, place) == 58:
                    place += 1
                    scale, after, kind = number(text, place)
                    if kind != CERTAIN or not _ends(byte(text, after)) or scale == inf or scale == -inf:
                        wrong, where = SCALE, place
                        break
                    place = after
            anonymous = U(0)
            while True:
                c = byte(text, place)
                if _separates(c):
                    place += 1
                    continue
                if c == 124 or c == 10:
                    break
                after = _name_end(text, place)
                nameless = after == place
                if nameless:
                    bucket = seed + anonymous
                    anonymous += U(1)
                else:
                    bucket = hash_name(text, place, after, seed, strings)
                x = 1.0
                if byte(text, after) == 58:
                    where = after + 1
                    x, place, kind = number(text, where)
                    if kind == NONE or not _ends(byte(text, place)):
                        place = _name_end(text, where)
                        if nameless or place == where or byte(text, place) == 58 or _like_a_number(text, where, place):
                            wrong = VALUE
                            break
                        bucket = hash_name(text, where, place, bucket, strings)
                        x = 1.0
                    elif x == inf or x == -inf:
                        wrong = FINITE
                        break
                    elif kind == DOUBTFUL:
                        x = left(where)
                        doubts += 1
                else:
                    place = after
                x = x if x != x else x * scale
                if x == inf or x == -inf:
                    wrong = FINITE
                    break
                if x != 0.0:
                    indices[np.uint64(count)] = np.int64(bucket & mask)
                    values[np.uint64(count)] = x
                    count += 1
            if wrong != 0:
                break
        if wrong != 0:
            break
        labels[np.uint64(row)] = label
        weights[np.uint64(row)] = weight
        begins[np.uint64(row)] = line
        bare += given == 0
        weighted += given > 1
        row += 1
        indptr[np.uint64(row)] = count
        place += 1
    if wrong != 0:
        place, count = line, began
    state[PLACE], state[ROWS], state[COUNT] = place, row, count
    state[DOUBTS] += doubts
    state[BARE] += bare
    state[WEIGHTED] += weighted
    state[WRONG], state[WHERE] = wrong, where


@exact
def _like_a_number(text, place, end):
    """Return whether VW would take a word, or the beginning of it, for a number: digits, nan, inf, or an exponent alone."""
    if byte(text, place) == 45:
        place += 1
    letters = (word(text, place) | U(0x202020)) & U(0xFFFFFF)
    c = byte(text, place)
    if 48 <= c <= 57 or (end - place >= 3 and letters in (NAN, INF)):
        return True
    if c == 46:
        place += 1
    if (byte(text, place) | 0x20) == 101:
        place += 1
    while 48 <= byte(text, place) <= 57:
        place += 1
    return place == end


NAN = U(int.from_bytes(b"nan", "little"))
INF = U(int.from_bytes(b"inf", "little"))
