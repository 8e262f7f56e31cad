"""Ray: the same bits from any number of workers, whatever dies, and one line where it cannot work.

Ray listens on all interfaces, so the cluster and its program run in a network of their own.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from storage.servers.network import RAY_ENVIRONMENT, isolate

PROGRAM = Path(__file__).parent / "programs" / "on_ray.py"
KILLS = 2


def run_program(folder, kills):
    pytest.importorskip("ray")
    # Ray's sockets need a short path.
    with TemporaryDirectory(prefix="ray", dir="/tmp") as short:
        command = isolate([sys.executable, str(PROGRAM), str(folder), str(kills), short])
        environment = os.environ | RAY_ENVIRONMENT
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False, timeout=600
        )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.strip().splitlines()[-1])


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """Everything that one cluster was tried with: it takes seconds to start."""
    return run_program(tmp_path_factory.mktemp("ray"), KILLS)


@pytest.mark.long
def test_documents_are_the_same_on_any_number_of_threads_and_workers(told):
    assert len(told["results"]) == 9
    assert all(told["results"].values())


@pytest.mark.long
def test_a_killed_worker_changes_nothing(told):
    assert told["kills"] == {"same": KILLS, "killed": KILLS}


@pytest.mark.slow
def test_twenty_killed_workers_change_nothing(tmp_path):
    assert run_program(tmp_path, 20)["kills"] == {"same": 20, "killed": 20}


@pytest.mark.long
@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("unset", "no Ray cluster is named: RAY_ADDRESS is not set"),
        ("closed", "no Ray cluster answers at 127.0.0.1:1: connection refused"),
        ("other", "what answers at 127.0.0.1:8123 is no Ray cluster"),
        ("words", "RAY_ADDRESS is 'ray://127.0.0.1:6390', expected HOST:PORT"),
        ("local", "RAY_ADDRESS is 'local', expected HOST:PORT"),
        ("ray", "it runs Ray 2.0.0, this is Ray"),
        ("python", "it runs Python 3.0.1, this is Python"),
    ],
)
def test_a_bad_address_is_one_line_within_five_seconds(told, address, said):
    error = told["addresses"][address]

    assert said in error["text"]
    assert "\n" not in error["text"]
    assert error["seconds"] < 5


@pytest.mark.long
def test_workers_of_another_version_are_refused(told):
    assert told["other difflens"]["text"].startswith("the workers have difflens")


@pytest.mark.long
def test_a_task_that_fits_on_no_machine_is_refused_and_does_not_wait(told):
    assert told["too_much_memory"]["text"].startswith("a task needs 1048576.0 GiB of memory")
    assert told["too_much_memory"]["seconds"] < 5


@pytest.mark.long
def test_what_a_worker_cannot_read_is_the_error_of_the_file(told):
    error = told["tells_where_it_failed"]

    assert error["text"].endswith("changing.safetensors: changed while reading: it was written to")
    assert error["hint"]


@pytest.mark.long
def test_the_command_prints_what_it_prints_on_threads(told):
    assert (told["command"]["code"], told["command"]["same"]) == (1, True)
    assert "(raylet)" not in told["command"]["stderr"]


@pytest.mark.long
def test_ctrl_c_ends_the_command_and_frees_the_cluster(told):
    assert told["cut_by_user"]["code"] == 130
    assert told["cut_by_user"]["seconds"] < 5
    assert told["cut_by_user"]["free"] == 4
