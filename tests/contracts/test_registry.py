"""The one registry: names answer, strangers are found, and a broken stranger harms nobody."""

from pathlib import Path

import pytest
from contracts.plugins import REGISTRIES, ROOT, run

from difflens.core.errors import DifflensError, UnknownName
from difflens.core.registry import Registry
from difflens.render.diffs import renderer

STRANGER = '''"""A stranger's renderer."""

from difflens.render.diffs import renderer


@renderer(suffix=".txt")
def {name}(report, view):
    """Counts the tensors."""
    return f"{{len(report.tensors)}} tensors\\n"
'''


@pytest.mark.parametrize("room", REGISTRIES)
def test_an_unknown_name_is_answered_with_the_known_ones(room):
    registry, _ = REGISTRIES[room]

    with pytest.raises(UnknownName) as caught:
        registry["no such thing"]

    assert caught.value.reason == f"no {registry.kind} is called 'no such thing'"
    assert all(name in caught.value.hint for name in registry.names())


def test_a_name_nearly_right_is_answered_with_the_nearest():
    with pytest.raises(UnknownName) as caught:
        renderer["full-jsom"]

    assert caught.value.hint == "did you mean full-json?"


@pytest.mark.parametrize("room", REGISTRIES)
def test_every_plug_in_is_found_by_its_name_in_either_spelling(room):
    registry, _ = REGISTRIES[room]

    for entry in registry:
        assert registry[entry.name] is registry[entry.name.replace("-", "_")]


@pytest.mark.parametrize("room", REGISTRIES)
def test_names_are_the_stems_of_files(room):
    registry, _ = REGISTRIES[room]
    stems = {path.stem for path in (ROOT / "src" / "difflens" / room).glob("*.py")}

    assert {entry.name.replace("-", "_") for entry in registry.ours()} <= stems


def site(folder: Path, **modules: str) -> Path:
    """Install a distribution by hand: modules, and entry points that name them as renderers."""
    about = folder / "stranger-1.0.dist-info"
    package = folder / "stranger"
    about.mkdir(parents=True)
    package.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: stranger\nVersion: 1.0\n")
    points = "\n".join(f"{name} = stranger.{name}" for name in modules)
    (about / "entry_points.txt").write_text(f"[difflens.render]\n{points}\n")
    (package / "__init__.py").write_text("")
    for name, text in modules.items():
        (package / f"{name}.py").write_text(text)
    return folder


def test_an_installed_strangers_plug_in_is_found(tmp_path):
    path = site(tmp_path / "site", counted=STRANGER.format(name="counted"))

    listed = run("-m", "difflens", "list", "renderers", cwd=tmp_path, path=path)

    assert listed.returncode == 0
    assert ["counted", "Counts", "the", "tensors."] in map(str.split, listed.stdout.splitlines())
    assert listed.stderr == ""


def test_a_strangers_broken_plug_in_is_named_in_a_warning_and_left_out(tmp_path):
    broken = "raise RuntimeError('the moon is wrong')"
    path = site(tmp_path / "site", counted=STRANGER.format(name="counted"), broken=broken)

    listed = run("-m", "difflens", "list", "renderers", cwd=tmp_path, path=path)

    assert listed.returncode == 0
    assert "difflens: warning: renderer 'broken' was left out: the moon is wrong" in listed.stderr
    assert "counted" in listed.stdout
    assert "broken" not in listed.stdout


def test_a_stranger_cannot_take_the_place_of_one_of_ours(tmp_path):
    path = site(tmp_path / "site", csv=STRANGER.format(name="csv"))

    listed = run("-m", "difflens", "list", "renderers", cwd=tmp_path, path=path)

    assert "'csv' is there already, in difflens.render.diffs.csv" in listed.stderr
    assert "one column a figure" in listed.stdout


def test_a_broken_plug_in_of_ours_is_a_bug_and_raises(tmp_path, monkeypatch):
    room = tmp_path / "aroom"
    room.mkdir()
    (room / "__init__.py").write_text("")
    (room / "broken.py").write_text("raise RuntimeError('ours')")
    monkeypatch.syspath_prepend(str(tmp_path))

    with pytest.raises(RuntimeError, match="ours"):
        list(Registry("thing", "aroom"))


def test_a_name_registered_twice_from_two_places_is_refused():
    registry: Registry = Registry("thing", "nowhere")

    def first():
        """First."""

    def second():
        """Second."""

    first.__module__, second.__module__ = "one.same", "two.same"
    registry()(first)
    with pytest.raises(DifflensError, match=r"is there already, in one\.same"):
        registry()(second)


def test_a_module_loaded_again_replaces_itself():
    registry: Registry = Registry("thing", "nowhere")

    def first():
        """First."""

    first.__module__ = "one.same"
    registry()(first)
    registry()(first)
    assert registry._entries["same"].plugin is first
