"""Rewrites what the documents say of the program by asking the program: `make docs`.

Four kinds of part are generated; everything else is written by hand.

    <!-- run: COMMAND -->       then a block: the command and what it prints
    <!-- output -->             then a block: what the python block above it prints;
                                the python blocks of a page are one program
    <!-- files: ROOM -->        then a table: the files of a room, up to <!-- end -->
    <!-- fragments -->          then the news in changelog.d/, up to <!-- end -->

Commands and python blocks run in a folder that holds the demo's checkpoints.
"""

# ruff: noqa: INP001, T201, S603

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROOMS = (
    "ground", "sources", "pairing", "kernel", "measure", "stats", "evidence", "analyses", "judge",
    "store", "versions", "history", "hooks", "watching", "sinks", "callbacks",
    "diagnoses", "gradients", "weights", "flow", "render", "cli", "testing", "bench", "docs",
)  # fmt: skip

_RUN = re.compile(r"(<!-- run: (.+?) -->\n```console\n)(.*?)(```\n)", re.DOTALL)
_PYTHON = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_OUTPUT = re.compile(
    r"(^```python\n((?:(?!^```).)*?)^```\n\n<!-- output -->\n```text\n)(.*?)(^```\n)",
    re.DOTALL | re.MULTILINE,
)
_MARK = "=== the next block ==="
_KEPT = ("HOME", "PYTHONPATH", "TMPDIR", "DIFFLENS_")
_FILES = re.compile(r"(<!-- files: (\S+) -->\n)(.*?)(<!-- end -->\n)", re.DOTALL)
_FRAGMENTS = re.compile(r"(<!-- (fragments) -->\n)(.*?)(<!-- end -->\n)", re.DOTALL)


def pages() -> list[Path]:
    """List every document that may hold a generated part."""
    top = [ROOT / name for name in ("README.md", "CHANGELOG.md", "SECURITY.md")]
    return [*top, *sorted((ROOT / "docs").rglob("*.md"))]


def updated(text: str, folder: Path) -> str:
    """Give the document with its generated parts as they are now."""
    text = _RUN.sub(lambda found: _filled(found, console(found[2], folder)), text)
    prints = printed(text, folder) if _OUTPUT.search(text) else {}
    text = _OUTPUT.sub(lambda found: _filled(found, prints[found[2]]), text)
    text = _FILES.sub(lambda found: _filled(found, files_of(found[2])), text)
    return _FRAGMENTS.sub(lambda found: _filled(found, news()), text)


def _filled(found: re.Match[str], body: str) -> str:
    return f"{found[1]}{body}{found[4]}"


def console(command: str, folder: Path) -> str:
    """Show a command and what it prints, on a terminal of 80 columns."""
    return f"$ {command}\n{_run(['bash', '-c', command], folder)}"


def printed(text: str, folder: Path) -> dict[str, str]:
    """Run the python blocks of a document as one program, and give what each prints."""
    blocks = _PYTHON.findall(text)
    program = f"\nprint({_MARK!r})\n".join(blocks)
    outputs = _run([sys.executable, "-W", "error", "-c", program], folder, check=True)
    return dict(zip(blocks, outputs.split(f"{_MARK}\n"), strict=True))


def files_of(room: str) -> str:
    """List a room's files, each with the line it opens with."""
    folder = ROOT / "src" / "difflens" / room
    lines = ["| file | what it is for |", "|---|---|"]
    for path in sorted(folder.glob("*.py")):
        said = (ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "").partition("\n")[0]
        lines.append(f"| `{path.name}` | {said} |")
    return "\n".join(lines) + "\n"


def news() -> str:
    """Gather the fragments of changelog.d/, grouped by room: ROOM.subject.md, a sentence each."""
    parts = []
    for room in ROOMS:
        found = sorted((ROOT / "changelog.d").glob(f"{room}.*.md"))
        if found:
            parts.append(f"\n### {room}\n\n")
            texts = (" ".join(path.read_text("utf-8").split()) for path in found)
            parts.extend(f"- {text}\n" for text in texts)
    return "".join(parts) + "\n"


def make_models(folder: Path) -> Path:
    """Put the demo's checkpoints there; `tuned` is how some pages call the fine-tune."""
    _run([sys.executable, "-m", "difflens", "demo", "--out", str(folder)], folder, check=True)
    (folder / "tuned.safetensors").symlink_to("finetuned.safetensors")
    return folder


def _run(command: list[str], folder: Path, *, check: bool = False) -> str:
    beside = str(Path(sys.executable).parent)
    paths = {"PATH": f"{beside}{os.pathsep}{os.environ['PATH']}"}
    kept = {key: value for key, value in os.environ.items() if key.startswith(_KEPT)}
    done = subprocess.run(
        command,
        cwd=folder,
        env=paths | kept | {"COLUMNS": "80", "LC_ALL": "C.UTF-8", "NO_COLOR": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if check and done.returncode:
        raise SystemExit(f"{command[-1]}\nended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def stale() -> Iterator[tuple[Path, str]]:
    """Yield every document that is not current, with what it should say."""
    with tempfile.TemporaryDirectory(prefix="difflens-docs-") as name:
        folder = make_models(Path(name))
        for page in pages():
            text = updated(page.read_text("utf-8"), folder)
            if text != page.read_text("utf-8"):
                yield page, text


def main() -> int:
    """Rewrite what is stale; with --check only name it."""
    found = list(stale())
    for page, text in found:
        print(page.relative_to(ROOT))
        if "--check" not in sys.argv:
            page.write_text(text, "utf-8")
    return 1 if found and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
