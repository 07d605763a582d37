"""One pass over examples drawn independently leaves a hypothesis after each of them. Which of these, or which mixture, is
taken for examples to come, and what is then known of its risk, is the question of online-to-batch conversion.

h_t are the weights after t of T examples, M the mistakes of the pass, each made by the h_t before the example. Every h_t is
tested on examples it has not seen, hence M/T says what the risk of the hypotheses was on the way; the ways to choose differ
in how they get there. Mistakes are kept, not weights: any h_t is a sum over them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from itertools import groupby
from math import inf, log
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rosenblatt import rules
from rosenblatt.engine.jit import jit
from rosenblatt.engine.model import LinearModel, coef_and_intercept
from rosenblatt.engine.problems import Joint, OneVsRest, decide
from rosenblatt.engine.rows import Examples, lengths
from rosenblatt.engine.visits import Visits
from rosenblatt.engine.votes import AT_ONCE, Votes, products, resize_columns, stack_rows
from rosenblatt.errors import DamagedModel, IncompatibleParameters, InvalidData, UnsupportedOperation
from rosenblatt.estimators.inputs import read_rows
from rosenblatt.estimators.interface import check_is_fitted
from rosenblatt.estimators.linear import Linear, LinearTrainer
from rosenblatt.estimators.parameters import (
    InterceptParameters,
    Number,
    OneOf,
    RuleName,
    Seed,
    check,
    parameter,
    with_parameters,
)
from rosenblatt.estimators.plan import Plan
from rosenblatt.modelfile.parts import Parts


class Guarantee(NamedTuple):
    """What is known of the risk, the expected share of wrong predictions on examples to come.

    Attributes
    ----------
    bound : float
        The bound on the risk; infinity where none is known.
    kind : {"expectation", "probability"}
        Whether it holds in expectation, or with probability ≥ 1 − delta over the examples.
    statement : str
        The theorem, as a formula.
    """

    bound: float
    kind: str
    statement: str


class Pass(NamedTuple):
    """The figures of a pass that the guarantees depend on."""

    examples: int  # T
    mistakes: int  # M
    survived: int  # examples, of the weights that survived the most


# For each way to choose: the kind of its guarantee, what the guarantee says, and its bound, a function of (the module
# `theory.bounds`, which is imported only when it is needed, the run, δ).
GUARANTEES: dict[str, tuple[str, str, Callable[[Any, Pass, float], float]]] = {
    "last": ("probability", "none: the last hypothesis may be the worst", lambda bounds, run, delta: inf),
    "random": (
        "probability",
        "of the mean over the draw: E[risk] = E[M]/T, and ≤ M/T + √((2/T) ln(1/δ))",
        lambda bounds, run, delta: bounds.convex_risk(run.mistakes, run.examples, delta),
    ),
    "average": (
        "probability",
        "for a convex loss in [0, 1], not for wrong predictions: ≤ (its sum over the pass)/T + √((2/T) ln(1/δ))",
        lambda bounds, run, delta: inf,
    ),
    "vote": (
        "expectation",
        "E[risk] ≤ 2 E[mistakes of a pass over T + 1]/(T + 1), leaving one out",
        lambda bounds, run, delta: bounds.leave_one_out(run.mistakes + 1, run.examples),
    ),
    "longest-survivor": (
        "probability",
        "≤ ln(T/δ)/s for weights that survived s examples",
        lambda bounds, run, delta: bounds.survivor_risk(run.survived, run.examples, delta),
    ),
    "best-suffix": (
        "probability",
        "≤ M/T + 6 √(ln(2(T + 1)/δ)/T)",
        lambda bounds, run, delta: bounds.suffix_risk(run.mistakes, run.examples, delta),
    ),
}
_NEEDS_MOVES = ("longest-survivor", "best-suffix")  # what these say rests on every mistake changing the weights


@with_parameters
class OnlineToBatch(Linear, InterceptParameters):
    """A classifier made from one pass of an online learner, with a bound on its risk.

    `fit` takes the rows once, in the order given, as a sample of independent draws; `partial_fit` goes on. Then `how` says
    which hypothesis predicts (Kearns, Li, Pitt and Valiant 1987; Freund and Schapire 1999; Cesa-Bianchi, Conconi and
    Gentile 2004), and `guarantee()` what its risk is at most.

    Parameters
    ----------
    how
        "last": h_T. No guarantee: the last update may have made it worse.
        "random": h_t with t drawn from 0 to T − 1. Its risk is M/T in expectation.
        "average": the mean of h_0 to h_{T−1}. As good as "random" for every convex loss
        (`rosenblatt.theory.bounds.convex_risk`); for wrong predictions nothing is known, but it is hard to beat.
        "vote": the majority of h_1 to h_T. At most 2 E[M]/T in expectation.
        "longest-survivor": the weights that went the longest without a change, the first of them among equals. Surviving s
        examples proves a risk ≤ ln(T/δ)/s.
        "best-suffix": the h_t with the least share of errors on the examples after it, plus √(ln(2T(T + 1)/δ)/(2(T − t))).
        Keeps all rows, and costs their products with those of the mistakes.
    rule
        How far an example moves the weights.
    delta
        δ: the probability with which a guarantee may fail. Also the penalty of "best-suffix".
    multiclass
        One argmax over all classes, or each class against the rest.
    random_state
        The source of random numbers, for the hypothesis that `how="random"` draws.

    Examples
    --------
    >>> import numpy as np
    >>> from rosenblatt.online import OnlineToBatch
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((2000, 5))
    >>> y = X @ [1, 2, 0, 0, -1] > 0
    >>> clf = OnlineToBatch(how="longest-survivor").fit(X, y)
    >>> wrong = 1 - clf.score(rng.standard_normal((9, 5)), np.zeros(9, bool))
    >>> clf.guarantee().kind, clf.guarantee().bound < 0.1
    ('probability', True)
    """

    how: str = parameter("average", OneOf(tuple(GUARANTEES)), positional=True)
    rule: Any = parameter("perceptron", RuleName())
    delta: float = parameter(0.05, Number(0, open_low=True, high=1))
    multiclass: str = parameter("joint", OneOf(("joint", "ovr")))
    random_state: Any = parameter(0, Seed())

    keep = "vote"
    order = "cyclic"
    max_iter = 1
    _mixes = False
    tol = None
    _exact = False  # the moves are added up in another order
    _problems = {"joint": Joint, "ovr": OneVsRest}

    def _initial_model(self, plan: Plan, rows: Any, features: int, classes: int, init: Any) -> LinearModel:
        self._rows: list[tuple[Any, NDArray]] = []  # and their labels, where all are needed
        self._known: dict[tuple, tuple[NDArray, NDArray]] = {}
        self._seed = int(plan.rng().integers(2**31))
        return super()._initial_model(plan, rows, features, classes, init)

    def decision_function(self, X: Any) -> NDArray:
        """Compute the scores of rows.

        Parameters
        ----------
        X : (rows, features) array-like or sparse matrix
            The rows.

        Returns
        -------
        scores : (rows,) array for two classes, else (rows, classes)
            ≥ 0 for the second of two classes; of more classes, the highest wins.
        """
        check_is_fitted(self)
        X = read_rows(self, X)
        if self.how == "vote":
            return self._model.decision(X)
        coef, intercept = self._weights()
        return decide(self._model.problem, X @ coef.T + intercept)

    def guarantee(self, delta: float | None = None) -> Guarantee:
        """Return what is known of the risk if the rows were drawn independently.

        Parameters
        ----------
        delta : float in (0, 1), optional
            The probability with which the guarantee may fail; by default the parameter `delta`.

        Returns
        -------
        guarantee : Guarantee
            The bound on the risk, its kind and its statement.
        """
        check_is_fitted(self)
        delta = self.delta if delta is None else delta
        check({"how": self.how, "delta": delta}, {name: self._allowed[name] for name in ("how", "delta")})
        from rosenblatt.theory import bounds

        kind, statement, bound = GUARANTEES[self.how]
        survived = int(_spans(self._votes()).max())
        return Guarantee(bound(bounds, Pass(self._model.seen, self.n_mistakes_, survived), delta), kind, statement)

    @property
    def coef_(self) -> NDArray:
        """The weights that predict; of a vote, the last."""
        return self._weights()[0]

    @coef_.setter
    def coef_(self, coef: ArrayLike) -> None:
        self._refuse_to_set("coef_")

    @property
    def intercept_(self) -> NDArray:
        """The intercepts that predict; of a vote, the last."""
        return self._weights()[1]

    @intercept_.setter
    def intercept_(self, intercept: ArrayLike) -> None:
        self._refuse_to_set("intercept_")

    def _refuse_to_set(self, name: str) -> None:
        raise UnsupportedOperation(f"{name} of OnlineToBatch cannot be set: it chooses among the weights of its pass")

    @property
    def hypothesis_(self) -> int:
        """The number t of the hypothesis h_t that predicts, for the ways that choose one."""
        self._fitted()
        if self.how in ("average", "vote"):
            raise AttributeError(f"how={self.how!r} mixes all hypotheses; there is no single one that predicts")
        return self._choose()

    def _weights(self) -> tuple[NDArray, NDArray]:
        model: LinearModel = self._fitted()
        check({"how": self.how}, {"how": self._allowed["how"]})
        if self.how == "best-suffix" and not self._rows:
            raise UnsupportedOperation(
                "how='best-suffix' needs all rows, which were not kept when this model was fitted", hint="fit it again"
            )
        key = (model.seen, self.how, self.delta)
        if key not in self._known:
            votes = self._votes()
            made = votes.moves["clock"]  # a move made when c examples had been seen is in the hypotheses after h_c
            shares = (votes.clock - 1 - made) / votes.clock if self.how == "average" else made < self._choose()
            self._known.clear()  # in place: predicting sets no attribute
            self._known[key] = coef_and_intercept(model.problem, _sum_moves(votes, shares, model.constant), model.constant)
        return self._known[key]

    def _choose(self) -> int:
        votes = self._votes()
        if self.how == "random":
            return int(np.random.default_rng(self._seed).integers(votes.clock))
        if self.how == "longest-survivor":
            return int(_starts(votes)[_spans(votes).argmax()])
        if self.how == "best-suffix":
            return best_suffix(votes, self._rows, self._model.constant, self.delta)
        return votes.clock

    def _votes(self) -> Votes:
        votes = self._model.votes
        assert votes is not None, "keep='vote' keeps them"
        return votes

    def _rule(self) -> Any:
        return rules.Perceptron(0.0, 1.0) if self.rule == "perceptron" else self.rule

    def _plan(self) -> Plan:
        plan = super()._plan()
        if self.how in _NEEDS_MOVES and not all(rules.step(self._rule(), 0.0, 1.0, 2, side) for side in (True, False)):
            reason = "weights that do not change must have been right, and this rule lets some mistakes pass"
            one, other = ("how", self.how), ("rule", self.rule)
            raise IncompatibleParameters(one, other, reason, settings={"how": "average"})
        return plan

    def _make_trainer(self, plan: Plan, model: LinearModel, X: Any, examples: Examples, visits: Visits) -> LinearTrainer:
        if self.how in _NEEDS_MOVES and self._rule().uses_length:
            empty = visits.live[lengths(examples.rows, examples.constant)[visits.live] == 0]
            if len(empty):
                raise InvalidData(
                    f"how={self.how!r}: row {empty[0]} has length 0, and this rule cannot learn from it",
                    hint="leave such rows out, or use fit_intercept=True",
                    row=int(empty[0]),
                )
        return super()._make_trainer(plan, model, X, examples, visits)

    def _store(self, model: LinearModel, X: Any, learner: LinearTrainer) -> None:
        super()._store(model, X, learner)
        live = learner.visits.live
        if self.how == "best-suffix":
            self._rows = [*self._rows, (X[live], learner.examples.labels[live])]

    def _with_features(self, model: LinearModel, features: int) -> LinearModel:
        wider, rows = super()._with_features(model, features), [(resize_columns(X, features), y) for X, y in self._rows]
        self._rows, self._known = rows, {}
        return wider

    _always_resumes = True  # what predicts is what is known of the whole pass

    def _model_to_parts(self, resume: bool) -> Parts:
        parts = super()._model_to_parts(resume)
        parts.facts["seed"] = self._seed
        pieces = [(X, labels) for X, labels in self._rows if len(labels)]
        parts.put("pass/lengths", np.array([len(labels) for _, labels in pieces], np.int64))
        for i, (X, labels) in enumerate(_join(pieces)):
            parts.put_rows(f"pass/{i}", X)
            parts.put(f"pass/{i}/labels", labels)
        return parts

    def _model_from_parts(self, parts: Parts) -> LinearModel:
        self._seed, self._known = parts.whole("seed"), {}
        lengths = parts.array("pass/lengths", np.int64, (None,), 0).tolist()
        rows: list[tuple[Any, NDArray]] = []
        while f"pass/{len(rows)}" in parts.facts:
            X = parts.rows(f"pass/{len(rows)}", None, self.n_features_in_)
            rows.append((X, parts.array(f"pass/{len(rows)}/labels", np.int64, X.shape[:1], 0, len(self.classes_) - 1)))
        self._rows = _cut(rows, lengths)
        model = super()._model_from_parts(parts)
        if self._rows and sum(lengths) != model.seen:
            raise DamagedModel(f"the model has seen {model.seen} rows, but {sum(lengths)} are stored")
        return model

    def _unchangeable(self, plan: Plan) -> list[tuple[str, Any, Any]]:
        missing = self.how == "best-suffix" and not self._rows
        return [*super()._unchangeable(plan), ("how='best-suffix', which needs all rows,", False, missing)]


def _join(pieces: list[tuple[Any, NDArray]]) -> list[tuple[Any, NDArray]]:
    """Join rows and labels of one layout and precision that follow each other into one piece."""
    runs = [list(run) for _, run in groupby(pieces, key=lambda piece: (type(piece[0]), str(piece[0].dtype)))]
    return [(reduce(stack_rows, [X for X, _ in run]), np.concatenate([labels for _, labels in run])) for run in runs]


def _cut(pieces: list[tuple[Any, NDArray]], lengths: list[int]) -> list[tuple[Any, NDArray]]:
    """Cut pieces that were joined into their first lengths again: sums over other pieces might round otherwise."""
    cut: list[tuple[Any, NDArray]] = []
    for X, labels in pieces:
        begin = 0
        while begin < len(labels) and len(cut) < len(lengths) and lengths[len(cut)]:
            end = begin + lengths[len(cut)]
            cut.append((X[begin:end], labels[begin:end]))
            begin = end
        if begin != len(labels):
            raise DamagedModel("the number of rows of the pass does not match")
    return cut


def _starts(votes: Votes) -> NDArray:
    """Return the t at which each new weight vector appears, from 0 on."""
    return np.concatenate([[0], np.unique(votes.moves["clock"]) + 1])


def _spans(votes: Votes) -> NDArray:
    """Count the examples that each weight vector survived: from its start to the one that changed it, or to the end."""
    ends = np.append(np.unique(votes.moves["clock"]), votes.clock)
    return ends - _starts(votes)


def _sum_moves(votes: Votes, shares: NDArray, constant: float) -> NDArray:
    """Compute the first weights plus a share of each move, in float64."""
    w = votes.start.astype(np.float64)
    vectors = w[:, None] if w.ndim == 1 else w
    amount = np.zeros((votes.rows.shape[0], vectors.shape[1]))
    tau = votes.moves["tau"] * shares
    for field, sign in (("gains", 1.0), ("loses", -1.0)):
        there = votes.moves[field] >= 0
        np.add.at(amount, (votes.moves["row"][there], votes.moves[field][there]), sign * tau[there])
    vectors[:-1] += votes.rows.T @ amount
    vectors[-1] += constant * amount.sum(axis=0)
    return w


def best_suffix(votes: Votes, pieces: list[tuple[Any, NDArray]], constant: float, delta: float) -> int:
    """Find the h_t with the least share of errors on the examples after it, plus c_t = √(ln(2T(T + 1)/δ)/(2(T − t))).

    With probability ≥ 1 − δ/2 no share is further than c_t from its risk, so the risk of the chosen one is at most the
    least risk + 2c_t, hence at most the mean of these; the c_t have a mean ≤ 2√(ln(2(T + 1)/δ)/T), and the mean risk is
    ≤ M/T + √(2 ln(2/δ)/T) with the other δ/2. That is the guarantee. Of one weight vector, the earliest t has the longest
    suffix and the least share, so there is one candidate each. `pieces` are all rows and labels, in their order.
    """
    starts, T = _starts(votes), votes.clock
    errors, position = np.zeros(len(starts), np.int64), 0
    first = votes.start[:, None] if votes.start.ndim == 1 else votes.start
    step = max(1, AT_ONCE // max(votes.rows.shape[0], 1))
    for X, labels in pieces:
        for begin in range(0, len(labels), step):
            part, named = X[begin : begin + step], labels[begin : begin + step]
            inner = products(part, votes.rows) + constant * constant
            scores = np.ascontiguousarray(part @ first[:-1] + constant * first[-1], dtype=np.float64)
            count_errors(inner, scores, votes.moves, starts, named, position, errors)
            position += len(named)
    starts, errors = starts[starts < T], errors[starts < T]
    tested = T - starts
    risks = errors / tested + np.sqrt(log(2 * T * (T + 1) / delta) / (2 * tested))
    return int(starts[risks.argmin()])


@jit
def count_errors(inner, scores, moves, starts, labels, position, errors):
    """errors[k] += the rows, numbered from `position` on, that come after starts[k] and that the k-th weights get wrong.

    `inner` is (rows, mistakes), `scores` (rows, columns) those of the first weights; they are overwritten.
    """
    for q in range(len(scores)):
        m = 0
        for k in range(starts.size):
            if starts[k] > position + q:
                break
            while m < moves.size and moves[m]["clock"] < starts[k]:
                value = moves[m]["tau"] * inner[q, moves[m]["row"]]
                scores[q, moves[m]["gains"]] += value
                if moves[m]["loses"] >= 0:
                    scores[q, moves[m]["loses"]] -= value
                m += 1
            guess = np.int64(scores[q, 0] >= 0.0) if scores.shape[1] == 1 else scores[q].argmax()
            errors[k] += guess != labels[q]
