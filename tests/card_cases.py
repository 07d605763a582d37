"""What must hold on every card, emulated or real: the model is the one that the CPU learns."""

from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from rosenblatt import MIRA, PAUM, PassiveAggressiveClassifier, Perceptron
from rosenblatt.testing import strategies

MANY_DIVISORS = 27720  # the least common multiple of 1 to 12: means of up to twelve moves of this length are whole numbers
# Steps that are whole numbers, so that sums in any order have the same bits.
EXACT = {
    "perceptron": Perceptron(),
    "margin": Perceptron(margin=3.0),
    "rate": Perceptron(eta0=4.0, margin=1.0),
    "uneven": PAUM(positive_margin=4.0, negative_margin=-1.0),
    "uneven, all mistakes": PAUM(positive_margin=0.0, negative_margin=0.0, eta0=2.0),
}
# Steps that are quotients or roots.
ROUNDED = {
    "falling rate": (Perceptron, {"learning_rate": "invsqrt"}),
    "inverse rate": (Perceptron, {"learning_rate": "inverse", "margin": 0.5}),
    "PA": (PassiveAggressiveClassifier, {"C": float("inf")}),
    "PA-I": (PassiveAggressiveClassifier, {"C": 0.1}),
    "PA-II": (PassiveAggressiveClassifier, {"C": 0.5, "loss": "squared_hinge"}),
    "MIRA": (MIRA, {"multiclass": "ovr"}),
    "MIRA without a margin": (MIRA, {"multiclass": "ovr", "margin": 0.0}),
}


class Case(NamedTuple):
    """Rows, labels, and what learns them."""

    X: np.ndarray
    y: np.ndarray
    learner: Any
    options: dict[str, Any]  # of `fit`


@st.composite
def cases(draw, partial=False):
    """Draw whole-number rows and a learner whose arithmetic is exact on them."""
    sample = draw(strategies.samples(classes=st.integers(2, 5)))
    learner = draw(st.sampled_from(list(EXACT.values())))
    params = {
        "order": draw(st.sampled_from(["shuffle", "cyclic", "random"])),
        "keep": draw(st.sampled_from(["auto", "last", "average"])),
        "fit_intercept": draw(st.booleans()),
        "intercept_scaling": draw(st.sampled_from([1.0, 3.0])),
        "multiclass": draw(st.sampled_from(["joint", "ovr"])) if isinstance(learner, Perceptron) else "ovr",
        "class_weight": draw(st.sampled_from([None, {0: 2.0}, {0: 2.0, 1: 0.0}])),
        "max_iter": draw(st.integers(1, 4)),
        "random_state": draw(st.integers(0, 9)),
        "tol": None,
    }
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    if isinstance(learner, Perceptron):
        params["batch"] = draw(st.sampled_from([1, 1, 2, 3, 7, "full"]))
        if params["batch"] != 1 and draw(st.booleans()):
            params |= {"reduction": "mean", "eta0": MANY_DIVISORS}
            dtype = np.float64  # whose whole numbers go further
    options = {}
    if draw(st.booleans()):
        weight = draw(st.lists(st.integers(0, 3), min_size=len(sample.labels), max_size=len(sample.labels)))
        weight[: sample.classes] = [max(one, 1) for one in weight[: sample.classes]]
        options["sample_weight"] = np.array(weight, np.float64)
        options["sample_weight"][[np.flatnonzero(sample.labels == k)[0] for k in range(sample.classes)]] = 1.0
    learner = type(learner)(**learner.get_params() | params)
    return Case(sample.X.astype(dtype), sample.labels, learner, options)


def learned(model):
    """All that a fitted model has learned, and how."""
    weights = model.weights_
    return {
        "w": weights.w,
        "drift": weights.drift,
        "tally": weights.tally,
        "clock": weights.clock,
        "coef": model.coef_,
        "intercept": model.intercept_,
        "classes": model.classes_,
        "class counts": model.class_count_,
        "counts": [model.n_mistakes_, model.n_updates_, model.n_seen_, model.n_iter_, model.n_features_in_],
        "history": [epoch._replace(seconds=None) for epoch in model.history_],
        "stop": model.stop_reason_,
        "conditions": [one for one in model._model.conditions if not isinstance(one, np.ndarray)],
    }


def assert_same_model(ours, theirs):
    """Two models are the same to the last bit."""
    ours, theirs = learned(ours), learned(theirs)
    for name, value in ours.items():
        if isinstance(value, np.ndarray):
            assert value.dtype == theirs[name].dtype, name
            assert np.array_equal(value, theirs[name]), name
        else:
            assert value == theirs[name], name


def assert_same_mistakes(ours, theirs, rtol):
    """Two models made the same mistakes, and their weights differ by rounding only."""
    ours, theirs = learned(ours), learned(theirs)
    assert [epoch[1:4] for epoch in ours["history"]] == [epoch[1:4] for epoch in theirs["history"]]
    for name in ("tally", "clock", "classes", "class counts"):
        assert np.array_equal(ours[name], theirs[name]), name
    assert (ours["counts"], ours["stop"], ours["conditions"]) == (theirs["counts"], theirs["stop"], theirs["conditions"])
    for name in ("w", "drift", "coef", "intercept"):
        if theirs[name] is not None:
            np.testing.assert_allclose(ours[name], theirs[name], rtol=rtol, atol=rtol * np.abs(theirs[name]).max())


def clouds(classes, rows=240, features=6, seed=0, dtype=np.float64):
    """Overlapping clouds of points: (X, y)."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, rows)
    y[:classes] = np.arange(classes)
    return (rng.standard_normal((rows, features)) + 2 * rng.standard_normal((classes, features))[y]).astype(dtype), y


def error_of(call):
    """The type, the message and the row of the error that a call raises."""
    try:
        call()
    except Exception as error:
        return type(error), str(error), getattr(error, "row", None)
    raise AssertionError("no error was raised")
