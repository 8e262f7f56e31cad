"""Where the house keeps its plug-ins, what belongs to each, and a house to try new ones in."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from difflens.core.registry import Registry
from difflens.diffs.analyses import analysis
from difflens.models.formats import source
from difflens.render.diffs import renderer
from difflens.training.diagnoses import diagnosis

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "difflens"
TESTS = ROOT / "tests"

# The registry of each folder of plug-ins, and the folder of docs/ with a page for each of them.
REGISTRIES: dict[str, tuple[Registry[Any], str]] = {
    "models/formats": (source, "formats"),
    "diffs/analyses": (analysis, "analyses"),
    "render/diffs": (renderer, "renderers"),
    "training/diagnoses": (diagnosis, "diagnoses"),
}

# The folders that lint and the contract tests read, besides the package and its tests.
OTHERS = ("bench", "changelog.d", "docs", "examples", "tools", "zoo", ".ci")


def load(path: Path, name: str) -> ModuleType:
    """Import a file that is in no package."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def copy_house(folder: Path) -> Path:
    """Copy what a contributor edits, so that a plug-in can be dropped in without harm."""
    leave = shutil.ignore_patterns("__pycache__", ".*_cache")
    for name in ("src/difflens", "tests", *OTHERS):
        shutil.copytree(ROOT / name, folder / name, ignore=leave)
    for path in (each for each in ROOT.iterdir() if each.is_file()):
        shutil.copy(path, folder)
    return folder


def run(*command: str, cwd: Path, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run Python on a command, with `path` in front of what it imports."""
    environment = os.environ | {"NO_COLOR": "1", "COLUMNS": "80"}
    environment.pop("PYTEST_ADDOPTS", None)
    if path:
        environment["PYTHONPATH"] = str(path)
    return subprocess.run(
        [sys.executable, *command],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=1200,
    )
