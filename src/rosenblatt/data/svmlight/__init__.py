"""LIBSVM text, also called SVMlight: a line is a label and the non-zeros of a row, "+1 17:0.5 402:1 # a comment".

`read` returns X and y at once, `chunks` a few thousand rows at a time in memory that does not grow with the files; both
parse on all cores, and every number is the double that `float` makes of its text.

    X, y = svmlight.read("train.svm.gz")
    for chunk in svmlight.chunks(["part-1.svm", "part-2.svm"]):
        chunk.X, chunk.y

A line may hold a label, which is a number or any word; qid:N; index:value with whole indices from 0 on and finite decimal
values; blanks and tabs between them; # and what follows it. Blank lines are ignored. Indices need not be sorted; where one
stands in a row more than once, its values are added up. Anything else is refused with file, line and column.
"""

from rosenblatt.data.parsing.line_parser import Data
from rosenblatt.data.reading import Chunk as Rows
from rosenblatt.data.svmlight.files import Svmlight, chunks, labels, read, write
from rosenblatt.data.svmlight.parser import LabelError, SvmlightError

__all__ = ["Data", "LabelError", "Rows", "Svmlight", "SvmlightError", "chunks", "labels", "read", "write"]
