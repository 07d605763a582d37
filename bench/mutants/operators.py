"""Small mistakes at places of a source: a comparison that is off by its boundary, a statement that is missing.

Each operator looks at one node of the syntax tree and says what else could stand there; only that piece of the text is
replaced. What no test should judge is left alone: docstrings, annotations, decorators, texts of errors and of warnings,
`__repr__`, `__all__`, what only type checkers read, and hints to the processor.
"""

from __future__ import annotations

import ast
import copy
import hashlib
from collections.abc import Iterator
from typing import NamedTuple

from bench.mutants.reach import MODULE, function_names

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult,
    ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip
CALLS = {
    "min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum", "argmin": "argmax", "argmax": "argmin",
    "any": "all", "all": "any", "popleft": "pop", "floor": "ceil", "ceil": "floor",
}  # fmt: skip
UNJUDGED_FUNCTIONS = {"__repr__", "__str__", "_repr_html_"}
UNJUDGED_CALLS = {"prefetch", "warn", "debug", "info", "cast", "TypeVar"}


class Mutant(NamedTuple):
    """A source with one mistake."""

    file: str  # in the package
    function: str  # its name there, as `function_names` has it
    operator: str
    line: int
    old: str  # the lines that change, without indentation
    new: str
    text: str  # the whole source

    @property
    def key(self) -> str:
        """A short name that stays while the lines around it change."""
        said = "\n".join((self.file, self.function, self.operator, self.old, self.new))
        return hashlib.sha256(said.encode()).hexdigest()[:10]


class Change(NamedTuple):
    """Another text for a node."""

    operator: str
    node: ast.expr | ast.stmt
    text: str


def changes(tree: ast.Module) -> list[Change]:
    """Return what could stand elsewhere in a source, in the order of its nodes."""
    return list(_changes(tree))


def mutant(file: str, source: str, tree: ast.Module, change: Change) -> Mutant | None:
    """Return the source with a change; None if it does not compile, or says the same.

    Parameters
    ----------
    file : str
        The name of the file in the package.
    source : str
        Its text.
    tree : Module
        Its syntax tree.
    change : Change
        One of its `changes`.

    Returns
    -------
    Mutant or None
    """
    node = change.node
    function = function_names(tree).get(node.lineno, MODULE)
    if function == MODULE and isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return None  # types, joined by |

    lines = source.encode().split(b"\n")
    first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
    before, after = lines[first][: node.col_offset], lines[last][node.end_col_offset :]
    changed = before + change.text.encode() + after
    text = b"\n".join([*lines[:first], changed, *lines[last + 1 :]]).decode()
    try:
        compile(text, file, "exec", dont_inherit=True)
    except SyntaxError:
        return None
    if ast.dump(ast.parse(text)) == ast.dump(tree):
        return None

    old = b" ".join(line.strip() for line in lines[first : last + 1]).decode()
    return Mutant(file, function, change.operator, first + 1, old, changed.strip().decode(), text)


def _changes(node: ast.AST) -> Iterator[Change]:
    """Yield the changes of a node and of all below it, but for those that no test should judge."""
    if isinstance(node, ast.expr | ast.stmt):
        yield from _changes_of(node)
    if not isinstance(node, ast.Raise):  # the rest is the text of an error
        for child in _judged_children(node):
            yield from _changes(child)


def _judged_children(node: ast.AST) -> Iterator[ast.AST]:
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_comment", "type_params"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _is_unjudged(child):
                yield child


def _is_unjudged(node: ast.AST) -> bool:
    match node:
        case ast.JoinedStr() | ast.Import() | ast.ImportFrom() | ast.Global() | ast.Assert():
            return True
        case ast.FunctionDef(name=name):
            return name in UNJUDGED_FUNCTIONS
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.Assign(targets=[ast.Name(id="__all__")]):
            return True
        case ast.Expr(value=ast.Constant()):  # a docstring, or `...`
            return True
        case ast.Expr(value=ast.Call(func=func)) | ast.Call(func=func):
            return _last_name(func) in UNJUDGED_CALLS
    return False


def _last_name(func: ast.expr) -> str:
    return func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""


def _changes_of(node: ast.expr | ast.stmt) -> Iterator[Change]:
    """Yield the changes of one node."""
    match node:
        case ast.Compare(ops=[op]):
            yield _replaced("comparison", node, ops=[COMPARISONS[type(op)]()])
        case ast.BinOp(op=op) if type(op) in ARITHMETIC and not _has_text(node):
            yield _replaced("arithmetic", node, op=ARITHMETIC[type(op)]())
        case ast.BoolOp(op=op):
            yield _replaced("and/or", node, op=ast.Or() if isinstance(op, ast.And) else ast.And())
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield Change("not dropped" if isinstance(node.op, ast.Not) else "minus dropped", node, _inside(operand))
        case ast.Constant(value=bool(value)):
            yield Change("constant", node, repr(not value))
        case ast.Constant(value=int(value)):
            yield Change("constant", node, repr(value + 1))
        case ast.Constant(value=float(value)):
            yield Change("constant", node, repr(value + 1))
        case ast.Call():
            yield from _changes_of_call(node)
        case ast.Subscript(slice=ast.Slice(lower=lower, upper=upper)):
            if lower is not None:
                yield _with_slice(node, lower=None)
            if upper is not None:
                yield _with_slice(node, upper=None)
        case ast.IfExp(test=test):
            yield Change("condition negated", test, f"not ({ast.unparse(test)})")
        case ast.If(test=test) | ast.While(test=test):
            if not (isinstance(test, ast.Constant) or (isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not))):
                yield Change("condition negated", test, f"not ({ast.unparse(test)})")
        case ast.Return(value=ast.Tuple(elts=[one, other, *rest])):
            swapped = ast.Tuple([other, one, *rest], ast.Load())
            yield Change("results swapped", node, f"return {ast.unparse(swapped)}")
        case ast.Break():
            yield Change("break/continue", node, "continue")
        case ast.Continue():
            yield Change("break/continue", node, "break")
            yield Change("statement dropped", node, "pass")
        case ast.AugAssign(target=target, value=value):
            yield Change("augmented", node, f"{ast.unparse(target)} = {ast.unparse(value)}")
            yield Change("statement dropped", node, "pass")
        case ast.Expr(value=ast.Call() | ast.Await()) | ast.Raise() | ast.Delete():
            yield Change("statement dropped", node, "pass")
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield Change("statement dropped", node, "pass")


def _changes_of_call(node: ast.Call) -> Iterator[Change]:
    name = _last_name(node.func)
    if name in CALLS:
        func = copy.copy(node.func)
        if isinstance(func, ast.Attribute):
            func.attr = CALLS[name]
        elif isinstance(func, ast.Name):
            func.id = CALLS[name]
        yield _replaced("another function", node, func=func)
    for place, keyword in enumerate(node.keywords):
        if keyword.arg is not None:
            keywords = [*node.keywords[:place], *node.keywords[place + 1 :]]
            yield _replaced("keyword dropped", node, keywords=keywords)


def _with_slice(node: ast.Subscript, **bounds: None) -> Change:
    assert isinstance(node.slice, ast.Slice)
    changed = ast.Slice(node.slice.lower, node.slice.upper, node.slice.step)
    for name, value in bounds.items():
        setattr(changed, name, value)
    return _replaced("slice", node, slice=changed)


def _replaced(operator: str, node: ast.expr, **fields: object) -> Change:
    """Return the change to a node with other fields."""
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return Change(operator, node, _inside(changed))


def _inside(node: ast.expr) -> str:
    """Return the text of an expression as a part of another."""
    text = ast.unparse(node)
    return f"({text})" if isinstance(node, ast.BinOp | ast.BoolOp | ast.Compare | ast.IfExp | ast.UnaryOp) else text


def _has_text(node: ast.expr) -> bool:
    """Return whether an expression is a text, as far as that can be seen."""
    if isinstance(node, ast.BinOp):
        return _has_text(node.left) or _has_text(node.right)
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
