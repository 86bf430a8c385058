"""What holds for each reward model on a Qwen besides what holds for all models: its tokens, and its base."""

import pytest

from models.core.contract import ModelError
from models.core.family import found
from models.families.registry import families
from models.families.vl_reward import VlReward
from models.images.image import Image
from tests.models.contract.qwens import REWARDS, copied
from tests.support.pictures import png
from tests.support.vl_checkpoints import outputs


@pytest.fixture(params=REWARDS)
def name(request):
    return request.param


@pytest.fixture
def kind(name):
    return REWARDS[name]


@pytest.fixture
def model(name, models):
    return models(name)


def test_the_families_share_their_constructor_and_their_loader(kind):
    """A family adds what its released code has of its own; its declaration names what the class inherits."""
    family = families()[kind.family]

    assert VlReward.__init__ is kind.model.__init__
    assert VlReward.from_settings.__func__ is found(family.loader).__func__
    assert (family, kind.model) == (kind.model.family, found(family.loader).__self__)
    assert found(family.weights) == kind.model.weights_files


def test_a_family_declares_what_a_model_does_and_what_is_downloaded(kind):
    """Its calls and its files; the class that the families share has none of its own."""
    assert {"prepare", "score", "example"} == VlReward.__abstractmethods__ > kind.model.__abstractmethods__
    assert kind.model.weights


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


@pytest.mark.parametrize("name", ["hpsv3", "videoalign"])  # the others take many more
def test_a_prompt_that_is_too_long_is_refused(kind, model):
    """With the reason, and without a number."""
    with pytest.raises(ModelError, match=r"too long: .* tokens, and the model takes 32768"):
        model.prepare(kind.call("dog " * 20_000))


def test_a_picture_that_is_too_thin_is_refused(kind, model):
    """With the reason, and without a number."""
    with pytest.raises(ModelError, match="more than 200 times the other"):
        model.prepare(kind.call("a cat", Image(png("red", size=(300, 1)))))


def test_a_table_may_name_the_directory_of_its_base(kind, directories, model, tmp_path):
    """With the base model's files alone."""
    alone = copied(directories(kind.family), kind.own, tmp_path / "alone")
    loaded = kind.load(alone, base=str(kind.base(tmp_path / "base")))

    assert outputs(model, kind.calls[0]) == outputs(loaded, kind.calls[0])
