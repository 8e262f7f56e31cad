"""Policies: what they name must exist and be of its kind; what is printed is read back."""

import tomllib
from typing import Any

import pytest
from diffs.evidence.refusals import mutated, refused, refuses_bad_files, survives_mutants
from hypothesis import given
from hypothesis import strategies as st

from difflens.core.policy import MetricRule, Policy, Threshold
from difflens.diffs.analyses import analysis
from difflens.diffs.evidence.policy import Known, policy, policy_text

KNOWN = Known(
    {
        "memory_analysis": {
            "tokens": Threshold(2048, "how many"),
            "share": Threshold(0.5, "a part"),
            "strict": Threshold(False, "a switch"),
            "mode": Threshold("limit", "a word"),
            "sizes": Threshold([8, 16], "a list"),
            "budget": Threshold(None, "nothing unless set"),
        },
        "change_summary": {},
    },
    ["memory", "quality"],
)


def read(path, limits=None):
    return policy(path, KNOWN, limits)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "policy.toml"


def test_a_policy_says_what_it_sets_and_nothing_else(file):
    file.write_text(
        '[memory-analysis]\nshare = 1\nsizes = [4]\nbudget = 8e9\n\n[metrics."f 1"]\n'
        'direction = "higher"\nmargin = 1\n\n[gates]\nrequired = ["quality", "quality"]\n'
    )

    assert read(file) == Policy(
        {"memory_analysis": {"share": 1.0, "sizes": [4], "budget": 8e9}},
        {"f 1": MetricRule("higher", 1.0)},
        ("quality",),
    )


def test_a_default_of_nothing_takes_lists_and_tables(file):
    file.write_text('[memory_analysis]\nbudget = {"layer1.*" = [56, 56], fc = 1}\n')

    found = read(file).threshold("memory_analysis", "budget", None)
    assert found == {"layer1.*": [56, 56], "fc": 1}


def test_a_file_of_comments_sets_nothing(file):
    file.write_text("# nothing\n")

    assert read(file) == Policy()


BAD = {
    "[memory_analysis": ("not TOML: expected ']' at the end of a table declaration at ", ""),
    "share = 0.5\n": ("line 1: 'share' stands in no section", ""),
    "[memori_analysis]\nshare = 1\n": (
        "line 1: no analysis is called 'memori_analysis'",
        "did you mean memory_analysis?",
    ),
    "\n[memory_analysis]\n# x\nshares = 1\n": (
        "line 4: no threshold of memory_analysis is called 'shares'",
        "did you mean share?",
    ),
    '[memory_analysis]\nshare = "half"\n': (
        "line 2: share is the text 'half', a number is wanted",
        "",
    ),
    "[memory_analysis]\nshare = true\n": ("line 2: share is true or false, a number is wanted", ""),
    "[memory_analysis]\nshare = nan\n": ("line 2: share is nan, a finite number is wanted", ""),
    "[memory_analysis]\nbudget = -inf\n": ("line 2: budget is -inf, a finite number is wanted", ""),
    "[memory_analysis]\ntokens = 1.5\n": ("line 2: tokens is a number, a whole number", ""),
    "[memory_analysis]\nstrict = 1\n": ("line 2: strict is a whole number, true or false", ""),
    "[memory_analysis]\nmode = 1\n": ("line 2: mode is a whole number, text is wanted", ""),
    "[memory_analysis]\nsizes = 4\n": ("line 2: sizes is a whole number, a list is wanted", ""),
    '[memory_analysis]\nsizes = ["a"]\n': ("line 2: sizes is the text 'a', a whole number", ""),
    "[memory_analysis]\nbudget = 2024-01-01\n": ("line 2: budget is a date, a number, text", ""),
    f"[memory_analysis]\nshare = 1{'0' * 400}\n": ("line 2: share is too large", ""),
    "[metrics]\naccuracy = 1\n": ("line 2: [metrics] holds 'accuracy', a section", ""),
    '[metrics.a]\ndirection = "up"\n': ("line 2: direction is 'up', higher or lower is wanted", ""),
    "[metrics.a]\nmargin = -0.1\n": ("line 2: margin is -0.1, below zero", ""),
    "[metrics.a]\nmargins = 1\n": (
        "line 2: no key of a metric is called 'margins'",
        "did you mean margin?",
    ),
    '[gates]\nrequired = "quality"\n': ("line 2: required is the text 'quality', a list", ""),
    "[gates]\nrequired = [1]\n": ("line 2: required is a whole number, text is wanted", ""),
    '[gates]\nrequired = ["qualty"]\n': (
        "line 2: no gate is called 'qualty'",
        "did you mean quality?",
    ),
    "[gates]\nneeded = []\n": ("line 2: no key of [gates] is called 'needed'", "known: required"),
    '["\\u001b[1m"]\na = 1\n': ("no analysis is called '\\x1b[1m'", "known: change_summary"),
    "a = " + "[" * 5000: ("not TOML", ""),
}


@pytest.mark.parametrize("text", BAD, ids=lambda text: text[:40])
def test_a_wrong_policy_earns_its_sentence(file, text):
    file.write_text(text, "utf-8")
    error = refused(read, file)

    assert error.reason.startswith(BAD[text][0])
    assert error.hint.startswith(BAD[text][1])


def test_files_that_are_none_are_refused(tmp_path):
    refuses_bad_files(read, tmp_path, ".toml")


@mutated
def test_mutants_do_no_harm(file, count):
    file.write_text('[memory_analysis]\nshare = 0.25\nmode = "point"\n[metrics.a]\nmargin = 1\n')

    survives_mutants(read, file, count)


def defaults(known: Known) -> dict[str, Any]:
    return {
        analysis: {name: each.value for name, each in body.items() if each.value is not None}
        for analysis, body in known.thresholds.items()
        if body
    }


def plain(value):
    """Return tuples as the lists TOML makes of them."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    return list(map(plain, value)) if isinstance(value, list | tuple) else value


@pytest.mark.parametrize("known", [KNOWN, Known.of(analysis)], ids=["made up", "ours"])
def test_what_is_printed_is_read_back_as_the_defaults(file, known):
    file.write_text(policy_text(known), "utf-8")
    found = policy(file, known)

    assert found.thresholds == plain(defaults(known))
    assert (found.metrics, found.required) == ({}, None)


def test_the_examples_of_metrics_and_gates_are_read_once_uncommented(file):
    text = policy_text(KNOWN)
    examples = text[text.index("# [metrics") :].replace("# [", "[").splitlines()
    lines = [line.removeprefix("# ") for line in examples if "=" in line or line.startswith("[")]
    file.write_text("\n".join(lines))
    found = read(file)

    assert found.metrics == {"accuracy": MetricRule("higher", 0.01, 0.9)}
    assert found.required == ("memory", "quality")


def test_every_threshold_stands_there_with_its_reason():
    text = policy_text(KNOWN)

    assert "# how many\ntokens = 2048\n" in text
    assert "# nothing unless set\n# budget =\n" in text


VALUES = st.recursive(
    st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("ab c."), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(VALUES)
def test_every_value_is_written_as_toml_writes_it(value):
    text = policy_text(Known({"a": {"b": Threshold(value, "why")}}))

    assert tomllib.loads(text) == {"a": {"b": value}}
