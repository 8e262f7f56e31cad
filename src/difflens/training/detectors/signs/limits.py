"""The thresholds of one diagnosis as in force: the user's where set, else the default."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from difflens.core.policy import Policy, Threshold


class Limits:
    """Thresholds by name; what was asked for is remembered, to be told as evidence."""

    def __init__(self, name: str, policy: Policy, defaults: Mapping[str, Threshold]) -> None:
        """Take the section of the policy that has the diagnosis's name."""
        self.name = name
        self._policy, self._defaults = policy, defaults

    def __getitem__(self, name: str) -> Any:
        """Return the threshold in force."""
        return self._policy.threshold(self.name, name, self._defaults[name].value)
