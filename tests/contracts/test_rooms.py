"""Who may import whom: the table of the house, held by a program."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "difflens"
# What each top folder may import of ours, beside itself: another one, or a part of it.
ROOMS: dict[str, set[str]] = {
    "core": set(),
    "storage": {"core"},
    "engines": {"core", "storage"},
    "stats": {"core"},
    "measure": {"core", "engines"},
    "models": {"core", "storage", "engines", "stats", "measure"},
    # A recorded run can be evidence beside two models.
    "diffs": {"core", "storage", "engines", "stats", "measure", "models", "training.history"},
    "versions": {"core", "stats", "measure", "models", "diffs"},
    "training": {"core", "stats", "measure"},
    # A patch acts on two models, and blame on what their diff says of them.
    "repair": {"core", "storage", "engines", "stats", "measure", "models", "diffs"},
    "render": {"core", "models.health.records", "versions.records", "training.records"}
    | {"repair.blame.records"},
    "cli": {
        "core",
        "storage",
        "measure",
        "models",
        "diffs",
        "versions",
        "training",
        "repair",
        "render",
    },
    "testing": {"core", "storage", "measure", "models", "diffs", "training", "render"},
}
# The public face of a diff shows itself, and reads one policy for all products.
FACES = {"diffs/library.py": {"training.diagnoses", "versions.verdicts", "render.diffs"}}

# Outside libraries a room may import, and those it may import only inside functions.
STANDARD = {
    "click": {"cli"},
    "msgspec": {"core", "models", "measure", "diffs", "versions", "training", "render", "cli"}
    | {"repair", "storage"},
}
# The NumPy twins of the kernel.
TWINS = {"reference.py", "moments.py", "readings.py", "bits.py", "words.py", "dense.py",
         "sparse.py", "predict.py"}  # fmt: skip
# Parts that are arrays through and through, and are themselves imported late.
ARRAYS = {
    "models/health", "training/detectors", "training/diagnoses", "training/flow",
    "training/gradients", "training/history", "training/verdicts",
}  # fmt: skip
LATE = {
    "numpy": {"core", "models", "measure", "stats", "diffs", "versions", "training", "cli"}
    | {"testing", "repair"},
    "ml_dtypes": {"cli", "models", "repair"},
    "rich": {"core", "cli", "render", "diffs"},
    "jinja2": {"render"},
    "yaml": {"render", "cli", "storage"},
    "scipy": {"diffs", "measure", "stats", "models", "training"},
    "pyarrow": {"training"},
    "blake3": {"diffs"},
    "pandas": {"core"},
    # The frameworks that are watched: each in its own hook, when that is called.
    "torch": {"training"},
    "triton": {"training"},
    "transformers": {"training"},
    "lightning": {"training"},
    "accelerate": {"training"},
    "keras": {"training"},
    "jax": {"training"},
    "optax": {"training"},
    "mlflow": {"training"},
    "wandb": {"training"},
    "sqlalchemy": {"versions"},
    "alembic": {"versions"},
    "psycopg": {"versions"},
    "ray": {"engines"},
    "obstore": {"storage"},
}
NEVER = {"pickle", "marshal", "shelve", "mmap"}


# The libraries of formats: no reader imports its own, but for the two that decode for us.
FRAMEWORKS = {"onnx", "tensorflow", "safetensors", "flax", "msgpack", "zipfile"}
ONLY_IN = {"h5py": "models/hdf5/hdf5_child", "gguf": "models/gguf/blocks.py"}


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
    room, place = room_of(path), path.relative_to(SOURCE).as_posix()
    allowed = ROOMS[room] | FACES.get(place, set())
    in_arrays = place.startswith(tuple(f"{each}/" for each in ARRAYS))
    for line, module, at_top in imports(path):
        first, _, rest = module.partition(".")
        where = f"{path.name}:{line}"
        if first == "difflens":
            if rest and rest.partition(".")[0] != room and not is_allowed(rest, allowed):
                yield f"{where}: {room} may not import {rest}"
        elif first in FRAMEWORKS | set(ONLY_IN):
            yield from framework_breaches(place, first, where)
        elif first in NEVER:
            yield f"{where}: nobody may import {first}"
        elif first in LATE and path.name not in TWINS:
            if room not in LATE[first]:
                yield f"{where}: {room} may not import {first}"
            elif at_top and not (first == "numpy" and in_arrays):
                yield f"{where}: {first} may be imported inside a function only"
        elif first in STANDARD and room not in STANDARD[first]:
            yield f"{where}: {room} may not import {first}"


def is_allowed(module: str, allowed: set[str]) -> bool:
    return any(f"{module}.".startswith(f"{each}.") for each in allowed | {"__version__"})


def framework_breaches(place: str, library: str, where: str) -> Iterator[str]:
    if library in FRAMEWORKS and place.startswith("models/"):
        yield f"{where}: a reader may not import {library}"
    elif library in ONLY_IN and not place.startswith(ONLY_IN[library]):
        yield f"{where}: only {ONLY_IN[library]} may import {library}"


def test_a_folder_imports_only_what_the_table_allows():
    files = sorted(path for path in SOURCE.rglob("*.py") if path.parent != SOURCE)

    assert [breach for path in files for breach in breaches(path)] == []


def test_the_top_holds_folders_of_the_table_and_nothing_loose():
    names = {path.name for path in SOURCE.iterdir() if path.name != "__pycache__"}
    files = {"__init__.py", "__init__.pyi", "__main__.py", "py.typed"}

    assert names - files == set(ROOMS)
    assert all(face.partition("/")[0] in ROOMS for face in FACES)


@pytest.mark.parametrize(
    ("room", "text", "breach"),
    [
        ("diffs", "from ..render import diffs", "diffs may not import render"),
        ("diffs", "from difflens.training import hooks", "diffs may not import training"),
        ("measure", "import torch", "measure may not import torch"),
        ("render", "import jinja2", "jinja2 may be imported inside a function only"),
        ("models", "import pickle", "nobody may import pickle"),
        ("models", "import numpy", "numpy may be imported inside a function only"),
        ("render", "import numpy", "render may not import numpy"),
        ("models", "import onnx", "a reader may not import onnx"),
        ("models", "import h5py", "only models/hdf5/hdf5_child may import h5py"),
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
