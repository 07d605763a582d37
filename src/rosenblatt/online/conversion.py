"""From an online learner to one predictor. A pass over T examples leaves a trail of hypotheses h_0, …, h_T, h_t being the
weights after t examples; each of h_0, …, h_{T−1} was tested on an example that it had not seen. What is predicted with is
chosen from them by name, and each choice has the guarantee that it has.

The trail is not stored: every hypothesis is the sum of the moves made before it. The examples are taken to be drawn
independently from one distribution, and the risk is the expected loss on one more. The losses of the tests minus the risks
are then the steps of a martingale, from which the bounds follow (Cesa-Bianchi, Conconi and Gentile 2004).
"""

from __future__ import annotations

from collections.abc import Iterator
from math import log, sqrt
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rosenblatt.estimator import Classifier
from rosenblatt.model import Model, fresh
from rosenblatt.online.perceptron import rule_of
from rosenblatt.parameters import Number, OneOf
from rosenblatt.plan import Plan
from rosenblatt.problems import Binary, Problem, columns
from rosenblatt.rows import Examples, Rows, lengths
from rosenblatt.train import Log, Trainer, Visits


class Guarantee(NamedTuple):
    """What a way of choosing promises: about which loss, of what, in which sense, and where it is proved."""

    loss: str
    of: str
    holds: str
    source: str


_ZERO_ONE = "zero-one, a tie counting as an error"
_SURE = "with probability ≥ 1 − δ over the examples"
_2004 = "Cesa-Bianchi, Conconi and Gentile 2004"

GUARANTEES = {
    "last": Guarantee(_ZERO_ONE, "the last hypothesis", "trivially: it was not tested, and may be the worst", "risk ≤ 1"),
    "random": Guarantee(
        _ZERO_ONE, "the mean risk of the hypotheses that may be drawn; its expectation is E[M]/T", _SURE, _2004
    ),
    "average": Guarantee(
        "hinge, max(0, 1 − m), hence zero-one too; no |m| may exceed `margin_bound`, without which the bound is 1",
        "the mean of the weights h_0, …, h_{T−1}: a convex loss of a mean is at most the mean of the losses",
        _SURE,
        _2004,
    ),
    "vote": Guarantee(
        _ZERO_ONE, "the majority of h_0, …, h_{T−1}: where it errs, at least half of them do", _SURE, f"twice {_2004}"
    ),
    "longest-survivor": Guarantee(
        _ZERO_ONE, "the weights with the longest run of right answers", _SURE, "Kearns, Li, Pitt and Valiant 1987"
    ),
    "best-suffix": Guarantee(
        _ZERO_ONE, "the hypothesis with the least penalised share of mistakes on all later examples", _SURE, _2004
    ),
}


def mean_risk_bound(loss: float, examples: int, delta: float, largest: float = 1.0) -> float:
    """L/T + B·sqrt(2 ln(1/δ)/T): with probability ≥ 1 − δ the mean risk of h_0, …, h_{T−1} is at most this, if their losses
    on the examples after them, each between 0 and B, added up to L."""
    return loss / examples + largest * sqrt(2 / examples * log(1 / delta))


def penalty(tests: int, examples: int, delta: float) -> float:
    """sqrt(ln(T(T + 1)/δ)/(2r)): with probability ≥ 1 − δ every h_t has a share of mistakes on the r = T − t examples after
    it that is no further than this from its risk."""
    return sqrt(log(examples * (examples + 1) / delta) / (2 * tests))


def best_suffix_bound(mistakes: float, examples: int, delta: float) -> float:
    """M/T + 6·sqrt(ln(2(T + 1)/δ)/T): with probability ≥ 1 − δ the risk of the hypothesis that is best with the penalties
    of δ/2 is at most this.

    It is at most the least risk(h_t) + 2·penalty, hence at most their mean. The mean of the penalties is at most
    2·sqrt(ln(2(T + 1)/δ)/T), and the other δ/2 goes to the mean risk.
    """
    return mistakes / examples + 6 * sqrt(log(2 * (examples + 1) / delta) / examples)


def survivor_bound(run: int, examples: int, delta: float) -> float:
    """1 − (2δ/(T(T + 1)))^(1/r): with probability ≥ 1 − δ the risk of a hypothesis that was right on the r examples after
    it is at most this.

    One of risk > ε is right on them with probability < (1 − ε)^r, and there are T(T + 1)/2 stretches of examples.
    """
    return 1 - (2 * delta / (examples * (examples + 1))) ** (1 / run) if run else 1.0


class Trail(NamedTuple):
    """One pass over examples in their order, from weights of zero: all that is needed to have every hypothesis again."""

    X: Any  # (T, features), an array or a CSR matrix
    labels: NDArray  # (T,) class numbers
    problem: Problem
    constant: float
    moves: NDArray  # MOVE records; `clock` is the example, counted from 0, at which the weights changed

    def combined(self, shares: NDArray) -> NDArray:
        """(features + 1, vectors): the sum of these shares of the moves."""
        factors = np.zeros((len(self.moves), columns(self.problem)))
        each = np.arange(len(self.moves))
        factors[each, self.moves["gains"]] += shares * self.moves["tau"]
        if not isinstance(self.problem, Binary):
            factors[each, self.moves["loses"]] -= shares * self.moves["tau"]
        return np.vstack([self.X[self.moves["row"]].T @ factors, self.constant * factors.sum(axis=0)])

    def hypothesis(self, t: int) -> NDArray:
        """h_t."""
        return self.combined((self.moves["clock"] < t).astype(float))

    def average(self) -> NDArray:
        """The mean of h_0, …, h_{T−1}: a move made at example c is in T − 1 − c of them."""
        return self.combined((len(self.labels) - 1 - self.moves["clock"]).astype(float)) / len(self.labels)

    def stretches(self) -> Iterator[tuple[int, int, NDArray]]:
        """(first, end, w): h_t is w for first ≤ t < end. All t < T are covered; w is changed in place afterwards."""
        w, first = np.zeros((self.X.shape[1] + 1, columns(self.problem))), 0
        for move in self.moves:
            end = int(move["clock"]) + 1
            yield first, end, w
            row = self.X[[int(move["row"])]]
            row = np.append(row.toarray() if sp.issparse(row) else row, self.constant)
            w[:, move["gains"]] += move["tau"] * row
            if move["loses"] >= 0:
                w[:, move["loses"]] -= move["tau"] * row
            first = end
        if first < len(self.labels):
            yield first, len(self.labels), w

    def margins(self, w: NDArray, first: int, end: int) -> NDArray:
        """The margins of the examples from `first` to before `end` by the weights w."""
        scores = np.asarray(self.X[first:end] @ w[:-1] + self.constant * w[-1])
        labels = self.labels[first:end]
        if isinstance(self.problem, Binary):
            return np.where(labels == 1, scores[:, 0], -scores[:, 0])
        each = np.arange(len(labels))
        own = scores[each, labels].copy()
        scores[each, labels] = -np.inf
        return own - scores.max(axis=1)

    def tested(self) -> NDArray:
        """(T,) the margin of each example by the hypothesis before it."""
        return np.concatenate([self.margins(w, first, end) for first, end, w in self.stretches()])

    def longest_run(self) -> tuple[int, int]:
        """(t, r): h_t was right on the r examples after it, and no weights were on more, while they lasted."""
        best = (0, 0)
        for first, end, w in self.stretches():
            since = first
            for t, right in enumerate(self.margins(w, first, end) > 0.0, first):
                if not right:
                    since = t + 1
                elif t + 1 - since > best[1]:
                    best = since, t + 1 - since
        return best

    def best_suffix(self, delta: float) -> tuple[int, float]:
        """(t, estimate): the h_t whose share of mistakes on all examples after it, plus the penalty, is least; the first of
        equals. Every change of the weights costs a pass over the examples after it."""
        examples = len(self.labels)
        tests = examples - np.arange(examples)
        penalties = np.array([penalty(r, examples, delta) for r in tests.tolist()])
        best = (0, np.inf)
        for first, end, w in self.stretches():
            wrong = self.margins(w, first, examples) <= 0.0
            mistakes = wrong[::-1].cumsum()[::-1][: end - first]
            estimates = mistakes / tests[first:end] + penalties[first:end]
            place = int(estimates.argmin())
            if estimates[place] < best[1]:
                best = first + place, float(estimates[place])
        return best


class OnlineToBatch(Classifier):
    """Predicts with what one pass of an online learner leaves: a hypothesis of its trail, or all of them together.

    Parameters
    ----------
    how : {"last", "random", "average", "vote", "longest-survivor", "best-suffix"}, default="best-suffix"
        Which of the hypotheses h_0, …, h_T predict.

        last: h_T. It need not be any good.
        random: one of h_0, …, h_{T−1}, drawn with equal chances. Expected risk = E[M]/T, M being the mistakes.
        average: the mean of h_0, …, h_{T−1}.
        vote: their majority (Freund and Schapire 1999).
        longest-survivor: the one with the longest run of right answers, the pocket without its ratchet (Gallant 1990).
        best-suffix: the one with the least share of mistakes on all examples after it, plus a penalty that is larger
        the fewer these are. Each update of the run costs a pass over the examples that follow.
    rule : NamedTuple of rosenblatt.rules or "perceptron", default="perceptron"
        How far an example moves the weights.
    delta : float, default=0.05
        The bound may fail with this probability; best-suffix also chooses by it.
    margin_bound : float or None, default=None
        No margin can be larger in size than this, whatever the examples. Only the guarantee of the average needs it.
    fit_intercept : bool, default=True
        Whether to learn an intercept, as the weight of a constant feature.
    intercept_scaling : float, default=1
        The size of that constant.
    random_state : int, RandomState or None, default=0
        What draws the random hypothesis.

    Attributes
    ----------
    risk_bound_ : float
        At most 1. If the examples are independent draws from one distribution, the expected loss on another is at most
        this, in the sense of `guarantee_`. The mean risk: M/T + sqrt(2 ln(1/δ)/T), twice that for the vote, and with the
        hinge losses and their bound in place of M and 1 for the average. The best suffix: M/T + 6 sqrt(ln(2(T + 1)/δ)/T),
        or its penalised share of mistakes if that is less. The longest survivor of r examples: 1 − (2δ/(T(T + 1)))^(1/r).
    guarantee_ : Guarantee
        Which loss the bound is about, of what it is the expectation, and in which sense it holds.
    hypothesis_ : int or None
        After how many examples the hypothesis that predicts came about; None where all of them predict.
    coef_, intercept_ : (vectors, features) and (vectors,) arrays
        The weights that predict; with the vote, the last ones.
    classes_, n_mistakes_, n_updates_, n_seen_
        As in Perceptron.

    Examples
    --------
    >>> import numpy as np
    >>> from rosenblatt.online import OnlineToBatch
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((2000, 2))
    >>> y = X @ [1, 2] > 0
    >>> clf = OnlineToBatch("best-suffix").fit(X, y)
    >>> clf.hypothesis_, clf.n_mistakes_, round(clf.risk_bound_, 3)
    (45, 81, 0.078)
    """

    max_iter = 1
    order = "cyclic"
    tol = None
    multiclass = "joint"

    _own = {  # noqa: RUF012
        "how": OneOf(tuple(GUARANTEES)),
        "delta": Number(0, open_low=True, high=1),
        "margin_bound": Number(0, open_low=True, optional=True),
    }

    def __init__(
        self,
        how: str = "best-suffix",
        rule: Any = "perceptron",
        *,
        delta: float = 0.05,
        margin_bound: float | None = None,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        random_state: Any = 0,
    ):
        self.how = how
        self.rule = rule
        self.delta = delta
        self.margin_bound = margin_bound
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Any:
        """Pass once over the rows of X (rows, features) and y (rows,), in the order given, and choose; the estimator
        itself."""
        return self._fit(X, y)

    @property
    def coef_(self) -> NDArray:
        return self._fitted().kept()[0]

    @property
    def intercept_(self) -> NDArray:
        return self._fitted().kept()[1]

    def _fresh(self, plan: Plan, rows: Rows, features: int, classes: int, init: Any) -> Model:
        return fresh(plan.problem(classes), rows, features, plan.constant, "vote" if self.how == "vote" else "last")

    def _learner(self, plan: Plan, model: Model, X: Any, examples: Examples, visits: Visits) -> Trainer:
        rule = rule_of(self.rule)
        if rule.uses_length:
            examples = examples._replace(lengths=lengths(examples.rows, examples.constant))
        return Trainer(examples, model.weights, model.problem, rule, visits, Log())

    def _keep(self, model: Model, X: Any, learner: Trainer) -> None:
        """Choose what predicts, and say what is known of its risk."""
        assert learner.log is not None
        trail = Trail(X, learner.examples.labels, model.problem, model.constant, learner.log.moves())
        self.guarantee_ = GUARANTEES[self.how]
        self.hypothesis_, w, bound = self._chosen(trail)
        self.risk_bound_ = min(bound, 1.0)
        if w is not None:
            w = w[:, 0] if isinstance(model.problem, Binary) else w
            model.weights = model.weights._replace(w=w.astype(model.weights.w.dtype))
        if self.how == "vote":
            votes = trail.moves.copy()
            votes["clock"] += 1  # a vote for each of h_0, …, h_{T−1}, where `Votes` counts h_1, …, h_T
            model.remember(X, votes)

    def _chosen(self, trail: Trail) -> tuple[int | None, NDArray | None, float]:
        """(number of the hypothesis, weights that predict, bound); None where all hypotheses, or the last, predict."""
        examples, delta = len(trail.labels), self.delta
        if self.how == "last":
            return examples, None, 1.0
        if self.how == "longest-survivor":
            t, run = trail.longest_run()
            return t, trail.hypothesis(t), survivor_bound(run, examples, delta)
        margins = trail.tested()
        mistakes = int(np.count_nonzero(margins <= 0.0))
        if self.how == "best-suffix":
            t, estimate = trail.best_suffix(delta / 2)
            return t, trail.hypothesis(t), min(estimate, best_suffix_bound(mistakes, examples, delta))
        if self.how == "average":
            if self.margin_bound is None:
                return None, trail.average(), 1.0
            losses = float(np.maximum(0.0, 1.0 - margins).sum())
            return None, trail.average(), mean_risk_bound(losses, examples, delta, 1.0 + self.margin_bound)
        bound = mean_risk_bound(mistakes, examples, delta)
        if self.how == "vote":
            return None, None, 2 * bound
        t = int(self._plan().rng().integers(examples))
        return t, trail.hypothesis(t), bound
