"""Where edits of the dev part go: regular expressions by base model, and places of units."""

from __future__ import annotations

QV = r"attention\.self\.(query|value)\.weight"
ATTENTION = r"attention\.(self\.(query|key|value)|output\.dense)\.weight"
MLP = r"(intermediate|layer\.\d+\.output)\.dense\.weight"
ENCODER = r"encoder.*(dense|query|key|value)\.weight"

# The matrices of each base that people quantise, prune and adapt.
MATRICES = {
    "minilm": ENCODER,
    "minilm-2": ENCODER,
    "chgnet": r"mlp_(core|gate|out)\.layers\.\d\.weight",
    "silero": r"(conv\d|lstm_cell)\.?weight|conv\d\.weight",
    "gpt": r"(attn|mlp)\.c_\w+\.weight",
    "llama": r"_proj\.weight",
    "mlp": r"[024]\.weight",
    "cnn": r"conv[23]\.weight",
    "lstm": r"lstm\.weight_(hh|ih_l1)",
}
# One matrix of each base.
ONE = {
    "minilm-2": r"layer\.1\.intermediate\.dense\.weight",
    "minilm": r"layer\.3\.attention\.output\.dense\.weight",
    "chgnet": r"^atom_conv_layers\.2\.twoBody_atom\.mlp_core\.layers\.3\.weight",
    "silero": r"^lstm_cell\.weight_hh",
    "gpt": r"h\.2\.mlp\.c_fc\.weight",
    "llama": r"layers\.2\.self_attn\.o_proj\.weight",
    "mlp": r"^2\.weight",
    "cnn": r"^conv2\.weight",
    "lstm": r"weight_hh_l1",
}

BERT_UNITS = [
    ("encoder.layer.1.intermediate.dense.weight", 0),
    ("encoder.layer.1.intermediate.dense.bias", 0),
    ("encoder.layer.1.output.dense.weight", 1),
]
BERT_HEADS = [
    *(
        (f"encoder.layer.0.attention.self.{part}.{kind}", 0)
        for part in ("query", "key", "value")
        for kind in ("weight", "bias")
    ),
    ("encoder.layer.0.attention.output.dense.weight", 1),
]
GPT_UNITS = [
    ("transformer.h.1.mlp.c_fc.weight", 1),
    ("transformer.h.1.mlp.c_fc.bias", 0),
    ("transformer.h.1.mlp.c_proj.weight", 0),
]
LLAMA_UNITS = [
    ("model.layers.0.mlp.gate_proj.weight", 0),
    ("model.layers.0.mlp.up_proj.weight", 0),
    ("model.layers.0.mlp.down_proj.weight", 1),
]
MLP_UNITS = [("2.weight", 0), ("2.bias", 0), ("4.weight", 1)]
CNN_UNITS = [
    ("conv1.weight", 0),
    *((f"bn1.{kind}", 0) for kind in ("weight", "bias", "running_mean", "running_var")),
    ("conv2.weight", 1),
]
