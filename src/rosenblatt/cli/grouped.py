"""Options that several commands take together are the fields of one NamedTuple; `grouped` lets a command take it as one
parameter, and shows each field as an option.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from typing import Any, get_type_hints


def grouped(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command with each NamedTuple among its parameters spread into its fields."""
    hints = get_type_hints(command, include_extras=True)
    groups = {name: kind for name, kind in hints.items() if hasattr(kind, "_fields")}
    spread: list[Parameter] = []
    for name, parameter in signature(command).parameters.items():
        if name not in groups:
            spread.append(parameter.replace(annotation=hints[name], kind=Parameter.KEYWORD_ONLY))
            continue
        kind = groups[name]
        for field, annotation in get_type_hints(kind, include_extras=True).items():
            default = kind._field_defaults[field]
            spread.append(Parameter(field, Parameter.KEYWORD_ONLY, default=default, annotation=annotation))

    @wraps(command)
    def run(**given: Any) -> Any:
        taken = {name: kind(*(given.pop(field) for field in kind._fields)) for name, kind in groups.items()}
        return command(**given, **taken)

    own: Any = run
    own.__signature__ = signature(command).replace(parameters=spread)
    own.__annotations__ = {parameter.name: parameter.annotation for parameter in spread}
    del own.__wrapped__  # whoever asks for the signature is to get this one
    return run
