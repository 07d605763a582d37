"""Progressive evaluation is the loop that its documentation shows, whatever learns."""

import io

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import SGDClassifier

from rosenblatt import Perceptron
from rosenblatt.online import OnlinePerceptron, progressive

WORDS = ["free", "money", "noon", "you"]
EXAMPLES = st.lists(
    st.tuples(
        st.dictionaries(st.sampled_from(WORDS), st.integers(-2, 2), max_size=4),
        st.sampled_from(["spam", "ham", "news"]),
    ),
    max_size=30,
)


def mails(rows=300, seed=0):
    """Rows of two classes with some noise."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-3, 4, (rows, 4)).astype(float)
    return X, np.where(X @ [1, -2, 1, 0] + rng.integers(-2, 3, rows) > 0, "yes", "no")


@given(EXAMPLES, st.integers(1, 12))
def test_it_is_the_loop_it_documents(stream, every):
    model, mistakes, path = OnlinePerceptron(), 0, []
    for x, y in stream:
        mistakes += model.predict_one(x) != y
        model.learn_one(x, y)
        path.append(mistakes)
    other = OnlinePerceptron()
    found = progressive(other, iter(stream), every=every)
    places = sorted({*range(every, len(stream) + 1, every), len(stream)} - {0})
    assert found.seen.tolist() == places
    assert found.mistakes.tolist() == [path[i - 1] for i in places]
    assert found.loss.tolist() == found.mistakes.tolist()
    assert other.named_weights() == model.named_weights()
    assert mistakes <= model.n_mistakes_ + 1  # the first example, which nothing could predict
    starts = [0, *places[:-1]]
    expected = [
        (path[end - 1] - (path[start - 1] if start else 0)) / (end - start)
        for start, end in zip(starts, places, strict=False)
    ]
    assert found.window_error.tolist() == expected[: len(places)]
    assert found.error.tolist() == [path[i - 1] / i for i in places]


@given(EXAMPLES, st.integers(0, 5))
def test_labels_may_come_late(stream, delay):
    model, mistakes = OnlinePerceptron(), 0
    for i, (x, y) in enumerate(stream):
        mistakes += model.predict_one(x) != y
        if i >= delay:
            model.learn_one(*stream[i - delay])
    for example in stream[max(len(stream) - delay, 0) :]:
        model.learn_one(*example)
    other = OnlinePerceptron()
    found = progressive(other, stream, delay=delay)
    assert found.mistakes.tolist() == ([mistakes] if stream else [])
    assert other.named_weights() == model.named_weights()
    assert other.n_seen_ == len(stream)


def test_weights_go_to_the_learner():
    stream = [({"a": 1}, "x", 1.0), ({"b": 1}, "y", 3.0), ({"b": 1}, "z", 0.0), ({"a": 1}, "x", 2.0)]
    model = OnlinePerceptron()
    found = progressive(model, stream)
    assert found.seen.tolist() == [3]
    assert model.classes_ == ("x", "y")
    assert model.weights_of("y")["b"] == 3.0


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix, sp.csr_array], ids=["dense", "matrix", "array"])
def test_arrays_and_partial_fit(layout):
    X, y = mails()
    streaming = Perceptron(keep="last", unknown_class="grow")
    found = progressive(streaming, zip(layout(X), y, strict=True), every=100)
    online = progressive(OnlinePerceptron(), zip(X, y, strict=True), every=100)
    assert found.mistakes.tolist() == online.mistakes.tolist()
    assert np.array_equal(streaming.coef_, Perceptron(keep="last", unknown_class="grow").partial_fit(X, y).coef_)


def test_scikit_learn_learns_too():
    X, y = mails()
    model = SGDClassifier(loss="perceptron", learning_rate="constant", eta0=1.0, penalty=None, shuffle=False)
    found = progressive(model, zip(X, y, np.ones(len(y)), strict=True), classes=["no", "yes"], loss="perceptron")
    assert 0 < found.mistakes[-1] < 120
    assert found.loss[-1] > 0


@pytest.mark.parametrize("loss", ["zero-one", "perceptron", "hinge"])
@pytest.mark.parametrize("classes", [2, 3])
def test_losses_and_regret(loss, classes):
    rng = np.random.default_rng(1)
    X = rng.integers(-3, 4, (200, 4)).astype(float)
    y = (np.argmax(X[:, :classes] + rng.integers(-1, 2, (200, classes)), axis=1)).tolist()
    best = Perceptron(keep="average", max_iter=20).fit(X, y)

    def cost(scores, label, predicted):
        if loss == "zero-one":
            return float(predicted != label)
        if len(scores) == 2 and label in scores:
            m = scores[label]
        elif scores:
            m = scores.get(label, 0.0) - max(
                (s for name, s in scores.items() if name != label), default=scores.get(label, 0.0)
            )
        else:
            m = 0.0
        return max(0.0, (loss == "hinge") - m)

    model, mine, theirs = OnlinePerceptron(), 0.0, 0.0
    for x, label in zip(X, y, strict=True):
        mine += cost(model.score_one(x), label, model.predict_one(x))
        decision = best.decision_function(x[None])[0]
        scores = {0: -decision, 1: decision} if classes == 2 else dict(enumerate(decision))
        theirs += cost(scores, label, best.predict(x[None])[0])
        model.learn_one(x, label)
    found = progressive(OnlinePerceptron(), zip(X, y, strict=True), loss=loss, against=best, every=50)
    assert found.loss[-1] == pytest.approx(mine)
    assert found.against[-1] == pytest.approx(theirs)
    assert found.regret[-1] == pytest.approx(mine - theirs)
    assert len(found.regret) == 4
    online = OnlinePerceptron()
    online.learn_many(X, y)
    assert progressive(OnlinePerceptron(), zip(X, y, strict=True), loss=loss, against=online).against[-1] >= 0


def test_mistakes_on_separable_streams_obey_the_bound():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((2000, 5))
    u = np.array([3.0, -1.0, 2.0, 0.0, 1.0]) / np.sqrt(15)
    X = X[np.abs(X @ u) > 0.3]
    radius, margin = np.linalg.norm(X, axis=1).max(), np.abs(X @ u).min()
    found = progressive(OnlinePerceptron(fit_intercept=False), zip(X, X @ u > 0, strict=True))
    assert found.mistakes[-1] <= (radius / margin) ** 2 + 1


def test_an_empty_stream():
    found = progressive(OnlinePerceptron(), [])
    assert [len(column) for column in (found.seen, found.mistakes, found.loss, found.error, found.window_error)] == [0] * 5


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"every": 0}, ValueError, "every must be a whole number ≥ 1; got 0"),
        ({"loss": "log"}, ValueError, "loss must be one of 'zero-one', 'perceptron', 'hinge'; got 'log'"),
        ({"delay": -1}, ValueError, "delay must be a whole number ≥ 0; got -1"),
        ({"against": object()}, TypeError, "must have predict_one or predict; object has neither"),
        ({"model": object()}, TypeError, "must have predict_one or predict"),
    ],
)
def test_what_it_refuses(options, error, words):
    with pytest.raises(error, match=words):
        progressive(**({"model": OnlinePerceptron(), "stream": []} | options))


def test_models_that_lack_something():
    class Silent:
        def predict_one(self, x):
            return None

    with pytest.raises(TypeError, match="must have learn_one or partial_fit; Silent has neither"):
        progressive(Silent(), [])
    Silent.learn_one = lambda self, x, y: None
    with pytest.raises(ValueError, match="needs scores, and Silent has no score_one; try loss='zero-one'"):
        progressive(Silent(), [({}, "x")], loss="hinge")
    with pytest.raises(ValueError, match="regret needs a model to compare with"):
        _ = progressive(Silent(), [({}, "x")]).regret


def test_a_line_for_each_record(capsys, monkeypatch):
    progressive(OnlinePerceptron(), [({"a": 1}, "x"), ({"b": 1}, "y")] * 3, every=4, verbose=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "seen 4  mistakes 3 (75.00%)  of the last 4: 75.00%",
        "seen 6  mistakes 3 (50.00%)  of the last 2: 0.00%",
    ]

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    progressive(OnlinePerceptron(), [({"a": 1}, "x"), ({"b": 1}, "y")] * 2, verbose=True)
    assert terminal.getvalue() == "\r\x1b[Kseen 4  mistakes 3 (75.00%)  of the last 4: 75.00%\n"


def test_river_models_learn_too():
    pytest.importorskip("river")
    from river import evaluate, linear_model, metrics

    rng = np.random.default_rng(3)
    stream = [({"a": float(a), "b": float(b)}, bool(a > b)) for a, b in rng.integers(-3, 4, (200, 2))]
    accuracy = evaluate.progressive_val_score(stream, linear_model.Perceptron(), metrics.Accuracy())
    found = progressive(linear_model.Perceptron(), stream, against=linear_model.Perceptron())
    assert 1 - found.error[-1] == pytest.approx(accuracy.get())
