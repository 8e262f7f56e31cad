"""What the columns of an exported run are called, so that any name of a layer comes back.

A scalar keeps its name where nothing can be confused with it; a field of a layer is
`layers/FIELD/NAME`. Either begins with a letter, or with `scalars/`: no spreadsheet takes a name
for a formula, and nothing has to be guarded, which would change it.
"""

from __future__ import annotations

from ..escape import for_csv
from ..runs import RunInfo

TIMES = ("sequence", "step", "wall_time", "monotonic_time")
_SCALAR, _LAYER = "scalars/", "layers/"


def scalar_column(name: str) -> str:
    """Name the column of a scalar.

    >>> scalar_column("loss"), scalar_column("step"), scalar_column("=1+1")
    ('loss', 'scalars/step', 'scalars/=1+1')
    """
    plain = name and name not in TIMES and not name.startswith((_SCALAR, _LAYER))
    plain = plain and for_csv(name) == name and name.isprintable() and name.strip() == name
    return name if plain else f"{_SCALAR}{name}"


def layer_column(field: str, layer: str) -> str:
    """Name the column of a field of a layer.

    >>> layer_column("grad_l2", "h.0.weight"), layer_column("a/b", "c/d")
    ('layers/grad_l2/h.0.weight', 'layers/a%2Fb/c/d')
    """
    return f"{_LAYER}{field.replace('%', '%25').replace('/', '%2F')}/{layer}"


def columns_of(info: RunInfo) -> tuple[list[str], list[str]]:
    """Name the columns of the scalars, then those of the layers, field after field."""
    return (
        [scalar_column(name) for name in info.scalars],
        [layer_column(field, layer.name) for field in info.fields for layer in info.layers],
    )


def column_from(column: str) -> tuple[str | None, str]:
    """Give the field and the layer that a column is of, or None and the scalar.

    >>> column_from("layers/a%2Fb/c/d"), column_from("scalars/step"), column_from("loss")
    (('a/b', 'c/d'), (None, 'step'), (None, 'loss'))
    """
    if column.startswith(_LAYER):
        field, _, layer = column.removeprefix(_LAYER).partition("/")
        return field.replace("%2F", "/").replace("%25", "%"), layer
    return None, column.removeprefix(_SCALAR)
