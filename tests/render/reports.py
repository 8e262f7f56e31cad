"""Reports built by hand: every kind of row, hostile names, many layers, non-finite figures."""

from typing import Any

from difflens.core.findings import Envelope, Finding, Interval, Missing
from difflens.core.records import (
    Figures,
    MetadataChange,
    ModelInfo,
    Report,
    Row,
    Stats,
    TensorInfo,
    Totals,
    Verdict,
)

HOSTILE = (
    "esc\x1b]0;owned\x07\x1b[31m",
    "line\nbreak\r\nand\rreturn",
    "csi\x9b31m and del\x7f",
    "bidi\u202egnp.exe\u2066 zero\u200bwidth\ufeff",
    "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "</td></table>\" onmouseover='alert(1)' {{ 7*7 }} {% raw %}",
    "=cmd|' /C calc'!A0",
    "+1+1",
    "-2-3",
    "@SUM(A1)",
    "\tTAB",
    "\rCR",
    "lone\ud800surrogate",
    "byte\udcff",
    "nul\x00",
    "yes",
    "1e3",
    "null",
    "",
    " leading and trailing ",
    "- dash: colon # hash",
    "quote\"s and 'apostrophes', commas",
    "emoji \U0001f600 and Größe \u2028",
    "digits" + "9" * 6000,
    "x" * 5000,
)

M: dict[str, Any] = {
    "relative_l2": 0.0312,
    "symmetric_l2": 0.0311,
    "cosine": 0.9995,
    "pearson": 0.9994,
    "max_abs": 0.004,
    "max_abs_index": (3, 1),
    "mean_abs": 0.001,
    "l2": 0.5,
    "changed_count": 192,
    "changed_fraction": 1.0,
    "over_epsilon_count": 192,
    "bit_equal_count": 0,
    "sign_flips": 2,
    "sqnr_db": 30.1,
    "within_storage_rounding": False,
    "left_nonfinite": 0,
    "right_nonfinite": 0,
    "transform": None,
}


def stats(**known: Any) -> Stats:
    empty: dict[str, Any] = {"mean": 0.0123, "std": 1.0, "min": -3.0, "max": 3.0}
    return Stats(**(empty | known))


def info(name: str, dtype: str = "F32", shape: tuple[int, ...] = (64, 3)) -> TensorInfo:
    return TensorInfo(name, dtype, shape)


def row(name: str, kind: Any = "changed", **parts: Any) -> Row:
    given: dict[str, Any] = {
        "left": None if kind == "added" else info(name),
        "right": None if kind == "removed" else info(name),
        "how": "exact",
        "transform": None,
        "skipped": None,
        "left_stats": None,
        "right_stats": None,
        "figures": None,
    }
    together = given | parts
    if together["figures"] is not None:
        every = together["figures"]
        known = {key: value for key, value in every.items() if key in Figures.__struct_fields__}
        together["further"] = {key: every[key] for key in every if key not in known} or None
        together["figures"] = Figures(**known)
    return Row(name, kind, **together)


def changed(name: str, **figures: Any) -> Row:
    return row(name, left_stats=stats(), right_stats=stats(mean=0.02), figures=M | figures)


def recast(name: str, **figures: Any) -> Row:
    return row(name, "recast", right=info(name, "BF16"), figures=M | figures)


def renamed(left: str, right: str, how: str, kind: Any = "identical", **parts: Any) -> Row:
    return row(right, kind, left=info(left), right=info(right), how=how, **parts)


def model(path: str, **known: Any) -> ModelInfo:
    given: dict[str, Any] = {
        "format": "safetensors",
        "tensor_count": 290,
        "parameter_count": 1_100_048_384,
        "size_bytes": 2_200_119_864,
        "dtypes": {"BF16": 290},
    }
    return ModelInfo(path=path, **(given | known))


def report(*rows: Row, **parts: Any) -> Report:
    kinds = [each.kind for each in rows]
    totals = {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)}
    given: dict[str, Any] = {
        "left": model("base.safetensors"),
        "right": model("tuned.safetensors"),
        "totals": Totals(tensors=len(rows), **totals),
        "verdict": Verdict(True, "different", "The models differ."),
        "difflens": "0.1.0",
    }
    return Report(tensors=rows, **(given | parts))


SUMMARY = Envelope(
    "change_summary",
    "partial",
    {
        "sentence": "3 of 290 tensors changed, all in the head.",
        "layers_changed": 3,
        "magnitude": 0.05432,
        "patterns": ["head_only", "low_rank"],
        "frozen": False,
        "share_by_role": {"head": 1.0},
        "trend": None,
    },
    basis={"magnitude": "weights"},
    missing=(Missing("trend", "--log or --eval-left/--eval-right", "two files tell no trend"),),
    assumptions=("layers are numbered by depth",),
    policy={"threshold": 0.5},
    method="change_summary/1",
    findings=(Finding("change_summary", "lm_head.weight", "moved 3%", {"relative_l2": 0.03}),),
)

ANOMALY = Envelope(
    "anomaly_detection",
    "ok",
    {"type": "nan_inf", "severity": "critical", "affected": "2 layers", "layers": list(range(9))},
)


def every_kind() -> Report:
    return report(
        row("embed.weight", "identical", figures=M | {"changed_count": 0}),
        row("norm.weight", "within_epsilon"),
        changed("layers.2.weight"),
        changed("layers.10.weight", changed_fraction=0.00003, relative_l2=None),
        changed("layers.11.weight", changed_fraction=0.99999, right_nonfinite=12),
        recast("cast.equal", changed_count=0),
        recast("cast.rounded", relative_l2=0.0017, within_storage_rounding=True),
        recast("cast.moved"),
        row("conv.weight", "reshaped", right=info("conv.weight", shape=(32, 3))),
        row("conv.both", "reshaped", right=info("conv.both", "F16", ())),
        row("head.bias", "added", right_stats=stats()),
        row("old.bias", "removed"),
        renamed("w", "model.w", "prefix model."),
        renamed("a.b", "c.d", "shape and content", "changed", figures=M),
        row("lm_head.weight", "tied", how="tied to model.embed_tokens.weight"),
        row("packed", "uncompared", skipped="F6_E2M3 is packed in several ways"),
        row("shape.only", "paired"),
        metadata=(MetadataChange("step", "100", "200"), MetadataChange("note", None, "long " * 40)),
        analyses=(SUMMARY, ANOMALY),
        warnings=("tuned.safetensors: metadata is not text",),
    )


def hostile() -> Report:
    rows = [changed(name) for name in HOSTILE]
    rows += [row(name, "uncompared", skipped=name) for name in HOSTILE]
    rows += [renamed(name, f"model.{name}", f"by {name}") for name in HOSTILE]
    rows += [row(name, "tied", how=f"tied to {name}") for name in HOSTILE]
    rows += [row(name, "added", right=info(name, name)) for name in HOSTILE]
    return report(
        *rows,
        left=model(HOSTILE[4], format=HOSTILE[0], dtypes=dict.fromkeys(HOSTILE, 1)),
        right=model(HOSTILE[12]),
        verdict=Verdict(True, "different", " ".join(HOSTILE[:6])),
        metadata=tuple(MetadataChange(name, name, name) for name in HOSTILE),
        analyses=tuple(
            Envelope(
                "anomaly_detection",
                "ok",
                {
                    "sentence": name,
                    "severity": name,
                    name: name,
                    "many": [name],
                    "map": {name: name},
                },
                missing=(Missing(name, name, name),),
                assumptions=(name,),
                method=name,
                findings=(Finding(name, name, name, {name: 1.0}),),
            )
            for name in HOSTILE
        ),
        warnings=HOSTILE,
        difflens=HOSTILE[4],
    )


def hundred_layers() -> Report:
    return report(
        *(
            changed(f"layers.{layer}.{part}.weight", relative_l2=0.02 + 0.0002 * layer)
            for layer in range(100)
            for part in ("attn.q_proj", "mlp.up_proj")
        ),
        *(row(f"layers.{layer}.norm.weight", "identical") for layer in range(100)),
    )


def nonfinite() -> Report:
    wild = {"relative_l2": float("inf"), "cosine": float("nan"), "max_abs": float("-inf")}
    wild_stats = stats(mean=float("nan"), max=float("inf"))
    return report(
        row(
            "w",
            left_stats=stats(),
            right_stats=wild_stats,
            figures=M | wild | {"right_nonfinite": 7},
        ),
        row("new", "added", right_stats=wild_stats),
        totals=Totals(tensors=2, changed=1, added=1, relative_l2=float("inf")),
        analyses=(
            Envelope(
                "quantization_analysis",
                "ok",
                {"sqnr": float("inf"), "nested": {"deep": [float("nan"), 1.0]}},
                policy={"threshold": float("inf"), "floor": float("-inf")},
                findings=(Finding("f", "w", "t", {"bad": float("nan"), "good": 1.0}),),
            ),
        ),
    )


def identical() -> Report:
    return report(
        row("a", "identical"),
        row("b", "identical"),
        verdict=Verdict(False, "identical", "The models are identical, bit for bit."),
    )


EVERY = {
    "every_kind": every_kind,
    "hostile": hostile,
    "hundred_layers": hundred_layers,
    "nonfinite": nonfinite,
    "identical": identical,
}


QUANTILES = {
    "shares": [0.0, 0.25, 0.5, 0.75, 1.0],
    "left": [-2.0, -0.7, 0.0, 0.7, 2.0],
    "right": [-3.0, -0.6, 0.1, 0.8, 2.5],
}


def told_by_analyses() -> Report:
    """Blocks that moved, with every picture an analysis can ask for."""
    summary = Envelope(
        "change_summary",
        "ok",
        {
            "sentence": "14 of 21 tensors changed, all in attention and mlp of layers 0-6.",
            "magnitude": 0.021,
            "depth_profile": [
                {"block": f"layers.{layer}", "relative_l2": 0.003 * layer, "share": 0.04 * layer}
                for layer in range(7)
            ],
        },
    )
    spectral = Envelope(
        "spectral_analysis",
        "ok",
        {
            "spectra": [
                {
                    "name": f"layers.{layer}.mlp.up_proj.weight",
                    "singular_values": [2.0 / (rank + 1) ** 2 for rank in range(24)],
                    "noise_edge": 0.03,
                }
                for layer in range(3)
            ]
        },
        findings=(
            Finding("spectral_analysis", "layers.6.mlp.up_proj.weight", "low rank",
                    {"rank": 4.0, "energy": 0.99}, "medium"),
        ),
    )  # fmt: skip
    learning = Envelope(
        "learning_progress",
        "partial",
        {"trend": None, "magnitude": 0.0105, "speed": 0.4, "slope": -0.01},
        uncertainty={
            "magnitude": "exact",
            "speed": Interval(0.31, 0.52, method="bootstrap over tensors", n=21),
            "slope": Interval(-0.02, 0.004, 0.9, "Theil-Sen", 40),
        },
        missing=(Missing("trend", "--log or --eval-left/--eval-right", "two files tell no trend"),),
    )
    convergence = Envelope(
        "convergence_analysis",
        "ok",
        {"cos_successive": [0.9, 0.4, -0.1, -0.45], "update_norms": [3.0, 2.0, 1.2, 1.1, 1.0]},
    )
    return report(
        *(
            changed(f"layers.{layer}.{part}.weight", relative_l2=0.004 * 10.0**-layer * scale)
            for layer in range(7)
            for part, scale in (("attn.q_proj", 1.0), ("mlp.up_proj", 90.0))
        ),
        *(row(f"layers.{layer}.norm.weight", "identical") for layer in range(7)),
        changed("embed.weight", right_nonfinite=3, quantiles=QUANTILES),
        analyses=(summary, spectral, learning, convergence, ANOMALY),
        evidence={"--checkpoint": "step-100.safetensors, step-200.safetensors"},
    )


EVERY["told_by_analyses"] = told_by_analyses
