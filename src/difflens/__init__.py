"""difflens: the differential debugger for neural networks.

The public names are listed in `__init__.pyi`, for people, type checkers and this module alike.
Each is imported when it is first used, so that `import difflens` costs next to nothing.
"""

from functools import cache
from importlib import import_module
from typing import Any

__version__ = "0.1.0"


@cache
def _homes() -> dict[str, str]:
    """Read the list: each public name, and the module it is imported from."""
    import re
    from pathlib import Path

    stub = Path(__file__).with_suffix(".pyi").read_text("utf-8")
    # The formatter breaks a long line in parentheses.
    lines = re.findall(r"^from (\.\S+) import (?:\(\s+)?(\w+)", stub, re.MULTILINE)
    return {name: home for home, name in lines}


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return sorted(_homes())
    if name.startswith("_") or name not in _homes():
        raise AttributeError(f"module 'difflens' has no attribute {name!r}")
    return getattr(import_module(_homes()[name], __name__), name)


def __dir__() -> list[str]:
    return sorted({"__version__", *_homes()})
