"""CLIPs of many kinds: what `Clip` computes is what open_clip's documented use computes."""

from functools import cache

import numpy as np
import pytest
import torch
from transformers import BertConfig

from models.core.calls import ImageCall, TextCall
from models.families.clip.model import Clip
from models.images.image import Image
from tests.support.clip_checkpoints import OWN_WORDS, PLAIN, TEXT, VIT, noise, plain_cosines, save_own

SIZES = [(32, 32), (97, 41), (40, 120), (7, 5)]
TEXTS = ["a red circle", "Two BLUE squares &amp; a star!", "", "a photo of a cat " * 40]

KINDS = {
    "a ViT": (PLAIN, {}),
    "a ViT with QuickGELU and larger patches": (
        {**PLAIN, "quick_gelu": True, "vision_cfg": {**VIT, "image_size": 48, "patch_size": 16}},
        {"mean": [0.5] * 3, "std": [0.5] * 3, "interpolation": "bilinear"},
    ),
    "a wide ViT": ({**PLAIN, "vision_cfg": {**VIT, "image_size": [24, 40]}}, {}),
    "a ResNet, squashing": (
        {**PLAIN, "vision_cfg": {"image_size": 64, "width": 8, "layers": [1, 1, 1, 1], "head_width": 32}},
        {"resize_mode": "squash"},
    ),
    "SigLIP-like towers, padding": (
        {
            **PLAIN,
            "custom_text": True,
            "init_logit_bias": -10,
            "vision_cfg": {**VIT, "pool_type": "avg", "no_ln_pre": True},
            "text_cfg": {
                **OWN_WORDS,
                "context_length": 12,
                "no_causal_mask": True,
                "proj_bias": True,
                "pool_type": "last",
                "norm_kwargs": {"eps": 1e-6},
            },
        },
        {"resize_mode": "longest", "fill_color": 120},
    ),
    "a timm tower": (
        {**PLAIN, "vision_cfg": {"timm_model_name": "test_vit", "timm_pool": "", "image_size": 160}},
        {},
    ),
    "CoCa": (
        {
            **PLAIN,
            "custom_text": True,
            "vision_cfg": {**VIT, "attentional_pool": True, "attn_pooler_heads": 2, "output_tokens": True},
            "text_cfg": {**TEXT, "context_length": 20, "embed_cls": True, "output_tokens": True},
            "multimodal_cfg": {**TEXT, "context_length": 20, "attn_pooler_heads": 2},
        },
        {},
    ),
}


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """The checkpoint of a kind, made once."""
    return cache(lambda kind: save_own(tmp_path_factory.mktemp("clip"), *KINDS[kind]))


@cache
def cosines(directory, dtype="float32", **more):
    """Each image's cosine with each text by `Clip`, all in one batch, and which texts were cut."""
    model = Clip(str(directory), dtype=dtype, device="cpu", **more)
    calls = [ImageCall(Image.of(noise(*size), str(size))) for size in SIZES] + [TextCall(t) for t in TEXTS]
    outcomes = model.score([model.prepare(call) for call in calls])
    seen, read = outcomes[: len(SIZES)], outcomes[len(SIZES) :]
    found = np.array([[image.vector @ text.vector for text in read] for image in seen])
    return found, [text.truncated for text in read]


@pytest.mark.parametrize("kind", KINDS)
def test_cosines_are_open_clips_own(checkpoint, kind):
    """Within 2e-5, for images of odd sizes and a text longer than the context."""
    directory = checkpoint(kind)
    expected = plain_cosines(directory, [noise(*size) for size in SIZES], TEXTS)
    found, cut = cosines(directory)

    assert np.abs(expected - found).max() <= 2e-5
    assert np.ptp(expected, axis=0).max() > 1e-3  # they do depend on the image
    assert np.ptp(expected, axis=1).max() > 1e-3  # and on the text
    assert [False, False, False, True] == cut


@pytest.mark.parametrize("kind", KINDS)
def test_a_text_is_said_to_be_cut_from_the_first_word_that_the_tower_does_not_see(checkpoint, kind):
    """A last word is lost where another one in its place gives the same tokens."""
    model = Clip(str(checkpoint(kind)), dtype="float32", device="cpu")
    length, told, lost = model.tokenizer.context_length, [], []
    for words in range(length - 5, length + 2):
        one, other = ["red " * words + last for last in ("circle", "blue")]
        told.append([model.prepare(TextCall(text)).data.truncated for text in (one, other)])
        lost.append([torch.equal(*model.tokenizer([one, other]))] * 2)

    assert lost == told
    assert [False, False] in told
    assert [True, True] in told


def test_a_text_tower_of_transformers_is_read_from_a_directory(tmp_path):
    """Its configuration lies beside the checkpoint, so nothing is fetched."""
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64}
    BertConfig(**sizes, vocab_size=1003, pad_token_id=1000).save_pretrained(tmp_path / "text")
    text = {"hf_model_name": str(tmp_path / "text"), "hf_tokenizer_name": "own", "context_length": 16}
    directory = save_own(tmp_path / "clip", {**PLAIN, "text_cfg": text})
    expected = plain_cosines(directory, [noise(*size) for size in SIZES], TEXTS)
    found, cut = cosines(directory)

    assert np.abs(expected - found).max() <= 2e-5
    assert np.ptp(expected, axis=1).max() > 1e-3
    assert [False, False, False, True] == cut


@pytest.mark.parametrize("weights", ["open_clip_pytorch_model.bin", "epoch.safetensors"])
def test_weights_may_lie_in_any_file_that_open_clip_takes(tmp_path, weights):
    """The names of its own layout, or the only file of weights there is."""
    directory = save_own(tmp_path / "clip", weights=weights)

    expected = plain_cosines(directory, [noise(*size) for size in SIZES], TEXTS)
    assert np.abs(expected - cosines(directory)[0]).max() <= 2e-5


def test_another_resize_mode_can_be_asked_for(checkpoint):
    """As HPSv2 needs it: the longer side is resized, the rest is black."""
    directory = checkpoint("a ViT")
    images = [noise(*size) for size in SIZES]
    expected = plain_cosines(directory, images, TEXTS, image_resize_mode="longest")

    assert np.abs(expected - cosines(directory, resize_mode="longest")[0]).max() <= 2e-5
    assert np.abs(expected - cosines(directory)[0]).max() > 1e-3


@pytest.mark.parametrize("kind", KINDS)
def test_bfloat16_is_near_float32_whatever_the_towers(checkpoint, kind):
    """Cosines within 0.02 of the exact ones."""
    directory = checkpoint(kind)

    assert np.abs(cosines(directory)[0] - cosines(directory, "bfloat16")[0]).max() < 0.02
