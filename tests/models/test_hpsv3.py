"""HPSv3: the numbers of its released code, on a small random checkpoint in the published layout."""

import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import Qwen2VLModel

from models.core.calls import RewardCall
from models.core.contract import CheckpointError, ModelError
from models.core.family import Plan
from models.core.outcomes import Reward
from models.families.hpsv3.model import Hpsv3
from models.families.registry import families
from models.images.image import Image
from tests.support.dry_run import dry_run
from tests.support.pictures import png
from tests.support.vl_checkpoints import PICTURES, QWEN2_VL, calls, configure, golden, hpsv3, outputs

SAID = golden("hpsv3")
CALLS = calls(SAID)
EXPECTED = [row["outputs"] for row in SAID["scores"]]
ON_THE_CPU = {"dtype": "float32", "device": "cpu"}


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    """A checkpoint, to be read only."""
    return hpsv3(tmp_path_factory.mktemp("hpsv3"))


@pytest.fixture(scope="module")
def model(directory):
    return Hpsv3(directory, **ON_THE_CPU)


def test_every_output_is_that_of_the_released_code(model):
    """Mean and uncertainty of pictures of all shapes and prompts of all lengths in one batch, within 1e-5."""
    found = outputs(model, *CALLS)

    assert len({tuple(round(number, 3) for number in row) for row in EXPECTED}) == len(EXPECTED)
    for expected, row in zip(EXPECTED, found, strict=True):
        assert row == pytest.approx(expected, rel=0, abs=1e-5)


def test_company_changes_nothing(model):
    """Alone, or beside longer prompts and other pictures: the same within 1e-5."""
    for call, row in zip(CALLS[:3], outputs(model, *CALLS[:3]), strict=True):
        assert row == pytest.approx(outputs(model, call)[0], rel=0, abs=1e-5)


def test_prompts_become_the_tokens_of_the_released_code(model):
    """With the instruction, the chat template, the reward token, and one token for four patches."""
    first = PICTURES[SAID["image"]]
    for prompt in SAID["prompts"]:
        assert prompt["ids"] == model.prepare(RewardCall(first, prompt["text"])).data.ids


def test_special_tokens_in_a_prompt_are_text(model):
    """The chat has one reward token, and ends once, whatever the prompt has."""
    plain, written = (
        model.prepare(RewardCall(PICTURES[SAID["image"]], prompt)).data
        for prompt in ("a cat", "a cat<|Reward|><|im_end|><|image_pad|>")
    )

    assert len(plain.places) == len(written.places) == 1
    for token in ("<|Reward|>", "<|im_end|>", "<|image_pad|>"):
        id = model._chats[0]._special.token_to_id(token)
        assert list(plain.ids).count(id) == list(written.ids).count(id)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_in_half_precision_the_outputs_are_near(directory, model, dtype):
    """The head stays in float32."""
    rough = Hpsv3(directory, dtype=dtype, device="cpu")

    assert torch.float32 == next(rough.head.parameters()).dtype
    bound = {"bfloat16": 0.05, "float16": 0.005}[dtype]
    for exact, found in zip(outputs(model, *CALLS[:4]), outputs(rough, *CALLS[:4]), strict=True):
        assert found == pytest.approx(exact, rel=0, abs=bound)
        assert found != exact


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (
            RewardCall(PICTURES[SAID["image"]], "dog " * 20_000),
            "too long: .* tokens, and the model takes 32768",
        ),
        (RewardCall(Image(png("red", size=(300, 1))), "a cat"), "more than 200 times the other"),
    ],
)
def test_a_call_that_it_cannot_answer_is_refused(model, call, why):
    """With the reason, and without a number."""
    with pytest.raises(ModelError, match=why):
        model.prepare(call)


def test_an_output_that_is_not_finite_is_an_error(directory):
    """Never a number, and never 0."""
    model = Hpsv3(directory, **ON_THE_CPU)
    with torch.no_grad():
        model.head[-1].bias.fill_(torch.nan)

    assert [ModelError] == [*map(type, model.score([model.prepare(CALLS[0])]))]


# --- the checkpoint -----------------------------------------------------------------------------


def renamed(directory):
    """Names of newer versions of transformers."""
    held = load_file(directory / "HPSv3.safetensors")
    new = {
        f"model.{name}"
        if name.startswith("visual.")
        else f"model.language_model.{name.removeprefix('model.')}"
        if name.startswith("model.")
        else name: each
        for name, each in held.items()
    }
    save_file(new, directory / "HPSv3.safetensors")


def pickled(directory):
    """The other name that the released code reads, with the weights one level below."""
    path = directory / "HPSv3.safetensors"
    torch.save({"model": load_file(path)}, directory / "HPSv3.pth")
    path.unlink()


@pytest.mark.parametrize("change", [renamed, pickled])
def test_other_layouts_have_the_same_outputs(directory, model, tmp_path, change):
    """Names of either version of transformers, and a file of PyTorch."""
    shutil.copytree(directory, tmp_path, dirs_exist_ok=True)
    change(tmp_path)

    assert outputs(model, CALLS[0]) == outputs(Hpsv3(tmp_path, **ON_THE_CPU), CALLS[0])


def table(directory, **more):
    family = families()["hpsv3"]
    return family, family.settings(family="hpsv3", role="hpsv3", checkpoint=str(directory), **more)


def test_a_table_loads_the_checkpoint_with_its_base(directory, model, tmp_path):
    """The base model's files may be in another directory; the model answers its own example."""
    (tmp_path / "alone").mkdir()
    shutil.copy(directory / "HPSv3.safetensors", tmp_path / "alone")
    family, settings = table(tmp_path / "alone", base=str(QWEN2_VL), id="ours", revision="7")
    loaded = family.load("left", settings)

    assert ("ours@7", "hpsv3") == (loaded.info.label, loaded.info.role)
    assert outputs(model, CALLS[0]) == outputs(loaded, CALLS[0])
    assert [Reward] == [*map(type, loaded.score([loaded.prepare(loaded.example())]))]


def test_a_plan_counts_the_numbers(directory):
    """Those of its tensors, none of which is loaded."""
    family, settings = table(directory)
    held = load_file(directory / "HPSv3.safetensors")

    assert Plan(directory.name, str(directory), sum(map(torch.numel, held.values()))) == family.plan(
        "ours", settings
    )


def no_weights(directory):
    (directory / "HPSv3.safetensors").unlink()


def cut_weights(directory):
    path = directory / "HPSv3.safetensors"
    path.write_bytes(path.read_bytes()[:1000])


def without(name):
    def spoil(directory):
        path = directory / "HPSv3.safetensors"
        save_file({key: each for key, each in load_file(path).items() if name not in key}, path)

    return spoil


def no_head_layer(directory):
    hpsv3(directory, **{"rm_head.5.weight": torch.zeros(1, 16)})


def few_rows(directory):
    hpsv3(directory, **{"model.embed_tokens.weight": torch.zeros(707, 32)})


def code(directory):
    (directory / "HPSv3.safetensors").unlink()
    torch.save({"head": print}, directory / "HPSv3.pth")


def no_template(directory):
    (directory / "chat_template.json").write_text('{"chat_template": "{{ 1 }}"}')


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (no_weights, "no weights found"),
        (cut_weights, "cannot be read as weights"),
        (without("layers.1.mlp"), "the weights don't fit .*missing: language_model.layers.1.mlp"),
        (without("rm_head.3"), "not a head of 32 numbers .*missing: 3"),
        (no_head_layer, "not a head of 32 numbers .*of another shape: 5.weight"),
        (few_rows, "708 words, and the embeddings have 707 rows"),
        (without("embed_tokens"), "708 words, and the embeddings have 0 rows"),
        (code, "something else than plain tensors"),
        (lambda path: configure(path, model_type="qwen2_5_vl"), "model_type is 'qwen2_5_vl', not 'qwen2_vl'"),
        (lambda path: configure(path, hidden_size=36), "the weights don't fit|cannot be built"),
        (no_template, "its chat template has no place for the text"),
        (lambda path: (path / "preprocessor_config.json").unlink(), "preprocessor_config.json: missing"),
        (lambda path: (path / "tokenizer.json").write_text("{"), "its tokenizer cannot be loaded"),
    ],
)
def test_a_spoiled_checkpoint_is_one_line(tmp_path, spoil, why):
    """Which names the file."""
    directory = hpsv3(tmp_path / "hpsv3")
    spoil(directory)
    with pytest.raises(CheckpointError, match=why) as told:
        Hpsv3(directory, **ON_THE_CPU)
    assert "\n" not in str(told.value)


# --- a GPU --------------------------------------------------------------------------------------

SIZES = {
    "hidden_size": 3584,
    "intermediate_size": 18_944,
    "num_attention_heads": 28,
    "num_key_value_heads": 4,
}
TOWER = {"depth": 2, "embed_dim": 1280, "mlp_ratio": 4, "num_heads": 16, "hidden_size": 3584, "in_chans": 3}
MERGED = {"patch_size": 14, "spatial_merge_size": 2, "spatial_patch_size": 14, "temporal_patch_size": 2}
ROPE = {"type": "mrope", "mrope_section": [16, 24, 24]}


def published(directory):
    """The sizes of Qwen2-VL-7B with two layers, whose weights are all one number."""
    shutil.copytree(QWEN2_VL, directory)
    configure(directory, **SIZES, vision_config=TOWER | MERGED, rope_scaling=ROPE, vocab_size=708)
    config = Qwen2VLModel.config_class.from_pretrained(directory)
    with torch.device("meta"):
        shapes = {name: each.shape for name, each in Qwen2VLModel(config).state_dict().items()}
    layers = {"0": (1024, 3584), "3": (16, 1024), "5": (2, 16)}
    for number, (rows, columns) in layers.items():
        shapes |= {f"rm_head.{number}.weight": (rows, columns), f"rm_head.{number}.bias": (rows,)}
    names = {name if name.startswith("rm_head") else f"model.{name}": shape for name, shape in shapes.items()}
    held = {name: torch.zeros(1).expand(shape) for name, shape in names.items()}
    torch.save(held, directory / "HPSv3.pth")
    return directory


def test_a_tensor_that_is_left_on_the_cpu_raises(tmp_path, monkeypatch):
    """
    At the sizes of the published model, as on a GPU; without that the batch is answered.

    The vision tower of transformers reads its grids as numbers, which a dry run does not have, so that a
    stand-in gets its inputs.
    """
    path = published(tmp_path / "hpsv3")
    with dry_run():
        model = Hpsv3(path, dtype="float16", device="cuda", revision="-")
        seen = []

        def features(pixels, grids, **_):
            seen.append((pixels.device.type, pixels.dtype, grids.device.type, pixels.shape[1]))
            rows = torch.empty(len(pixels) // 4, 3584, dtype=pixels.dtype, device=pixels.device)
            return type("Features", (), {"pooler_output": (rows,)})

        monkeypatch.setattr(model.network.module, "get_image_features", features)
        assert [Reward] * 3 == [*map(type, model.score([model.prepare(call) for call in CALLS[:3]]))]
        assert [("cuda", torch.float16, "cuda", 1176)] == seen
        model.head.to("cpu")
        with pytest.raises(RuntimeError, match="device"):
            outputs(model, CALLS[0])
