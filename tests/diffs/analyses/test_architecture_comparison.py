import json

import numpy as np
import pytest
from diffs.analyses.networks import resnet, vgg16
from diffs.analyses.small import changed, decoder, nudged

from difflens.diffs.analyses import analyse
from difflens.diffs.story import diff


def compared(left, right, **options):
    return analyse("architecture_comparison", diff(left, right, **options))


def headers(folder, name, parts):
    """Write a safetensors file whose data is a hole: only its header is ever read."""
    header, place = {}, 0
    for part in parts:
        size = int(np.prod(part.shape, dtype=np.int64)) * (8 if part.dtype == "I64" else 4)
        header[part.name] = {
            "dtype": part.dtype,
            "shape": list(part.shape),
            "data_offsets": [place, place + size],
        }
        place += size
    text = json.dumps(header).encode()
    path = folder / f"{name}.safetensors"
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + place)
    return path


def test_a_model_against_itself_has_no_difference_and_similarity_one():
    fields = compared(decoder(), decoder()).fields

    assert (fields["differences"], fields["edits"], fields["similarity"]) == (0, [], 1.0)
    assert fields["type1"] == fields["type2"] == "decoder transformer"


def test_values_dtypes_and_names_alone_are_no_difference():
    left = decoder()
    right = {f"module.{name}": value for name, value in changed(left, nudged, "mlp").items()}
    right["module.model.norm.weight"] = right["module.model.norm.weight"].astype(np.float16)

    fields = compared(left, right).fields

    assert fields["differences"] == 0
    assert fields["dtype_changes"] == {"F32 -> F16": 1}
    assert fields["renamed"] == len(left)


def test_blocks_that_went_are_folded_into_one_edit():
    left, right = decoder(6), decoder(4)

    envelope = compared(left, right)

    (edit,) = envelope.fields["edits"]
    assert edit["what"] == "model.layers 6 -> 4: 2 blocks removed"
    assert envelope.fields["differences"] == edit["modules"] == 2 * 8
    gone = sum(value.size for name, value in left.items() if name not in right)
    assert edit["parameters"] == -gone
    assert [finding.evidence["parameters"] for finding in envelope.findings] == [-gone]


def test_a_width_that_changed_in_every_block_is_one_edit():
    left = decoder()
    right = {
        name: np.zeros((40, 16), np.float32) if "up_proj" in name else value
        for name, value in left.items()
    }

    (edit,) = compared(left, right).fields["edits"]

    assert edit["what"] == "mlp.up_proj of layers 0-2 reshaped"
    assert (edit["modules"], edit["parameters"]) == (3, 3 * 8 * 16)
    assert edit["shapes"] == ["weight: [32, 16] -> [40, 16]"]


def test_swapping_the_sides_turns_added_into_removed():
    left, right = decoder(3), decoder(5)

    there, back = compared(left, right).fields, compared(right, left).fields

    assert there["differences"] == back["differences"]
    assert there["similarity"] == back["similarity"]
    assert [edit["kind"] for edit in there["edits"]] == ["added"]
    assert [edit["kind"] for edit in back["edits"]] == ["removed"]


def test_similarity_is_the_jaccard_of_parameters_over_roles_and_shapes():
    left = {"a.weight": np.zeros((4, 4), np.float32), "b.weight": np.zeros(8, np.float32)}
    right = {"a.weight": np.zeros((4, 4), np.float32), "b.weight": np.zeros(4, np.float32)}

    assert compared(left, right).fields["similarity"] == pytest.approx(16 / (16 + 8 + 4))


def test_models_without_a_common_shape_have_similarity_zero():
    left, right = {"a": np.zeros((2, 3), np.float32)}, {"b": np.zeros((3, 5), np.float32)}

    assert compared(left, right).fields["similarity"] == 0


def test_published_counts_stand_in_the_table_of_parameters(tmp_path):
    paths = (
        headers(tmp_path, "left", resnet((3, 4, 6, 3), bottleneck=True)),
        headers(tmp_path, "right", vgg16()),
    )

    fields = compared(*paths, shape_only=True).fields

    assert (fields["type1"], fields["type2"]) == ("cnn", "cnn")
    whole = fields["param_table"][-1]
    assert (whole["left"], whole["right"]) == (25_557_032, 138_357_544)
    assert 0 < fields["similarity"] < 0.1


def test_headers_alone_are_told_and_nothing_is_found_in_them():
    envelope = compared(decoder(2), decoder(3), shape_only=True)

    assert envelope.fields["differences"] == 8
    assert envelope.findings == ()
