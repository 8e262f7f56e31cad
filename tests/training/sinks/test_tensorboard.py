"""Live event files, read back by the real TensorBoard."""

import pytest
from training.sinks.test_prometheus import INFO, frame

from difflens.training.sinks.tensorboard import Tensorboard


@pytest.mark.filterwarnings("ignore")
def test_the_real_reader_sees_every_step_while_the_run_goes_on(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    sink = Tensorboard(tmp_path / "run", INFO)
    for step in range(4):
        sink.write(frame(step, loss=float("inf") if step == 3 else 0.5 + step), INFO)
    found = EventAccumulator(str(tmp_path / "run")).Reload()

    losses = [(each.step, each.value) for each in found.Scalars("loss")]
    assert losses == [(0, 0.5), (1, 1.5), (2, 2.5), (3, float("inf"))]
    assert found.Scalars("grad_norm/fc1.weight")[0].value == 2.0
    assert found.Scalars("update_ratio/fc1.weight")[0].value == 0.5
    assert "grad_norm/frozen" not in found.Tags()["scalars"]
    sink.close()


def test_our_own_reader_takes_them_as_a_run(tmp_path):
    from difflens.training.history import read_history

    sink = Tensorboard(tmp_path / "run", INFO)
    for step in range(4):
        sink.write(frame(step, loss=0.5 + step), INFO)
    sink.close()

    history = read_history(tmp_path / "run")
    assert history.course.scalar("loss").tolist() == [0.5, 1.5, 2.5, 3.5]
    assert "fc1.weight" in [layer.name for layer in history.info.layers]


def test_a_value_too_large_for_32_bits_is_infinite_and_no_error(tmp_path):
    sink = Tensorboard(tmp_path / "run", INFO)

    sink.write(frame(0, loss=1e300), INFO)
    sink.close()
