"""`difflens diff`: every option, every exit code."""

import csv
import io
import json
import os
import re
import struct

import numpy as np
import pytest
import yaml
from cli.command import assert_refused
from hostile.files import INDEX
from models.small import Encoded, arrays, tensor, write

A, B = "left.safetensors", "right.safetensors"
RENDERERS = ("cli", "json", "full-json", "yaml", "csv", "html")


@pytest.fixture
def pair(tmp_path):
    """Return a way to write both sides into the working folder."""

    def make(
        left: dict[str, Encoded], right: dict[str, Encoded], steps: tuple[str, ...] = ("", "")
    ) -> None:
        for path, model, step in ((A, left, steps[0]), (B, right, steps[1])):
            write(tmp_path / path, model, {"step": step} if step else None)

    return make


@pytest.fixture
def changed(pair):
    pair(arrays(w=[[1, 2], [3, 4]], b=[0, 1]), arrays(w=[[1, 2], [3, 6]], b=[0, 1]))


def bits(*values: int) -> Encoded:
    return "F32", (len(values),), struct.pack(f"<{len(values)}I", *values)


ONE = arrays(w=[1, 2])
EXIT_CODES = {
    "equal": (ONE, ONE, 0, "identical: the one tensor holds the same bits"),
    "equal with NaN": ({"w": bits(0x7FC00001)}, {"w": bits(0x7FC00001)}, 0, "identical"),
    "added": (ONE, ONE | arrays(x=[1]), 1, "+ x: F32 [1]"),
    "removed": (ONE | arrays(x=[1]), ONE, 1, "- x: F32 [1]"),
    "reshaped": (arrays(w=[[1, 2]]), arrays(w=[1, 2]), 1, "! w: shape=[1, 2] -> [2]"),
    "cast, values equal": (ONE, {"w": tensor([1, 2], "BF16")}, 1, "! w: dtype=F32 -> BF16"),
    "changed": (ONE, arrays(w=[1, 3]), 1, "~ w: relative_l2=4.5e-01 max_abs=1.0e+00 changed=50%"),
    "signed zero": (arrays(w=[0.0]), arrays(w=[-0.0]), 1, "~ w: "),
    "NaN payload": ({"w": bits(0x7FC00001)}, {"w": bits(0x7FC00002)}, 1, "~ w: "),
    "one prefix": (arrays(**{"module.w": [1]}), arrays(w=[1]), 0, "> module.w -> w (prefix"),
    "prefix and change": (arrays(**{"module.w": [1]}), arrays(w=[2]), 1, "> module.w -> w"),
    "tied head": (
        arrays(**{"embed_tokens.weight": [[1, 2]], "lm_head.weight": [[1, 2]]}),
        arrays(**{"embed_tokens.weight": [[1, 2]]}),
        0,
        "= lm_head.weight: tied to embed_tokens.weight",
    ),
    "head that was not tied": (
        arrays(**{"embed_tokens.weight": [[1, 2]], "lm_head.weight": [[1, 3]]}),
        arrays(**{"embed_tokens.weight": [[1, 2]]}),
        1,
        "- lm_head.weight: F32 [1, 2]",
    ),
    "cannot be compared": (
        {"w": ("C64", (1,), bytes(8))}, {"w": tensor([0])}, 1, "? w: not compared: C64 against F32",
    ),
    "packed floats that differ": (
        {"w": ("F6_E2M3", (4,), b"abc")}, {"w": ("F6_E2M3", (4,), b"abd")}, 1, "? w: not compared",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EXIT_CODES)
def test_the_exit_code_says_whether_something_differs(difflens, pair, name):
    left, right, code, line = EXIT_CODES[name]
    pair(left, right)

    outcome = difflens(A, B)

    assert (outcome.code, outcome.err) == (code, "")
    assert line in outcome.out


def test_metadata_alone_is_told_and_is_no_difference(difflens, pair):
    pair(ONE, ONE, steps=("1", "2"))

    outcome = difflens(A, B)

    assert outcome.code == 0
    assert '* metadata step: "1" -> "2"' in outcome.lines
    assert outcome.lines[-1] == "equal: every value is the same; 1 metadata key changed"


def test_configurations_of_two_folders_are_rows_of_metadata_and_a_difference(difflens, tmp_path):
    for side, width in (("l", 8), ("r", 16)):
        write(tmp_path / side / "model.safetensors", ONE)
        (tmp_path / side / "config.json").write_text(json.dumps({"width": width, "act": "gelu"}))
        (tmp_path / side / "tokenizer.json").write_text(f"{width}")

    outcome = difflens("l", "r", "-o", "json")

    keys = [row["MetadataChanged"][0] for row in json.loads(outcome.out)]
    assert outcome.code == 1
    assert keys == ["config.json: width", "tokenizer"]


class TestWordsInFront:
    @pytest.mark.usefixtures("changed")
    def test_diff_is_the_command_where_none_is_named(self, difflens):
        assert difflens(A, B) == difflens("diff", A, B)

    @pytest.mark.parametrize(
        "options", [("-o", "json"), ("--path", "list"), ("--color", "never"), ("--stats",)]
    )
    @pytest.mark.usefixtures("changed")
    def test_options_may_stand_before_the_files(self, difflens, options):
        assert difflens(*options, A, B) == difflens("diff", A, B, *options)

    @pytest.mark.usefixtures("changed")
    def test_a_file_called_like_a_command_can_be_named_by_its_path(self, difflens, tmp_path):
        (tmp_path / "show").hardlink_to(tmp_path / A)

        assert difflens("./show", B).code == 1
        assert difflens("diff", "show", B).code == 1

    @pytest.mark.usefixtures("changed")
    def test_a_name_that_begins_with_a_dash_comes_after_two(self, difflens, tmp_path):
        (tmp_path / "-q").hardlink_to(tmp_path / A)

        assert difflens("diff", "--", "-q", B).out.startswith("~ w: ")

    @pytest.mark.usefixtures("changed")
    def test_one_file_is_one_too_few(self, difflens):
        assert_refused(difflens(A), "RIGHT is missing")

    @pytest.mark.usefixtures("changed")
    def test_three_are_one_too_many(self, difflens):
        assert_refused(difflens(A, B, A), "unexpected extra argument")

    @pytest.mark.usefixtures("changed")
    def test_an_option_nobody_knows(self, difflens):
        assert_refused(difflens(A, B, "--nope"), "no such option", "difflens diff --help")

    @pytest.mark.usefixtures("changed")
    def test_an_empty_name(self, difflens):
        assert_refused(difflens("", B), "the path is empty")


class TestStats:
    @pytest.mark.usefixtures("changed")
    def test_one_line_a_changed_tensor_with_four_decimals_and_population_std(self, difflens):
        assert difflens(A, B, "--stats").lines[0] == "~ w: mean=2.5000->3.0000, std=1.1180->1.8708"

    def test_where_four_decimals_would_print_alike_there_are_four_digits(self, difflens, pair):
        pair(arrays(w=[0.00001, 0.00001]), arrays(w=[0.00002, 0.00002]))

        assert difflens(A, B, "--stats").lines[0] == "~ w: mean=1e-05->2e-05, std=0.0000->0.0000"

    def test_a_cast_with_moved_values_tells_both(self, difflens, pair):
        pair(arrays(w=[1, 2]), {"w": tensor([1, 3], "F16")})

        first, second, *_ = difflens(A, B, "--stats").lines
        assert first.startswith("! w: dtype=F32 -> F16")
        assert second == "~ w: mean=1.5000->2.0000, std=0.5000->1.0000"

    @pytest.mark.usefixtures("changed")
    def test_with_full_json_even_identical_tensors_have_statistics(self, difflens):
        def found(*options: str) -> dict[str, object]:
            report = json.loads(difflens(A, B, "-o", "full-json", *options).out)
            return {row["name"]: row["left_stats"] for row in report["tensors"]}

        assert found()["b"] is None
        assert found("--stats")["b"]["mean"] == 0.5


class TestEpsilon:
    @pytest.mark.usefixtures("changed")
    def test_what_moved_no_further_is_the_same_and_is_counted(self, difflens):
        outcome = difflens(A, B, "--epsilon", "2")

        assert outcome.code == 0
        assert outcome.lines[0].startswith("2 tensors: 1 within epsilon, 1 identical;")
        assert outcome.lines[1].startswith("equal within epsilon: 1 of 2 tensors moved")

    @pytest.mark.usefixtures("changed")
    def test_what_moved_further_differs(self, difflens):
        outcome = difflens(A, B, "--epsilon", "1.9", "-o", "json")

        row = json.loads(outcome.out)[0]["TensorStatsChanged"]
        assert outcome.code == 1
        assert (row[3]["over_epsilon_count"], row[3]["changed_count"]) == (1, 1)

    def test_a_nan_that_appears_is_never_within(self, difflens, pair):
        pair(arrays(w=[1]), arrays(w=[np.nan]))

        assert difflens(A, B, "--epsilon", "1e30").code == 1

    @pytest.mark.parametrize("value", ["nan", "inf", "-inf", "-1", "-1e-9", "x", ""])
    @pytest.mark.usefixtures("changed")
    def test_what_is_no_distance_is_refused(self, difflens, value):
        assert_refused(difflens(A, B, f"--epsilon={value}"), "wrong value for '--epsilon'")


class TestOutput:
    @pytest.mark.parametrize("alias", ["cli", "text", "diffai"])
    @pytest.mark.usefixtures("changed")
    def test_the_text_has_three_names(self, difflens, alias):
        assert difflens(A, B, "-o", alias) == difflens(A, B)

    @pytest.mark.usefixtures("changed")
    def test_every_renderer_is_well_formed(self, difflens):
        texts = {name: difflens(A, B, "--output", name).out for name in RENDERERS}

        rows = json.loads(texts["json"])
        assert yaml.safe_load(texts["yaml"]) == rows
        assert json.loads(texts["full-json"])["schema_version"] == 1
        assert [row["name"] for row in csv.DictReader(io.StringIO(texts["csv"]))] == ["w"]
        assert texts["html"].lower().startswith("<!doctype html>")
        assert texts["cli"].startswith("~ w: ")

    @pytest.mark.parametrize("name", ["jsn", "page", "rows", "../cli", ""])
    @pytest.mark.usefixtures("changed")
    def test_an_unknown_renderer_is_told_the_known_ones(self, difflens, name):
        assert_refused(difflens(A, B, "-o", name), f"no renderer is called '{name}'", "hint: ")

    @pytest.mark.usefixtures("changed")
    def test_the_known_ones_are_all_named(self, difflens):
        assert_refused(difflens(A, B, "-o", "zzz"), *RENDERERS)

    def test_an_unknown_renderer_is_refused_before_any_file_is_read(self, difflens):
        assert_refused(difflens("nowhere", "nowhere", "-o", "zzz"), "no renderer")

    def test_the_recipes_of_the_contract_work(self, difflens, pair):
        pair(
            arrays(**{"classifier.weight": [[1, 2]], "w": [1], "gone": [1]}),
            arrays(**{"classifier.weight": [1, 2], "w": [2], "new": [1]}),
        )

        rows = json.loads(difflens(A, B, "-o", "json").out)

        assert len(rows) == 4
        shapes = [row for row in rows if row.get("TensorShapeChanged")]
        assert shapes == [{"TensorShapeChanged": ["classifier.weight", [1, 2], [2]]}]
        assert "classifier" in shapes[0]["TensorShapeChanged"][0]
        (stats,) = (row for row in rows if "TensorStatsChanged" in row)
        name, left, right, moved = stats["TensorStatsChanged"]
        assert (name, left["mean"], right["mean"], moved["max_abs_index"]) == ("w", 1, 2, [0])
        assert set(left) == {"mean", "std", "min", "max", "shape", "dtype", "total_params"}
        assert len(moved) == 18

    def test_no_json_holds_a_bare_nan_or_infinity(self, difflens, pair):
        pair(arrays(w=[np.nan, 1], x=[0]), arrays(w=[np.inf, 1], x=[1], y=[np.nan]))

        for name in ("json", "full-json"):
            text = difflens(A, B, "-o", name, "--change-summary", "--stats").out
            json.loads(text, parse_constant=pytest.fail)


class TestWhichTensors:
    @pytest.fixture(autouse=True)
    def three(self, pair):
        names = ("layers.0.w", "layers.1.w", "head.b")
        pair(arrays(**{name: [1] for name in names}), arrays(**{name: [2] for name in names}))

    def names(self, outcome) -> list[str]:
        return re.findall(r"^~ (\S+):", outcome.out, re.MULTILINE)

    @pytest.mark.parametrize("text", ["layers", "tensor.layers", "tensors.layers"])
    def test_path_keeps_names_that_contain_it(self, difflens, text):
        assert self.names(difflens(A, B, "--path", text)) == ["layers.0.w", "layers.1.w"]

    def test_path_is_no_pattern(self, difflens):
        assert self.names(difflens(A, B, "--path", "layers.*")) == []

    def test_ignore_leaves_out_what_a_pattern_finds(self, difflens):
        found = difflens(A, B, "--ignore-keys-regex", r"layers\.\d")

        assert self.names(found) == ["head.b"]

    def test_both_together(self, difflens):
        found = difflens(A, B, "--path", "layers", "--ignore-keys-regex", "^layers.1")

        assert self.names(found) == ["layers.0.w"]

    def test_nothing_left_to_compare_is_trouble_not_equality(self, difflens):
        assert_refused(difflens(A, B, "--ignore-keys-regex", "w$|b$"), "nothing to compare")

    @pytest.mark.parametrize("pattern", ["(", "[a", "*"])
    def test_what_is_no_pattern_is_refused(self, difflens, pattern):
        refused = difflens(A, B, "--ignore-keys-regex", pattern)

        assert_refused(refused, f"'{pattern}' is no regular expression")


class TestMatch:
    def test_exact_sees_no_prefix(self, difflens, pair):
        pair(arrays(**{"module.w": [1]}), arrays(w=[1]))

        outcome = difflens(A, B, "--match", "exact")

        assert outcome.code == 1
        assert outcome.lines[:2] == ["- module.w: F32 [1]", "+ w: F32 [1]"]

    def test_many_renames_by_one_rule_are_one_line_unless_verbose(self, difflens, pair):
        names = [f"l.{n}" for n in range(5)]
        left = arrays(**{f"module.{name}": [1] for name in names})
        pair(left, arrays(**{name: [1] for name in names}))

        told = [line for line in difflens(A, B).lines if line.startswith(">")]
        in_full = [line for line in difflens(A, B, "-v").lines if line.startswith(">")]

        assert told == ["> module.l.0 -> l.0 and 4 more (prefix -module.)"]
        assert len(in_full) == 5


class TestFormatAndLimits:
    @pytest.mark.usefixtures("changed")
    def test_a_reader_can_be_forced(self, difflens):
        assert difflens(A, B, "--format", "safetensors") == difflens(A, B)

    @pytest.mark.usefixtures("changed")
    def test_one_nobody_knows_is_refused(self, difflens):
        assert_refused(difflens(A, B, "--format", "tinyfmt"), "no format is called 'tinyfmt'")

    def test_a_limit_is_raised_by_name(self, difflens, pair):
        deep = arrays(w=np.ones((1,) * 32))
        dtype, shape, data = deep["w"]
        pair({"w": (dtype, shape * 3, data)}, {"w": (dtype, shape * 3, data)})

        assert_refused(difflens(A, B), "rank 96, the limit is 64")
        assert difflens(A, B, "--limit", "rank=96").code == 0

    @pytest.mark.parametrize(
        "text", ["rank", "rank=", "rank=x", "rank=-1", "nope=1", "=", "rank=1e9"]
    )
    @pytest.mark.usefixtures("changed")
    def test_what_is_no_limit_is_refused(self, difflens, text):
        assert_refused(difflens(A, B, "--limit", text), "limit")


class TestThreadsAndStream:
    @pytest.mark.parametrize("renderer", RENDERERS)
    def test_the_same_bytes_come_out_whatever_the_threads(
        self, difflens, pair, monkeypatch, renderer
    ):
        monkeypatch.setattr("difflens.measure.chunks.STEP", 1 << 8)
        monkeypatch.setattr("difflens.measure.pairs.CHUNK", 1 << 10)
        random = np.random.default_rng(3)
        left = {f"layers.{n}.w": random.standard_normal((60, 101)) for n in range(4)}
        right = {name: array + 0.01 * random.standard_normal() for name, array in left.items()}
        pair(arrays(**left), arrays(**right))

        alone = difflens(A, B, "-o", renderer, "--threads", "1")

        for threads in ("2", "3", "7", "100000"):
            assert alone == difflens(A, B, "-o", renderer, "--threads", threads)

    @pytest.mark.parametrize("count", ["x", "1.5", ""])
    @pytest.mark.usefixtures("changed")
    def test_what_is_no_number_of_threads_is_refused(self, difflens, count):
        assert_refused(difflens(A, B, f"--threads={count}"), "--threads")

    @pytest.mark.usefixtures("changed")
    def test_stream_is_accepted(self, difflens):
        assert difflens(A, B, "--stream") == difflens(A, B)


class TestShapeOnly:
    def test_headers_alone_are_compared(self, difflens, pair):
        pair(
            arrays(same=[1], moved=[1], shaped=[1], gone=[1], cast=[1]),
            arrays(same=[1], moved=[2], shaped=[1, 1], new=[1]) | {"cast": tensor([1], "F16")},
        )

        outcome = difflens(A, B, "--shape-only")

        assert outcome.code == 1
        assert [line for line in outcome.lines if line[0] in "!+-~"] == [
            "! cast: dtype=F32 -> F16",
            "- gone: F32 [1]",
            "+ new: F32 [1]",
            "! shaped: shape=[1] -> [2]",
        ]
        assert (
            "? 2 tensors: values not compared: only names, shapes and dtypes were read"
            in outcome.out
        )

    @pytest.mark.usefixtures("changed")
    def test_other_values_alone_are_no_difference_and_it_says_so(self, difflens):
        outcome = difflens(A, B, "--shape-only")

        assert outcome.code == 0
        assert outcome.lines[-1].endswith("values were not read")

    @pytest.mark.usefixtures("changed")
    def test_no_byte_of_a_tensor_is_read(self, difflens, monkeypatch):
        reads = []
        real = os.preadv

        def counted(descriptor: int, buffers: list[memoryview], place: int) -> int:
            reads.append((place, sum(map(len, buffers))))
            return real(descriptor, buffers, place)

        monkeypatch.setattr("os.preadv", counted)
        monkeypatch.setattr("difflens.models.formats.HEAD_BYTES", 8)
        difflens(A, B, "--shape-only")

        with open(A, "rb") as file:  # noqa: PTH123
            data = 8 + struct.unpack("<Q", file.read(8))[0]
        assert reads
        assert max(place + size for place, size in reads) <= data


class TestCheck:
    @pytest.mark.parametrize("files", [(A,), (A, B)])
    @pytest.mark.usefixtures("changed")
    def test_it_is_the_check_command(self, difflens, files):
        assert difflens(*files, "--check") == difflens("check", *files)

    def test_a_nan_fails_it(self, difflens, pair):
        pair(arrays(w=[np.nan]), ONE)

        assert difflens(A, B, "--check").code == 1
        assert difflens(A, B, "--check", "--exit-zero").code == 0
        assert difflens(A, "nowhere", "--check", "--exit-zero").code == 2


def test_sorting_puts_nonfinite_first_then_structure_then_the_largest_change(difflens, pair):
    pair(
        arrays(a_small=[100, 0], b_large=[1, 0], c_shape=[1], d_nan=[1], e_zero=[0], f_gone=[1]),
        arrays(a_small=[101, 0], b_large=[9, 0], c_shape=[1, 1], d_nan=[np.nan], e_zero=[1]),
    )

    lines = difflens(A, B, "--sort-by-change-magnitude").lines
    rows = csv.DictReader(
        io.StringIO(difflens(A, B, "--sort-by-change-magnitude", "-o", "csv").out)
    )

    expected = ["d_nan", "c_shape", "f_gone", "e_zero", "b_large", "a_small"]
    tensors = lines[lines.index("Tensors:") + 1 :]
    assert [line.split(":")[0][2:] for line in tensors[:6]] == expected
    assert [row["name"] for row in rows] == expected


def test_without_sorting_layer_2_comes_before_layer_10(difflens, pair):
    names = [f"layers.{n}.w" for n in (10, 2, 1)]
    pair(arrays(**{name: [1] for name in names}), arrays(**{name: [2] for name in names}))

    lines = difflens(A, B).lines

    assert [line.split(":")[0] for line in lines[:3]] == [f"~ layers.{n}.w" for n in (1, 2, 10)]


@pytest.mark.usefixtures("changed")
def test_a_change_summary_says_a_sentence_first(difflens):
    plain, told = difflens(A, B), difflens(A, B, "--change-summary")

    assert told.code == plain.code
    assert set(plain.lines) < set(told.lines)
    assert any(line.startswith("+ change_summary: ") for line in told.lines)


class TestManners:
    @pytest.mark.usefixtures("changed")
    def test_quiet_tells_by_its_code_alone(self, difflens):
        assert difflens(A, B, "-q") == difflens(A, B, "--quiet")
        assert (difflens(A, B, "-q").code, difflens(A, B, "-q").out) == (1, "")
        assert (difflens(A, A, "-q").code, difflens(A, A, "-q").out) == (0, "")

    @pytest.mark.usefixtures("changed")
    def test_brief_says_whether_they_differ(self, difflens):
        assert difflens(A, B, "--brief").out == f"Files {A} and {B} differ\n"
        assert difflens(A, A, "--brief").out == ""

    @pytest.mark.usefixtures("changed")
    def test_exit_zero_hides_a_difference_but_no_trouble(self, difflens):
        assert difflens(A, B, "--exit-zero").code == 0
        assert difflens(A, B, "--exit-zero").out == difflens(A, B).out
        assert difflens(A, "nowhere", "--exit-zero").code == 2

    def test_forty_lines_are_told_one_more_is_folded_and_verbose_unfolds(self, difflens, pair):
        for count, folded in ((40, False), (41, True)):
            names = [f"layers.{n}.w" for n in range(count)]
            pair(arrays(**{name: [1] for name in names}), arrays(**{name: [2] for name in names}))

            assert len(difflens(A, B, "--verbose").lines) == count + 2
            assert len(difflens(A, B).lines) == (3 if folded else count + 2)
        assert difflens(A, B).lines[0] == "~ layers.{0..40}.w (41): relative_l2 1.0e+00"

    def test_debug_shows_where_and_still_exits_2(self, difflens):
        outcome = difflens("nowhere", "nowhere", "--debug")

        assert (outcome.code, outcome.out) == (2, "")
        assert "Traceback (most recent call last)" in outcome.err
        assert outcome.err.endswith("difflens: error: nowhere: no such file\n")

    @pytest.mark.usefixtures("changed")
    def test_without_it_even_a_fault_of_ours_is_one_line(self, difflens, monkeypatch):
        monkeypatch.setattr("difflens.diffs.story.pair_models", lambda *_, **__: 1 / 0)

        outcome = difflens(A, B)

        assert (outcome.code, outcome.out, outcome.err.count("\n")) == (2, "", 1)
        assert "a fault of difflens itself: ZeroDivisionError" in outcome.err

    @pytest.mark.usefixtures("changed")
    def test_running_out_of_memory_is_one_line(self, difflens, monkeypatch):
        def full(*_: object, **__: object) -> None:
            raise MemoryError

        monkeypatch.setattr("difflens.diffs.story.pair_models", full)

        assert_refused(difflens(A, B), "there is not enough memory")


class TestWarnings:
    def test_odd_booleans_are_counted_as_true_and_told_on_stderr(self, difflens, pair):
        pair({"mask": ("BOOL", (4,), b"\0\1\2\xff")}, {"mask": ("BOOL", (4,), b"\0\1\1\1")})

        outcome = difflens(A, B)

        warning = "difflens: warning: mask: 2 BOOL bytes are neither 0 nor 1, and count as true\n"
        assert (outcome.code, outcome.err) == (1, warning)
        assert outcome.lines[-2].endswith("; 1 warning")

    def test_an_index_that_lacks_a_tensor_is_told_on_stderr(self, difflens, tmp_path):
        write(tmp_path / "m" / "model-1.safetensors", arrays(a=[1], b=[1]))
        index = {"weight_map": {"a": "model-1.safetensors"}, "metadata": {"total_size": 3}}
        (tmp_path / "m" / INDEX).write_text(json.dumps(index))

        outcome = difflens("m", "m")

        assert outcome.code == 0
        assert set(outcome.err.splitlines()) == {
            "difflens: warning: the index lacks tensors the shards hold: 'b'",
            "difflens: warning: the index states a total_size of 3, the tensors take 8 bytes",
        }
