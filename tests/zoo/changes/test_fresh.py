"""The fresh part of the change zoo: its bases are its own, its pairs can be told apart."""

from collections import Counter

from zoo.changes.bases import BASES, WHEELS
from zoo.changes.dev import PAIRS as DEV
from zoo.changes.evaluate import pairs_of
from zoo.changes.fresh import PAIRS
from zoo.changes.fresh_bases import FRESH_WHEELS
from zoo.changes.heldback import PAIRS as HELDBACK


def test_fresh_pairs_share_no_base_and_no_wheel_with_the_other_parts():
    ours = {each.base for each in PAIRS}
    packages = {package.partition("==")[0].lower() for package, _, _ in FRESH_WHEELS.values()}

    assert not ours & {each.base for each in (*DEV, *HELDBACK)}
    assert not packages & {each.package.partition("==")[0].lower() for each in WHEELS.values()}
    assert ours <= set(BASES)


def test_fresh_pairs_are_of_one_part_and_have_ids_of_their_own():
    assert max(Counter(each.id for each in PAIRS).values()) == 1
    assert {each.part for each in PAIRS} == {"fresh"}
    assert [each.id for each in pairs_of("fresh")] == [each.id for each in PAIRS]
