"""The specification of structured learning is itself held to what can be counted and computed by hand."""

from fractions import Fraction

import numpy as np
import pytest

from rosenblatt.testing import reference
from rosenblatt.testing.structured import (
    difference,
    dot,
    is_projective,
    is_tree,
    k_best,
    pa1,
    seqlearn_perceptron,
    sequences,
    structured_run,
    trees,
)


@pytest.mark.parametrize(
    ("projective", "single_root", "counts"),
    [
        (False, False, [1, 1, 3, 16, 125, 1296]),
        (False, True, [1, 1, 2, 9, 64, 625]),
        (True, False, [1, 1, 3, 12, 55, 273]),
        (True, True, [1, 1, 2, 7, 30, 143]),
    ],
)
def test_there_are_as_many_trees_as_counted(projective, single_root, counts):
    for n, count in enumerate(counts):
        found = list(trees(n, projective, single_root))
        assert len(found) == len(set(found)) == count


def test_what_is_a_tree_and_what_crosses():
    assert is_tree(())
    assert is_tree((2, 0, 2))
    assert not is_tree((2, 1))  # a cycle
    assert not is_tree((1,))  # its own head
    assert not is_tree((0, 3, 2))  # a cycle beside a tree
    assert is_projective((2, 0, 2))
    assert not is_projective((3, 0, 2))  # 3 → 1 over the root word 2
    assert not is_projective((3, 4, 0, 3))  # 3 → 1 and 4 → 2 cross


def test_sequences_come_in_order():
    assert list(sequences(2, "ab")) == [("a", "a"), ("a", "b"), ("b", "a"), ("b", "b")]
    assert list(sequences(0, "ab")) == [()]


def test_the_best_come_first_and_the_first_of_equals():
    assert k_best("abcd", {"a": 1, "b": 3, "c": 1, "d": 3}.get, 3) == ["b", "d", "a"]
    assert k_best("ab", {"a": 1, "b": 3}.get, 5) == ["b", "a"]


def emissions(x, path):
    counts = {}
    for word, tag in zip(x, path, strict=True):
        counts[word, tag] = counts.get((word, tag), 0) + 1
    return counts


def test_a_run_by_hand():
    # At w = 0 all four paths of "uv" tie, so the first that is not gold, aa, is the rival, and "v" is learned; "v" alone is
    # then right. Nothing is known of u: in the second epoch bb ties with ab.
    examples = [(("u", "v"), ("a", "b")), (("v",), ("b",))]
    run = structured_run(examples, lambda x: sequences(len(x), "ab"), emissions, reference.perceptron(), [[0, 1], [0, 1]])
    assert run.w == {("v", "b"): 1, ("v", "a"): -1, ("u", "a"): 1, ("u", "b"): -1}
    assert (run.mistakes, run.updates) == (2, 2)
    assert run.average == {
        ("v", "b"): 1, ("v", "a"): -1, ("u", "a"): Fraction(1, 2), ("u", "b"): Fraction(-1, 2)
    }  # fmt: skip


def test_a_margin_asks_for_one_a_wrong_part():
    examples = [(("u", "v"), ("a", "b"))]
    run = structured_run(
        examples, lambda x: sequences(len(x), "ab"), emissions, pa1(10), [[0]] * 3, margin=Fraction(1), threshold=1
    )
    # the rival differs in both parts: τ = 2/‖Δ‖² = 2/4, and each wrong part then costs exactly 1
    half = Fraction(1, 2)
    assert run.w == {("u", "a"): half, ("v", "b"): half, ("u", "b"): -half, ("v", "a"): -half}
    assert (run.mistakes, run.updates) == (1, 1)
    short = structured_run(
        examples, lambda x: sequences(len(x), "ab"), emissions, pa1(Fraction(1, 8)), [[0]] * 9, Fraction(1), threshold=1
    )
    assert (short.mistakes, short.updates) == (1, 4)  # four steps of 1/8 make the half
    assert short.w == run.w


def test_two_classes_of_the_reference_are_structures_of_one_part():
    rng = np.random.default_rng(0)
    X, labels = rng.integers(-3, 4, (30, 3)), rng.integers(0, 3, 30)
    epochs = [rng.permutation(30) for _ in range(3)]
    plain = reference.learn(X, labels, 3, epochs, multiclass="joint", constant=0.0)
    run = structured_run(
        [(row, (int(label),)) for row, label in zip(X.tolist(), labels, strict=True)],
        lambda x: sequences(1, range(3)),
        lambda x, path: {(path[0], j): value for j, value in enumerate(x)},
        reference.perceptron(),
        epochs,
    )
    assert run.mistakes == plain.mistakes
    assert all(run.w.get((c, j), 0) == plain.last[c, j] for c in range(3) for j in range(3))
    assert all(float(run.average.get((c, j), 0)) == pytest.approx(plain.average[c, j]) for c in range(3) for j in range(3))


def test_differences_leave_out_what_cancels():
    assert difference({"a": 1, "b": 2}, {"b": 2, "c": 1}) == {"a": 1, "c": -1}
    assert dot({"a": 2}, {"a": 3, "b": 7}) == 6


# The example that seqlearn's own tests fit: words of one feature each, where a tag depends on the tag before.
X = np.eye(3)[[1, 1, 0, 1, 0, 2, 2, 1, 0, 0]]
Y = np.array(["eggs", "eggs", "eggs", "eggs", "eggs", "ham", "ham", "eggs", "spam", "spam"])


def test_seqlearn_fits_what_its_tests_fit():
    fitted = seqlearn_perceptron(X, Y, [10], max_iter=15, random_state=37)
    assert fitted.predict(X, [10]).tolist() == Y.tolist()
    assert fitted.predict(np.vstack([X, X]), [10, 10]).tolist() == [*Y, *Y]
    assert fitted.predict(X[:0], []).tolist() == []


def test_seqlearn_by_hand():
    # At w = 0 the path is aa, and gold is ba. One move of length 1; the second epoch finds ba.
    fitted = seqlearn_perceptron(np.eye(2), ["b", "a"], [2], max_iter=2)
    share = 1 - 1 / 3  # what a move of the first of two epochs is kept by
    assert np.allclose(fitted.coef, share * np.array([[-1, 0], [1, 0]]))
    assert np.allclose(fitted.intercept_init, share * np.array([-1, 1]))
    assert np.allclose(fitted.intercept_trans, share * np.array([[-1, 0], [1, 0]]))
    assert np.allclose(fitted.intercept_final, 0)


def test_seqlearn_shrinks_its_steps_and_counts_epochs():
    # One word with both tags: all blocks move together, so that one number tells all.
    lead, kept, order, rng = 0.0, 0.0, np.arange(2), np.random.RandomState(3)
    for epoch in range(1, 6):
        rng.shuffle(order)
        for gold in order:
            if gold != (lead > 0):
                move = (1 if gold else -1) / epoch**0.7
                lead += move
                kept += (1 - epoch / 6) * move
    fitted = seqlearn_perceptron(np.ones((2, 1)), ["a", "b"], [1, 1], lr_exponent=0.7, max_iter=5, random_state=3)
    assert kept != 0
    assert np.allclose(fitted.coef[:, 0], [-kept, kept])
    assert np.allclose(fitted.intercept_init, [-kept, kept])
    assert np.allclose(fitted.intercept_final, [-kept, kept])
    assert not fitted.intercept_trans.any()
