"""Vowpal Wabbit text, read as VW reads it: "1 2.0 'tag|words free:2 offer |length:0.1 characters:120".

Features are hashed to the buckets that VW gives them, so that a column of X is the index of a weight in VW (its constant
feature is left out, for learners here have an intercept). A label is a number; the importance of a row is its weight; base
and tag are passed over. As VW does, features of value 0 are left out. Labels and values that are not finite numbers, which
VW takes for 0 or leaves out, are refused with file, line and column.

    X, y = vw.read("train.vw.gz", bits=20)
    for chunk in vw.chunks("train.vw", bits=20):
        chunk.X, chunk.y, chunk.weight

Examples of several lines and the labels of contextual bandits ("shared | …", "1:2:0.5 | …") are refused.
"""

from rosenblatt.data.parsing.line_parser import Data
from rosenblatt.data.vw.files import Vw, VwError, chunks, labels, read

__all__ = ["Data", "Vw", "VwError", "chunks", "labels", "read"]
