"""The parameters of estimators, each declared in one place: its name, type, default, what is allowed, and what it means.

    @with_parameters
    class MIRA(Linear, MarginParameters):
        \"""...

        Parameters
        ----------
        margin
            β: the margin that a step aims at.
        \"""

        margin: float = parameter(1.0, Number(0))

A parameter is a field of a dataclass, described in the docstring of the class that declares it. `with_parameters` makes the
constructor from the fields of a class and of its bases, and completes the Parameters section of its docstring, with types,
defaults, and the parameters that it inherits; and the Attributes section, with the attributes that its bases describe. A
class that declares a parameter again changes its default, and may change what is allowed and the description.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import math
import operator
import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import MISSING, dataclass, field
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple, Protocol, TypeVar, dataclass_transform, get_args

import numpy as np

from rosenblatt.engine.rows import LEARN_ON_GPU
from rosenblatt.errors import IncompatibleParameters, InvalidParameter, UnknownParameter, shown
from rosenblatt.estimators.interface import Learner
from rosenblatt.gpu.card import DEVICES, card_number

T = TypeVar("T")
C = TypeVar("C", bound=type)

# What a parameter may be


class Allowed(Protocol):
    """What a parameter may be."""

    @property
    def type_name(self) -> str:
        """The type as documentation shows it."""

    def refusal(self, value: Any) -> str | None:
        """Return what is allowed if the value is not, else None."""


_LARGEST = 2.0**63  # compiled code counts in 64 bits


def _as_float(value: Any) -> float:
    """The number as a float; one that is too large for it is infinite."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


class OneOf(NamedTuple):
    """One of a few words."""

    words: tuple[str, ...]

    @property
    def type_name(self) -> str:
        return "{" + ", ".join(f'"{word}"' for word in self.words) + "}"

    def refusal(self, value: Any) -> str | None:
        if isinstance(value, str) and value in self.words:
            return None
        return "one of " + ", ".join(repr(word) for word in self.words)


class Number(NamedTuple):
    """A real (or whole) number in a range; None too where it is optional, True and False where it may be a flag."""

    low: float
    open_low: bool = False
    high: float = math.inf
    whole: bool = False
    optional: bool = False
    words: tuple[str, ...] = ()
    closed_high: bool = False
    flag: bool = False

    @property
    def type_name(self) -> str:
        name = "int" if self.whole else "float"
        if self.high < math.inf:
            name += f" in {'(' if self.open_low else '['}{self.low:g}, {self.high:g}{']' if self.closed_high else ')'}"
        elif self.low > -math.inf:
            name += f" {'>' if self.open_low else '≥'} {self.low:g}"
        others = ["bool"] * self.flag + [f'"{word}"' for word in self.words] + ["None"] * self.optional
        return " or ".join([name, *others])

    def refusal(self, value: Any) -> str | None:
        kind: Any = (int, Integral) if self.whole else (float, int, Real)  # the usual ones first: abstract ones are slow
        if (value is None and self.optional) or (isinstance(value, str) and value in self.words):
            return None
        if isinstance(value, kind) and (self.flag or not isinstance(value, bool)):
            number = _as_float(value)
            above = number > self.low or (number == self.low and not self.open_low)
            fits = not self.whole or abs(number) < _LARGEST
            if fits and above and (number < self.high or (number == self.high and self.closed_high)):
                return None
        sentence = f"a {'whole ' if self.whole else ''}number"
        sentence += f" {'>' if self.open_low else '≥'} {self.low:g}" if self.low > -math.inf else ""
        sentence += f" and {'≤' if self.closed_high else '<'} {self.high:g}" if self.high < math.inf else ""
        if self.whole and isinstance(value, Integral) and _as_float(value) >= _LARGEST:
            sentence += ", of 64 bits"
        extra = ["True or False"] * self.flag + [repr(word) for word in self.words] + ["None"] * self.optional
        return " or ".join([sentence, *extra])


class Flag(NamedTuple):
    """True or False."""

    @property
    def type_name(self) -> str:
        return "bool"

    def refusal(self, value: Any) -> str | None:
        return None if isinstance(value, bool | np.bool_) else "True or False"


class ClassWeight(NamedTuple):
    """A weight for each class."""

    @property
    def type_name(self) -> str:
        return 'dict, "balanced" or None'

    def refusal(self, value: Any) -> str | None:
        if value is None or isinstance(value, Mapping) or (isinstance(value, str) and value == "balanced"):
            return None
        return "a dictionary from class to weight, 'balanced' or None"


class RuleName(NamedTuple):
    """A rule of `rosenblatt.rules`, or the word for the plain perceptron's."""

    @property
    def type_name(self) -> str:
        return 'rule of rosenblatt.rules or "perceptron"'

    def refusal(self, value: Any) -> str | None:
        if value == "perceptron" or (isinstance(value, tuple) and hasattr(value, "bound")):
            return None
        return "'perceptron' or a rule, such as rosenblatt.rules.PA1(C=1.0)"


class Seed(NamedTuple):
    """A source of random numbers, or a number to start one from."""

    @property
    def type_name(self) -> str:
        return "int, RandomState, Generator or None"

    def refusal(self, value: Any) -> str | None:
        sources = np.random.RandomState | np.random.Generator
        if value is None or value is np.random or isinstance(value, sources):
            return None
        if isinstance(value, Integral) and 0 <= int(value) < 2**32:
            return None
        return "a whole number from 0 to 2³² − 1, a numpy.random.Generator, a numpy.random.RandomState or None"


class Device(NamedTuple):
    """Where to learn."""

    @property
    def type_name(self) -> str:
        return '"auto", "cpu", "cuda" or "cuda:" and a number'

    def refusal(self, value: Any) -> str | None:
        known = isinstance(value, str) and (value in ("auto", "cpu") or card_number(value) is not None)
        return None if known else DEVICES


class Anything(NamedTuple):
    """A value that is checked where it is used, since what is allowed depends on the data."""

    type_name: str

    def refusal(self, value: Any) -> str | None:
        return None


class Clash(NamedTuple):
    """Two parameters that mean nothing together when each has one of these values."""

    one: str
    values: tuple[Any, ...]
    other: str
    others: tuple[Any, ...]
    reason: str


def check(params: Mapping[str, Any], allowed: Mapping[str, Any], clashes: tuple[Clash, ...] = ()) -> None:
    """Raise InvalidParameter for the first parameter that is not allowed, or IncompatibleParameters for two that clash."""
    for name, kind in allowed.items():
        if (expected := kind.refusal(params[name])) is not None:
            value = params[name]
            ours = VALUES.get(name, {}).get(value) if isinstance(value, str) else None
            raise InvalidParameter(name, value, expected, settings=None if ours is None else {name: ours})
    for clash in clashes:
        if _among(params[clash.one], clash.values) and _among(params[clash.other], clash.others):
            one, other = ((name, params[name]) for name in (clash.one, clash.other))
            raise IncompatibleParameters(one, other, clash.reason)


def _among(value: Any, values: tuple[Any, ...]) -> bool:
    return any(test(value) if callable(test) else value == test for test in values)


# Parameters of other libraries, and of other learners here, with what to use instead


class Advice(NamedTuple):
    """What to use instead of a parameter that a learner does not have."""

    instead: str = ""  # a parameter that the learner must have for this advice; "": none
    value: Callable[[Any], Any] | None = None  # its value, by that of the word; if it returns None, the advice is another
    hint: str | None = None
    also: str | None = None  # a further parameter that it must have


def _translate(**words: Any) -> Callable[[Any], Any]:
    return lambda value: words.get(str(value))


def _same(value: Any) -> Any:
    return value


_NO_PENALTY = (
    "there is no penalty here, as with penalty=None in scikit-learn: leave it out, or average the weights; with a penalty "
    "use sklearn.linear_model.SGDClassifier(loss='perceptron', penalty='l2')"
)
_PENALTY = (
    Advice("keep", lambda value: "average", _NO_PENALTY),
    Advice("average", lambda value: True, _NO_PENALTY),
    Advice(hint=_NO_PENALTY),
)
_RATE = (
    Advice("C", hint="the length of a step follows from the example, and C limits it; leave it out"),
    Advice(hint="the length of a step follows from the algorithm; leave it out"),
)
_LOSSES = "use PassiveAggressiveClassifier(loss='squared_hinge'), or sklearn.linear_model.SGDClassifier for other losses"
_KERNEL = (Advice(hint="use KernelPerceptron, or a learner with a budget such as Forgetron"),)
_ONE_WAY = (Advice(hint="there is one algorithm; leave it out"),)
_EPOCHS = (Advice("max_iter", _same), Advice(hint="it does not learn in epochs; leave it out"))
_HELD_OUT = (
    Advice("max_iter", hint="this learner holds out no rows; max_iter and tol end its training"),
    Advice(hint="it does not learn in epochs; leave it out"),
)
_ALWAYS_DRAWN = (Advice(hint="how it visits rows is part of the algorithm; leave it out"),)
_NO_AVERAGE = (Advice(hint="the weights that predict are part of the algorithm; leave it out"),)
_RULE_OF_RATES = "the rate falls with the updates, not with the examples"

WORDS: Mapping[str, tuple[Advice, ...]] = {
    "penalty": _PENALTY,
    "alpha": _PENALTY,
    "l1_ratio": _PENALTY,
    "shuffle": (Advice("order", lambda value: "shuffle" if value else "cyclic"), *_ALWAYS_DRAWN),
    "order": (Advice("shuffle", _translate(shuffle=True, cyclic=False)), *_ALWAYS_DRAWN),
    "average": (
        Advice("keep", lambda value: "average" if value else "last", "the average is over all examples"),
        *_NO_AVERAGE,
    ),
    "keep": (Advice("average", _translate(average=True, last=False)), *_NO_AVERAGE),
    "loss": (
        Advice("margin", _translate(perceptron=0.0, hinge=1.0), also="learning_rate"),
        Advice("learning_rate", hint=_LOSSES),
        Advice(hint="the loss is that of the algorithm; leave it out"),
    ),
    "C": (Advice(hint="use PassiveAggressiveClassifier or PassiveAggressiveRegressor, whose steps C limits"),),
    "epsilon": (Advice(hint="use PassiveAggressiveRegressor, which has a tube of that width"),),
    "margin": (Advice(hint="use Perceptron(margin=...), MIRA or PAUM"),),
    "eta0": _RATE,
    "learning_rate": (Advice("eta0", hint="the rate is eta0 at every step; leave it out"), *_RATE),
    "learning_rate_init": (Advice("eta0", _same), *_RATE),
    "lr": (Advice("eta0", _same), *_RATE),
    "power_t": (
        Advice("learning_rate", lambda value: {0.5: "invsqrt", 1.0: "inverse"}.get(value), _RULE_OF_RATES),
        *_RATE,
    ),
    "fit_intercept": (Advice(hint="it has no intercept; append a column of ones to X for one"),),
    "intercept_scaling": (Advice(hint="it has no intercept; append a column of constants to X for one"),),
    "multi_class": (Advice("multiclass", _translate(ovr="ovr", multinomial="joint", crammer_singer="joint")), *_ONE_WAY),
    "decision_function_shape": (Advice("multiclass", _same), *_ONE_WAY),
    "multiclass": (Advice(hint="it learns each class against the rest; leave it out"),),
    "dual": _ONE_WAY,
    "solver": _ONE_WAY,
    "kernel": _KERNEL,
    "degree": _KERNEL,
    "gamma": _KERNEL,
    "coef0": _KERNEL,
    "probability": (Advice(hint="sklearn.calibration.CalibratedClassifierCV turns scores into probabilities"),),
    "batch_size": (Advice("batch", _same), Advice(hint="it learns from one row at a time; leave it out")),
    "batch": (Advice(hint="it learns from one row at a time; leave it out"),),
    "max_iter": _EPOCHS,
    "n_iter": _EPOCHS,
    "epochs": _EPOCHS,
    "tol": _EPOCHS[1:],
    "n_iter_no_change": _EPOCHS[1:],
    "warm_start": _EPOCHS[1:],
    "early_stopping": _HELD_OUT,
    "validation_fraction": _HELD_OUT,
    "class_weight": (Advice(hint="use a learner that weighs classes, such as Perceptron or PassiveAggressiveClassifier"),),
    "n_jobs": (Advice(hint="it uses one thread; leave it out"),),
    "device": (Advice(hint=f"it learns on the CPU, and {LEARN_ON_GPU} learn on a GPU too; leave it out"),),
    "seed": (Advice("random_state", _same),),
}


# The same for values of parameters that learners do have.
VALUES: Mapping[str, Mapping[str, str]] = {
    "learning_rate": {"invscaling": "invsqrt", "optimal": "inverse"},
    "multiclass": {"multinomial": "joint", "crammer_singer": "joint", "one_vs_rest": "ovr", "one_vs_one": "ovo"},
    "order": {"sequential": "cyclic"},
}


def unknown_parameter(learner: str, name: str, value: Any, known: Collection[str]) -> UnknownParameter:
    """Return the error for a parameter that a learner, which has those known, does not have; it says what to write."""
    for instead, translate, hint, also in WORDS.get(name, ()):
        if {instead, also or ""} - {""} <= set(known):
            settings = {} if translate is None else {instead: translate(value)}
            if None not in settings.values():
                return UnknownParameter(learner, name, value, hint=hint, settings=settings)
    near = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean {near[0]!r}?" if near else f"its parameters are {', '.join(sorted(known))}"
    return UnknownParameter(learner, name, value, hint=hint)


class NamedParameters(Learner):
    """A learner that answers an unknown parameter with what to write instead."""

    def set_params(self, **params: Any) -> Any:
        """Set parameters of this estimator.

        Parameters
        ----------
        **params : object
            Values by the names of parameters.

        Returns
        -------
        self : object
            The estimator.

        Raises
        ------
        UnknownParameter
            If there is no such parameter; the message says what to write instead. None is set then.
        """
        known = self.get_params(deep=True)
        for name, value in params.items():
            if name.partition("__")[0] not in known:
                raise unknown_parameter(type(self).__name__, name, value, known)
        return super().set_params(**params)


# How a class declares its parameters


def parameter(default: T, allowed: Allowed | None = None, positional: bool = False) -> T:
    """Declare a parameter of an estimator, as a field of a class that is decorated by `with_parameters`.

    Parameters
    ----------
    default : object
        The default. Its type must be that of the annotation.
    allowed : Allowed, optional
        What it may be: a `Number`, `OneOf`, `Flag`, … None: the same as in the base class that declares it too.
    positional : bool, default=False
        Whether it may be passed without its name; the default may then be `dataclasses.MISSING`.
    """
    return field(default=default, kw_only=False if positional else MISSING, metadata={"allowed": allowed})


@dataclass_transform(kw_only_default=True, eq_default=False)
def with_parameters(cls: C) -> C:
    """Give a class the constructor and the documentation of the parameters that it declares or inherits.

    All are keywords, but those that are declared as positional. `cls._allowed` tells what each may be.
    """
    made: Any = dataclass(kw_only=True, eq=False, repr=False, match_args=False)(cls)
    signature = inspect.signature(made.__init__)
    made.__init__ = _refuse_unknown(made.__init__, list(signature.parameters)[1:])
    ranked = sorted(signature.parameters.values(), key=lambda each: (each.kind, _rank(each.name)))
    made._allowed = {each.name: _find_allowed(made, each.name) for each in ranked[1:]}
    ranked[1:] = (each.replace(annotation=_annotation(made, each.name, each.annotation)) for each in ranked[1:])
    made.__init__.__signature__ = signature.replace(parameters=ranked)
    made.__init__.__annotations__ = {each.name: each.annotation for each in ranked[1:]} | {"return": None}
    for each in ranked[1:]:
        if each.default is not inspect.Parameter.empty:
            setattr(made, each.name, each.default)  # over what a base has that does not offer the parameter
    if made.__doc__ is not None:  # which python -OO takes away
        made.__doc__ = _documentation(made, {each.name: each.default for each in ranked[1:]})
    return made


def _refuse_unknown(constructor: Any, known: list[str]) -> Any:
    """The same constructor, which answers an unknown parameter with what to write instead."""

    @functools.wraps(constructor)
    def checked(self: Any, *args: Any, **values: Any) -> None:
        for name, value in values.items():
            if name not in known:
                raise unknown_parameter(type(self).__name__, name, value, known)
        constructor(self, *args, **values)

    return checked


def _rank(name: str) -> int:
    """Where a parameter stands in the constructor: those of a learner itself come first."""
    return _ORDER.index(name) if name in _ORDER else -1


def _find_allowed(cls: type, name: str) -> Allowed:
    """What a parameter may be, as the class says or the nearest base that does."""
    declared = (vars(base).get("__dataclass_fields__", {}).get(name) for base in cls.__mro__)
    return next(each.metadata["allowed"] for each in declared if each is not None and each.metadata["allowed"] is not None)


def _annotation(cls: Any, name: str, kind: Any) -> Any:
    """The type of a parameter: as its class writes it, with the words that are allowed in the place of `str`."""
    home = next(base for base in cls.__mro__ if name in inspect.get_annotations(base))
    if isinstance(kind, str):
        kind = eval(kind, vars(sys.modules[home.__module__]))
    words = getattr(cls._allowed[name], "words", ())
    if not words:
        return kind
    others = [part for part in get_args(kind) or (kind,) if part is not str]
    return functools.reduce(operator.or_, others, Literal[words])


def _documentation(cls: Any, defaults: Mapping[str, Any]) -> str:
    """The docstring of a class with all of its parameters and attributes, described there or in those of its bases."""
    meaning: dict[str, str] = {}
    attributes: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        head, sections = _sections(vars(base).get("__doc__") or "")
        meaning |= {name: text for name, _, text in _entries(sections.pop("Parameters", ""))}
        own = {name: f"{name}{kind}\n{text}" for name, kind, text in _entries(sections.pop("Attributes", ""))}
        described = set(_names(own))
        attributes = own | {name: text for name, text in attributes.items() if described.isdisjoint(_names([name]))}
    parameters = (
        f"{name} : {cls._allowed[name].type_name}{_shown(default)}\n{meaning[name]}" for name, default in defaults.items()
    )
    sections = {"Parameters": "".join(parameters), "Attributes": "".join(attributes.values()), **sections}
    texts = (f"{title}\n{'-' * len(title)}\n{text.rstrip()}\n" for title, text in sections.items() if text)
    return f"{head.rstrip()}\n\n" + "\n".join(texts)


def _sections(doc: str) -> tuple[str, dict[str, str]]:
    """What a docstring says before its sections, and each section by its title."""
    head, *rest = re.split(r"^([A-Z]\w+)\n-+\n", inspect.cleandoc(doc) + "\n", flags=re.MULTILINE)
    return head, dict(zip(rest[::2], rest[1::2], strict=True))


def _entries(section: str) -> list[tuple[str, str, str]]:
    """(name or names, " : type", description) of each entry of a section."""
    return re.findall(r"^(\w.*?)( :.*)?\n((?: +.*\n)+)", section, flags=re.MULTILINE)


def _names(entries: Iterable[str]) -> list[str]:
    return [name for entry in entries for name in entry.split(", ")]


def _shown(default: object) -> str:
    if default is inspect.Parameter.empty:
        return ""
    return f', default="{default}"' if isinstance(default, str) else f", default={shown(default)}"


# The parameters that several learners have, in the order in which constructors have them

WORST_FIRST = ("most-violated", "most-violated-normalised")
_ORDER = [
    "fit_intercept", "intercept_scaling", "order", "shuffle", "batch", "reduction", "keep", "average", "multiclass",
    "max_iter", "max_updates", "max_seconds", "tol", "weight_tol", "n_iter_no_change", "early_stopping",
    "validation_fraction", "class_weight", "unknown_class", "warm_start", "n_jobs", "device", "random_state",
    "verbose",
]  # fmt: skip


@with_parameters
class InterceptParameters:
    """Parameters of learners that may have an intercept.

    Parameters
    ----------
    fit_intercept
        Whether to learn an intercept, as the weight of a constant feature.
    intercept_scaling
        The value of the constant feature. R and γ are those of the data with it; about R is a good size for uncentred data.
    """

    fit_intercept: bool = parameter(True, Flag())
    intercept_scaling: float = parameter(1.0, Number(0, open_low=True))


@with_parameters
class OrderParameters:
    """The parameter of learners that visit rows in a certain order.

    Parameters
    ----------
    order
        How each epoch visits the rows: shuffled, in the order given, or drawn with replacement.
    """

    order: str = parameter("shuffle", OneOf(("shuffle", "cyclic", "random")))


@with_parameters
class RandomParameters:
    """Parameters of learners that use random numbers and show their progress.

    Parameters
    ----------
    random_state
        The source of random numbers, for the order of rows and the like. The same seed gives the same model.
    verbose
        Whether to show progress on stderr: a line for each epoch.
    """

    random_state: Any = parameter(0, Seed())
    verbose: int = parameter(0, Number(0, whole=True, flag=True))


@with_parameters
class EpochParameters(RandomParameters):
    """Parameters of learners that go over the data in epochs.

    Parameters
    ----------
    max_iter
        The largest number of epochs (passes over the data).
    tol
        Stop when the share of mistakes in an epoch (or the validation error) has not fallen by more than `tol` for
        `n_iter_no_change` epochs in a row. None: do not stop for this reason, and do not warn at `max_iter`.
    n_iter_no_change
        The number of epochs without such a fall after which training stops.
    warm_start
        Whether `fit` continues from what was learned before.
    """

    max_iter: int = parameter(1000, Number(1, whole=True))
    tol: float | None = parameter(1e-3, Number(-math.inf, optional=True))
    n_iter_no_change: int = parameter(5, Number(1, whole=True))
    warm_start: bool = parameter(False, Flag())


@with_parameters
class LinearParameters(InterceptParameters, OrderParameters, EpochParameters):
    """Parameters that nearly all linear learners have."""


@with_parameters
class BatchParameters:
    """Parameters of learners that can learn from several rows at once.

    Parameters
    ----------
    batch
        The number of rows that are predicted with the same weights before these change. 1 is the online algorithm.
    reduction
        Whether a batch changes the weights by the sum or by the mean of its updates.
    """

    batch: int | str = parameter(1, Number(1, whole=True, words=("full",)))
    reduction: str = parameter("sum", OneOf(("sum", "mean")))


@with_parameters
class KeepParameters:
    """The parameter of learners that can predict with other weights than the last.

    Parameters
    ----------
    keep
        Which weights predict. "average": the mean of those after every example. "auto": the same, but if training ends
        with an epoch without mistakes, further epochs without updates count in the mean until it, too, is right on every
        training row. "last": the last. "pocket": those with the longest run of right answers that also made the fewest
        errors on the training set. "vote": the vote of them all, each with the examples it survived (Freund and Schapire
        1999), which stores every mistake. `last_coef_` has the last weights in any case.
    """

    keep: str = parameter("auto", OneOf(("auto", "last", "average", "pocket", "vote")))


@with_parameters
class ClassWeightParameters:
    """The parameter of classifiers that can weigh classes.

    Parameters
    ----------
    class_weight
        Multiplies the step for examples of a class. In `partial_fit`, "balanced" weighs by the classes seen so far.
    """

    class_weight: Any = parameter(None, ClassWeight())


@with_parameters
class StateParameters(LinearParameters, ClassWeightParameters):
    """Parameters of linear learners with a state, each class of which learns against the rest."""


@with_parameters
class ThreadParameters:
    """The parameter of learners that use several threads.

    Parameters
    ----------
    n_jobs
        The number of threads; None and −1 use every core. Results do not depend on it.
    """

    n_jobs: int | None = parameter(None, Number(-math.inf, whole=True, optional=True))


@with_parameters
class DeviceParameters:
    """The parameter of learners that can learn on a GPU.

    Parameters
    ----------
    device
        Where to learn. "auto": where X is; arrays of CuPy, PyTorch, or any other library with DLPack, that lie on a CUDA
        device are learned from there, without a copy, and all others on the CPU. "cuda", or "cuda:1" for the second GPU:
        there; X is copied to the GPU if it lies elsewhere, or streamed to it if it is too large. "cpu": on the CPU only. A
        GPU makes the same mistakes, but for margins within rounding of the threshold, and what is learned is the same
        model, in the memory of the machine. Predictions are computed where X is.
    """

    device: str = parameter("auto", Device())


@with_parameters
class ClassificationParameters(ClassWeightParameters, ThreadParameters, DeviceParameters):
    """Parameters of classifiers that learn many classes in several ways.

    Parameters
    ----------
    multiclass
        One argmax over all classes, each class against the rest, or each against each. All learn in one pass.
    unknown_class
        What `partial_fit` does with a label that is not among the classes: raise an error, or add it as a new class.
    """

    multiclass: str = parameter("joint", OneOf(("joint", "ovr", "ovo")))
    unknown_class: str = parameter("error", OneOf(("error", "grow")))


@with_parameters
class ValidationParameters:
    """Parameters of learners that can hold out rows to decide when to stop.

    Parameters
    ----------
    early_stopping
        Hold out `validation_fraction` of the rows and judge by the error on these. Rows given to `fit` as `X_val, y_val`
        do the same without holding any out.
    validation_fraction
        The share of rows held out.
    """

    early_stopping: bool = parameter(False, Flag())
    validation_fraction: float = parameter(0.1, Number(0, open_low=True, high=1))


@with_parameters
class MarginParameters(LinearParameters, KeepParameters, ClassificationParameters):
    """Parameters of linear classifiers that are a margin and a step.

    Parameters
    ----------
    order
        How each epoch visits the rows: shuffled, in the order given, drawn with replacement, or always the row with
        the lowest margin (divided by its norm), which costs a pass over the data for each update.
    """

    order: str = parameter("shuffle", OneOf(("shuffle", "cyclic", "random", *WORST_FIRST)))


@with_parameters
class SharedParameters(MarginParameters, BatchParameters, ValidationParameters):
    """All parameters that several learners have, and further reasons to stop.

    Parameters
    ----------
    max_updates
        The largest number of updates.
    max_seconds
        Stop at the end of the first epoch that ends later than this.
    weight_tol
        Stop when an epoch moves the weights by no more than this distance.
    """

    max_updates: int | None = parameter(None, Number(1, whole=True, optional=True))
    max_seconds: float | None = parameter(None, Number(0, open_low=True, optional=True))
    weight_tol: float | None = parameter(None, Number(0, optional=True))


SHARED: Mapping[str, Allowed] = vars(SharedParameters)["_allowed"]  # what they may be, unless a learner says otherwise
