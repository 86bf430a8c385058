"""LAION's aesthetic predictors: a head on a CLIP's image embeddings, held against NumPy."""

from dataclasses import replace

import numpy as np
import open_clip
import pytest
import torch
from safetensors.torch import save_file

from models.core.calls import RewardCall
from models.core.contract import CheckpointError
from models.families.aesthetic.model import Aesthetic
from models.families.registry import families
from models.images.image import Image
from tests.support.clip_checkpoints import noise, save_own

PICTURES = [noise(97, 41), noise(40, 123), noise(64, 64)]
CALLS = [RewardCall(Image.of(picture)) for picture in PICTURES]
COMMIT = "1" * 40
WIDTH = 24  # of the small CLIP's embeddings
SECOND = {0: (40, WIDTH), 2: (20, 40), 4: (10, 20), 6: (5, 10), 7: (1, 5)}


def second(**other):
    """The tensors of version 2, with *other* shapes for some weights."""
    generator, tensors = np.random.default_rng(3), {}
    for place, shape in SECOND.items():
        rows, width = other.get(f"layer_{place}", shape)
        tensors[f"layers.{place}.weight"] = generator.normal(0, width**-0.5, (rows, width))
        tensors[f"layers.{place}.bias"] = generator.normal(0, 1, rows)
    return {name: torch.from_numpy(array.astype(np.float32)) for name, array in tensors.items()}


def first():
    """Those of version 1."""
    return {"weight": torch.linspace(-3, 4, WIDTH)[None], "bias": torch.tensor([5.5])}


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    return save_own(tmp_path_factory.mktemp("aesthetic") / "clip")


@pytest.fixture
def head(tmp_path):
    def saved(tensors):
        torch.save(tensors, tmp_path / "head.pth")
        return tmp_path / "head.pth"

    return saved


def table(clip, head, **more):
    family = families()["aesthetic"]
    return family, family.settings(
        family="aesthetic", role="aesthetic", checkpoint=str(clip), head=str(head), **more
    )


def loaded(clip, head, **more) -> Aesthetic:
    family, settings = table(clip, head, **more)
    return family.load("left", settings)


def ratings(model, *calls):
    return [outcome.value for outcome in model.score([model.prepare(call) for call in calls])]


def embeddings(clip):
    """As open_clip's README computes them, in float64."""
    network, _, preprocess = open_clip.create_model_and_transforms(f"local-dir:{clip}")
    with torch.no_grad():
        seen = network.eval().encode_image(torch.stack([preprocess(picture) for picture in PICTURES]))
    vectors = seen.double().numpy()
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_version_2_is_five_layers_on_the_unit_vector(clip, head):
    """With nothing between them."""
    tensors = second()
    numbers = embeddings(clip)
    for place in SECOND:
        weight, bias = (tensors[f"layers.{place}.{kind}"].double().numpy() for kind in ("weight", "bias"))
        numbers = numbers @ weight.T + bias

    assert ratings(loaded(clip, head(tensors)), *CALLS) == pytest.approx(numbers[:, 0], rel=0, abs=1e-5)
    assert np.ptp(numbers) > 0.01


def test_version_1_is_one_layer_on_the_unit_vector(clip, head):
    """Told by the names of its tensors."""
    numbers = embeddings(clip) @ np.linspace(-3, 4, WIDTH) + 5.5

    assert ratings(loaded(clip, head(first())), *CALLS) == pytest.approx(numbers, rel=0, abs=1e-5)


def test_the_prompt_changes_nothing(models):
    """A rating is of the picture alone."""
    named = [RewardCall(call.image, "a masterpiece") for call in CALLS]

    assert ratings(models("aesthetic"), *named) == ratings(models("aesthetic"), *CALLS)


def test_a_head_in_safetensors_is_read(clip, tmp_path, head):
    """With the same tensors."""
    save_file(second(), tmp_path / "head.safetensors")

    assert ratings(loaded(clip, tmp_path / "head.safetensors"), *CALLS) == ratings(
        loaded(clip, head(second())), *CALLS
    )


def test_another_head_is_another_revision(clip, head):
    """The CLIP and the head both have a part in it."""
    one, other = (loaded(clip, head(tensors)).info.revision.split("+") for tensors in (first(), second()))

    assert one[0] == other[0]
    assert one[1] != other[1]


def test_an_embedding_that_is_not_finite_is_no_rating(models):
    """The others of the batch have their ratings."""
    model = models("aesthetic")
    prepared = [model.prepare(call) for call in CALLS]
    pixels = torch.full_like(prepared[1].data.tensors[0], torch.nan, dtype=torch.float32)
    prepared[1] = replace(prepared[1], data=replace(prepared[1].data, tensors=(pixels,)))

    assert [True, False, True] == [outcome.is_finite() for outcome in model.score(prepared)]


@pytest.mark.parametrize(
    ("tensors", "reason"),
    [
        (second(layer_0=(40, 768)), r"head\.pth: .* embeddings of 768 numbers, and those of clip have 24"),
        (second(layer_4=(10, 21)), r"head\.pth: .*layers\.4\.weight \(10, 21\) instead of \(10, 20\)"),
        (second(layer_7=(2, 5)), r"head\.pth: .*layers\.7\.weight \(2, 5\) instead of \(1, 5\)"),
        (
            {"weight": torch.zeros(3, WIDTH), "bias": torch.zeros(3)},
            r"head\.pth: .*\(3, 24\) instead of \(1, 24\)",
        ),
        ({"weight": torch.zeros(1, WIDTH)}, r"head\.pth: .*1 missing: bias"),
        (second() | {"layers.8.weight": torch.zeros(1, 1)}, r"head\.pth: .*1 unexpected: layers\.8\.weight"),
        ({}, r"head\.pth: .*layers\.0\.weight"),
        ({"layers.0.weight": print}, r"head\.pth: .*nothing else is unpickled"),
    ],
)
def test_a_head_that_cannot_be_used_is_one_line_that_names_the_file(clip, head, tensors, reason):
    """Before anything is served."""
    with pytest.raises(CheckpointError, match=reason):
        loaded(clip, head(tensors))


@pytest.mark.parametrize("place", ["", "nowhere.pth"])
def test_a_head_that_is_not_there_is_told_by_the_start_and_by_the_check(clip, place):
    """Nothing is downloaded."""
    family, settings = table(clip, place)
    for work in (family.load, family.plan):
        with pytest.raises(CheckpointError, match=r"no such file; `head` names the predictor's weights"):
            work("left", settings)


def test_a_head_of_the_hub_is_planned_before_it_is_downloaded(clip, hub_cache):
    """And counted once it is there."""
    family, settings = table(clip, f"hf-hub:owner/name@{COMMIT}/head.pth")
    before = family.plan("left", settings)
    file = hub_cache / "models--owner--name" / "snapshots" / COMMIT / "head.pth"
    file.parent.mkdir(parents=True)
    torch.save(second(), file)
    after = family.plan("left", settings)

    assert before.loads.endswith(f" and head.pth of owner/name@{COMMIT}")
    assert after.loads.endswith(" and head.pth")
    assert sum(tensor.numel() for tensor in second().values()) == after.num_parameters - before.num_parameters
    assert "+" in family.load("left", settings).info.revision
