"""A record of delimited text ends with its line, unless a quoted field goes on in the next; so that a file can be cut
between records, and each record have a line, the quotes are followed from the beginning. A return that stands alone ends a
line too, as it does for Arrow."""

from __future__ import annotations

import numpy as np

from rosenblatt.engine.jit import jit

_LINE_END, _RETURN = 10, 13


@jit
def walked(data, delimiter, quote, most):
    """Where the last whole record ends, and the line on which each record begins, from 0; blank lines are no records. There
    are `most` line ends and returns. A quote opens a field at its beginning only, and two in one stand for one; −1 is no
    quote. A return between records that no line end follows becomes one, in the data."""
    lines = np.empty(most + 1, np.int64)
    records, line, begin, end = 0, 0, 0, 0
    quoted, fresh = False, True
    lines[0] = 0
    at = 0
    while at < data.size:
        byte = data[at]
        if byte == _RETURN and not quoted and (at + 1 == data.size or data[at + 1] != _LINE_END):
            byte = data[at] = _LINE_END
        if quoted:
            if byte == quote:
                if at + 1 < data.size and data[at + 1] == quote:
                    at += 1
                else:
                    quoted = False
            elif byte == _LINE_END:
                line += 1
        elif byte == _LINE_END:
            line += 1
            if at > begin + 1 or (at == begin + 1 and data[begin] != _RETURN):
                records += 1
            begin = end = at + 1
            lines[records] = line
            fresh = True
        elif fresh and byte == quote:
            quoted, fresh = True, False
        else:
            fresh = byte == delimiter
        at += 1
    return end, lines[: records + 1]
