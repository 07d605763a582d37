"""Kernel learners as scikit-learn estimators: what all of them have in common, those that learn by a rule, and of these the
kernel perceptron. How they learn is in `perceptron_model`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rosenblatt import rules
from rosenblatt.engine.blocks import available_threads
from rosenblatt.engine.problems import Joint, OneVsRest
from rosenblatt.engine.rows import Examples, Rows, count
from rosenblatt.engine.train import Limits
from rosenblatt.engine.visits import Visits
from rosenblatt.errors import InvalidData, UnsupportedOperation
from rosenblatt.estimators.callbacks import with_callbacks
from rosenblatt.estimators.classifier import Classifier
from rosenblatt.estimators.inputs import read_rows
from rosenblatt.estimators.interface import available_if, check_is_fitted
from rosenblatt.estimators.kernel.gram import (
    FunctionKernel,
    GaussianKernel,
    Kernel,
    KernelFunction,
    LinearKernel,
    Matrix,
    PolynomialKernel,
    PrecomputedKernel,
    check_positive,
)
from rosenblatt.estimators.kernel.kernel_model import BlockTrainer, KernelModel
from rosenblatt.estimators.kernel.perceptron_model import KernelPerceptronModel, KernelPerceptronTrainer
from rosenblatt.estimators.parameters import (
    ClassWeightParameters,
    EpochParameters,
    InterceptParameters,
    KeepParameters,
    Number,
    OneOf,
    OrderParameters,
    ThreadParameters,
    parameter,
    with_parameters,
)
from rosenblatt.estimators.plan import PATIENCE, Plan
from rosenblatt.modelfile.parts import Parts

# The kernels that have a name, from the parameters of an estimator and its number of features.
KERNELS: dict[str, Callable[[KernelClassifier, int], Kernel]] = {
    "linear": lambda params, features: LinearKernel(),
    "poly": lambda params, features: PolynomialKernel(int(params.degree), _gamma(params, features), float(params.coef0)),
    "rbf": lambda params, features: GaussianKernel(_gamma(params, features)),
    "precomputed": lambda params, features: PrecomputedKernel(),
}


def _gamma(params: KernelClassifier, features: int) -> float:
    return 1 / features if params.gamma is None else float(params.gamma)


class KernelName(NamedTuple):
    """The name of a kernel, or a function that computes one."""

    @property
    def words(self) -> tuple[str, ...]:
        """The names."""
        return tuple(KERNELS)

    @property
    def type_name(self) -> str:
        return "{" + ", ".join(f'"{word}"' for word in KERNELS) + "} or function"

    def refusal(self, value: Any) -> str | None:
        if callable(value) or (isinstance(value, str) and value in KERNELS):
            return None
        return ", ".join(repr(word) for word in KERNELS) + " or a function of two sets of rows"


def can_stream(estimator: KernelClassifier) -> bool:
    """Return True for an estimator that has `partial_fit`; raise AttributeError otherwise."""
    if estimator.kernel == "precomputed":
        raise AttributeError(
            "partial_fit cannot be used with kernel='precomputed': the kernels between the rows of different calls are not "
            "known; use fit, or another kernel"
        )
    return True


@with_parameters
class KernelClassifier(Classifier, OrderParameters, EpochParameters, ThreadParameters):
    """A classifier whose weights are a sum over rows, in the feature space of a kernel.

    Parameters
    ----------
    kernel
        "linear" is x·z, "poly" (gamma·x·z + coef0)**degree, "rbf" exp(−gamma‖x − z‖²), and "precomputed" stands for the
        values in X. A function `kernel(X, Z)` returns an array with a row for each row of X and a column for each row of
        Z. A function or a matrix that is not symmetric, or whose matrix of kernels of up to 100 rows has a negative
        eigenvalue, is refused.
    degree
        The degree of "poly".
    gamma
        The factor γ of "rbf" and "poly". None: 1/features, which suits standardised features; otherwise
        1/(features · variance) is a good start.
    coef0
        The constant of "poly"; with 1 all products of up to `degree` features take part.
    order
        How each epoch visits the rows: shuffled, or in the order given.

    Attributes
    ----------
    support_ : (support,) array
        The numbers of the rows that are in the weights, each once, counted through all calls.
    support_vectors_ : (support, features) array or CSR matrix
        These rows; not for "precomputed".
    dual_coef_ : (vectors, support) array
        How much of each is in each weight vector that predicts (with votes, in the last). One vector for two classes, else
        one a class.
    """

    kernel: str | KernelFunction = parameter("rbf", KernelName(), positional=True)
    degree: int = parameter(3, Number(1, whole=True))
    gamma: float | None = parameter(None, Number(0, open_low=True, optional=True))
    coef0: float = parameter(1.0, Number(0))
    order: str = parameter("shuffle", OneOf(("shuffle", "cyclic")))

    fit_intercept = False
    _problems = {"joint": Joint, "ovr": OneVsRest}

    @property
    def _needs_scaling(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel != "precomputed"

    def decision_function(self, X: ArrayLike | Matrix) -> NDArray:
        """Return the score of each row: one value for two classes, ≥ 0 for the second; else one a class, the highest wins.

        Parameters
        ----------
        X : (rows, features) array or sparse matrix
            The rows; with `kernel="precomputed"` the kernels of rows with all training rows.

        Returns
        -------
        (rows,) or (rows, classes) array
        """
        check_is_fitted(self)
        return self._model.decision(read_rows(self, X), available_threads(self.n_jobs))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    @property
    def support_(self) -> NDArray:
        return self._fitted().support

    @property
    def support_vectors_(self) -> Matrix:
        model = self._fitted()
        if isinstance(model.kernel, PrecomputedKernel):
            raise AttributeError("with kernel='precomputed' there are no rows to show; support_ has their numbers")
        return model.support_vectors()

    @property
    def dual_coef_(self) -> NDArray:
        return self._fitted().predicting_coef().T

    def _kernel(self, features: int) -> Kernel:
        return FunctionKernel(self.kernel) if callable(self.kernel) else KERNELS[self.kernel](self, features)

    def _kernel_for(self, rows: Rows, features: int) -> Kernel:
        """The kernel of a new model, for rows of this many features."""
        self._check_finite(rows.values, rows)
        if self.kernel == "precomputed" and count(rows) != features:
            raise InvalidData(
                f"kernel='precomputed' learns from the square matrix of the kernels of all rows with all rows; "
                f"got one of shape {(count(rows), features)}"
            )
        return self._kernel(features)

    def _model_to_stream(self, plan: Plan, rows: Rows, features: int, classes: int) -> Any:
        return super()._model_to_stream(plan, rows, features, classes).copy()

    def _check_rows(self, model: KernelModel, X: Matrix, rows: Rows, live: NDArray) -> None:
        """Raise an error for rows and kernels that cannot be learned from, before anything is allocated."""
        if X.shape[1] != model.features:
            raise InvalidData(f"X has {X.shape[1]} features, but this model began to learn with {model.features}")
        self._check_finite(X, rows)
        check_positive(model.kernel, X, live)

    def _with_features(self, model: KernelModel, features: int) -> NoReturn:
        raise UnsupportedOperation(
            f"{type(self).__name__} cannot change its number of columns once it has learned: its kernel compares new "
            "rows with the rows that it keeps",
            hint="fit a new model with all columns",
        )

    def _store(self, model: KernelModel, X: Matrix, learner: BlockTrainer) -> None:
        model.n_rows += X.shape[0]

    _always_resumes = True  # what predicts is nearly all there is

    def _unchangeable(self, plan: Plan) -> list[tuple[str, Any, Any]]:
        then, now = self._model.kernel, self._kernel(self._model.features)
        return [("kernel, degree, gamma or coef0", True, type(then) is type(now) and then == now)]


class KernelMachine(KernelClassifier):
    """A kernel classifier that learns by a rule of `rosenblatt.rules`: w += τΔ in the feature space of a kernel.

    Parameters
    ----------
    tol
        Stop when the share of mistakes in an epoch (or the validation error) has not fallen by more than `tol` for
        `n_iter_no_change` epochs in a row and, without validation, for 50,000 visited rows: a small set is visited until
        it is learned, or `max_iter` times. None: do not stop for this reason, and do not warn at `max_iter`.
    """

    @abstractmethod
    def _rule(self) -> Any:
        """The rule of an update, from `rosenblatt.rules`."""

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
            Weights that multiply the steps; a row of weight 0 is ignored.

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
            Weights that multiply the steps; a row of weight 0 is ignored.

        Returns
        -------
        The estimator itself.
        """
        return self._partial_fit(X, y, classes, sample_weight)

    def mistake_bound(self, radius: float, margin: float, classes: int | None = None) -> float:
        """Compute the most updates that rows can cause from weights of zero, if they can be separated.

        Radius and margin are measured in the feature space; `radius_` is the radius of the rows met.

        Parameters
        ----------
        radius : float
            The length of the longest row.
        margin : float
            The margin of a unit vector that separates two classes; of more, the least margin of the unit vectors that
            separate each class from the rest (`multiclass="ovr"`) or each pair ("ovo"), or with "joint" the least lead of
            a row's class over the others, by weight vectors of Frobenius norm 1.
        classes : int, optional
            The number of classes, by default that of the last fit, or 2.

        Returns
        -------
        float
            The bound; infinity where none is known.
        """
        return self._bound_for(classes, radius, lambda radius: self._rule().bound(radius, margin))

    @property
    def last_dual_coef_(self) -> NDArray:
        return self._fitted().coef.T

    @property
    def average_dual_coef_(self) -> NDArray:
        return self._fitted().average().T

    @property
    def intercept_(self) -> NDArray:
        model = self._fitted()
        return model.constant * model.constant * model.predicting_coef().sum(axis=0)

    @property
    def radius_(self) -> float:
        return float(np.sqrt(self._fitted().widest))

    def _initial_model(self, plan: Plan, rows: Rows, features: int, classes: int, init: Any) -> KernelPerceptronModel:
        return KernelPerceptronModel(
            plan.problem(classes), self._kernel_for(rows, features), plan.constant, self.keep, features
        )

    def _model_from_parts(self, parts: Parts) -> KernelPerceptronModel:
        return KernelPerceptronModel.from_parts(parts, self._possible_problems(), self.n_features_in_)

    def _make_trainer(
        self, plan: Plan, model: KernelPerceptronModel, X: Matrix, examples: Examples, visits: Visits
    ) -> KernelPerceptronTrainer:
        self._check_rows(model, X, examples.rows, visits.live)
        return KernelPerceptronTrainer(model, self._rule(), X, examples, visits)

    def _limits(self, plan: Plan, learner: Any) -> Limits:
        return plan.limits()._replace(visits=PATIENCE)

    def _unchangeable(self, plan: Plan) -> list[tuple[str, Any, Any]]:
        model = self._model
        return [
            *super()._unchangeable(plan),
            ("keep", model.keep, self.keep),
            ("fit_intercept or intercept_scaling", model.constant, plan.constant),
            ("multiclass", type(model.problem), type(plan.problem(model.problem.classes))),
        ]


@with_parameters
class KernelPerceptron(KernelMachine, InterceptParameters, KeepParameters, ClassWeightParameters):
    """The kernel perceptron: a classifier that learns from its mistakes in the feature space of a kernel.

    On a row with margin m = y·Σ αⱼ K(xⱼ, x) ≤ `margin`, the row joins the sum with α = y (Aizerman, Braverman and Rozonoer
    1964). If K(x, x) ≤ R² and some unit vector of the feature space separates the rows with margin γ, there are at most
    (R² + 2·margin)/γ² updates, in any order. `keep="vote"` is the voted perceptron of Freund and Schapire (1999).

    Memory is that of the rows that caused updates and one coefficient for each of them and each weight vector; with votes
    also 48 bytes an update. The kernel matrix of all rows is never made. The learners of `kernel.budget` keep at most
    `budget` rows.

    Parameters
    ----------
    margin
        Update whenever the margin is at most this.
    fit_intercept
        Whether to learn an intercept: K(x, z) + intercept_scaling² takes the place of K. "rbf" and "poly" rarely need one.
    intercept_scaling
        The size of that constant feature.
    keep
        Which weights predict: the last, the mean of those after every example, or all of them by vote, each with as many
        votes as examples it survived.
    multiclass
        Each class against the rest, or one argmax over all classes. All learn in one pass.

    Attributes
    ----------
    last_dual_coef_, average_dual_coef_ : (vectors, support) arrays
        Those of the last weights, and of the mean of all; the mean is not known with `keep="last"`.
    intercept_ : (vectors,) array
        Added to every score; zero without `fit_intercept`.
    radius_ : float
        The length in the feature space of the longest row met, √max K(x, x), constant feature included.

    Examples
    --------
    >>> from rosenblatt import KernelPerceptron
    >>> X, y = [[0, 0], [0, 1], [1, 0], [1, 1]], ["same", "differ", "differ", "same"]
    >>> clf = KernelPerceptron(kernel="poly", degree=2, gamma=1, order="cyclic").fit(X, y)
    >>> clf.predict(X).tolist(), clf.stop_reason_
    (['same', 'differ', 'differ', 'same'], 'converged')
    >>> clf.support_, clf.dual_coef_, clf.n_updates_
    (array([0, 1, 2, 3]), array([[ 7., -5., -5.,  4.]]), 21)
    """

    margin: float = parameter(0.0, Number(0))
    fit_intercept: bool = parameter(False)
    keep: str = parameter("last", OneOf(("last", "average", "vote")))
    multiclass: str = parameter("ovr", OneOf(("ovr", "joint")))

    def _rule(self) -> rules.Perceptron:
        return rules.Perceptron(float(self.margin), 1.0)
