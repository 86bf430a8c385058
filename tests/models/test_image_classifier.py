"""Image classifiers of transformers: the score is one minus the probabilities of its unsafe labels."""

import io
import json

import numpy as np
import PIL.Image
import pytest
import torch
from safetensors.torch import load_file, save_file

from models.core.calls import RewardCall
from models.core.contract import CheckpointError
from models.core.outcomes import Reward
from models.families.image_classifier.model import ImageClassifier
from models.families.names import table_of
from models.families.registry import families
from models.images.image import Image
from tests.models.contract.references import label_shares, unsafe_shares
from tests.support.clip_checkpoints import noise
from tests.support.image_classifiers import LABELS, UNSAFE, save

SIZES = [(32, 32), (97, 41), (40, 123), (7, 5), (300, 200), (64, 64), (1, 1), (3, 3), (2, 3)]
STRIPS = [(3, 1), (1, 300), (700, 2)]
KINDS = ["vit", "convnext"]


@pytest.fixture
def vit(own):
    """A ViT that a test may spoil."""
    return own("vit")


def loaded(directory, unsafe=UNSAFE, dtype="float32"):
    return ImageClassifier(directory, unsafe=unsafe, dtype=dtype, device="cpu")


def scored(model, pictures):
    """The outcomes of one batch."""
    return model.score([model.prepare(RewardCall(Image.of(picture))) for picture in pictures])


@pytest.mark.parametrize("kind", KINDS)
def test_the_score_is_one_minus_the_probabilities_of_transformers(directories, models, kind):
    """Of the unsafe labels, each of which follows; in one batch, where transformers gets one picture."""
    pictures = [noise(*size) for size in [*SIZES, *(STRIPS if kind == "vit" else [])]]
    found, reference = scored(models(kind), pictures), unsafe_shares(directories(kind))
    for picture, outcome in zip(pictures, found, strict=True):
        assert reference(RewardCall(Image.of(picture))) == pytest.approx(outcome.outputs, rel=0, abs=1e-5)
    assert 0.02 < np.ptp([outcome.value for outcome in found])


def test_a_long_strip_is_cut_where_its_ends_are_cropped(models):
    """A whole one, resized by its shorter edge, would take gigabytes; a ViT squashes it instead."""
    strip = noise(16_000, 1)
    middle = strip.crop((7968, 0, 8032, 1))
    for kind, cut in (("convnext", True), ("vit", False)):
        model = models(kind)
        whole, part = (model.prepare(RewardCall(Image.of(picture))).data for picture in (strip, middle))

        assert cut == torch.equal(whole, part)


def safe(reference, picture):
    """The score by transformers."""
    return reference(RewardCall(Image.of(picture)))[0]


def test_a_long_strip_is_whole_where_nothing_is_cropped(tmp_path):
    """A ConvNeXt of 384 pixels squashes pictures, though its size is named that of the shorter edge."""
    directory = save(tmp_path, "convnext")
    edit(directory / "preprocessor_config.json", size={"shortest_edge": 384})
    strip = noise(900, 3)
    [found], reference = scored(loaded(directory), [strip]), unsafe_shares(directory)

    assert found.value == pytest.approx(safe(reference, strip), abs=1e-5)
    assert found.value != pytest.approx(safe(reference, strip.crop((354, 0, 546, 3))), abs=1e-3)


@pytest.mark.parametrize("mode", ["L", "LA", "1", "P", "RGBA", "I;16", "CMYK"])
def test_pictures_of_any_mode_are_scored_by_their_colours(directories, models, mode):
    """Greyscale and others as in RGB; what is transparent is white, as a viewer shows it."""
    picture = noise(40, 30)
    picture = picture.convert("L").convert("I;16") if mode == "I;16" else picture.convert(mode)
    if mode in ("LA", "RGBA"):
        picture.putalpha(PIL.Image.linear_gradient("L").resize(picture.size))
    buffer = io.BytesIO()
    picture.save(buffer, "TIFF" if mode == "CMYK" else "PNG")
    image = Image(buffer.getvalue())
    model = models("vit")
    [found] = model.score([model.prepare(RewardCall(image))])

    assert found.value == pytest.approx(safe(unsafe_shares(directories("vit")), image.rgb), abs=1e-5)


def test_the_names_of_unsafe_labels_are_in_the_order_of_the_settings(directories):
    """A name that is given twice counts once."""
    picture = noise(*SIZES[0])
    [both] = scored(loaded(directories("vit"), ("porn", "nsfw", "porn")), [picture])
    [one] = scored(loaded(directories("vit"), ("porn",)), [picture])

    assert both.outputs[1] == one.outputs[1] == pytest.approx(1 - one.value)
    assert sum(both.outputs) == pytest.approx(1)


def test_labels_with_one_name_count_together(tmp_path):
    """As in a checkpoint with two kinds of one thing."""
    directory = save(tmp_path, labels=("nsfw", "fine", "nsfw"))
    picture = noise(*SIZES[0])
    [outcome] = scored(loaded(directory, ("nsfw",)), [picture])

    assert outcome.value == pytest.approx(label_shares(directory)(picture)[1], abs=1e-5)


@pytest.mark.parametrize("number", ["nan", "inf", "-inf"])
@pytest.mark.parametrize("label", LABELS)
def test_logits_that_are_no_numbers_are_an_error(vit, number, label):
    """Never a score, also where minus infinity would be a probability of 0."""
    tensors = load_file(vit / "model.safetensors")
    tensors["classifier.bias"][LABELS.index(label)] = float(number)
    save_file(tensors, vit / "model.safetensors", {"format": "pt"})
    [outcome] = scored(loaded(vit), [noise(32, 32)])

    assert not outcome.is_finite()


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
def test_other_names_than_those_of_the_labels_are_refused(directories, unsafe, told):
    """With the names that there are."""
    with pytest.raises(CheckpointError, match=r"^models\.safety: .*config\.json: ") as refused:
        families()["image_classifier"].load("safety", settings(directories("vit"), unsafe))
    assert told in str(refused.value)


def test_settings_without_an_unsafe_label_are_refused(directories):
    """There would be nothing that is unsafe."""
    with pytest.raises(ValueError, match="unsafe"):
        settings(directories("vit"), ())


@pytest.mark.parametrize("kind", ["multi_label_classification", "regression", "ordinal"])
def test_a_classifier_whose_outputs_are_no_labels_is_refused(vit, kind):
    """The probabilities of several labels at once have no sum, and other outputs are none."""
    edit(vit / "config.json", problem_type=kind)
    with pytest.raises(CheckpointError, match=f"problem_type is '{kind}'"):
        loaded(vit)


def test_labels_have_the_numbers_of_the_file_in_any_order(vit, directories):
    """JSON has them as strings; what `label2id` says is not used."""
    named = {str(number): LABELS[number] for number in (3, 1, 0, 2)}
    edit(vit / "config.json", id2label=named, label2id={label: 0 for label in LABELS})
    [found], [before] = (scored(loaded(each), [noise(32, 32)]) for each in (vit, directories("vit")))

    assert before == found


@pytest.mark.parametrize("numbers", [(1, 2, 3, 4), (0, 1, 2, 7)], ids=str)
def test_labels_without_the_numbers_of_the_outputs_are_refused(vit, numbers):
    """Such as those of a list that begins at 1."""
    edit(vit / "config.json", id2label=dict(zip(map(str, numbers), LABELS, strict=True)))
    told = ", ".join(map(str, numbers))
    with pytest.raises(CheckpointError, match=f"id2label has the numbers {told}, not 0 to 3"):
        loaded(vit)


def edit(path, **said):
    """Change what a file of a checkpoint says."""
    path.write_text(json.dumps({**json.loads(path.read_text()), **said}))


def headless(directory):
    """A network without a head."""
    edit(directory / "config.json", architectures=["ViTModel"])


def no_processor(directory):
    """A checkpoint whose image processor was forgotten."""
    (directory / "preprocessor_config.json").unlink()


@pytest.mark.parametrize(
    ("spoil", "named"),
    [
        (headless, "architectures is ['ViTModel'], not …ForImageClassification"),
    ],
)
def test_a_spoilt_checkpoint_is_one_line_that_names_the_table_and_the_file(vit, spoil, named):
    """Whether it is loaded or planned."""
    spoil(vit)
    for act in (families()["image_classifier"].load, families()["image_classifier"].plan):
        with pytest.raises(CheckpointError, match=r"^models\.left: .") as told:
            act("left", settings(vit))
        assert named in str(told.value)
        assert "\n" not in str(told.value)


def test_a_checkpoint_without_its_image_processor_is_refused(vit):
    """The sizes and colours of its training are nowhere else."""
    no_processor(vit)
    with pytest.raises(CheckpointError, match=r"preprocessor_config\.json: missing"):
        loaded(vit)


def test_code_of_the_checkpoint_is_not_run(vit):
    """Neither for the network nor for the image processor."""
    (vit / "code.py").write_text("raise AssertionError('it was run')\n")
    for file, key in (
        ("config.json", "AutoModelForImageClassification"),
        ("preprocessor_config.json", "AutoImageProcessor"),
    ):
        written = json.loads((vit / file).read_text())
        (vit / file).write_text(json.dumps({**written, "auto_map": {key: "code.Own"}}))

    assert isinstance(scored(loaded(vit), [noise(32, 32)])[0], Reward)
    path = vit / "preprocessor_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "image_processor_type": "Own"}))
    with pytest.raises(CheckpointError, match=r"preprocessor_config\.json: "):
        loaded(vit)


@pytest.mark.parametrize(
    ("said", "named"),
    [
        ({"do_resize": False}, "different sizes"),
        ({"image_mean": "bright"}, "processor fails"),
        ({"size": {"height": 64, "width": 64}}, r"fails with its image processor: .*64\*64"),
        ({"image_processor_type": "OwnProcessor"}, "preprocessor_config.json"),
    ],
    ids=str,
)
def test_an_image_processor_that_makes_no_batch_is_refused(vit, said, named):
    """By one line that names the checkpoint."""
    edit(vit / "preprocessor_config.json", **said)
    with pytest.raises(CheckpointError, match=named) as told:
        loaded(vit)
    assert str(vit) in str(told.value)
    assert "\n" not in str(told.value)


def test_a_published_classifier_has_a_name_and_others_need_a_profile(vit):
    """Their configuration does not say which labels are unsafe."""
    name = "Falconsai/nsfw_image_detection"

    assert {
        "role": "safety",
        "family": "image_classifier",
        "checkpoint": name,
        "unsafe": ["nsfw"],
    } == table_of(name)
    with pytest.raises(CheckpointError, match="an image classifier needs a profile"):
        table_of(str(vit))
