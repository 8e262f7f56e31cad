"""Optimiser states, made by hand or by torch."""

from typing import Any

import numpy as np
import torch

from difflens.diffs.evidence.records import Optimizer
from difflens.measure.chunks import Side
from difflens.measure.values import Values
from difflens.models.opening import MemorySource


def adam_state(
    moments: list[tuple[np.ndarray, np.ndarray]],
    step: float = 100.0,
    groups: list[dict[str, Any]] | None = None,
    **settings: Any,
) -> Optimizer:
    """Return a state of these first and second moments, one group unless told otherwise."""
    arrays = {f"{at}.{key}": each for at, pair in enumerate(moments)
              for key, each in zip(("exp_avg", "exp_avg_sq"), pair, strict=True)}  # fmt: skip
    source = MemorySource(arrays)
    held = {at: {key: Values(Side.of(source, source.tensors[f"{at}.{key}"]))
                 for key in ("exp_avg", "exp_avg_sq")} | {"step": step}
            for at in range(len(moments))}  # fmt: skip
    group = {"lr": 1e-3, "betas": [0.9, 0.999], "eps": 1e-8, "weight_decay": 0.0,
             "params": list(range(len(moments)))} | settings  # fmt: skip
    return Optimizer(tuple(groups or [group]), held)


BEFORE = 12  # steps that were taken before the left checkpoint


class Trained:
    """A small network trained by AdamW, with the weights before and after the last `gap` steps."""

    def __init__(self, *, gap: int = 1, dtype: torch.dtype = torch.float32, split: bool = False,
                 names: str = "{}", width: int = 192) -> None:  # fmt: skip
        torch.manual_seed(0)
        self._inputs = width
        net = torch.nn.Sequential(
            torch.nn.Linear(width, width), torch.nn.Tanh(), torch.nn.Linear(width, width),
            torch.nn.Tanh(), torch.nn.Linear(width, 8),
        ).to(dtype)  # fmt: skip
        self.net, self._dtype, self._names = net, dtype, names
        self.optimizer = torch.optim.AdamW(self._groups(split), lr=3e-4, weight_decay=0.01)
        for _ in range(BEFORE):
            self._step()
        self.left = self._weights()
        for _ in range(gap):
            self._step()
        self.right = self._weights()

    def _groups(self, split: bool) -> Any:
        if not split:
            return self.net.parameters()
        kinds = [[each for each in self.net.parameters() if (each.ndim > 1) is wide]
                 for wide in (True, False)]  # fmt: skip
        return [{"params": kinds[0]}, {"params": kinds[1], "weight_decay": 0.0}]

    def _weights(self) -> dict[str, np.ndarray]:
        state = self.net.state_dict()
        return {self._names.format(name): each.detach().numpy().copy()
                for name, each in state.items()}  # fmt: skip

    def _step(self) -> None:
        inputs = torch.randn(16, self._inputs, dtype=self._dtype)
        self.optimizer.zero_grad()
        (self.net(inputs) - inputs[:, :8]).square().mean().backward()
        self.optimizer.step()
