"""Small changes to a file's code, each of which a test should notice.

A mutant replaces one node of the syntax tree: a comparison by its neighbour (`<` by
`<=`), `+` by `-`, `min` by `max`, a number by the next one, a condition by its
opposite, two arguments by one another, a returned value by a constant; or it leaves out
a statement. Docstrings, annotations, default values, decorators and the text of error
messages stay as they are.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

SWAPPED_OPERATORS: dict[type[ast.AST], Any] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult, ast.Div: ast.Mult, ast.Mod: ast.FloorDiv,
    ast.LShift: ast.RShift, ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
    ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip

SWAPPED_NAMES = {
    "min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum",
    "argmin": "argmax", "argmax": "argmin", "any": "all", "all": "any",
    "floor": "ceil", "ceil": "floor",
}  # fmt: skip

SYMMETRIC = {
    "min", "max", "minimum", "maximum", "logical_and", "logical_or", "isinstance",
    "getattr", "hasattr", "zip",
}  # fmt: skip
"""Calls whose first two arguments are not swapped: no change, or nonsense."""

GUARDS = {"strict", "stacklevel"}
"""Keyword arguments that change nothing if the rest is right."""

CONSTANTS_OF_TYPE: dict[str, tuple[Any, ...]] = {
    "bool": (True, False), "int": (0,), "float": (0.0,), "str": ("",),
}  # fmt: skip
"""Value returned instead, by the declared type; `None` for other types."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One small change.

    Attributes
    ----------
    function : str
        Qualified name of the outermost function that it changes, or of the constant.
    line, end_line : int
        Lines of the code that is changed; a test that runs none of them cannot notice.
    kind : str
    before, after : str
        The changed code; `after` is empty if a statement is left out.
    site : int
        Its number within the file, by which it can be made again.
    """

    function: str
    line: int
    end_line: int
    kind: str
    before: str
    after: str
    site: int


@dataclass(slots=True)
class _Site:
    parent: ast.AST
    field: str
    index: int | None
    new: ast.AST
    function: str
    kind: str

    @property
    def old(self) -> ast.AST:
        child = getattr(self.parent, self.field)
        old: ast.AST = child if self.index is None else child[self.index]
        return old

    def put(self, node: ast.AST) -> None:
        if self.index is None:
            setattr(self.parent, self.field, node)
        else:
            getattr(self.parent, self.field)[self.index] = node


def mutants(source: str) -> list[Mutant]:
    """List every small change to a file."""
    found = []
    for number, site in enumerate(_sites(ast.parse(source))):
        old = site.old
        assert isinstance(old, ast.stmt | ast.expr)
        after = "" if isinstance(site.new, ast.Pass) else ast.unparse(site.new)
        span = (site.function, old.lineno, old.end_lineno or old.lineno)
        found.append(Mutant(*span, site.kind, ast.unparse(old), after, number))
    return found


def changed_tree(source: str, mutant: Mutant) -> ast.Module:
    """Return the syntax tree of the file with the change."""
    tree = ast.parse(source)
    for number, site in enumerate(_sites(tree)):
        if number == mutant.site:
            site.put(ast.copy_location(site.new, site.old))
            return ast.fix_missing_locations(tree)
    raise ValueError(f"{mutant} is not of this file.")


def _sites(tree: ast.Module) -> list[_Site]:
    """List the possible changes in a fixed order."""
    return [site for node in tree.body for site in _of_definition(node, "")]


def _of_definition(node: ast.stmt, inside: str) -> Iterator[_Site]:
    """Functions, methods, and constants of the file that are written in capitals."""
    if isinstance(node, ast.ClassDef):
        for child in node.body:
            yield from _of_definition(child, f"{inside}{node.name}.")
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        yield from _of_body(node, f"{inside}{node.name}", _returned(node))
    elif isinstance(node, ast.Assign) and not inside:
        (target,) = node.targets[:1]
        if isinstance(target, ast.Name) and target.id.isupper():
            yield from _of_expression(node, "value", None, target.id)


def _returned(node: ast.FunctionDef | ast.AsyncFunctionDef) -> tuple[Any, ...]:
    declared = "" if node.returns is None else ast.unparse(node.returns)
    return CONSTANTS_OF_TYPE.get(declared, (None,))


def _of_body(
    node: ast.AST, function: str, returned: tuple[Any, ...]
) -> Iterator[_Site]:
    """Go through the statements of a function or of a block within it."""
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        for index, child in enumerate(getattr(node, field, [])):
            if isinstance(child, ast.ExceptHandler | ast.match_case):
                yield from _of_body(child, function, returned)
            else:
                yield from _of_statement(node, field, index, function, returned)


def _of_statement(
    parent: ast.AST, field: str, index: int, function: str, returned: tuple[Any, ...]
) -> Iterator[_Site]:
    node = getattr(parent, field)[index]
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        yield from _of_body(node, function, _returned(node))
        return
    if isinstance(node, ast.Import | ast.ImportFrom | ast.Assert) or _is_text(node):
        return
    if _can_be_left_out(node):
        yield _Site(parent, field, index, ast.Pass(), function, "statement left out")
    if isinstance(node, ast.Raise):
        return
    if isinstance(node, ast.Return) and node.value is not None:
        for constant in returned:
            other = ast.Constant(constant)
            if ast.unparse(other) != ast.unparse(node.value):
                yield _Site(node, "value", None, other, function, "returned constant")
    if isinstance(node, ast.If | ast.While) and not _is_turned_by_operator(node.test):
        yield _negated(node, "test", None, function)
    if isinstance(node, ast.AugAssign) and type(node.op) in SWAPPED_OPERATORS:
        new = ast.AugAssign(node.target, SWAPPED_OPERATORS[type(node.op)](), node.value)
        yield _Site(parent, field, index, new, function, "operator")
    for name, value in ast.iter_fields(node):
        if name in ("body", "orelse", "finalbody", "handlers", "cases", "annotation"):
            continue
        for position, child in enumerate(value if isinstance(value, list) else [value]):
            if isinstance(child, ast.withitem):
                yield from _of_expression(child, "context_expr", None, function)
            elif isinstance(child, ast.expr):
                where = position if isinstance(value, list) else None
                yield from _of_expression(node, name, where, function)
    yield from _of_body(node, function, returned)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and _is_constant(node.value)


def _is_constant(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant)


def _is_turned_by_operator(node: ast.expr) -> bool:
    """Whether another change is its opposite already: `==` to `!=`, `not x` to `x`."""
    turned = (ast.Eq, ast.NotEq, ast.Is, ast.IsNot, ast.In, ast.NotIn)
    if isinstance(node, ast.Compare):
        return len(node.ops) == 1 and isinstance(node.ops[0], turned)
    is_not = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
    return is_not or _is_constant(node)


def _can_be_left_out(node: ast.stmt) -> bool:
    if isinstance(node, ast.Assign):
        return not all(
            isinstance(target, ast.Name | ast.Tuple) for target in node.targets
        )
    kinds = (ast.Expr, ast.AugAssign, ast.Raise, ast.Delete, ast.Continue, ast.Break)
    return isinstance(node, kinds)


def _negated(parent: ast.AST, field: str, index: int | None, function: str) -> _Site:
    child = getattr(parent, field)
    old = child if index is None else child[index]
    new = ast.UnaryOp(ast.Not(), old)
    return _Site(parent, field, index, new, function, "negated condition")


def _of_expression(
    parent: ast.AST, field: str, index: int | None, function: str
) -> Iterator[_Site]:
    child = getattr(parent, field)
    node = child if index is None else child[index]
    if isinstance(node, ast.JoinedStr):
        return
    for kind, new in _changes(node):
        yield _Site(parent, field, index, new, function, kind)
    if isinstance(node, ast.IfExp) and not _is_turned_by_operator(node.test):
        yield _negated(node, "test", None, function)
    for part in ast.iter_child_nodes(node):
        if isinstance(part, ast.comprehension):
            for k in range(len(part.ifs)):
                if not _is_turned_by_operator(part.ifs[k]):
                    yield _negated(part, "ifs", k, function)
                yield from _of_expression(part, "ifs", k, function)
            yield from _of_expression(part, "iter", None, function)
        elif isinstance(part, ast.keyword) and part.arg not in GUARDS:
            yield from _of_expression(part, "value", None, function)
    for name, value in ast.iter_fields(node):
        for position, part in enumerate(value if isinstance(value, list) else [value]):
            if isinstance(part, ast.expr):
                where = position if isinstance(value, list) else None
                yield from _of_expression(node, name, where, function)


def _changes(node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """Return the replacements of a single node."""
    if isinstance(node, ast.Compare):
        for k, operator in enumerate(node.ops):
            if type(operator) in SWAPPED_OPERATORS:
                ops = list(node.ops)
                ops[k] = SWAPPED_OPERATORS[type(operator)]()
                yield "comparison", ast.Compare(node.left, ops, node.comparators)
    elif isinstance(node, ast.BinOp) and type(node.op) in SWAPPED_OPERATORS:
        new = SWAPPED_OPERATORS[type(node.op)]()
        yield "operator", ast.BinOp(node.left, new, node.right)
    elif isinstance(node, ast.BoolOp):
        new = SWAPPED_OPERATORS[type(node.op)]()
        yield "operator", ast.BoolOp(new, node.values)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not):
        yield "sign or not left out", node.operand
    elif isinstance(node, ast.Constant):
        yield from _next_constants(node.value)
    elif isinstance(node, ast.Call):
        yield from _changed_calls(node)


def _next_constants(value: object) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(value, bool):
        yield "constant", ast.Constant(not value)
    elif isinstance(value, int):
        yield "constant", ast.Constant(value + 1)
        if value > 0:
            yield "constant", ast.Constant(value - 1)
    elif isinstance(value, float):
        yield "constant", ast.Constant(2 * value if value else 1.0)


def _changed_calls(node: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    called = node.func
    name = called.attr if isinstance(called, ast.Attribute) else None
    if isinstance(called, ast.Name):
        name = called.id
    if name in SWAPPED_NAMES:
        new: ast.expr
        if isinstance(called, ast.Attribute):
            new = ast.Attribute(called.value, SWAPPED_NAMES[name], called.ctx)
        else:
            new = ast.Name(SWAPPED_NAMES[name], ast.Load())
        yield "function", ast.Call(new, node.args, node.keywords)
    first = node.args[:2]
    if len(first) == 2 and name not in SYMMETRIC and _plain(first):
        swapped = [first[1], first[0], *node.args[2:]]
        yield "swapped arguments", ast.Call(called, swapped, node.keywords)


def _plain(arguments: list[ast.expr]) -> bool:
    return not any(isinstance(one, ast.Starred) for one in arguments) and (
        ast.unparse(arguments[0]) != ast.unparse(arguments[1])
    )
