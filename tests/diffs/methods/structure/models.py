"""Models with weights as trained ones have them, and ways to change their structure."""

import numpy as np

Model = dict[str, np.ndarray]


def trained(random: np.random.Generator, shape: tuple[int, ...], size: float = 0.03) -> np.ndarray:
    """Draw weights whose rows and columns differ much in size, with heavy tails."""
    values = random.standard_t(5, shape) * size
    if len(shape) > 1:
        rows = np.exp(random.normal(0, 0.6, (shape[0],) + (1,) * (len(shape) - 1)))
        columns = np.exp(random.normal(0, 0.5, (1, shape[1]) + (1,) * (len(shape) - 2)))
        values = values * rows * columns
    return values.astype(np.float32)


def decoder(layers: int = 4, width: int = 32, hidden: int = 48, words: int = 90, seed: int = 0):
    """Make a small decoder of such weights, with gains of about one."""
    random = np.random.default_rng(seed)
    model: Model = {"model.embed_tokens.weight": trained(random, (words, width))}
    for i in range(layers):
        block = f"model.layers.{i}"
        for part in "qkvo":
            model[f"{block}.self_attn.{part}_proj.weight"] = trained(random, (width, width))
        for part in ("gate", "up"):
            model[f"{block}.mlp.{part}_proj.weight"] = trained(random, (hidden, width))
        model[f"{block}.mlp.down_proj.weight"] = trained(random, (width, hidden))
        for norm in ("input_layernorm", "post_attention_layernorm"):
            gain = 1 + 0.3 * random.standard_normal(width)
            model[f"{block}.{norm}.weight"] = gain.astype(np.float32)
    model["model.norm.weight"] = (1 + 0.3 * random.standard_normal(width)).astype(np.float32)
    model["lm_head.weight"] = trained(random, (words, width))
    return model


def tuned(model: Model, relative: float = 0.02, seed: int = 1) -> Model:
    """Move every value a little, as fine-tuning does."""
    random = np.random.default_rng(seed)
    return {
        name: (value + relative * value.std() * random.standard_normal(value.shape)).astype("f4")
        for name, value in model.items()
    }


def relayered(model: Model, order: list[int], stack: str = "model.layers.") -> Model:
    """Build the stack anew: block i is block order[i] of before."""
    made = {name: value for name, value in model.items() if not name.startswith(stack)}
    for place, source in enumerate(order):
        for name, value in model.items():
            if name.startswith(f"{stack}{source}."):
                made[name.replace(f"{stack}{source}.", f"{stack}{place}.", 1)] = value
    return made
