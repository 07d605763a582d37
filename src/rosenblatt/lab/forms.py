"""The learners of the lab, and the fields of a form for each of them, made from the parameters that the classes declare.

Parameters that say how long and in which order to learn are the same for all learners here, and are not among the fields;
nor are those that two classes in a plane have no use for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from rosenblatt.errors import InvalidParameter, UnknownParameter
from rosenblatt.estimators.parameters import Flag, Number
from rosenblatt.modelfile.registry import learner_class
from rosenblatt.workflow.learners import LEARNERS as ALL

LEARNERS = tuple(name for name in ALL if not name.endswith("Regressor"))
ORDERS = ("cyclic", "shuffle", "random")
_RUN = frozenset({
    "order", "shuffle", "max_iter", "max_updates", "max_seconds", "tol", "weight_tol", "n_iter_no_change", "random_state",
    "early_stopping", "validation_fraction", "warm_start", "verbose",
})  # fmt: skip
_NO_USE = frozenset({"multiclass", "unknown_class", "class_weight", "n_jobs", "device", "max_bytes", "init"})
_BATCHES = frozenset({"batch", "reduction"})  # of a learner that is shown one row at a time
_HIDDEN_WORDS = {"keep": ("auto", "pocket"), "kernel": ("precomputed",)}
_FIRST_WORDS = {"keep": "last"}  # what changes with each update


class Field(NamedTuple):
    """A parameter as a form shows it.

    Attributes
    ----------
    name : str
        The name of the parameter.
    kind : str
        "number", "choice" or "flag".
    default : object
        The value that the form begins with.
    allowed : str
        What is allowed, in words.
    words : tuple of str
        The words of a choice, or those that a number may be too.
    low, high : float or None
        The range of a number.
    whole, optional : bool
        Whether a number must be whole, and whether it may be left empty.
    """

    name: str
    kind: str
    default: Any
    allowed: str
    words: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    whole: bool = False
    optional: bool = False


def fields(name: str) -> list[Field]:
    """Return the fields of a learner's form.

    Parameters
    ----------
    name : str
        One of `LEARNERS`.

    Returns
    -------
    list of Field
        A field for each parameter that matters in the plane.

    Examples
    --------
    >>> [field.name for field in fields("MIRA")]
    ['margin', 'fit_intercept', 'intercept_scaling', 'keep']
    """
    kind = _class_named(name)
    defaults = kind().get_params(deep=False)
    left_out = _RUN | _NO_USE | (_BATCHES if learns_from_single_rows(name) else frozenset())
    return [
        _field(parameter, allowed, defaults[parameter])
        for parameter, allowed in kind._allowed.items()
        if parameter not in left_out
    ]


def orders(name: str) -> tuple[str, ...]:
    """Return the orders in which a learner can be shown the points; none if that is part of its algorithm."""
    parameters = _class_named(name)._allowed
    if "order" in parameters:
        return tuple(order for order in ORDERS if order in parameters["order"].words)
    return ORDERS[:2] if "shuffle" in parameters else ()


def learns_from_single_rows(name: str) -> bool:
    """Return whether a learner has `partial_fit`, so that its state after each row can be seen."""
    return hasattr(_class_named(name)(), "partial_fit")


def make(name: str, settings: Mapping[str, Any], order: str, epochs: int, seed: int) -> Any:
    """Return the learner that a form describes.

    Parameters
    ----------
    name : str
        One of `LEARNERS`.
    settings : mapping
        Values of some of its fields; the others have their defaults.
    order : str
        One of the `orders` of the learner; any word if it has none.
    epochs, seed : int
        `max_iter` and `random_state`, where it has them.

    Returns
    -------
    estimator
        The learner, which has learned nothing.

    Raises
    ------
    InvalidParameter
        If there is no such learner or order; `UnknownParameter` if the form has no such field.
    """
    kind, known = _class_named(name), {field.name: field.default for field in fields(name)}
    for parameter, value in settings.items():
        if parameter not in known:
            raise UnknownParameter(name, parameter, value, hint=f"its fields are {', '.join(known)}")
    possible = orders(name)
    if possible and order not in possible:
        raise InvalidParameter("order", order, f"one of {', '.join(possible)}")
    run = {
        "order": order, "shuffle": order == "shuffle", "max_iter": epochs, "tol": None, "random_state": seed,
        "n_jobs": 1,  # a thread takes longer to start than these few points take
    }  # fmt: skip
    parameters = {parameter: value for parameter, value in run.items() if parameter in kind._allowed}
    return kind(**(known | dict(settings) | parameters))


def _class_named(name: str) -> Any:
    if name not in LEARNERS:
        raise InvalidParameter("learner", name, f"one of {', '.join(LEARNERS)}")
    return learner_class(name)


def _field(name: str, allowed: Any, default: Any) -> Field:
    if isinstance(allowed, Flag):
        return Field(name, "flag", default, allowed.type_name)
    words = tuple(word for word in allowed.words if word not in _HIDDEN_WORDS.get(name, ()))
    if isinstance(allowed, Number):
        low, high = (bound if math.isfinite(bound) else None for bound in (allowed.low, allowed.high))
        return Field(name, "number", default, allowed.type_name, words, low, high, allowed.whole, allowed.optional)
    default = _FIRST_WORDS.get(name, default)
    return Field(name, "choice", default if default in words else words[0], ", ".join(words), words)
