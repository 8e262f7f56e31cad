import locale

from hypothesis import given
from hypothesis import strategies as st

from difflens.core.natural_order import natural_key

names = st.text(alphabet="ab.019-_", max_size=12) | st.text(max_size=12)


def test_layer_2_comes_before_layer_10():
    names = [f"layers.{i}.weight" for i in (10, 2, 1, 0, 100, 20)]

    ordered = sorted(names, key=natural_key)

    assert ordered == [f"layers.{i}.weight" for i in (0, 1, 2, 10, 20, 100)]


def test_every_number_in_a_name_counts_not_only_the_first():
    assert natural_key("h.1.experts.9.w") < natural_key("h.1.experts.10.w")
    assert natural_key("h.9.experts.10.w") < natural_key("h.10.experts.9.w")


@given(st.integers(0, 10**40), st.integers(0, 10**40))
def test_numbers_of_any_length_sort_by_value(one, other):
    assert (one < other) == (natural_key(f"h.{one}.w") < natural_key(f"h.{other}.w"))


def test_a_number_too_long_for_int_is_no_trouble():
    shorter, longer = "9" * 5_000, "1" + "0" * 5_000

    assert natural_key(f"h.{shorter}") < natural_key(f"h.{longer}")


@given(names, names)
def test_the_order_is_total(one, other):
    assert (natural_key(one) == natural_key(other)) == (one == other)


@given(st.lists(names, unique=True), st.randoms())
def test_the_order_does_not_depend_on_where_the_names_came_from(names, random):
    shuffled = random.sample(names, len(names))

    assert sorted(names, key=natural_key) == sorted(shuffled, key=natural_key)


def test_the_order_is_the_same_under_every_locale():
    names = ["Z", "a", "é", "_", "z"]
    before = sorted(names, key=natural_key)
    kept = locale.setlocale(locale.LC_ALL)
    try:
        locale.setlocale(locale.LC_ALL, "")
        assert sorted(names, key=natural_key) == before
    finally:
        locale.setlocale(locale.LC_ALL, kept)
