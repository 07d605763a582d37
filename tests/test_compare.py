"""A perceptron with a mistake is told apart from one without, and the mistake is named."""

import itertools
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rosenblatt.errors import InvalidData, InvalidParameter
from rosenblatt.testing import compare, reference
from rosenblatt.testing.mistakes import mistakes, right_variant, run

# Separable in 5 epochs: in 3 every mistake shows in the last weights, in 12 in their average (a test says so).
X = np.array([[3, -2], [-2, 2], [1, 2], [3, 3], [0, -2], [2, -2], [-1, 3]])
SIGNS = np.array([-1, -1, 1, 1, -1, -1, 1])
EPOCHS = 3


def textbook(
    X, y, epochs, *, wrong=lambda m: m <= 0, order=lambda n: range(n), rate=1.0, start=0.0, intercept=True, average=False
):
    """The perceptron as a student would write it, with what a student may get wrong as options. It yields its updates."""
    w, b, total, total_b, seen = np.full(X.shape[1], start), start, 0.0, 0.0, 0
    for _ in range(epochs):
        for i in order(len(X)):
            if wrong(y[i] * (w @ X[i] + b)):
                w = w + rate * y[i] * X[i]
                b += rate * y[i] * intercept
                yield i, w, b
            total, total_b, seen = total + w, total_b + b, seen + 1
    return (total / seen, total_b / seen) if average else (w, b)


def returned(generator):
    """What a generator returns, its updates passed over."""
    while True:
        try:
            next(generator)
        except StopIteration as end:
            return end.value


def shown(**options):
    return lambda X, y, epochs: textbook(X, y, epochs, **options)


def final(**options):
    return lambda X, y, epochs: returned(textbook(X, y, epochs, **options))


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("how", [shown, final])
def test_what_is_right_agrees(how, average):
    found = compare(how(average=average), X, SIGNS, epochs=EPOCHS, average=average)
    assert found
    assert found.reason is None
    assert "agree with the reference" in str(found)


def predicts_zero_as(sign):
    def student(X, y, epochs):
        w, b = np.zeros(X.shape[1]), 0.0
        for _ in range(epochs):
            for i, x in enumerate(X):
                score = w @ x + b
                prediction = sign if score == 0 else np.sign(score)
                if prediction != y[i]:
                    w, b = w + y[i] * x, b + y[i]
                    yield i, w, b

    return student


def without_sign_of_the_intercept(X, y, epochs):
    w, b = np.zeros(X.shape[1]), 0.0
    for _ in range(epochs):
        for i, x in enumerate(X):
            if y[i] * (w @ x + b) <= 0:
                w, b = w + y[i] * x, b + 1
                yield i, w, b


def intercept_outside_the_margin(X, y, epochs):
    w, b = np.zeros(X.shape[1]), 0.0
    for _ in range(epochs):
        for i, x in enumerate(X):
            if y[i] * (w @ x) <= 0:
                w, b = w + y[i] * x, b + y[i]
                yield i, w, b


def without_label(X, y, epochs):
    w, b = np.zeros(X.shape[1]), 0.0
    for _ in range(epochs):
        for i, x in enumerate(X):
            if y[i] * (w @ x + b) <= 0:
                w, b = w + x, b + y[i] ** 2
                yield i, w, b


def swapped_loops(X, y, epochs):
    w, b = np.zeros(X.shape[1]), 0.0
    for i, x in enumerate(X):
        for _ in range(epochs):
            if y[i] * (w @ x + b) <= 0:
                w, b = w + y[i] * x, b + y[i]
                yield i, w, b


def zero_or_one(X, y, epochs):
    w, b = np.zeros(X.shape[1]), 0.0
    for _ in range(epochs):
        for i, x in enumerate(X):
            if int(w @ x + b > 0) != y[i]:
                w, b = w + y[i] * x, b + y[i]
                yield i, w, b


def weights_of_the_epoch_before(X, y, epochs):
    w = np.zeros(X.shape[1] + 1)
    rows = np.column_stack([X, np.ones(len(X))]) * y[:, None]
    for _ in range(epochs):
        w = w + rows[rows @ w <= 0].sum(axis=0)
    return w


def drawn_order():
    rng = np.random.default_rng(3)
    return shown(order=rng.permutation)


def until_nothing_is_wrong(X, y, epochs):
    return textbook(X, y, 10 * epochs)


WRONG = {
    "tie: 0 is −1": (predicts_zero_as(-1), "tie"),
    "tie: 0 is +1": (predicts_zero_as(1), "tie"),
    "tie: m < 0": (shown(wrong=lambda m: m < 0), "tie"),
    "intercept not learned": (shown(intercept=False), "intercept"),
    "intercept not in the margin": (intercept_outside_the_margin, "intercept"),
    "intercept without its sign": (without_sign_of_the_intercept, "intercept"),
    "intercept not shown": (lambda X, y, epochs: ((i, w) for i, w, _ in textbook(X, y, epochs)), "report"),
    "intercept as a threshold": (lambda X, y, epochs: ((i, w, -b) for i, w, b in textbook(X, y, epochs)), "report"),
    "intercept first": (lambda X, y, epochs: np.roll(np.append(*final()(X, y, epochs)), 1), "report"),
    "rows from 1": (lambda X, y, epochs: ((i + 1, w, b) for i, w, b in textbook(X, y, epochs)), "report"),
    "rows backwards": (shown(order=lambda n: range(n)[::-1]), "order"),
    "rows shuffled": (drawn_order(), "order"),
    "loops swapped": (swapped_loops, "order"),
    "last row left out": (shown(order=lambda n: range(n - 1)), "order"),
    "an epoch too few": (lambda X, y, epochs: textbook(X, y, epochs - 1), "epochs"),
    "an epoch too many": (lambda X, y, epochs: textbook(X, y, epochs + 1), "epochs"),
    "until nothing is wrong": (until_nothing_is_wrong, "epochs"),
    "labels 0 and 1": (lambda X, y, epochs: textbook(X, (y + 1) // 2, epochs), "labels"),
    "predictions 0 and 1": (zero_or_one, "labels"),
    "labels swapped": (lambda X, y, epochs: textbook(X, -y, epochs), "labels"),
    "update without label": (without_label, "update"),
    "margin of 1": (shown(wrong=lambda m: m <= 1), "update"),
    "rate": (shown(rate=0.25), "rate"),
    "rounded rate": (shown(rate=0.1), "rate"),
    "rounded rate, weights only": (final(rate=0.1), "rate"),
    "start at 1": (shown(start=1.0), "start"),
    "start elsewhere": (shown(start=-0.375), "start"),
    "batch": (weights_of_the_epoch_before, "update"),
    "average instead of the last": (final(average=True), "average"),
}


@pytest.mark.parametrize(("student", "kind"), WRONG.values(), ids=WRONG)
def test_each_mistake_is_named(student, kind):
    found = compare(student, X, SIGNS, epochs=EPOCHS)
    assert not found
    assert found.reason == kind, str(found)
    assert f"Likely reason: ({kind})" in str(found)


def averages(choose):
    """A perceptron that returns the mean of the weights chosen among those before and after all visits."""

    def student(X, y, epochs):
        w = np.zeros(X.shape[1] + 1)
        weights, updated = [w], []
        for _ in range(epochs):
            for x, label in zip(np.column_stack([X, np.ones(len(X))]), y, strict=True):
                if label * (w @ x) <= 0:
                    w = w + label * x
                    updated.append(w)
                weights.append(w)
        return np.mean(choose(weights, updated), axis=0)

    return student


def lazily_averaged(X, y, epochs):
    """Daumé's form: w − u/c, with c from 1, which counts the weights before the first visit too."""
    w, u, c = np.zeros(X.shape[1] + 1), np.zeros(X.shape[1] + 1), 1
    for _ in range(epochs):
        for x, label in zip(np.column_stack([X, np.ones(len(X))]), y, strict=True):
            if label * (w @ x) <= 0:
                w, u = w + label * x, u + c * label * x
            c += 1
    return w - u / c


AVERAGES = {
    "last": (averages(lambda weights, updated: weights[-1:]), "the last weights are returned"),
    "before each visit": (averages(lambda weights, updated: weights[:-1]), "weights before each visit"),
    "lazily, from 1": (lazily_averaged, "weights before the first visit are in it"),
    "one visit too few": (
        lambda *args: 21 / 20 * averages(lambda weights, _: weights[1:])(*args),
        "one visit too few",
    ),
    "updates": (averages(lambda weights, updated: updated), "only the weights after updates"),
    "ends of epochs": (averages(lambda weights, updated: weights[len(X) :: len(X)]), "at the end of each epoch"),
    "last epoch": (averages(lambda weights, updated: weights[-len(X) :]), "of the last epoch"),
    "sum": (lambda *args: EPOCHS * len(X) * averages(lambda weights, _: weights[1:])(*args), "must be divided"),
}


@pytest.mark.parametrize(("student", "words"), AVERAGES.values(), ids=AVERAGES)
def test_each_wrong_average_is_named(student, words):
    found = compare(student, X, SIGNS, epochs=EPOCHS, average=True)
    assert found.reason == "average", str(found)
    assert words in found.explanations[0][0].sentence


def test_an_average_that_stops_early_is_named():
    def student(X, y, epochs):
        rows, w = np.column_stack([X, np.ones(len(X))]) * y[:, None], np.zeros(X.shape[1] + 1)
        weights = []
        for _ in range(epochs):
            before = w
            for x in rows:
                w = w if w @ x > 0 else w + x
                weights.append(w)
            if w is before:
                break
        return np.mean(weights, axis=0)

    found = compare(student, X, SIGNS, epochs=12, average=True)
    assert "stops after an epoch without a mistake" in found.explanations[0][0].sentence


def test_two_mistakes_at_once_are_named():
    found = compare(shown(rate=0.5, intercept=False), X, SIGNS, epochs=EPOCHS)
    assert {mistake.kind for mistake in found.explanations[0]} == {"rate", "intercept"}
    backwards = shown(order=lambda n: range(n)[::-1], wrong=lambda m: m <= 1)
    found = compare(backwards, X, SIGNS, epochs=EPOCHS)
    assert {mistake.kind for mistake in found.explanations[0]} == {"order", "update"}


def test_the_first_update_that_differs_has_its_place():
    epoch = itertools.count(1)
    back_and_forth = shown(order=lambda n: range(n) if next(epoch) % 2 else range(n)[::-1])
    found = compare(back_and_forth, X, SIGNS, epochs=EPOCHS)
    assert found.epoch == 2
    run = reference.learn(X, (SIGNS + 1) // 2, 2, [range(len(X))] * EPOCHS, multiclass="binary")
    updates = [k for k, (w, v) in enumerate(zip([run.start, *run.path], run.path, strict=False)) if (w != v).any()]
    visit = updates[found.update - 1]
    assert (found.epoch, found.row) == (visit // len(X) + 1, visit % len(X))
    assert f"Update {found.update} is the first to differ" in str(found)


def test_a_place_is_inferred_from_the_reason_where_only_weights_are_returned():
    seen = compare(predicts_zero_as(-1), X, SIGNS, epochs=EPOCHS)
    inferred = compare(lambda *args: np.append(*list(predicts_zero_as(-1)(*args))[-1][1:]), X, SIGNS, epochs=EPOCHS)
    assert (inferred.reason, inferred.update, inferred.row, inferred.epoch) == ("tie", seen.update, seen.row, seen.epoch)
    assert "If the reason below is right, update" in str(inferred)


def test_what_nothing_explains_is_said_so():
    found = compare(lambda X, y, epochs: [17.0, -4.5, 3.25], X, SIGNS, epochs=EPOCHS)
    assert (found.reason, found.update, found.explanations) == (None, None, ())
    assert "No known mistake explains it" in str(found)
    assert "yield (row, w, b)" in str(found)
    assert "two of them together" in str(found)
    assert "two of them together" not in str(compare(lambda *_: [17.0, -4.5, 3.25], X, SIGNS, epochs=1000))


def test_weights_that_separate_are_said_to():
    found = compare(lambda X, y, epochs: (np.array([2.0, 2.125]), -3.0), X, SIGNS)
    assert "every row on its right side" in str(found)


@pytest.mark.parametrize(("how", "epochs", "average"), [(shown, EPOCHS, False), (final, EPOCHS, False), (final, 12, True)])
def test_these_data_show_every_mistake(how, epochs, average):
    assert compare(how(average=average), X, SIGNS, epochs=epochs, average=average).unseen == ()


def test_data_that_cannot_show_a_mistake_are_named():
    found = compare(shown(), [[1, 0], [-1, 0]], [1, -1], epochs=2)
    assert found
    assert "order" in {mistake.kind for mistake in found.unseen}
    assert "could not show" in str(found)


def test_every_form_of_an_answer_is_read():
    every_visit = []
    for i, w, b in textbook(X, SIGNS, EPOCHS):
        every_visit += [(i, w, b), (i, w, b)]
    in_one = [np.append(w, b) for _, w, b in textbook(X, SIGNS, EPOCHS)]
    w, b = final()(X, SIGNS, EPOCHS)
    rows = [i for i, *_ in textbook(X, SIGNS, EPOCHS)]
    for answer in (every_visit, list(zip(rows, in_one, strict=True)), (w, b), np.append(w, b), [*w.tolist(), b], (w, [b])):
        assert compare(lambda *_, answer=answer: answer, X, SIGNS, epochs=EPOCHS), answer
    assert "Theirs makes no update." in str(compare(lambda *_: [], X, SIGNS, epochs=EPOCHS))
    without = shown(intercept=False)
    assert compare(lambda *args: ((i, w) for i, w, _ in without(*args)), X, SIGNS, epochs=EPOCHS, intercept=False)


def test_an_array_that_is_changed_after_it_was_yielded_is_read_in_time():
    def student(X, y, epochs):
        w = np.zeros(X.shape[1] + 1)
        for _ in range(epochs):
            for i, x in enumerate(np.column_stack([X, np.ones(len(X))])):
                if y[i] * (w @ x) <= 0:
                    w += y[i] * x
                    yield i, w

    assert compare(student, X, SIGNS, epochs=EPOCHS)
    with pytest.raises(InvalidData, match=r"hold the same array.*append w.copy\(\)"):
        compare(lambda *args: list(student(*args)), X, SIGNS, epochs=EPOCHS)


def test_a_generator_that_does_not_end_is_left():
    def student(X, y, epochs):
        w = np.zeros(X.shape[1])
        while True:
            w = w + X[0]
            yield 0, w

    assert not compare(student, X, SIGNS, epochs=EPOCHS)


def test_their_data_are_copies_and_their_labels_those_given():
    data, labels = X.copy(), np.array(["no", "yes"])[(SIGNS + 1) // 2]

    def student(X, y, epochs):
        assert set(y) == {"no", "yes"}
        signs = np.where(y == "yes", 1, -1)
        weights = final()(X, signs, epochs)
        X[:], y[:] = 0, "no"
        return weights

    assert compare(student, data, labels, epochs=EPOCHS)
    assert np.array_equal(data, X)
    assert set(labels) == {"no", "yes"}


@pytest.mark.parametrize(
    "answer", [None, "w", [1.0], [1.0, 2.0, 3.0, 4.0], [np.nan, 0, 0], [(0.5, [1, 2])], [(0,), (1,)], [(0, [1, 2], 1, 1)]]
)
def test_what_is_no_answer_is_refused(answer):
    with pytest.raises(InvalidData, match=r"cannot be read.*yield \(row, w\)"):
        compare(lambda X, y, epochs: answer, X, SIGNS)


def test_an_average_needs_weights_and_epochs_a_number():
    with pytest.raises(InvalidData, match="average=True"):
        compare(lambda *args: list(textbook(*args)), X, SIGNS, average=True)
    with pytest.raises(InvalidParameter, match="epochs"):
        compare(shown(), X, SIGNS, epochs=0)
    assert compare(shown(), X, SIGNS, epochs=3.0)


@pytest.mark.parametrize("answer", [[10**400, 0, 0], ([1, 0], 10**400), ([[1], [1, 2]], 0)])
def test_weights_that_are_no_floats_are_refused(answer):
    with pytest.raises(InvalidData, match="the weights of the function cannot be read"):
        compare(lambda X, y, epochs: answer, X, SIGNS)


@given(st.data())
def test_without_a_mistake_the_variant_is_the_reference_and_every_mistake_can_be_made(data):
    n, epochs = data.draw(st.integers(2, 6)), data.draw(st.integers(1, 3))
    X = np.array(data.draw(st.lists(st.tuples(*[st.integers(-3, 3)] * 2), min_size=n, max_size=n)), dtype=float)
    signs = np.array([1.0, -1.0, *data.draw(st.lists(st.sampled_from([-1.0, 1.0]), min_size=n - 2, max_size=n - 2))])
    intercept, average = data.draw(st.booleans()), data.draw(st.booleans())
    right = right_variant(X, signs, epochs, intercept=intercept, average=average)
    found = reference.learn(
        X, (signs > 0).astype(int), 2, [range(n)] * epochs, multiclass="binary", constant=float(intercept)
    )
    path = run(right)
    assert np.array_equal(path.weights[1:], [w[0] for w in found.path])
    assert np.allclose(right.result(path), (found.average if average else found.last)[0])
    for _, change in mistakes(right, signs, intercept=intercept, average=average):
        wrong = change(right)
        assert np.isfinite(wrong.report(wrong.result(run(wrong)))).all()


def test_the_page_for_teachers_shows_what_is_printed(capsys):
    page = (Path(__file__).parents[1] / "docs" / "guides" / "teachers.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", page, flags=re.MULTILINE | re.DOTALL)
    student = next(number for number, block in enumerate(blocks) if "def perceptron(" in block)
    exec(blocks[student] + blocks[student + 1], {"np": np})
    assert f"```text\n{capsys.readouterr().out}```" in page
