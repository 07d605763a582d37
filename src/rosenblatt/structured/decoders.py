"""Exact search over a table of scores: the best tags of a sentence, the best projective tree, the best tree of all.

For the blackboard, and for scores that come from elsewhere. Scores may be lists or arrays of numbers; −inf forbids, and
anything that is no score is refused. Sums are taken in double precision. Hence paths are found here in plain numpy: the
tagger's compiled search works in single precision, and checks nothing. Trees are found by the graph parser's own search.
"""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any, Literal, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rosenblatt.errors import InvalidData, InvalidParameter
from rosenblatt.structured.graph import chu_liu_edmonds as _chu_liu_edmonds
from rosenblatt.structured.graph import eisner as _eisner

LARGEST = 1e300  # so that no sum of scores overflows
Scores = ArrayLike | None  # None: all 0


class BestPath(NamedTuple):
    """A path through a lattice.

    Attributes
    ----------
    path : list of int
        The numbers of the tags, from 0.
    score : float
        The sum of their scores.

    Examples
    --------
    >>> path, score = viterbi([[3, 0], [1, 2]], [[1, 0], [0, 1]])
    >>> path, score
    ([0, 0], 5.0)
    """

    path: list[int]
    score: float


class BestTree(NamedTuple):
    """A dependency tree.

    Attributes
    ----------
    heads : list of int
        The head of each word, words counted from 1 and 0 the root.
    score : float
        The sum of the scores of its arcs.

    Examples
    --------
    >>> tree = chu_liu_edmonds([[0, 9, 10, 9], [0, 0, 20, 3], [0, 30, 0, 30], [0, 11, 0, 0]])
    >>> tree.heads, tree.score
    ([2, 0, 2], 70.0)
    """

    heads: list[int]
    score: float


# Paths


class _Lattice(NamedTuple):
    """Scores of paths as sums: of a tag at its place, of a first tag, and of a step, the tag at its end the last axis."""

    emissions: NDArray  # (n, K)
    start: NDArray  # (K,)
    transitions: NDArray  # (K, K)
    triples: NDArray | None  # (K, K, K)


class _Reached(NamedTuple):
    """The best paths to a place, by the tags that what follows depends on: the last, or the last two.

    First axis: the first of these tags; second: rank among paths that end in the same; third: the other tag, if two.
    """

    score: NDArray  # −inf where there is no path
    back: NDArray | None  # [rank, tags]: which of the (tag, rank) of the place before; None where these tags are the path


@overload
def viterbi(
    emissions: ArrayLike, transitions: Scores = None, *, start: Scores = None, end: Scores = None, triples: Scores = None,
    k: Literal[1] = 1,
) -> BestPath: ...  # fmt: skip
@overload
def viterbi(
    emissions: ArrayLike, transitions: Scores = None, *, start: Scores = None, end: Scores = None, triples: Scores = None,
    k: int,
) -> Any: ...  # fmt: skip
def viterbi(
    emissions: ArrayLike, transitions: Scores = None, *, start: Scores = None, end: Scores = None, triples: Scores = None,
    k: int = 1,
) -> Any:  # fmt: skip
    """Return the path of highest score through n places with K tags each.

    A path scores the sum of all that applies to it. What is None scores 0; −inf forbids. Of equal paths the one with the
    lowest last tag comes first, then with the lowest tag before.

    Parameters
    ----------
    emissions : array-like, (n, K)
        [i, b]: the score of tag b at place i.
    transitions : array-like, (K, K), optional
        [a, b]: the score of tag b after tag a.
    start, end : array-like, (K,), optional
        [b]: the score of b as the first and as the last tag.
    triples : array-like, (K, K, K), optional
        [a, b, c]: the score of c after a and b.
    k : int, default=1
        How many paths.

    Returns
    -------
    BestPath or list of BestPath
        With k > 1 the list of the k best, best first, which is shorter where fewer paths are allowed.

    Raises
    ------
    InvalidData
        If no path is allowed.

    Examples
    --------
    >>> viterbi([[3, 0], [1, 2]], [[1, 0], [0, 1]])
    BestPath(path=[0, 0], score=5.0)
    >>> viterbi([[3, 0], [1, 2]], [[1, 0], [0, 1]], k=3)
    [BestPath(path=[0, 0], score=5.0), BestPath(path=[0, 1], score=5.0), BestPath(path=[1, 1], score=3.0)]
    """
    lattice = _lattice(emissions, transitions, start, triples)
    n, tags = lattice.emissions.shape
    ends = _table_or_zeros("end", end, (tags,))
    if not isinstance(k, Integral) or k < 1:
        raise InvalidParameter("k", k, "a whole number ≥ 1")
    if n == 0:
        return BestPath([], 0.0) if k == 1 else [BestPath([], 0.0)]
    places = _forward(lattice, k)
    last = places[-1].score
    # Ties go by the last tag, so its axis comes first: (last, rank) or (last, before, rank).
    last = last + ends[:, None] if last.ndim == 2 else last.transpose(2, 0, 1) + ends[:, None, None]
    found = []
    for at in np.argsort(-last, axis=None, kind="stable")[:k]:
        *states, rank = (int(i) for i in np.unravel_index(at, last.shape))
        score = float(last.flat[at])
        if score > -math.inf:
            found.append(BestPath(_trace(places, states[::-1], rank), score))
    if not found:
        raise InvalidData(f"each of the paths through {n} places with {tags} tags has a score of −inf", hint="forbid less")
    return found[0] if k == 1 else found


def viterbi_chart(
    emissions: ArrayLike, transitions: Scores = None, *, start: Scores = None, triples: Scores = None
) -> NDArray:
    """Return the scores of the best path to each place that ends in each tag: what Viterbi's algorithm writes down.

    Where there is no `end`, the best path scores chart[-1].max(); else (chart[-1] + end).max().

    Parameters
    ----------
    emissions, transitions, start, triples : array-like
        As for `viterbi`.

    Returns
    -------
    ndarray, (n, K)

    Examples
    --------
    >>> viterbi_chart([[3, 0], [1, 2]], [[1, 0], [0, 1]])
    array([[3., 0.],
           [5., 5.]])
    """
    lattice = _lattice(emissions, transitions, start, triples)
    if len(lattice.emissions) == 0:
        return lattice.emissions
    return np.stack([score.max(axis=1 if score.ndim == 2 else (0, 1)) for score, _ in _forward(lattice, 1)])


def _forward(lattice: _Lattice, k: int) -> list[_Reached]:
    """The k best paths to every place, place after place."""
    emissions, start, step, triples = lattice
    places = [_Reached((start + emissions[0])[:, None], None)]
    for i, emission in enumerate(emissions[1:], 1):
        score = places[-1].score
        if i == 1 and triples is not None:  # two tags are the path
            places.append(_Reached((score + step + emission)[:, None, :], None))
            step = step + triples
            continue
        # The first tag of the step is forgotten: of all (tag, rank) only the best stay.
        through = (score[..., None] + step[:, None]).reshape(-1, *step.shape[1:])
        back = np.argsort(-through, axis=0, kind="stable")[:k]
        places.append(_Reached((np.take_along_axis(through, back, axis=0) + emission).swapaxes(0, 1), back))
    return places


def _trace(places: list[_Reached], tags: list[int], rank: int) -> list[int]:
    """The path that ends in these tags and has this rank among those that do."""
    path = tags[::-1]
    for before, (_, back) in zip(places[-2::-1], places[:0:-1], strict=True):
        if back is None:
            break
        tag, rank = divmod(int(back[(rank, *tags)]), before.score.shape[1])
        tags = [tag, *tags[:-1]]
        path.append(tag)
    return path[::-1]


# Trees


def eisner(scores: ArrayLike, *, siblings: Scores = None, single_root: bool = True) -> BestTree:
    """Return the projective tree of highest score (Eisner 1996): no arc crosses another, nor one from the root.

    Scores of −inf forbid. Of equal trees it is always the same one.

    Parameters
    ----------
    scores : array-like, (n + 1, n + 1)
        [h, m]: the score of the arc from head h to modifier m, words counted from 1 and 0 the root. Column 0 and the
        diagonal are not looked at.
    siblings : array-like, (n + 1, n + 1, n + 1), optional
        [h, m, s]: the score of the modifier m of h, where s is the next modifier of h from m towards h, or h itself where
        there is none (McDonald and Pereira 2006). What is no such triple is not looked at.
    single_root : bool, default=True
        Whether the root has one modifier.

    Returns
    -------
    BestTree

    Raises
    ------
    InvalidData
        If every tree is forbidden.

    Examples
    --------
    >>> eisner([[0, 9, 10, 9], [0, 0, 20, 3], [0, 30, 0, 30], [0, 11, 0, 0]])
    BestTree(heads=[2, 0, 2], score=70.0)
    """
    table = _arcs(scores)
    if siblings is None:
        return _tree(_eisner.best_tree(table, bool(single_root)), table, None, "projective tree")
    size = len(table)
    triples = _table_or_zeros("siblings", siblings, (size, size, size), looked_at=_neighbours(size))
    heads = _eisner.best_tree_with_siblings(table, triples, bool(single_root))
    return _tree(heads, table, triples, "projective tree")


def chu_liu_edmonds(scores: ArrayLike, *, single_root: bool = True) -> BestTree:
    """Return the tree of highest score, arcs crossing or not (Chu and Liu 1965; Edmonds 1967).

    Scores of −inf forbid. Of equal trees it is always the same one.

    Parameters
    ----------
    scores : array-like, (n + 1, n + 1)
        [h, m]: the score of the arc from head h to modifier m, words counted from 1 and 0 the root. Column 0 and the
        diagonal are not looked at.
    single_root : bool, default=True
        Whether the root has one modifier.

    Returns
    -------
    BestTree

    Raises
    ------
    InvalidData
        If every tree is forbidden.

    Examples
    --------
    >>> chu_liu_edmonds([[0, 9, 10, 9], [0, 0, 20, 3], [0, 30, 0, 30], [0, 11, 0, 0]])
    BestTree(heads=[2, 0, 2], score=70.0)
    """
    table = _arcs(scores)
    return _tree(_chu_liu_edmonds.best_tree(table, bool(single_root)), table, None, "tree")


def _neighbours(size: int) -> NDArray:
    """[h, m, s]: whether s can be the next modifier of h from m towards h, or is h."""
    h, m, s = np.indices((size, size, size))
    return (m > 0) & (m != h) & ((s == h) | (np.minimum(h, m) < s) & (s < np.maximum(h, m)))


def _tree(heads: NDArray, scores: NDArray, siblings: NDArray | None, kind: str) -> BestTree:
    """The tree with its score, taken from its parts; a kernel that finds no tree answers with a forbidden one."""
    found = heads.tolist()
    arcs = list(zip(found, range(1, len(found) + 1), strict=True))
    parts = [scores[arc] for arc in arcs]
    if siblings is not None:
        for h, m in arcs:
            between = [s for s in range(min(h, m) + 1, max(h, m)) if found[s - 1] == h]
            nearest = h if not between else max(between) if h < m else min(between)
            parts.append(siblings[h, m, nearest])
    score = math.fsum(parts)
    if score == -math.inf:
        raise InvalidData(
            f"each {kind} over {len(found)} words has a score of −inf", hint="forbid less", settings={"single_root": False}
        )
    return BestTree(found, score)


# What is given


def _lattice(emissions: ArrayLike, transitions: Scores, start: Scores, triples: Scores) -> _Lattice:
    table = _numbers("emissions", emissions)
    if table.ndim != 2 or table.shape[1] == 0:
        raise _wrong_shape("emissions", table, "(n, K), a row for each place and a column for each tag")
    K = table.shape[1]
    return _Lattice(
        _check_scores("emissions", table),
        _table_or_zeros("start", start, (K,)),
        _table_or_zeros("transitions", transitions, (K, K)),
        None if triples is None else _table_or_zeros("triples", triples, (K, K, K)),
    )


def _arcs(scores: ArrayLike) -> NDArray:
    table = _numbers("scores", scores)
    size = len(table) if table.ndim else 0
    if size == 0 or table.shape != (size, size):
        raise _wrong_shape("scores", table, "(n+1, n+1): [head, modifier], 0 the root")
    looked_at = ~np.eye(size, dtype=bool)
    looked_at[:, 0] = False
    return _check_scores("scores", table, looked_at)


def _table_or_zeros(name: str, value: Scores, shape: tuple[int, ...], looked_at: NDArray | None = None) -> NDArray:
    """Scores of this shape; 0 where they are not given."""
    if value is None:
        return np.zeros(shape)
    table = _numbers(name, value)
    if table.shape != shape:
        raise _wrong_shape(name, table, str(shape))
    return _check_scores(name, table, looked_at)


def _numbers(name: str, value: ArrayLike) -> NDArray:
    """A float64 array of its own."""
    try:
        table = np.asarray(value)
    except ValueError:
        raise InvalidData(f"{name} must be a table; its rows differ in length") from None
    if table.dtype.kind not in "biuf":
        raise InvalidData(f"{name} must be whole numbers or floats; it has the type {table.dtype}")
    return np.array(table, np.float64, order="C")


def _check_scores(name: str, table: NDArray, looked_at: NDArray | None = None) -> NDArray:
    """The table if all in it are scores; what is not looked at becomes 0."""
    if looked_at is not None:
        table[~looked_at] = 0.0
    wrong = ~(np.abs(table) <= LARGEST) & (table != -np.inf)
    if wrong.any():
        place = np.argwhere(wrong)[0].tolist()
        raise InvalidData(
            f"{name}{place} is {table[tuple(place)]}; a score is a number up to {LARGEST:g} in size, or −inf, which forbids"
        )
    return table


def _wrong_shape(name: str, table: NDArray, expected: str) -> InvalidData:
    return InvalidData(f"{name} must have the shape {expected}; it has {table.shape}")
