import re
from time import perf_counter
from typing import Any

import pytest
from msgspec.structs import replace
from render.reports import (
    EVERY,
    SUMMARY,
    M,
    changed,
    every_kind,
    hostile,
    hundred_layers,
    info,
    model,
    recast,
    renamed,
    report,
    row,
    stats,
)

from difflens.core.findings import Envelope, Finding, Missing
from difflens.core.records import Report, Totals, View
from difflens.render.diffs.cli import cli
from difflens.render.report.counts import counts

TOTALS = "1 tensor: 1 changed; 1.1B parameters\nThe models differ.\n"


def lines(shown: Report, **view: Any) -> list[str]:
    return cli(shown, View(**view)).splitlines()


def test_every_kind_of_row_has_its_line() -> None:
    expected = """\
3 of 290 tensors changed, all in the head.

Findings:
[CRITICAL] layers.11.weight: 12 NaN or infinite values, 0 before
1 further finding: -o json

Tensors:
~ layers.2.weight: relative_l2=3.1e-02 max_abs=4.0e-03 changed=100%
~ layers.10.weight: relative_l2=unknown max_abs=4.0e-03 changed=0.003%
~ layers.11.weight: relative_l2=3.1e-02 max_abs=4.0e-03 changed=>99.99% NON-FINITE: 0 -> 12
! cast.equal: dtype=F32 -> BF16, values equal
! cast.rounded: dtype=F32 -> BF16, relative_l2=1.7e-03, within storage rounding
! cast.moved: dtype=F32 -> BF16, relative_l2=3.1e-02
! conv.weight: shape=[64, 3] -> [32, 3]
! conv.both: shape=[64, 3] -> [], dtype=F32 -> F16
+ head.bias: F32 [64, 3]
- old.bias: F32 [64, 3]
> w -> model.w (prefix model.)
> a.b -> c.d (shape and content)
~ c.d: relative_l2=3.1e-02 max_abs=4.0e-03 changed=100%
= lm_head.weight: tied to model.embed_tokens.weight
* metadata step: "100" -> "200"
* metadata note: absent -> "long long long long long long long long long long long long \
…(+140 characters)"
? packed: not compared: F6_E2M3 is packed in several ways
? 1 tensor: values not compared: only names, shapes and dtypes were read

Analyses:
+ change_summary: layers_changed=3, magnitude=0.0543, patterns=[head_only, low_rank], \
frozen=false (1 more field with -o json)
[CRITICAL] anomaly_detection: type=nan_inf, affected=2 layers \
(1 more field with -o json)

17 tensors: 4 changed, 3 recast, 2 reshaped, 1 added, 1 removed, 1 tied, 1 not compared, \
1 within epsilon, 2 identical, 1 paired; 1.1B parameters; 1 warning
The models differ.
"""

    assert expected == cli(every_kind(), View())


def test_stats_print_four_decimals() -> None:
    moved = row("w", left_stats=stats(mean=0.1, std=1), right_stats=stats(mean=-0.25, std=1.5))

    shown = cli(report(moved), View(stats=True))

    assert shown == "~ w: mean=0.1000->-0.2500, std=1.0000->1.5000\n" + TOTALS


def test_stats_print_four_digits_where_four_decimals_would_hide_the_move() -> None:
    left, right = stats(mean=1.23456e-6, std=0.5), stats(mean=1.34567e-6, std=0.75)

    first = lines(report(row("w", left_stats=left, right_stats=right)), stats=True)[0]

    assert first == "~ w: mean=1.235e-06->1.346e-06, std=0.5000->0.7500"


def test_stats_of_a_recast_tensor_follow_its_dtype_line() -> None:
    shown = lines(report(recast("w")), stats=True)

    assert [line[0] for line in shown[:2]] == ["!", "~"]


def test_stats_shout_about_new_nonfinite_values() -> None:
    shown = lines(report(changed("w", left_nonfinite=1, right_nonfinite=3)), stats=True)

    assert shown[1] == "[CRITICAL] w: 3 NaN or infinite values, 1 before"
    assert shown[4].endswith("NON-FINITE: 1 -> 3")


def test_forty_lines_stay_and_forty_one_fold() -> None:
    rows = [changed(f"layers.{layer}.w") for layer in range(41)]

    assert len(lines(report(*rows[:40]))) == 42
    assert lines(report(*rows))[0] == "~ layers.{0..40}.w (41): relative_l2 3.1e-02"


def test_a_hundred_layers_fold_into_one_line_a_role() -> None:
    expected = [
        "~ layers.{0..99}.attn.q_proj.weight (100): relative_l2 2.0e-02..4.0e-02",
        "~ layers.{0..99}.mlp.up_proj.weight (100): relative_l2 2.0e-02..4.0e-02",
        "300 tensors: 200 changed, 100 identical; 1.1B parameters",
        "The models differ.",
    ]

    assert expected == lines(hundred_layers())


def test_verbose_unfolds() -> None:
    assert len(lines(hundred_layers(), verbose=True)) == 202


def test_a_folded_line_names_the_gaps() -> None:
    rows = [changed(f"h.{i}.w") for i in (0, 2, 5, 6, 7)]
    rows += [row(f"{'x' * i}y", "added") for i in range(40)]

    assert lines(report(*rows))[0] == "~ h.{0,2,5..7}.w (5): relative_l2 3.1e-02"


def test_experts_fold_over_both_of_their_numbers() -> None:
    rows = [changed(f"layers.{i}.experts.{j}.w1") for i in range(8) for j in range(8)]

    assert lines(report(*rows))[0].startswith("~ layers.{0..7}.experts.{0..7}.w1 (64): ")


def test_kinds_and_shapes_fold_apart() -> None:
    rows = [changed(f"h.{i}.w") for i in range(20)]
    rows += [row(f"h.{i}.w", "added") for i in range(20, 40)]
    rows += [row(f"h.{i}.w", "added", right=info(f"h.{i}.w", shape=(1,))) for i in range(40, 60)]

    assert lines(report(*rows))[:3] == [
        "~ h.{0..19}.w (20): relative_l2 3.1e-02",
        "+ h.{20..39}.w (20): F32 [64, 3]",
        "+ h.{40..59}.w (20): F32 [1]",
    ]


def test_a_group_of_one_stays_a_plain_line() -> None:
    rows = [changed("head"), *(changed(f"h.{i}.w") for i in range(50))]

    assert lines(report(*rows))[0].startswith("~ head: relative_l2=3.1e-02 max_abs=")


def test_a_tensor_with_new_nonfinite_values_never_disappears_in_a_fold() -> None:
    rows = [changed(f"h.{i}.w", right_nonfinite=5 * (i == 30)) for i in range(60)]

    shown = lines(report(*rows))

    assert shown[1].startswith("[CRITICAL] h.30.w: ")
    assert shown[4].startswith("~ h.{0..29,31..59}.w (59): ")
    assert shown[5].startswith("~ h.30.w: ")
    assert shown[5].endswith("NON-FINITE: 0 -> 5")


def test_values_that_became_finite_are_said_to_be_in_no_distance() -> None:
    gone = lines(report(changed("w", left_nonfinite=3)))
    same = lines(report(changed("w", left_nonfinite=3, right_nonfinite=3)))
    none = lines(report(changed("w")))

    assert gone[0].endswith("not finite: 3 -> 0, in no distance")
    assert same[0].endswith("not finite: 3 -> 3, in no distance")
    assert "finite" not in none[0]


def test_an_added_tensor_full_of_nan_stands_out() -> None:
    shown = lines(report(row("w", "added", right_stats=stats(nan=3, positive_infinite=1))))

    assert shown[1] == "[CRITICAL] w: 4 NaN or infinite values, 0 before"
    assert shown[4] == "+ w: F32 [64, 3] NON-FINITE: 0 -> 4"


def test_a_number_as_long_as_a_hash_is_no_index_and_many_gaps_are_cut() -> None:
    rows = [changed(f"h.{2 * i}.w") for i in range(50)]
    rows += [changed(f"{'9' * 5000}{i}") for i in range(3)]

    shown = lines(report(*rows))

    assert shown[0].startswith("~ h.{0,2,4,6,...,98}.w (50): ")
    assert len(shown) == 6


def test_a_fold_says_how_many_of_its_figures_are_unknown() -> None:
    rows = [changed(f"h.{i}.w", relative_l2=None if i < 3 else 0.5) for i in range(60)]

    assert lines(report(*rows))[0] == "~ h.{0..59}.w (60): relative_l2 5.0e-01 (3 unknown)"


def test_many_renames_by_one_prefix_are_one_line() -> None:
    rows = [renamed(f"h.{i}", f"model.h.{i}", "prefix model.") for i in range(9)]

    shown = lines(report(*rows))

    assert shown[0] == "> h.0 -> model.h.0 and 8 more (prefix model.)"
    assert len(shown) == 3
    assert len(lines(report(*rows), verbose=True)) == 11


def test_many_renames_beyond_a_prefix_fold_by_both_names() -> None:
    rows = [renamed(f"h.{i}.w", f"layers.{i}.w", "shape and content") for i in range(50)]

    assert lines(report(*rows))[0] == ("> h.{0..49}.w -> layers.{0..49}.w (50) (shape and content)")


def test_a_shape_only_run_shows_no_figures_and_says_so() -> None:
    cast = row("b", "recast", right=info("b", "F16"))

    assert lines(report(row("a", "paired"), cast))[:2] == [
        "! b: dtype=F32 -> F16",
        "? 1 tensor: values not compared: only names, shapes and dtypes were read",
    ]


def test_the_totals_say_how_far_the_model_moved() -> None:
    totals = Totals(
        tensors=290, changed=32, added=1, identical=257, relative_l2=0.031, median_relative_l2=0.02
    )

    shown = lines(report(changed("w"), totals=totals, warnings=("a", "b")))

    assert shown[-2] == (
        "290 tensors: 32 changed, 1 added, 257 identical; 1.1B parameters; "
        "relative_l2 3.1e-02 (median 2.0e-02); 2 warnings"
    )


def test_the_totals_count_renames_beside_the_kinds() -> None:
    shown = lines(report(totals=Totals(tensors=2, identical=2, renamed=2)))

    assert shown[-2] == "2 tensors: 2 identical; 2 renamed; 1.1B parameters"


def test_the_totals_name_both_parameter_counts_where_they_differ() -> None:
    shown = lines(report(right=model("r", parameter_count=2_000_000_000)))

    assert shown[-2] == "0 tensors; 1.1B -> 2.0B parameters"


def test_an_analysis_that_found_nothing_says_its_status() -> None:
    silent = Envelope("head_importance", "not_applicable", {})
    poor = Envelope("gradient_analysis", "partial", {}, missing=(Missing("norm", "--log", ""),))

    assert lines(report(analyses=(silent, poor)))[:3] == [
        "Analyses:",
        "+ head_importance: not applicable",
        "+ gradient_analysis: norm=unknown (needs --log)",
    ]


def test_the_summary_sentence_comes_first_and_once() -> None:
    shown = cli(report(changed("w"), analyses=(SUMMARY,)), View())

    assert shown.startswith("3 of 290 tensors changed, all in the head.\n")
    assert shown.count("all in the head") == 1


def test_colour_paints_and_changes_no_letter() -> None:
    painted = cli(every_kind(), View(color=True))

    assert "\x1b[33m~ layers.2.weight\x1b[0m: " in painted
    assert "\x1b[1;31m NON-FINITE: 0 -> 12\x1b[0m" in painted
    assert re.sub(r"\x1b\[[0-9;]*m", "", painted) == cli(every_kind(), View())


@pytest.mark.parametrize("view", [View(), View(verbose=True), View(stats=True)])
@pytest.mark.parametrize("made", EVERY.values(), ids=EVERY)
def test_no_control_character_and_no_endless_line_reaches_the_terminal(
    made: Any, view: View
) -> None:
    shown = cli(made(), view)

    assert not re.search(
        "[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\ud800-\udfff]", shown
    )
    assert max(map(len, shown.splitlines())) < 2000
    assert shown.encode()


def test_a_newline_in_a_name_makes_no_second_line() -> None:
    assert "~ line\\x0abreak\\x0d\\x0aand\\x0dreturn: " in cli(hostile(), View(verbose=True))


def test_a_million_rows_render_in_about_a_second() -> None:
    same = [row(f"layers.{i}.w", "identical", figures=M) for i in range(1000)]
    shown = report(*(same * 1000), *(changed(f"layers.{i}.w") for i in range(1000)))

    start = perf_counter()
    text = cli(shown, View())
    seconds = perf_counter() - start

    assert text.count("\n") == 3
    assert seconds < 4  # about 0.3 s on a quiet machine


def test_a_tensor_that_was_all_zeros_is_marked() -> None:
    moved = row(
        "w", left_stats=stats(zeros=192), right_stats=stats(), figures=M | {"relative_l2": None}
    )

    assert lines(report(moved))[0].endswith("changed=100%, from all zeros")


def test_a_review_is_ten_findings_then_what_was_not_checked() -> None:
    found = tuple(Finding("a", f"w.{i}", "moved", {"x": 0.5}, "high") for i in range(10, 22))
    lack = (Missing("trend", "--log", "two files tell no trend"),)
    silent = Envelope("learning_progress", "partial", {"trend": None, "x": 1}, missing=lack)
    told = report(changed("w"), analyses=(Envelope("a", "ok", {"x": 1}, findings=found), silent))

    shown = lines(told, review=True)

    assert shown[0] == "findings: 12"
    assert shown[1] == "[HIGH] a: w.10: moved (x=0.5)"
    assert shown[11:14] == [
        "2 further findings: -o json",
        "not checked: 1",
        "? learning_progress: trend not assessed (needs --log): two files tell no trend",
    ]
    assert len(shown) == 16


def test_a_review_works_without_findings() -> None:
    shown = lines(report(row("w", "identical")), review=True)

    assert shown[:2] == ["findings: none", "not checked: nothing that was asked for"]


@pytest.mark.parametrize(
    ("names", "written"),
    [
        ("tu", "t=unknown (needs --log), u=unknown (needs --log), n=3"),
        ("tuvw", "t=unknown (needs --log; so do 3 more), n=3"),
    ],
)
def test_of_many_fields_that_wait_for_the_same_the_first_speaks(names: str, written: str) -> None:
    lacks = tuple(Missing(name, "--log", "") for name in names)
    envelope = Envelope("a", "partial", dict.fromkeys(names) | {"n": 3}, missing=lacks)

    (_, line, *_) = lines(report(analyses=(envelope,)))

    assert line == f"+ a: {written}"


def test_large_structures_are_left_to_json() -> None:
    fields = {"layers": [{"a": 1}] * 48, "top": {"gini": 0.25}, "few": [1, 2], "none": []}

    (_, line, *_) = lines(report(analyses=(Envelope("a", "ok", fields),)))

    assert line == "+ a: top={gini: 0.25}, few=[1, 2], none=[] (1 more field with -o json)"


def test_an_answer_shows_its_first_four_figures_and_counts_the_rest() -> None:
    fields = {"sentence": "all changed", "list": [{}], **dict.fromkeys("abcdef", 1)}

    shown = lines(report(analyses=(Envelope("a", "ok", fields),)))

    assert shown[0] == "all changed"
    assert shown[3] == "+ a: a=1, b=1, c=1, d=1 (3 more fields with -o json)"


def test_two_sides_are_written_left_to_right() -> None:
    fields = {"bytes": {"right": 2, "left": 1}, "layers": {"left": [1], "right": [2]}}

    (_, line, *_) = lines(report(analyses=(Envelope("a", "ok", fields),)))

    assert line == "+ a: bytes=1 -> 2 (1 more field with -o json)"


def test_findings_stand_first_the_worst_of_each_tensor() -> None:
    found = (
        Finding("a", "w", "moved far", {}, "medium"),
        Finding("a", "v", "collapsed", {}, "critical"),
        Finding("b", "w", "died", {"x": 0.5}, "high"),
        Finding("b", "u", "noted", {}, "info"),
    )
    shown = lines(report(changed("w"), analyses=(Envelope("a", "ok", {"n": 1}, findings=found),)))

    assert shown[:5] == [
        "Findings:",
        "[CRITICAL] a: v: collapsed",
        "[HIGH] b: w: died (x=0.5)",
        "2 further findings: -o json",
        "",
    ]
    assert shown.index("Tensors:") < shown.index("Analyses:") < shown.index("+ a: n=1")


def test_what_an_analysis_found_broken_is_not_said_twice() -> None:
    found = (Finding("a", "w", "5 values are NaN", {}, "critical"),)
    burnt = changed("w", right_nonfinite=5)

    shown = lines(report(burnt, analyses=(Envelope("a", "ok", {}, findings=found),)))

    assert sum(line.startswith("[CRITICAL]") for line in shown) == 1


def test_the_totals_say_over_which_tensors_a_distance_is():
    figures = {"tensors": 104, "changed": 1, "identical": 103, "compared": 104, "moved": 1}
    totals = Totals(**figures, relative_l2=1.4, median_relative_l2=1.4)

    cheap = counts(replace(report(), totals=totals))
    measured = counts(replace(report(), totals=replace(totals, whole_relative_l2=0.0012)))

    assert "relative_l2 1.4e+00 over the 1 tensor that moved;" in f"{cheap};"
    assert "over the 1 tensor that moved, 1.2e-03 over all 104" in measured
