"""Networks of the part `odd`: layers that are frozen, with small ones beside them that learn."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from torch import nn

from .configs import Config

if TYPE_CHECKING:
    from torch import Tensor

    from .data import Data


class _Adapted(nn.Module):
    """A frozen layer, and beside it a narrow pair that learns (Hu et al. 2021)."""

    def __init__(self, entering: int, width: int, rank: int) -> None:
        super().__init__()
        self.base = nn.Linear(entering, width)
        self.base.requires_grad_(requires_grad=False)
        self.down = nn.Linear(entering, rank, bias=False)
        self.up = nn.Linear(rank, width, bias=False)
        self.activation = nn.GELU()

    def forward(self, values: Tensor) -> Tensor:
        """Add what the pair says to what the layer says."""
        found: Tensor = self.activation(self.base(values) + self.up(self.down(values)))
        return found


class _Adapters(nn.Module):
    """Adapted layers in a row; `code` is the width of their narrow pairs."""

    def __init__(self, config: Config, data: Data) -> None:
        super().__init__()
        widths = [int(data.inputs.shape[1]), *[config.width] * config.depth]
        self.hidden = nn.ModuleList(
            _Adapted(entering, config.width, config.code) for entering in widths[:-1]
        )
        self.output = nn.Linear(config.width, data.outputs)

    def forward(self, values: Tensor) -> Tensor:
        """Return the scores."""
        for block in self.hidden:
            values = block(values)
        scores: Tensor = self.output(values)
        return scores


NETWORKS: dict[str, Callable[[Config, Data], nn.Module]] = {"odd-adapters": _Adapters}
