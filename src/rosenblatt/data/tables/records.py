"""A record of delimited text ends with its line, unless a quoted field goes on in the next; so that a file can be cut
between records, and a record be found by its number, the quotes are followed from the beginning."""

from __future__ import annotations

from rosenblatt._jit import jit

_LINE_END, _RETURN = 10, 13


@jit
def walked(data, delimiter, quote, wanted):
    """Where the last whole record ends, and how many lines stand before the record with the number `wanted`, from 0; blank
    lines are no records. A quote opens a field at its beginning only, and two in one stand for one; −1 is no quote."""
    records, line, begin, begins_in, end = 0, 0, 0, 0, 0
    quoted, fresh = False, True
    at = 0
    while at < data.size:
        byte = data[at]
        if quoted:
            if byte == quote:
                if at + 1 < data.size and data[at + 1] == quote:
                    at += 1
                else:
                    quoted = False
            elif byte == _LINE_END:
                line += 1
        elif byte == _LINE_END:
            if at > begin + 1 or (at == begin + 1 and data[begin] != _RETURN):
                if records == wanted:
                    return end, begins_in
                records += 1
            line += 1
            begin = end = at + 1
            begins_in = line
            fresh = True
        elif fresh and byte == quote:
            quoted, fresh = True, False
        else:
            fresh = byte == delimiter
        at += 1
    return end, begins_in
