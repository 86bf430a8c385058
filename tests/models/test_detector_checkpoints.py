"""Checkpoints of detectors: which ones are refused, and how much memory the others take."""

import json
import re
import shutil

import pytest
from transformers import (
    Mask2FormerImageProcessor,
)

from models.core.contract import CheckpointError
from models.core.settings import Batch
from models.families.detector.mask2former import Mask2Former
from models.families.detector.owlv2 import Owlv2
from models.families.detector.plan import mask2former_batches, owlv2_batches
from models.families.registry import families
from models.sizing.dry_run import dry_run
from models.sizing.memory import measured
from tests.support import real_sizes
from tests.support.detector_checkpoints import mask2former, mask2former_config, owlv2
from tests.support.pages import section
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
def test_a_plan_counts_the_numbers_and_predicts_the_memory(detectors, family):
    """On a GPU that need not be there; more pictures in a batch take more."""
    declared = families()[family]
    plans = [
        declared.plan(
            "ours",
            declared.settings(
                family=family,
                role="detector",
                checkpoint=str(detectors[family]),
                device="cuda",
                batch=Batch(max_items=items),
            ),
        )
        for items in (1, 2)
    ]

    one, two = (plan.memory for plan in plans)
    assert 10_000 < plans[0].num_parameters < 1_000_000
    assert one.weights == two.weights > 4 * plans[0].num_parameters * 0.9
    assert two.activations > one.activations


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

    def batches(model):
        return mask2former_batches(model, Batch(max_items=2))

    assert measured("cuda", load, batches).activations > 0
    with pytest.raises(RuntimeError, match="device"):
        measured("cuda", lambda: load(strayed=True), batches)


def test_the_memory_that_the_documents_tell_is_predicted(tmp_path):
    """Of the published sizes, in float32."""
    segmenter = real_sizes.mask2former(tmp_path / "segmenter")
    told = real_sizes.owlv2(tmp_path / "told")
    with dry_run() as meter:
        model = Mask2Former(segmenter, dtype="float32", device="cuda", revision="-")
        weights = meter.held
        activations = []
        for items in (1, 4):
            meter.peak = meter.held
            for batch in mask2former_batches(model, Batch(max_items=items)):
                model.score(batch)
            activations.append(meter.peak - weights)
    base = measured(
        "cuda",
        lambda: Owlv2(told, dtype="float32", device="cuda", revision="-"),
        lambda model: owlv2_batches(model, Batch()),
    )
    sizes = weights, *activations, base.weights, base.activations

    memory = section("models.md", "## Detectors").partition("**Memory.**")[2]
    assert [f"{size / 1e9:.1f}" for size in sizes] == re.findall(r"([\d.]+) GB", memory)
