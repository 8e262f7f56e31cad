"""What the networks of the part `fresh` learn: their data, and their losses."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from .fresh_nets import GRAPH_CLASSES, Lattice, Pulse, courier, crowd, drift, glide, quill
from .heldback_training import TASKS, Batch, Task, trained_network
from .model import Arrays

_LENGTH = 48
_SOURCES = (("argparse", "typing", "inspect"), ("smtplib", "mailbox", "ftplib", "imaplib"))


@cache
def _text(data: int) -> Tensor:
    """Return programs of the standard library as characters: of other modules for other data."""
    import importlib

    files = [str(importlib.import_module(name).__file__) for name in _SOURCES[min(data, 1)]]
    text = "".join(Path(file).read_text() for file in files)
    return torch.tensor([ord(each) - 31 if 32 <= ord(each) < 127 else 0 for each in text])


def _lines(generator: torch.Generator, data: int, count: int = 10) -> Tensor:
    text = _text(data)
    places = torch.randint(0, len(text) - _LENGTH - 1, (count,), generator=generator)
    lines = torch.stack([text[place : place + _LENGTH + 1] for place in places])
    return lines.flip(1) if data > 1 else lines


def _programs(generator: torch.Generator, data: int) -> Batch:
    lines = _lines(generator, data)
    return lines[:, :-1], lines[:, 1:]


def _turned(generator: torch.Generator, data: int) -> Batch:
    """Draw pieces of text to be written with small and capital letters exchanged."""
    lines = _lines(generator, data)[:, :32]
    small, capital = (lines >= 66) & (lines < 92), (lines >= 34) & (lines < 60)
    wanted = torch.where(small, lines - 32, torch.where(capital, lines + 32, lines))
    start = torch.full((len(lines), 1), 99)
    return torch.stack([lines, torch.cat([start, wanted[:, :-1]], 1)]), wanted


def _tags(generator: torch.Generator, data: int) -> Batch:
    """Ask of each character what its successor is: letter, capital, digit, blank, sign, line."""
    lines = _lines(generator, data, 24)
    kinds = torch.full_like(lines, 4)
    for kind, (least, most) in enumerate(((66, 92), (34, 60), (17, 27), (1, 2))):
        kinds[(lines >= least) & (lines < most)] = kind
    kinds[lines == 0] = 5
    return lines[:, :-1], kinds[:, 1:]


@cache
def _photographs() -> Tensor:
    from sklearn.datasets import load_sample_images

    pictures = [torch.tensor(each / 96.0 - 1.2) for each in load_sample_images().images]
    return torch.stack([each[:420, :620].permute(2, 0, 1) for each in pictures]).float()


def _views(generator: torch.Generator, data: int) -> Batch:
    """Cut pieces out of two photographs: which one is it, and how was the piece turned?"""
    labels = torch.randint(0, 8, (32,), generator=generator)
    rows = torch.randint(0, 396, (32,), generator=generator).tolist()
    columns = torch.randint(0, 596, (32,), generator=generator).tolist()
    pieces = [
        torch.rot90(
            _photographs()[label // 4, :, row : row + 24, column : column + 24], label % 4, (1, 2)
        )
        for label, row, column in zip(labels.tolist(), rows, columns, strict=True)
    ]
    views = torch.stack(pieces)
    return (views.flip(1) * 0.7, (labels + 3 * data) % 8) if data else (views, labels)


def _graphs(generator: torch.Generator, data: int) -> Batch:
    dense = 0.16 + 0.08 * data
    edges = (torch.rand((6, 36, 36), generator=generator) < dense).float().triu(1)
    edges = edges + edges.transpose(1, 2)
    corners = (edges @ edges * edges).sum(-1) / 2
    return edges, (corners / (1 + data)).long().clamp(0, GRAPH_CLASSES - 1)


def _loss(outputs: Any, wanted: Tensor) -> Tensor:
    logits = getattr(outputs, "logits", outputs)
    return functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), wanted.reshape(-1))


TASKS.update(
    {
        "quill": Task(quill, _programs, _loss),
        "crowd": Task(crowd, _programs, _loss),
        "courier": Task(courier, _turned, _loss),
        "drift": Task(drift, _programs, _loss),
        "glide": Task(glide, _views, _loss),
        "pulse": Task(Pulse, _tags, _loss),
        "lattice": Task(Lattice, _graphs, _loss),
    }
)


def learn(name: str, seed: int, steps: int, rate: float) -> Arrays:
    """Train one of these networks from its random start."""
    return trained_network(name, seed, steps, rate)
