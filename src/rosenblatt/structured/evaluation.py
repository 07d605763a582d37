"""An evaluation counts what gold has, what the guess has and what they have in common, and every figure is a ratio of the
three: precision = common/guess, recall = common/gold, F1 = 2·common/(gold + guess), and 0 where there is nothing to count.

    tags    one tag a word: accuracy, on known and unknown words too, and precision, recall and F1 of each tag
    spans   chunks and entities in IOB and its kin, counted as the conlleval of CoNLL-2000 and CoNLL-2003 does
    trees   heads and relations, UAS, LAS and CLAS, counted as the script of CoNLL 2018 does with gold tokens

What they return is data, and prints itself as a table. Ratios lie between 0 and 1, and are printed as percentages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rosenblatt.errors import InvalidData, InvalidDataType

MOST_LABELS = 20  # up to which a table of confusions has a row and a column for each

# The relations of Universal Dependencies between content words, which are those that CLAS counts (CoNLL 2018 shared task).
# The others are the function words' (aux, case, cc, clf, cop, det, mark) and punct.
CONTENT = frozenset({
    "acl", "advcl", "advmod", "amod", "appos", "ccomp", "compound", "conj", "csubj", "dep", "discourse", "dislocated",
    "expl", "fixed", "flat", "goeswith", "iobj", "list", "nmod", "nsubj", "nummod", "obj", "obl", "orphan", "parataxis",
    "reparandum", "root", "vocative", "xcomp",
})  # fmt: skip

# Where in its chunk a tag says that its word stands: B begins it, I is inside, E ends it, S is all of it, O is in none.
# BILOU writes L for E and U for S.
POSITIONS = {"B": "B", "I": "I", "O": "O", "E": "E", "S": "S", "L": "E", "U": "S"}

Sentences = Iterable[Sequence[Any]]


class Share(NamedTuple):
    """A share of right answers: `correct` of `total`.

    Attributes
    ----------
    correct, total : int
        How many answers are right, and how many there are.

    Examples
    --------
    >>> share = Share(correct=3, total=4)
    >>> share.value, str(share)
    (0.75, '75.00 (3 of 4)')
    """

    correct: int
    total: int

    @property
    def value(self) -> float:
        """The share, from 0 to 1."""
        return _ratio(self.correct, self.total)

    def __str__(self) -> str:
        return f"{100 * self.value:.2f} ({self.correct} of {self.total})"


class Score(NamedTuple):
    """Counts for precision, recall and F1.

    Attributes
    ----------
    correct : int
        The number of items that gold and the guess have in common.
    gold : int
        The number of items in gold.
    guessed : int
        The number of items in the guess.

    Examples
    --------
    >>> score = Score(correct=6, gold=8, guessed=12)
    >>> score.precision, score.recall, score.f1
    (0.5, 0.75, 0.6)
    """

    correct: int
    gold: int
    guessed: int

    @property
    def precision(self) -> float:
        """The share of the guess that is right."""
        return _ratio(self.correct, self.guessed)

    @property
    def recall(self) -> float:
        """The share of gold that is found."""
        return _ratio(self.correct, self.gold)

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        return _ratio(2 * self.correct, self.gold + self.guessed)


class Confusion(NamedTuple):
    """The number of times that each gold label was predicted as each label.

    >>> print(Confusion({("NOUN", "NOUN"): 4, ("NOUN", "VERB"): 1, ("VERB", "VERB"): 2}))
          NOUN  VERB
    NOUN     4     1
    VERB     ·     2

    Attributes
    ----------
    counts : mapping
        The number of (gold, guess) pairs.
    """

    counts: Mapping[tuple[Any, Any], int]

    @property
    def labels(self) -> list[Any]:
        """All labels, the most frequent in gold first."""
        gold = Counter[Any]()
        for (label, guess), count in self.counts.items():
            gold[label] += count
            gold[guess] += 0
        return sorted(gold, key=lambda label: (-gold[label], str(label)))

    @property
    def matrix(self) -> NDArray[np.int64]:
        """The counts in the order of `labels`: (gold, guess) int64."""
        place = {label: number for number, label in enumerate(self.labels)}
        matrix = np.zeros((len(place), len(place)), dtype=np.int64)
        for (gold, guess), count in self.counts.items():
            matrix[place[gold], place[guess]] = count
        return matrix

    @property
    def scores(self) -> dict[Any, Score]:
        """The score of each label, in the order of `labels`."""
        matrix = self.matrix
        columns = (matrix.diagonal().tolist(), matrix.sum(axis=1).tolist(), matrix.sum(axis=0).tolist())
        return {label: Score(*numbers) for label, *numbers in zip(self.labels, *columns, strict=True)}

    def worst(self, most: int = 10) -> list[tuple[Any, Any, int]]:
        """Return the most frequent confusions.

        Parameters
        ----------
        most : int, default=10
            How many.

        Returns
        -------
        list of (gold, guess, count)
        """
        wrong = [(gold, guess, count) for (gold, guess), count in self.counts.items() if gold != guess]
        return sorted(wrong, key=lambda row: (-row[2], str(row[0]), str(row[1])))[:most]

    def __str__(self) -> str:
        """Gold labels in rows, guesses in columns; of more than twenty labels, the twenty most frequent confusions."""
        labels = self.labels
        if len(labels) > MOST_LABELS:
            return _table(("gold", "guess", "count"), self.worst(MOST_LABELS), names=2)
        rows = ([label, *(count or "·" for count in row)] for label, row in zip(labels, self.matrix.tolist(), strict=True))
        return _table(("", *labels), rows)


class TagScores(NamedTuple):
    """The scores of tags, as `tags` computes them.

    Attributes
    ----------
    words : Share
        The words whose tag is right.
    sentences : Share
        The sentences with every tag right.
    known, unknown : Share or None
        Words that are in the set of known words, and words that are not.
    confusion : Confusion
        The confusions of tags.

    Examples
    --------
    >>> scores = tags([["DET", "NOUN"], ["VERB"]], [["DET", "VERB"], ["VERB"]])
    >>> print(scores.words, scores.sentences, sep="; ")
    66.67 (2 of 3); 50.00 (1 of 2)
    >>> scores.confusion.counts["NOUN", "VERB"]
    1
    """

    words: Share
    sentences: Share
    known: Share | None
    unknown: Share | None
    confusion: Confusion

    @property
    def accuracy(self) -> float:
        """The share of words whose tag is right."""
        return self.words.value

    @property
    def per_tag(self) -> dict[Any, Score]:
        """The score of each tag."""
        return self.confusion.scores

    def __str__(self) -> str:
        lines = [f"accuracy {self.words}, whole sentences {self.sentences}"]
        if self.known is not None and self.unknown is not None:
            unknown = f"unknown words {self.unknown}" if self.unknown.total else "no unknown words"
            lines.append(f"known words {self.known}, {unknown}")
        return "\n".join([*lines, "", _scores("tag", self.per_tag)])


class SpanScores(NamedTuple):
    """The scores of chunks or entities, as `spans` computes them.

    Attributes
    ----------
    words : Share
        The words whose tag is right.
    total : Score
        The score of all chunks.
    per_type : dict
        The score of each type, in the order of their names, as conlleval prints them.

    Examples
    --------
    >>> scores = spans([["B-NP", "I-NP", "O", "B-NP"]], [["B-NP", "I-NP", "O", "B-VP"]])
    >>> scores.f1, scores.per_type["NP"].recall
    (0.5, 0.5)
    """

    words: Share
    total: Score
    per_type: dict[str, Score]

    @property
    def accuracy(self) -> float:
        """The share of words whose tag is right."""
        return self.words.value

    @property
    def precision(self) -> float:
        """The share of the guess that is right."""
        return self.total.precision

    @property
    def recall(self) -> float:
        """The share of gold that is found."""
        return self.total.recall

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        return self.total.f1

    def __str__(self) -> str:
        return f"accuracy {self.words}\n\n" + _scores("type", {**self.per_type, "all": self.total})


class TreeScores(NamedTuple):
    """The scores of dependency trees, as `trees` computes them.

    Attributes
    ----------
    heads : Share
        The words whose head is right.
    labelled : Share
        The words whose head and relation are right.
    content : Score
        The same for relations between content words.
    whole_heads, whole : Share
        The sentences with every head right, and with every head and relation right.
    per_label : dict
        The score of each relation; a word counts if its head is right too.
    confusion : Confusion
        The confusions of relations, whatever the heads.

    Examples
    --------
    >>> scores = trees([[(2, "det"), (3, "nsubj"), (0, "root")]], [[(2, "det"), (3, "obj"), (0, "root")]])
    >>> print(scores.heads, scores.labelled, sep="; ")
    100.00 (3 of 3); 66.67 (2 of 3)
    """

    heads: Share
    labelled: Share
    content: Score
    whole_heads: Share
    whole: Share
    per_label: dict[Any, Score]
    confusion: Confusion

    @property
    def uas(self) -> float:
        """The share of words whose head is right (unlabelled attachment)."""
        return self.heads.value

    @property
    def las(self) -> float:
        """The share of words whose head and relation are right (labelled attachment)."""
        return self.labelled.value

    @property
    def clas(self) -> float:
        """The F1 of the relations between content words."""
        return self.content.f1

    def __str__(self) -> str:
        lines = [f"UAS {self.heads}", f"LAS {self.labelled}"]
        if self.content.gold:
            lines.append(f"CLAS {100 * self.clas:.2f} ({self.content.gold} content words)")
        lines.append(f"whole trees {self.whole}, without relations {self.whole_heads}")
        return "\n".join([*lines, "", _scores("relation", self.per_label)])


def tags(
    gold: Sentences, guess: Sentences, words: Sentences | None = None, known: Collection[Hashable] | None = None
) -> TagScores:
    """Compute the accuracy of tags, and precision, recall and F1 of each tag.

    Parameters
    ----------
    gold, guess : iterable of sequences
        The tags of each sentence.
    words : iterable of sequences, optional
        The words of each sentence.
    known : collection, optional
        The words that training saw. With `words`, it gives the accuracy on known and unknown words apart.

    Returns
    -------
    TagScores

    Examples
    --------
    >>> scores = tags([["DET", "NOUN"], ["VERB"]], [["DET", "VERB"], ["VERB"]])
    >>> scores.accuracy, scores.per_tag["VERB"].precision
    (0.6666666666666666, 0.5)
    >>> print(scores)
    accuracy 66.67 (2 of 3), whole sentences 50.00 (1 of 2)
    <BLANKLINE>
    tag   precision  recall      F1  gold  guessed
    DET      100.00  100.00  100.00     1        1
    NOUN       0.00    0.00    0.00     1        0
    VERB      50.00  100.00   66.67     1        2
    """
    if (words is None) != (known is None):
        raise InvalidData("words and known must be passed together: the words of each sentence, and those of training")
    counts: Counter[tuple[bool, Any, Any]] = Counter()  # of (known, gold, guess)
    whole: Counter[bool] = Counter()
    seen = frozenset(known or ())
    for true, found, *forms in _align(gold=gold, guess=guess, **({} if words is None else {"words": words})):
        counts.update(zip([form in seen for form in (forms[0] if forms else true)], true, found, strict=True))
        whole[true == found] += 1
    confusion: Counter[tuple[Any, Any]] = Counter()
    shares: Counter[tuple[bool, bool]] = Counter()  # of (known, right)
    for (old, true, found), count in counts.items():
        confusion[true, found] += count
        shares[old, true == found] += count
    on_known = Share(shares[True, True], shares[True, True] + shares[True, False])
    on_unknown = Share(shares[False, True], shares[False, True] + shares[False, False])
    return TagScores(
        Share(on_known.correct + on_unknown.correct, counts.total()),
        Share(whole[True], whole.total()),
        None if words is None else on_known,
        None if words is None else on_unknown,
        Confusion(confusion),
    )


def spans(gold: Sentences, guess: Sentences) -> SpanScores:
    """Compute precision, recall and F1 of chunks or entities, all together and of each type, as conlleval does.

    A chunk of the guess is right if gold has one with the same first word, last word and type (see `chunks`). The accuracy
    is that of the tags.

    Parameters
    ----------
    gold, guess : iterable of sequences of str
        The tags of each sentence; no chunk goes beyond its sentence.

    Returns
    -------
    SpanScores

    Examples
    --------
    >>> scores = spans([["B-NP", "I-NP", "O", "B-NP"]], [["B-NP", "I-NP", "O", "B-VP"]])
    >>> scores.precision, scores.recall, scores.f1, scores.accuracy
    (0.5, 0.5, 0.5, 0.75)
    >>> print(scores)
    accuracy 75.00 (3 of 4)
    <BLANKLINE>
    type  precision  recall     F1  gold  guessed
    NP       100.00   50.00  66.67     2        1
    VP         0.00    0.00   0.00     0        1
    all       50.00   50.00  50.00     2        2
    """
    right: Counter[bool] = Counter()
    true, found, both = Counter[str](), Counter[str](), Counter[str]()  # by type
    for number, (ours, theirs) in enumerate(_align(gold=gold, guess=guess)):
        right.update(bool(one == other) for one, other in zip(ours, theirs, strict=True))
        try:
            here, there = chunks(ours), chunks(theirs)
        except InvalidData as error:
            raise InvalidData(f"sentence {number + 1}: {error}", row=number) from None
        true.update(kind for kind, *_ in here)
        found.update(kind for kind, *_ in there)
        both.update(kind for kind, *_ in set(here) & set(there))
    per_type = {kind: Score(both[kind], true[kind], found[kind]) for kind in sorted(true | found)}
    return SpanScores(Share(right[True], right.total()), Score(both.total(), true.total(), found.total()), per_type)


def are_chunks(sentences: Iterable[Sequence[Any]]) -> bool:
    """Return whether tags describe chunks: each is O, or a position and a type as in B-NP, and not all are O.

    Parameters
    ----------
    sentences : iterable of sequences
        The tags of each sentence.

    Returns
    -------
    bool

    Examples
    --------
    >>> are_chunks([["B-NP", "O"]]), are_chunks([["NOUN", "O"]]), are_chunks([["O", "O"]])
    (True, False, False)
    """
    names = {tag for tags in sentences for tag in tags}
    return bool(names - {"O"}) and all(tag == "O" or _is_chunk_tag(tag) for tag in names)


def _is_chunk_tag(tag: Any) -> bool:
    letter, hyphen, kind = tag.partition("-") if isinstance(tag, str) else ("", "", "")
    return letter in POSITIONS and letter != "O" and bool(hyphen and kind)


def chunks(tags: Sequence[str]) -> list[tuple[str, int, int]]:
    """Return the chunks that the tags of a sentence describe.

    A tag is O, or a position and a type, as in B-NP. In every scheme (IOB1, IOB2, IOE, IOBES, BILOU), and even if the tags
    break it, a chunk ends between two words where one of them is in no chunk, where the type changes, after E or S, and
    before B or S. So an I after O or after another type begins a chunk. For tags of B, I and O, or of I, E and O, this is
    what conlleval counts; it knows no S, and would join chunks of one type that the E and B of IOBES separate.

    Parameters
    ----------
    tags : sequence of str
        The tags of a sentence.

    Returns
    -------
    list of (str, int, int)
        The type, the first word and the word after the last of each chunk.

    Examples
    --------
    >>> chunks(["I-NP", "I-NP", "B-NP", "O", "I-VP", "I-NP"])
    [('NP', 0, 2), ('NP', 2, 3), ('VP', 4, 5), ('NP', 5, 6)]
    """
    found = []
    start = 0
    position, kind = "O", ""
    for place, tag in enumerate([*tags, "O"]):
        before, (position, kind_here) = position, _position(tag)
        if before == "O" or position == "O" or kind_here != kind or before in "ES" or position in "BS":
            if before != "O":
                found.append((kind, start, place))
            start, kind = place, kind_here
    return found


def trees(gold: Sentences, guess: Sentences, punctuation: bool = True, subtypes: bool = False) -> TreeScores:
    """Compute UAS, LAS and CLAS of trees, and precision, recall and F1 of each relation, as the script of CoNLL 2018 does.

    CLAS is the F1 of the relations between content words: a word counts in gold if its gold relation is one of them, in the
    guess if its guessed relation is, and is right if both head and relation are.

    Parameters
    ----------
    gold, guess : iterable of sequences of (int, str)
        The tree of each sentence, as the head and the relation of each word; heads count words from 1, and 0 is the root.
    punctuation : bool, default=True
        False leaves out words whose relation in gold is punct; CoNLL 2018 counts all words.
    subtypes : bool, default=False
        True tells nsubj:pass from nsubj; CoNLL 2018 drops what follows the colon.

    Returns
    -------
    TreeScores

    Examples
    --------
    >>> gold = [[(2, "det"), (3, "nsubj"), (0, "root")]]
    >>> guess = [[(2, "det"), (3, "obj"), (0, "root")]]
    >>> scores = trees(gold, guess)
    >>> scores.uas, scores.las, scores.clas
    (1.0, 0.6666666666666666, 0.5)
    """
    counts: Counter[tuple[Any, Any, bool]] = Counter()  # of (gold relation, guessed relation, same head)
    whole: Counter[tuple[bool, bool]] = Counter()  # of (all heads right, all relations right too)
    for number, (true, found) in enumerate(_align(gold=gold, guess=guess)):
        try:
            words = [
                (label, label_found, head == head_found)
                for (head, label), (head_found, label_found) in zip(true, found, strict=True)
            ]
        except (TypeError, ValueError):
            raise InvalidData(
                f"sentence {number + 1}: a tree is a list of (head, relation), one for each word", row=number
            ) from None
        if not punctuation:
            words = [word for word in words if _universal(word[0]) != "punct"]
        if not subtypes:
            words = [(_universal(ours), _universal(theirs), same) for ours, theirs, same in words]
        counts.update(words)
        whole[all(same for *_, same in words), all(same and ours == theirs for ours, theirs, same in words)] += 1
    confusion: Counter[tuple[Any, Any]] = Counter()
    right: Counter[Any] = Counter()  # by relation: heads and relations
    for (ours, theirs, same), count in counts.items():
        confusion[ours, theirs] += count
        right[ours] += count if same and ours == theirs else 0
    labels = Confusion(confusion).scores
    per_label = {label: score._replace(correct=right[label]) for label, score in labels.items()}
    content = [score for label, score in per_label.items() if _universal(label) in CONTENT]
    heads = sum(count for (*_, same), count in counts.items() if same)
    return TreeScores(
        heads=Share(heads, counts.total()),
        labelled=Share(right.total(), counts.total()),
        content=Score(*map(sum, zip(*content, strict=True))) if content else Score(0, 0, 0),
        whole_heads=Share(whole[True, True] + whole[True, False], whole.total()),
        whole=Share(whole[True, True], whole.total()),
        per_label=per_label,
        confusion=Confusion(confusion),
    )


def _align(**corpora: Sentences) -> Iterator[tuple[list[Any], ...]]:
    """The same sentence of every corpus; they must have as many sentences, and a sentence as many words in each."""
    lists = {name: list(sentences) for name, sentences in corpora.items()}
    if len({len(sentences) for sentences in lists.values()}) > 1:
        sizes = ", ".join(f"{len(sentences)} in {name}" for name, sentences in lists.items())
        raise InvalidData(f"the numbers of sentences differ: {sizes}")
    for number, row in enumerate(zip(*lists.values(), strict=True)):
        if any(isinstance(sentence, str) for sentence in row):
            raise InvalidDataType(
                f"sentence {number + 1} is a string; each sentence must be a list with an entry for each word", row=number
            )
        if len({len(sentence) for sentence in row}) > 1:
            sizes = ", ".join(f"{len(sentence)} in {name}" for name, sentence in zip(lists, row, strict=True))
            raise InvalidData(
                f"sentence {number + 1}: the numbers of words differ: {sizes}", hint="evaluate on gold tokens", row=number
            )
        yield tuple(list(sentence) for sentence in row)


def _position(tag: str) -> tuple[str, str]:
    """(position, type) of a chunk tag, split at the first hyphen."""
    letter, _, kind = tag.partition("-")
    if letter not in POSITIONS:
        allowed = f"it must be O, or one of {', '.join(POSITIONS)} with a type, as in B-NP"
        raise InvalidData(f"{tag!r} is not a chunk tag: {allowed}")
    return POSITIONS[letter], "" if letter == "O" else kind


def _universal(label: Any) -> Any:
    return label.partition(":")[0] if isinstance(label, str) else label


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def _scores(what: str, scores: Mapping[Any, Score]) -> str:
    rows = [
        (name, *(f"{100 * ratio:.2f}" for ratio in (score.precision, score.recall, score.f1)), score.gold, score.guessed)
        for name, score in scores.items()
    ]
    return _table((what, "precision", "recall", "F1", "gold", "guessed"), rows)


def _table(header: Sequence[Any], rows: Iterable[Sequence[Any]], names: int = 1) -> str:
    """Lines with the first columns, which are names, to the left and the numbers to the right."""
    cells = [[str(cell) for cell in row] for row in (header, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if place < names else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in cells
    )
