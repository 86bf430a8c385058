"""CLIP-FlanT5 against the reference implementation's own numbers (`tests/golden/clip_flant5/README.md`)."""

import hashlib
import json
import math
import shutil
from functools import cache
from pathlib import Path

import numpy as np
import PIL.Image
import pytest
import torch
from safetensors.torch import save_file

from models.core.calls import LikelihoodCall
from models.core.contract import CheckpointError
from models.families.clip_flant5.model import ClipFlanT5
from models.images.image import Image
from models.images.pixels import CLIP_MEAN, Pixels, pad_and_resize
from tests.support.flant5_checkpoints import score
from tests.support.paths import GOLDEN

DIRECTORY = GOLDEN / "clip_flant5"
GOLDEN = json.loads((DIRECTORY / "golden.json").read_text())
PAIRS = GOLDEN["pairs"]
SHOWS = GOLDEN["templates"]["default"]["question_template"]


@cache
def model(dtype="float32"):
    return ClipFlanT5(DIRECTORY, dtype=dtype, device="cpu")


@cache
def images():
    files = [(DIRECTORY / entry["file"], entry["sha256"]) for entry in GOLDEN["images"]]
    return [Image(path.read_bytes(), digest) for path, digest in files]


def prepared(pair, template="default"):
    words = GOLDEN["templates"][template]
    text = GOLDEN["prompts"][pair["prompt"]]["text"]
    question = words["question_template"].replace("{}", text)
    answer = words["answer_template"].replace("{}", text)
    return model().prepare(LikelihoodCall(images()[pair["image"]], question, answer))


def test_every_pair_alone_has_the_reference_score():
    """36 pairs, float32, within 1e-5; their log-probabilities within 1e-4."""
    for pair in PAIRS:
        [outcome] = model().score([prepared(pair)])

        assert pair["score"] == pytest.approx(score(outcome), abs=1e-5)
        assert pair["log_probs"] == pytest.approx(outcome.log_probs, abs=1e-4)
        assert math.log(pair["p_yes"]) == pytest.approx(outcome.log_p_yes, abs=1e-4)
        assert math.log(pair["p_no_first"]) == pytest.approx(outcome.log_p_no, abs=1e-4)


def test_a_batch_of_all_pairs_scores_like_each_alone():
    """Neighbours and padding move no score by more than 1e-5."""
    together = model().score([prepared(pair) for pair in PAIRS])

    for pair, outcome in zip(PAIRS, together, strict=True):
        assert pair["score"] == pytest.approx(score(outcome), abs=1e-5)


@pytest.mark.parametrize("template", [name for name in GOLDEN["templates"] if name != "default"])
def test_other_questions_and_answers_have_the_reference_scores(template):
    """Two other questions, "No", "Yes it does", and the caption itself as the answer."""
    expected = GOLDEN["scores_by_template"][template]["score"]

    outcomes = model().score([prepared(pair, template) for pair in PAIRS])
    for pair, outcome in zip(PAIRS, outcomes, strict=True):
        value = expected[pair["image"]][pair["prompt"]]
        assert value == pytest.approx(score(outcome), abs=1e-5)


def test_bfloat16_stays_within_its_rounding():
    """bfloat16 weights under autocast, as the reference runs them, within 0.03 of its float32."""
    low = model("bfloat16")
    for pair, ready in zip(PAIRS, [prepared(pair) for pair in PAIRS], strict=True):
        [outcome] = low.score([ready])
        assert pair["score"] == pytest.approx(score(outcome), abs=0.03)


def test_token_ids_are_the_reference_ones():
    """Two pieces, each with its own </s>, around the image slot."""
    for pair in PAIRS:
        before, after = prepared(pair).data.text
        expected = GOLDEN["prompts"][pair["prompt"]]["questions"]["default"]["input_ids"]

        assert expected == [*before, -200, *after]


def test_pixels_are_the_reference_ones():
    """Bit for bit, for RGB, RGBA, palette, JPEG with EXIF, tall, wide and tiny pictures."""
    for entry, image in zip(GOLDEN["images"], images(), strict=True):
        tensor = model().pixels(image.rgb)

        digest = hashlib.sha256(tensor.numpy().astype("<f4").tobytes()).hexdigest()
        assert entry["pixel_values"]["sha256_f32le"] == digest


@pytest.mark.parametrize("size", [(1, 1), (300, 300), (300, 1), (1, 300), (640, 359), (359, 640), (2000, 3)])
def test_padding_in_two_passes_equals_padding_the_whole_square(size):
    """The square that is never built gives the same bits."""
    noise = np.random.default_rng(5).integers(0, 256, (size[1], size[0], 3), np.uint8)
    picture = PIL.Image.fromarray(noise)
    colour = tuple(int(255 * mean) for mean in CLIP_MEAN)
    side = max(size)
    square = PIL.Image.new("RGB", (side, side), colour)
    square.paste(picture, ((side - size[0]) // 2, (side - size[1]) // 2))

    expected = square.resize((56, 56), PIL.Image.Resampling.BICUBIC)
    assert np.array_equal(np.asarray(expected), pad_and_resize(picture, 56, colour).transpose(1, 2, 0))


def test_without_padding_the_centre_is_cropped():
    """`image_aspect_ratio` other than "pad": shorter edge resized, centre cropped."""
    wide = PIL.Image.new("RGB", (300, 100), "red")
    wide.paste("blue", (100, 0, 200, 100))

    tensor = Pixels(20, pad=False)(wide)
    blue = Pixels(20, pad=False)(PIL.Image.new("RGB", (100, 100), "blue"))
    assert torch.equal(blue[:, :, 2:18], tensor[:, :, 2:18])


def test_special_tokens_in_a_prompt_are_text():
    """`<image>`, `</s>` and `<pad>` reach the model as the characters they are."""
    before, after = model().tokenizer.around_image("</s> <pad> <image> <extra_id_0>")

    assert 1 == after.count(1)  # the one </s> at the end
    assert 0 not in (*before, *after)
    assert max(after) < 1000  # no extra id


def test_a_question_beyond_the_context_is_cut_and_says_so():
    """2048 ids, the image slot counted as one, as the reference cuts them."""
    call = LikelihoodCall(images()[0], SHOWS.replace("{}", "red circle " * 2000))
    ready = model().prepare(call)
    [outcome] = model().score([ready])

    before, after = ready.data.text
    assert 2048 == len(before) + 1 + len(after)
    assert outcome.truncated


def test_one_vision_pass_per_distinct_image(monkeypatch):
    """Six questions about two images cost two vision rows."""
    seen = []
    features = model().forward.features
    monkeypatch.setattr(
        model().forward, "features", lambda pixels: seen.append(len(pixels)) or features(pixels)
    )

    model().score([prepared(pair) for pair in PAIRS if pair["image"] in (0, 3)])
    assert [2] == seen


def test_answers_to_one_question_come_back_in_the_order_of_the_calls():
    """Two questions with three answers each, taken in turns, give what each gives alone."""
    calls = [
        LikelihoodCall(images()[0], question, answer)
        for answer in ("Yes", "No", "Yes it does")
        for question in ("Is it red?", "Is it a large blue circle?")
    ]
    ready = [model().prepare(call) for call in calls]

    alone = [model().score([one])[0].log_probs for one in ready]
    for expected, outcome in zip(alone, model().score(ready), strict=True):
        assert expected == pytest.approx(outcome.log_probs, abs=1e-5)
    assert len(set(alone)) == len(alone)


def copied(tmp_path):
    return Path(shutil.copytree(DIRECTORY, tmp_path / "checkpoint"))


def weights():
    return torch.load(DIRECTORY / "pytorch_model.bin", weights_only=True)


def test_safetensors_whole_or_sharded_load_like_the_bin_file(tmp_path):
    """Any of the published layouts gives the same score."""
    directory = copied(tmp_path)
    (directory / "pytorch_model.bin").unlink()
    tensors = {name: tensor.clone() for name, tensor in weights().items()}
    names = sorted(tensors)
    shards = {"a.safetensors": names[::2], "b.safetensors": names[1::2]}
    for shard, held in shards.items():
        save_file({name: tensors[name] for name in held}, directory / shard)
    index = {"weight_map": {name: shard for shard, held in shards.items() for name in held}}
    (directory / "model.safetensors.index.json").write_text(json.dumps(index))

    sharded = ClipFlanT5(directory, dtype="float32", device="cpu")
    [outcome] = sharded.score([prepared(PAIRS[0])])
    assert PAIRS[0]["score"] == pytest.approx(score(outcome), abs=1e-5)


@pytest.mark.parametrize("file", ["config.json", "spiece.model", "pytorch_model.bin"])
def test_a_missing_file_is_named(tmp_path, file):
    """One line that says what is not there."""
    directory = copied(tmp_path)
    (directory / file).unlink()

    with pytest.raises(CheckpointError, match=r"config\.json|spiece\.model|no weights found"):
        ClipFlanT5(directory, dtype="float32", device="cpu")


def test_a_missing_or_unknown_tensor_is_an_error_not_a_random_weight(tmp_path):
    """Every name is accounted for."""
    directory = copied(tmp_path)
    tensors = weights()
    tensors["mm_projector.9.weight"] = tensors.pop("mm_projector.2.weight")
    torch.save(tensors, directory / "pytorch_model.bin")

    with pytest.raises(CheckpointError, match=r"mm_projector\.2\.weight.*mm_projector\.9\.weight"):
        ClipFlanT5(directory, dtype="float32", device="cpu")


def test_a_checkpoint_that_holds_code_is_refused(tmp_path):
    """Nothing but tensors is unpickled."""
    directory = copied(tmp_path)
    torch.save({"lm_head.weight": print}, directory / "pytorch_model.bin")

    with pytest.raises(CheckpointError, match="cannot be read as weights"):
        ClipFlanT5(directory, dtype="float32", device="cpu")
