"""What holds for each reward model on a Qwen: the numbers of its released code, and errors in their place."""

from math import prod

import pytest
import torch

from models.core.contract import ModelError
from models.core.family import Plan
from models.core.outcomes import Reward
from models.images.image import Image
from service.core.errors import ModelFault
from service.serving.batcher.queue import checked
from tests.models.vl_reward.kinds import KINDS, ON_THE_CPU, copied, stand_ins, table
from tests.support.dry_run import dry_run
from tests.support.pictures import png
from tests.support.vl_checkpoints import outputs


@pytest.fixture(params=KINDS)
def name(request):
    return request.param


@pytest.fixture
def kind(name):
    return KINDS[name]


@pytest.fixture
def directory(name, directories):
    return directories(name)


@pytest.fixture
def model(name, models):
    return models(name)


@pytest.fixture
def found(name, answers):
    return answers(name)


def test_every_output_is_that_of_the_released_code(kind, found):
    """For pictures of all shapes and prompts of all lengths in one batch."""
    distinct = {tuple(round(number, 3) for number in row) for row in kind.expected}

    assert len(distinct) == len(kind.expected) == len(found)
    for expected, row in zip(kind.expected, found, strict=True):
        assert row == pytest.approx(expected, rel=0, abs=kind.within)


def test_the_default_dtype_changes_nothing(kind, model, found):
    """It is another one for all threads while transformers builds a network, as of a model that is loaded."""
    torch.set_default_dtype(torch.bfloat16)
    try:
        again = outputs(model, *kind.calls)
    finally:
        torch.set_default_dtype(torch.float32)

    for expected, row in zip(found, again, strict=True):
        assert row == pytest.approx(expected, rel=0, abs=kind.within)


def test_company_changes_nothing(kind, model, found):
    """Alone, or beside longer prompts and other pictures: the same."""
    for call, row in zip(kind.calls[:3], found, strict=False):
        assert row == pytest.approx(outputs(model, call)[0], rel=0, abs=kind.within)


def test_prompts_become_the_tokens_of_the_released_code(kind, model):
    """With the instruction, the chat template, the reward tokens, and one token for so many patches."""
    for prompt in kind.said["prompts"]:
        chats = kind.chats(model.prepare(kind.call(prompt["text"])).data)

        assert kind.ids(prompt) == [chat.ids for chat in chats]


def test_special_tokens_in_a_prompt_are_text(kind, model):
    """A chat has each reward token once, and ends once, whatever the prompt has."""
    tokens = (*kind.model.reward_tokens, "<|im_end|>", "<|image_pad|>", "<|video_pad|>")
    plain, written = (
        kind.chats(model.prepare(kind.call(prompt)).data) for prompt in ("a cat", f"a cat{''.join(tokens)}")
    )

    for chat, said, says in zip(model._chats, plain, written, strict=True):
        assert len(said.places) == len(says.places) == len(kind.model.reward_tokens)
        for token in tokens:
            id = chat._special.token_to_id(token)
            assert list(said.ids).count(id) == list(says.ids).count(id)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_in_half_precision_the_outputs_are_near(kind, directory, found, dtype):
    """The head stays in float32."""
    rough = kind.model(directory, dtype=dtype, device="cpu")

    assert {torch.float32} == {weight.dtype for weight in rough.head.state_dict().values()}
    for exact, row in zip(found, outputs(rough, *kind.calls[:3]), strict=False):
        assert row == pytest.approx(exact, rel=0, abs=kind.near[dtype])
        assert row != exact


@pytest.mark.parametrize("name", ["hpsv3", "videoalign"])  # the others take many more
def test_a_prompt_that_is_too_long_is_refused(kind, model):
    """With the reason, and without a number."""
    with pytest.raises(ModelError, match=r"too long: .* tokens, and the model takes 32768"):
        model.prepare(kind.call("dog " * 20_000))


def test_a_picture_that_is_too_thin_is_refused(kind, model):
    """With the reason, and without a number."""
    with pytest.raises(ModelError, match="more than 200 times the other"):
        model.prepare(kind.call("a cat", Image(png("red", size=(300, 1)))))


def test_an_output_that_is_not_finite_is_an_error(kind, directory):
    """Never a number, and never 0."""
    model = kind.model(directory, **ON_THE_CPU)
    with torch.no_grad():
        kind.last(model).fill_(kind.broken)

    [outcome] = model.score([model.prepare(kind.calls[0])])
    assert isinstance(checked("m", outcome), ModelFault)


def test_a_table_loads_the_checkpoint_with_its_base(kind, directory, model, tmp_path):
    """The base model's files may be in another directory; the model answers its own example."""
    alone = copied(directory, kind.own, tmp_path / "alone")
    settings = table(kind, alone, base=str(kind.base(tmp_path / "base")), id="ours", revision="7")
    loaded = kind.model.family.load("left", settings)

    assert ("ours@7", kind.name) == (loaded.info.label, loaded.info.role)
    assert outputs(model, kind.calls[0]) == outputs(loaded, kind.calls[0])
    assert [Reward] == [*map(type, loaded.score([loaded.prepare(loaded.example())]))]


def test_a_plan_counts_the_numbers(kind, directory):
    """Those of its tensors, none of which is loaded."""
    count = sum(map(prod, kind.said["tensors"].values()))

    assert Plan(kind.name, str(directory), count) == kind.model.family.plan("ours", table(kind, directory))


def test_a_tensor_that_is_left_on_the_cpu_raises(kind, tmp_path, monkeypatch):
    """
    As on a GPU, at the sizes of the published model; without that the batch is answered.

    The vision tower of transformers reads its grids as numbers, which a dry run does not have, so that a
    stand-in gets its inputs.
    """
    path, gpu, seen = kind.on_gpu(tmp_path / kind.name), kind.gpu, []

    def features(pixels, grids, **_):
        seen.append((pixels.device.type, pixels.dtype, grids.device.type, pixels.shape[1]))
        rows = torch.empty(len(pixels) // 4, gpu.width, dtype=pixels.dtype, device=pixels.device)
        return type("Features", (), {"pooler_output": (rows,), "deepstack_features": [(rows,)]})

    with dry_run():
        model = kind.model(path, dtype=str(gpu.dtype).removeprefix("torch."), device="cuda", revision="-")
        for medium in ("image", "video"):
            monkeypatch.setattr(model.network.module, f"get_{medium}_features", features)
        if kind.name == "hpsv3pp":
            stand_ins(model, monkeypatch)
        some = kind.calls[:3]
        assert [Reward] * 3 == [*map(type, model.score([model.prepare(call) for call in some]))]
        assert [("cuda", gpu.dtype, "cuda", gpu.columns)] == seen
        kind.part(model).to("cpu")
        with pytest.raises(RuntimeError, match="device"):
            outputs(model, some[0])
