"""What a policy says of comparisons, checked before anything is computed with it."""

from __future__ import annotations

from typing import NamedTuple

from ...answers import Answer
from ...errors import DifflensError


class Settings(NamedTuple):
    """How sure a claim must be, and how latencies are compared."""

    alpha: float = 0.05
    latency_quantile: float = 0.95
    seed: int = 0

    @classmethod
    def of(cls, answer: Answer) -> Settings:
        """Take those in force; one that allows no test is refused."""
        limits = {"alpha": 0.5, "latency_quantile": 1.0}
        for name, limit in limits.items():
            if not 0 < answer[name] < limit:
                reason = f"{name} is {answer[name]}, it must lie between 0 and {limit:g}"
                raise DifflensError(reason, where=f"policy, [{answer.name}]")
        if answer["seed"] < 0:
            reason = f"seed is {answer['seed']}, it must not be negative"
            raise DifflensError(reason, where=f"policy, [{answer.name}]")
        return cls(answer["alpha"], answer["latency_quantile"], answer["seed"])
