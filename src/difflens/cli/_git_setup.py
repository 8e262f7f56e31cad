"""Sets up git for models, and takes that out again: attributes, drivers, and nothing else.

The attributes are a block at the beginning of their file: of two lines about the same file git
follows the later one, so that what somebody wrote there goes on to count.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from difflens.core.errors import GitError

_BEGIN, _END = "# difflens: begin", "# difflens: end"
_ABOUT = "written by `difflens git install`; --uninstall takes it out"
_NEW_ATTRIBUTES, _NEW_SETTINGS = "new attributes", "new settings"
_DRIVER = "difflens"


class _Target(NamedTuple):
    """Where one scope keeps its attributes and its configuration."""

    scope: str
    folder: Path
    attributes: Path
    settings: tuple[Path, ...]  # files that git may write to

    def git(self, *words: str) -> str:
        from difflens.storage.git.repository import run_git

        return os.fsdecode(run_git(["config", f"--{self.scope}", *words], self.folder)).rstrip("\n")


def set_up(scope: str) -> Iterator[str]:
    """Write attributes and drivers; again changes nothing but what has changed since."""
    target = _target(scope)
    text = _read(target.attributes)
    notes = _notes(text)
    if _BEGIN not in (text or ""):
        notes = {_NEW_ATTRIBUTES} if text is None else set()
        notes |= set() if any(each.exists() for each in target.settings) else {_NEW_SETTINGS}
    for key, value in _settings().items():
        if _get(target, key) != value:
            target.git("--replace-all", key, value)
    endings = _endings()
    _write(target.attributes, _block(endings, notes) + _without_block(text or ""))
    yield f"git shows models with difflens: {' '.join(endings)}"
    yield f"attributes: {target.attributes}"
    if scope == "global":
        yield "a repository with lines such as diff=lfs keeps them: run it there with --local"


def take_out(scope: str) -> Iterator[str]:
    """Remove what `set_up` wrote; files that it made and nobody else wrote to are gone again."""
    target = _target(scope)
    text = _read(target.attributes)
    notes = _notes(text)
    removed = False
    for key in _settings():
        if _get(target, key) is not None:
            target.git("--unset-all", key)
            removed = True
    if text is not None and _BEGIN in text:
        rest = _without_block(text)
        if rest or _NEW_ATTRIBUTES not in notes:
            _write(target.attributes, rest)
        else:
            target.attributes.unlink()
        removed = True
    if _NEW_SETTINGS in notes:
        for file in target.settings:
            with suppress(OSError):
                if not file.stat().st_size:
                    file.unlink()
    yield f"difflens is no longer set up ({scope})" if removed else f"nothing was set up ({scope})"


def _settings() -> Mapping[str, str]:
    """Return the drivers; -P: `python -m` must not find modules in somebody's repository."""
    call = f"{shlex.quote(sys.executable)} -P -m difflens git"
    return {
        f"diff.{_DRIVER}.command": f"{call} diff-driver --",
        f"diff.{_DRIVER}.textconv": f"{call} textconv --",
        f"difftool.{_DRIVER}.cmd": f'{call} difftool -- "$LOCAL" "$REMOTE" "$MERGED"',
        f"merge.{_DRIVER}.name": "difflens refuses to merge weights",
        f"merge.{_DRIVER}.driver": f"{call} merge-driver -- %O %A %B %L %P",
        f"merge.{_DRIVER}.recursive": "binary",  # of bases that are merged first, nobody is told
    }


def _get(target: _Target, key: str) -> str | None:
    try:
        return target.git("--get", key)
    except GitError:
        return None


def _target(scope: str) -> _Target:
    folder = Path.cwd()
    if scope == "local":
        from difflens.storage.git.repository import Repository

        try:
            common = Repository(folder).common
        except GitError as error:
            hint = "difflens git install --global sets up every repository"
            raise GitError(error.where, error.reason, hint=hint) from error
        return _Target(scope, folder, common / "info" / "attributes", (common / "config",))
    home = Path.home()
    settings = os.environ.get("XDG_CONFIG_HOME") or home / ".config"
    files = (home / ".gitconfig", Path(settings, "git", "config"))
    if os.environ.get("GIT_CONFIG_GLOBAL"):
        files = (Path(os.environ["GIT_CONFIG_GLOBAL"]),)  # type: ignore[assignment]
    attributes = _global_attributes(folder) or Path(settings, "git", "attributes")
    return _Target(scope, folder, attributes, files)


def _global_attributes(folder: Path) -> Path | None:
    """Return what core.attributesFile names, for the user or else for the machine."""
    for scope in ("global", "system"):
        place = _get(_Target(scope, folder, folder, ()), "core.attributesFile")
        if place:
            from difflens.storage.git.repository import run_git

            words = ["config", f"--{scope}", "--type=path", "--get", "core.attributesFile"]
            return Path(os.fsdecode(run_git(words, folder)).rstrip("\n"))
    return None


def _endings() -> list[str]:
    """List the endings that the installed readers know, plug-ins of others among them."""
    from difflens.models.folders.listing import suffixes

    return sorted(set(suffixes()))


def _block(endings: list[str], notes: set[str]) -> str:
    about = "; ".join([_ABOUT, *sorted(notes)])
    lines = [f"*{_quoted(ending)} diff={_DRIVER} merge={_DRIVER}" for ending in endings]
    lines += [f"*{_quoted(ending)}.dvc diff={_DRIVER}" for ending in endings]
    return "\n".join([f"{_BEGIN} ({about})", *lines, _END, ""])


def _quoted(ending: str) -> str:
    """Write an ending so that the pattern matches nothing else."""
    return "".join(f"[{each}]" if each in "*?[" else each for each in ending)


def _notes(text: str | None) -> set[str]:
    """Read from the block what was not there before it."""
    first = (text or "").partition(_BEGIN)[2].partition("\n")[0]
    return {note for note in (_NEW_ATTRIBUTES, _NEW_SETTINGS) if note in first}


def _without_block(text: str) -> str:
    before, begin, rest = text.partition(_BEGIN)
    if not begin:
        return text
    _, end, after = rest.partition(f"{_END}\n")
    if not end:
        raise GitError(_END, "this line is missing from the attributes", hint="edit them by hand")
    return before + after


def _read(path: Path) -> str | None:
    try:
        return path.read_bytes().decode("utf-8", "surrogateescape")
    except FileNotFoundError:
        return None


def _write(path: Path, text: str) -> None:
    from difflens.core.whole_file import whole_file

    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as file:
        file.write(text.encode("utf-8", "surrogateescape"))
