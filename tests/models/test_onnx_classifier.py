"""Image classifiers in ONNX files: pixels, labels, and files that are none."""

import sys

import numpy as np
import PIL.Image
import pytest

from models.core.calls import RewardCall
from models.core.contract import CheckpointError, ModelError
from models.families.registry import families
from models.images.image import Image
from tests.support.clip_checkpoints import noise
from tests.support.image_classifiers import graph

SIZES = [(32, 32), (97, 41), (40, 123), (7, 5), (1, 300), (16_000, 1)]
LABELS = ("fine", "nsfw", "gore")
SHAPES = {"NHWC": ("batch", 24, 16, 3), "NCHW": ("batch", 3, 24, 16), "one by one": (1, 24, 16, 3)}
STEPS = {"mean": (104, 117, 123), "std": (1, 2, 4)}
FAMILY = families()["onnx_classifier"]


def settings(path, **more):
    return FAMILY.settings(
        role="safety",
        family=FAMILY.name,
        checkpoint=str(path),
        **{"labels": LABELS, "unsafe": ("nsfw", "gore"), **STEPS, **more},
    )


def loaded(path, **more):
    return FAMILY.load("safety", settings(path, **more))


def scored(model, pictures):
    """The outcomes of one batch."""
    return model.score([model.prepare(RewardCall(Image.of(picture))) for picture in pictures])


def expected(weights, picture, resize, colours):
    """Each label's probability, by NumPy."""
    pixels = np.asarray(picture.resize(resize, PIL.Image.Resampling.BILINEAR), np.float64)
    left, top = (resize[0] - 16) // 2, (resize[1] - 24) // 2
    pixels = pixels[top : top + 24, left : left + 16, :: -1 if colours == "bgr" else 1]
    logits = ((pixels - STEPS["mean"]) / STEPS["std"]).mean((0, 1)) @ weights
    return np.exp(logits) / np.exp(logits).sum()


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("colours", ["rgb", "bgr"])
@pytest.mark.parametrize(("resize", "side"), [(0, (16, 24)), (40, (40, 40))])
def test_the_score_is_one_minus_the_probabilities_of_unsafe_labels(tmp_path, shape, colours, resize, side):
    """Squashed, cropped and normalised; in one batch, and each picture alone."""
    weights = graph(tmp_path / "g.onnx", shape, labels=3)
    model, pictures = (
        loaded(tmp_path / "g.onnx", colours=colours, resize=resize),
        [noise(*size) for size in SIZES],
    )
    together = scored(model, pictures)
    for picture, outcome in zip(pictures, together, strict=True):
        fine, nsfw, gore = expected(weights, picture, side, colours)
        [alone] = scored(model, [picture])

        assert (fine, nsfw, gore) == pytest.approx(outcome.outputs, rel=0, abs=1e-5)
        assert alone.outputs == pytest.approx(outcome.outputs, rel=0, abs=1e-6)
    assert 0.005 < np.ptp([outcome.value for outcome in together])


def test_logits_get_a_softmax_where_the_settings_say_so(tmp_path):
    """Else they are refused as probabilities, when the model is loaded."""
    graph(tmp_path / "soft.onnx", SHAPES["NHWC"], labels=3)
    graph(tmp_path / "logits.onnx", SHAPES["NHWC"], labels=3, softmax=False)
    pictures = [noise(*size) for size in SIZES]
    soft, logits = (
        scored(loaded(tmp_path / f"{name}.onnx", output=output), pictures)
        for name, output in (("soft", "probabilities"), ("logits", "logits"))
    )

    assert [each.value for each in soft] == pytest.approx([each.value for each in logits], abs=1e-6)
    with pytest.raises(CheckpointError, match=r"logits\.onnx: the outputs are no probabilities"):
        loaded(tmp_path / "logits.onnx")


@pytest.mark.parametrize("field", ["mean", "std"])
@pytest.mark.parametrize("number", [float("inf"), float("nan")])
def test_a_mean_that_is_no_number_is_refused(tmp_path, field, number):
    """By an infinite divisor all pictures would be equal."""
    with pytest.raises(ValueError, match=field):
        settings(tmp_path / "g.onnx", **{field: (number, 1, 1)})


@pytest.mark.parametrize(
    "row", [[0.5, 0.4, 0.0], [1.2, -0.1, -0.1], [float("nan"), 0.1, 0.2], [float("inf"), 0.0, 0.0]], ids=str
)
def test_outputs_that_are_no_probabilities_are_an_error_of_the_call(tmp_path, monkeypatch, row):
    """Never a score, also where only the label that is not unsafe has no number."""
    graph(tmp_path / "g.onnx", SHAPES["NHWC"], labels=3)
    model = loaded(tmp_path / "g.onnx")
    monkeypatch.setattr(model, "_run", lambda batch: np.array([row], np.float32))
    [outcome] = scored(model, [noise(32, 32)])

    assert isinstance(outcome, ModelError)


@pytest.mark.parametrize("at", range(3))
@pytest.mark.parametrize("number", ["nan", "inf", "-inf"])
def test_logits_that_are_no_numbers_are_an_error_of_the_call(tmp_path, monkeypatch, number, at):
    """Also minus infinity, which would be a probability of 0."""
    graph(tmp_path / "g.onnx", SHAPES["NHWC"], labels=3, softmax=False)
    model = loaded(tmp_path / "g.onnx", output="logits")
    row = [0.5, 0.1, -2.0]
    row[at] = float(number)
    monkeypatch.setattr(model, "_run", lambda batch: np.array([row], np.float32))
    [outcome] = scored(model, [noise(32, 32)])

    assert isinstance(outcome, ModelError)


def test_outputs_after_a_softmax_are_refused_as_logits(tmp_path):
    """A second softmax would move every score towards the same number."""
    graph(tmp_path / "g.onnx", SHAPES["NHWC"], labels=3)
    with pytest.raises(CheckpointError, match="the outputs are from 0 to 1, as after a softmax or sigmoid"):
        loaded(tmp_path / "g.onnx", output="logits")


def test_a_graph_whose_pictures_change_each_others_outputs_is_refused(tmp_path):
    """As with a softmax over the batch, which a single picture does not show."""
    graph(tmp_path / "g.onnx", SHAPES["NHWC"], labels=3, axis=0)
    with pytest.raises(CheckpointError, match="three pictures together have other outputs than each alone"):
        loaded(tmp_path / "g.onnx", output="logits")


@pytest.mark.parametrize(
    "steps",
    [
        {"mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)},
        {"mean": (0.5, 0.5, 0.5), "std": (1, 1, 1)},
        {"mean": (0, 0, 0), "std": (0.5, 0.5, 0.5)},
    ],
    ids=str,
)
def test_steps_of_colours_from_0_to_1_are_refused(tmp_path, steps):
    """Pixels are bytes, so that every score would be wrong."""
    with pytest.raises(ValueError, match="multiply those of colours from 0 to 1 by 255"):
        settings(tmp_path / "g.onnx", **steps)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"labels": ("fine", "nsfw")}, "has the shape (1, 3); there are 2 labels"),
        ({"unsafe": ("porn",)}, "unsafe: there is no label 'porn'; there are fine, nsfw, gore"),
        ({"unsafe": LABELS}, "unsafe: names every label"),
        ({"resize": 20}, "resize is 20, less than the graph's (16, 24)"),
    ],
    ids=str,
)
def test_settings_that_do_not_fit_the_graph_are_refused(tmp_path, more, told):
    """With the file."""
    graph(tmp_path / "g.onnx", SHAPES["NHWC"], labels=3)
    more = {"unsafe": ("nsfw",)} | more
    with pytest.raises(CheckpointError, match=r"^models\.safety: .*g\.onnx: ") as refused:
        loaded(tmp_path / "g.onnx", **more)
    assert told in str(refused.value)


@pytest.mark.parametrize(
    ("shape", "more", "told"),
    [
        (("batch", 24, 16, 4), {}, "the inputs are tensor(float) ['batch', 24, 16, 4]; one is needed"),
        ((8, 24, 16, 3), {}, "with any N or 1"),
        (("batch", "height", 16, 3), {}, "one is needed"),
        (SHAPES["NHWC"], {"inputs": 2}, "one is needed"),
        (SHAPES["NHWC"], {"outputs": 2}, "has 2 outputs; one is needed"),
    ],
    ids=["four colours", "a batch of eight", "any height", "two inputs", "two outputs"],
)
def test_a_graph_that_takes_no_pictures_or_returns_more_is_refused(tmp_path, shape, more, told):
    """With its inputs."""
    graph(tmp_path / "g.onnx", shape, labels=3, **more)
    with pytest.raises(CheckpointError) as refused:
        loaded(tmp_path / "g.onnx")
    assert told in str(refused.value)


def test_a_file_of_something_else_is_refused_in_one_line(tmp_path):
    """And one that is not there, also when it is planned."""
    (tmp_path / "g.onnx").write_bytes(b"no graph")
    with pytest.raises(CheckpointError, match=r"g\.onnx: is no graph that onnxruntime can run") as refused:
        loaded(tmp_path / "g.onnx")
    assert "\n" not in str(refused.value)
    for act in (FAMILY.load, FAMILY.plan):
        with pytest.raises(CheckpointError, match=r"models\.safety: /srv/nothing\.onnx: no such file"):
            act("safety", settings("/srv/nothing.onnx"))


def test_without_onnxruntime_the_line_has_the_command_that_installs_it(tmp_path, monkeypatch):
    """When the model is loaded or planned."""
    graph(tmp_path / "g.onnx", SHAPES["NHWC"], labels=3)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    for act in (FAMILY.load, FAMILY.plan):
        with pytest.raises(CheckpointError, match=r"needs the package onnxruntime: pip install '\.\[onnx\]'"):
            act("safety", settings(tmp_path / "g.onnx"))


def test_another_file_of_one_name_is_another_model(tmp_path):
    """Under a revision of the settings, too, which stays the label; the plan counts its numbers."""
    path = tmp_path / "g.onnx"
    found = []
    for labels in (3, 3, 4):
        graph(path, SHAPES["NHWC"], labels=labels)
        names = ("fine", "nsfw", "gore", "more")[:labels]
        found.append(loaded(path, revision="7", labels=names).info)
    first, again, other = found

    assert first.identity == again.identity != other.identity
    assert "g@7" == first.label == other.label
    assert path.stat().st_size // 4 == FAMILY.plan("safety", settings(path)).num_parameters
