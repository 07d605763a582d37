"""What dependency parsers share, whatever finds the tree: sentences become arrays of hashes, trees become heads and labels,
and no answer leaves that is not a tree."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from numbers import Integral
from operator import ne
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rosenblatt.engine.blocks import available_threads
from rosenblatt.engine.jit import jit
from rosenblatt.estimators.parameters import Flag
from rosenblatt.structured import trees
from rosenblatt.structured.base import Structured
from rosenblatt.structured.features import templates
from rosenblatt.structured.features.fields import Fields

_PART = 64  # sentences that a thread takes at a time
_FARTHEST = 2**31 - 1


class Corpus(NamedTuple):
    """Sentences end to end."""

    values: NDArray  # (words, attributes) uint64: what each word is
    starts: NDArray  # (sentences + 1,) int64
    heads: NDArray  # (words,) int32: 1-based in the sentence, 0 for a root; −1 where there is no gold tree
    labels: NDArray  # (words,) int32: numbers of names, −1 where the name is not known

    def __len__(self) -> int:
        return len(self.starts) - 1


class DependencyParser(Structured):
    """A parser: `fit(sentences, trees)`, `predict(sentences)`.

    A sentence is a list of tokens, a token a tuple of texts as named by `fields`; a tree is a list of (head, label), heads
    counted from 1 and 0 for the root. What searches for trees, a subclass says.
    """

    fields: Sequence[str] = ("form", "upos", "xpos")
    templates: Sequence[str] | None = None
    single_root: bool = True
    labelled: bool = True

    _own: ClassVar[Mapping[str, Any]] = MappingProxyType({**Structured._own, "single_root": Flag(), "labelled": Flag()})
    _places: ClassVar[tuple[str, ...]] = ()  # what templates may look at
    _state_attributes: ClassVar[tuple[str, ...]] = ()  # what they may ask that is no attribute of a word

    @property
    def memory_(self) -> int:
        """The bytes that the weights take while learning."""
        return self._fitted().bytes()

    @abstractmethod
    def _every_template(self) -> Sequence[str]:
        """All templates that are looked at: those given, or those made for the fields."""

    def _read_fields(self) -> Fields:
        """How tokens are read, from `fields` and what the templates name of them."""
        names = tuple(self.fields)
        if isinstance(self.fields, str) or not names or len(set(names)) < len(names):
            raise ValueError(f"fields must be a list of different names, the form first; got {self.fields!r}")
        allowed = Fields.names(names)
        every = templates.attributes_used(self._every_template())
        used = [name for name in every if name not in self._state_attributes]
        for name in used:
            if name not in allowed:
                raise ValueError(f"a template names {name!r}, but tokens have {', '.join(allowed)}; see `fields`")
        return Fields(names, used)

    def _read_trees(self, y: Sequence, starts: NDArray, number_of: dict[str, int], learn: bool) -> tuple[NDArray, NDArray]:
        """Heads and numbers of labels of all words; with `learn`, new labels are entered into `number_of`."""
        heads = np.empty(int(starts[-1]), np.int32)
        labels = np.empty(int(starts[-1]), np.int32)
        for number, tree in enumerate(y):
            start, end = int(starts[number]), int(starts[number + 1])
            if isinstance(tree, str) or not hasattr(tree, "__len__"):
                raise TypeError(f"sentence {number}: a tree is a list of (head, label); got {tree!r}")
            if len(tree) != end - start:
                raise ValueError(f"sentence {number} has {end - start} words, but its tree has {len(tree)}")
            for i, part in enumerate(tree):
                heads[start + i], label = self._arc(part, number, i)
                labels[start + i] = number_of.setdefault(label, len(number_of)) if learn else number_of.get(label, -1)
            trees.check(heads[start:end], number)
        return heads, labels

    def _arc(self, part: Any, number: int, i: int) -> tuple[int, str]:
        """The head and the label of a word; where there are no labels, the head alone will do."""
        place = f"sentence {number}, word {i + 1}"
        if not self.labelled and isinstance(part, Integral) and not isinstance(part, bool):
            part = (part, "_")
        try:
            head, label = part
        except (TypeError, ValueError):
            raise ValueError(f"{place}: a tree is a list of (head, label); got {part!r}") from None
        if isinstance(part, str) or isinstance(head, bool) or not isinstance(head, Integral) or abs(int(head)) > _FARTHEST:
            raise ValueError(f"{place}: the head must be a whole number, 0 for the root; got {head!r}")
        if self.labelled and not isinstance(label, str):
            raise TypeError(f"{place}: the label must be text; got {label!r}")
        return int(head), label if self.labelled else "_"

    def _wrong(self, gold: Sequence, guessed: Sequence) -> tuple[int, int]:
        """(words whose head or label is wrong, words); of heads alone where there are no labels."""
        wrong = parts = 0
        for number, (tree, guess) in enumerate(zip(gold, guessed, strict=True)):
            if len(tree) != len(guess):
                raise ValueError(f"sentence {number} has {len(guess)} words, but its tree has {len(tree)}")
            arcs = [self._arc(part, number, i) for i, part in enumerate(tree)]
            wrong += sum(map(ne, arcs, guess))
            parts += len(tree)
        return wrong, parts

    def _refuse_roots(self, heads: NDArray, starts: NDArray) -> None:
        if self.single_root and (several := first_broken(heads, starts, True)) >= 0:
            raise ValueError(f"sentence {several} has more than one word with head 0; single_root=False allows that")

    def _in_parts(self, parse: Callable[[slice], None], sentences: int) -> None:
        """Call `parse` for parts of the sentences, by as many threads as `n_jobs` allows; its argument cuts `starts`."""
        parts = [slice(first, first + _PART + 1) for first in range(0, sentences, _PART)]
        threads = min(available_threads(self.n_jobs), len(parts))
        if threads > 1:
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(parse, parts))
        else:
            for part in parts:
                parse(part)

    @property
    def labels_(self) -> list[str]:
        """The labels of arcs, in the order in which they were met."""
        return list(self._fitted().labels)

    @staticmethod
    def _written_trees(heads: NDArray, labels: NDArray, names: Sequence[str], starts: NDArray, single_root: bool) -> list:
        """The answers as lists of (head, label); an answer that is no tree is a defect, and said so."""
        named = list(map(list(names).__getitem__, labels.tolist())) if len(names) else ["_"] * len(labels)
        pairs = list(zip(heads.tolist(), named, strict=True))
        broken = first_broken(heads, starts, single_root)
        if broken >= 0:
            raise AssertionError(f"sentence {broken}: the parser's answer is no tree; please report this")
        return [pairs[start:end] for start, end in pairwise(starts.tolist())]


@jit
def first_broken(heads, starts, single_root):
    """The first sentence whose heads are no tree, or have several roots where one is asked for; −1 if there is none."""
    for sentence in range(starts.size - 1):
        part = heads[starts[sentence] : starts[sentence + 1]]
        roots = 0
        for i in range(part.size):
            roots += part[i] == 0
        if trees.first_lost(part) != 0 or (single_root and roots > 1):
            return sentence
    return -1
