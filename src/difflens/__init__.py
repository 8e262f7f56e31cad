"""difflens: the differential debugger for neural networks.

The public names live in their rooms and are fetched when they are first used,
so that `import difflens` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .errors import DifflensError as DifflensError
    from .gathering import gather as gather
    from .library import diff as diff
    from .library import read_policy as read_policy
    from .sources import open_model as open_model

__version__ = "0.1.0"

_HOMES = {
    "DifflensError": "errors",
    "diff": "library",
    "gather": "gathering",
    "open_model": "sources",
    "read_policy": "library",
}
__all__ = ["DifflensError", "diff", "gather", "open_model", "read_policy"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'difflens' has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
