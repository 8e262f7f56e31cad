import os
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hostile.files import CASES, MARKER, Case, read

from difflens.core.errors import DifflensError
from difflens.models.formats import open_model

PARAMS = [
    pytest.param(case, id=case.id, marks=[pytest.mark.slow] if case.slow else []) for case in CASES
]


@contextmanager
def _descriptors(most: int | None) -> Iterator[None]:
    """Allow so many more open files than the tests before have left open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(each.name) for each in Path("/dev/fd").iterdir())
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + most if most else soft, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@contextmanager
def _plain_user(folder: Path, *, needed: bool) -> Iterator[None]:
    """Be somebody who can be refused; the folders above must not be what refuses."""
    if not needed or os.geteuid() != 0:
        yield
        return
    for parent in [folder, *folder.parents][:-2]:
        parent.chmod(parent.stat().st_mode | 0o055)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def _open_and_read(case: Case, path) -> None:
    source = open_model(path)
    try:
        case.check(source)
        for name in source.tensors if case.read_all else ():
            read(source, name)
        source.confirm()
    finally:
        source.close()


@pytest.mark.parametrize("case", PARAMS)
def test_a_hostile_file_earns_its_sentence(case: Case, tmp_path):
    path = case.build(tmp_path)
    before = sorted(tmp_path.rglob("*"))

    start = time.monotonic()
    with _descriptors(case.most_open), _plain_user(tmp_path, needed=case.needs_user):
        if case.outcome == "open":
            _open_and_read(case, path)
        elif case.outcome == "reject":
            with pytest.raises(DifflensError) as caught:
                open_model(path)
            _is_a_good_sentence(caught.value, case.word)
        else:
            _bounded(case, path)

    assert time.monotonic() - start < (60 if case.slow else 20)
    assert before == sorted(tmp_path.rglob("*"))
    assert not (tmp_path / MARKER).exists()


def _bounded(case: Case, path) -> None:
    try:
        _open_and_read(case, path)
    except DifflensError as error:
        _is_a_good_sentence(error, case.word)


def _is_a_good_sentence(error: DifflensError, word: str) -> None:
    text = str(error)
    assert word in text
    assert text.isprintable()
    assert "invalid" not in text.lower()
    assert not text.endswith(".")
    assert len(error.reason) < 700


def test_every_rejection_leaves_no_descriptor_behind(tmp_path):
    before = len(list(Path("/proc/self/fd").iterdir()))
    for case in CASES:
        if case.outcome == "reject" and case.id.startswith(("S05", "S09", "S13", "X02", "X04")):
            place = tmp_path / case.id.replace("/", "_").replace("\\", "_")
            place.mkdir()
            with pytest.raises(DifflensError):
                open_model(case.build(place))

    assert before == len(list(Path("/proc/self/fd").iterdir()))


def test_the_ids_of_the_cases_are_their_own():
    assert len(CASES) == len({case.id for case in CASES})
