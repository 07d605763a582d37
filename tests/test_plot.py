"""What the pictures contain."""

import sys
from itertools import combinations
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
import pytest

matplotlib.use("Agg")

from matplotlib import pyplot
from matplotlib.colors import to_hex
from matplotlib.text import Text

from rosenblatt import Perceptron, plot
from rosenblatt.errors import MissingDependency
from rosenblatt.online.evaluation import Evaluation
from rosenblatt.rules import PA1
from rosenblatt.theory import find_cycle, growth, trace
from rosenblatt.theory.cycles import lengths
from rosenblatt.theory.hard import exponential, smoothing, with_margin

rng = np.random.default_rng(0)
X = rng.integers(-4, 5, (60, 2)).astype(float)
TWO = np.where(X @ [2, 1] + 0.5 > 0, "up", "down")  # separable
MANY = np.argmax(X @ [[2, -1, -1], [0, 2, -2]] + rng.integers(-1, 2, (60, 3)), axis=1)  # not
NOISE = rng.integers(0, 2, 60)


def labels(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def points(ax):
    """The places of the markers, by the label of their legend."""
    return {drawn.get_label(): np.asarray(drawn.get_offsets()) for drawn in ax.collections if len(drawn.get_offsets()) > 1}


@pytest.mark.parametrize(
    "draw",
    [
        lambda name: plot.boundary(
            Perceptron().fit(frame := pd.DataFrame({name: [0, 1], "b": [0, 1]}), y := [name, "no"]), frame, y
        ),
        lambda name: plot.separability([[0, 0], [1, 1]], [name, "no"]),
        lambda name: plot.separators([[0, 0], [1, 1]], [0, 1], {name: ([1, 1], -1)}),
        lambda name: plot.weights([[1, 2]], [name]),
        lambda name: plot.steps({name: PA1(1.0)}),
    ],
)
def test_a_name_with_dollars_is_no_formula(draw):
    figure = draw("$x_$").figure
    figure.draw_without_rendering()
    shown = [text.get_text() for text in figure.findobj(Text)]
    assert any("$x_$" in text.replace(r"\$", "$") for text in shown)


def test_history_shows_mistakes_updates_and_bound():
    clf = Perceptron(tol=None).fit(X, TWO)
    ax = plot.history(clf, bound=2.0 * clf.n_updates_)
    (steps,) = ax.patches
    assert steps.get_data().values.tolist() == [epoch.mistakes for epoch in clf.history_]
    updates, bound = ax.lines
    assert np.array_equal(updates.get_ydata(), np.cumsum([epoch.updates for epoch in clf.history_]))
    assert bound.get_ydata() == [2 * clf.n_updates_] * 2
    assert labels(ax) == ["mistakes in the epoch", f"updates so far: {clf.n_updates_}", f"bound: {2 * clf.n_updates_}"]
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_yscale()) == ("epoch", "count", "linear")
    assert "converged" in ax.get_title()


def test_history_is_logarithmic_when_the_bound_is_far():
    clf = Perceptron(max_iter=4, tol=None).fit(X, MANY)
    assert len(plot.history(clf).lines) == 1
    assert plot.history(clf, bound=1000.0 * clf.n_updates_).get_yscale() == "log"


def test_history_needs_epochs():
    clf = Perceptron().partial_fit(X, TWO, classes=["down", "up"])
    with pytest.raises(ValueError, match="partial_fit does not"):
        plot.history(clf)


def test_boundary_shows_each_class_by_its_marker_and_the_line_between():
    clf = Perceptron(tol=None).fit(X, TWO)
    ax = plot.boundary(clf, X, TWO)
    assert labels(ax) == ["down", "up"]
    assert {name: len(places) for name, places in points(ax).items() if name in TWO} == {
        name: int((name == TWO).sum()) for name in ("down", "up")
    }
    shapes = [drawn.get_paths()[0].vertices.shape for drawn in ax.collections if drawn.get_label() in ("down", "up")]
    assert shapes[0] != shapes[1], "a cross and a circle"
    (line,) = [drawn for drawn in ax.collections if drawn.get_label() not in ("down", "up")]
    on_it = line.get_paths()[0].vertices
    assert np.allclose(clf.decision_function(on_it), 0, atol=1e-6)
    (image,) = ax.images
    assert len(np.unique(image.get_array().reshape(-1, 3), axis=0)) == 2
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_title()) == ("feature 0", "feature 1", "0 of 60 misclassified")


@pytest.mark.parametrize("parameters", [{}, {"multiclass": "ovo"}, {"keep": "vote"}], ids=str)
def test_boundary_of_many_classes_rings_what_is_wrong(parameters):
    clf = Perceptron(**{"keep": "last", "max_iter": 5, "tol": None} | parameters).fit(X, MANY)
    ax = plot.boundary(clf, X, MANY)
    wrong = X[clf.predict(X) != MANY]
    assert labels(ax) == ["0", "1", "2", f"misclassified: {len(wrong)}"]
    assert np.array_equal(points(ax)[f"misclassified: {len(wrong)}"], wrong)
    (image,) = ax.images
    assert len(np.unique(image.get_array().reshape(-1, 3), axis=0)) == 3


def test_boundary_takes_names_from_a_table_and_axes_from_the_caller():
    table = pd.DataFrame(X, columns=["length", "width"])
    clf = Perceptron(tol=None).fit(table, TWO)
    _, mine = pyplot.subplots()
    assert plot.boundary(clf, table, TWO, ax=mine) is mine
    assert (mine.get_xlabel(), mine.get_ylabel()) == ("length", "width")
    assert plot.history(clf, ax=mine) is mine


def test_boundary_has_two_dimensions():
    clf = Perceptron(tol=None).fit(X, TWO)
    with pytest.raises(ValueError, match=r"two features, but its shape is \(60, 3\)"):
        plot.boundary(clf, np.hstack([X, X[:, :1]]), TWO)


def test_progress_draws_the_mistakes_of_each_stretch():
    first, second = (Evaluation(np.array([10, 20]), np.array(m), np.zeros(2), None) for m in ([5, 6], [2, 2]))
    ax = plot.progress({"one": first, "two": second})
    assert [line.get_ydata().tolist() for line in ax.lines] == [[50, 10], [20, 0]]
    assert written(ax) == ["one: 6 mistakes", "two: 2 mistakes"]
    with pytest.raises(ValueError, match="one run or more"):
        plot.progress({})


def hard(n):
    rows, signs = np.tril(-np.ones((n, n)), -1) + np.eye(n), np.where(np.arange(n) % 2, -1, 1)
    return rows * signs[:, None], signs


def test_proof_shows_both_walls_and_where_they_meet():
    run = trace(*hard(4), constant=0)
    ax = plot.proof(run)
    upper, lower, norm, progress, meet = ax.lines
    assert written(ax) == ["the walls meet:\nat most 340 updates", "‖w‖ ≤ √k R", "⟨w, u⟩ ≥ kγ"]
    assert labels(ax) == ["‖w‖", "⟨w, u⟩"]
    ends = {text.get_text(): text.xy for text in ax.texts}
    for name, wall in (("‖w‖ ≤ √k R", 1), ("⟨w, u⟩ ≥ kγ", 0)):
        assert ends[name][1] == pytest.approx(run.walls(ends[name][0])[wall]), "each wall has its name on it"
    assert (upper.get_xdata() == lower.get_xdata()).all()
    assert np.allclose(upper.get_ydata(), 2 * np.sqrt(upper.get_xdata()))
    assert np.array_equal(norm.get_ydata(), run.norm)
    assert np.array_equal(progress.get_ydata(), run.progress)
    assert np.allclose((*meet.get_xdata(), *meet.get_ydata()), (340, 2 * np.sqrt(340)))
    assert (ax.get_title(), ax.get_xscale()) == ("85 updates, converged", "linear")
    floor, cosine, one = ax.figure.axes[1].lines
    assert np.isclose(np.interp(340, *floor.get_data()), 1, atol=1e-3), "the floor is 1 where the walls meet"
    assert np.array_equal(cosine.get_ydata(), run.cosine, equal_nan=True)
    assert one.get_ydata() == [1, 1]


def test_proof_is_logarithmic_when_the_bound_is_far():
    ax = plot.proof(trace(X, TWO, delta=0.5, rate=2.0, start=[1.0, 1.0, 0.0], order="shuffle"))
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert {"‖w‖ ≤ √(‖w₀‖² + k(η²R² + 2ηδ))", "⟨w, u⟩ ≥ ⟨w₀, u⟩ + kηγ"} <= set(written(ax))
    assert [line.get_xdata()[0] for line in ax.lines[2:4]] == [1, 1], "where there is no 0, no line comes from it"


def test_proof_shows_a_wall_that_breaks_and_draws_where_it_is_told():
    _, mine = pyplot.subplots()
    run = trace(X, NOISE, separator=[2.0, 1.0, 0.5], gamma=0.5, max_updates=400)
    assert plot.proof(run, mine) is mine
    assert len(mine.figure.axes) == 1
    assert f"a wall is passed at k = {run.broken}" in written(mine)
    assert mine.get_title() == "400 updates, not converged"
    without = plot.proof(trace(X, NOISE, separator=[2.0, 1.0, 0.5], max_updates=50))
    assert not any("meet" in text for text in written(without))


def test_without_matplotlib_the_message_says_what_to_install(monkeypatch):
    clf = Perceptron(max_iter=2, tol=None).fit(X, TWO)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingDependency, match=r"pictures need the package matplotlib.*pip install 'rosenblatt\[plot\]'"):
        plot.history(clf)


def test_proof_asks_for_a_traced_run():
    with pytest.raises(TypeError, match=r"rosenblatt.theory.trace\(X, y\) returned; got \[\["):
        plot.proof([[0.0, 1.0]])


def test_growth_draws_the_counts_and_the_laws():
    def double_loop(n):
        total = 0
        for i in range(n):
            for j in range(n):
                total = total + i * j
        return total

    ax = plot.growth(growth(double_loop, [2, 3, 5, 8, 12, 16, 20], make=lambda n: (n,)))
    assert ax.get_title().startswith("n²: ")
    assert {text.get_text() for text in ax.texts} >= {"n", "n²", "n³"}
    assert len(ax.lines[-1].get_xdata()) == 7
    assert ax.get_xscale() == ax.get_yscale() == "log"


def test_lengths_mark_the_cycle_and_what_they_cannot_pass():
    data, signs = [[3, 0], [2, 1], [1, 3], [0, -1]], [1, -1, 1, 1]
    cycle = find_cycle(data, signs)
    ax = plot.lengths(lengths(data, signs, epochs=40), cycle)
    assert "a period of 11 epochs" in ax.get_title()
    assert f"never more than {cycle.largest:.4g}" in labels(ax)
    assert plot.lengths([1.0, 2.0, 1.5], bound=2.5).get_ylim()[1] > 2.5


def test_smoothing_shows_copies_medians_and_the_count_without_noise():
    hard = exponential(4)
    found = smoothing(hard.X / 2, hard.y, [0.0, 0.01, 0.1], constant=0.0, draws=3)
    ax = plot.smoothing(found)
    assert "without noise: 85" in labels(ax)
    assert ax.get_xscale() == "log"


WORDS = [("dogs", "NOUN"), ("chase", "VERB"), ("cats", "NOUN")]
ARCS = [(2, "nsubj"), (0, "root"), (2, "obj")]


def written(ax):
    return sorted(text.get_text() for text in ax.texts if text.get_text())


def test_a_tree_shows_every_word_tag_and_label():
    ax = plot.tree(WORDS, ARCS)
    assert written(ax) == sorted(["dogs", "chase", "cats", "NOUN", "VERB", "NOUN", "nsubj", "root", "obj"])
    assert len(ax.lines) == 2  # the root is an arrow


def test_a_tree_shows_where_it_differs_from_gold():
    guess = [(2, "nsubj"), (0, "root"), (1, "obj")]
    ax = plot.tree([form for form, _ in WORDS], guess, gold=ARCS)
    colours = [line.get_color() if isinstance(line.get_color(), str) else tuple(line.get_color()) for line in ax.lines]
    assert len(set(colours)) == 3  # right, wrong, and the arc that is missing
    assert written(ax).count("obj") == 2


def test_arcs_within_an_arc_are_drawn_below_it():
    ax = plot.tree(list("abcd"), [(0, "r"), (3, "in"), (1, "mid"), (1, "out")])
    heights = {tuple(np.round(line.get_xdata()[[0, -1]], 1)): line.get_ydata().max() for line in ax.lines}
    assert len(set(heights.values())) == 3


@pytest.mark.parametrize("words", [[], ["a"]])
def test_the_smallest_trees_can_be_drawn(words):
    ax = plot.tree(words, [(0, "root")] * len(words))
    assert written(ax) == [*words, *["root"] * len(words)]
    assert (*ax.get_xlim(), *ax.get_ylim()) == pytest.approx((0, 0.46 if words else 0.1, -1, 1.5))


def test_a_tree_needs_an_arc_a_word():
    with pytest.raises(ValueError, match="3 words and 2 arcs"):
        plot.tree(WORDS, ARCS[:2])
    with pytest.raises(ValueError, match="3 words and 2 gold"):
        plot.tree(WORDS, ARCS, gold=ARCS[:2])


@pytest.mark.parametrize("heads", [[2, 0, 2], np.array([2, 0, 2])], ids=["list", "array"])
def test_a_tree_can_be_bare_heads(heads):
    ax = plot.tree([form for form, _ in WORDS], heads)
    assert written(ax) == ["cats", "chase", "dogs"]
    assert len(ax.lines) == 2


def test_a_bare_head_is_right_whatever_the_label():
    def colours(guess, gold=None):
        return {to_hex(line.get_color()) for line in plot.tree(WORDS, guess, gold=gold).lines}

    assert len(colours(ARCS)) == 1
    for guess, gold in [([2, 0, 2], ARCS), (ARCS, [2, 0, 2]), ([2, 0, 2], np.array([2, 0, 2]))]:
        assert colours(guess, gold) == colours(ARCS)
    assert len(colours([2, 0, 1], [2, 0, 2])) == 3


@pytest.mark.parametrize("heads", [[2, 3, 2], [(2, "nsubj"), (3, "dep"), (2, "obj")]], ids=["heads", "labelled"])
def test_what_is_no_tree_is_not_drawn(heads):
    with pytest.raises(ValueError, match=r"^arcs: the heads are not a tree; they form a cycle 2 → 3 → 2"):
        plot.tree(WORDS, heads)
    with pytest.raises(ValueError, match=r"^gold: .* cycle 2 → 3 → 2"):
        plot.tree(WORDS, ARCS, gold=heads)
    with pytest.raises(ValueError, match=r"^arcs: word 3 has head 4, but there are 3 words"):
        plot.tree(WORDS, [2, 0, 4])


def test_confusions_lead_with_what_is_confused_most():
    table = {("A", "A"): 50, ("A", "B"): 2, ("B", "C"): 7, ("C", "C"): 9, ("B", "B"): 1, ("D", "D"): 99}
    ax = plot.confusions(table, most=3)
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["B", "C", "A"]
    assert written(ax) == sorted(["50", "2", "7", "9", "1"])
    with pytest.raises(ValueError, match="confusions is empty"):
        plot.confusions({})


def test_the_page_of_pictures_names_every_one():
    page = (Path(__file__).parents[1] / "docs" / "howto" / "pictures.md").read_text(encoding="utf-8")
    for name in plot.__all__:
        assert f"plot.{name}(" in page, f"plot.{name} is not on the page"


FEW = np.array([[0, 2], [1, 0], [2, 3], [3, 1], [-0.6, -0.6], [-1, -2], [-2, 0], [-3, -1], [1.2, -0.9], [2, 1.5]])
FAR = with_margin(200, 10, margin=0.065, radius=1.0, random_state=4)  # a bound of 237 updates
LABELLED = {
    "proof": lambda: plot.proof(trace(*hard(3), constant=0)),
    "proof, logarithmic": lambda: plot.proof(trace(FAR.X, FAR.y, constant=0, max_updates=22)),
    "subgradient": plot.subgradient,
    "soft margin, wide": lambda: plot.soft_margin(FEW, [1] * 5 + [-1] * 5, C=0.05),
    "soft margin, narrow": lambda: plot.soft_margin(FEW, [1] * 5 + [-1] * 5, C=10),
}


@pytest.mark.parametrize("draw", LABELLED.values(), ids=LABELLED)
def test_labels_do_not_cover_each_other(draw):
    ax = draw()
    ax.figure.canvas.draw()
    named = [text for text in ax.texts if text.get_text()]
    legend = ax.get_legend()
    boxes = [Text.get_window_extent(text) for text in [*named, *(legend.get_texts() if legend else ())]]  # without arrows
    assert len(boxes) > 3
    assert not [(a, b) for a, b in combinations(boxes, 2) if a.overlaps(b)]
