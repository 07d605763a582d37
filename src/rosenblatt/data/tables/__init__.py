"""Tables of numbers, categories and text become rows, the same way in training and at prediction."""

from rosenblatt.data.tables.sources import TableError
from rosenblatt.data.tables.table import Table

__all__ = ["Table", "TableError"]
