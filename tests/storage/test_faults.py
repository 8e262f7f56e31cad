"""Whatever goes wrong on the way, the bytes are right or there is one error."""

import pickle
import random
import threading
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lanes import examples
from storage.servers.files import serve_files

from difflens.core.addresses import ALLOW_HTTP, locate
from difflens.core.errors import ChangedWhileReading, UnreadableFile
from difflens.core.protocols import Extent
from difflens.storage import asking, connections, places
from difflens.storage.interruption import Interrupted
from difflens.storage.read_ahead import read_ahead

SIZE = 1_000_000
DATA = random.Random(21).randbytes(SIZE)
OTHER = random.Random(22).randbytes(SIZE)
FAR = (400_000, 900_000)  # bytes that do not come with the beginning


@pytest.fixture(scope="module")
def faulty(tmp_path_factory):
    folder = tmp_path_factory.mktemp("faulty")
    (folder / "a.bin").write_bytes(DATA)
    (folder / "b.bin").write_bytes(OTHER)
    (folder / "small.bin").write_bytes(DATA[:1000])
    with serve_files(folder, program="faults") as server:
        yield server


@pytest.fixture
def server(faulty, monkeypatch):
    """The server without faults, and a client that does not wait long."""
    faulty.ask("clear")
    faulty.ask("reset")
    monkeypatch.setenv(ALLOW_HTTP, "1")
    monkeypatch.setattr(asking, "FIRST_WAIT", 0.001)
    monkeypatch.setattr(connections, "STALL_SECONDS", 0.3)
    yield faulty
    places.forget()


def opened(server, name="a.bin"):
    return places.open_file(locate(f"{server.url}/{name}"))


def read_far(file):
    return file.read(*FAR) == DATA[FAR[0] : FAR[1]]


PASSING = [
    {"kind": "status", "value": 503, "times": 2},
    {"kind": "status", "value": 500, "times": 1},
    {"kind": "too_many", "value": 0, "times": 2},
    {"kind": "cut", "times": 4},
    {"kind": "cut", "value": 0, "times": 2},
    {"kind": "stall", "value": 1, "times": 1},
    {"kind": "slow_headers", "value": 1, "times": 1},
    {"kind": "chunked"},
    {"kind": "no_length"},
    {"kind": "redirect", "value": "{path}", "times": 1},
]


@pytest.mark.parametrize("fault", PASSING, ids=lambda fault: f"{fault['kind']}")
@pytest.mark.parametrize("when", [0, 1])
def test_what_passes_is_waited_for(server, fault, when):
    server.ask("fault", **fault, after=when)

    assert read_far(opened(server))


LASTING = [
    ({"kind": "status", "value": 503}, "answered 503, again and again"),
    ({"kind": "status", "value": 403}, "denies access: 403"),
    ({"kind": "status", "value": 418}, "answered 418"),
    ({"kind": "cut", "value": 0}, "break"),
    ({"kind": "stall", "value": 5}, "did not answer for"),
    ({"kind": "no_etag", "value": None}, None),
    ({"kind": "weak_etag", "value": None}, None),
    ({"kind": "gzip"}, "compressed"),
    ({"kind": "login"}, "web page"),
    ({"kind": "shifted", "value": 1}, "others were asked for"),
    ({"kind": "content_range", "value": "bytes 5-9/1000000"}, "others were asked for"),
    ({"kind": "content_range", "value": "bytes 0-x/*"}, "which bytes"),
    ({"kind": "redirect", "value": "{path}"}, "redirected more than"),
    ({"kind": "redirect", "value": "http://10.0.0.1{path}"}, "may not be asked"),
    ({"kind": "redirect", "value": "http://169.254.169.254/latest"}, "may not be asked"),
    ({"kind": "redirect", "value": "http://localhost:1{path}"}, "may not be asked"),
    ({"kind": "redirect", "value": "http://[::1]:1{path}"}, "may not be asked"),
    ({"kind": "redirect", "value": "http://[::ffff:127.0.0.1]:1{path}"}, "may not be asked"),
    ({"kind": "redirect", "value": "file:///etc/passwd"}, "may not be asked"),
    ({"kind": "redirect", "value": "http://a b/"}, "may not be asked"),
    ({"kind": "redirect", "value": "http://h:99999/"}, "may not be asked"),
]


@pytest.mark.parametrize(("fault", "reason"), LASTING, ids=str)
def test_what_lasts_is_one_error(server, fault, reason):
    server.ask("fault", **fault)

    if reason is None:
        assert read_far(opened(server))
    else:
        with pytest.raises(UnreadableFile, match=reason):
            opened(server)


def test_a_small_file_is_read_from_a_server_without_ranges(server):
    server.ask("fault", kind="no_range")

    assert opened(server, "small.bin").read(100, 900) == DATA[100:900]
    assert read_far(opened(server))


def test_a_large_file_is_not_read_from_a_server_without_ranges(server, monkeypatch):
    monkeypatch.setattr("difflens.storage.transfer._MOST_WITHOUT_RANGES", SIZE - 1)
    server.ask("fault", kind="no_range")

    with pytest.raises(UnreadableFile, match="does not send parts"):
        opened(server)


CHANGES = [
    [{"kind": "replaced", "value": "/b.bin"}],
    [{"kind": "replaced", "value": "/b.bin"}, {"kind": "no_conditions"}],
    [{"kind": "replaced", "value": "/small.bin"}, {"kind": "no_conditions"}],
    [{"kind": "replaced", "value": "/small.bin"}],
    [{"kind": "etag", "value": '"another"'}],
    [{"kind": "no_etag"}],
    [{"kind": "status", "value": 404}],
    [{"kind": "status", "value": 412}],
    [{"kind": "status", "value": 416}],
]


@pytest.mark.parametrize("faults", CHANGES, ids=str)
@pytest.mark.parametrize("ahead", [False, True])
def test_a_file_that_changes_between_two_ranges_is_an_error(server, faults, ahead):
    file = opened(server)
    for fault in faults:
        server.ask("fault", **fault)

    items = read_ahead([FAR], lambda span: [Extent(file, *span)]) if ahead else iter([FAR])
    span = next(items)
    with pytest.raises(ChangedWhileReading):
        file.read(*span)


def test_a_file_that_changes_in_the_middle_of_a_range_is_an_error(server):
    """The answer is cut, and goes on in another file."""
    file = opened(server)
    server.ask("fault", kind="cut", times=1)
    server.ask("fault", kind="replaced", value="/b.bin", after=1)

    with pytest.raises(ChangedWhileReading):
        file.read(*FAR)


KINDS = st.sampled_from(
    [
        ("status", 503), ("status", 404), ("status", 403), ("too_many", 0), ("cut", None),
        ("cut", 0), ("cut", 7), ("no_range", None), ("no_conditions", None),
        ("replaced", "/b.bin"), ("shifted", 3), ("content_range", "bytes 0-9/10"),
        ("weak_etag", None), ("no_etag", None), ("etag", '"x"'), ("chunked", None),
        ("gzip", None), ("login", None), ("no_length", None), ("redirect", "{path}"),
        ("redirect", "http://10.0.0.1/"),
    ]
)  # fmt: skip
FAULTS = st.lists(st.tuples(KINDS, st.integers(0, 6), st.integers(1, 4)), min_size=1, max_size=4)
SPANS = st.lists(
    st.tuples(st.integers(0, SIZE), st.integers(0, 300_000)).map(
        lambda span: (span[0], min(sum(span), SIZE))
    ),
    min_size=1,
    max_size=6,
)


@settings(examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(faults=FAULTS, spans=SPANS, ahead=st.booleans())
def test_no_series_of_faults_makes_wrong_bytes(server, faults, spans, ahead):
    server.ask("clear")
    for (kind, value), after, times in faults:
        server.ask("fault", kind=kind, value=value, after=after, times=times)
    try:
        file = opened(server)
        # It may have been replaced before it was opened: then all of it is the other one.
        content = {DATA[:100]: DATA, OTHER[:100]: OTHER}[file.read(0, 100)]
        items = read_ahead(spans, lambda span: [Extent(file, *span)]) if ahead else spans
        for start, stop in items:
            assert file.read(start, stop) == content[start:stop]
    except (UnreadableFile, ChangedWhileReading):
        pass


def test_a_server_that_is_gone_is_one_line(monkeypatch):
    monkeypatch.setattr(asking, "FIRST_WAIT", 0.001)
    with pytest.raises(UnreadableFile, match="no connection to the server: connection refused"):
        places.open_file(locate("https://127.0.0.1:1/a.bin"))


def test_whoever_waits_is_woken_when_the_program_leaves(server, monkeypatch):
    monkeypatch.setattr(connections, "STALL_SECONDS", 30)
    file = opened(server)
    server.ask("fault", kind="stall", value=20)
    raised = []

    def read():
        try:
            file.read(*FAR)
        except Interrupted as error:
            raised.append(error)

    thread = threading.Thread(target=read)
    thread.start()
    time.sleep(0.3)
    began = time.monotonic()
    places.end_transfers()
    thread.join()

    assert time.monotonic() - began < 1
    assert len(raised) == 1
    server.ask("clear")
    assert read_far(opened(server))


def test_a_series_that_is_given_up_wakes_who_waits_for_it(server, monkeypatch):
    monkeypatch.setattr(connections, "STALL_SECONDS", 30)
    file = opened(server)
    server.ask("fault", kind="stall", value=20)
    items = read_ahead([FAR, (900_000, SIZE)], lambda span: [Extent(file, *span)])
    next(items)
    raised = []

    def read():
        try:
            file.read(*FAR)
        except Interrupted as error:
            raised.append(error)

    thread = threading.Thread(target=read)
    thread.start()
    time.sleep(0.3)
    items.close()
    thread.join(1)

    assert len(raised) == 1
    places.end_transfers()


SECRET = "SECRETOFTHETEST"


def test_the_query_of_an_address_is_used_and_never_shown(server):
    target = server.ask("sign", path="/a.bin", seconds=60)
    server.ask("fault", kind="signed")
    address = locate(server.url + target)
    file = places.open_file(address)
    secret = target.rpartition("=")[2]

    assert read_far(file)
    shown = f"{address} {address!r} {file.path} {vars(file)} {vars(file._transfer)}"
    assert secret not in shown
    assert secret.encode() not in pickle.dumps(file)
    with pytest.raises(UnreadableFile, match="stays on the machine") as caught:
        pickle.loads(pickle.dumps(file)).read(*FAR)  # noqa: S301
    assert secret not in str(caught.value)


@pytest.mark.parametrize(
    "fault",
    [
        {"kind": "status", "value": 503},
        {"kind": "status", "value": 403},
        {"kind": "cut", "value": 0},
        {"kind": "login"},
        {"kind": "redirect", "value": "http://10.0.0.1/"},
    ],
    ids=str,
)
def test_no_error_shows_the_query(server, fault):
    server.ask("fault", **fault)

    with pytest.raises(UnreadableFile) as caught:
        opened(server, f"a.bin?key={SECRET}")
    error: BaseException | None = caught.value
    while error is not None:
        assert SECRET not in f"{error!s} {error!r}"
        error = error.__cause__ or error.__context__
