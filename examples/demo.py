"""Four demonstrations of the perceptron: six e-mails step by step, irises with the mistake bound, tumours with four choices
of weights, and digits with three multiclass methods. Prints tables and saves demo.png in the current directory."""

import matplotlib

matplotlib.use("Agg")

import numpy as np
from matplotlib import pyplot
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from rosenblatt import Perceptron, plot

# From the lecture notes of Waterloo's CS489/698: which words six e-mails contain.
WORDS = ["and", "viagra", "the", "of", "nigeria"]
EMAILS = np.array([[1, 1, 0, 1, 1], [0, 0, 1, 1, 0], [0, 1, 1, 0, 0], [1, 0, 0, 1, 0], [1, 0, 1, 0, 1], [1, 0, 1, 1, 0]])
KINDS = np.array(["spam", "ham", "spam", "ham", "spam", "ham"])


def heading(text):
    print(f"\n{text}\n{'-' * len(text)}")


def geometry(X, positive):
    """Return (radius, margin) of the rows with a constant feature of 1: the length of the longest row, and the margin of a
    separating unit vector. Any separator is a certificate; a support vector machine through the origin finds the widest."""
    directions = np.where(positive, 1, -1)[:, None] * np.column_stack([X, np.ones(len(X))])
    mirrored = np.vstack([directions, -directions])
    separator = SVC(kernel="linear", C=1e6).fit(mirrored, np.repeat([1, -1], len(X))).coef_[0]
    margin = (directions @ separator).min() / np.linalg.norm(separator)
    return np.linalg.norm(directions, axis=1).max(), margin


def emails():
    heading("Six e-mails, one at a time")
    clf = Perceptron()
    print(f"{'':4} {'kind':5} {'words':22} {'score':>5}  {'':7} {'w':>14} {'b':>5}")
    for i, (x, kind) in enumerate(zip(EMAILS, KINDS, strict=True)):
        score = clf.decision_function([x])[0] if i else 0.0
        updates = clf.n_updates_ if i else 0
        clf.partial_fit([x], [kind], classes=["ham", "spam"])
        outcome = "update" if clf.n_updates_ > updates else "right"
        words = " ".join(word for word, there in zip(WORDS, x, strict=True) if there)
        weights = " ".join(f"{w:2.0f}" for w in clf.coef_[0])
        print(f"{i + 1:4} {kind:5} {words:22} {score:5.0f}  {outcome:7} {weights:>14} {clf.intercept_[0]:5.0f}")
    radius, margin = geometry(EMAILS, KINDS == "spam")
    print(f"{clf.n_updates_} updates; the bound R²/γ² is {clf.mistake_bound(radius, margin):.0f}")
    reasons = clf.explain([0, 1, 0, 1, 0]).contributions
    print("'viagra of' is", clf.predict([[0, 1, 0, 1, 0]])[0], {WORDS[j]: value for j, value in reasons.items()})


def irises(left, middle, right):
    heading("Irises: setosa or not, by sepal length and width")
    iris = load_iris()
    X, species = iris.data, iris.target_names[iris.target]
    sepals, kind = X[:, :2], np.where(species == "setosa", "setosa", "the others")
    radius, margin = geometry(sepals, kind == "setosa")
    print(f"longest row R = {radius:.2f}, widest margin γ = {margin:.4f}, both with the constant feature")
    print(f"{'':20} {'epochs':>7} {'updates':>8} {'bound':>8} {'its margin':>11}  stop reason")
    for settings in ({"order": "cyclic"}, {"order": "most-violated"}, {"margin": 10.0}, {}):
        clf = Perceptron(tol=None, max_iter=100_000, **settings).fit(sepals, kind)
        bound = clf.mistake_bound(radius, margin)
        length = np.hypot(np.linalg.norm(clf.coef_), clf.intercept_[0])
        reached = np.abs(clf.decision_function(sepals)).min() / length
        name = " ".join(f"{key}={value}" for key, value in settings.items()) or "order=shuffle"
        print(f"{name:20} {clf.n_iter_:7,} {clf.n_updates_:8,} {bound:8,.0f} {reached:11.4f}  {clf.stop_reason_}")
    plot.boundary(clf, sepals, kind, left).set_title("Setosa or not: separated")
    left.set(xlabel="sepal length (cm)", ylabel="sepal width (cm)")
    left.legend(loc="lower right")
    plot.history(clf, middle, clf.mistake_bound(radius, margin)).set_title("Updates stay below R²/γ²")

    petals = X[:, 2:]
    many = Perceptron(keep="average", tol=None, max_iter=200).fit(petals, species)
    plot.boundary(many, petals, species, right).set_title("Three species, averaged weights")
    right.set(xlabel="petal length (cm)", ylabel="petal width (cm)")
    right.legend(loc="lower right")


def tumours():
    heading("Breast cancer: which weights predict best (standardised, 30 % for testing)")
    X, y = load_breast_cancer(return_X_y=True)
    parts = train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)
    print(f"{'keep':10} {'epochs':>7} {'updates':>8} {'training accuracy':>17} {'test':>9}")
    for keep in ("last", "average", "pocket", "vote"):
        model = make_pipeline(StandardScaler(), Perceptron(keep=keep, max_iter=50, tol=None)).fit(parts[0], parts[2])
        clf, training, test = model[-1], model.score(parts[0], parts[2]), model.score(parts[1], parts[3])
        print(f"{keep:10} {clf.n_iter_:7} {clf.n_updates_:8,} {training:17.1%} {test:9.1%}")


def digits():
    heading("Digits: ten classes (8 × 8 pixels, 30 % for testing)")
    X, y = load_digits(return_X_y=True)
    parts = train_test_split(X / 16, y, test_size=0.3, random_state=0, stratify=y)
    print(f"{'multiclass':10} {'vectors':>7} {'epochs':>7} {'updates':>8} {'test':>9}  stop reason")
    for multiclass in ("joint", "ovr", "ovo"):
        clf = Perceptron(multiclass=multiclass, keep="average").fit(parts[0], parts[2])
        test = clf.score(parts[1], parts[3])
        print(f"{multiclass:10} {len(clf.coef_):7} {clf.n_iter_:7} {clf.n_updates_:8,} {test:9.1%}  {clf.stop_reason_}")


def main():
    figure, panels = pyplot.subplots(1, 3, figsize=(15, 4.8), layout="constrained")
    emails()
    irises(*panels)
    tumours()
    digits()
    figure.savefig("demo.png", dpi=110)
    print("\nsaved demo.png: the irises")


if __name__ == "__main__":
    main()
