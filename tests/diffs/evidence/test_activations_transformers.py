"""Real models of transformers 5, run as a user's code would load them."""

import numpy as np
import pytest

from difflens.diffs.analyses import analyse
from difflens.diffs.evidence import activations as parent
from difflens.diffs.evidence import activations_child as child
from difflens.diffs.evidence.activations import activations
from difflens.diffs.evidence.records import Evidence
from difflens.diffs.story import diff

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers", minversion="5")

SMALL = {"hidden_size": 16, "num_attention_heads": 4, "num_hidden_layers": 2}
SMALL |= {"intermediate_size": 32, "vocab_size": 50}
GPT2 = {"n_embd": 16, "n_head": 4, "n_layer": 2, "vocab_size": 50}
MODELS = {
    "bert": ("BertForMaskedLM", "BertConfig", SMALL),
    "gpt2": ("GPT2LMHeadModel", "GPT2Config", GPT2 | {"bos_token_id": 1, "eos_token_id": 2}),
    "llama": ("LlamaForCausalLM", "LlamaConfig", SMALL),
}
CODE = """
import torch
import transformers

def load(path):
    config = transformers.AutoConfig.from_pretrained(path)
    return getattr(transformers, config.architectures[0]).from_pretrained(path)

class Wrapped(torch.nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, input_ids):
        return self.inner(input_ids, output_attentions=True)

def wrapped(path):
    return Wrapped(load(path))

class Fused(torch.nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner, self.config = inner, inner.config

    def forward(self, input_ids, **kwargs):
        self.inner.set_attn_implementation("sdpa")
        return self.inner(input_ids)

def fused(path):
    return Fused(load(path))
"""


def saved(name: str, side: str) -> str:
    model, config, settings = MODELS[name]
    torch.manual_seed(len(side))
    getattr(transformers, model)(getattr(transformers, config)(**settings)).save_pretrained(side)
    return side


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "hf_code.py").write_text(CODE)
    monkeypatch.delitem(__import__("sys").modules, "hf_code", raising=False)
    np.savez("sample.npz", input_ids=np.random.default_rng(0).integers(3, 50, (3, 6)))
    monkeypatch.setattr(parent, "_run", lambda code, rest, *_: child.main([code, *rest]))


def ask(name: str, code: str):
    """Run both sides in this process, and ask how they attend."""
    left, right = saved(name, "left"), saved(name, "right")
    run = activations(left, right, "sample.npz", code)
    return run, analyse("attention_pattern_diff", diff(left, right), Evidence(activations=run))


@pytest.mark.parametrize("name", MODELS)
def test_a_model_of_transformers_5_shows_its_attention(name):
    run, envelope = ask(name, "hf_code:load")

    assert run.patterns.js.shape == (3, 2, 4)
    assert envelope.status == "ok"
    assert 0 < envelope.fields["pattern_similarity"] < 1


def test_a_module_that_wraps_one_of_transformers_is_asked_for_eager_attention_too():
    run, _ = ask("llama", "hf_code:wrapped")

    assert run.patterns.js.shape == (3, 2, 4)


def test_a_run_without_attention_is_not_asked_for_the_sample_that_was_given():
    _, envelope = ask("bert", "hf_code:fused")

    (needs,) = {each.needs for each in envelope.missing}
    (why,) = {each.why for each in envelope.missing}
    assert "--sample" not in needs
    assert "attention weights" in needs
    assert 'attn_implementation="eager"' in why
