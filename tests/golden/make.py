"""Writes the golden files: a model of each kind, learned from fixed numbers, and beside it what it answers.

    python tests/golden/make.py

They are written once, by the version that introduces a format, and must load for ever: never write them again, add others.
"""

from __future__ import annotations

import json
import warnings
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from rosenblatt import (
    ALMA,
    AROW,
    DeltaRuleRegressor,
    Forgetron,
    KernelPerceptron,
    NormalisedWinnow,
    PassiveAggressiveClassifier,
    Perceptron,
    PNormPerceptron,
    RandomBudgetPerceptron,
    SecondOrderPerceptron,
    SigmaPerceptron,
    Winnow2,
    rules,
)
from rosenblatt.data.svmlight import Svmlight
from rosenblatt.data.tables import Table
from rosenblatt.online import OnlinePerceptron, OnlineToBatch
from rosenblatt.structured import GraphParser, SequenceTagger, TagAndParse, TransitionParser
from rosenblatt.structured.parser import DependencyParser
from rosenblatt.workflow import FileModel, Options, train

FOLDER = Path(__file__).parent
X = np.array([[2, 1, 0], [0, 1, 3], [1, -2, 1], [3, 0, -1], [-1, 2, 2], [0, -3, 1], [2, 2, -2], [-2, 1, 1.0]])
TWO = np.array(["ham", "spam", "ham", "ham", "spam", "ham", "ham", "spam"])
THREE = np.array([10, 30, 20, 10, 30, 20, 10, 30])
TARGETS = X @ [1.0, -2.0, 0.5] + 1
BITS = (X > 0).astype(np.float64)
QUESTIONS = np.array([[1, 1, 1], [-1, 0, 2], [0, -1, 0], [3, 1, -2.0]])
SENTENCES = [["the", "dog", "barks"], ["a", "cat"], ["the", "cat", "sleeps"]]
TAGS = [["DET", "NOUN", "VERB"], ["DET", "NOUN"], ["DET", "NOUN", "VERB"]]
TREES = [[(2, "det"), (3, "nsubj"), (0, "root")], [(2, "det"), (0, "root")], [(2, "det"), (3, "nsubj"), (0, "root")]]
TAGGED = [list(zip(*pair, strict=True)) for pair in zip(SENTENCES, TAGS, strict=True)]
BOTH = [[(tag, *arc) for tag, arc in zip(*pair, strict=True)] for pair in zip(TAGS, TREES, strict=True)]
FIELDS = ("form", "upos")
STEPS, ARCS = ("upos[s0] upos[b0]",), ("upos[h] upos[m]",)
TABLE = "label,colour,size,sure,text\nham,red,1,true,see you\nspam,blue,5,false,a prize\nham,red,2,true,see me\n"
SVMLIGHT = "+1 1:2 3:1\n-1 2:1 3:-1\n+1 1:1 4:0.5\n"

MODELS = {
    "average": (Perceptron(keep="average", order="cyclic", max_iter=2, class_weight={10: 1.0, 20: 2.0, 30: 1.0}), X, THREE),
    "vote": (Perceptron(keep="vote", order="cyclic", max_iter=1), X, TWO),
    "pocket": (Perceptron(keep="pocket", order="cyclic", max_iter=2), X, TWO),
    "pairs": (PassiveAggressiveClassifier(multiclass="ovo", C=float("inf"), shuffle=False, max_iter=1), X, THREE),
    "regressor": (DeltaRuleRegressor(eta0=0.03125, order="cyclic", max_iter=2), X, TARGETS),
    "scaled": (ALMA(order="cyclic", max_iter=2), X, TWO),
    "p-norm": (PNormPerceptron(p=3.0, order="cyclic", max_iter=2), X, TWO),
    "variances": (AROW(order="cyclic", max_iter=1), X, THREE),
    "matrix": (SecondOrderPerceptron(order="cyclic", max_iter=1), X, TWO),
    "rows": (AROW(form="dual", order="cyclic", max_iter=1), X, TWO),
    "simplex": (NormalisedWinnow(order="cyclic", max_iter=2), X, TWO),
    "threshold": (Winnow2(order="cyclic", max_iter=2), BITS, TWO),
    "kernel": (KernelPerceptron("poly", degree=2, keep="vote", order="cyclic", max_iter=1), X, TWO),
    "forgetron": (Forgetron(budget=3, order="cyclic", max_iter=1), X, TWO),
    "chance": (RandomBudgetPerceptron(budget=2, order="cyclic", max_iter=2), X, TWO),
    "pass": (OnlineToBatch(how="best-suffix", rule=rules.Perceptron(0.5, 1.0)), X, TWO),
    "sigma": (SigmaPerceptron(sigma=0.4), X, TWO),
    "tagger": (SequenceTagger(templates=("form[0]",), order="cyclic", max_iter=2), SENTENCES, TAGS),
    "transitions": (TransitionParser(1, fields=FIELDS, templates=STEPS, order="cyclic", max_iter=2), TAGGED, TREES),
    "beam": (TransitionParser(2, fields=FIELDS, templates=STEPS, order="cyclic", max_iter=2), TAGGED, TREES),
    "arcs": (
        GraphParser(fields=FIELDS, templates=ARCS, label_templates=ARCS, order="cyclic", max_iter=2),
        TAGGED,
        TREES,
    ),
    "both": (
        TagAndParse(
            TransitionParser(1, fields=FIELDS, templates=STEPS, order="cyclic", max_iter=2),
            SequenceTagger(templates=("form[0]",), order="cyclic", max_iter=2),
            folds=0,
        ),
        SENTENCES,
        BOTH,
    ),
}
FILES = {
    "table": (Table(missing="fill", text="text", min_count=1, characters=(3, 3)), "rows.csv", TABLE),
    "buckets": (Table(text="text", categories="colour", min_count=1, hashing=5, ngrams=(1, 1)), "rows.csv", TABLE),
    "svmlight": (Svmlight(), "rows.svm", SVMLIGHT),
}
STREAMS = {"online": {"keep": "average"}, "hashed": {"hashing": 4}}


def named(row):
    """A row as a dictionary."""
    return {"a": row[0], ("b", 1): row[1], 7: row[2]}


def answers(model):
    """What a model answers, as values of JSON."""
    if isinstance(model, OnlinePerceptron):
        return [list(model.score_one(named(row)).items()) for row in QUESTIONS.tolist()]
    if isinstance(model, FileModel):
        name = "rows.svm" if isinstance(model.reading, Svmlight) else "rows.csv"
        with TemporaryDirectory() as folder:
            path = Path(folder) / name
            path.write_text(SVMLIGHT if name == "rows.svm" else TABLE)
            (found,) = model.answers(path)
        return {"predict": found.labels.tolist(), "decision_function": found.scores.tolist()}
    if isinstance(model, SequenceTagger | TagAndParse):
        return model.predict([["a", "dog", "sleeps"], ["unknown"]])
    if isinstance(model, DependencyParser):
        return model.predict([[("a", "DET"), ("dog", "NOUN"), ("sleeps", "VERB")], [("unknown", "X")]])
    told = {"predict": model.predict(QUESTIONS).tolist()}
    if hasattr(model, "decision_function"):
        told["decision_function"] = model.decision_function(QUESTIONS).tolist()
    return told


def learned(name):
    """The model of this name, which has learned."""
    if name in STREAMS:
        model = OnlinePerceptron(**STREAMS[name])
        for row, label in zip(X.tolist(), THREE.tolist(), strict=True):
            model.learn_one(named(row), label)
        return model
    if name in FILES:
        reading, file, content = FILES[name]
        with TemporaryDirectory() as folder, chdir(folder):
            Path(file).write_text(content)
            model = train(file, reading, options=Options(passes=2, order="cyclic"))
        model.training["seconds"] = 0.0
        return model
    learner, rows, labels = MODELS[name]
    learner.fit(rows, labels)
    if hasattr(learner, "history_") and hasattr(learner.history_[0], "seconds"):
        learner.history_ = [epoch._replace(seconds=0.0) for epoch in learner.history_]
    return learner


def main() -> None:
    """Write all of them that are not there yet."""
    warnings.simplefilter("ignore")
    expected = json.loads((FOLDER / "answers.json").read_text()) if (FOLDER / "answers.json").exists() else {}
    for name in sorted({*MODELS, *STREAMS, *FILES} - set(expected)):
        if (FOLDER / f"{name}.model").exists():
            raise FileExistsError(f"{name}.model is there without its answers; golden files are not written twice")
        model = learned(name)
        model.save(FOLDER / f"{name}.model", resume=True)
        expected[name] = answers(model)
    (FOLDER / "answers.json").write_text(json.dumps(expected, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
