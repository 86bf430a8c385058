"""Settings of a CLIP-FlanT5 checkpoint that would change a score and are not implemented."""

import pytest

from models.core.contract import CheckpointError
from models.families.clip_flant5.model import ClipFlanT5
from tests.support.flant5_checkpoints import configure, golden_copy

REFUSED = {
    "config.json": [
        ("mm_projector_type", "linear"),
        ("mm_vision_select_feature", "cls_patch"),
        ("mm_use_im_start_end", True),
        ("mm_use_im_patch_token", True),
        ("use_mm_proj", False),
        ("feed_forward_proj", "relu"),
        ("feed_forward_proj", None),
        ("dense_act_fn", "relu"),
        ("tie_word_embeddings", True),
        ("tie_word_embeddings", None),
        ("scale_decoder_outputs", True),
        ("decoder_start_token_id", 2),
        ("image_aspect_ratio", "anyres"),
        ("image_aspect_ratio", ["pad"]),
        ("mm_vision_select_layer", -6),
        ("mm_vision_select_layer", [-2, -5]),
        ("d_model", "64"),
        ("num_heads", 0),
        ("vocab_size", None),
        ("layer_norm_epsilon", "small"),
    ],
    "vision_tower/config.json": [
        ("model_type", "siglip_vision_model"),
        ("num_channels", 1),
        ("image_size", [56, 56]),
        ("num_attention_heads", 5),
        ("hidden_act", "spline"),
    ],
    "vision_tower/preprocessor_config.json": [
        ("image_processor_type", "SiglipImageProcessor"),
        ("do_reduce_labels", True),
        ("do_resize", False),
        ("do_rescale", False),
        ("do_normalize", False),
        ("resample", 2),
        ("rescale_factor", 0.5),
        ("rescale_factor", "1/255"),
        ("size", 64),
        ("size", {"shortest_edge": 64}),
        ("size", {"height": 56, "width": 64}),
        ("size", {"longest_edge": 56}),
        ("size", None),
        ("crop_size", 48),
        ("crop_size", {"height": 56, "width": 48}),
        ("image_mean", [0.5]),
        ("image_std", [0.5, 0.0, 0.5]),
        ("image_std", "imagenet"),
    ],
    "tokenizer_config.json": [("extra_ids", "many"), ("extra_ids", -1)],
}


@pytest.fixture(scope="module")
def golden(tmp_path_factory):
    return golden_copy(tmp_path_factory.mktemp("golden") / "checkpoint")


@pytest.mark.parametrize(
    ("file", "name", "value"),
    [(file, name, value) for file, settings in REFUSED.items() for name, value in settings],
)
def test_a_setting_that_is_not_implemented_is_refused_not_passed_over(golden, file, name, value):
    """The line names the file; what would change a score is never ignored."""
    path = golden / file
    held = path.read_text()
    configure(golden, file, **{name: value})

    try:
        with pytest.raises(CheckpointError) as refused:
            ClipFlanT5(golden, dtype="float32", device="cpu")
    finally:
        path.write_text(held)
    message = str(refused.value)
    assert message.startswith(str(golden))
    assert "\n" not in message
    told = {
        "hidden_act": "spline",
        "image_processor_type": "Siglip",
        "num_attention_heads": "number of attention heads",
        "scale_decoder_outputs": "tie_word_embeddings",
    }
    assert told.get(name, name) in message


@pytest.mark.parametrize(
    "steps",
    [{"size": {"height": 56, "width": 56}}, {"do_center_crop": False}],
    ids=["squashed", "not cropped"],
)
def test_steps_that_suit_padded_pictures_only_are_refused_for_others(tmp_path, steps):
    """They would squash a picture, or leave it longer than the tower is."""
    directory = configure(golden_copy(tmp_path / "c"), image_aspect_ratio="square")
    configure(directory, "vision_tower/preprocessor_config.json", **steps)

    with pytest.raises(CheckpointError, match=r"does not give the network's 56x56 pixels|squashes"):
        ClipFlanT5(directory, dtype="float32", device="cpu")
