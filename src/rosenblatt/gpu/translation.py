"""A rule is written once: the body of its `step` in Python is translated into a function of CUDA C++.

A body is a few lines of arithmetic, so the translation is one of expressions, each into an expression of C that computes
the same number. Every number is a double: `k`, an integer in Python, is exact up to 2⁵³, and True and False are 1 and 0.
Where C differs, what is written is Python's meaning. `min` and `max` keep their first argument unless another is smaller or
larger (those of C drop a NaN); `and` and `or` give one of their operands; a power by an integer constant is a product, as
it is in numba.

Compiled so that a product and a sum are not contracted into one rounding (`--fmad=false`), a step has the same bits on a
GPU and here; but `pow`, `exp`, `log` and `tanh` of a GPU may differ from those of this machine in the last bit or two.

What has no translation is refused, with the line on which it stands; nothing is approximated.
"""

from __future__ import annotations

import ast
import builtins
import math
from collections.abc import Iterator
from functools import reduce
from types import FunctionType, ModuleType
from typing import NamedTuple, NoReturn, Protocol, TypeGuard, cast

import numpy as np
from numpy.typing import NDArray

from rosenblatt.counting.rewriting import Uncountable, find_definition
from rosenblatt.errors import UnsupportedOperation
from rosenblatt.rules import step

HEAD = "__device__ __forceinline__ double"
PARAMETERS = ("rule", "m", "length", "k", "positive")
SUPPORTED = (
    "if, return, assignments to names, + − * / **, comparisons, and, or, not, min, max, abs, sqrt, exp, log and the like"
)

_ARITHMETIC = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
_COMPARISONS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}


class _Function(NamedTuple):
    """A function of Python that has one of C."""

    called: object  # not its name, so that `from math import sqrt as root` is found too
    name: str  # in C, or in _HELPERS
    arguments: int = 1
    more: bool = False  # whether it takes more arguments than that


_FUNCTIONS = (
    *(
        _Function(getattr(module, name), name)
        for module in (math, np)
        for name in ("sqrt", "exp", "log", "log2", "log10", "log1p", "expm1", "tanh", "fabs", "floor", "ceil")
    ),
    *(_Function(called, "fabs") for called in (abs, np.abs)),
    *(_Function(called, "pow", 2) for called in (pow, math.pow, np.power)),
    _Function(float, ""),
    _Function(min, "first_min", 2, more=True),
    _Function(max, "first_max", 2, more=True),
    _Function(np.minimum, "nan_min", 2),
    _Function(np.maximum, "nan_max", 2),
)
_HELPERS = {
    "first_min": "(double a, double b) { return b < a ? b : a; }",
    "first_max": "(double a, double b) { return b > a ? b : a; }",
    "nan_min": "(double a, double b) { return a < b || a != a ? a : b; }",
    "nan_max": "(double a, double b) { return a > b || a != a ? a : b; }",
    "integer_power": (
        "(double x, int n) {\n    double product = 1.0;\n    for (; n > 0; n >>= 1, x *= x)\n"
        "        if (n & 1) product *= x;\n    return product;\n}"
    ),
}


class RuleFields(Protocol):
    """What is asked of a rule here: to be a NamedTuple."""

    @property
    def _fields(self) -> tuple[str, ...]: ...

    def __iter__(self) -> Iterator[object]: ...


def step_source(rule: type) -> str:
    """Return the step of a rule as CUDA C++.

    The function is ``double step(const double *rule, double m, double length, double k, bool positive)``, where ``rule[i]``
    is the i-th field of the NamedTuple (see `rule_values`); the functions that it calls stand before it.

    Parameters
    ----------
    rule : type
        A NamedTuple with a body registered by ``@rosenblatt.rules.step.register``: one of `rosenblatt.rules` or a user's.

    Returns
    -------
    str
        The source. It depends on the body and the constants that it uses only.

    Raises
    ------
    UnsupportedOperation
        Where the body has something that cannot be translated; `path` and `line` say where.
    """
    body, fields = cast(FunctionType, step.dispatch(rule)), getattr(rule, "_fields", None)
    if body is step.dispatch(object) or fields is None:
        raise UnsupportedOperation(
            f"{rule.__name__} is not a rule: it must be a NamedTuple with a body registered by @step.register"
        )
    try:
        definition = find_definition(body)
    except Uncountable as error:
        raise UnsupportedOperation(
            f"the step of {rule.__name__} cannot be translated for a GPU: its source is not there to be read",
            hint="define it in a file or a notebook",
            settings={"device": "cpu"},
        ) from error
    return _Translator(rule, fields, body).function(cast(ast.FunctionDef, definition))


def rule_values(rule: RuleFields) -> NDArray[np.float64]:
    """Return the fields of a rule as an array of float64, which the translated step reads.

    Parameters
    ----------
    rule : NamedTuple
        A rule.

    Returns
    -------
    ndarray of shape (fields,)
        In the order of the fields.
    """
    for name, value in zip(rule._fields, rule, strict=True):
        if not _is_number(value):
            raise UnsupportedOperation(
                f"the rule {type(rule).__name__} cannot be used on a GPU: its field {name!r} is {value!r}, not a number",
                settings={"device": "cpu"},
            )
    return np.array(tuple(rule), np.float64)


def _is_number(value: object) -> TypeGuard[float]:
    """Return whether a value is a real number of Python or numpy; True and False are."""
    return isinstance(value, int | float | np.integer | np.floating | np.bool_)


class _Translator:
    """Translates one body. `number` and `condition` give an expression as a double or as a truth value; `block` gives
    statements, and keeps track of which names have a value, and of whether every path returns."""

    def __init__(self, rule: type, fields: tuple[str, ...], body: FunctionType):
        self.rule, self.fields, self.body = rule, fields, body
        cells = zip(body.__code__.co_freevars, body.__closure__ or (), strict=True)
        self.outside = {**vars(builtins), **body.__globals__, **{name: cell.cell_contents for name, cell in cells}}
        self.parameters: dict[str, str] = {}  # Python's name: C's
        self.locals: dict[str, str] = {}
        self.helpers: set[str] = set()

    def function(self, definition: ast.FunctionDef) -> str:
        """Return the whole source."""
        names = [argument.arg for argument in definition.args.args]
        if len(names) != len(PARAMETERS) or definition.args.vararg or definition.args.kwarg or definition.args.kwonlyargs:
            self.refuse(definition, f"a step takes ({', '.join(PARAMETERS)})")
        self.parameters = dict(zip(names, PARAMETERS, strict=True))
        code = self.body.__code__
        stored = {
            node.id for node in ast.walk(definition) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        self.locals = {
            name: f"{name if name.isascii() else 'name'}_{number}"
            for number, name in enumerate(code.co_varnames)
            if name in stored
        }
        assigned = set(self.parameters)
        lines, returns = self.block(definition.body, assigned)
        if not returns:
            self.refuse(definition, "a path through it ends without returning a number")
        start = [f"double {c}{f' = {self.parameter(name)}' if name in names else ''};" for name, c in self.locals.items()]
        helpers = [f"{HEAD} {name}{_HELPERS[name]}\n" for name in _HELPERS if name in self.helpers]
        signature = f"{HEAD} step(const double *rule, double m, double length, double k, bool positive) {{\n"
        return "".join([*helpers, signature, *(f"    {line}\n" for line in [*start, *lines]), "}\n"])

    def block(self, statements: list[ast.stmt], assigned: set[str]) -> tuple[list[str], bool]:
        """Return the lines of statements, and whether they always return; names that they assign are added to a set."""
        lines: list[str] = []
        for statement in statements:
            match statement:
                case ast.Return(value=ast.expr() as value):
                    return [*lines, f"return {self.number(value, assigned)};"], True
                case ast.If(test=test, body=body, orelse=orelse):
                    sides = [set(assigned), set(assigned)]
                    head = f"if ({self.condition(test, assigned)}) {{"
                    first, first_returns = self.block(body, sides[0])
                    second, second_returns = self.block(orelse, sides[1])
                    lines += [head, *_indented(first), *(["} else {", *_indented(second)] if second else []), "}"]
                    if first_returns and second_returns:
                        return lines, True
                    # After it a name has a value if each side that goes on has given it one.
                    assigned |= sides[1] if first_returns else sides[0] if second_returns else sides[0] & sides[1]
                case ast.Assign(targets=targets, value=value) if all(isinstance(target, ast.Name) for target in targets):
                    source = self.number(value, assigned)
                    for target in cast(list[ast.Name], targets):
                        lines.append(f"{self.local(target)} = {source};")
                        assigned.add(target.id)
                case ast.AnnAssign(target=ast.Name() as target, value=ast.expr() as value):
                    lines.append(f"{self.local(target)} = {self.number(value, assigned)};")
                    assigned.add(target.id)
                case ast.AugAssign(target=ast.Name(id=name) as target, op=operator, value=value):
                    result = ast.BinOp(ast.copy_location(ast.Name(name, ast.Load()), target), operator, value)
                    lines.append(f"{self.local(target)} = {self.number(ast.copy_location(result, target), assigned)};")
                case ast.Pass() | ast.Expr(value=ast.Constant()):
                    pass
                case _:
                    self.refuse(statement, f"{_quoted(statement)} is not supported")
        return lines, False

    def number(self, node: ast.expr, assigned: set[str]) -> str:
        """Return an expression as a double of C, in parentheses where it needs them."""
        match node:
            case ast.Constant(value=value):
                return self.constant(node, value)
            case ast.Name(id=name) if name in self.locals:
                if name not in assigned:
                    self.refuse(node, f"{name} does not have a value on every path to this line")
                return self.locals[name]
            case ast.Name(id=name) if name in self.parameters:
                if self.parameters[name] == "rule":
                    self.refuse(node, f"{name} stands for the rule itself; only its fields are numbers")
                return self.parameter(name)
            case ast.Attribute(value=ast.Name(id=name), attr=field) if self.parameters.get(name) == "rule":
                if field not in self.fields:
                    self.refuse(node, f"{name}.{field} is not a field of the rule; it has {', '.join(self.fields)}")
                return f"rule[{self.fields.index(field)}]"
            case ast.Name() | ast.Attribute():
                return self.constant(node, self.value_of(node))
            case ast.BinOp(left=left, op=ast.Pow(), right=right):
                return self.power(left, right, assigned)
            case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _ARITHMETIC:
                return f"({self.number(left, assigned)} {_ARITHMETIC[type(operator)]} {self.number(right, assigned)})"
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return f"(-{self.number(operand, assigned)})"
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self.number(operand, assigned)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                sides = f"{self.number(body, assigned)} : {self.number(orelse, assigned)}"
                return f"({self.condition(test, assigned)} ? {sides})"
            case ast.BoolOp(op=operator, values=values):
                # Python gives the operand that decides, not whether it is true.
                source = self.number(values[-1], assigned)
                for operand in reversed(values[:-1]):
                    own = self.number(operand, assigned)
                    sides = f"{source} : {own}" if isinstance(operator, ast.And) else f"{own} : {source}"
                    source = f"({self.condition(operand, assigned)} ? {sides})"
                return source
            case ast.Compare() | ast.UnaryOp(op=ast.Not()):
                return f"({self.condition(node, assigned)} ? 1.0 : 0.0)"
            case ast.Call():
                return self.call(node, assigned)
        self.refuse(node, f"{_quoted(node)} is not supported")

    def condition(self, node: ast.expr, assigned: set[str]) -> str:
        """Return whether an expression is true, as a bool of C, in parentheses where it needs them."""
        match node:
            case ast.Compare(left=left, ops=operators, comparators=comparators):
                if unknown := [operator for operator in operators if type(operator) not in _COMPARISONS]:
                    self.refuse(node, f"the comparison {type(unknown[0]).__name__} in {_quoted(node)} is not supported")
                values = [self.number(each, assigned) for each in (left, *comparators)]
                pairs = zip(values, operators, values[1:], strict=False)
                return "(" + " && ".join(f"{a} {_COMPARISONS[type(operator)]} {b}" for a, operator, b in pairs) + ")"
            case ast.BoolOp(op=operator, values=values):
                sign = " && " if isinstance(operator, ast.And) else " || "
                return "(" + sign.join(self.condition(value, assigned) for value in values) + ")"
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return f"!{self.condition(operand, assigned)}"
            case ast.Name(id=name) if self.parameters.get(name) == "positive" and name not in self.locals:
                return "positive"
        return f"({self.number(node, assigned)} != 0.0)"  # true of NaN, as in Python

    def power(self, base: ast.expr, exponent: ast.expr, assigned: set[str]) -> str:
        """Return a power: a product where the exponent is an integer constant, as in a kernel of numba, otherwise `pow`."""
        value = self.integer(exponent)
        if value is None or not abs(value) < 1 << 16:  # numba's limit
            return f"pow({self.number(base, assigned)}, {self.number(exponent, assigned)})"
        self.helpers.add("integer_power")
        product = f"integer_power({self.number(base, assigned)}, {abs(value)})"
        return product if value >= 0 else f"(1.0 / {product})"

    def integer(self, node: ast.expr) -> int | None:
        """Return the value of an expression that is an integer constant, otherwise None."""
        match node:
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                value = self.integer(operand)
                return None if value is None else -value
            case ast.Constant(value=int() as value):
                return value
            case ast.Name(id=name) if name not in self.locals and name not in self.parameters:
                found = self.outside.get(name)
                return found if isinstance(found, int) else None
        return None

    def call(self, node: ast.Call, assigned: set[str]) -> str:
        """Return the call of a function that C has too."""
        called = self.value_of(node.func)
        function = next((each for each in _FUNCTIONS if each.called is called), None)
        if function is None:
            self.refuse(node, f"the function {ast.unparse(node.func)} is not supported")
        _, name, least, more = function
        if node.keywords or any(isinstance(argument, ast.Starred) for argument in node.args):
            self.refuse(node, f"{_quoted(node)} is not supported: it takes numbers by position only")
        if len(node.args) < least or (len(node.args) > least and not more):
            count = f"{least} or more" if more else least
            self.refuse(node, f"{_quoted(node)} is not supported: it takes {count} number{'s' if least > 1 else ''}")
        self.helpers |= {name} & _HELPERS.keys()
        first, *others = (self.number(argument, assigned) for argument in node.args)
        return reduce(lambda so_far, other: f"{name}({so_far}, {other})", others, first) if others else f"{name}({first})"

    def value_of(self, node: ast.expr) -> object:
        """Return what a name outside the body stands for: a builtin, a global, a variable of a function around it, or an
        attribute of a module."""
        match node:
            case ast.Name(id=name) if name in self.outside and name not in self.locals and name not in self.parameters:
                return self.outside[name]
            case ast.Attribute(value=ast.expr() as owner, attr=name):
                module = self.value_of(owner)
                if isinstance(module, ModuleType) and hasattr(module, name):
                    return getattr(module, name)
        self.refuse(node, f"{_quoted(node)} is not supported")

    def constant(self, node: ast.expr, value: object) -> str:
        """Return a number as a literal of C that has exactly its value."""
        if not _is_number(value):
            self.refuse(node, f"{_quoted(node)} is not a number")
        try:
            double = float(value)
        except OverflowError:  # of an integer
            double = math.nan
        if double != value:  # NaN too
            self.refuse(node, f"{_quoted(node)} is {value!r}, which a double does not have")
        if math.isinf(double):
            return "(1e308 * 10.0)" if double > 0 else "(-1e308 * 10.0)"
        return repr(double) if double >= 0 else f"({double!r})"

    def parameter(self, name: str) -> str:
        """Return a parameter of the step as a double."""
        c = self.parameters[name]
        return "(positive ? 1.0 : 0.0)" if c == "positive" else c

    def local(self, target: ast.Name) -> str:
        """Return the variable of C for a name that is assigned to."""
        if self.parameters.get(target.id) == "rule":
            self.refuse(target, f"{target.id} stands for the rule and cannot be assigned to")
        return self.locals[target.id]

    def refuse(self, node: ast.stmt | ast.expr, problem: str) -> NoReturn:
        """Raise the error that names the rule, the place and what is not supported."""
        raise UnsupportedOperation(
            f"the step of {self.rule.__name__} cannot be translated for a GPU: {problem}",
            hint=f"a step there consists of {SUPPORTED}",
            settings={"device": "cpu"},
            path=self.body.__code__.co_filename,
            line=node.lineno,
        )


def _indented(lines: list[str]) -> list[str]:
    """Return lines moved to the right."""
    return [f"    {line}" for line in lines]


def _quoted(node: ast.AST) -> str:
    """Return the first line of the source of a node, in backquotes."""
    return f"`{ast.unparse(node).splitlines()[0]}`"
