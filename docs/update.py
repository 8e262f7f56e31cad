"""Rewrites what the documents say of the program by asking the program: `make docs`.

    python docs/update.py [--check] [PAGE ...]

Six kinds of part are generated; everything else is written by hand.

    <!-- run: COMMAND -->       then a block: the command and what it prints
    <!-- output -->             then a block: what the python block above it prints;
                                the python blocks of a page are one program
    <!-- files: FOLDER -->      then a table: the files of a folder, up to <!-- end -->
    <!-- thresholds: NAME -->   then a table: those of a diagnosis, up to <!-- end -->
    <!-- fragments -->          then the news in changelog.d/, up to <!-- end -->
    <!-- picture: FILE: COMMAND -->
                                then nothing: FILE becomes an SVG of a terminal that shows
                                the command and what it prints, in colour

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
from html import escape
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROOMS = (
    "diffs", "versions", "training", "repair", "models", "measure", "storage", "engines", "stats",
    "core", "render", "cli", "testing", "bench", "docs",
)  # fmt: skip

_RUN = re.compile(r"(<!-- run: (.+?) -->\n```console\n)(.*?)(```\n)", re.DOTALL)
_PYTHON = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_OUTPUT = re.compile(
    r"(^```python\n((?:(?!^```).)*?)^```\n\n<!-- output -->\n```text\n)(.*?)(^```\n)",
    re.DOTALL | re.MULTILINE,
)
_THRESHOLDS = re.compile(r"(<!-- thresholds: (\S+) -->\n)(.*?)(<!-- end -->\n)", re.DOTALL)
_PICTURE = re.compile(r"<!-- picture: (\S+): (.+?) -->")
_COLUMNS, _COLUMN, _ROW = 106, 8.4, 20
_COLOURS = {"1": "#ffffff", "2": "#8b949e", "31": "#ff7b72", "32": "#7ee787", "33": "#e3b341",
            "35": "#d2a8ff", "36": "#79c0ff"}  # fmt: skip
_MARK = "=== the next block ==="
_KEPT = ("HOME", "PYTHONPATH", "TMPDIR", "DIFFLENS_", "OMP_", "OPENBLAS_")
_FILES = re.compile(r"(<!-- files: (\S+) -->\n)(.*?)(<!-- end -->\n)", re.DOTALL)
_FRAGMENTS = re.compile(r"(<!-- (fragments) -->\n)(.*?)(<!-- end -->\n)", re.DOTALL)


def pages() -> list[Path]:
    """List every document that may hold a generated part."""
    top = [ROOT / name for name in ("README.md", "CHANGELOG.md", "SECURITY.md")]
    return [*top, *sorted((ROOT / "docs").rglob("*.md"))]


def updated(text: str, folder: Path) -> str:
    """Return the document with its generated parts as they are now."""
    text = _RUN.sub(lambda found: _filled(found, console(found[2], folder)), text)
    prints = printed(text, folder) if _OUTPUT.search(text) else {}
    text = _OUTPUT.sub(lambda found: _filled(found, prints[found[2]]), text)
    text = _FILES.sub(lambda found: _filled(found, files_of(found[2])), text)
    text = _THRESHOLDS.sub(lambda found: _filled(found, thresholds_of(found[2])), text)
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


def pictures(text: str, folder: Path) -> dict[Path, str]:
    """Draw the pictures that a page asks for, each by its path."""
    return {ROOT / path: drawn(command, folder) for path, command in _PICTURE.findall(text)}


def drawn(command: str, folder: Path) -> str:
    """Draw a terminal that shows a command and what it prints, in colour."""
    printed = _run(["bash", "-c", command], folder, NO_COLOR="", FORCE_COLOR="1")
    lines = f"\x1b[1m$ {command}\x1b[0m\n{printed}".splitlines()
    rows = [row for line in lines for row in _wrapped(_coloured(line))]
    width, height = int(_COLUMN * _COLUMNS) + 40, _ROW * len(rows) + 32
    texts = (_texts(row, 32 + _ROW * at) for at, row in enumerate(rows))
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">',
            f"<title>{escape(command)}</title>",
            "<style>text { font: 14px ui-monospace, Menlo, Consolas, monospace }</style>",
            f'<rect width="{width}" height="{height}" rx="8" fill="#0d1117"/>',
            *texts,
            "</svg>\n",
        )
    )


def _coloured(line: str) -> list[tuple[str, str]]:
    """List the letters of a line, each with its colour, as the escape codes before it say."""
    letters = []
    for codes, run in re.findall(r"(?:\x1b\[([\d;]*)m)?([^\x1b]*)", line):
        colour = _COLOURS.get(codes.rpartition(";")[2], "#c9d1d9")
        letters += [(letter, colour) for letter in run]
    return letters


def _wrapped(letters: list[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    """Split a line into rows that fit the picture, at spaces where there are any."""
    while len(letters) > _COLUMNS:
        spaces = [at for at in range(4, _COLUMNS + 1) if letters[at][0] == " "]
        end = spaces[-1] if spaces else _COLUMNS
        yield letters[:end]
        letters = [(" ", "")] * 3 + letters[end:]
    yield letters


def _texts(row: list[tuple[str, str]], y: int) -> str:
    """Place each run of one colour; `textLength` keeps columns where the font is another."""
    at, texts = 0, []
    for colour, run in groupby(row, key=lambda each: each[1]):
        text = "".join(letter for letter, _ in run)
        indent = len(text) - len(text.lstrip())
        if text.strip():
            texts.append(
                f'<text x="{20 + _COLUMN * (at + indent):g}" y="{y}" fill="{colour}" '
                f'textLength="{_COLUMN * len(text.strip()):g}">{escape(text.strip())}</text>'
            )
        at += len(text)
    return "".join(texts)


def files_of(room: str) -> str:
    """List the files of a folder, each with its first line; parts with a page are left to it."""
    folder, page = ROOT / "src" / "difflens" / room, ROOT / "docs" / "rooms" / room
    parts = [path.relative_to(page).with_suffix("") for path in page.rglob("*.md")]
    lines = ["| file | what it is for |", "|---|---|"]
    for path in sorted(folder.rglob("*.py"), key=lambda path: (path.parent, path.name)):
        place = path.relative_to(folder)
        if any(place.is_relative_to(part) for part in parts):
            continue
        said = (ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "").partition("\n")[0]
        lines.append(f"| `{place}` | {said} |")
    return "\n".join(lines) + "\n"


def thresholds_of(name: str) -> str:
    """List the thresholds of a diagnosis with their defaults and reasons."""
    from difflens.training.diagnoses import diagnosis

    lines = ["| threshold | default | why |", "|---|---|---|"]
    for key, each in diagnosis[name].options["thresholds"].items():
        lines.append(f"| `{key}` | {each.value:g} | {each.why} |")
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
    """Put what the pages use there: the demo's checkpoints, and two evaluations."""
    _run([sys.executable, "-m", "difflens", "demo", "--out", str(folder)], folder, check=True)
    (folder / "tuned.safetensors").symlink_to("finetuned.safetensors")
    for name, wrong in (("before.csv", 16), ("after.csv", 8)):  # one answer in so many
        rows = (f"{each},{int(each % wrong > 0)}\n" for each in range(400))
        (folder / name).write_text("id,correct\n" + "".join(rows), "utf-8")
    return folder


def _run(command: list[str], folder: Path, *, check: bool = False, **variables: str) -> str:
    beside = str(Path(sys.executable).parent)
    paths = {"PATH": f"{beside}{os.pathsep}{os.environ['PATH']}"}
    kept = {key: value for key, value in os.environ.items() if key.startswith(_KEPT)}
    done = subprocess.run(
        command,
        cwd=folder,
        env=paths | kept | {"COLUMNS": "80", "LC_ALL": "C.UTF-8", "NO_COLOR": "1"} | variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if check and done.returncode:
        raise SystemExit(f"{command[-1]}\nended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def stale(asked: list[Path]) -> Iterator[tuple[Path, str]]:
    """Yield each of these documents and their pictures that is not current, as it should be."""
    with tempfile.TemporaryDirectory(prefix="difflens-docs-") as name:
        folder = make_models(Path(name))
        for page in asked:
            text = updated(page.read_text("utf-8"), folder)
            for path, wanted in {page: text, **pictures(text, folder)}.items():
                if not path.exists() or path.read_text("utf-8") != wanted:
                    yield path, wanted


def main() -> int:
    """Rewrite what is stale, of all pages or of those named; with --check only name it."""
    named = [ROOT / each for each in sys.argv[1:] if each != "--check"]
    found = list(stale(named or pages()))
    for page, text in found:
        print(page.relative_to(ROOT))
        if "--check" not in sys.argv:
            page.parent.mkdir(exist_ok=True)
            page.write_text(text, "utf-8")
    return 1 if found and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
