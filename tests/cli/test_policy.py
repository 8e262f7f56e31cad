"""`difflens policy`: what it prints is read back as the defaults."""

import tomllib

from models.small import arrays, write

from difflens.diffs.analyses import analysis


def test_every_threshold_is_printed_with_its_reason(difflens):
    said = difflens("policy")

    assert (said.code, said.err) == (0, "")
    found = tomllib.loads(said.out)
    for entry in analysis:
        for name, threshold in entry.options.get("thresholds", {}).items():
            assert name in (found[entry.name.replace("-", "_")] if threshold.value is not None
                            else said.out)  # fmt: skip
            assert " ".join(threshold.why.split())[:40] in said.out


def test_what_it_prints_changes_nothing(difflens, tmp_path):
    for name, values in (("left", [1, 2]), ("right", [1, 3])):
        write(tmp_path / f"{name}.safetensors", arrays(w=values))
    pair = ("left.safetensors", "right.safetensors", "--change-summary", "-o", "json")
    assert difflens("policy", "--out", "policy.toml").code == 0

    plain, set_anew = difflens(*pair), difflens(*pair, "--policy", "policy.toml")

    assert set_anew.code == 1
    assert plain.out == set_anew.out.replace('"source": "user"', '"source": "default"')
