"""What a model cannot be made of is refused before there is a log: an entry that no learner applies ends every start."""

import pytest

from rosenblatt import Perceptron, errors
from rosenblatt.serve.learners import Specification, make_learner, serve_model
from rosenblatt.serve.limits import Limits
from rosenblatt.serve.state import read_specification

LIMITS = Limits()


@pytest.mark.parametrize(
    "settings",
    [
        {"parameters": {"rule": {"PA1": {"C": "x"}}}},
        {"parameters": {"rule": {"PA1": {"C": None}}}},
        {"parameters": {"rule": {"PA1": {"C": True}}}},
        {"parameters": {"rule": {"PA1": {"C": 1e300}}}},
        {"parameters": {"rule": {"Perceptron": {"margin": None, "rate": 1}}}},
        {"parameters": {"rule": {"Perceptron": {"margin": [], "rate": 1}}}},
        {"parameters": {"rule": {"PA1": {}, "PA2": {}}}},
        {"parameters": {"rule": "PA9"}},
        {"parameters": {"keep": ["last"]}},
        {"parameters": {"no": 1}},
        {"learner": "Perceptron", "hashing": 64, "parameters": {"class_weight": {"a": [1]}}},
        {"learner": "Perceptron", "hashing": 64, "parameters": {"class_weight": {"a": "x"}}},
        {"learner": "Perceptron", "hashing": 64, "parameters": {"class_weight": {"a": -1}}},
        {"learner": "Perceptron", "hashing": 64, "parameters": {"n_jobs": 4}},
        {"learner": "Perceptron", "hashing": 64, "parameters": {"device": "cuda"}},
        {"learner": "AROW", "hashing": 64},
    ],
)
def test_parameters_that_a_step_cannot_use_are_refused_when_a_model_is_made(settings):
    with pytest.raises(errors.InvalidParameter):
        make_learner(read_specification(settings), LIMITS)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"parameters": {"rule": {"PA1": {"C": 0.5}}, "keep": "average", "max_classes": 2, "max_features": 1}},
        {"learner": "Perceptron", "hashing": 64, "parameters": {"class_weight": {"a": 2.5}}},
        {"learner": "AROW", "classes": [1, 2, 3]},
        {"learner": "PassiveAggressiveRegressor", "hashing": 64},
        {"learner": "BalancedWinnow", "hashing": 64, "classes": ["a", "b"]},
    ],
)
def test_a_model_that_was_made_has_learned_nothing(settings):
    learner = make_learner(read_specification(settings), LIMITS)
    assert (learner.seen, learner.mistakes, learner.updates, learner.classes) == (0, 0, 0, [])


def test_an_error_that_is_no_refusal_names_the_parameters(monkeypatch):
    def explode(*_):
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr("rosenblatt.serve.learners.NamedLearner.learn", explode)
    with pytest.raises(errors.InvalidParameter, match="ZeroDivisionError"):
        make_learner(Specification(), LIMITS)


def test_a_model_that_learned_on_a_gpu_goes_on_without_one():
    model = Perceptron().fit([[1.0, 0.0], [0.0, 1.0]], ["a", "b"]).set_params(device="cuda")
    learner = serve_model(model, Specification())
    learner.learn([1.0, 1.0], "b", 1.0)
    assert learner.seen == model.n_seen_ > 2
