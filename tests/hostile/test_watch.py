"""The watch over hostile tests hears what it must."""

from pathlib import Path

import pytest
from hostile.watch import DEEDS, WATCH

from difflens.models.formats import source


def test_a_reader_that_writes_is_heard(tmp_path, monkeypatch):
    good = tmp_path / "m.safetensors"
    good.write_bytes((2).to_bytes(8, "little") + b"{}")
    (tmp_path / "sources").mkdir()
    planted = tmp_path / "sources" / "planted.py"
    planted.write_text("def write(path):\n    open(path, 'w').close()\n")
    monkeypatch.setattr("hostile.watch.SOURCE", str(tmp_path))
    scope: dict[str, object] = {}
    exec(compile(planted.read_text(), str(planted), "exec"), scope)  # noqa: S102  our own text

    scope["write"](tmp_path / "x")

    assert any("open" in each for each in WATCH.seen)
    WATCH.seen.clear()


def test_what_a_test_itself_writes_is_not_heard(tmp_path: Path):
    (tmp_path / "x").write_text("mine")

    assert WATCH.seen == []
    assert "safetensors" in [entry.name for entry in source.ours()]


@pytest.mark.parametrize("event", sorted(DEEDS))
def test_every_deed_of_a_reader_is_heard(tmp_path, monkeypatch, event):
    planted = tmp_path / "sources" / "planted.py"
    monkeypatch.setattr("hostile.watch.SOURCE", str(tmp_path))
    scope: dict[str, object] = {}
    text = "import sys\ndef do(event):\n    sys.audit(event, 'a', 'b', 0)\n"
    exec(compile(text, str(planted), "exec"), scope)  # noqa: S102  our own text

    scope["do"](event)

    assert [each.partition(" ")[0] for each in WATCH.seen] == [event]
    WATCH.seen.clear()
