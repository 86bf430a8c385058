"""Detectors: Mask2Former and OWLv2 find what transformers' own code finds."""

import json

import numpy as np
import PIL.Image
import pytest
import torch
from transformers import (
    AutoTokenizer,
    Mask2FormerForUniversalSegmentation,
    Mask2FormerImageProcessor,
    Owlv2ForObjectDetection,
    Owlv2ImageProcessor,
)

from models.core.calls import DetectCall
from models.core.contract import ModelError
from models.core.outcomes import CallResult, Detection, Detections, packed
from models.families.detector.image import MAX_SIDE, smaller
from models.families.detector.mask2former import Instances, box_of
from models.families.detector.owlv2 import Owlv2
from models.images.image import Image
from service.metrics.objects.detections import GREY, Cutout
from tests.models.contract.kind import ON_THE_CPU, outcomes
from tests.models.contract.kinds import DETECTORS, EVERYTHING, SCENES, WANTED
from tests.support.detector_checkpoints import LABELS

# --- as transformers does it --------------------------------------------------------------------


def test_mask2former_finds_what_transformers_finds(segmenter, answers):
    """Scores, classes and masks of its own post-processing; boxes are around the masks."""
    network = Mask2FormerForUniversalSegmentation.from_pretrained(segmenter).eval()
    processor = Mask2FormerImageProcessor.from_pretrained(segmenter)
    results = answers("mask2former")
    for image, outcome in zip(SCENES, results, strict=True):
        picture = image.rgb
        with torch.inference_mode():
            raw = network(**processor(images=picture, return_tensors="pt"))
        [theirs] = processor.post_process_instance_segmentation(
            raw, EVERYTHING, target_sizes=[picture.size[::-1]], return_binary_maps=True
        )
        masks = theirs["segmentation"].numpy().astype(bool)
        expected = sorted(
            zip(theirs["segments_info"], masks, strict=True), key=lambda pair: -pair[0]["score"]
        )

        assert len(outcome.found) == len(expected) > 3
        for ours, (info, mask) in zip(outcome.found, expected, strict=True):
            left, top, right, bottom = map(int, ours.box)
            whole = np.zeros(picture.size[::-1], bool)
            whole[top:bottom, left:right] = ours.pixels
            assert info["score"] == pytest.approx(ours.score, abs=2e-6)
            assert LABELS[info["label_id"]] == ours.label
            assert (mask == whole).all()
            assert box_of(mask) == ours.box


def test_owlv2_finds_what_transformers_finds(open_vocabulary):
    """Scores and labels of its own post-processing; boxes end at the picture's edges."""
    network = Owlv2ForObjectDetection.from_pretrained(open_vocabulary).eval()
    processor = Owlv2ImageProcessor.from_pretrained(open_vocabulary)
    words = AutoTokenizer.from_pretrained(open_vocabulary)(
        [f"a photo of a {label}" for label in WANTED],
        padding="max_length",
        max_length=16,
        return_tensors="pt",
    )
    model = Owlv2(open_vocabulary, max_overlap=1, **ON_THE_CPU)
    results = outcomes(model, *(DetectCall(image, WANTED, EVERYTHING) for image in SCENES))
    labels = set()
    for image, outcome in zip(SCENES, results, strict=True):
        picture = image.rgb
        with torch.inference_mode():
            raw = network(
                input_ids=words.input_ids,
                attention_mask=words.attention_mask,
                **processor(images=picture, return_tensors="pt"),
            )
        [theirs] = processor.post_process_object_detection(raw, EVERYTHING, [picture.size[::-1]])
        order = theirs["scores"].argsort(descending=True, stable=True)
        edges = torch.tensor([*picture.size, *picture.size])
        boxes = theirs["boxes"][order].clamp(min=torch.zeros(4), max=edges).tolist()

        assert len(outcome.found) == len(order) > 5
        assert theirs["scores"][order].tolist() == pytest.approx(
            [each.score for each in outcome.found], abs=1e-5
        )
        for ours, box in zip(outcome.found, boxes, strict=True):
            assert ours.box == pytest.approx(box, abs=1e-2)
            assert ours.mask is None
        ids = theirs["labels"][order].tolist()
        assert [WANTED[id] for id in ids] == [each.label for each in outcome.found]
        labels |= {each.label for each in outcome.found}

    assert len(labels) > 1


def test_of_boxes_that_overlap_the_surest_stays(open_vocabulary):
    """Of one label; less overlap allowed, fewer boxes."""
    call = DetectCall(SCENES[0], WANTED, EVERYTHING)
    counts = [
        len(outcomes(Owlv2(open_vocabulary, max_overlap=most, **ON_THE_CPU), call)[0].found)
        for most in (1.0, 0.5, 0.05)
    ]

    assert counts[0] > counts[1] >= counts[2] > 0


def test_a_higher_threshold_leaves_out_what_scores_less(models):
    """The score itself is not enough."""
    model = models("mask2former")
    [everything] = outcomes(model, DetectCall(SCENES[0], (), EVERYTHING))
    third = everything.found[2].score
    [few] = outcomes(model, DetectCall(SCENES[0], (), third))

    assert everything.found[:2] == few.found


@pytest.mark.parametrize("name", DETECTORS)
def test_half_precision_finds_about_the_same(name, directories, answers):
    """The best object's score within 0.05."""
    rough = DETECTORS[name].load(directories(name), dtype="bfloat16")
    [found] = outcomes(rough, DETECTORS[name].calls[0])

    assert answers(name)[0].found[0].score == pytest.approx(found.found[0].score, abs=0.05)


# --- calls and pictures -------------------------------------------------------------------------


def test_each_kind_of_detector_refuses_the_others_calls(models):
    """One knows its classes, the other must be told some."""
    closed, told = models("mask2former"), models("owlv2")

    assert (LABELS, True) == (closed.info.labels, closed.info.masks)
    assert ((), False) == (told.info.labels, told.info.masks)
    with pytest.raises(ModelError, match="only the classes"):
        closed.prepare(DetectCall(SCENES[0], ("dog",)))
    with pytest.raises(ModelError, match="the call has none"):
        told.prepare(DetectCall(SCENES[0]))


def test_a_strip_is_refused_and_a_large_picture_scaled_down(models):
    """Before a detector makes gigabytes of it."""
    model = models("mask2former")
    with pytest.raises(ModelError, match="more than 16 times as long"):
        model.prepare(DetectCall(Image.of(PIL.Image.new("RGB", (1700, 100)))))

    assert (MAX_SIDE, 512) == smaller(PIL.Image.new("RGB", (8192, 2048))).size
    assert SCENES[0].rgb is smaller(SCENES[0].rgb)


# --- objects ------------------------------------------------------------------------------------


def test_a_box_is_around_the_pixels_of_a_mask():
    """From the first pixel to behind the last; an empty mask has none, and is no object."""
    mask = np.zeros((384, 384), bool)
    assert box_of(mask) is None
    mask[10:20, 30:31] = True
    assert (30.0, 10.0, 31.0, 20.0) == box_of(mask)

    masks = np.stack([mask, np.zeros_like(mask)])
    outcome = Instances(np.array([0.5, 0.9]), np.array([1, 1]), masks).detections(LABELS, (384, 384), 0.3)
    assert [("dog", 0.5)] == [(each.label, each.score) for each in outcome.found]
    assert (10, 1) == outcome.found[0].pixels.shape


def test_a_cutout_is_the_object_on_grey_within_its_box():
    """Its digest is known before anything is decoded, and tells masks apart."""
    picture = PIL.Image.new("RGB", (40, 30), "red")
    mask = np.eye(10, dtype=bool)
    one, other = (
        Cutout(Image.of(picture), Detection("dog", 0.5, (5.0, 6.0, 15.0, 16.0), packed(pixels)))
        for pixels in (mask, ~mask)
    )
    pixels = np.asarray(one.rgb)

    assert ((10, 10), (10, 10)) == (one.size, one.rgb.size)
    assert (pixels[mask] == (255, 0, 0)).all()
    assert (pixels[~mask] == GREY).all()
    assert one.digest != other.digest
    assert (np.asarray(Image(one.encoded).rgb) == pixels).all()
    with pytest.raises(ValueError, match="without a mask"):
        Cutout(Image.of(picture), Detection("dog", 0.5, (5.0, 6.0, 15.0, 16.0)))


MASKED = Detection("dog", 1 / 3, (1.0, 2.0, 11.0, 5.0), packed(np.ones((3, 10), bool)))


def test_detections_come_back_to_the_last_bit():
    """As stores keep them, masks included."""
    outcome = Detections((MASKED, Detection("漢字", 0.1 + 0.2, (0.1, 0.2, 0.3, 0.4))))

    assert outcome == CallResult.loads(outcome.dumps())


@pytest.mark.parametrize(
    "change",
    [
        {0: 5},
        {1: 1},
        {1: 1.5},
        {1: None},
        {2: [0.0, 0.0, 1.0]},
        {2: [1.0, 2.0, 12.0, 5.0]},
        {2: [9.0, 2.0, 1.0, 5.0]},
        {3: "#"},
        {3: "AAAA"},
    ],
    ids=str,
)
def test_what_is_no_whole_detection_is_not_read(change):
    """A field of another type, a score above 1, a mask of another size or none at all."""
    written = Detections((MASKED,)).to_json()
    for place, value in change.items():
        written["found"][0][place] = value

    assert CallResult.loads(json.dumps({"kind": "detections", **written}).encode()) is None
