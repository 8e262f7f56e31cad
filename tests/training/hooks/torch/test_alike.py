import pytest

torch = pytest.importorskip("torch")

from difflens.training.hooks.torch.info import alike_units  # noqa: E402
from difflens.training.hooks.torch.layers import parameters_of  # noqa: E402


def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.ReLU(), torch.nn.Linear(6, 3))


def test_rows_that_are_copies_of_the_first_are_named():
    model = network()
    with torch.no_grad():
        model[0].weight.copy_(model[0].weight[0].expand(6, 4))

    assert alike_units(parameters_of(model)) == ["0.weight"]


def test_random_rows_zeros_and_single_units_are_not_alike():
    model = torch.nn.Sequential(network(), torch.nn.Linear(3, 1))
    with torch.no_grad():
        model[0][2].weight.zero_()

    assert alike_units(parameters_of(model)) == []


def test_a_tensor_without_numbers_is_passed_over():
    assert alike_units(parameters_of(network().to("meta"))) == []


def test_a_run_keeps_what_was_alike_before_the_first_step(tmp_path):
    from difflens.training.history import open_run
    from difflens.training.story import monitor

    model = network()
    with torch.no_grad():
        model[0].weight.copy_(model[0].weight[0].expand(6, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with monitor(model, optimizer, run=tmp_path / "run") as watch:
        for _ in range(3):
            optimizer.zero_grad()
            loss = model(torch.randn(8, 4)).square().mean()
            loss.backward()
            optimizer.step()
            watch.step(loss=loss)

    source = open_run(tmp_path / "run")
    list(source.frames())
    assert source.info.facts["alike_units"] == ["0.weight"]
