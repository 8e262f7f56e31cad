"""What the house asks of its Python files, read from their syntax trees; nothing is imported."""

from __future__ import annotations

import ast
import gc
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "difflens"

BANNED = frozenset(
    {"told", "said", "handed", "meant", "take", "kept", "found", "held", "given", "further"}
    | {"lone", "plain", "whole"}
)
# References that a reader of the repository cannot open.
UNRESOLVABLE = re.compile(
    r"\bthe (contract|seeds|papers?|issue|specification|rulings?)\b(?! tests)"
    r"|\b(methods|debugger|training|rulings?|house|spec) \d+(\.\d+)*\b"
    r"|\bissue \d+\b"
)


@dataclass(frozen=True)
class Module:
    """A Python file: its path, its dotted name, its text and its syntax tree."""

    path: Path
    name: str
    text: str
    tree: ast.Module


@cache
def modules(folder: Path = PACKAGE) -> tuple[Module, ...]:
    """Parse every Python file under a folder of the package, in the order of their paths."""
    gc.disable()  # a million nodes that stay: collecting among them takes longer than parsing
    try:
        return tuple(_module(path) for path in sorted(folder.rglob("*.py")))
    finally:
        gc.freeze()
        gc.enable()


def _module(path: Path) -> Module:
    text = path.read_text("utf-8")
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    return Module(path, name, text, ast.parse(text))


def importers(folder: Path = PACKAGE) -> Counter[str]:
    """Count, for each module under a folder, the modules of the package that import it."""
    names = {each.name for each in modules()}
    within = {each.name for each in modules(folder)}
    counts = Counter(dict.fromkeys(within, 0))
    for module in modules():
        for name in {*_imported(module, names)} - {module.name}:
            if name in within:
                counts[name] += 1
    return counts


def _imported(module: Module, names: set[str]) -> Iterator[str]:
    is_package = module.path.name == "__init__.py"
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names if each.name in names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = module.name.split(".")[: (1 if is_package else 0) - node.level or None]
                base = ".".join([*above, *filter(None, [base])])
            for each in node.names:
                inner = f"{base}.{each.name}"
                if inner in names:
                    yield inner
                elif base in names:
                    yield base


def functions(module: Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """List the functions and methods of a module, nested ones too."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def banned_names(module: Module) -> Iterator[str]:
    """List the functions of a module that have a banned name, as `path:line name`."""
    for node in functions(module):
        if node.name.strip("_") in BANNED:
            yield f"{_place(module, node.lineno)} {node.name}"


def gives(module: Module) -> Iterator[str]:
    """List the docstrings of a module that begin with "Give"."""
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    for node in ast.walk(module.tree):
        if isinstance(node, kinds) and (ast.get_docstring(node) or "").startswith("Give"):
            yield _place(module, getattr(node, "lineno", 1))


def unresolvable(module: Module) -> Iterator[str]:
    """List the references of a module that nobody can follow from the repository."""
    for number, line in enumerate(module.text.splitlines(), 1):
        match = UNRESOLVABLE.search(line)
        if match:
            yield f"{_place(module, number)} {match[0]}"


def constants(module: Module) -> int:
    """Count the numbers that a module sets at its top: private constants and thresholds."""
    count: int = 0
    for node in module.tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [leaf for each in targets for leaf in _leaves(each)]
            values = _leaves(node.value)
            if len(values) == len(names):
                count += sum(_is_number(each) for each in values)
    calls = (node for node in ast.walk(module.tree) if isinstance(node, ast.Call))
    return count + sum(ast.unparse(each.func) == "Threshold" for each in calls)


def _leaves(node: ast.expr) -> list[ast.expr]:
    return list(node.elts) if isinstance(node, ast.Tuple) else [node]


def _is_number(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp):
        return _is_number(node.operand)
    if isinstance(node, ast.BinOp):
        return _is_number(node.left) and _is_number(node.right)
    return isinstance(node, ast.Constant) and type(node.value) in {int, float}


def top_entries() -> list[str]:
    """List what stands at the top of the package, folders with a slash."""
    entries = (each for each in PACKAGE.iterdir() if each.name != "__pycache__")
    return sorted(f"{each.name}/" if each.is_dir() else each.name for each in entries)


def lines(parsed: Iterable[Module]) -> int:
    """Count the lines of modules."""
    return sum(each.text.count("\n") for each in parsed)


def _place(module: Module, line: int) -> str:
    return f"{module.path.relative_to(ROOT)}:{line}"
