"""The compiled loop over lines of LIBSVM text: label, an optional qid, then index:value for each non-zero.

There must be room for a row per line and a non-zero per colon. See `parsing.line_parser` for what it does not decide.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

import numpy as np

from rosenblatt.data.parsing.decimals import DOUBTFUL, NONE, left, more, number
from rosenblatt.data.parsing.line_parser import COUNT, DOUBTS, OWN, PLACE, ROWS, UNSORTED, WHERE, WRONG
from rosenblatt.data.parsing.swar import U, blank, byte, digits, ends, line_end, start, value, word
from rosenblatt.engine.jit import exact

SMALLEST, LARGEST = OWN, OWN + 1  # index so far, in `state`

LABEL, WORD, UNLABELLED, FEATURE, COLON, VALUE, FINITE, LARGE, ZERO, QUERY = range(1, 11)

QID = U(int.from_bytes(b"qid:", "little"))


class LineOptions(NamedTuple):
    """What lines may contain."""

    lowest: int  # the index of the first column
    highest: int  # and of the last one that is allowed
    labelled: bool  # whether each line must have a label
    words: bool  # whether labels are words: each is left for the caller


@exact
def next_row(text, place, end):
    """Return the place of the first word of the next line that has one; `end` or more if there is none."""
    while place < end:
        c = byte(text, place)
        if blank(c):
            place += 1
        elif c == 35:
            place = line_end(text, place) + 1
        else:
            break
    return place


@exact
def heads(data, begin, end, places):
    """Return how many lines have a word, and the place of the first one of each."""
    text = start(data)
    rows = 0
    place = next_row(text, begin, end)
    while place < end:
        places[np.uint64(rows)] = place
        rows += 1
        place = next_row(text, line_end(text, place) + 1, end)
    return rows


@exact
def _label(text, place, words):
    """Return the label at a place, NaN if it is left for the caller; where its word ends; and what is wrong, or 0."""
    x, after, kind = number(text, place)
    if kind != NONE and ends(byte(text, after)) and not words:
        if x == inf or x == -inf:
            return x, after, WORD
        return left(place) if kind == DOUBTFUL else x, after, 0
    after = place
    c = byte(text, after)
    while not ends(c) and c != 58:
        if c < 32 or c == 127:
            return x, after, LABEL
        after += 1
        c = byte(text, after)
    if c == 58:
        return x, after, UNLABELLED
    return left(place), after, 0 if words else WORD


@exact
def parse(data, end, room, options, state):
    """Rows from all lines between state[PLACE] and `end`, or from those before one that is wrong."""
    text = start(data)
    indptr, indices, values, labels, begins, queries = room
    lowest, highest, labelled, words = options
    span = U(highest - lowest)
    place, row, count = state[PLACE], state[ROWS], state[COUNT]
    smallest, largest = state[SMALLEST], state[LARGEST]
    unsorted = False
    doubts = wrong = 0
    where = place = next_row(text, place, end)
    while place < end:
        began, least, most = count, smallest, largest
        where = line = place
        label, place, wrong = _label(text, line, words)
        if wrong == UNLABELLED and not labelled:
            place, wrong = line, 0
        if wrong != 0:
            place = line
            break
        query = np.int64(0)
        previous = np.int64(-1)
        while True:
            c = byte(text, place)
            if c == 32:
                place += 1
                c = byte(text, place)
            where = place
            eight = word(text, place)
            length = digits(eight)
            if 0 < length < 8:
                index = np.int64(value(eight, length))
                place += length
            elif length == 0:
                if c == 10:
                    break
                if blank(c):
                    place += 1
                    continue
                if c == 35:
                    place = line_end(text, place)
                    break
                if (eight & U(0xFFFFFFFF)) == QID:
                    asked, place = more(text, place + 4, U(0))
                    query = np.int64(asked)
                    if 0 < place - where - 4 < 19 and ends(byte(text, place)):
                        continue
                    wrong = QUERY
                    break
                wrong = FEATURE
                break
            else:
                long, place = more(text, place, U(0))
                index = np.int64(long)
                if place - where > 19 or long > U(0x7FFFFFFFFFFFFFFF):
                    wrong = LARGE
                    break
            if byte(text, place) != 58:
                wrong = COLON
                break
            column = index - lowest
            if U(column) > span:
                wrong = ZERO if column < 0 else LARGE
                break
            place += 1
            x, after, kind = number(text, place)
            if kind == NONE or not ends(byte(text, after)):
                where = place
                wrong = VALUE
                break
            if x == inf or x == -inf:
                where = place
                wrong = FINITE
                break
            if kind == DOUBTFUL:
                x = left(place)
                doubts += 1
            place = after
            unsorted |= index <= previous
            previous = index
            smallest = min(smallest, index)
            largest = max(largest, index)
            indices[np.uint64(count)] = column
            values[np.uint64(count)] = x
            count += 1
        if wrong != 0:
            count, smallest, largest, place = began, least, most, line
            break
        labels[np.uint64(row)] = label
        begins[np.uint64(row)] = line
        queries[np.uint64(row)] = query
        row += 1
        indptr[np.uint64(row)] = count
        place = next_row(text, place, end)
    state[PLACE], state[ROWS], state[COUNT] = place, row, count
    state[SMALLEST], state[LARGEST] = smallest, largest
    state[UNSORTED] |= unsorted
    state[DOUBTS] += doubts
    state[WRONG], state[WHERE] = wrong, where
