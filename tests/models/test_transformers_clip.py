"""SigLIP, SigLIP 2 and ALIGN: the numbers are those that transformers computes."""

import json
import re
import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from models.core.calls import ImageCall, TextCall
from models.core.contract import CheckpointError
from models.core.memory import tensors_of
from models.core.outcomes import Embedding
from models.families.registry import families
from models.families.transformers_clip.model import TransformersClip
from models.images.image import Image
from tests.support.clip_checkpoints import noise
from tests.support.dry_run import dry_run
from tests.support.spoiled_checkpoints import cut_weights, no_config, no_weights, pickled_weights
from tests.support.transformers_clips import LENGTHS, cosines, save, words

SIZES = [(32, 32), (97, 41), (40, 123), (7, 5), (3, 1), (1, 300)]
TEXTS = ["a red circle", "Two RED cats on the grass", "", "a dog " * 40, "star"]
KINDS = ["siglip", "siglip2", "align"]


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory):
    """One of each kind."""
    root = tmp_path_factory.mktemp("clips")
    return {kind: save(kind, root / kind) for kind in KINDS}


@pytest.fixture
def own(checkpoints, tmp_path):
    """A SigLIP that a test may spoil."""
    return shutil.copytree(checkpoints["siglip"], tmp_path / "clip")


def clip(directory, dtype="float32"):
    return TransformersClip(directory, dtype=dtype, device="cpu")


def embedded(model, calls):
    """The outcomes of one batch."""
    return model.score([model.prepare(call) for call in calls])


def calls():
    return [*(ImageCall(Image.of(noise(*size), str(size))) for size in SIZES), *map(TextCall, TEXTS)]


@pytest.mark.parametrize("kind", KINDS)
def test_cosines_are_those_of_transformers(checkpoints, kind):
    """In one batch, where transformers gets each pair by itself; odd sizes, capitals, no text, a long one."""
    found = [outcome.vector for outcome in embedded(clip(checkpoints[kind]), calls())]
    ours = np.array(found[: len(SIZES)]) @ np.array(found[len(SIZES) :]).T
    expected = cosines(kind, checkpoints[kind], [noise(*size) for size in SIZES], TEXTS)

    assert np.abs(expected - ours).max() <= 1e-5
    assert np.ptp(expected, axis=0).min() > 1e-2
    assert np.ptp(expected, axis=1).min() > 1e-2


@pytest.mark.parametrize("kind", KINDS)
def test_an_embedding_is_the_same_in_any_batch(checkpoints, kind):
    """Alone, or among others."""
    model = clip(checkpoints[kind])
    for call, among in zip(calls(), embedded(model, calls()), strict=True):
        [alone] = embedded(model, [call])
        assert np.abs(alone.vector - among.vector).max() <= 1e-6


@pytest.mark.parametrize("kind", KINDS)
def test_a_text_that_is_cut_says_so(checkpoints, kind):
    """One more token than fit is one too many."""
    model = clip(checkpoints[kind])
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


def test_a_siglip_never_sees_a_capital(own):
    """Also where the tokenizer would let it pass, as that of SigLIP 2's square checkpoints does."""
    (own / "spiece.model").unlink()
    words(own, lower=False, names=["input_ids"])
    model = clip(own)
    small, large = (model.prepare(TextCall(text)).data.tensors[0] for text in ("red dog", "Red Dog"))

    assert torch.equal(small, large)
    capital, lower = (model._tokenizer._padded(text).input_ids for text in ("Red Dog", "red dog"))
    assert [*capital] != [*lower]


@pytest.mark.parametrize(
    ("kind", "name"), [("siglip", "logit_scale"), ("siglip2", "logit_scale"), ("align", "temperature")]
)
def test_the_scale_is_the_checkpoints_own(checkpoints, tmp_path, kind, name):
    """What its training multiplied cosines by: exp of one number, or 1 over another."""
    directory = shutil.copytree(checkpoints[kind], tmp_path / "clip")
    change(directory, lambda tensors: tensors.update({name: torch.full_like(tensors[name], 0.01)}))

    assert clip(directory).info.logit_scale == pytest.approx(100 if kind == "align" else np.exp(0.01))


@pytest.mark.parametrize("kind", KINDS)
def test_bfloat16_is_near_float32(checkpoints, kind):
    """Within 0.05 of each number of a unit vector."""
    exact, rounded = (embedded(clip(checkpoints[kind], dtype), calls()) for dtype in ("float32", "bfloat16"))
    for one, other in zip(exact, rounded, strict=True):
        assert np.abs(one.vector - other.vector).max() < 0.05


@pytest.mark.parametrize("kind", ["siglip", "align"])  # of the third it depends on each picture's shape
def test_it_embeds_on_a_device_that_is_not_there(checkpoints, kind):
    """Both towers; its numbers are counted before it is loaded."""
    with dry_run():
        model = TransformersClip(checkpoints[kind], dtype="float32", device="cuda:0", revision="-")
        held = sum(tensor.numel() for tensor in tensors_of(model))
        outcomes = model.score([model.prepare(call) for call in calls()])
    numbers = families()["transformers_clip"].plan("clip", settings(checkpoints[kind])).num_parameters

    assert numbers <= held < 2 * numbers
    assert {Embedding} == {*map(type, outcomes)}


# --- what cannot be loaded ----------------------------------------------------------------------


def settings(directory):
    family = families()["transformers_clip"]
    return family.settings(family=family.name, role="clip", checkpoint=str(directory))


def change(directory, how):
    """The weights after *how*."""
    tensors = load_file(directory / "model.safetensors")
    how(tensors)
    save_file(tensors, directory / "model.safetensors", {"format": "pt"})


@pytest.mark.parametrize(
    ("spoil", "named"),
    [
        (no_config, "config.json"),
        (no_weights, "no weights found"),
        (pickled_weights, "safetensors only"),
        (cut_weights, "model.safetensors"),
    ],
)
def test_a_spoilt_checkpoint_is_one_line_that_names_the_table_and_the_file(own, spoil, named):
    """Whether it is loaded or planned."""
    spoil(own)
    for act in (families()["transformers_clip"].load, families()["transformers_clip"].plan):
        with pytest.raises(CheckpointError, match=r"^models\.left: .") as told:
            act("left", settings(own))
        assert named in str(told.value)
        assert "\n" not in str(told.value)


def test_weights_that_are_missing_or_of_another_shape_are_listed(own):
    """transformers would go on with random numbers."""

    def spoil(tensors):
        tensors["text_model.head.weight"] = torch.zeros(3, 3)
        del tensors["vision_model.post_layernorm.weight"]

    change(own, spoil)
    with pytest.raises(
        CheckpointError, match=re.escape("text_model.head.weight, vision_model.post_layernorm.weight")
    ):
        clip(own)


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
def test_a_file_that_says_something_else_is_refused(own, file, said, named):
    """By one line that names the checkpoint."""
    written = json.loads((own / file).read_text())
    (own / file).write_text(json.dumps({**written, **said}))
    with pytest.raises(CheckpointError) as told:
        clip(own)
    assert named in str(told.value)
    assert str(own) in str(told.value)
    assert "\n" not in str(told.value)


def test_a_checkpoint_without_a_tokenizer_or_with_another_ones_is_refused(own):
    """Ids beyond the text tower's vocabulary would end a GPU's process."""
    (own / "spiece.model").unlink()
    with pytest.raises(CheckpointError, match="tokenizer"):
        clip(own)
    words(own, lower=False, names=["input_ids"])
    listed = (own / "tokenizer.json").read_text()
    (own / "tokenizer.json").write_text(listed.replace('"a": 4', '"a": 400'))
    assert listed != (own / "tokenizer.json").read_text()
    with pytest.raises(CheckpointError, match="does not fit the text tower"):
        clip(own)
