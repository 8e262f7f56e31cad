"""Patches: create, apply, verify, show, compose."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from difflens.core.addresses import Address
from difflens.core.errors import PatchError
from difflens.core.protocols import TensorSource
from difflens.core.records import TensorInfo
from difflens.models.opening import Model, open_input

from .adapters import Adapter
from .apply import apply_in_memory, run, write_model
from .create import WAYS_BACK, make
from .gathered import METHODS, Side
from .layout import Layout, layout_of
from .patch_file import PatchFile
from .patched import Patched, plan, reversed_steps
from .records import PatchSummary

PathText = str | PathLike[str]
Limits = Mapping[str, int] | None


def create_patch(
    base: Model,
    target: Model,
    path: PathText,
    *,
    adapter: Model | None = None,
    with_files: bool = False,
    way_back: str = "auto",
    digests: bool = True,
    threads: int | None = None,
    limits: Limits = None,
    format: str | None = None,  # noqa: A002  the word of the command line
) -> PatchSummary:
    """Write the patch that turns the base into the target, bit for bit.

    A model is a path, a torch module, a mapping of names to arrays or an open model. `way_back`
    says whether the patch shall also turn the target into the base: `auto` (where that adds a tenth
    at most), `always` or `never`. Without `digests` only checksums guard the models. `adapter` is
    one that was merged into the base to make the target: a patch that stores its matrices is small.
    `with_files` adds the settings and tokenizers beside the weights of a folder.
    """
    if way_back not in WAYS_BACK:
        raise PatchError(path, f"way_back is {way_back!r}, expected one of {', '.join(WAYS_BACK)}")
    with ExitStack() as opened:
        if with_files and not (isinstance(target, (str, PathLike)) and Path(target).is_dir()):
            raise PatchError(path, "the target is no folder, which alone has files beside weights")
        left = opened.enter_context(_side(base, format, limits, with_files=with_files))
        right = opened.enter_context(_side(target, format, limits, with_files=with_files))
        merged = None
        if adapter is not None:
            shown, source = open_input(adapter, None, limits)
            opened.callback(source.close)
            merged = Adapter(source, left.source, shown)
        return make(
            left,
            right,
            Path(fspath(path)),
            merged,
            way_back=way_back,
            threads=threads,
            digests=digests,
        )


def apply_patch(
    base: Model,
    patch: PathText,
    path: PathText | None = None,
    *,
    reverse: bool = False,
    digests: bool = True,
    threads: int | None = None,
    limits: Limits = None,
    format: str | None = None,  # noqa: A002
) -> None:
    """Write the model that a patch makes of its base; without a path, change arrays in place.

    `reverse` turns the target back into the base. A wrong base is refused. The path is absent or
    complete whatever happens.
    """
    if path is None:
        if isinstance(base, (str, PathLike, Address, TensorSource)):
            raise PatchError(patch, "there is no path to write to")
        with _opened(patch, limits) as file:
            _check_direction(file, reverse=reverse)
            apply_in_memory(base, file, backwards=reverse)
        return
    with patched_model(base, patch, reverse=reverse, limits=limits, format=format) as patched:
        if patched.layout is None:
            raise PatchError(patch, "it does not show the files of its result")
        write_model(patched, patched.layout, Path(path), threads=threads, digests=digests)


def verify_patch(
    base: Model,
    patch: PathText,
    *,
    reverse: bool = False,
    threads: int | None = None,
    limits: Limits = None,
    format: str | None = None,  # noqa: A002
) -> PatchSummary:
    """Apply a patch and write nothing: raise where the base is wrong or the patch is damaged."""
    with patched_model(base, patch, reverse=reverse, limits=limits, format=format) as patched:
        run(patched, [], {}, threads=threads, digests=True)
        patched.confirm()
    return show_patch(patch, limits=limits)


def compose_patches(
    first: PathText,
    second: PathText,
    base: Model,
    path: PathText,
    *,
    way_back: str = "auto",
    threads: int | None = None,
    limits: Limits = None,
) -> PatchSummary:
    """Write the one patch that does what two do, one after the other."""
    with ExitStack() as opened:
        one = opened.enter_context(_opened(first, limits))
        left = opened.enter_context(_side(base, None, limits, with_files=one.head.with_files))
        two = opened.enter_context(_opened(second, limits))
        if one.head.target and two.head.base and one.head.target != two.head.base:
            raise PatchError(second, f"it does not follow {one.where}: that makes another model")
        middle = _patched(one, left.source, left.layout, backwards=False)
        last = _patched(two, middle, middle.layout, backwards=False)
        if last.layout is None:
            raise PatchError(second, "it does not show the files of its result")
        right = Side(last, last.layout, True, two.where, two.head.with_files)
        return make(
            left, right, Path(fspath(path)), way_back=way_back, threads=threads, digests=True
        )


def show_patch(patch: PathText, *, limits: Limits = None) -> PatchSummary:
    """Describe a patch; only its index and the first byte of each chunk are read."""
    with _opened(patch, limits) as file:
        head = file.head
        layout = head.target_layout
        own = sorted(file.own_sizes().items(), key=lambda item: (-item[1], item[0]))
        size = None
        if layout is not None:
            places = layout.places(file.where, file.limits)
            size = sum(place.info.size_bytes for place in places.values())
        return PatchSummary(
            path=str(patch),
            size_bytes=file.size,
            target_bytes=size,
            tensors=len(file.origins),
            changed=None,
            added=sum(not each for each in file.origins),
            removed=None,
            reversible=head.reversible,
            chunks={
                "identical": sum(not each for each in file.lengths),
                "coded": sum(each > 0 for each in file.lengths),
            },
            base=head.base.hex() or None,
            target=head.target.hex() or None,
            largest=dict(own[:20]),
        )


@contextmanager
def patched_model(
    base: Model,
    patch: PathText,
    *,
    reverse: bool = False,
    limits: Limits = None,
    format: str | None = None,  # noqa: A002
) -> Iterator[Patched]:
    """Open the model that a patch makes of its base, to be read chunk by chunk."""
    with ExitStack() as opened:
        file = opened.enter_context(_opened(patch, limits))
        files = file.head.with_files
        side = opened.enter_context(_side(base, format, limits, with_files=files))
        _check_direction(file, reverse=reverse)
        yield _patched(file, side.source, side.layout, backwards=reverse)


def _patched(patch: PatchFile, source: Any, layout: Layout | None, *, backwards: bool) -> Patched:
    """Bind a patch to the model it is applied to."""
    head = patch.head
    made = head.base_layout if backwards else head.target_layout
    if made is None:
        if layout is None or layout.digest() != head.base_digest:
            reason = "it was made for another base: the header of the file differs"
            raise PatchError(patch.where, reason)
        made = layout
    made = made.completed(layout, patch.where)
    infos = {name: place.info for name, place in made.places(patch.where, patch.limits).items()}
    inputs: Mapping[str, TensorInfo] = dict(source.tensors)
    base, target = (infos, inputs) if backwards else (inputs, infos)
    steps = plan(patch, base, target)
    if backwards:
        steps = reversed_steps(patch, steps, base)
    return Patched(patch, source, steps, made, backwards=backwards)


def _check_direction(patch: PatchFile, *, reverse: bool) -> None:
    if reverse and not patch.head.reversible:
        hint = "create it with --way-back always"
        raise PatchError(patch.where, "it cannot be applied backwards", hint=hint)


@contextmanager
def _side(
    model: Model, form: str | None, limits: Limits, *, with_files: bool = False
) -> Iterator[Side]:
    shown, source = open_input(model, form, limits)
    try:
        path = Path(model) if isinstance(model, (str, PathLike)) else None
        layout, is_native = layout_of(source, path, with_files=with_files)
        yield Side(source, layout, is_native, shown, with_files)
    finally:
        source.close()


@contextmanager
def _opened(patch: PathText, limits: Limits) -> Iterator[PatchFile]:
    file = PatchFile(fspath(patch), limits)
    try:
        yield file
    finally:
        file.close()


__all__ = [
    "METHODS",
    "apply_patch",
    "compose_patches",
    "create_patch",
    "patched_model",
    "show_patch",
    "verify_patch",
]
