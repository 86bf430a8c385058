"""Image classifiers of transformers: the score is one minus the probabilities of its unsafe labels."""

import json
import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoImageProcessor, AutoModelForImageClassification

from models.core.calls import RewardCall
from models.core.contract import CheckpointError, ModelError
from models.core.memory import tensors_of
from models.core.outcomes import Reward
from models.families.image_classifier.model import ImageClassifier
from models.families.names import table_of
from models.families.registry import families
from models.images.image import Image
from tests.support.clip_checkpoints import noise
from tests.support.dry_run import dry_run
from tests.support.image_classifiers import LABELS, UNSAFE, save
from tests.support.spoiled_checkpoints import cut_weights, no_config, no_weights, pickled_weights

SIZES = [(32, 32), (97, 41), (40, 123), (7, 5), (300, 200), (64, 64)]
STRIPS = [(3, 1), (1, 300), (700, 2)]
KINDS = ["vit", "convnext"]


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory):
    """One of each kind."""
    root = tmp_path_factory.mktemp("classifiers")
    return {kind: save(root / kind, kind) for kind in KINDS}


@pytest.fixture
def own(checkpoints, tmp_path):
    """A ViT that a test may spoil."""
    return shutil.copytree(checkpoints["vit"], tmp_path / "vit")


def loaded(directory, unsafe=UNSAFE, dtype="float32"):
    return ImageClassifier(directory, unsafe=unsafe, dtype=dtype, device="cpu")


def scored(model, pictures):
    """The outcomes of one batch."""
    return model.score([model.prepare(RewardCall(Image.of(picture))) for picture in pictures])


def expected(directory, picture):
    """Each label's probability by transformers' own processor and network."""
    network = AutoModelForImageClassification.from_pretrained(directory).eval()
    inputs = AutoImageProcessor.from_pretrained(directory)(images=picture, return_tensors="pt")
    with torch.inference_mode():
        return network(**inputs).logits[0].softmax(-1).tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_the_score_is_one_minus_the_probabilities_of_transformers(checkpoints, kind):
    """Of the unsafe labels, each of which follows; in one batch, where transformers gets one picture."""
    pictures = [noise(*size) for size in [*SIZES, *(STRIPS if kind == "vit" else [])]]
    found = scored(loaded(checkpoints[kind]), pictures)
    for picture, outcome in zip(pictures, found, strict=True):
        shares = dict(zip(LABELS, expected(checkpoints[kind], picture), strict=True))
        each = [shares[label] for label in UNSAFE]

        assert [1 - sum(each), *each] == pytest.approx(outcome.outputs, rel=0, abs=1e-5)
    assert 0.02 < np.ptp([outcome.value for outcome in found])


@pytest.mark.parametrize("kind", KINDS)
def test_a_score_is_the_same_in_any_batch(checkpoints, kind):
    """Alone, or among others."""
    model, pictures = loaded(checkpoints[kind]), [noise(*size) for size in SIZES]
    for picture, among in zip(pictures, scored(model, pictures), strict=True):
        [alone] = scored(model, [picture])
        assert alone.outputs == pytest.approx(among.outputs, rel=0, abs=1e-5)


def test_a_long_strip_is_cut_where_its_ends_are_cropped(checkpoints):
    """A whole one, resized by its shorter edge, would take gigabytes; a ViT squashes it instead."""
    strip = noise(16_000, 1)
    middle = strip.crop((7968, 0, 8032, 1))
    for kind, cut in (("convnext", True), ("vit", False)):
        model = loaded(checkpoints[kind])
        whole, part = (model.prepare(RewardCall(Image.of(picture))).data for picture in (strip, middle))

        assert cut == torch.equal(whole, part)


def test_the_names_of_unsafe_labels_are_in_the_order_of_the_settings(checkpoints):
    """A name that is given twice counts once."""
    picture = noise(*SIZES[0])
    [both] = scored(loaded(checkpoints["vit"], ("porn", "nsfw", "porn")), [picture])
    [one] = scored(loaded(checkpoints["vit"], ("porn",)), [picture])

    assert both.outputs[1] == one.outputs[1] == pytest.approx(1 - one.value)
    assert sum(both.outputs) == pytest.approx(1)


def test_labels_with_one_name_count_together(tmp_path):
    """As in a checkpoint with two kinds of one thing."""
    directory = save(tmp_path, labels=("nsfw", "fine", "nsfw"))
    picture = noise(*SIZES[0])
    [outcome] = scored(loaded(directory, ("nsfw",)), [picture])

    assert outcome.value == pytest.approx(expected(directory, picture)[1], abs=1e-5)


def test_bfloat16_is_near_float32(checkpoints):
    """Within 0.1 of each probability of a random network."""
    pictures = [noise(*size) for size in SIZES]
    exact, rounded = (
        scored(loaded(checkpoints["vit"], dtype=dtype), pictures) for dtype in ("float32", "bfloat16")
    )
    for one, other in zip(exact, rounded, strict=True):
        assert other.value == pytest.approx(one.value, abs=0.1)


def test_it_scores_on_a_device_that_is_not_there(checkpoints):
    """Its numbers are counted before it is loaded."""
    with dry_run():
        model = ImageClassifier(
            checkpoints["vit"], unsafe=UNSAFE, dtype="float32", device="cuda:0", revision="-"
        )
        held = sum(tensor.numel() for tensor in tensors_of(model))
    numbers = families()["image_classifier"].plan("safety", settings(checkpoints["vit"])).num_parameters

    assert numbers <= held < 2 * numbers


def test_weights_that_are_no_numbers_are_an_error(own):
    """Never a score."""
    tensors = load_file(own / "model.safetensors")
    tensors["classifier.bias"][0] = float("nan")
    save_file(tensors, own / "model.safetensors", {"format": "pt"})
    [outcome] = scored(loaded(own), [noise(32, 32)])

    assert isinstance(outcome, ModelError)


# --- what cannot be loaded ----------------------------------------------------------------------


def settings(directory, unsafe=UNSAFE):
    family = families()["image_classifier"]
    return family.settings(family=family.name, role="safety", checkpoint=str(directory), unsafe=unsafe)


@pytest.mark.parametrize(
    ("unsafe", "told"),
    [
        (("nsfw", "gore"), "unsafe: there is no label 'gore'; there are neutral, nsfw, drawing, porn"),
        (("NSFW",), "unsafe: there is no label 'NSFW'"),
        (LABELS, "unsafe: names every label, so that no picture would be safe"),
    ],
)
def test_other_names_than_those_of_the_labels_are_refused(checkpoints, unsafe, told):
    """With the names that there are."""
    with pytest.raises(CheckpointError, match=r"^models\.safety: .*config\.json: ") as refused:
        families()["image_classifier"].load("safety", settings(checkpoints["vit"], unsafe))
    assert told in str(refused.value)


def test_settings_without_an_unsafe_label_are_refused(checkpoints):
    """There would be nothing that is unsafe."""
    with pytest.raises(ValueError, match="unsafe"):
        settings(checkpoints["vit"], ())


@pytest.mark.parametrize("problem", ["multi_label_classification", "regression"])
def test_a_classifier_whose_outputs_are_no_labels_of_one_picture_is_refused(tmp_path, problem):
    """Its outputs have no softmax."""
    with pytest.raises(CheckpointError, match=f"problem_type is '{problem}'; one label is needed"):
        loaded(save(tmp_path, problem_type=problem))


@pytest.mark.parametrize("places", [(1, 2, 3, 4), (0, 1, 2, 7)], ids=str)
def test_names_of_other_outputs_than_those_there_are_refused(own, places):
    """A count from 1, or a gap: by one line that has the numbers."""
    path = own / "config.json"
    names = {str(place): label for place, label in zip(places, LABELS, strict=True)}
    path.write_text(json.dumps({**json.loads(path.read_text()), "id2label": names}))
    with pytest.raises(CheckpointError, match=rf"config\.json: id2label has {', '.join(names)}, not"):
        loaded(own)


def headless(directory):
    """A network without a head."""
    path = directory / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "architectures": ["ViTModel"]}))


@pytest.mark.parametrize(
    ("spoil", "named"),
    [
        (no_config, "config.json"),
        (no_weights, "no weights found"),
        (pickled_weights, "safetensors only"),
        (headless, "architectures is ['ViTModel'], not …ForImageClassification"),
        (cut_weights, "model.safetensors"),
    ],
)
def test_a_spoilt_checkpoint_is_one_line_that_names_the_table_and_the_file(own, spoil, named):
    """Whether it is loaded or planned."""
    spoil(own)
    for act in (families()["image_classifier"].load, families()["image_classifier"].plan):
        with pytest.raises(CheckpointError, match=r"^models\.left: .") as told:
            act("left", settings(own))
        assert named in str(told.value)
        assert "\n" not in str(told.value)


def test_code_of_the_checkpoint_is_not_run(own):
    """Neither for the network nor for the image processor."""
    (own / "code.py").write_text("raise AssertionError('it was run')\n")
    for file, key in (
        ("config.json", "AutoModelForImageClassification"),
        ("preprocessor_config.json", "AutoImageProcessor"),
    ):
        written = json.loads((own / file).read_text())
        (own / file).write_text(json.dumps({**written, "auto_map": {key: "code.Own"}}))

    assert isinstance(scored(loaded(own), [noise(32, 32)])[0], Reward)
    path = own / "preprocessor_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "image_processor_type": "Own"}))
    with pytest.raises(CheckpointError, match=r"preprocessor_config\.json: "):
        loaded(own)


@pytest.mark.parametrize(
    ("said", "named"),
    [
        ({"do_resize": False}, "different sizes"),
        ({"image_mean": "bright"}, "processor fails"),
        ({"size": {"height": 64, "width": 64}}, r"processor does not fit: .*64\*64"),
        ({"image_processor_type": "OwnProcessor"}, "preprocessor_config.json"),
    ],
    ids=str,
)
def test_an_image_processor_that_makes_no_batch_is_refused(own, said, named):
    """By one line that names the checkpoint."""
    path = own / "preprocessor_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **said}))
    with pytest.raises(CheckpointError, match=named) as told:
        loaded(own)
    assert str(own) in str(told.value)
    assert "\n" not in str(told.value)


def test_a_published_classifier_has_a_name_and_others_need_a_profile(own):
    """Their configuration does not say which labels are unsafe."""
    name = "Falconsai/nsfw_image_detection"

    assert {
        "role": "safety",
        "family": "image_classifier",
        "checkpoint": name,
        "unsafe": ["nsfw"],
    } == table_of(name)
    with pytest.raises(CheckpointError, match="an image classifier needs a profile"):
        table_of(str(own))
