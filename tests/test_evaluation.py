"""The counts are those of the shared tasks' own programs, from their definitions, and of examples counted by hand."""

import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rosenblatt.structured import evaluation
from rosenblatt.structured.evaluation import Confusion, Score, Share

quick = settings(deadline=None, max_examples=100)


# conlleval, as its tables define it: between which tags a chunk begins and ends, besides where the type changes.
BEGINS = {"BB", "IB", "OB", "OI", "OE", "EE", "EI"}
ENDS = {"BB", "BO", "IB", "IO", "EE", "EI", "EO"}


def conlleval(gold, guess):
    """(right, in gold, in guess) by type, and the words with the right tag, in one pass as conlleval makes it."""
    true, found, both = Counter(), Counter(), Counter()
    last = [("O", ""), ("O", "")]
    inside = False
    right = 0
    for pair in [pair for sentence in zip(gold, guess, strict=True) for pair in [*zip(*sentence, strict=True), None]]:
        now = [tuple((*tag.split("-", 1), "")[:2]) for tag in pair or ("O", "O")]
        steps = list(zip(last, now, strict=True))
        ends = [a[0] + b[0] in ENDS or (a[0] != "O" and a[1] != b[1]) for a, b in steps]
        begins = [a[0] + b[0] in BEGINS or (b[0] != "O" and a[1] != b[1]) for a, b in steps]
        if inside and all(ends) and last[0][1] == last[1][1]:
            both[last[0][1]] += 1
            inside = False
        elif inside and (ends[0] != ends[1] or now[0][1] != now[1][1]):
            inside = False
        if all(begins) and now[0][1] == now[1][1]:
            inside = True
        true[now[0][1]] += begins[0]
        found[now[1][1]] += begins[1]
        right += pair is not None and now[0] == now[1]
        last = now
    return {kind: (both[kind], true[kind], found[kind]) for kind in true | found if true[kind] + found[kind]}, right


def pairs_of(tag):
    """Sentences and guesses about them, with as many words."""
    return st.lists(st.lists(st.tuples(tag, tag), max_size=8), max_size=4).map(
        lambda corpus: tuple([[pair[side] for pair in sentence] for sentence in corpus] for side in (0, 1))
    )


def chunk_tags(letters):
    return st.sampled_from(["O", *(f"{letter}-{kind}" for letter in letters for kind in ("X", "Y"))])


@pytest.mark.parametrize("letters", ["BI", "IE", "I"])
@given(st.data())
@quick
def test_spans_are_those_of_conlleval(letters, data):
    gold, guess = data.draw(pairs_of(chunk_tags(letters)))
    scores = evaluation.spans(gold, guess)
    per_type, right = conlleval(gold, guess)
    assert {kind: tuple(score) for kind, score in scores.per_type.items()} == per_type
    assert scores.words == (right, sum(map(len, gold)))
    assert scores.total == tuple(sum(counts[place] for counts in per_type.values()) for place in range(3))


@given(st.lists(chunk_tags("BIES"), max_size=10))
@quick
def test_chunks_by_their_definition(tags):
    """Every stretch of words, asked whether it is a chunk: it lies between two boundaries and there is none inside."""

    def boundary(place):
        left = tags[place - 1] if place else "O"
        right = tags[place] if place < len(tags) else "O"
        return "O" in (left, right) or left[1:] != right[1:] or left[0] in "ES" or right[0] in "BS"

    stretches = [(first, after) for first in range(len(tags)) for after in range(first + 1, len(tags) + 1)]
    expected = [
        (tags[first][2:], first, after)
        for first, after in stretches
        if tags[first] != "O" and boundary(first) and boundary(after) and not any(map(boundary, range(first + 1, after)))
    ]
    assert evaluation.chunks(tags) == expected


@given(st.lists(st.tuples(st.sampled_from(["X", "Y", None]), st.integers(1, 3)), max_size=5))
@quick
def test_every_scheme_tells_the_same_chunks(pieces):
    """IOB2, IOBES and BILOU of the same chunks; None is a stretch of words in none."""
    expected, iob2, iobes = [], [], []
    for kind, length in pieces:
        start = len(iob2)
        if kind is None:
            iob2 += ["O"] * length
            iobes += ["O"] * length
            continue
        iob2 += [f"B-{kind}"] + [f"I-{kind}"] * (length - 1)
        iobes += [f"S-{kind}"] if length == 1 else [f"B-{kind}", *[f"I-{kind}"] * (length - 2), f"E-{kind}"]
        expected.append((kind, start, start + length))
    assert evaluation.chunks(iob2) == evaluation.chunks(iobes) == expected
    assert evaluation.chunks([tag.replace("S-", "U-").replace("E-", "L-") for tag in iobes]) == expected


def test_spans_counted_by_hand():
    """The example of the CoNLL-2000 pages (I-NP where gold has B-NP is as good), and a chunk that breaks its scheme."""
    gold = [["B-NP", "B-NP", "I-NP", "I-NP", "O"], ["B-NP", "B-VP", "B-NP", "I-NP"], ["B-PP-X", "O"], []]
    guess = [["I-NP", "B-NP", "I-NP", "I-NP", "O"], ["I-NP", "B-VP", "B-NP", "I-VP"], ["I-PP-X", "I-NP"], []]
    scores = evaluation.spans(gold, guess)
    # gold: NP 0-1, 1-4; 0-1, VP 1-2, NP 2-4; PP-X 0-1. guess: the same but NP 2-3 and VP 3-4, and one more NP.
    assert scores.per_type == {"NP": Score(3, 4, 5), "PP-X": Score(1, 1, 1), "VP": Score(1, 1, 2)}
    assert scores.total == (5, 6, 8)
    assert (scores.precision, scores.recall, scores.f1) == (5 / 8, 5 / 6, 10 / 14)
    assert scores.accuracy == 6 / 11
    assert evaluation.chunks(["B", "I", "O"]) == [("", 0, 2)]
    assert str(scores).splitlines()[-1].split() == ["all", "62.50", "83.33", "71.43", "6", "8"]


def test_a_tag_that_is_none():
    with pytest.raises(
        ValueError, match="sentence 2: 'NOUN' is not a chunk tag: it must be O, or one of B, I, O, E, S, L, U with"
    ):
        evaluation.spans([["O"], ["B-X"]], [["O"], ["NOUN"]])


@given(pairs_of(st.sampled_from("ABC")), st.randoms(use_true_random=False))
@quick
def test_tags_by_their_definition(corpus, order):
    gold, guess = corpus
    flat = [pair for sentences in zip(gold, guess, strict=True) for pair in zip(*sentences, strict=True)]
    scores = evaluation.tags(gold, guess)
    assert scores.words == (sum(a == b for a, b in flat), len(flat))
    assert scores.sentences == (sum(a == b for a, b in zip(gold, guess, strict=True)), len(gold))
    assert scores.known is scores.unknown is None
    for tag, score in scores.per_tag.items():
        assert score == (flat.count((tag, tag)), sum(a == tag for a, _ in flat), sum(b == tag for _, b in flat))
        assert scores.confusion.counts.get((tag, "B"), 0) == flat.count((tag, "B"))
    shuffled = list(zip(gold, guess, strict=True))
    order.shuffle(shuffled)
    assert evaluation.tags([a for a, _ in shuffled], [b for _, b in shuffled]) == scores
    assert evaluation.tags(gold, gold).accuracy == (1.0 if flat else 0.0)
    mirrored = evaluation.tags(guess, gold)
    assert all(mirrored.per_tag[tag].precision == score.recall for tag, score in scores.per_tag.items())
    assert scores.confusion.matrix.sum() == len(flat)
    assert scores.confusion.matrix.trace() == scores.words.correct
    assert sum(count for *_, count in scores.confusion.worst()) == len(flat) - scores.words.correct


def test_known_and_unknown_words():
    scores = evaluation.tags(
        [["D", "N"], ["V", "N"]], [["D", "V"], ["V", "N"]], [["the", "cat"], ["sees", "the"]], {"the", "sees"}
    )
    assert (scores.known, scores.unknown) == (Share(3, 3), Share(0, 1))
    assert scores.words == (3, 4)
    assert str(scores).splitlines()[:2] == [
        "accuracy 75.00 (3 of 4), whole sentences 50.00 (1 of 2)",
        "known words 100.00 (3 of 3), unknown words 0.00 (0 of 1)",
    ]
    with pytest.raises(ValueError, match="words and known must be passed together"):
        evaluation.tags([["D"]], [["D"]], words=[["the"]])


LABELS = ["nsubj", "nsubj:pass", "obj", "det", "case", "punct", "root", "dep:x"]
arcs = st.tuples(st.integers(0, 3), st.sampled_from(LABELS))


@given(pairs_of(arcs), st.booleans(), st.booleans())
@quick
def test_trees_by_their_definition(corpus, punctuation, subtypes):
    gold, guess = corpus
    pairs = [pair for trees in zip(gold, guess, strict=True) for pair in zip(*trees, strict=True)]

    def kind(label):
        return label if subtypes else label.split(":")[0]

    def content(label):
        return label.split(":")[0] in ("nsubj", "obj", "root", "dep")

    pairs = [(a, b) for a, b in pairs if punctuation or a[1] != "punct"]
    same = [(a, b) for a, b in pairs if a[0] == b[0] and kind(a[1]) == kind(b[1])]
    scores = evaluation.trees(gold, guess, punctuation, subtypes)
    assert scores.heads == (sum(a[0] == b[0] for a, b in pairs), len(pairs))
    assert scores.labelled == (len(same), len(pairs))
    assert scores.content == tuple(
        sum(map(content, labels))
        for labels in ([a[1] for a, _ in same], [a[1] for a, _ in pairs], [b[1] for _, b in pairs])
    )
    for label, score in scores.per_label.items():
        assert score.correct == sum(kind(a[1]) == label for a, _ in same)
        assert score.gold == sum(kind(a[1]) == label for a, _ in pairs)
        assert score.guessed == sum(kind(b[1]) == label for _, b in pairs)
    assert sum(scores.confusion.counts.values()) == len(pairs)
    perfect = evaluation.trees(gold, gold, punctuation, subtypes)
    assert (perfect.uas, perfect.las) == ((1.0, 1.0) if pairs else (0.0, 0.0))
    assert perfect.whole == perfect.whole_heads == (len(gold), len(gold))
    assert scores.whole.correct <= scores.whole_heads.correct


def test_trees_counted_by_hand():
    gold = [
        [(2, "det"), (3, "nsubj:pass"), (0, "root"), (3, "punct")],
        [(0, "root"), (1, "obj"), (1, "aux")],
        [(0, "root"), (1, "punct")],
    ]
    guess = [
        [(2, "det"), (3, "nsubj"), (0, "root"), (2, "punct")],
        [(0, "root"), (1, "aux"), (2, "obj")],
        [(0, "root"), (1, "punct")],
    ]
    scores = evaluation.trees(gold, guess)
    assert (scores.heads, scores.labelled) == (Share(7, 9), Share(6, 9))
    assert scores.content == Score(4, 5, 5)  # gold nsubj root | root obj | root; guess nsubj root | root obj | root
    assert (scores.uas, scores.las, scores.clas) == (7 / 9, 6 / 9, 8 / 10)
    assert (scores.whole_heads, scores.whole) == (Share(1, 3), Share(1, 3))
    assert scores.per_label["aux"] == (0, 1, 1)
    assert scores.confusion.worst() == [("aux", "obj", 1), ("obj", "aux", 1)]
    without = evaluation.trees(gold, guess, punctuation=False)
    assert (without.heads, without.labelled) == (Share(6, 7), Share(5, 7))
    assert without.whole == (2, 3)
    assert without.content == scores.content
    apart = evaluation.trees(gold, guess, subtypes=True)
    assert apart.labelled == (5, 9)
    assert apart.content == Score(3, 5, 5)
    assert str(scores).splitlines()[:4] == [
        "UAS 77.78 (7 of 9)",
        "LAS 66.67 (6 of 9)",
        "CLAS 80.00 (5 content words)",
        "whole trees 33.33 (1 of 3), without relations 33.33 (1 of 3)",
    ]
    assert "CLAS" not in str(evaluation.trees([[(0, None)]], [[(0, None)]]))


def test_clas_leaves_function_words_and_punctuation_out():
    functional = {"aux", "case", "cc", "clf", "cop", "det", "mark", "punct"}
    assert not functional & evaluation.CONTENT
    assert len(functional | evaluation.CONTENT) == 37  # the relations of Universal Dependencies 2


@pytest.mark.parametrize("count", [evaluation.tags, evaluation.spans, evaluation.trees])
def test_what_does_not_fit_is_refused(count):
    with pytest.raises(ValueError, match="the numbers of sentences differ: 2 in gold, 1 in guess"):
        count([[], []], [[]])
    with pytest.raises(
        ValueError, match="sentence 2: the numbers of words differ: 2 in gold, 1 in guess; evaluate on gold"
    ):
        count([[], ["O", "O"]], [[], ["O"]])
    with pytest.raises(ValueError, match="sentence 1 is a string"):
        count(["O"], ["O"])


def test_a_tree_is_pairs():
    with pytest.raises(ValueError, match=r"sentence 2: a tree is a list of .head, relation., one for each word"):
        evaluation.trees([[(0, "root")], [0]], [[(0, "root")], [(0, "root")]])


def test_nothing_to_count_is_nothing_right():
    assert evaluation.tags([], []).accuracy == evaluation.spans([[]], [[]]).f1 == evaluation.trees([], []).clas == 0.0
    assert evaluation.spans([["O"]], [["O"]]).precision == 0.0
    for count in (evaluation.tags, evaluation.spans, evaluation.trees):
        assert str(count([], [])).startswith(("accuracy 0.00 (0 of 0)", "UAS 0.00 (0 of 0)"))


def test_a_confusion_of_many_labels_prints_the_most_frequent():
    draw = random.Random(0)
    counts = Counter((f"L{draw.randrange(25)}", f"L{draw.randrange(25)}") for _ in range(2000))
    confusion = Confusion(counts)
    table = str(confusion).splitlines()
    assert len(table) == 21
    assert table[0].split() == ["gold", "guess", "count"]
    assert table[1].split() == [str(cell) for cell in confusion.worst(1)[0]]
    assert confusion.worst(1)[0][2] == max(count for (gold, guess), count in counts.items() if gold != guess)
    labels = confusion.labels
    assert all(confusion.matrix[labels.index(a), labels.index(b)] == count for (a, b), count in counts.items())


def test_arrays_and_iterators_are_sentences_too():
    gold = [np.array(["B-X", "O"]), np.array(["O"])]
    scores = evaluation.spans(iter(gold), (list(sentence) for sentence in gold))
    assert scores.f1 == scores.accuracy == 1.0
