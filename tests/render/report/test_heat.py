"""Blocks by part: what stands where, and on which level."""

from render.reports import changed, hundred_layers, identical, report, row, stats

from difflens.render.report.heat import heat


def test_blocks_are_rows_and_their_parts_are_columns() -> None:
    found = heat(
        report(
            changed("h.0.q.weight", relative_l2=0.03),
            row("h.0.norm.weight", "identical"),
            changed("h.10.q.weight", relative_l2=1e-7),
            row("h.2.q.weight", "reshaped"),
            changed("embed.weight"),
        )
    )

    assert found is not None
    assert found.blocks == ["h.0", "h.2", "h.10"]
    assert found.parts == ["q.weight", "norm.weight"]
    levels = [[square.level if square else "" for square in line] for line in found.squares]
    assert levels == [["5", "0"], ["x", ""], ["1", ""]]
    (first, *_), (second, *_), _ = found.squares
    assert first is not None
    assert second is not None
    assert (first.text, first.told) == ("3.0e-02", "h.0.q.weight: relative L2 3.0e-02")
    assert (second.text, second.told) == ("shape", "h.2.q.weight: reshaped")


def test_of_many_experts_the_one_that_moved_most_is_shown() -> None:
    rows = [
        changed(f"l.{i}.experts.{j}.w", relative_l2=0.01 * (j + 1))
        for i in (0, 1)
        for j in range(4)
    ]

    found = heat(report(*rows))

    assert found is not None
    assert found.parts == ["experts.*.w"]
    square = found.squares[0][0]
    assert square is not None
    assert square.told == "l.0.experts.3.w: relative L2 4.0e-02, the largest of 4"


def test_a_model_without_blocks_or_without_change_has_no_map() -> None:
    assert heat(identical()) is None
    assert heat(report(changed("a.weight"), changed("b.weight"))) is None
    assert heat(report(changed("h.0.w"), changed("g.0.w"))) is None
    assert heat(report(row("h.0.w", "identical"), row("h.1.w", "identical"))) is None


def test_the_table_has_what_does_not_fit() -> None:
    large = report(*(changed(f"h.{i}.p{j}.w") for i in range(170) for j in range(26)))

    found = heat(large)

    assert found is not None
    assert (len(found.blocks), len(found.parts)) == (160, 24)
    assert found.left_out == "10 blocks and 2 parts of blocks more do not fit; the table has them."


def test_a_hundred_layers_all_fit() -> None:
    found = heat(hundred_layers())

    assert found is not None
    assert len(found.blocks) == 100
    assert found.left_out == ""


def test_a_broken_tensor_is_marked_whatever_it_moved_by() -> None:
    zeroed = row("h.1.q.weight", left_stats=stats(), right_stats=stats(zeros=192))
    found = heat(report(changed("h.0.q.weight", right_nonfinite=5), zeroed))

    assert found is not None
    squares = [square for (square,) in found.squares if square]
    assert [(each.level, each.text) for each in squares] == [
        ("bad", "NaN/Inf 5"),
        ("bad", "all zero"),
    ]
    assert squares[0].told == "h.0.q.weight: 5 NaN or infinite, 0 before"


def test_of_many_experts_a_broken_one_is_shown() -> None:
    rows = [
        changed(f"l.{i}.experts.{j}.w", relative_l2=0.1, right_nonfinite=int(j == 2))
        for i in (0, 1)
        for j in range(4)
    ]

    found = heat(report(*rows))

    assert found is not None
    square = found.squares[0][0]
    assert square is not None
    assert square.told == "l.0.experts.2.w: 1 NaN or infinite, 0 before, the worst of 4"
