"""Checkpoints of detectors: which ones are refused, and how much memory the others take."""

import json
import shutil

import pytest
import torch
from transformers import (
    Mask2FormerImageProcessor,
)

from models.core.contract import CheckpointError
from models.core.outcomes import Detections
from models.families.detector.image import PreparedImage
from models.families.detector.mask2former import Mask2Former
from models.families.detector.owlv2 import Owlv2
from models.families.registry import families
from tests.support import real_sizes
from tests.support.detector_checkpoints import mask2former, mask2former_config, owlv2
from tests.support.dry_run import dry_run
from tests.support.spoiled_checkpoints import cut_weights, no_config, no_weights, pickled_weights

ON_THE_CPU = {"dtype": "float32", "device": "cpu"}


@pytest.fixture(scope="module")
def detectors(tmp_path_factory):
    """A checkpoint of each family, to be read only."""
    directory = tmp_path_factory.mktemp("detectors")
    return {make.__name__: make(directory / make.__name__) for make in (mask2former, owlv2)}


@pytest.fixture
def segmenter(detectors, tmp_path):
    """A Mask2Former of one's own, to be spoiled."""
    return shutil.copytree(detectors["mask2former"], tmp_path / "detector")


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
        (no_config, r"config\.json: missing"),
        (no_processor, r"preprocessor_config\.json: missing"),
        (no_weights, r"no weights found \(looked for model\.safetensors"),
        (pickled_weights, r"pytorch_model\.bin: weights are read from safetensors only"),
        (cut_weights, r"model\.safetensors: cannot be loaded"),
        (more_queries, r"model\.safetensors: weights are missing or of another shape: .*quer"),
        (another_type, r"config\.json: model_type is 'detr', not 'mask2former'"),
        (unnamed_class, r"config\.json: id2label must name all classes, from 0"),
        (broken_processor, r"preprocessor_config\.json: "),
    ],
)
def test_a_checkpoint_that_cannot_be_used_is_one_line_that_names_the_file(segmenter, spoil, reason):
    """Before anything is served."""
    spoil(segmenter)
    with pytest.raises(CheckpointError, match=reason):
        Mask2Former(segmenter, **ON_THE_CPU)


@pytest.mark.parametrize("family", ["mask2former", "owlv2"])
def test_a_plan_counts_the_numbers(detectors, family):
    """Those of the tensors, none of which is loaded."""
    declared = families()[family]
    table = declared.settings(family=family, role="detector", checkpoint=str(detectors[family]))

    assert 10_000 < declared.plan("ours", table).num_parameters < 1_000_000


@pytest.mark.parametrize("family", ["mask2former", "owlv2"])
def test_a_family_loads_what_a_table_names(detectors, family):
    """With its id and revision."""
    declared = families()[family]
    settings = declared.settings(
        family=family, role="detector", checkpoint=str(detectors[family]), id="ours", revision="7"
    )

    assert "ours@7" == declared.load("left", settings).info.label


def test_a_tensor_that_is_left_on_the_cpu_raises(tmp_path):
    """As on a GPU; without that the batch is answered."""
    directory = tmp_path / "detector"
    mask2former_config().save_pretrained(directory)
    Mask2FormerImageProcessor(size={"shortest_edge": 64, "longest_edge": 160}).save_pretrained(directory)
    (directory / "model.safetensors").touch()

    def load(strayed=False):
        model = Mask2Former(directory, dtype="float32", device="cuda", revision="-")
        if strayed:
            model._network.class_predictor.to("cpu")
        return model

    def scored(model):
        return model.score([model.prepare(model.example())] * 2)

    with dry_run():
        assert [Detections] * 2 == [*map(type, scored(load()))]
        with pytest.raises(RuntimeError, match="device"):
            scored(load(strayed=True))


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
