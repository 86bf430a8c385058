"""CLIPs in the layout that transformers publishes: the numbers are those that transformers computes."""

import copy
import json

import numpy as np
import open_clip
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import CLIPImageProcessorPil, CLIPProcessor, PreTrainedTokenizerFast

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


# Texts that open_clip's own tokenizer cleans, so that their ids are others.
CLEANED = [
    "a sign that says “open”",
    "the dog’s bowl",
    "Tom &amp; Jerry",
    "it&#39;s",
    "o\ufb03ce",
    "\uff46\uff55\uff4c\uff4c width",
]


def test_texts_have_the_ids_of_transformers_also_without_a_tokenizer(tmp_path):
    """As PickScore is published: its README uses transformers' tokenizer, whose cosines these are."""
    network = save_published(tmp_path)
    expected = published_cosines(network, [noise(8, 8)], CLEANED)[0]
    words = open_clip.SimpleTokenizer(context_length=77)
    model = clip(tmp_path)
    calls = [ImageCall(Image.of(noise(8, 8), "a")), *map(TextCall, CLEANED)]
    image, *read = model.score([model.prepare(call) for call in calls])

    assert np.abs(expected - [image.vector @ text.vector for text in read]).max() <= 2e-5
    assert not any(text.truncated for text in read)
    assert model.score([model.prepare(TextCall("cat " * 90))])[0].truncated
    for text in CLEANED:
        ids = published_tokenizer()(text).input_ids
        assert ids == model.tokenizer([text])[0][: len(ids)].tolist() != words([text])[0][: len(ids)].tolist()


def test_a_tokenizer_in_the_directory_is_the_one_used(tmp_path):
    """Here one with a word more."""
    save_published(tmp_path, {"vocab_size": 49409})
    tokenizer = copy.deepcopy(published_tokenizer())
    tokenizer.add_tokens(["<new>"])
    tokenizer.save_pretrained(tmp_path)

    assert 49408 in clip(tmp_path).tokenizer(["a <new> circle"])[0]


def test_a_tokenizer_without_a_padding_token_is_refused(tmp_path):
    """The checkpoint can't be used: texts are filled up to one length."""
    save_published(tmp_path)
    PreTrainedTokenizerFast(tokenizer_object=published_tokenizer().backend_tokenizer).save_pretrained(
        tmp_path
    )
    with pytest.raises(CheckpointError, match="its tokenizer has no padding token"):
        clip(tmp_path)


def square(height=32, width=32):
    return {"height": height, "width": width}


PROCESSORS = {
    "the usual one": {},
    "another mean": {"image_mean": [0.5] * 3, "image_std": [0.5] * 3},
    "a squash": {"size": square()},
    "a squash without a crop": {"size": square(), "do_center_crop": False},
}


@pytest.mark.parametrize("whole", [False, True], ids=["preprocessor_config", "processor_config"])
@pytest.mark.parametrize("given", PROCESSORS.values(), ids=PROCESSORS)
def test_a_processor_in_the_directory_gives_the_pixels_of_transformers(tmp_path, given, whole):
    """In a file of its own, or with the tokenizer in the only file that transformers 5 saves."""
    network = save_published(tmp_path)
    processor = CLIPImageProcessorPil(**{"size": {"shortest_edge": 32}, "crop_size": square(), **given})
    if whole:
        CLIPProcessor(processor, published_tokenizer()).save_pretrained(tmp_path)
    else:
        processor.save_pretrained(tmp_path)
    pictures = [noise(*size) for size in SIZES]
    model = clip(tmp_path)
    calls = [ImageCall(Image.of(picture, str(picture.size))) for picture in pictures]
    seen = np.array([outcome.vector for outcome in model.score([model.prepare(call) for call in calls])])
    with torch.no_grad():
        features = network.get_image_features(**processor(pictures, return_tensors="pt")).pooler_output
    expected = torch.nn.functional.normalize(features, dim=-1).numpy()

    assert whole == (tmp_path / "processor_config.json").is_file()
    assert whole != (tmp_path / "preprocessor_config.json").is_file()
    assert np.abs(expected - seen).max() <= 2e-5


def test_a_legacy_processor_config_leaves_the_image_processor_to_its_own_file(tmp_path):
    """It names no image processor."""
    save_published(tmp_path)
    (tmp_path / "processor_config.json").write_text('{"processor_class": "CLIPProcessor"}')
    (tmp_path / "preprocessor_config.json").write_text('{"do_rescale": false}')
    with pytest.raises(CheckpointError, match=r"preprocessor_config\.json: do_rescale"):
        clip(tmp_path)


@pytest.mark.parametrize("file", ["preprocessor_config.json", "processor_config.json"])
@pytest.mark.parametrize(
    ("said", "named"),
    [
        ({"size": {"shortest_edge": 64}}, "size"),
        ({"size": {"longest_edge": 32}}, "size"),
        ({"size": square(32, 40)}, "size"),
        ({"size": {"shortest_edge": 32, "longest_edge": 40}}, "size"),
        ({"size": 32, "crop_size": square(), "do_center_crop": False}, "do_center_crop"),
        ({"resample": 2}, "resample"),
        ({"do_normalize": False}, "do_n"),
        ({"rescale_factor": 1 / 127.5}, "rescale_factor"),
        ({"image_processor_type": "SiglipImageProcessor"}, "Siglip"),
        ({"do_flip_channel_order": True}, "do_flip_channel_order"),
    ],
)
def test_a_processor_that_does_something_else_is_refused(tmp_path, said, named, file):
    """It would give other pixels in silence; so would a step that is not known."""
    save_published(tmp_path)
    whole = {"image_processor": said} if file == "processor_config.json" else said
    (tmp_path / file).write_text(json.dumps(whole))
    with pytest.raises(CheckpointError, match=named) as refusal:
        clip(tmp_path)
    assert str(tmp_path / file) in str(refusal.value)


def test_the_scale_is_the_checkpoints_own(tmp_path):
    """exp of what training left in `logit_scale`."""
    save_published(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    tensors["logit_scale"] = torch.tensor(4.0)
    save_file(tensors, tmp_path / "model.safetensors")

    assert np.exp(4.0) == pytest.approx(clip(tmp_path).info.logit_scale)


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
