"""The interface of scikit-learn without importing scikit-learn, which takes longer than most commands run.

Learners derive from the classes here, which have parameters and can be cloned. As soon as any code imports `sklearn.base`,
scikit-learn's classes become the bases of these classes, and so of every learner: wherever code can ask
`isinstance(model, sklearn.base.BaseEstimator)`, the answer is true.
"""

from __future__ import annotations

import copy
import inspect
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import update_wrapper
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import MethodType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np


class _ImportsScikitLearn:
    """An attribute that scikit-learn defines: using it imports scikit-learn and returns what that has."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: object, owner: type) -> Any:
        import_module("sklearn.base")
        return getattr(owner if instance is None else instance, self.name)


class WithoutScikitLearn:
    """The part of `sklearn.base.BaseEstimator` that learners need while scikit-learn is not imported."""

    @classmethod
    def _get_param_names(cls) -> list[str]:
        _, *parameters = inspect.signature(cls.__init__).parameters.values()
        return sorted(each.name for each in parameters if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters of this learner.

        Parameters
        ----------
        deep : bool, default=True
            Whether to include the parameters of parameters that are learners, as "name__parameter".

        Returns
        -------
        params : dict
            Values by the names of parameters.
        """
        params = {}
        for name in self._get_param_names():
            params[name] = value = getattr(self, name)
            if deep and hasattr(value, "get_params") and not isinstance(value, type):
                params |= {f"{name}__{inner}": each for inner, each in value.get_params().items()}
        return params

    def set_params(self, **params: Any) -> Any:
        """Set parameters of this learner.

        Parameters
        ----------
        **params : object
            Values by the names of parameters.

        Returns
        -------
        self : object
            The learner.
        """
        inner: dict[str, dict[str, Any]] = defaultdict(dict)
        for name, value in params.items():
            own, nested, rest = name.partition("__")
            if own not in (names := self._get_param_names()):
                raise ValueError(f"Invalid parameter {own!r} for estimator {self}. Valid parameters are: {names!r}.")
            if nested:
                inner[own][rest] = value
            else:
                setattr(self, name, value)
        for name, values in inner.items():
            getattr(self, name).set_params(**values)
        return self

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self).__init__).parameters
        params = self.get_params(deep=False).items()
        changed = (f"{name}={value!r}" for name, value in params if repr(value) != repr(defaults[name].default))
        return f"{type(self).__name__}({', '.join(changed)})"

    get_metadata_routing = _ImportsScikitLearn()
    set_fit_request = _ImportsScikitLearn()
    set_partial_fit_request = _ImportsScikitLearn()
    set_score_request = _ImportsScikitLearn()
    _repr_html_ = _ImportsScikitLearn()
    _repr_mimebundle_ = _ImportsScikitLearn()


class _WithScore:
    """The base of classifiers and regressors while scikit-learn is not imported."""

    score = _ImportsScikitLearn()


class _WithCallbacks:
    """The base of learners with callbacks while scikit-learn is not imported."""

    set_callbacks = _ImportsScikitLearn()


if TYPE_CHECKING:
    from sklearn.base import BaseEstimator as _BaseEstimator
else:
    _BaseEstimator = WithoutScikitLearn


class Learner(_BaseEstimator):
    """A `sklearn.base.BaseEstimator`, once scikit-learn is imported."""


class ClassifierMixin(_WithScore):
    """A `sklearn.base.ClassifierMixin`, once scikit-learn is imported."""


class RegressorMixin(_WithScore):
    """A `sklearn.base.RegressorMixin` of one or several targets, once scikit-learn is imported."""


class CallbackSupportMixin(_WithCallbacks):
    """A `sklearn.callback.CallbackSupportMixin`, once a scikit-learn that has callbacks (1.9 and later) is imported."""


def _use_sklearn_bases(base: ModuleType) -> None:
    """Make the classes of the module `sklearn.base` the bases of the classes here."""
    try:
        from sklearn.callback import CallbackSupportMixin as Callbacks

        CallbackSupportMixin.__bases__ = (Callbacks,)
    except ImportError:  # before 1.9
        pass
    ClassifierMixin.__bases__ = (base.ClassifierMixin,)
    RegressorMixin.__bases__ = (base.RegressorMixin, base.MultiOutputMixin)
    Learner.__bases__ = (base.BaseEstimator,)
    for kind in dict.fromkeys(_subclasses(Learner)):  # scikit-learn's makes `set_fit_request` and the like
        super(Learner, kind).__init_subclass__()


def _subclasses(kind: Any) -> Iterator[Any]:
    """Yield a class and all classes derived from it, some of them several times."""
    yield kind
    for each in kind.__subclasses__():
        yield from _subclasses(each)


class _ScikitLearnFinder(MetaPathFinder):
    """An import hook: finds `sklearn.base` as Python would, and calls `_use_sklearn_bases` when it has been imported."""

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != "sklearn.base":
            return None
        others = (finder for finder in sys.meta_path if finder is not self)
        spec = next(filter(None, (finder.find_spec(name, path, target) for finder in others)), None)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_and_set_bases(module: ModuleType) -> None:
                load(module)
                _use_sklearn_bases(module)
                sys.meta_path.remove(self)

            spec.loader.exec_module = load_and_set_bases  # type: ignore[method-assign]  # of this loader alone
        return spec


if "sklearn.base" in sys.modules:
    _use_sklearn_bases(sys.modules["sklearn.base"])
else:
    sys.meta_path.insert(0, _ScikitLearnFinder())


# Functions of scikit-learn under the names that they have there, which do not import it where they need not


class available_if:  # noqa: N801  a decorator, under its name in scikit-learn
    """Decorate a method that a learner has only where `check(learner)` is true; elsewhere an AttributeError is raised."""

    def __init__(self, check: Callable[[Any], bool]):
        self.check = check

    def __call__(self, method: Callable) -> available_if:
        """Decorate a method."""
        self.method = method
        update_wrapper(self, method)
        return self

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self.method
        problem = f"This {owner.__name__!r} has no attribute {self.method.__name__!r}"
        try:
            available = self.check(instance)
        except AttributeError as error:
            raise AttributeError(problem) from error
        if not available:
            raise AttributeError(problem)
        return MethodType(self.method, instance)


def check_is_fitted(estimator: Any) -> None:
    """Raise `sklearn.exceptions.NotFittedError` if nothing has been learned yet."""
    is_fitted = getattr(estimator, "__sklearn_is_fitted__", None)
    if is_fitted is None or not is_fitted():
        import_module("sklearn.utils.validation").check_is_fitted(estimator)


def is_regressor(estimator: Any) -> bool:
    """Return whether an estimator predicts numbers."""
    if isinstance(estimator, Learner):
        return isinstance(estimator, RegressorMixin)
    return import_module("sklearn.base").is_regressor(estimator)


def clone(estimator: Any) -> Any:
    """Return a learner with the same parameters that has learned nothing."""
    if not isinstance(estimator, Learner) or "sklearn.base" in sys.modules:
        return import_module("sklearn.base").clone(estimator)
    params = estimator.get_params(deep=False)
    return type(estimator)(**{name: _copy_parameter(value) for name, value in params.items()})


def _copy_parameter(value: Any) -> Any:
    if isinstance(value, Learner):
        return clone(value)
    if type(value) is dict:
        return {key: _copy_parameter(each) for key, each in value.items()}
    return type(value)(map(_copy_parameter, value)) if type(value) in (list, tuple) else copy.deepcopy(value)


def check_random_state(seed: Any) -> np.random.RandomState:
    """Return the `RandomState` for a seed, as scikit-learn does: an int, a RandomState, or None for numpy's global one."""
    if seed is None or seed is np.random:
        return np.random.mtrand._rand
    return seed if isinstance(seed, np.random.RandomState) else np.random.RandomState(seed)
