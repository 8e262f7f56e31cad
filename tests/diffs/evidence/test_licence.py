"""Licences: the card's front matter, or the first line of the text."""

import pytest
from diffs.evidence.refusals import refuses_bad_files

from difflens.diffs.evidence.discovery import licence

CARD = "---\nlanguage: en\nlicense: apache-2.0\ntags:\n- x\n---\n# A model\nlicense: mit\n"


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("README.md", CARD, "apache-2.0"),
        ("README.md", CARD.replace("\n", "\r\n"), "apache-2.0"),
        ("README.md", CARD.replace("apache-2.0", "'mit'  # ours"), "mit"),
        ("README.md", "# A model\nlicense: mit\n", None),
        ("README.md", "---\ntags: x\n---\nlicense: mit\n", None),
        ("LICENSE", "\n\n   Apache License\n   Version 2.0\n", "Apache License"),
        ("LICENSE", "\x1b[31mred\n", "\\x1b[31mred"),
        ("LICENSE", "x" * 300, "x" * 80 + "…(+220 characters)"),
    ],
)
def test_a_licence_is_told_by_its_own_words(tmp_path, name, text, expected):
    (tmp_path / name).write_text(text, "utf-8", newline="")

    assert licence(tmp_path / name) == expected


def test_files_that_are_none_are_refused(tmp_path):
    refuses_bad_files(licence, tmp_path, "", any_text=True)
