"""SigLIP, SigLIP 2 and ALIGN: the numbers are those that transformers computes."""

import json
import re

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from models.core.calls import ImageCall, TextCall
from models.core.contract import CheckpointError
from models.families.transformers_clip.model import TransformersClip
from models.images.image import Image
from tests.support.clip_checkpoints import noise
from tests.support.transformers_clips import LENGTHS, cosines, words

SIZES = [(32, 32), (97, 41), (40, 123), (7, 5), (3, 1), (1, 300)]
TEXTS = ["a red circle", "Two RED cats on the grass", "", "a dog " * 40, "star"]
KINDS = ["siglip", "siglip2", "align"]


@pytest.fixture
def spoilt(own):
    """A SigLIP that a test may spoil."""
    return own("siglip")


def clip(directory, dtype="float32"):
    return TransformersClip(directory, dtype=dtype, device="cpu")


def embedded(model, calls):
    """The outcomes of one batch."""
    return model.score([model.prepare(call) for call in calls])


def calls():
    return [*(ImageCall(Image.of(noise(*size), str(size))) for size in SIZES), *map(TextCall, TEXTS)]


@pytest.mark.parametrize("kind", KINDS)
def test_cosines_are_those_of_transformers(directories, models, kind):
    """In one batch, where transformers gets each pair by itself; odd sizes, capitals, no text, a long one."""
    found = [outcome.vector for outcome in embedded(models(kind), calls())]
    ours = np.array(found[: len(SIZES)]) @ np.array(found[len(SIZES) :]).T
    expected = cosines(kind, directories(kind), [noise(*size) for size in SIZES], TEXTS)

    assert np.abs(expected - ours).max() <= 1e-5
    assert np.ptp(expected, axis=0).min() > 1e-2
    assert np.ptp(expected, axis=1).min() > 1e-2


@pytest.mark.parametrize("kind", KINDS)
def test_a_text_that_is_cut_says_so(models, kind):
    """One more token than fit is one too many."""
    model = models(kind)
    lengths = {
        count: model.prepare(TextCall("a" * count if kind == "siglip2" else "dog " * count))
        for count in range(80)
    }
    cut = [prepared.data.truncated for prepared in lengths.values()]

    assert cut == sorted(cut)
    assert (False, True) == (cut[0], cut[-1])
    assert {(LENGTHS[kind],)} == {prepared.data.tensors[0].shape for prepared in lengths.values()}
    last = cut.index(True)
    assert torch.equal(lengths[last].data.tensors[0], lengths[79].data.tensors[0])
    assert not torch.equal(lengths[last - 1].data.tensors[0], lengths[last - 2].data.tensors[0])


def test_a_siglip_never_sees_a_capital(spoilt):
    """Also where the tokenizer would let it pass, as that of SigLIP 2's square checkpoints does."""
    (spoilt / "spiece.model").unlink()
    words(spoilt, lower=False, names=["input_ids"])
    model = clip(spoilt)
    small, large = (model.prepare(TextCall(text)).data.tensors[0] for text in ("red dog", "Red Dog"))

    assert torch.equal(small, large)
    capital, lower = (model._tokenizer._padded(text).input_ids for text in ("Red Dog", "red dog"))
    assert [*capital] != [*lower]


@pytest.mark.parametrize(
    ("kind", "name"), [("siglip", "logit_scale"), ("siglip2", "logit_scale"), ("align", "temperature")]
)
def test_the_scale_is_the_checkpoints_own(own, kind, name):
    """What its training multiplied cosines by: exp of one number, or 1 over another."""
    directory = own(kind)
    change(directory, lambda tensors: tensors.update({name: torch.full_like(tensors[name], 0.01)}))

    assert clip(directory).info.logit_scale == pytest.approx(100 if kind == "align" else np.exp(0.01))


# --- what cannot be loaded ----------------------------------------------------------------------


def change(directory, how):
    """The weights after *how*."""
    tensors = load_file(directory / "model.safetensors")
    how(tensors)
    save_file(tensors, directory / "model.safetensors", {"format": "pt"})


def test_weights_that_are_missing_or_of_another_shape_are_listed(spoilt):
    """transformers would go on with random numbers."""

    def spoil(tensors):
        tensors["text_model.head.weight"] = torch.zeros(3, 3)
        del tensors["vision_model.post_layernorm.weight"]

    change(spoilt, spoil)
    with pytest.raises(
        CheckpointError, match=re.escape("text_model.head.weight, vision_model.post_layernorm.weight")
    ):
        clip(spoilt)


@pytest.mark.parametrize(
    ("file", "said", "named"),
    [
        ("config.json", {"model_type": "clip"}, "model_type is 'clip', not 'siglip' or 'siglip2' or 'align'"),
        ("config.json", {"text_config": {"vocab_size": 2}}, "of another shape"),
        (
            "preprocessor_config.json",
            {"size": {"shortest_edge": 32}, "do_center_crop": False},
            "different sizes",
        ),
        ("preprocessor_config.json", {"image_mean": "bright"}, "processor fails"),
    ],
)
def test_a_file_that_says_something_else_is_refused(spoilt, file, said, named):
    """By one line that names the checkpoint."""
    written = json.loads((spoilt / file).read_text())
    (spoilt / file).write_text(json.dumps({**written, **said}))
    with pytest.raises(CheckpointError) as told:
        clip(spoilt)
    assert named in str(told.value)
    assert str(spoilt) in str(told.value)
    assert "\n" not in str(told.value)


def test_a_checkpoint_without_a_tokenizer_or_with_another_ones_is_refused(spoilt):
    """Ids beyond the text tower's vocabulary would end a GPU's process."""
    (spoilt / "spiece.model").unlink()
    with pytest.raises(CheckpointError, match="tokenizer"):
        clip(spoilt)
    words(spoilt, lower=False, names=["input_ids"])
    listed = (spoilt / "tokenizer.json").read_text()
    (spoilt / "tokenizer.json").write_text(listed.replace('"a": 4', '"a": 400'))
    assert listed != (spoilt / "tokenizer.json").read_text()
    with pytest.raises(CheckpointError, match="does not fit the text tower"):
        clip(spoilt)
