"""Small attentions in every layout models are stored in, made from the same four matrices."""

import numpy as np

from difflens.diffs.analyses import analyse
from difflens.diffs.evidence.records import Evidence, Side
from difflens.diffs.story import diff

HEADS, SIZE, WIDTH = 4, 3, 12


def parts(seed: int = 0, kv_heads: int = HEADS, layers: int = 2) -> list[dict[str, np.ndarray]]:
    """Draw q, k, v (output first) and o of every layer, in float64."""
    random = np.random.default_rng(seed)
    rows = {"q": HEADS * SIZE, "k": kv_heads * SIZE, "v": kv_heads * SIZE}
    return [
        {part: random.normal(size=(count, WIDTH)) for part, count in rows.items()}
        | {"o": random.normal(size=(WIDTH, HEADS * SIZE))}
        for _ in range(layers)
    ]


def llama(layers: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Store them split, as Llama does."""
    return {
        f"model.layers.{place}.self_attn.{part}_proj.weight": value
        for place, layer in enumerate(layers)
        for part, value in layer.items()
    }


def gpt2(layers: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Store q, k and v in one matrix, input first."""
    model = {}
    for place, layer in enumerate(layers):
        fused = np.concatenate([layer["q"], layer["k"], layer["v"]])
        model[f"h.{place}.attn.c_attn.weight"] = fused.T.copy()
        model[f"h.{place}.attn.c_proj.weight"] = layer["o"].T.copy()
    return model


def neox(layers: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Store q, k and v group by group in one matrix."""
    model = {}
    for place, layer in enumerate(layers):
        groups = len(layer["k"]) // SIZE
        queries = layer["q"].reshape(groups, -1, WIDTH)
        keys, values = (layer[part].reshape(groups, SIZE, WIDTH) for part in "kv")
        fused = np.concatenate([queries, keys, values], axis=1).reshape(-1, WIDTH)
        model[f"layers.{place}.attention.query_key_value.weight"] = fused
        model[f"layers.{place}.attention.dense.weight"] = layer["o"]
    return model


def timm(layers: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Store q, k and v one after the other in one matrix, output first."""
    model = {}
    for place, layer in enumerate(layers):
        fused = np.concatenate([layer["q"], layer["k"], layer["v"]])
        model[f"blocks.{place}.attn.qkv.weight"] = fused
        model[f"blocks.{place}.attn.proj.weight"] = layer["o"]
    return model


LAYOUTS = {"llama": llama, "gpt2": gpt2, "neox": neox, "timm": timm}
KNOWN = Evidence(left=Side(config={"num_attention_heads": HEADS}))


def ask(name, left, right, evidence=KNOWN, policy=None, **options):
    """Ask an analysis about two models in memory."""
    more = () if policy is None else (policy,)
    return analyse(name, diff(left, right, **options), evidence, *more)


def circuits(layer: dict[str, np.ndarray], head: int) -> tuple[np.ndarray, np.ndarray]:
    """Multiply one head's circuits out, as wide as the model: what the analysis never does."""
    group = HEADS * SIZE // len(layer["k"])
    own = slice(head * SIZE, (head + 1) * SIZE)
    shared = slice(head // group * SIZE, (head // group + 1) * SIZE)
    return layer["q"][own].T @ layer["k"][shared], layer["o"][:, own] @ layer["v"][shared]
