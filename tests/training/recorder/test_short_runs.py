"""What costs nothing is not lost: scalars of every step, and the layers at the end."""

from math import nan

import numpy as np
import pytest
import torch

import difflens
from difflens.training.history import open_run, read_history


def recorded(folder, steps, *, losses=None, sampled=True, fails_at=None):
    """Train a small model under a sampling that reads one step in 100 behind the first 64."""
    model = torch.nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    inputs = torch.randn(4, 8)
    with difflens.monitor(model, optimizer, folder, diagnose_every=None) as watch:
        if sampled:  # no clock decides: the interval is what a price would have made it
            watch._hook._pace.sampling.every = 100
            watch._hook._pace.sampling.decide = lambda _price: False
        for step in range(steps):
            optimizer.zero_grad()
            model(inputs).square().mean().backward()
            optimizer.step()
            if step == fails_at:
                raise RuntimeError("the loop's own")
            loss = 1.0 if losses is None else losses(step)
            watch.step(loss, **({"val_loss": float(step)} if step % 100 == 99 else {}))
        watch.flush()
        assert watch.dropped == 0
    return read_history(folder)


def test_a_short_run_keeps_every_loss_and_every_val_loss_at_its_own_step(tmp_path):
    history = recorded(tmp_path / "run", 1000)

    validated = history.scalars.scalar("val_loss")
    assert (history.frames, history.first_step, history.last_step) == (1000, 0, 999)
    assert history.scalars.steps[~np.isnan(validated)].tolist() == list(range(99, 1000, 100))
    assert not np.isnan(history.scalars.scalar("loss")).any()
    assert 64 < history.read_steps < 500


def test_the_last_step_has_all_its_layers(tmp_path):
    history = recorded(tmp_path / "run", 150)

    assert history.course.steps[-1] == 149
    assert not history.course.last(1).missing("grad_l2").any()
    assert not history.course.last(1).missing("weight_l2").any()


def test_a_loop_that_raises_leaves_all_layers_of_its_last_step(tmp_path):
    with pytest.raises(RuntimeError, match="the loop's own"):
        recorded(tmp_path / "run", 150, fails_at=120)

    assert read_history(tmp_path / "run").course.steps[-1] == 119


def test_a_loss_that_is_no_number_between_two_readings_is_read_within_two_steps(tmp_path):
    history = recorded(tmp_path / "run", 150, losses=lambda step: nan if step >= 90 else 1.0)

    assert history.first_nonfinite_scalar["loss"] == 90
    assert 92 in history.course.steps.tolist()
    found = difflens.diagnose(tmp_path / "run").findings[0]
    assert (found.name, found.since_step) == ("nan", 90)


def test_a_run_says_how_many_steps_were_read(tmp_path):
    from difflens.training.history.listing import line_of

    history = recorded(tmp_path / "run", 150)

    assert line_of(tmp_path / "run").read_steps == history.read_steps
    assert difflens.diagnose(tmp_path / "run").read_steps == history.read_steps


def test_a_reader_of_the_first_version_would_refuse_the_run(tmp_path):
    recorded(tmp_path / "run", 150)

    source = open_run(tmp_path / "run")
    assert source.info.schema == 2
    source.close()
