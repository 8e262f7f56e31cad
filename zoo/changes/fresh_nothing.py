"""Fresh pairs of strangers, and pairs of which nothing is to be said."""

from __future__ import annotations

from collections.abc import Callable

from .bases import load
from .edits import flip_zeros, prune, rename
from .fresh_edits import of
from .model import Model, stored
from .pairs import Built, Edited, Expected, Pair

_COARSE = ("tensors_added", "tensors_removed", "reshaped", "reinitialised")


def strangers(
    name: str, left: str, right: str, change: Callable[[Model], Model] = lambda m: m
) -> Pair:
    """Return two models of which neither was made from the other."""

    def build(model: Model) -> Built:
        label = Expected("unrelated", None, vague=_COARSE)
        return Built(change(model), change(load(right)), (label,))

    return Pair(f"f-{name}", "fresh", left, "unrelated", build)


def _untrained(model: Model) -> Built:
    """Another model of the family, at its start."""
    import torch

    from .fresh_nets import courier
    from .heldback_training import arrays_of

    torch.manual_seed(83_901)
    tensors = arrays_of(courier())
    label = Expected("unrelated", None, also=("reinitialised",))
    return Built(model, model._replace(tensors=tensors), (label,))


def _turned(model: Model) -> Edited:
    return Edited(model._replace(tensors=dict(sorted(model.tensors.items()))), ())


UNRELATED: list[Pair] = [
    strangers("mpnn-0-1", "mpnn-0", "mpnn-1"),
    strangers("mpnn-1-3-bf16", "mpnn-1", "mpnn-3", lambda model: stored(model, "BF16")),
    strangers("mpnn-and-values", "mpnn-0", "mpnn-values"),
    strangers("atoms-0-1", "atoms-0", "atoms-1"),
    strangers("atoms-1-5-f16", "atoms-1", "atoms-5", lambda model: stored(model, "F16")),
    strangers("quill-seeds", "quill", "quill-other"),
    strangers("courier-seeds", "courier", "courier-other"),
    strangers("glide-seeds", "glide", "glide-other"),
    strangers("pulse-seeds", "pulse", "pulse-other"),
    strangers("lattice-seeds", "lattice", "lattice-other"),
    strangers("alexa-and-weather", "alexa", "weather"),
    strangers("face-and-page", "face", "page"),
    strangers("pestos", "pesto", "pesto-small"),
    strangers("speech-and-notes", "speech", "notes"),
    strangers("drift-and-crowd", "drift", "crowd"),
    strangers("emotion-and-tones", "emotion", "tones"),
    Pair("f-courier-untrained", "fresh", "courier", "unrelated", _untrained),
]

UNCHANGED: list[Pair] = [
    of("same-quill", "quill", "unchanged"),
    of("same-bf16-turn", "turn", "unchanged", dtype="BF16"),
    of("same-layout", "layout", "unchanged"),
    of("same-f16-drift", "drift", "unchanged", dtype="F16"),
    of("renamed-module", "glide", "unchanged", rename("^", "module.")),
    of("renamed-model", "turn", "unchanged", rename("^encoder", "model.encoder")),
    of("renamed-layers-bf16", "quill", "unchanged", rename(r"\.layers\.", ".h."), dtype="BF16"),
    of("order-sorted", "courier", "unchanged", _turned),
    of("zeros-turned", "timer", "unchanged", flip_zeros(r"weight"),
       start=[prune(r"model\.[13]\.weight", 0.42)]),
    of("same-pages", "page", "unchanged"),
]  # fmt: skip

PAIRS: list[Pair] = [*UNRELATED, *UNCHANGED]
