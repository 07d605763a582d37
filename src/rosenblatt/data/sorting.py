"""The non-zeros of a row stand in the order of their columns, each column once. Compiled, in place."""

from __future__ import annotations

from rosenblatt._jit import exact

GAPS = (1750, 701, 301, 132, 57, 23, 10, 4, 1)  # Shell's method with the gaps of Ciura 2001


@exact
def put_in_order(indptr, indices, values):
    """Sort each row, and add up the values of a column that stands in it more than once; how many non-zeros are left."""
    count = begin = 0
    for row in range(len(indptr) - 1):
        end = indptr[row + 1]
        length = end - begin
        for gap in GAPS:
            for k in range(gap, length):
                index, value = indices[begin + k], values[begin + k]
                place = k
                while place >= gap and indices[begin + place - gap] > index:
                    indices[begin + place] = indices[begin + place - gap]
                    values[begin + place] = values[begin + place - gap]
                    place -= gap
                indices[begin + place], values[begin + place] = index, value
        kept = count
        for k in range(begin, end):
            if count > kept and indices[count - 1] == indices[k]:
                values[count - 1] += values[k]
            else:
                indices[count], values[count] = indices[k], values[k]
                count += 1
        begin = end
        indptr[row + 1] = count
    return count
