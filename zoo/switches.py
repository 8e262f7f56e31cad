"""Puts a switch on every condition and detector of the diagnoses, to see what needs it.

A switch is a part of a condition, an operand that may be left out, or the answer of a function
that returns findings, harms or remedies. It notes what it saw, and may be held at true (left out
of an `and`) or at false (a detector that is off). The modules are rewritten as they are imported;
their files stay as they are.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, GeneratorType
from typing import Any

import numpy as np

_ROOMS = ("difflens.training.diagnoses.", "difflens.training.detectors.")
_FOUND = {"RunFinding", "Harm", "Fix"}  # what a detector returns
TRUE, FALSE = 1, 2  # what a switch saw, as bits


@dataclass(frozen=True)
class Switch:
    """One place that can be switched: where it is, and its text."""

    module: str
    function: str
    line: int
    text: str
    kind: str  # detector, condition or bound

    @property
    def name(self) -> str:
        """Its module and function, for a table."""
        return f"{self.module.removeprefix('difflens.training.')}.{self.function}"


class Board:
    """All switches of one process: what they saw since `clear`, and which are held."""

    def __init__(self) -> None:
        """Begin with no switch."""
        self.switches: list[Switch] = []
        self.seen: dict[int, int] = {}
        self.held: dict[int, bool] = {}

    def add(self, switch: Switch) -> int:
        """Add a switch; return its number."""
        self.switches.append(switch)
        return len(self.switches) - 1

    def clear(self) -> dict[int, int]:
        """Return what was seen, and begin anew."""
        seen, self.seen = self.seen, {}
        return seen

    def condition(self, number: int, value: Any) -> Any:
        """Pass on a value, or what it is held at."""
        if isinstance(value, GeneratorType):
            value = list(value)
        self.seen[number] = self.seen.get(number, 0) | bits(value)
        if number not in self.held:
            return value
        return forced(value) if self.held[number] else emptied(value)

    def bound(self, number: int, pick: Callable[..., Any], places: Any, *given: Any) -> Any:
        """Pass on a least or largest value; a bound that is held is left out."""
        bounded = pick(*given)
        others = [each for place, each in enumerate(given) if place not in places]
        free = others[0] if len(others) == 1 else pick(*others)
        self.seen[number] = self.seen.get(number, 0) | (TRUE if free == bounded else FALSE)
        return free if number in self.held else bounded

    def detector(self, number: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Return a decorator that empties what a function returns while it is held."""

        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            @wraps(function)
            def switched(*given: Any, **named: Any) -> Any:
                return self.condition(number, function(*given, **named))

            return switched

        return decorate


BOARD = Board()


def bits(value: Any) -> int:
    """Tell whether a value counts as true or false; an array may be both.

    >>> bits(True), bits(None), bits([0]), bits(np.array([True, False]))
    (1, 2, 1, 3)
    """
    if isinstance(value, np.ndarray) and value.ndim and value.dtype == bool:
        return (TRUE if value.any() else 0) | (FALSE if not value.all() else 0)
    if isinstance(value, np.ndarray) and value.ndim:
        return TRUE if value.size else FALSE
    return TRUE if value else FALSE


def emptied(value: Any) -> Any:
    """Return what a value of this kind is when nothing is found.

    >>> emptied([1]), emptied(True), emptied(2.0), emptied((1, 2))
    ([], False, None, ())
    """
    if isinstance(value, bool | np.bool_):
        return False
    if isinstance(value, np.ndarray):
        return np.zeros_like(value)
    if type(value) in {list, tuple, str, dict}:
        return type(value)()
    return None


def forced(value: Any) -> Any:
    """Return true for an answer of yes or no; anything else as it is."""
    if isinstance(value, bool | np.bool_):
        return True
    if isinstance(value, np.ndarray) and value.dtype == bool:
        return np.ones_like(value)
    return value


class Rewriter(ast.NodeTransformer):
    """Wraps the conditions of one module, and decorates its detectors."""

    def __init__(self, module: str, board: Board) -> None:
        """Take the name of the module, and the board its switches go to."""
        self.module, self.board = module, board
        self._inside: list[str] = []

    def _add(self, node: ast.expr | ast.FunctionDef, kind: str) -> ast.Constant:
        text = node.name if isinstance(node, ast.FunctionDef) else ast.unparse(node)
        inside = ".".join(self._inside)
        return ast.Constant(
            self.board.add(Switch(self.module, inside, node.lineno, text[:160], kind))
        )

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Decorate what finds something."""
        self._inside.append(node.name)
        if node.returns is not None and _FOUND & set(_names(node.returns)):
            on_board = ast.Attribute(ast.Name("_board_", ast.Load()), "detector", ast.Load())
            node.decorator_list.append(ast.Call(on_board, [self._add(node, "detector")], []))
        node.body = [self.visit(each) for each in node.body]
        self._inside.pop()
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        """Go through the methods."""
        self._inside.append(node.name)
        node.body = [self.visit(each) for each in node.body]
        self._inside.pop()
        return node

    def _wrap(self, node: ast.expr) -> ast.expr:
        """Wrap a condition, or each operand of one that is joined from several."""
        if isinstance(node, ast.Constant):
            return node
        if isinstance(node, ast.BoolOp):
            node.values = [self._wrap(each) for each in node.values]
            return node
        number = self._add(node, "condition")
        return _call("condition", number, self.visit(node))

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        """Wrap the operands."""
        return self._wrap(node)

    def visit_If(self, node: ast.If) -> ast.AST:
        """Wrap the condition of a statement."""
        node.test = self._wrap(node.test)
        node.body = [self.visit(each) for each in node.body]
        node.orelse = [self.visit(each) for each in node.orelse]
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        """Wrap the condition of a choice."""
        node.test = self._wrap(node.test)
        node.body, node.orelse = self.visit(node.body), self.visit(node.orelse)
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        """Wrap what filters."""
        node.iter = self.visit(node.iter)
        node.ifs = [self._wrap(each) for each in node.ifs]
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        """Wrap the masks that are joined."""
        if not isinstance(node.op, ast.BitAnd | ast.BitOr):
            return self.generic_visit(node)
        node.left, node.right = self._mask(node.left), self._mask(node.right)
        return node

    def _mask(self, node: ast.expr) -> ast.expr:
        joined = isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd | ast.BitOr)
        seen: ast.expr = self.visit(node) if joined else self._wrap(node)
        return seen

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        """Wrap what is joined to a mask later."""
        if not isinstance(node.op, ast.BitAnd | ast.BitOr):
            return self.generic_visit(node)
        node.value = self._wrap(node.value)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Let a bound that is a constant be left out of `min` and `max`."""
        pick, given = node.func, node.args
        simple = isinstance(pick, ast.Name) and pick.id in {"min", "max"} and not node.keywords
        places = [at for at, each in enumerate(given) if _is_constant(each)]
        starred = any(isinstance(each, ast.Starred) for each in given)
        if not simple or starred or not 0 < len(places) < len(given):
            return self.generic_visit(node)
        number = self._add(node, "bound")
        fixed = ast.Tuple([ast.Constant(at) for at in places], ast.Load())
        return _call("bound", number, pick, fixed, *(self.visit(each) for each in given))


def _call(method: str, *given: ast.expr) -> ast.Call:
    function = ast.Attribute(ast.Name("_board_", ast.Load()), method, ast.Load())
    return ast.Call(function, list(given), [])


def _is_constant(node: ast.expr) -> bool:
    """Is it a number, a name in capitals, or a threshold?"""
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, ast.Name) and node.value.id == "limit"
    if isinstance(node, ast.Name):
        return node.id.isupper()
    if isinstance(node, ast.UnaryOp):
        return _is_constant(node.operand)
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float)


def rewritten(source: str, module: str, board: Board) -> ast.Module:
    """Parse a module with a switch at each of its conditions and detectors."""
    tree = ast.parse(source)
    rewriter = Rewriter(module, board)
    tree.body = [
        rewriter.visit(each) if isinstance(each, ast.FunctionDef | ast.ClassDef) else each
        for each in tree.body
    ]
    future = [at for at, each in enumerate(tree.body) if _is_future(each)]
    taken = ast.parse("from zoo.switches import BOARD as _board_").body
    at = future[-1] + 1 if future else 0
    tree.body[at:at] = taken
    return ast.fix_missing_locations(tree)


def _names(node: ast.expr) -> list[str]:
    return [each.id for each in ast.walk(node) if isinstance(each, ast.Name)]


def _is_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


class _Loader(SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType:
        source = self.get_data(self.path).decode()
        return compile(rewritten(source, fullname, BOARD), self.path, "exec")


class _Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, _target: Any = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(fullname, path) if fullname.startswith(_ROOMS) else None
        if spec is None or not isinstance(spec.loader, SourceFileLoader):
            return None
        spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


def install() -> Board:
    """Let the diagnoses be imported with switches; none may have been imported before."""
    if any(name.startswith(_ROOMS) for name in sys.modules):
        raise RuntimeError("the diagnoses were imported before their switches")
    sys.meta_path.insert(0, _Finder())
    from difflens.training.diagnoses import diagnosis

    for _each in diagnosis:  # imports every one
        pass
    return BOARD
