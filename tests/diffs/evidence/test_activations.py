"""Most runs happen in this process, which has torch already; the child's own tests start it."""

from typing import Any

import numpy as np
import pytest

from difflens.core.errors import EvidenceError
from difflens.diffs.evidence import activations as parent
from difflens.diffs.evidence import activations_child as child
from difflens.diffs.evidence.activations import activations

torch = pytest.importorskip("torch")

VOCABULARY, WIDTH, HEADS, LAYERS = 11, 8, 2, 2

# A small decoder as a user would write it; `FILE` is a state dict saved by torch.
CODE = """
import torch
from torch import nn

class SelfAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.num_heads = 2
        for part in ("q_proj", "k_proj", "v_proj", "o_proj"):
            setattr(self, part, nn.Linear(8, 8, bias=False))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (p(x).view(b, t, 2, 4).transpose(1, 2)
                   for p in (self.q_proj, self.k_proj, self.v_proj))
        scores = q @ k.transpose(2, 3) / 2
        mask = torch.ones(t, t, dtype=torch.bool).tril()
        weights = scores.masked_fill(~mask, -torch.inf).softmax(-1)
        out = self.o_proj((weights @ v).transpose(1, 2).reshape(b, t, d))
        return out, weights

class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed_tokens = nn.Embedding(11, 8)
        self.layers = nn.ModuleList(nn.ModuleDict({"self_attn": SelfAttention()})
                                    for _ in range(2))
        self.lm_head = nn.Linear(8, 11, bias=False)

    def forward(self, input_ids, output_attentions=False):
        x, seen = self.embed_tokens(input_ids), []
        for layer in self.layers:
            out, weights = layer["self_attn"](x)
            x = x + out
            seen.append(weights)
        return {"logits": self.lm_head(x), "attentions": seen if output_attentions else None}

def load(path):
    model = Decoder()
    model.load_state_dict(torch.load(path))
    return model

class Masked(Decoder):
    def forward(self, input_ids, attention_mask, output_attentions=False):
        return super().forward(input_ids, output_attentions)

def masked(path):
    model = Masked()
    model.load_state_dict(torch.load(path))
    return model

def plain(path):
    import numpy as np
    table = torch.load(path)["embed_tokens.weight"].numpy()
    return lambda input_ids: table[input_ids]
"""

# What needs no torch is quick to start.
BROKEN = """
def failing(path):
    raise RuntimeError("no such disk")

def slow(path):
    import time
    time.sleep(60)

def works(path):
    return lambda input_ids: input_ids / 2

constant = 3
"""


def weights(seed: int = 0) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(seed)
    shapes = {"embed_tokens.weight": (VOCABULARY, WIDTH), "lm_head.weight": (VOCABULARY, WIDTH)}
    for layer in range(LAYERS):
        for part in "qkvo":
            shapes[f"layers.{layer}.self_attn.{part}_proj.weight"] = (WIDTH, WIDTH)
    return {name: torch.randn(shape, generator=generator) for name, shape in shapes.items()}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with the user's code and a sample."""
    folder = tmp_path_factory.mktemp("user")
    (folder / "usercode.py").write_text(CODE)
    (folder / "broken.py").write_text(BROKEN)
    ids = np.random.default_rng(0).integers(0, VOCABULARY, (5, 6))
    np.savez(folder / "sample.npz", input_ids=ids, labels=np.roll(ids, -1, 1))
    return folder


@pytest.fixture(autouse=True)
def _here(place, monkeypatch):
    monkeypatch.chdir(place)
    monkeypatch.syspath_prepend(place)


def saved(left: dict[str, Any], right: dict[str, Any]) -> None:
    torch.save(left, "left.pt")
    torch.save(right, "right.pt")


def run(
    left: dict[str, Any],
    right: dict[str, Any],
    code: str = "usercode:load",
    sample: str = "sample.npz",
):
    """Run the child's part here: it differs from the real thing by the process alone."""
    saved(left, right)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parent, "_run", lambda code, rest, *_: child.main([code, *rest]))
        return activations("left.pt", "right.pt", sample, code)


@pytest.fixture(scope="module")
def changed(place):
    """Left has a head that nothing reads; right differs in one matrix."""
    left = weights()
    left["layers.0.self_attn.o_proj.weight"][:, 4:] = 0
    right = {name: value.clone() for name, value in left.items()}
    right["layers.1.self_attn.v_proj.weight"] *= 1.5
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        patch.syspath_prepend(place)
        return run(left, right)


def test_a_head_whose_output_columns_are_zero_has_no_importance_at_all(changed):
    scores = changed.left.head_scores

    assert scores.shape == (5, LAYERS, HEADS)
    assert (scores[:, 0, 1] == 0).all()
    assert (scores[:, 0, 0] > 0).all()


def test_taking_a_head_out_that_nothing_reads_changes_no_loss(changed):
    assert len(changed.left.ablations) == LAYERS * HEADS
    assert changed.left.ablations[0, 1] == (0.0,) * 5
    assert any(changed.left.ablations[0, 0])


def test_the_error_of_a_layer_is_that_of_its_weights_on_its_own_inputs(changed):
    errors = changed.layer_output_error

    assert errors["layers.1.self_attn.v_proj"] == pytest.approx(0.25)
    assert errors["layers.0.self_attn.q_proj"] == 0


def test_outputs_are_compared_as_numbers_and_as_predictions(changed):
    assert 0 < changed.output_error < 1
    assert len(changed.kl) == len(changed.agreement) == 5
    assert min(changed.kl) > 0
    assert changed.left.outputs_shape == (6, VOCABULARY)
    assert changed.left.outputs_finite


def test_only_what_reads_the_change_attends_differently(changed):
    js = changed.patterns.js

    assert js.shape == (5, LAYERS, HEADS)
    assert np.abs(js).max() == 0  # both layers attend before the changed values are added
    assert 0 < changed.patterns.floor.max() < 0.1 < changed.patterns.ceiling.max()


def test_a_change_of_queries_is_seen_in_that_layer():
    left = weights()
    right = {name: value.clone() for name, value in left.items()}
    right["layers.1.self_attn.q_proj.weight"] *= -1

    js = run(left, right).patterns.js

    assert js[:, 0].max() == 0
    assert js[:, 1].min() > 0


def test_scaling_values_up_and_outputs_down_leaves_importance_as_it_is():
    left = weights()
    right = {name: value.clone() for name, value in left.items()}
    right["layers.0.self_attn.v_proj.weight"][:4] *= 4
    right["layers.0.self_attn.o_proj.weight"][:, :4] /= 4

    found = run(left, right)

    np.testing.assert_allclose(found.right.head_scores, found.left.head_scores, rtol=1e-5)
    assert found.output_error < 1e-6


def test_importance_is_the_gradient_that_torch_gives_for_a_gate_on_the_head():
    """<A, dL/dA> of a head summed over tokens is the derivative by a gate on its output."""
    saved(weights(), weights())
    model = child.named("usercode:load")("left.pt")
    with np.load("sample.npz") as sample:
        ids, labels = (torch.as_tensor(sample[name][:1]) for name in ("input_ids", "labels"))
    gates = torch.ones(ids.shape[1], HEADS, requires_grad=True)
    hook = model.layers[0]["self_attn"].o_proj.register_forward_pre_hook(
        lambda _, inputs: (inputs[0] * gates.repeat_interleave(WIDTH // HEADS, 1),)
    )
    logits = model(ids)["logits"]
    hook.remove()
    loss = torch.nn.functional.cross_entropy(logits[0], labels[0])
    (gradient,) = torch.autograd.grad(loss, gates)

    found = run(weights(), weights())

    np.testing.assert_allclose(found.left.head_scores[0, 0], gradient.abs().mean(0), rtol=1e-4)
    assert found.left.losses[0] == pytest.approx(loss.item(), rel=1e-5)


def test_a_sample_without_labels_has_no_losses_and_says_why():
    np.savez("bare.npz", input_ids=np.zeros((2, 4), np.int64))

    found = run(weights(), weights(), sample="bare.npz")

    assert found.left.losses is None
    assert found.left.head_scores is None
    assert found.left.reasons["loss"] == "the sample has no `labels`"
    assert found.output_error == 0


def test_padding_is_no_query():
    ids = np.ones((2, 6), np.int64)
    np.savez("padded.npz", input_ids=ids, attention_mask=np.array([[1, 1, 1, 0, 0, 0]] * 2))
    left, right = weights(), weights(1)

    found = run(left, right, "usercode:masked", sample="padded.npz")

    assert found.patterns.js.shape == (2, LAYERS, HEADS)
    assert found.examples == 2


def test_a_model_of_no_framework_gives_its_outputs_and_reasons_for_the_rest():
    found = run(weights(), weights(1), "usercode:plain", sample="sample.npz")

    assert found.output_error > 0
    assert found.patterns is None
    assert "no torch module" in found.left.reasons["head_scores"]
    assert "attentions" in found.left.reasons


@pytest.mark.parametrize(
    ("arrays", "reason"),
    [
        ({"input_ids": np.zeros((2, 3), int), "labels": np.zeros((3, 3), int)}, "as many in each"),
        ({"input_ids": np.array(3)}, "one row an example"),
        ({}, "one row an example"),
        ({"input_ids": np.array([[object()]])}, "Object arrays cannot be loaded"),
    ],
)
def test_a_sample_that_cannot_be_used_is_refused(place, arrays, reason):
    np.savez("odd.npz", **arrays)

    with pytest.raises(ValueError, match=reason):
        child.read_sample(place / "odd.npz")


def test_a_model_that_cannot_be_called_is_refused():
    with pytest.raises(TypeError, match="the model is a int, which cannot be called"):
        child.wrapped(3)


def test_the_child_runs_in_a_process_of_its_own():
    np.savez("ids.npz", input_ids=np.ones((3, 2)))

    found = activations("left.npz", "right.npz", "ids.npz", "broken:works")

    assert found.examples == 3
    assert found.output_error == 0
    assert found.source == "broken:works on ids.npz"


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("broken:failing", "RuntimeError: no such disk"),
        ("broken:missing", "has no attribute 'missing'"),
        ("nowhere:load", "No module named 'nowhere'"),
        ("broken:constant", "broken:constant is no callable"),
    ],
)
def test_code_that_fails_is_told_in_one_line(code, reason):
    with pytest.raises(EvidenceError, match=reason) as error:
        activations("left.pt", "right.pt", "sample.npz", code)

    assert "\n" not in str(error.value)


def test_code_that_does_not_end_is_stopped():
    with pytest.raises(EvidenceError, match="did not end within 1 seconds"):
        activations("left.pt", "right.pt", "sample.npz", "broken:slow", seconds=1)


@pytest.mark.parametrize("damage", [b"", b"PK\x03\x04 torn", b"{}"])
def test_what_the_child_hands_back_is_not_trusted(place, damage, monkeypatch):
    def lie(_code, rest, *_):
        for side in ("left", "right"):
            folder = place / rest[3] / side
            folder.mkdir()
            (folder / "about.json").write_bytes(b'{"examples": 1}')
            (folder / "0.npz").write_bytes(damage)

    monkeypatch.setattr(parent, "_run", lie)

    with pytest.raises(EvidenceError, match="handed back cannot be read"):
        activations("left.pt", "right.pt", "sample.npz", "broken:works")


def test_objects_that_the_child_hands_back_are_not_unpickled(place, monkeypatch):
    def lie(_code, rest, *_):
        for side in ("left", "right"):
            folder = place / rest[3] / side
            folder.mkdir()
            (folder / "about.json").write_bytes(b'{"examples": 1}')
            np.savez(folder / "0.npz", outputs=np.array([object()]))

    monkeypatch.setattr(parent, "_run", lie)

    with pytest.raises(EvidenceError, match="handed back cannot be read"):
        activations("left.pt", "right.pt", "sample.npz", "broken:works")


def test_models_in_memory_cannot_be_handed_to_code():
    with pytest.raises(EvidenceError, match="both models must be files"):
        activations({}, "right.pt", "sample.npz", "usercode:load")
