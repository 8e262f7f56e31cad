import pytest

from difflens.cli import main
from difflens.core.addresses import address_error
from difflens.core.errors import UnreadableFile
from difflens.models.formats import open_model

COMMANDS = {
    "hf://org/model": "hf download org/model --local-dir model",
    "hf://gpt2": "hf download gpt2 --local-dir gpt2",
    "hf://org/model@v2/a.gguf": "hf download org/model a.gguf --revision v2 --local-dir model",
    "https://huggingface.co/org/model": "hf download org/model --local-dir model",
    "https://hf.co/o/m/resolve/main/x/y.bin": "hf download o/m x/y.bin --local-dir m",
    "https://example.org/a.safetensors": "curl -LO https://example.org/a.safetensors",
    "s3://bucket/key": "aws s3 cp --recursive s3://bucket/key key",
    "s3://bucket/a b.gguf": "aws s3 cp 's3://bucket/a b.gguf' .",
    "gs://bucket/a.gguf": "gcloud storage cp gs://bucket/a.gguf .",
    "gs://bucket/folder/": "gcloud storage cp --recursive gs://bucket/folder .",
}


def run(*arguments, capsys):
    """Run the command; return its exit code and what it wrote to stderr."""
    with pytest.raises(SystemExit) as caught:
        main(list(arguments))
    return caught.value.code, capsys.readouterr().err


@pytest.mark.parametrize(("address", "command"), COMMANDS.items())
def test_the_hint_names_the_command_that_downloads(address, command):
    error = address_error(address)

    assert error is not None
    assert error.hint == f"download it first: {command}"


@pytest.mark.parametrize("path", ["a.gguf", "C:/models/a.gguf", "c:\\a", "a:b", "", "://"])
def test_a_local_path_is_no_address(path):
    assert address_error(path) is None


@pytest.mark.parametrize(
    "arguments",
    [
        ("show", "hf://org/model"),
        ("diff", "s3://bucket/a.gguf", "b.gguf"),
        ("check", "https://example.org/a.bin"),
        ("diagnose", "gs://bucket/run"),
        ("gradients", "s3://bucket/run"),
        ("runs", "s3://bucket/runs"),
    ],
)
def test_every_command_answers_an_address_with_one_hint_and_exit_code_2(arguments, capsys):
    code, errors = run(*arguments, capsys=capsys)

    first, hint, *more = errors.splitlines()
    assert (code, more) == (2, [])
    assert first.startswith(f"difflens: error: {arguments[1]}: remote files cannot be read yet")
    assert hint.startswith("hint: download it first: ")


def test_control_characters_in_an_address_are_not_printed(capsys):
    code, errors = run("show", "s3://bucket/\x1b[31mred\nline", capsys=capsys)

    assert code == 2
    assert "\x1b" not in errors
    assert len(errors.splitlines()) == 2


def test_a_folder_that_is_called_like_an_address_is_opened(tmp_path, monkeypatch):
    (tmp_path / "hf:" / "org").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)

    with pytest.raises(UnreadableFile, match="remote files"):
        open_model("hf://org/model")
    with pytest.raises(Exception, match="no model"):
        open_model("hf://org")
