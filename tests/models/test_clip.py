"""CLIP through open_clip: the shipped demo checkpoint, and what `Clip` promises about any."""

import shutil
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random

import numpy as np
import open_clip
import PIL.Image
import pytest
import torch

import models
from demo.training.world import Scene, Thing, draw
from models.core.calls import ImageCall, TextCall
from models.core.contract import CheckpointError
from models.families.clip.model import Clip
from models.images.image import Image
from tests.support.runs import runs_of

DIRECTORY = Path(models.__file__).parent / "demo" / "weights" / "clip"
LONG = "a red circle and " * 20 + "a blue square"


@cache
def clip():
    return Clip(str(DIRECTORY), dtype="float32", device="cpu")


@cache
def reference():
    name = f"local-dir:{DIRECTORY}"
    network, preprocess = open_clip.create_model_from_pretrained(name)
    return network.eval(), preprocess, open_clip.get_tokenizer(name)


def picture(shape="circle", colour=(220, 20, 30), size=120):
    scene = Scene(1, 1, (150, 150, 150), (Thing(shape, "", 0.5, 0.5, 0.17, colour),))
    return draw(scene, size)


def noise(width, height):
    pixels = Random(f"{width}x{height}").randbytes(width * height * 3)
    return PIL.Image.frombytes("RGB", (width, height), pixels)


def image_call(rgb, digest=""):
    return ImageCall(Image.of(rgb, digest or str(hash(rgb.tobytes()))))


def embed(*calls):
    return clip().score([clip().prepare(call) for call in calls])


def mixed_calls():
    images = [image_call(noise(*size)) for size in ((80, 80), (200, 120), (33, 90))]
    texts = [TextCall(text) for text in ("a red circle", "two stars", "", LONG, "猫 <end> <pad>")]
    return [texts[0], images[0], texts[1], texts[2], images[1], images[2], texts[3], texts[4]]


def test_the_shipped_checkpoint_loads_and_embeds_without_any_network(offline):
    """Not even a socket is made."""
    model = Clip(str(DIRECTORY), dtype="float32", device="cpu")
    text, image = model.score([model.prepare(TextCall("a red circle")), model.prepare(model.example())])
    assert text.vector.shape == image.vector.shape == (model.network.visual.output_dim,)


def test_the_checkpoint_names_itself_by_its_content():
    """Role, family, directory name, and a revision that other content doesn't have."""
    info = clip().info
    assert (info.role, info.family, info.id) == ("clip", "open_clip", "clip")
    assert len(info.revision) == 12


def test_embeddings_are_read_only_unit_vectors_of_float32():
    """For images and for texts."""
    for embedding in embed(*mixed_calls()):
        assert embedding.vector.dtype == np.float32
        assert not embedding.vector.flags.writeable
        assert embedding.vector.base is None
        assert np.linalg.norm(embedding.vector) == pytest.approx(1, abs=1e-6)


def test_each_tower_runs_once_a_batch_over_what_is_distinct():
    """Eight calls, two images and one text: batches of 2 and of 1."""
    images = [image_call(noise(50, 50)), image_call(noise(60, 60))]
    network = clip().network
    with runs_of(network.visual) as looks, runs_of(network.token_embedding) as reads:
        outcomes = embed(*[images[0], images[1], TextCall("a star"), images[0]] * 2)
    assert [[2], [1]] == [[len(run[0]) for run in runs] for runs in (looks, reads)]
    assert np.array_equal(outcomes[0].vector, outcomes[7].vector)
    assert clip().score([]) == []


@pytest.mark.parametrize("size", [(64, 64), (128, 70), (31, 77)])
def test_image_embeddings_are_open_clips_own(size):
    """The same directory through open_clip's API."""
    network, preprocess, _ = reference()
    rgb = noise(*size)
    with torch.inference_mode():
        expected = network.encode_image(preprocess(rgb)[None], normalize=True)[0].numpy()
    [embedding] = embed(image_call(rgb))
    assert np.abs(expected - embedding.vector).max() <= 1e-6


@pytest.mark.parametrize("text", ["a red circle", "", "Two BLUE squares!", LONG])
def test_text_embeddings_are_open_clips_own(text):
    """The same directory through open_clip's API, cut where open_clip cuts."""
    network, _, tokenizer = reference()
    with torch.inference_mode():
        expected = network.encode_text(tokenizer([text]), normalize=True)[0].numpy()
    [embedding] = embed(TextCall(text))
    assert np.abs(expected - embedding.vector).max() <= 1e-6


@pytest.mark.parametrize("size", [(1, 1), (300, 1), (1, 300), (2, 3), (4000, 1), (1200, 900)])
def test_a_picture_of_any_size_has_an_embedding(size):
    """However thin."""
    [embedding] = embed(image_call(noise(*size)))
    assert np.isfinite(embedding.vector).all()


def test_truncation_is_told_from_the_first_token_that_is_lost():
    """Words are one token here, so with start and end the tower holds its length less two."""
    fits = clip().network.context_length - 2
    for words in (0, 1, fits - 1, fits, fits + 1, fits + 2, 3 * fits):
        [embedding] = embed(TextCall(" ".join(["red"] * words)))
        assert embedding.truncated == (words > fits), words


def test_special_tokens_in_a_prompt_are_text():
    """A prompt can't end itself early."""
    one, other = embed(TextCall("a star <end> a circle"), TextCall("a star <end> a square"))
    assert not np.array_equal(one.vector, other.vector)


def test_output_that_is_not_finite_is_the_calls_error_and_not_its_neighbours():
    """NaN pixels beside a sound text."""
    bad = clip().prepare(image_call(noise(8, 8)))
    pixels = torch.full_like(bad.data.tensors[0], torch.nan, dtype=torch.float32)
    bad = replace(bad, data=replace(bad.data, tensors=(pixels,)))
    image, text = clip().score([bad, clip().prepare(TextCall("a red circle"))])
    assert not image.is_finite()
    assert text.is_finite()


def copied(directory):
    return Path(shutil.copytree(DIRECTORY, directory / "clip"))


@pytest.mark.parametrize("file", ["open_clip_config.json", "open_clip_model.safetensors", "tokenizer.json"])
def test_a_checkpoint_without_one_of_its_files_is_refused(tmp_path, file):
    """In one line that names the directory."""
    directory = copied(tmp_path)
    (directory / file).unlink()
    with pytest.raises(CheckpointError) as refusal:
        Clip(str(directory), dtype="float32", device="cpu")
    assert str(directory) in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_weights_that_do_not_fit_are_refused(tmp_path):
    """A configuration with another width."""
    directory = copied(tmp_path)
    config = directory / "open_clip_config.json"
    config.write_text(config.read_text().replace('"embed_dim": 128', '"embed_dim": 64'))
    with pytest.raises(CheckpointError):
        Clip(str(directory), dtype="float32", device="cpu")


def test_a_local_checkpoint_that_needs_a_hub_is_refused(tmp_path):
    """open_clip would ask the hub for a text tower's configuration."""
    directory = copied(tmp_path)
    config = directory / "open_clip_config.json"
    config.write_text(
        config.read_text().replace('"text_cfg": {', '"text_cfg": {"hf_model_name": "xlm-roberta-base",')
    )
    with pytest.raises(CheckpointError, match="is not a local directory, and is not downloaded"):
        Clip(str(directory), dtype="float32", device="cpu")


@pytest.mark.parametrize(
    ("shape", "colour", "prompt"),
    [
        ("circle", (220, 20, 30), "a red circle"),
        ("square", (30, 60, 210), "a blue square"),
        ("star", (240, 225, 30), "a yellow star"),
        ("heart", (10, 140, 20), "a green heart"),
    ],
)
def test_a_picture_is_nearest_to_its_own_prompt(shape, colour, prompt):
    """Of prompts with another shape, another colour, or both."""
    wrong = {"a red square", "a blue circle", "a yellow heart", "a green star", "a red circle"}
    texts = [prompt, *sorted(wrong - {prompt})]
    image, *read = embed(image_call(picture(shape, colour)), *map(TextCall, texts))
    cosines = [float(image.vector @ text.vector) for text in read]
    assert cosines[0] == max(cosines)
