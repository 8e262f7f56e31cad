"""Where the house keeps its plug-ins, what belongs to each, and a house to try new ones in."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

from difflens.analyses import analysis
from difflens.diagnoses import diagnosis
from difflens.render import renderer
from difflens.sources import source

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "difflens"
TESTS = ROOT / "tests"

# The registry of each room, and the folder of docs/ that has a page for each of its plug-ins.
REGISTRIES = {
    "sources": (source, "formats"),
    "analyses": (analysis, "analyses"),
    "render": (renderer, "renderers"),
    "diagnoses": (diagnosis, "diagnoses"),
}


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
    shutil.copytree(SOURCE, folder / "src" / "difflens", ignore=leave)
    for room in ("contracts", "sources", "analyses", "render", "hostile", "diagnoses"):
        shutil.copytree(TESTS / room, folder / "tests" / room, ignore=leave)
    for name in ("conftest.py", "models.py", "strategies.py"):
        shutil.copy(TESTS / name, folder / "tests" / name)
    for name in ("docs", "changelog.d"):
        shutil.copytree(ROOT / name, folder / name, ignore=leave)
    for name in ("pyproject.toml", "CONTRIBUTING.md", "CHANGELOG.md", "README.md", "SECURITY.md"):
        shutil.copy(ROOT / name, folder / name)
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
        timeout=300,
    )
