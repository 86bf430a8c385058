"""Checkpoints of detectors: which ones are refused, and how much memory the others take."""

import json

import pytest
import torch

from models.core.contract import CheckpointError
from models.core.outcomes import Detections
from models.families.detector.image import PreparedImage
from models.families.detector.mask2former import Mask2Former
from models.families.detector.owlv2 import Owlv2
from tests.support import real_sizes
from tests.support.dry_run import dry_run


def configured(directory, name, **values):
    path = directory / name
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def no_processor(directory):
    (directory / "preprocessor_config.json").unlink()


def more_queries(directory):
    configured(directory, "config.json", num_queries=13)


def another_type(directory):
    configured(directory, "config.json", model_type="detr")


def unnamed_class(directory):
    configured(directory, "config.json", id2label={"0": "person", "1": "dog", "3": "mouse"})


def broken_processor(directory):
    configured(directory, "preprocessor_config.json", size="large")


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (no_processor, r"preprocessor_config\.json: missing"),
        (more_queries, r"model\.safetensors: weights are missing or of another shape: .*quer"),
        (another_type, r"config\.json: model_type is 'detr', not 'mask2former'"),
        (unnamed_class, r"config\.json: id2label must name all classes, from 0"),
        (broken_processor, r"preprocessor_config\.json: "),
    ],
)
def test_a_checkpoint_that_cannot_be_used_is_one_line_that_names_the_file(own, spoil, reason):
    """Before anything is served."""
    directory = own("mask2former")
    spoil(directory)
    with pytest.raises(CheckpointError, match=reason):
        Mask2Former(directory, dtype="float32", device="cpu")


def test_published_detectors_run_on_a_device_that_is_not_there(tmp_path):
    """In their own sizes with few layers, with the largest pictures."""
    sizes = ((Mask2Former, real_sizes.mask2former, (800, 1344)), (Owlv2, real_sizes.owlv2, (960, 960)))
    with dry_run():
        for kind, save, (height, width) in sizes:
            few = real_sizes.few_layers(save(tmp_path / kind.__name__))
            model = kind(few, dtype="float32", device="cuda", revision="-")
            labels = ("dog", "cat") if kind is Owlv2 else ()
            picture = PreparedImage(torch.zeros(3, height, width), (width, height), 0.3, labels)
            assert [Detections] * 2 == [*map(type, model.score([model.ready(picture)] * 2))]
