"""What goes where, in which colours, and what the shell sees."""

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from cli.command import assert_refused, run
from models.small import arrays, write

import difflens as package
from difflens.measure import kernel

A, B = "left.safetensors", "right.safetensors"
SCRIPT = Path(sys.executable).parent / "difflens"


@pytest.fixture(autouse=True)
def _pair(tmp_path):
    write(tmp_path / A, arrays(w=[1, 2]))
    write(tmp_path / B, arrays(w=[1, 3]))


class TestColours:
    def colored(self, outcome) -> bool:
        return "\x1b[" in outcome.out

    def test_no_terminal_no_colour(self, difflens):
        assert not self.colored(difflens(A, B))

    def test_always_is_always(self, difflens, monkeypatch):
        monkeypatch.setenv("NO_COLOR", "1")

        assert self.colored(difflens(A, B, "--color", "always"))
        assert self.colored(difflens(A, B, "--color=always"))

    @pytest.mark.parametrize("option", [("--no-color",), ("--color", "never")])
    def test_never_is_never(self, difflens, monkeypatch, option):
        monkeypatch.setenv("FORCE_COLOR", "1")

        assert not self.colored(difflens(A, B, *option))

    def test_the_environment_may_force_it(self, difflens, monkeypatch):
        monkeypatch.setenv("FORCE_COLOR", "1")
        assert self.colored(difflens(A, B))

        monkeypatch.setenv("NO_COLOR", "1")
        assert not self.colored(difflens(A, B))

    def test_an_empty_wish_is_none(self, difflens, monkeypatch):
        monkeypatch.setenv("FORCE_COLOR", "")

        assert not self.colored(difflens(A, B))

    def test_colour_changes_no_word(self, difflens):
        painted = difflens(A, B, "--color", "always").out

        assert re.sub(r"\x1b\[[0-9;]*m", "", painted) == difflens(A, B).out

    @pytest.mark.parametrize("name", ["json", "full-json", "yaml", "csv", "html"])
    def test_only_text_is_coloured(self, difflens, name):
        assert not self.colored(difflens(A, B, "-o", name, "--color", "always"))

    def test_other_words_are_refused(self, difflens):
        assert_refused(difflens(A, B, "--color", "sometimes"), "'sometimes' is not one of")

    @pytest.mark.parametrize(
        ("environment", "expected"),
        [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)],
    )
    def test_on_a_terminal_colour_is_the_default(self, tmp_path, environment, expected):
        bare = {"PATH": os.environ["PATH"], "TERM": "xterm", **environment}

        assert ("\x1b[" in on_a_terminal(tmp_path, bare)) is expected


def on_a_terminal(folder: Path, environment: dict[str, str]) -> str:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "difflens", A, B], stdout=theirs, cwd=folder, env=environment
    )
    os.close(theirs)
    process.wait(timeout=30)
    seen = os.read(ours, 10_000).decode()
    os.close(ours)
    return seen


class TestOut:
    def test_the_file_holds_what_stdout_would(self, difflens, tmp_path):
        for name in ("cli", "json", "full-json", "yaml", "csv", "html"):
            alone = difflens(A, B, "-o", name)
            written = difflens(A, B, "-o", name, "--out", "report")

            assert (written.code, written.out, written.err) == (1, "", "")
            assert (tmp_path / "report").read_text() == alone.out

    def test_an_older_file_is_replaced_whole_or_kept(self, difflens, tmp_path, monkeypatch):
        (tmp_path / "report").write_text("old")

        def full(_descriptor: int) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr("os.fsync", full)
            assert_refused(difflens(A, B, "--out", "report"), "report: no space left on device")
        assert (tmp_path / "report").read_text() == "old"
        assert sorted(path.name for path in tmp_path.iterdir()) == [A, "report", B]
        assert difflens(A, B, "--out", "report").code == 1
        assert (tmp_path / "report").read_text().startswith("~ w")

    def test_trouble_with_a_model_leaves_no_file(self, difflens, tmp_path):
        assert_refused(difflens(A, "nowhere", "--out", "report"), "nowhere")
        assert not (tmp_path / "report").exists()

    def test_its_rights_are_those_of_any_new_file(self, difflens, tmp_path):
        old = os.umask(0o027)
        try:
            difflens(A, B, "--out", "report")
        finally:
            os.umask(old)

        assert (tmp_path / "report").stat().st_mode & 0o777 == 0o640

    def test_a_link_stays_a_link(self, difflens, tmp_path):
        (tmp_path / "target").write_text("old")
        (tmp_path / "link").symlink_to("target")

        difflens(A, B, "--out", "link")

        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "target").read_text().startswith("~ w")

    @pytest.mark.parametrize("place", ["file", "pipe"])
    def test_stdout_may_be_named(self, tmp_path, place):
        if place == "pipe":
            found = run(A, B, "--out", "/dev/stdout", cwd=tmp_path).out
        else:
            with (tmp_path / "file").open("w") as stream:
                run(A, B, "--out", "/dev/stdout", cwd=tmp_path, stdout=stream)
            found = (tmp_path / "file").read_text()

        assert found.startswith("~ w: ")
        assert Path("/dev/stdout").is_symlink()

    def test_a_file_is_not_coloured_unless_asked(self, difflens, tmp_path):
        difflens(A, B, "--out", "report", "--color", "always")

        assert "\x1b[" in (tmp_path / "report").read_text()

    def test_the_models_are_not_written_over_before_they_are_read(self, difflens, tmp_path):
        assert difflens(A, B, "--out", A).code == 1
        assert (tmp_path / A).read_text().startswith("~ w: ")


class TestStarting:
    def test_python_m_and_the_script_are_the_same(self, tmp_path):
        script = subprocess.run(
            [SCRIPT, A, B], cwd=tmp_path, capture_output=True, text=True, check=False
        )

        outcome = run(A, B, cwd=tmp_path)
        assert (outcome.code, outcome.out) == (script.returncode, script.stdout)
        assert outcome.code == 1

    def test_the_version_tells_the_kernel(self, difflens):
        said = difflens("--version")

        assert said.code == 0
        assert said.out.startswith(f"difflens {package.__version__} (")
        assert kernel.NAME in said.out.lower()

    def test_without_a_compiler_it_says_so(self, tmp_path):
        said = run("--version", env={**os.environ, "DIFFLENS_KERNEL": "numpy"}, cwd=tmp_path)

        assert "NumPy kernel" in said.out

    @pytest.mark.parametrize("arguments", [(), ("--help",), ("-h",)])
    def test_help_names_every_command(self, difflens, arguments):
        outcome = difflens(*arguments)

        assert (outcome.code, outcome.err) == (0, "")
        for name in ("check", "demo", "diff", "list", "show"):
            assert f"\n  {name} " in outcome.out

    @pytest.mark.parametrize("name", ["check", "demo", "diff", "list", "show"])
    def test_every_command_has_help(self, difflens, name):
        outcome = difflens(name, "--help")

        assert outcome.code == 0
        assert outcome.out.startswith(f"Usage: difflens {name} ")

    def test_help_imports_neither_numpy_nor_a_room(self):
        code = "import sys; from difflens import cli; cli._run(['--help']); print(*sys.modules)"

        ended = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )

        loaded = set(ended.stdout.splitlines()[-1].split())
        assert not loaded & {"numpy", "msgspec", "difflens.diffs.story", "rich", "jinja2", "scipy"}


class TestCompletion:
    def complete(self, *words: str) -> list[str]:
        environment = {
            **os.environ,
            "_DIFFLENS_COMPLETE": "bash_complete",
            "COMP_WORDS": " ".join(["difflens", *words]),
            "COMP_CWORD": str(len(words)),
        }
        ended = subprocess.run(
            [SCRIPT], env=environment, capture_output=True, text=True, check=False
        )
        assert ended.stderr == ""
        return ended.stdout.split()

    @pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
    def test_every_shell_gets_its_script(self, shell):
        environment = {**os.environ, "_DIFFLENS_COMPLETE": f"{shell}_source"}

        ended = subprocess.run(
            [SCRIPT], env=environment, capture_output=True, text=True, check=True
        )

        assert f"_DIFFLENS_COMPLETE={shell}_complete" in ended.stdout

    def test_commands_and_files_are_offered_first(self):
        assert self.complete("sh") == ["file,sh", "plain,show"]
        assert self.complete("model") == ["file,model"]

    def test_options_of_a_command(self):
        assert self.complete("diff", "--sh") == ["plain,--shape-only"]

    def test_options_of_diff_where_no_command_is_named(self):
        assert self.complete("a.safetensors", "b.safetensors", "--shape") == ["plain,--shape-only"]

    @pytest.mark.parametrize(
        "words", [("diff", "x"), ("a", "x"), ("check", "a", "x"), ("show", "x")]
    )
    def test_files_where_a_model_is_wanted(self, words):
        assert self.complete(*words) == ["file,x"]

    def test_choices(self):
        assert self.complete("list", "f") == ["plain,formats"]
        assert self.complete("a", "b", "--color", "a") == ["plain,auto", "plain,always"]
