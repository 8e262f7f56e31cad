"""What is trained: healthy parents, mutations of them, and controls that must stay silent."""

from __future__ import annotations

from .config import Config

__all__ = ["Config"]
