"""A reader yields whole frames and nothing else, whatever happened to the file."""

import random
import time
import tracemalloc
from contextlib import suppress
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from training.history.made import (
    append,
    bits,
    frames_of,
    info_of,
    infos,
    plans,
    random_frames,
    read,
    written,
)

from difflens.core.errors import RunError
from difflens.training.history import open_run, read_history
from difflens.training.history.format import (
    FRAME,
    INFO,
    LARGEST_PAYLOAD,
    NOTE,
    head_of,
    json_payload,
    layout_of,
)
from difflens.training.history.frame import no_layers, no_scalars
from difflens.training.history.reader import MOST_DAMAGE, MOST_NOTES, RunReader
from difflens.training.history.writer import RunWriter, file_of
from difflens.training.records.runs import Layer, Note, RunInfo


def record(kind: int, payload: bytes, layout: int = 0) -> bytes:
    return head_of(kind, [payload], layout) + payload


def test_a_run_can_be_read_while_it_is_written(tmp_path):
    frames = random_frames(info_of(), 20)
    with RunWriter(tmp_path, info_of()) as writer, RunReader(writer.path) as reader:
        seen = []
        for frame in frames:
            append(writer, frame)
            seen += [bits(each) for each in reader.frames()]
            assert len(seen) == frame.sequence + 1
        assert list(reader.frames()) == []

    assert seen == [bits(each) for each in frames]


@given(st.lists(st.integers(1, 200), max_size=20))
def test_a_run_that_grows_by_any_number_of_bytes_gives_each_frame_once(tmp_path_factory, cuts):
    folder = tmp_path_factory.mktemp("run")
    frames = random_frames(info_of(), 5)
    whole = written(folder / "whole", info_of(), frames).read_bytes()
    path = folder / "growing.dlr"
    at = whole.index(b"\x02\x00\x00\x00") - 4  # the first frame
    path.write_bytes(whole[:at])
    seen = []
    with RunReader(path) as reader:
        for cut in [*cuts, len(whole)]:
            with path.open("ab") as file:
                file.write(whole[at : at + cut])
            at = min(at + cut, len(whole))
            seen += [bits(each) for each in reader.frames()]
            assert reader.offset + reader.tail_bytes == at
        assert reader.damage == []

    assert seen == [bits(each) for each in frames]


def test_a_tail_torn_at_any_byte_is_left_out_and_reported(tmp_path):
    frames = random_frames(info_of(), 3)
    path = written(tmp_path / "run", info_of(), frames)
    whole = path.read_bytes()
    told = {}
    for size in range(len(whole) + 1):
        path.write_bytes(whole[:size])
        try:
            with RunReader(path) as reader:
                seen = [bits(each) for each in reader.frames()]
                told[size] = len(seen)
                assert seen == [bits(each) for each in frames[: len(seen)]]
                assert reader.damage == []
                assert reader.offset + reader.tail_bytes == size
                gathered = read_history(path)
                assert gathered.frames == len(seen)
                said = f"{reader.tail_bytes} bytes at the end are incomplete, they were left out"
                assert gathered.damage == ((said,) if reader.tail_bytes else ())
        except RunError as error:
            reasons = ("not whole yet", "empty", "begin")
            assert any(each in str(error) for each in reasons)  # noqa: PT017  at some cuts
            told[size] = -1

    counts = [told[size] for size in range(len(whole) + 1)]
    assert counts == sorted(counts)
    assert set(counts) == {-1, 0, 1, 2, 3}


def test_a_flipped_bit_anywhere_costs_one_record_and_never_gives_a_wrong_frame(tmp_path):
    frames = random_frames(info_of(), 4)
    path = written(tmp_path / "run", info_of(), frames)
    whole = bytearray(path.read_bytes())
    right = [bits(each) for each in frames]
    for at in range(len(whole)):
        whole[at] ^= 1 << at % 8
        path.write_bytes(whole)
        whole[at] ^= 1 << at % 8
        with RunReader(path) as reader:
            seen = [bits(each) for each in reader.frames()]
            told = bool(reader.damage or reader.tail_bytes)
        assert [each for each in seen if each not in right] == [], at
        assert len(seen) >= len(right) - 1, at
        assert told, at


@given(plans(), st.data())
def test_bytes_changed_anywhere_never_give_a_frame_that_was_not_written(
    tmp_path_factory, plan, data
):
    path = written(tmp_path_factory.mktemp("run"), plan.info, plan.frames)
    whole = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 5))):
        at = data.draw(st.integers(0, len(whole) - 1))
        length = data.draw(st.integers(0, 30))
        whole[at : at + length] = data.draw(st.binary(max_size=30))
        if not whole:
            return
    path.write_bytes(whole)
    right = {bits(each) for each in plan.frames}
    with suppress(RunError):  # one line, as when both copies of the info are gone
        assert set(read(path)) <= right


def test_frames_are_not_read_by_the_wrong_info_where_the_right_one_is_lost(tmp_path):
    """Two layouts of one size: only the name of the layout tells the frames apart."""
    left, right = (RunInfo(layers=(Layer(name),), fields=("f",), scalars=()) for name in "ab")
    with RunWriter(tmp_path, left, announce=False) as writer:
        writer.append(0, no_scalars(0), np.ones((1, 1), np.float32))
        start = writer.path.stat().st_size
        writer.describe(right)
        stop = writer.path.stat().st_size
        writer.append(1, no_scalars(0), np.ones((1, 1), np.float32))
    whole = bytearray(writer.path.read_bytes())
    for at in range(start, stop):
        whole[at] = 0
    writer.path.write_bytes(whole)

    with RunReader(writer.path) as reader:
        assert [frame.sequence for frame in reader.frames()] == [0]
        assert "cannot be understood" in reader.damage[-1]


@given(st.lists(infos(), min_size=1, max_size=4), st.data())
def test_layouts_that_change_in_mid_run_come_back_with_their_frames(tmp_path_factory, every, data):
    folder, written_down = tmp_path_factory.mktemp("run"), []
    with RunWriter(folder, every[0]) as writer:
        for number, info in enumerate(every):
            if number:
                writer.describe(info)
            for _ in range(data.draw(st.integers(0, 2))):
                frame = data.draw(frames_of(info, writer.sequence))
                append(writer, frame)
                written_down.append((info, bits(frame)))

    with RunReader(writer.path) as reader:
        assert [(reader.info, bits(each)) for each in reader.frames()] == written_down
        united = reader.layout()
        assert {layer.name for layer in united.layers} == {
            layer.name for info in every for layer in info.layers
        }
        assert set(united.scalars) == {name for info in every for name in info.scalars}


def test_kinds_of_records_of_later_versions_are_stepped_over(tmp_path):
    frames = random_frames(info_of(), 1)
    path = written(tmp_path, info_of(), frames)
    with path.open("ab") as file:
        file.write(record(77, b"what a later version writes") + record(NOTE, b'{"what":"x"}'))

    with RunReader(path) as reader:
        assert len(list(reader.frames())) == 1
        assert reader.notes[-1] == Note("x")
        assert reader.damage == []


def test_fields_of_later_versions_are_left_out_of_an_info(tmp_path):
    path = tmp_path / "frames-000.dlr"
    path.write_bytes(record(INFO, b'{"name":"x","colour":"blue","layers":[{"name":"a","q":1}]}'))

    assert RunReader(path).info == RunInfo(name="x", layers=(Layer("a"),))


def test_a_schema_of_a_later_version_is_refused_in_one_line(tmp_path):
    path = tmp_path / "frames-000.dlr"
    path.write_bytes(record(INFO, b'{"schema":3}'))

    with pytest.raises(RunError, match="schema 3, this difflens reads up to 2"):
        RunReader(path)


def huge(count: int) -> bytes:
    return b'{"layers":[' + b",".join(b'{"name":"%d"}' % i for i in range(count)) + b"]}"


HOSTILE = {
    "json-bomb": record(INFO, b'{"facts":{"a":' + b"[" * 5_000_000),
    "deep-json": record(INFO, b'{"facts":{"a":' + b"[" * 3000 + b"]" * 3000 + b"}}"),
    "ten-million-layers": record(INFO, b'{"layers":[' + b'{"name":""},' * 2_500_000 + b"{}]}"),
    "many-lists": record(INFO, b'{"facts":{"a":[' + b"[]," * 5_000_000 + b"[]]}}"),
    "one-name-for-all": record(INFO, b'{"layers":[{"name":"a"},{"name":"a"}]}'),
    "a-frame-of-terabytes": record(
        INFO,
        huge(90_000)[:-1] + b',"fields":["a"' + b"".join(b',"%d"' % i for i in range(9999)) + b"]}",
    ),
    "not-utf8": record(INFO, b'{"name":"\xff\xfe"}'),
    "a-number": record(INFO, b"7"),
    "long-length": head_of(INFO, [b""])[:8] + b"\xff" * 16,
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_head_is_refused_before_memory_is_taken_for_it(tmp_path, name):
    path = tmp_path / "frames-000.dlr"
    path.write_bytes(HOSTILE[name])
    tracemalloc.start()
    try:
        with pytest.raises(RunError) as caught:
            read_history(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert "\n" not in str(caught.value)
    assert peak < 250 << 20


def test_a_length_beyond_the_largest_is_damage_not_memory(tmp_path):
    path = written(tmp_path, info_of(), random_frames(info_of(), 1))
    whole = path.read_bytes()
    head = bytearray(head_of(FRAME, [b""]))
    head[8:12] = (LARGEST_PAYLOAD + 1).to_bytes(4, "little")
    head[20:24] = crc32(bytes(head[:20])).to_bytes(4, "little")
    path.write_bytes(whole + head + whole[len(whole) // 2 :])

    assert len(read(path)) >= 1


def test_a_million_notes_and_places_of_damage_take_bounded_memory(tmp_path):
    path = written(tmp_path, info_of(), random_frames(info_of(), 1))
    with path.open("ab") as file:
        file.write(record(NOTE, b'{"what":"x"}') * 3 * MOST_NOTES + b"DLR" * 50)
        file.write((b"damage" + record(77, b"")) * 300)

    with RunReader(path) as reader:
        list(reader.frames())
        assert len(reader.notes) <= MOST_NOTES
        assert len(reader.damage) <= MOST_DAMAGE + 1
        assert reader.damage[-1].endswith("further places are damaged")


def test_a_run_that_is_overwritten_under_its_reader_is_told(tmp_path):
    frames = random_frames(info_of(), 50)
    path = written(tmp_path, info_of(), frames)
    with RunReader(path) as reader:
        list(reader.frames())
        written(tmp_path, info_of(), [], overwrite=True)

        with pytest.raises(RunError, match="it was overwritten"):
            list(reader.frames())


def test_a_record_read_half_written_is_read_again_not_called_damaged(tmp_path):
    """The piece in hand was taken before the writer had finished with it."""
    frames = random_frames(info_of(), 3)
    path = written(tmp_path, info_of(), frames, announce=False)
    with RunReader(path) as reader:
        seen = reader.frames()
        next(seen)
        at = reader.offset - reader._piece_at
        reader._piece = reader._piece[:at] + bytes(len(reader._piece) - at)

        assert [bits(each) for each in seen] == [bits(each) for each in frames[1:]]
        assert reader.damage == []


def test_a_file_that_cannot_be_opened_is_one_line(tmp_path):
    for path, reason in {
        tmp_path / "none": "no such file or directory",
        tmp_path: "it is no run that can be read",
    }.items():
        with pytest.raises(RunError, match=reason):
            open_run(path)
    file_of(tmp_path).write_bytes(b"")
    with pytest.raises(RunError, match="it is empty"):
        open_run(tmp_path)


def test_ranks_are_chosen_by_their_number(tmp_path):
    for rank in (0, 2):
        written(tmp_path, info_of(rank=rank), random_frames(info_of(), rank + 1))

    assert len(list(open_run(tmp_path).frames())) == 1
    assert len(list(open_run(tmp_path, 2).frames())) == 3
    with pytest.raises(RunError, match="it has no file of rank 1, only 2 others"):
        open_run(tmp_path, 1)


def open_files() -> int:
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.is_dir() else 0


def test_no_file_stays_open_behind_a_reader(tmp_path):
    written(tmp_path, info_of(), random_frames(info_of(), 1))
    broken = tmp_path / "broken.dlr"
    broken.write_bytes(b"no run")
    before = open_files()
    for _ in range(5):
        read_history(tmp_path)
        with pytest.raises(RunError):
            open_run(broken)
    after = open_files()

    assert after == before


def test_a_layout_is_named_by_the_sum_of_its_info():
    payload = json_payload(info_of())

    assert layout_of(payload) == crc32(b"".join(payload))
    assert len(b"".join(payload)) % 8 == 0
    assert no_layers(1, 2).shape == (1, 2)


def test_thousands_of_layouts_are_gathered_in_a_moment(tmp_path):
    """Room for all layers is made once: one at a time would copy the run for each of them."""
    with RunWriter(tmp_path, RunInfo(fields=("f",), scalars=())) as writer:
        for i in range(2000):
            writer.describe(RunInfo(layers=(Layer(str(i)),), fields=("f",), scalars=()))
            writer.append(i, no_scalars(0), np.full((1, 1), i, np.float32))
    start = time.perf_counter()
    history = read_history(tmp_path)

    assert time.perf_counter() - start < 20
    assert (history.frames, len(history.info.layers)) == (2000, 2000)
    assert history.extremes.highest.tolist() == [list(range(2000))]


def test_layouts_that_are_too_large_together_are_refused(tmp_path):
    names = [str(i) for i in range(5000)]
    with RunWriter(tmp_path, RunInfo(fields=tuple(names), scalars=()), announce=False) as writer:
        writer.append(0, no_scalars(0), no_layers(5000, 0))
        writer.describe(RunInfo(layers=tuple(map(Layer, names)), fields=(), scalars=()))
        writer.append(1, no_scalars(0), no_layers(0, 5000))

    with pytest.raises(RunError, match="in all a frame of 100000032 bytes"):
        read_history(tmp_path)


@pytest.mark.parametrize(
    "count", [pytest.param(1000, id="ci"), pytest.param(5000, id="full", marks=pytest.mark.slow)]
)
def test_mutants_give_frames_that_were_written_or_one_line(tmp_path, count):
    draw, frames = random.Random(5), random_frames(info_of(), 4)
    path = written(tmp_path, info_of(), frames)
    good, right, whole = path.read_bytes(), {bits(each) for each in frames}, 0
    for _ in range(count):
        mutant = bytearray(good)
        for _ in range(draw.randint(1, 3)):
            at, cut = draw.randrange(len(mutant)), draw.choice([0, 1, 4, 24, 100, 500])
            mutant[at : at + cut] = draw.choice(
                [b"", bytes([draw.randrange(256)]), draw.randbytes(4), good[: draw.choice([4, 24])]]
            )
            mutant = mutant or bytearray(b"D")
        path.write_bytes(mutant)
        with suppress(RunError):
            found = read(path)
            assert set(found) <= right
            read_history(path)
            whole += bool(found)

    assert whole > count // 4


def test_frames_that_arrive_between_two_looks_at_the_size_are_not_stepped_over(
    tmp_path, monkeypatch
):
    from difflens.training.history import reader as module

    info = RunInfo(layers=(Layer("a", (2,)), Layer("b", (2,))))
    layers = np.ones((7, 2), np.float32)
    with RunWriter(tmp_path / "run", info) as writer, RunReader(writer.path) as reader:
        for step in range(3):
            writer.append(step, {"loss": 1.0}, layers)
        seen = [frame.step for frame in reader.frames()]
        looked = module.os.fstat

        def grown_right_after(file):
            told = looked(file)
            if writer.sequence == 3:
                for step in (3, 4):
                    writer.append(step, {"loss": 1.0}, layers)
            return told

        monkeypatch.setattr(module.os, "fstat", grown_right_after)
        for _ in range(3):
            seen += [frame.step for frame in reader.frames()]

        assert (seen, reader.damage) == ([0, 1, 2, 3, 4], [])
