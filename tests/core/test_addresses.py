from pathlib import Path

import pytest

from difflens.cli import main
from difflens.core.addresses import address_error, locate
from difflens.core.errors import UnreadableFile
from difflens.models.formats import open_model

ADDRESSES = {
    "hf://org/model": ("hf", "org/model", ""),
    "hf://gpt2": ("hf", "gpt2", ""),
    "hf://org/model@v2/a.gguf": ("hf", "org/model@v2", "a.gguf"),
    "https://example.org:81/a/b.bin": ("https", "example.org:81", "a/b.bin"),
    "s3://bucket/a b.gguf": ("s3", "bucket", "a b.gguf"),
    "gs://bucket/folder/": ("gs", "bucket", "folder"),
}


def run(*arguments, capsys):
    """Run the command; return its exit code and what it wrote to stderr."""
    with pytest.raises(SystemExit) as caught:
        main(list(arguments))
    return caught.value.code, capsys.readouterr().err


@pytest.mark.parametrize(("text", "parts"), ADDRESSES.items())
def test_an_address_has_a_scheme_a_root_and_a_key(text, parts):
    address = locate(text)

    assert address == (*parts, None)
    assert str(address) == text.rstrip("/")


def test_an_address_is_walked_as_a_path_is():
    folder = locate("s3://bucket/models/base")

    assert (folder / "a.tar.gz").suffix == ".gz"
    assert (folder / "a.tar.gz").parent == folder
    assert str(folder.parent.parent) == "s3://bucket"
    assert str((folder / "a.bin").with_name("b.bin")) == "s3://bucket/models/base/b.bin"
    assert (folder / "a.bin").with_suffix("").name == "a"


def test_a_scheme_that_nobody_knows_is_refused():
    with pytest.raises(UnreadableFile, match="no storage is called ftp"):
        locate("ftp://host/a")


@pytest.mark.parametrize("path", ["a.gguf", "C:/models/a.gguf", "c:\\a", "a:b", "", "://"])
def test_a_local_path_is_no_address(path):
    assert address_error(path) is None
    assert locate(path) == Path(path)


@pytest.mark.parametrize(
    "arguments",
    [
        ("diagnose", "gs://bucket/run"),
        ("gradients", "s3://bucket/run"),
        ("runs", "s3://bucket/runs"),
    ],
)
def test_every_command_answers_an_address_with_one_hint_and_exit_code_2(arguments, capsys):
    code, errors = run(*arguments, capsys=capsys)

    first, hint, *more = errors.splitlines()
    assert (code, more) == (2, [])
    assert first.startswith(f"difflens: error: {arguments[1]}: this command reads local files only")
    assert hint.startswith("hint: download it first")


def test_control_characters_in_an_address_are_not_printed(capsys):
    code, errors = run("diagnose", "s3://bucket/\x1b[31mred\nline", capsys=capsys)

    assert code == 2
    assert "\x1b" not in errors
    assert len(errors.splitlines()) == 2


def test_a_folder_that_is_called_like_an_address_is_opened(tmp_path, monkeypatch):
    (tmp_path / "hf:" / "org").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)

    with pytest.raises(Exception, match="no model"):
        open_model("hf://org")
