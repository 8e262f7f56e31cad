import pickle
from pathlib import Path

import pytest

from difflens.cli import main
from difflens.core.addresses import ALLOW_HTTP, address_error, locate
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


@pytest.mark.parametrize(
    "text",
    [
        "https://me:PASSWORD@host/a.bin",
        "s3://KEYPASSWORD@bucket/a",
        "http://me:PASSWORD@host/a?x=PASSWORD",
        "ftp://me:PASSWORD@host/a?PASSWORD",
        "hf://me:PASSWORD@huggingface.co/owner/name",
    ],
)
def test_a_password_in_an_address_is_refused_and_not_shown(text):
    with pytest.raises(UnreadableFile) as caught:
        locate(text)
    assert "PASSWORD" not in f"{caught.value} {caught.value.hint}"
    assert "PASSWORD" not in str(address_error(text))


def test_http_is_refused_until_it_is_allowed(monkeypatch):
    monkeypatch.delenv(ALLOW_HTTP, raising=False)
    with pytest.raises(UnreadableFile, match="not encrypted") as caught:
        locate("http://host/a.bin")
    assert "--allow-http" in caught.value.hint

    monkeypatch.setenv(ALLOW_HTTP, "1")
    assert str(locate("http://host/a.bin")) == "http://host/a.bin"


def test_a_query_is_part_of_an_address_and_of_no_other():
    one, other = locate("https://host/m/a.bin?key=SECRET"), locate("https://host/m/a.bin?key=2")

    assert one != other
    assert (str(one), one.name, one.query.text) == (
        "https://host/m/a.bin?...",
        "a.bin",
        "key=SECRET",
    )
    assert "SECRET" not in repr(one)
    assert b"SECRET" not in pickle.dumps(one)
    assert [one.parent.query, (one.parent / "b").query, one.with_name("b").query] == [None] * 3
    assert locate("s3://bucket/what?.bin").key == "what?.bin"


@pytest.mark.parametrize("text", ["s3://", "https://", "hf://", "S3://bucket/a", "HTTPS://host/a"])
def test_what_begins_as_an_address_is_not_taken_for_a_path(text):
    with pytest.raises(UnreadableFile) as caught:
        locate(text)
    assert str(caught.value).startswith(f"{text}: ")


def test_a_revision_without_a_name_is_refused():
    with pytest.raises(UnreadableFile, match="hf://owner/name@revision"):
        locate("hf://owner/name@/a.bin")


@pytest.mark.parametrize("text", ["s3://bucket/a//b", "s3://bucket/../b", "gs://bucket/a/./b"])
def test_an_address_with_an_empty_part_or_dots_is_refused(text):
    with pytest.raises(UnreadableFile, match="empty part"):
        locate(text)


def test_a_pull_request_of_the_hub_is_a_revision():
    assert locate("hf://org/model@refs/pr/3/a.bin")[1:3] == ("org/model@refs/pr/3", "a.bin")
