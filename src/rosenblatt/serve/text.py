"""A text becomes named features: its words, and runs of neighbouring words, each counted once.

The names are the words themselves, so that weights and contributions can be read. Nothing is learned from the texts, so an
example has the same features whenever it comes, which is what a stream needs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from rosenblatt.errors import InvalidParameter, UnknownParameter
from rosenblatt.serve.limits import WIDEST_CHARACTER

_WORD = re.compile(r"\w+")
_MOST_WORDS = 5  # in a run
NAME_HEAD = 76  # bytes at most that a str of Python has besides its characters


class TextFeatures(NamedTuple):
    """How a text becomes features."""

    words: int = 2  # the longest run of words that is a feature
    lowercase: bool = True

    @classmethod
    def from_settings(cls, settings: Mapping[str, object] | None) -> TextFeatures:
        """Return the features that settings of JSON describe.

        Parameters
        ----------
        settings : mapping, optional
            `words`, the longest run of words that is a feature, and `lowercase`. None: the defaults.

        Returns
        -------
        features : TextFeatures

        Raises
        ------
        InvalidParameter
            If a value is not allowed, or there is no such setting.
        """
        settings = dict(settings or {})
        for name in settings:
            if name not in cls._fields:
                raise UnknownParameter("text", name, settings[name], hint=f"text has {' and '.join(cls._fields)}")
        found = cls(**settings)  # type: ignore[arg-type]  # checked in the next lines
        if type(found.words) is not int or not 1 <= found.words <= _MOST_WORDS:
            raise InvalidParameter("words", found.words, f"a whole number from 1 to {_MOST_WORDS}")
        if not isinstance(found.lowercase, bool):
            raise InvalidParameter("lowercase", found.lowercase, "true or false")
        return found

    def most_name_bytes(self, size: int, count: int) -> int:
        """Return the most memory that the names of features take that a text of JSON gives.

        Parameters
        ----------
        size : int
            The bytes of the JSON, where names stand, and texts whose words each become part of several names.
        count : int
            How many names there are.

        Returns
        -------
        bytes : int
        """
        runs = self.words * (self.words + 1) // 2  # words in the runs that begin at a word
        return NAME_HEAD * count + WIDEST_CHARACTER * (runs * size + self.words * count)

    def row(self, text: str) -> dict[str, float]:
        """Return the features of a text.

        Parameters
        ----------
        text : str
            The text.

        Returns
        -------
        row : dict
            1.0 for each word and each run of words.
        """
        words = _WORD.findall(text.lower() if self.lowercase else text)
        row = dict.fromkeys(words, 1.0)
        for size in range(2, self.words + 1):
            row.update(dict.fromkeys((" ".join(words[at : at + size]) for at in range(len(words) - size + 1)), 1.0))
        return row
