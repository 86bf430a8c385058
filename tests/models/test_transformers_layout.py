"""CLIPs in the layout that transformers publishes: the numbers are those that transformers computes."""

import json

import numpy as np
import open_clip
import pytest
import torch
from safetensors.torch import load_file, save_file

from models.core.calls import ImageCall, TextCall
from models.core.contract import CheckpointError
from models.families.clip.model import Clip
from models.images.image import Image
from tests.support.clip_checkpoints import noise, published_cosines, published_tokenizer, save_published

SIZES = [(32, 32), (97, 41), (40, 123), (39, 32), (7, 5)]  # some leave an odd number of pixels to crop
TEXTS = ["a red circle", "Two BLUE squares, it's a star!", "", "a photo of a cat " * 40, "漢字 ünï 5 stars"]


def cosines(model):
    """Each image's cosine with each text by `Clip`."""
    calls = [ImageCall(Image.of(noise(*size), str(size))) for size in SIZES] + [TextCall(t) for t in TEXTS]
    vectors = [outcome.vector for outcome in model.score([model.prepare(call) for call in calls])]
    return np.array([[image @ text for text in vectors[len(SIZES) :]] for image in vectors[: len(SIZES)]])


def clip(directory, dtype="float32"):
    return Clip(str(directory), dtype=dtype, device="cpu")


@pytest.mark.parametrize(
    ("text", "vision"),
    [
        ({}, {}),
        ({"hidden_act": "gelu"}, {"hidden_act": "gelu", "image_size": 48, "patch_size": 16}),
        ({"eos_token_id": 2, "num_hidden_layers": 1}, {"hidden_size": 48, "num_attention_heads": 3}),
        ({"eos_token_id": 320, "max_position_embeddings": 30}, {"layer_norm_eps": 1e-3}),
    ],
)
def test_cosines_are_those_of_transformers(tmp_path, text, vision):
    """Both activations, other sizes, both ways to find the end of a text; 320 is the word "a"."""
    network = save_published(tmp_path, text, vision)
    expected = published_cosines(network, [noise(*size) for size in SIZES], TEXTS)

    assert np.abs(expected - cosines(clip(tmp_path))).max() <= 2e-5
    assert np.ptp(expected, axis=0).max() > 1e-3
    assert np.ptp(expected, axis=1).max() > 1e-3


def test_a_tokenizer_in_the_directory_is_the_one_used(tmp_path):
    """transformers unescapes no HTML, where open_clip's own tokenizer does."""
    network = save_published(tmp_path)
    texts = ["a cat &amp; a dog", "it&#39;s"]
    bare = clip(tmp_path)
    published_tokenizer().save_pretrained(tmp_path)
    own = clip(tmp_path)
    expected = published_cosines(network, [noise(8, 8)], texts)[0]
    image, *read = own.score(
        [own.prepare(ImageCall(Image.of(noise(8, 8), "a"))), *(own.prepare(TextCall(text)) for text in texts)]
    )

    assert np.abs(expected - [image.vector @ text.vector for text in read]).max() <= 2e-5
    assert not any(text.truncated for text in read)
    assert own.score([own.prepare(TextCall("cat " * 90))])[0].truncated
    for text in texts:
        assert not torch.equal(bare.tokenizer([text]), own.tokenizer([text]))


def test_a_processor_in_the_directory_is_obeyed(tmp_path):
    """Its mean and deviation count."""
    save_published(tmp_path)
    usual = cosines(clip(tmp_path))
    (tmp_path / "preprocessor_config.json").write_text(
        json.dumps({"size": 32, "crop_size": {"height": 32, "width": 32}, "image_mean": [0, 0, 0]})
    )

    assert np.abs(usual - cosines(clip(tmp_path))).max() > 1e-3


@pytest.mark.parametrize(
    ("said", "named"),
    [
        ({"size": {"shortest_edge": 64}}, "size"),
        ({"resample": 2}, "resample"),
        ({"do_normalize": False}, "do_n"),
    ],
)
def test_a_processor_that_does_something_else_is_refused(tmp_path, said, named):
    """It would give other pixels in silence."""
    save_published(tmp_path)
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(said))
    with pytest.raises(CheckpointError, match=named):
        clip(tmp_path)


def test_the_scale_is_the_checkpoints_own(tmp_path):
    """exp of what training left in `logit_scale`."""
    save_published(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    tensors["logit_scale"] = torch.tensor(4.0)
    save_file(tensors, tmp_path / "model.safetensors")

    assert np.exp(4.0) == pytest.approx(clip(tmp_path).info.logit_scale)


def test_bfloat16_is_near_float32(tmp_path):
    """Within 0.02."""
    save_published(tmp_path)
    assert np.abs(cosines(clip(tmp_path)) - cosines(clip(tmp_path, "bfloat16"))).max() < 0.02


def changed(directory, change):
    """The weights in *directory* after *change*."""
    tensors = load_file(directory / "model.safetensors")
    change(tensors)
    save_file(tensors, directory / "model.safetensors")


def test_weights_that_are_missing_or_unknown_are_listed(tmp_path):
    """The first few names, and how many there are."""
    save_published(tmp_path)

    def change(tensors):
        tensors["vision_model.head.weight"] = torch.zeros(3)
        tensors["vision_model.embeddings.position_ids"] = torch.zeros(3)  # old files hold it
        for name in [name for name in tensors if "layers.1.mlp" in name]:
            del tensors[name]

    changed(tmp_path, change)
    with pytest.raises(CheckpointError) as refusal:
        clip(tmp_path)
    assert "8 missing: text_model.encoder.layers.1.mlp.fc1.bias, " in str(refusal.value)
    assert "1 unexpected: vision_model.head.weight" in str(refusal.value)
    assert str(tmp_path) in str(refusal.value)


def test_weights_of_another_shape_are_listed_by_their_own_names(tmp_path):
    """Parts of what open_clip joins, and a projection that it turns round."""
    save_published(tmp_path)

    def change(tensors):
        tensors["text_model.encoder.layers.0.self_attn.k_proj.weight"] = torch.zeros(8, 32)
        tensors["visual_projection.weight"] = torch.zeros(25, 32)

    changed(tmp_path, change)
    with pytest.raises(CheckpointError) as refusal:
        clip(tmp_path)
    assert "2 of another shape" in str(refusal.value)
    assert "text_model.encoder.layers.0.self_attn.k_proj.weight (8, 32) instead of (32, 32)" in str(
        refusal.value
    )
    assert "visual_projection.weight (25, 32) instead of (24, 32)" in str(refusal.value)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"model_type": "siglip"}, "model_type is 'siglip'"),
        ({"text_config": {"hidden_act": "gelu"}}, "hidden_act"),
        ({"text_config": {"hidden_size": "wide"}}, "hidden_size"),
    ],
)
def test_a_configuration_that_is_no_clip_of_ours_is_refused(tmp_path, change, named):
    """Another family, an activation that open_clip lacks, a value of the wrong type."""
    save_published(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, **change}))
    with pytest.raises(CheckpointError, match=named) as refusal:
        clip(tmp_path)
    assert "\n" not in str(refusal.value)


def test_open_clips_tokenizer_writes_the_ids_of_transformers():
    """So PickScore, published without a tokenizer, sees the words it was trained on."""
    words, published = open_clip.SimpleTokenizer(context_length=77), published_tokenizer()
    for text in TEXTS:
        ids = published(text, truncation=True, max_length=77).input_ids
        assert ids == words([text])[0][: len(ids)].tolist()
