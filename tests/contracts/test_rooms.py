"""Who may import whom: the table of the house, held by a program."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "difflens"
GROUND = {
    "errors", "escape", "dtypes", "records", "evidences", "answers", "diffs", "protocols",
    "registry", "crc32c", "whole", "kept", "snapshots", "comparisons", "ab_results",
    "regression_results", "runs", "weight_results", "gradient_results", "network_results",
    "flow_results", "terminal",
}  # fmt: skip

# What each room may import of ours, beside itself.
ROOMS: dict[str, set[str]] = {
    "errors": set(),
    "escape": set(),
    "terminal": set(),
    "dtypes": {"errors"},
    "records": {"errors", "dtypes"},
    "evidences": {"records"},
    "answers": {"records"},
    "diffs": {"records"},
    "kept": {"errors", "records"},
    "snapshots": {"errors", "records", "evidences", "kept"},
    "comparisons": {"errors", "records", "kept"},
    "ab_results": {"errors", "records", "kept", "comparisons"},
    "regression_results": {"records", "kept", "comparisons", "ab_results", "snapshots"},
    "runs": {"records", "kept"},
    "weight_results": {"errors", "records", "kept"},
    "network_results": {"errors", "records", "kept"},
    "gradient_results": {"errors", "records", "kept", "network_results"},
    "flow_results": {"errors", "records", "kept"},
    "protocols": {"records", "evidences", "diffs", "kept", "snapshots"},
    "registry": {"errors"},
    "crc32c": set(),
    "whole": {"errors"},
    "sources": GROUND,
    "pairing": GROUND,
    "kernel": {"errors"},
    "stats": {"errors"},
    "evidence": GROUND | {"sources", "measure", "history"},
    "gathering": GROUND | {"evidence", "measure", "pipeline", "sources"},
    "measure": GROUND | {"kernel"},
    "analyses": GROUND | {"measure", "stats"},
    "judge": GROUND | {"stats"},
    "store": GROUND,
    "versions": GROUND | {"stats", "analyses", "measure", "sources", "pipeline", "inspection"},
    "debugger": GROUND | {"store", "versions"},
    "history": GROUND,
    "diagnoses": GROUND | {"history", "stats"},
    "gradients": GROUND | {"history", "stats"},
    "flow": GROUND | {"history", "stats"},
    "weights": GROUND | {"measure", "stats", "inspection", "sources"},
    "hooks": GROUND | {"kernel", "measure"},
    "sinks": GROUND | {"history"},
    "watching": GROUND | {"history", "hooks", "diagnoses", "sinks"},
    "callbacks": GROUND | {"hooks", "training", "watching"},
    "training": GROUND | {"hooks", "history", "diagnoses", "watching", "sinks"},
    "render": GROUND,
    "pipeline": GROUND | {"sources", "pairing", "measure", "analyses", "judge"},
    "inspection": GROUND | {"sources", "pairing", "measure"},
    "library": GROUND
    | {
        "pipeline",
        "gathering",
        "evidence",
        "analyses",
        "diagnoses",
        "render",
        "sources",
        "versions",
    },
    "cli": GROUND
    | {
        "pipeline",
        "inspection",
        "gathering",
        "evidence",
        "analyses",
        "judge",
        "render",
        "sources",
        "kernel",
        "store",
        "versions",
        "debugger",
        "history",
        "diagnoses",
        "gradients",
        "flow",
        "weights",
        "watching",
        "sinks",
    },
    "testing": GROUND
    | {"pipeline", "analyses", "measure", "render", "sources", "history", "diagnoses"},
}

# Outside libraries a room may import, and those it may import only inside functions.
STANDARD = {
    "click": {"cli"},
    "msgspec": {
        "records",
        "kept",
        "snapshots",
        "comparisons",
        "ab_results",
        "regression_results",
        "pairing",
        "measure",
        "evidence",
        "render",
        "cli",
        "store",
        "versions",
        "debugger",
        "runs",
        "weight_results",
        "gradient_results",
        "network_results",
        "flow_results",
        "history",
        "diagnoses",
        "gradients",
        "flow",
        "weights",
        "watching",
        "training",
    },
}
# Rooms that are arrays through and through, and are themselves imported late.
# The NumPy twins of the kernel.
TWINS = {"reference.py", "readings.py"}
ARRAYS = {"history", "diagnoses", "gradients", "flow", "weights"}
LATE = {
    "numpy": ARRAYS
    | {"sources", "measure", "stats", "evidence", "analyses", "cli", "testing", "versions"}
    | {"hooks", "watching", "sinks", "callbacks", "crc32c"},
    "ml_dtypes": {"cli", "sources"},
    "rich": {"cli", "render", "library", "terminal"},
    "jinja2": {"render"},
    "yaml": {"render", "cli"},
    "scipy": {"analyses", "measure", "stats"} | ARRAYS,
    "pyarrow": {"history"},
    # The frameworks that are watched: each in its own hook, when that is called.
    "torch": {"hooks", "callbacks"},
    "triton": {"hooks"},
    "transformers": {"callbacks"},
    "lightning": {"callbacks"},
    "accelerate": {"callbacks"},
    "keras": {"hooks", "callbacks"},
    "jax": {"hooks", "callbacks"},
    "optax": {"callbacks"},
    "mlflow": {"sinks"},
    "wandb": {"sinks"},
    "plotly": {"render"},
    "sqlalchemy": {"store"},
    "alembic": {"store"},
    "psycopg": {"store"},
}
NEVER = {"pickle", "marshal", "shelve", "mmap"}


# The libraries of formats: no reader imports its own, but for the two that decode for us.
FRAMEWORKS = {"onnx", "tensorflow", "safetensors", "flax", "msgpack", "zipfile"}
ONLY_IN = {"h5py": "hdf5_child", "gguf": "gguf_blocks.py"}


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports(path: Path) -> Iterator[tuple[int, str, bool]]:
    """Yield line, module and whether the import stands at the top of its file."""
    tree = ast.parse(path.read_text())
    top = {id(node) for node in tree.body}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name, id(node) in top) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, resolved(path, node), id(node) in top


def resolved(path: Path, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    here = ("difflens", *path.relative_to(SOURCE).with_suffix("").parts)
    parents = here[: len(here) - node.level] or ("difflens",)
    name = node.module or node.names[0].name
    return ".".join([*parents, name])


def breaches(path: Path) -> Iterator[str]:
    room = room_of(path)
    for line, module, at_top in imports(path):
        first, *rest = module.split(".")
        where = f"{path.name}:{line}"
        if first == "difflens":
            other = rest[0] if rest else ""
            if other and other != room and other not in ROOMS[room] | {"__version__"}:
                yield f"{where}: {room} may not import {other}"
        elif first in FRAMEWORKS | set(ONLY_IN):
            yield from framework_breaches(path, first, where)
        elif first in NEVER:
            yield f"{where}: nobody may import {first}"
        elif first in LATE and path.name not in TWINS:
            if room not in LATE[first]:
                yield f"{where}: {room} may not import {first}"
            elif at_top and not (first == "numpy" and room in ARRAYS):
                yield f"{where}: {first} may be imported inside a function only"
        elif first in STANDARD and room not in STANDARD[first]:
            yield f"{where}: {room} may not import {first}"


def framework_breaches(path: Path, library: str, where: str) -> Iterator[str]:
    if library in FRAMEWORKS and room_of(path) == "sources":
        yield f"{where}: a reader may not import {library}"
    elif library in ONLY_IN and ONLY_IN[library] not in path.parts:
        yield f"{where}: only {ONLY_IN[library]} may import {library}"


FILES = sorted(path for path in SOURCE.rglob("*.py") if path.parent != SOURCE or path.stem in ROOMS)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_room_imports_only_what_the_house_allows(path):
    assert list(breaches(path)) == []


def test_every_room_stands_in_the_table():
    rooms = {path.name for path in SOURCE.iterdir() if path.is_dir() and path.name[0] != "_"}

    assert rooms - set(ROOMS) == set()


@pytest.mark.parametrize(
    ("room", "text", "breach"),
    [
        ("analyses", "from ..render import renderer", "analyses may not import render"),
        ("measure", "import torch", "measure may not import torch"),
        ("render", "import jinja2", "jinja2 may be imported inside a function only"),
        ("sources", "import pickle", "nobody may import pickle"),
        ("pairing", "import numpy", "pairing may not import numpy"),
        ("sources", "import onnx", "a reader may not import onnx"),
        ("sources", "import h5py", "only hdf5_child may import h5py"),
    ],
)
def test_a_breach_is_found_and_told(tmp_path, monkeypatch, room, text, breach):
    monkeypatch.setattr(f"{__name__}.SOURCE", tmp_path)
    path = tmp_path / room / "planted.py"
    path.parent.mkdir()
    path.write_text(text)

    assert [said.partition(": ")[2] for said in breaches(path)] == [breach]


def test_no_read_path_can_run_what_it_reads():
    """No evaluation, no unpickling, no extraction anywhere in the package."""
    banned = {"eval", "exec", "compile", "__import__", "extractall", "extract", "loads_pickle"}
    found = [
        f"{path.name}:{node.lineno} {name}"
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        for name in [getattr(node.func, "id", getattr(node.func, "attr", ""))]
        if name in banned and not (name == "compile" and getattr(node.func, "attr", ""))
    ]

    assert found == []
