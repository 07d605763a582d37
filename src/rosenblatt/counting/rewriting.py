"""A function becomes its counted version: the syntax tree of its source, with the operands of every operation sent through
a meter, compiled in place of its code. Globals, defaults and the cells of its closure stay the function's own, so that it
returns, raises and changes what it did.

What counts as what (one each time it is executed):

    arithmetic   + − * / // % ** @ << >> & | ^ ~ and the sign of what is not a number written out
    comparison   each of < <= > >= == != is, in; a chain a < b < c has two, and stops at the first that fails
    logical      each `and`, `or` that looks at its left side, each `not`
    indexing     A[i], read or written (A[i] += 1 is both), and an attribute of anything but a module
    assignment   each name, element or attribute bound: by =, +=, :=, for, with, import, def, class, del
    calls        each call, the look-up of a method included; each value put into an f-string
    control      each test of if, while, elif, `a if b else c`; each question of a `for` for its next item, the last, that
                 finds none, included; return, break, continue, raise, assert, yield, with, match, an exception caught
    steps        each statement reached, and each test of a loop: what a C programmer counts beside the lines

Displays such as [a, b], docstrings, pass, global, try and annotations count as nothing.
"""

from __future__ import annotations
import __future__

import ast
import linecache
from collections.abc import Iterator
from types import CellType, CodeType, FunctionType
from typing import Any, NamedTuple, cast

from rosenblatt.counting.meter import Meter, Site
from rosenblatt.errors import UnsupportedOperation

METER = "__meter__"
Located = ast.stmt | ast.expr | ast.excepthandler
FUTURE = sum(getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)


class Uncountable(UnsupportedOperation):
    """The function cannot be counted: it is not one of Python, or has no source that can be rewritten."""


class Version(NamedTuple):
    """The counted version of a function's code, and where its counts are."""

    code: CodeType
    nested: frozenset[CodeType]  # of the functions inside it, which are counted already
    first: int  # the number of its first line
    lines: list[str]
    sites: range


def rewrite(function: FunctionType, meter: Meter) -> Version:
    """The code of a function, telling the meter what it executes."""
    code = function.__code__
    definition = find_definition(function)
    refuse_async(definition)
    first, last, before = definition.lineno, definition.end_lineno, len(meter.sites)
    # A class around it: names with two leading underscores are then mangled as they were, for which underscores before the
    # name of the class do not matter, and nobody else has that many. And since a class hides its names from its methods,
    # the function finds its own name where it did before.
    *path, _ = function.__qualname__.split(".")
    owner = "_" * 20 + (path[-1] if path and path[-1] != "<locals>" else "")
    rewritten = Rewriter(meter, function.__name__).definition(definition)
    outside: Any = ast.parse(f"def outside({', '.join([*code.co_freevars, METER])}):\n class {owner}: pass")
    outside.body[0].body[0].body = [rewritten]
    compiled = compile(ast.fix_missing_locations(outside), code.co_filename, "exec", code.co_flags & FUTURE, True)
    for name in ("outside", owner, code.co_name):
        compiled = next(part for part in inside(compiled) if part.co_name == name)
    compiled = rename(compiled, compiled.co_qualname, function.__qualname__)
    lines = linecache.getlines(code.co_filename, function.__globals__)[first - 1 : last]
    return Version(compiled, frozenset(inside(compiled, deep=True)), first, lines, range(before, len(meter.sites)))


def bind(version: Version, function: FunctionType, meter: Meter) -> FunctionType:
    """A function with the counted code and everything else of the one given."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    cells[METER] = CellType(meter)
    # A function outside of any class that says `super` has no cell for __class__, and its counted version asks for one.
    closure = tuple(cells.get(name, CellType()) for name in version.code.co_freevars)
    made = FunctionType(version.code, function.__globals__, function.__name__, function.__defaults__, closure)
    made.__kwdefaults__, made.__qualname__ = function.__kwdefaults__, function.__qualname__
    return made


def rename(code: CodeType, before: str, after: str) -> CodeType:
    """The code with what it defines named as it was: functions by their code, classes by a constant."""

    def name(text: str) -> str:
        return after + text[len(before) :] if text == before or text.startswith(f"{before}.<locals>.") else text

    consts = tuple(
        rename(part, before, after) if isinstance(part, CodeType) else name(part) if isinstance(part, str) else part
        for part in code.co_consts
    )
    return code.replace(co_consts=consts, co_qualname=name(code.co_qualname))


def inside(code: CodeType, deep: bool = False) -> Iterator[CodeType]:
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield part
            if deep:
                yield from inside(part, deep)


def find_definition(function: FunctionType) -> ast.FunctionDef | ast.AsyncFunctionDef:
    """The `def` of a function as a tree whose line numbers are those of its file.

    Not `inspect.getsource`: that reads Python files, and this finds a function in a page of documentation as well.
    """
    code, name = function.__code__, function.__qualname__
    if code.co_name == "<lambda>":
        raise Uncountable(
            f"{name} is a lambda, whose source cannot be separated from the code around it", hint="give it a name with def"
        )
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename, function.__globals__)
    if not lines:
        raise Uncountable(
            f"{name} has no source: Python read it from {code.co_filename!r} and did not keep it",
            hint="define it in a file or a notebook, or pass the source itself: count_operations('def f(n): ...', n)",
        )
    for source in beginnings(lines[code.co_firstlineno - 1 :]):
        try:
            tree: Any = ast.parse(source).body[0]
        except SyntaxError:
            continue
        found = tree.body[0] if isinstance(tree, ast.If) else tree
        if isinstance(found, ast.FunctionDef | ast.AsyncFunctionDef) and same(found, code):
            ast.increment_lineno(found, code.co_firstlineno - 1 - (found is not tree))
            return found
        break
    raise Uncountable(
        f"line {code.co_firstlineno} of {code.co_filename!r} does not define {name} any more: the file has changed since",
        hint="load it again",
    )


def beginnings(lines: list[str]) -> Iterator[str]:
    """What stands before each later line that is indented no deeper than the first: the definition is the first of these
    that is whole. A definition that is indented stands under an `if`, rather than being moved: strings keep their lines."""
    if not lines or not lines[0].lstrip().startswith(("def", "async", "@")):
        return
    depth = len(lines[0]) - len(lines[0].lstrip())
    head = "if 1:\n" if depth else ""
    for k, line in enumerate(lines):
        words = line.lstrip()
        if k and words and not words.startswith("#") and len(line) - len(words) <= depth:
            yield head + "".join(lines[:k])
    yield head + "".join(lines)


def same(definition: ast.FunctionDef | ast.AsyncFunctionDef, code: CodeType) -> bool:
    """Whether a definition has the name and the parameters of a code object."""
    parts = definition.args
    names = [part.arg for part in (*parts.posonlyargs, *parts.args, *parts.kwonlyargs)]
    given = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    private = [name for name in names if name.startswith("__")]
    return definition.name == code.co_name and (len(names) == len(given) if private else names == list(given))


def refuse_async(definition: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    for node in ast.walk(definition):
        if isinstance(node, ast.AsyncFunctionDef | ast.AsyncFor | ast.AsyncWith | ast.Await) or getattr(
            node, "is_async", False
        ):
            line = getattr(node, "lineno", definition.lineno)
            raise Uncountable(
                f"line {line} is asynchronous: what it executes depends on when it is resumed",
                hint="count the synchronous functions that it calls",
            )


class Rewriter(ast.NodeTransformer):
    """Sends what is counted through the meter. A method of the meter takes the number of the site and hands on its last
    argument."""

    def __init__(self, meter: Meter, function: str) -> None:
        self.meter, self.function = meter, function

    def definition(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.stmt:
        """The function itself: its defaults and decorators were evaluated long ago."""
        node.decorator_list, node.returns = [], None
        if hasattr(node, "type_params"):
            node.type_params = []
        node.args.defaults = [ast.Constant(None) for _ in node.args.defaults]
        node.args.kw_defaults = [default and ast.Constant(None) for default in node.args.kw_defaults]
        for part in ast.walk(node.args):
            if isinstance(part, ast.arg):
                part.annotation = None
        node.body = self.block(node.body)
        return node

    # Sites

    def site(self, node: Located, *kinds: str) -> ast.expr:
        text = " ".join(ast.unparse(node).split()) if isinstance(node, ast.expr | ast.Assign | ast.AugAssign) else ""
        text = text if len(text) <= 40 else text[:39] + "…"
        return ast.Constant(self.meter.site(Site(self.function, node.lineno, kinds, text)))

    def through(self, method: str, *values: ast.expr) -> ast.Call:
        return ast.copy_location(
            ast.Call(ast.Attribute(ast.Name(METER, ast.Load()), method, ast.Load()), list(values), []), values[-1]
        )

    def wrap(self, node: ast.AST, part: str, method: str, at: Located, *kinds: str) -> ast.AST:
        """The node with one part of it sent through the meter, once all parts have been looked into."""
        site = self.site(at, *kinds)
        self.generic_visit(node)
        setattr(node, part, self.through(method, site, getattr(node, part) or ast.Constant(None)))
        return node

    # Statements

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """A body, each of its statements preceded by a step."""
        steps: list[ast.stmt] = []
        for node in body:
            kinds = statement_kinds(node)
            if kinds is not None:
                steps.append(ast.copy_location(ast.Expr(self.through("hit", self.site(node, "steps", *kinds))), node))
            steps.append(self.visit(node))
            if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                added = cast(ast.Call, node.value).args[0]  # what the visit wrapped
                made = self.through("weigh_sum", added, ast.Name(node.target.id, ast.Load()))
                steps.append(ast.copy_location(ast.Expr(made), node))
        return steps

    def generic_visit(self, node: ast.AST) -> ast.AST:
        for name, part in ast.iter_fields(node):
            if isinstance(part, list):
                statements = bool(part) and isinstance(part[0], ast.stmt)
                setattr(node, name, self.block(part) if statements else [self.visit_part(item) for item in part])
            else:
                setattr(node, name, self.visit_part(part))
        return node

    def visit_part(self, part: object) -> Any:
        return self.visit(part) if isinstance(part, ast.AST) else part

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.args = self.visit(node.args)
        node.body = self.block(node.body)
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.body = self.block(node.body)
        return node

    def visit_arguments(self, node: ast.arguments) -> ast.AST:
        node.defaults = [self.visit(default) for default in node.defaults]
        node.kw_defaults = [self.visit_part(default) for default in node.kw_defaults]
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        rest = any(isinstance(part, ast.Starred) for target in node.targets for part in ast.walk(target))
        kinds = ["assignment"] * sum(leaves(target) for target in node.targets)
        return self.wrap(node, "value", "result" if rest else "hit", node, *kinds)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is not None:
            site = self.site(node, "assignment")
            node.target, node.value = self.visit(node.target), self.through("hit", site, self.visit(node.value))
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        site = self.site(node, "arithmetic", "assignment")
        if isinstance(node.target, ast.Subscript | ast.Attribute):
            node.target = self.access(node.target, "indexing", "indexing")
        node.value = self.through("result", site, self.visit(node.value))
        return node

    def visit_If(self, node: ast.If | ast.While | ast.IfExp) -> ast.AST:
        if isinstance(node, ast.IfExp):
            return self.wrap(node, "test", "hit", node.test, "control")
        return self.wrap(node, "test", "hit", node, "control", "steps")

    visit_While = visit_IfExp = visit_If  # noqa: N815  ast's own names

    def visit_For(self, node: ast.For) -> ast.AST:
        sites = self.site(node, "control", "steps"), self.site(node, *["assignment"] * leaves(node.target))
        self.generic_visit(node)
        node.iter = self.through("loop", *sites, node.iter)
        return node

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:
        site = self.site(node, "control", "steps", *["assignment"] * (node.name is not None))
        self.generic_visit(node)
        node.body.insert(0, ast.copy_location(ast.Expr(self.through("hit", site)), node))
        return node

    def visit_match_case(self, node: ast.match_case) -> ast.AST:
        if node.guard is not None:
            node.guard = self.through("hit", self.site(node.guard, "control"), self.visit(node.guard))
        node.body = self.block(node.body)
        return node

    # Expressions: the site is made first, while the text is still the user's own

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        site = self.site(node, "arithmetic")
        self.generic_visit(node)
        if isinstance(node.op, ast.MatMult):  # its result may be one number
            law = ast.Constant("n for vectors, mnp for matrices")
            node.left = ast.copy_location(self.through("product", site, law, node.left), node.left)
            node.right = ast.copy_location(self.through("product", site, law, node.right), node.right)
            return self.through("hit", site, node)
        return self.through("result", site, node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        if isinstance(node.operand, ast.Constant) and not isinstance(node.op, ast.Not):
            return node
        if isinstance(node.op, ast.Not):
            return self.wrap(node, "operand", "hit", node, "logical")
        site = self.site(node, "arithmetic")
        return self.through("result", site, cast(ast.expr, self.generic_visit(node)))

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        site = self.site(node, "logical")
        self.generic_visit(node)
        node.values[:-1] = [self.through("hit", site, value) for value in node.values[:-1]]
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        """Each comparison is executed as soon as its right side is there, so the right side counts it."""
        site = self.site(node, "comparison")
        sides = [node.left, *node.comparators]
        methods = ["" for _ in sides]
        for k, op in enumerate(node.ops):
            if isinstance(op, ast.In | ast.NotIn):
                methods[k + 1] = "weigh_container"
            elif not isinstance(op, ast.Is | ast.IsNot):
                literal = any(isinstance(side, ast.Constant) for side in sides[k : k + 2])
                methods[k] = methods[k] or ("weigh_array" if literal else "weigh")
                methods[k + 1] = "weigh_array" if literal else "weigh"
        sides = [self.visit(side) for side in sides]
        sides = [self.through(method, site, side) if method else side for method, side in zip(methods, sides, strict=True)]
        node.left, node.comparators = sides[0], [self.through("hit", site, side) for side in sides[1:]]
        return node

    def visit_Subscript(self, node: ast.Subscript | ast.Attribute) -> ast.AST:
        return self.access(node, "indexing")

    visit_Attribute = visit_Subscript  # noqa: N815  ast's own name

    def access(self, node: ast.Subscript | ast.Attribute, *kinds: str) -> Any:
        site = self.site(node, *kinds)
        node.value = self.visit(node.value)
        if isinstance(node, ast.Attribute):
            node.value = self.through("reach", site, node.value)
            return node
        sliced = any(isinstance(part, ast.Slice) for part in getattr(node.slice, "elts", [node.slice]))
        node.slice = self.through("index", site, self.visit(node.slice))
        if isinstance(node.ctx, ast.Load):
            return self.through("weigh_copy", site, node) if sliced else node
        if isinstance(node.ctx, ast.Del) or sliced:
            node.value = self.through("weigh_list", site, node.value)
        return node

    def visit_Slice(self, node: ast.Slice) -> ast.AST:
        parts = [part or ast.Constant(None) for part in (node.lower, node.upper, node.step)]
        return ast.copy_location(self.through("slice", *[self.visit(part) for part in parts]), node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        sites = self.site(node, "calls"), self.site(node, "maths")
        lists_names = isinstance(node.func, ast.Name) and node.func.id in ("locals", "vars", "dir")
        if isinstance(node.func, ast.Attribute):  # looking the method up is part of calling it
            node.func.value = self.visit(node.func.value)
        else:
            node.func = self.visit(node.func)
        node.func = self.through("call", *sites, node.func)
        node.args = [self.visit(argument) for argument in node.args]
        node.keywords = [self.visit(argument) for argument in node.keywords]
        return self.through("hide", ast.Constant(METER), node) if lists_names else node

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.AST:
        return self.wrap(node, "value", "result", node.value, "calls")

    def visit_Starred(self, node: ast.Starred) -> ast.AST:
        return self.wrap(node, "value", "weigh", node) if isinstance(node.ctx, ast.Load) else self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        sites = self.site(node.iter, "control"), self.site(node.target, *["assignment"] * leaves(node.target))
        tests = [self.site(test, "control") for test in node.ifs]
        self.generic_visit(node)
        node.iter = self.through("loop", *sites, node.iter)
        node.ifs = [self.through("hit", site, test) for site, test in zip(tests, node.ifs, strict=True)]
        return node

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.AST:
        return self.wrap(node, "value", "hit", node.target, "assignment")

    def visit_Yield(self, node: ast.Yield | ast.YieldFrom) -> ast.AST:
        return self.wrap(node, "value", "hit", node, "control")

    visit_YieldFrom = visit_Yield  # noqa: N815  ast's own name


def leaves(target: ast.expr) -> int:
    """How many names, elements and attributes an assignment to the target binds."""
    if isinstance(target, ast.Tuple | ast.List):
        return sum(leaves(part) for part in target.elts)
    return leaves(target.value) if isinstance(target, ast.Starred) else 1


def statement_kinds(node: ast.stmt) -> tuple[str, ...] | None:
    """What reaching a statement counts beside a step. None where it is no step, or one for each test of its own."""
    match node:
        case ast.Expr(value=ast.Constant()) | ast.AnnAssign(value=None):
            return None
        case ast.With(items=items):
            return ("control", *["assignment"] * sum(leaves(item.optional_vars) for item in items if item.optional_vars))
        case ast.Return() | ast.Break() | ast.Continue() | ast.Raise() | ast.Assert() | ast.Match():
            return ("control",)
        case ast.Delete(targets=bound) | ast.Import(names=bound) | ast.ImportFrom(names=bound):
            return ("assignment",) * len(bound)
        case ast.FunctionDef() | ast.ClassDef():
            return ("assignment",)
        case ast.Expr() | ast.Assign() | ast.AugAssign() | ast.AnnAssign():
            return ()
    return None
