"""HPSv3++: the numbers of its released code, on a small random checkpoint in the published layout."""

import shutil

import pytest
import torch
from transformers import Qwen3VLModel

from models.core.calls import ProgressCall
from models.core.contract import CheckpointError, ModelError
from models.core.family import Plan
from models.core.outcomes import Reward
from models.families.hpsv3pp.model import Hpsv3pp
from models.families.registry import families
from models.families.vl_reward import Patches
from tests.support.dry_run import dry_run
from tests.support.vl_checkpoints import PICTURES, configure, golden, hpsv3pp, outputs, qwen3_vl, tensors

SAID = golden("hpsv3pp")
CALLS = [
    ProgressCall(PICTURES[row["image"]], SAID["prompts"][row["prompt"]]["text"], row["progress"])
    for row in SAID["scores"]
]
EXPECTED = [row["outputs"] for row in SAID["scores"]]
ON_THE_CPU = {"dtype": "float32", "device": "cpu"}


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    """A checkpoint, to be read only."""
    return hpsv3pp(tmp_path_factory.mktemp("hpsv3pp"))


@pytest.fixture(scope="module")
def model(directory):
    return Hpsv3pp(directory, **ON_THE_CPU)


def test_every_output_is_that_of_the_released_code(model):
    """Mean, uncertainty and capability at several steps of a training, all in one batch, within 1e-5."""
    for expected, row in zip(EXPECTED, outputs(model, *CALLS), strict=True):
        assert row == pytest.approx(expected, rel=0, abs=1e-5)
    assert len({tuple(round(number, 3) for number in row) for row in EXPECTED}) == len(EXPECTED)


def test_company_changes_nothing(model):
    """The released code infers one capability for a batch; here each picture has its own, as alone."""
    for call, row in zip(CALLS[:3], outputs(model, *CALLS[:3]), strict=True):
        assert row == pytest.approx(outputs(model, call)[0], rel=0, abs=1e-5)


def test_prompts_become_the_tokens_of_the_released_code(model):
    """With its shorter instruction."""
    first = PICTURES[SAID["image"]]
    for prompt in SAID["prompts"]:
        chat, _ = model.prepare(ProgressCall(first, prompt["text"])).data
        assert prompt["ids"] == chat.ids


def test_the_progress_is_part_of_the_key(model):
    """Calls that differ in it alone have other outputs, and other places in a cache."""
    picture = PICTURES[SAID["image"]]
    first, last = (ProgressCall(picture, "a cat", progress) for progress in (0.0, 1.0))

    assert first.key(()) != last.key(())
    assert outputs(model, first) != outputs(model, last)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_in_half_precision_the_outputs_are_near(directory, model, dtype):
    """The head stays in float32."""
    rough = Hpsv3pp(directory, dtype=dtype, device="cpu")
    bound = {"bfloat16": 0.1, "float16": 0.01}[dtype]

    assert torch.float32 == next(rough.head.parameters()).dtype
    for exact, found in zip(outputs(model, *CALLS[:4]), outputs(rough, *CALLS[:4]), strict=True):
        assert found == pytest.approx(exact, rel=0, abs=bound)
        assert found != exact


def test_an_output_that_is_not_finite_is_an_error(directory):
    """Never a number, and never 0."""
    model = Hpsv3pp(directory, **ON_THE_CPU)
    with torch.no_grad():
        model.head.film_gen[-1].bias.fill_(torch.inf)

    assert [ModelError] == [*map(type, model.score([model.prepare(CALLS[0])]))]


def table(directory, **more):
    family = families()["hpsv3pp"]
    return family, family.settings(family="hpsv3pp", role="hpsv3pp", checkpoint=str(directory), **more)


def test_a_table_loads_the_checkpoint_with_its_base(directory, model, tmp_path):
    """The base model's files may be in another directory; the model answers its own example."""
    (tmp_path / "alone").mkdir()
    shutil.copy(directory / "hpsv3++.pth", tmp_path / "alone")
    family, settings = table(tmp_path / "alone", base=str(qwen3_vl(tmp_path / "base")), id="ours")
    loaded = family.load("left", settings)

    assert ("ours", "hpsv3pp") == (loaded.info.id, loaded.info.role)
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
        ({"cond_encoder.0.weight": None}, "cond_encoder.0.weight is missing"),
        ({"film_gen.2.bias": None}, "1 missing: film_gen.2.bias"),
        ({"cap_encoder.proj.weight": torch.zeros(5, 32)}, "of another shape: cap_encoder.proj.weight"),
        ({"rm_head.0.weight": None}, "not a head of 32 numbers"),
        ({"model.visual.pos_embed.weight": None}, "missing: visual.pos_embed.weight"),
        ({"model.more": torch.zeros(1)}, "unexpected: language_model.more"),
    ],
)
def test_a_checkpoint_that_does_not_fit_is_one_line(tmp_path, replaced, why):
    """Which names the tensor."""
    with pytest.raises(CheckpointError, match=why) as told:
        Hpsv3pp(hpsv3pp(tmp_path / "hpsv3pp", **replaced), **ON_THE_CPU)
    assert "\n" not in str(told.value)


# --- a GPU --------------------------------------------------------------------------------------

TEXT = {
    "hidden_size": 4096,
    "intermediate_size": 12_288,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "num_hidden_layers": 2,
    "vocab_size": 708,
    "rope_scaling": {"mrope_interleaved": True, "mrope_section": [24, 20, 20], "rope_type": "default"},
    "rope_theta": 5_000_000,
    "max_position_embeddings": 262_144,
}
TOWER = {
    "depth": 2,
    "hidden_size": 1152,
    "intermediate_size": 4304,
    "num_heads": 16,
    "num_position_embeddings": 2304,
    "out_hidden_size": 4096,
    "patch_size": 16,
    "deepstack_visual_indexes": [0],
}


def published(directory):
    """The sizes of Qwen3-VL-8B with two layers, whose weights are all one number."""
    qwen3_vl(directory)
    configure(directory, text_config=TEXT, vision_config=TOWER)
    config = Qwen3VLModel.config_class.from_pretrained(directory)
    with torch.device("meta"):
        shapes = {f"model.{name}": each.shape for name, each in Qwen3VLModel(config).state_dict().items()}
    for name, shape in SAID["tensors"].items():
        if not name.startswith(("model.", "lm_head")):
            shapes[name] = [{32: 4096, 64: 8192, 24: 256}.get(size, size) for size in shape]
    held = {name: torch.zeros(1).expand(*shape) for name, shape in shapes.items()}
    torch.save(held, directory / "hpsv3++.pth")
    return directory


def test_a_tensor_that_is_left_on_the_cpu_raises(tmp_path, monkeypatch):
    """
    At the sizes of the published model, as on a GPU; without that the batch is answered.

    Stand-ins have the places of the vision tower, of the positions in three dimensions and of the sums with
    deeper features, which read grids, tokens and masks as numbers; a dry run has none.
    """
    path, picture = published(tmp_path / "hpsv3pp"), PICTURES[SAID["image"]]
    with dry_run():
        model = Hpsv3pp(path, dtype="bfloat16", device="cuda", revision="-")

        def features(pixels, grids, **_):
            assert ("cuda", "cuda", torch.bfloat16) == (pixels.device.type, grids.device.type, pixels.dtype)
            rows = torch.empty(len(pixels) // 4, 4096, dtype=pixels.dtype, device=pixels.device)
            return type("Features", (), {"pooler_output": (rows,), "deepstack_features": [(rows,)]})

        def positions(input_ids, mm_token_type_ids, **_):
            assert ("cuda", "cuda") == (input_ids.device.type, mm_token_type_ids.device.type)
            return torch.zeros(3, *input_ids.shape, dtype=torch.long, device="cuda"), None

        monkeypatch.setattr(model.network.module, "get_image_features", features)

        def deeper(states, mask, embeddings):
            assert {"cuda"} == {states.device.type, mask.device.type, embeddings.device.type}
            return states

        monkeypatch.setattr(model.network.module, "get_rope_index", positions)
        monkeypatch.setattr(model.network.module.language_model, "_deepstack_process", deeper)
        monkeypatch.setattr(model._pixels, "of", lambda image: patches())
        calls = [ProgressCall(picture, prompt, 0.3) for prompt in ("a cat", "a small red house")]
        assert [Reward] * 2 == [*map(type, model.score([model.prepare(call) for call in calls]))]
        model.head.film_gen.to("cpu")
        with pytest.raises(RuntimeError, match="device"):
            outputs(model, calls[0])


def patches():
    """A picture of 28 by 28 patches."""
    return Patches(torch.zeros(784, 1536), (1, 28, 28))
