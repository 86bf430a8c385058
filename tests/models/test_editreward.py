"""EditReward: the numbers of its released code, on a small random checkpoint in the published layout."""

import pytest
import torch
from safetensors.torch import load_file
from transformers import Qwen2_5_VLModel

from models.core.calls import EditCall
from models.core.contract import CheckpointError, ModelError
from models.core.family import Plan
from models.core.outcomes import Reward
from models.families.editreward.model import EditReward
from models.families.registry import families
from tests.support.dry_run import dry_run
from tests.support.vl_checkpoints import PICTURES, configure, editreward, golden, outputs, qwen2_5_vl, tensors

SAID = golden("editreward")
PROMPTS = [prompt["text"] for prompt in SAID["prompts"]]
CALLS = [
    EditCall(PICTURES[row["image"]], PROMPTS[row["prompt"]], PICTURES[row["source"]])
    for row in SAID["scores"]
]
EXPECTED = [row["outputs"] for row in SAID["scores"]]
ON_THE_CPU = {"dtype": "float32", "device": "cpu"}


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    """A checkpoint, to be read only."""
    return editreward(tmp_path_factory.mktemp("editreward"))


@pytest.fixture(scope="module")
def model(directory):
    return EditReward(directory, **ON_THE_CPU)


def test_every_output_is_that_of_the_released_code(model):
    """The mean and both heads of edits with pictures of all shapes, all in one batch, within 1e-5."""
    for expected, row in zip(EXPECTED, outputs(model, *CALLS), strict=True):
        assert row == pytest.approx(expected, rel=0, abs=1e-5)
    assert len({tuple(round(number, 3) for number in row) for row in EXPECTED}) == len(EXPECTED)


def test_company_changes_nothing(model):
    """Alone, or beside longer prompts and other pictures: the same within 1e-5."""
    for call, row in zip(CALLS[:3], outputs(model, *CALLS[:3]), strict=True):
        assert row == pytest.approx(outputs(model, call)[0], rel=0, abs=1e-5)


def test_prompts_become_the_tokens_of_the_released_code(model):
    """Two chats, each with the source, the edited picture and an instruction."""
    for prompt in SAID["prompts"]:
        call = EditCall(PICTURES[SAID["image"]], prompt["text"], PICTURES[SAID["source"]])
        following, quality = model.prepare(call).data
        assert [prompt["following"], prompt["quality"]] == [following.ids, quality.ids]


def test_the_source_is_part_of_the_key(model):
    """Source and picture the other way round are another call with other outputs."""
    call = CALLS[0]
    swapped = EditCall(call.source, call.prompt, call.image)

    assert call.key(()) != swapped.key(())
    assert outputs(model, call) != outputs(model, swapped)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_in_half_precision_the_outputs_are_near(directory, model, dtype):
    """The heads stay in float32."""
    rough = EditReward(directory, dtype=dtype, device="cpu")
    bound = {"bfloat16": 0.2, "float16": 0.02}[dtype]

    assert {torch.float32} == {weight.dtype for weight in rough.head.parameters()}
    for exact, found in zip(outputs(model, *CALLS[:3]), outputs(rough, *CALLS[:3]), strict=True):
        assert found == pytest.approx(exact, rel=0, abs=bound)
        assert found != exact


def test_an_output_that_is_not_finite_is_an_error(directory):
    """Never a number, and never 0."""
    model = EditReward(directory, **ON_THE_CPU)
    with torch.no_grad():
        model.head[1][-1].bias.fill_(torch.nan)

    assert [ModelError] == [*map(type, model.score([model.prepare(CALLS[0])]))]


def table(directory, **more):
    family = families()["editreward"]
    return family, family.settings(family="editreward", role="editreward", checkpoint=str(directory), **more)


def test_a_table_loads_the_checkpoint_with_its_base(directory, model, tmp_path):
    """A file of PyTorch, and the base model's files elsewhere; the model answers its own example."""
    (tmp_path / "alone").mkdir()
    torch.save(load_file(directory / "model.safetensors"), tmp_path / "alone" / "model.pth")
    family, settings = table(tmp_path / "alone", base=str(qwen2_5_vl(tmp_path / "base")), id="ours")
    loaded = family.load("left", settings)

    assert ("ours", "editreward") == (loaded.info.id, loaded.info.role)
    assert outputs(model, CALLS[0]) == outputs(loaded, CALLS[0])
    assert [Reward] == [*map(type, loaded.score([loaded.prepare(loaded.example())]))]


def test_a_plan_counts_the_numbers(directory):
    """Those of its tensors, none of which is loaded."""
    family, settings = table(directory)
    count = sum(each.numel() for each in tensors(SAID).values())

    assert Plan(directory.name, str(directory), count) == family.plan("ours", settings)


@pytest.mark.parametrize(
    ("replaced", "why"),
    [
        ({"rm_heads.head_1.5.bias": None}, "not a head of 32 numbers .*missing: 5.bias"),
        ({"rm_heads.head_2.5.bias": torch.zeros(2)}, "but head_0, head_1, head_2"),
        ({"model.visual.merger.mlp.0.bias": None}, "missing: visual.merger.mlp.0.bias"),
    ],
)
def test_a_checkpoint_that_does_not_fit_is_one_line(tmp_path, replaced, why):
    """Which names the tensor."""
    with pytest.raises(CheckpointError, match=why) as told:
        EditReward(editreward(tmp_path / "editreward", **replaced), **ON_THE_CPU)
    assert "\n" not in str(told.value)


# --- a GPU --------------------------------------------------------------------------------------

HEADS = {"num_attention_heads": 28, "num_key_value_heads": 4}
SIZES = {"hidden_size": 3584, "intermediate_size": 18_944, **HEADS}
TOWER = {
    "depth": 2,
    "hidden_size": 1280,
    "intermediate_size": 3420,
    "num_heads": 16,
    "out_hidden_size": 3584,
    "in_chans": 3,
    "patch_size": 14,
    "fullatt_block_indexes": [1],
}
ROPE = {"type": "mrope", "mrope_section": [16, 24, 24]}


def published(directory):
    """The sizes of Qwen2.5-VL-7B with two layers, whose weights are all one number."""
    qwen2_5_vl(directory)
    configure(directory, **SIZES, vision_config=TOWER, rope_scaling=ROPE, vocab_size=708)
    config = Qwen2_5_VLModel.config_class.from_pretrained(directory)
    with torch.device("meta"):
        shapes = {f"model.{name}": each.shape for name, each in Qwen2_5_VLModel(config).state_dict().items()}
    for name, shape in SAID["tensors"].items():
        if name.startswith("rm_heads"):
            shapes[name] = [3584 if size == 32 else size for size in shape]
    held = {name: torch.zeros(1).expand(*shape) for name, shape in shapes.items()}
    torch.save(held, directory / "model.pth")
    return directory


def test_a_tensor_that_is_left_on_the_cpu_raises(tmp_path, monkeypatch):
    """
    At the sizes of the published model, as on a GPU; without that the batch is answered.

    The vision tower of transformers reads its grids as numbers, which a dry run does not have, so that a
    stand-in gets its inputs.
    """
    path = published(tmp_path / "editreward")
    with dry_run():
        model = EditReward(path, dtype="bfloat16", device="cuda", revision="-")

        def features(pixels, grids, **_):
            assert ("cuda", "cuda", torch.bfloat16) == (pixels.device.type, grids.device.type, pixels.dtype)
            rows = torch.empty(len(pixels) // 4, 3584, dtype=pixels.dtype, device=pixels.device)
            return type("Features", (), {"pooler_output": (rows,)})

        monkeypatch.setattr(model.network.module, "get_image_features", features)
        assert [Reward] * 2 == [*map(type, model.score([model.prepare(call) for call in CALLS[:2]]))]
        model.head[1].to("cpu")
        with pytest.raises(RuntimeError, match="device"):
            outputs(model, CALLS[0])
