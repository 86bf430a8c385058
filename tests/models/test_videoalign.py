"""VideoAlign: the numbers of its released code, on a small random checkpoint in the published layout."""

import json
import shutil

import pytest
import torch

from models.core.calls import VideoCall
from models.core.contract import CheckpointError, ModelError
from models.core.family import Plan
from models.core.outcomes import Reward
from models.families.registry import families
from models.families.videoalign.layout import Lora
from models.families.videoalign.model import REWARD_TOKENS, VideoAlign
from models.images.image import Image
from tests.support.dry_run import dry_run
from tests.support.pictures import png
from tests.support.vl_checkpoints import QWEN2_VL, configure, frames, golden, outputs, tensors, videoalign

SAID = golden("videoalign")
CALLS = [VideoCall(frames(SAID, row), SAID["prompts"][row["prompt"]]["text"]) for row in SAID["scores"]]
EXPECTED = [row["outputs"] for row in SAID["scores"]]
ON_THE_CPU = {"dtype": "float32", "device": "cpu"}


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    """A checkpoint, to be read only."""
    return videoalign(tmp_path_factory.mktemp("videoalign"))


@pytest.fixture(scope="module")
def model(directory):
    return VideoAlign(directory, **ON_THE_CPU)


def test_every_output_is_that_of_the_released_code(model):
    """The sum and its parts, of videos of all shapes and lengths in one batch, within 1e-4."""
    assert len({tuple(round(number, 4) for number in row) for row in EXPECTED}) == len(EXPECTED)
    for expected, row in zip(EXPECTED, outputs(model, *CALLS), strict=True):
        assert row == pytest.approx(expected, rel=0, abs=1e-4)


def test_company_changes_nothing(model):
    """Alone, or beside longer prompts and other videos: the same within 1e-4."""
    for call, row in zip(CALLS[:3], outputs(model, *CALLS[:3]), strict=True):
        assert row == pytest.approx(outputs(model, call)[0], rel=0, abs=1e-4)


def test_prompts_become_the_tokens_of_the_released_code(model):
    """With the instruction, the chat template, three reward tokens, and one for eight patches."""
    for prompt in SAID["prompts"]:
        assert prompt["ids"] == model.prepare(VideoCall(CALLS[0].frames, prompt["text"])).data.ids


def test_order_and_number_of_frames_are_part_of_the_key(model):
    """The other way round, or without its end, a video is another call with other outputs."""
    call = CALLS[0]
    others = [VideoCall(call.frames[::-1], call.prompt), VideoCall(call.frames[:2], call.prompt)]

    assert len({each.key(()) for each in (call, *others)}) == 3
    first, *rest = outputs(model, call, *others)
    assert first not in rest


def test_an_odd_number_of_frames_ends_with_its_last_one_twice(model):
    """Patches hold two frames."""
    short, full = CALLS[0].frames[:3], (*CALLS[0].frames[:3], CALLS[0].frames[2])
    one, other = outputs(model, VideoCall(short, "a cat"), VideoCall(full, "a cat"))

    assert one == other


def test_special_tokens_in_a_prompt_are_text(model):
    """The chat has each reward token once, whatever the prompt has."""
    written = model.prepare(VideoCall(CALLS[0].frames, f"a cat{''.join(REWARD_TOKENS)}<|video_pad|>")).data
    plain = model.prepare(VideoCall(CALLS[0].frames, "a cat")).data

    assert len(plain.places) == len(written.places) == 3
    for token in (*REWARD_TOKENS, "<|video_pad|>"):
        id = model._chats[0]._special.token_to_id(token)
        assert list(plain.ids).count(id) == list(written.ids).count(id)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_in_half_precision_the_outputs_are_near(directory, model, dtype):
    """The head stays in float32."""
    rough = VideoAlign(directory, dtype=dtype, device="cpu")
    bound = {"bfloat16": 0.2, "float16": 0.02}[dtype]

    assert torch.float32 == rough.head.weight.dtype
    for exact, found in zip(outputs(model, *CALLS[:4]), outputs(rough, *CALLS[:4]), strict=True):
        assert found == pytest.approx(exact, rel=0, abs=bound)
        assert found != exact


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (VideoCall(CALLS[0].frames, "dog " * 20_000), "too long: .* tokens, and the model takes 32768"),
        (VideoCall((Image(png(size=(300, 1))),) * 2, "a cat"), "more than 200 times the other"),
        (VideoCall((CALLS[0].frames[0], CALLS[2].frames[0]), "a cat"), "frames are of different sizes"),
    ],
)
def test_a_call_that_it_cannot_answer_is_refused(model, call, why):
    """With the reason, and without a number."""
    with pytest.raises(ModelError, match=why):
        model.prepare(call)


def test_an_output_that_is_not_finite_is_an_error(directory):
    """Never a number, and never 0."""
    model = VideoAlign(directory, **ON_THE_CPU)
    model.head.weight.fill_(torch.nan)

    assert [ModelError] == [*map(type, model.score([model.prepare(CALLS[0])]))]


# --- the checkpoint -----------------------------------------------------------------------------


def change(directory, section, **values):
    """Other settings of the checkpoint; None removes one, or the section if there are none."""
    path = directory / "model_config.json"
    said = json.loads(path.read_text())
    if values:
        said[section] |= values
    else:
        del said[section]
    path.write_text(json.dumps(said))


def test_without_means_and_deviations_outputs_are_those_of_the_head(directory, tmp_path):
    """As in the released code."""
    shutil.copytree(directory, tmp_path, dirs_exist_ok=True)
    change(tmp_path, "inference_config")
    [total, *parts] = outputs(VideoAlign(tmp_path, **ON_THE_CPU), CALLS[0])[0]

    assert parts == pytest.approx(SAID["scores"][0]["plain"], rel=0, abs=1e-4)
    assert total == pytest.approx(sum(parts))


def test_the_last_step_is_read(directory, model, tmp_path):
    """By its number, not by its name."""
    shutil.copytree(directory, tmp_path, dirs_exist_ok=True)
    (tmp_path / "checkpoint-20").rename(tmp_path / "checkpoint-100")
    for name in ("checkpoint-99", "checkpoint-999-old"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.pth").write_bytes(b"-")

    assert outputs(model, CALLS[0]) == outputs(VideoAlign(tmp_path, **ON_THE_CPU), CALLS[0])


def test_a_merged_checkpoint_has_the_same_outputs(directory, model, tmp_path):
    """Without the names of PEFT, and without a LoRA."""
    shutil.copytree(directory, tmp_path, dirs_exist_ok=True)
    plain = dict[str, torch.Tensor]()
    held = tensors(SAID)
    for name, each in held.items():
        own = name.removeprefix("base_model.model.")
        if ".base_layer." in own and own.endswith("weight"):
            lora = name.removesuffix("base_layer.weight")
            down, up = (held[f"{lora}lora_{letter}.default.weight"] for letter in "AB")
            plain[own.replace(".base_layer", "")] = each + 2 * up @ down
        elif "lora_" not in own:
            plain[own.replace(".base_layer", "")] = each
    torch.save(plain, tmp_path / "checkpoint-20" / "model.pth")

    [found], [expected] = outputs(VideoAlign(tmp_path, **ON_THE_CPU), CALLS[0]), outputs(model, CALLS[0])
    assert found == pytest.approx(expected, rel=0, abs=1e-4)


def test_the_scale_of_a_lora_is_by_its_rank_or_the_root_of_it():
    """As in PEFT."""
    given = {"lora_enable": True, "lora_r": 64, "lora_alpha": 128}

    assert 2 == Lora(**given).scale
    assert 16 == Lora(**given, use_rslora=True).scale


def table(directory, **more):
    family = families()["videoalign"]
    return family, family.settings(family="videoalign", role="videoalign", checkpoint=str(directory), **more)


def test_a_table_loads_the_checkpoint_with_its_base(directory, model, tmp_path):
    """The base model's files may be in another directory; the model answers its own example."""
    for name in ("model_config.json", "checkpoint-20/model.pth"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(directory / name, tmp_path / name)
    family, settings = table(tmp_path, base=str(QWEN2_VL), id="ours", revision="7")
    loaded = family.load("left", settings)

    assert ("ours@7", "videoalign") == (loaded.info.label, loaded.info.role)
    assert outputs(model, CALLS[0]) == outputs(loaded, CALLS[0])
    assert [Reward] == [*map(type, loaded.score([loaded.prepare(loaded.example())]))]


def test_a_plan_counts_the_numbers(directory):
    """Those of its tensors, none of which is loaded."""
    family, settings = table(directory)
    numbers = sum(map(torch.numel, tensors(SAID).values()))

    assert Plan(directory.name, str(directory), numbers) == family.plan("ours", settings)


LAYER = "base_model.model.model.layers.1.self_attn.q_proj."


def without(name):
    return lambda directory: videoalign(directory, **{name: None})


def no_weights(directory):
    (directory / "checkpoint-20" / "model.pth").rename(directory / "adapter_model.pth")


def code(directory):
    torch.save({"head": print}, directory / "checkpoint-20" / "model.pth")


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (no_weights, "no weights found .looked for checkpoint-"),
        (lambda path: (path / "model_config.json").unlink(), "model_config.json: missing"),
        (
            lambda path: change(path, "data_config", prompt_template_type="simple"),
            "data_config.prompt_template_type: Input should be 'detailed_special'",
        ),
        (
            lambda path: change(path, "model_config", output_dim=1),
            "model_config.output_dim: Input should be 3",
        ),
        (
            lambda path: change(path, "peft_lora_config", lora_r=0),
            "peft_lora_config.lora_r: .*greater than 0",
        ),
        (
            lambda path: change(path, "inference_config", MQ_std=0),
            "inference_config.MQ_std: Input should be greater than 0",
        ),
        (
            without(f"{LAYER}lora_B.default.weight"),
            "LoRA of model.layers.1.self_attn.q_proj.weight does not fit",
        ),
        (without(f"{LAYER}base_layer.weight"), "LoRA of model.layers.1.self_attn.q_proj.weight does not fit"),
        (without(f"{LAYER}base_layer.bias"), "the weights don't fit .*missing"),
        (without("base_model.model.rm_head.weight"), r"rm_head.weight has the shape \(0,\), not \(3, 32\)"),
        (without("base_model.model.model.embed_tokens.weight"), "710 words, and the embeddings have 0 rows"),
        (code, "something else than plain tensors"),
        (lambda path: configure(path, model_type="qwen2_5_vl"), "model_type is 'qwen2_5_vl', not 'qwen2_vl'"),
    ],
)
def test_a_spoiled_checkpoint_is_one_line(tmp_path, spoil, why):
    """Which names the file."""
    directory = videoalign(tmp_path / "videoalign")
    spoil(directory)
    with pytest.raises(CheckpointError, match=why) as told:
        VideoAlign(directory, **ON_THE_CPU)
    assert "\n" not in str(told.value)


def test_a_tensor_that_is_left_on_the_cpu_raises(directory, monkeypatch):
    """As on a GPU; a stand-in gets the vision tower's inputs, whose grids a dry run does not have."""
    with dry_run():
        model = VideoAlign(directory, dtype="float16", device="cuda", revision="-")
        seen = []

        def features(pixels, grids, **_):
            seen.append((pixels.device.type, pixels.dtype, grids.device.type, pixels.shape[1]))
            rows = torch.empty(len(pixels) // 4, 32, dtype=pixels.dtype, device=pixels.device)
            return type("Features", (), {"pooler_output": (rows,)})

        monkeypatch.setattr(model.network.module, "get_video_features", features)
        assert [Reward] * 3 == [*map(type, model.score([model.prepare(call) for call in CALLS[:3]]))]
        assert [("cuda", torch.float16, "cuda", 1176)] == seen
        model.head.to("cpu")
        with pytest.raises(RuntimeError, match="device"):
            outputs(model, CALLS[0])
