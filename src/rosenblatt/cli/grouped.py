"""Options that several commands take together are the fields of one NamedTuple; `grouped` lets a command take it as one
parameter, and shows each field as an option.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from typing import Any, get_type_hints


def given(group: Any, *but: str) -> list[str]:
    """The options, as they are written, of those fields of a group that are not as they are by default; `but` these."""
    hints = get_type_hints(type(group), include_extras=True)
    return [
        hints[field].__metadata__[0].default.partition("/")[0]  # where typer keeps the first name of an annotated option
        for field, default in group._field_defaults.items()
        if field not in but and getattr(group, field) != default
    ]


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
