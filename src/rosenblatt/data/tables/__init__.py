"""Tables of numbers, categories and text become rows, the same way in training and ever after."""

from rosenblatt.data.tables.files import TableError
from rosenblatt.data.tables.table import Table

__all__ = ["Table", "TableError"]
