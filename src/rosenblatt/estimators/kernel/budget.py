"""Kernel perceptrons with a budget: they never hold more rows than `budget`. A kernel perceptron keeps every row it was
ever wrong about; these differ in what they do when there is no room."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rosenblatt.engine.rows import Examples, Rows
from rosenblatt.engine.train import NO_LIMIT
from rosenblatt.engine.visits import Visits
from rosenblatt.estimators.callbacks import with_callbacks
from rosenblatt.estimators.interface import available_if
from rosenblatt.estimators.kernel.budget_model import BudgetModel, BudgetTrainer
from rosenblatt.estimators.kernel.gram import Matrix
from rosenblatt.estimators.kernel.machine import KernelClassifier, can_stream
from rosenblatt.estimators.kernel.policies import ForgetOldest, ForgetRandom, ForgetSafest, Policy, Project, Stop
from rosenblatt.estimators.parameters import ClassWeightParameters, Flag, Number, OneOf, parameter, with_parameters
from rosenblatt.estimators.plan import Plan
from rosenblatt.modelfile.parts import Parts


@with_parameters
class Budgeted(KernelClassifier, ClassWeightParameters):
    """A kernel perceptron whose weight vectors hold no more than `budget` rows each; how, a subclass says with a policy.

    Parameters
    ----------
    budget
        The most rows that a weight vector holds, at any time. Memory is `budget` rows and, where the policy compares them,
        budget² kernels, for each class.
    normalize
        Whether K(x, z)/√(K(x, x)·K(z, z)) takes the place of K, so that every row has length 1, as the theorems assume.
        "rbf" has that already.

    Attributes
    ----------
    support_ : (support,) array
        The numbers of all rows held by any weight vector, sorted, counted through all calls.
    dual_coef_ : (vectors, support) array
        How much of each is in each weight vector. The coefficients are those of K, not of the normalised kernel.
    n_support_ : (vectors,) array
        How many rows each weight vector holds.
    """

    budget: int | None = parameter(100, Number(1, whole=True))
    normalize: bool = parameter(True, Flag())

    @abstractmethod
    def _policy(self) -> Policy:
        """What is done with a row, from `rosenblatt.estimators.kernel.policies`."""

    def _room(self) -> int:
        return NO_LIMIT if self.budget is None else int(self.budget)

    @with_callbacks
    def fit(self, X: ArrayLike | Matrix, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Any:
        """Learn in epochs until one of the reasons to stop.

        An error leaves the estimator as it was; Ctrl-C finishes the epoch, stores the model and then interrupts.

        Parameters
        ----------
        X : (rows, features) array or sparse matrix
            The rows; with `kernel="precomputed"` the square matrix of the kernels of all rows with all rows.
        y : (rows,) array
            Their labels.
        sample_weight : (rows,) array, optional
            Weights that multiply the coefficients of rows that are learned; a row of weight 0 is ignored.

        Returns
        -------
        The estimator itself.
        """
        return self._fit(X, y, sample_weight)

    @available_if(can_stream)
    def partial_fit(
        self,
        X: ArrayLike | Matrix,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Any:
        """Learn from these rows, once, in the order given.

        Cutting a stream of rows into calls in any way gives the same model. `order` and the reasons to stop do not apply.
        An error leaves the estimator as it was.

        Parameters
        ----------
        X : (rows, features) array or sparse matrix
            The rows.
        y : (rows,) array
            Their labels.
        classes : array, optional
            All classes there will be; required in the first call.
        sample_weight : (rows,) array, optional
            Weights that multiply the coefficients of rows that are learned; a row of weight 0 is ignored.

        Returns
        -------
        The estimator itself.
        """
        return self._partial_fit(X, y, classes, sample_weight)

    @property
    def n_support_(self) -> NDArray:
        return np.array([len(held.coef) for held in self._fitted().held])

    def _initial_model(self, plan: Plan, rows: Rows, features: int, classes: int, init: Any) -> BudgetModel:
        kernel, seed = self._kernel_for(rows, features), int(plan.rng().integers(2**62))
        return BudgetModel(plan.problem(classes), kernel, self._policy(), self.normalize, features, seed)

    def _model_from_parts(self, parts: Parts) -> BudgetModel:
        return BudgetModel.from_parts(parts, self._possible_problems(), self.n_features_in_)

    def _make_trainer(self, plan: Plan, model: BudgetModel, X: Matrix, examples: Examples, visits: Visits) -> BudgetTrainer:
        self._check_rows(model, X, examples.rows, visits.live)
        return BudgetTrainer(model, X, examples, visits)

    def _unchangeable(self, plan: Plan) -> list[tuple[str, Any, Any]]:
        names = ", ".join(name for name in ("budget", "schedule", "eta") if hasattr(self, name)).replace(", ", " or ")
        model = self._model
        return [
            *super()._unchangeable(plan),
            (names, True, model.policy == self._policy()),
            ("normalize", model.normalize, self.normalize),
        ]


@with_parameters
class Stoptron(Budgeted):
    """The Stoptron: a kernel perceptron that stops learning when its budget is full.

    It shows what a budget costs, at the least effort (Orabona, Keshet and Caputo 2009 compare with it).

    Parameters
    ----------
    budget
        The number of rows with which a weight vector is full. Later mistakes then change nothing. Memory is `budget` rows
        for each class.
    normalize
        Whether K(x, z)/√(K(x, x)·K(z, z)) takes the place of K, so that every row has length 1 and none counts for more
        than another. "rbf" has that already.

    Examples
    --------
    >>> from rosenblatt import Stoptron
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1]
    >>> Stoptron(budget=2, order="cyclic", gamma=1.0).fit(X, y).support_
    array([0, 1])
    """

    def _policy(self) -> Stop:
        return Stop(self._room())


@with_parameters
class RandomBudgetPerceptron(Budgeted):
    """A kernel perceptron on a budget that forgets rows at random (Cavallanti, Cesa-Bianchi and Gentile 2007).

    It makes room for a row it was wrong about by forgetting one of those it holds. Its expected mistakes have a bound of
    the Forgetron's form, for separators of norm up to a constant times √(B/ln B). It computes no kernels but those of the
    scores. Which row is forgotten depends on `random_state` and on how many were forgotten before, not on how a stream is
    cut.

    Parameters
    ----------
    budget
        The most rows that a weight vector holds: B of the bound. Memory is `budget` rows for each class.
    random_state
        The source of random numbers, for the order of rows and for the rows that are forgotten. The same seed gives the
        same model.

    Examples
    --------
    >>> from rosenblatt import RandomBudgetPerceptron
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1]
    >>> RandomBudgetPerceptron(budget=2, gamma=1.0, max_iter=3).fit(X, y).n_support_
    array([2])
    """

    def _policy(self) -> ForgetRandom:
        return ForgetRandom(self._room())


@with_parameters
class BudgetPerceptron(Budgeted):
    """A kernel perceptron on a budget that forgets the safest row (Crammer, Kandola and Singer 2004).

    It makes room for a row it was wrong about by forgetting the row that would have the widest margin without itself, max
    yᵢ(f(xᵢ) − αᵢ·K(xᵢ, xᵢ)). Without noise it does well, and it has no mistake bound. A forgotten row costs budget²
    multiplications.

    Parameters
    ----------
    budget
        The most rows that a weight vector holds. Memory is `budget` rows and budget² kernels, for each class.
    normalize
        Whether K(x, z)/√(K(x, x)·K(z, z)) takes the place of K, so that every row has length 1 and none counts for more
        than another. "rbf" has that already.

    Examples
    --------
    >>> from rosenblatt import BudgetPerceptron
    >>> X, y = [[0.0], [0.1], [1.0], [1.1]], [0, 0, 1, 1]
    >>> BudgetPerceptron(budget=2, gamma=1.0, order="cyclic").fit(X, y).predict(X)
    array([0, 0, 1, 1])
    """

    def _policy(self) -> ForgetSafest:
        return ForgetSafest(self._room())


@with_parameters
class Forgetron(Budgeted):
    """The Forgetron: a kernel perceptron on a budget with a mistake bound (Dekel, Shalev-Shwartz and Singer 2008).

    It makes room for a row it was wrong about by shrinking all weights and forgetting the oldest row. With B = `budget` ≥
    83 rows, K(x, x) ≤ 1 and any g in the feature space with ‖g‖ ≤ ¼·√((B + 1)/ln(B + 1)), the mistakes of two classes in
    one pass are at most 2‖g‖² + 4·Σ max(0, 1 − y·g(x)).

    Parameters
    ----------
    budget
        The most rows that a weight vector holds: B of the bound, which holds from 83 on. Memory is `budget` rows for each
        class.
    schedule
        Shrink only as far as keeps the damage of forgetting, which is measured, below 15/32 of the mistakes; or by
        min((B + 1)^(−1/(2(B + 1))), ¼·√((B + 1)/ln(B + 1))/‖f‖) each time.
    normalize
        Whether K(x, z)/√(K(x, x)·K(z, z)) takes the place of K, so that every row has length 1, as the theorem assumes.
        Without it, a row with K(x, x) > 1 is refused.

    Attributes
    ----------
    damage_ : (vectors,) array
        Q, the damage of forgetting so far.
    highest_damage_ : (vectors,) array
        The largest share of the mistakes that it ever was; never above 15/32 if self-tuned.

    Examples
    --------
    >>> from rosenblatt import Forgetron
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]] * 5, [0, 1, 0, 1] * 5
    >>> clf = Forgetron(budget=3, gamma=1.0, max_iter=1).fit(X, y)
    >>> clf.n_support_, bool(clf.highest_damage_[0] <= 15 / 32)
    (array([3]), True)
    """

    schedule: str = parameter("self-tuned", OneOf(("self-tuned", "fixed")))

    @property
    def damage_(self) -> NDArray:
        return np.array([held.memory[0] for held in self._fitted().held])

    @property
    def highest_damage_(self) -> NDArray:
        return np.array([held.memory[2] for held in self._fitted().held])

    def _policy(self) -> ForgetOldest:
        from rosenblatt.theory.bounds import forgetron_reach

        size = self._room() + 1
        reach = forgetron_reach(size - 1)
        return ForgetOldest(size - 1, self.schedule == "self-tuned", size ** (-1 / (2 * size)), reach)


@with_parameters
class Projectron(Budgeted):
    """The Projectron: a kernel perceptron that stores only rows which others cannot replace (Orabona, Keshet, Caputo 2009).

    Of a row that is near the span of those it holds it learns only the projection onto them, which needs no room. For
    K(x, x) ≤ 1 and any g in the feature space with ‖g‖ ≤ U < 1/η, the mistakes M of two classes in one pass obey M·(1 −
    ηU) ≤ Σ max(0, 1 − y·g(x)) + U·√M. Rows that lie in a bounded region need a finite number of rows for η > 0. With
    `eta=0` it is the kernel perceptron, but for rows that depend on others.

    Parameters
    ----------
    eta
        The distance up to which a row is projected; 0 ≤ eta < 1.
    budget
        The most rows that a weight vector holds; when it is full, every row is projected, and the bound is lost. None: no
        limit but that of `eta`. Memory is the square of the number of rows held.

    Examples
    --------
    >>> from rosenblatt import Projectron
    >>> X, y = [[0.0], [0.01], [1.0], [1.01]] * 5, [0, 0, 1, 1] * 5
    >>> Projectron(gamma=1.0, order="cyclic").fit(X, y).n_support_
    array([2])
    """

    eta: float = parameter(0.1, Number(0, high=1))
    budget: int | None = parameter(None, Number(1, whole=True, optional=True))

    _aggressive = False

    def _policy(self) -> Project:
        return Project(self._room(), float(self.eta), self._aggressive)


@with_parameters
class ProjectronPlusPlus(Projectron):
    """Projectron++: a Projectron that also learns from rows with a margin below 1 (Orabona, Keshet and Caputo 2009).

    A row that is right by less than 1 is learned where that needs no room. Such a row, at distance d from the span of
    those held and with loss ℓ = 1 − y·f(x) > d/η, is learned with the step min(1, ℓ/p, 2(ℓ − d/η)/p), p the squared
    length of its projection. For K(x, x) ≤ 1 and any g with ‖g‖ ≤ U < 1/(2η) the mistakes M of two classes in one pass
    obey M·(1 − 2ηU) ≤ U² + 2·Σ max(0, 1 − y·g(x)).

    Parameters
    ----------
    eta
        The distance up to which a row is projected. A row that is predicted right is learned too if its margin is below 1
        by more than its distance divided by eta; 0 ≤ eta < 1.

    Examples
    --------
    >>> from rosenblatt import ProjectronPlusPlus
    >>> X, y = [[0.0], [0.01], [1.0], [1.01]] * 5, [0, 0, 1, 1] * 5
    >>> ProjectronPlusPlus(gamma=1.0, order="cyclic").fit(X, y).n_support_
    array([2])
    """

    _aggressive = True
