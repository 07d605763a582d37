"""The source of the kernels in kernels/*.cu, with the step of a rule and the constants that they are compiled for."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from types import MappingProxyType

from rosenblatt.gpu.translation import step_source

_TYPES = {"float32": ("float", 4), "float64": ("double", 2)}  # in C, and how many are 16 bytes


def source_of(name: str, real: str, rule: type | None = None, constants: Mapping[str, int] = MappingProxyType({})) -> str:
    """Return the source of a file of kernels for weights of this type.

    Parameters
    ----------
    name : str
        The file in kernels/, without its suffix.
    real : str
        "float32" or "float64".
    rule : type, optional
        The rule, where the kernels take steps.
    constants : mapping of str to int
        What the file expects to be defined, such as BLOCK.

    Returns
    -------
    str
    """
    kind, units = _TYPES[real]
    defined = {"UNITS": units, "FIELDS": max(len(getattr(rule, "_fields", ())), 1), **constants}
    lines = [f"#define REAL {kind}", *(f"#define {word} {int(value)}" for word, value in defined.items())]
    step = "" if rule is None else step_source(rule)
    return "\n".join([*lines, _kernel_text("prelude"), step, _kernel_text(name)])


def _kernel_text(name: str) -> str:
    return (files("rosenblatt.gpu") / "kernels" / f"{name}.cu").read_text("utf-8")
