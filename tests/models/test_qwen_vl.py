"""Qwen2.5-VL and Qwen3-VL: transformers' own tokens and likelihoods, on small random checkpoints."""

import json
from random import Random

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import Qwen2VLImageProcessor

from models.core.calls import AnswerCall, ChoiceCall, FirstTokenCall, LabelCall, LikelihoodCall
from models.core.contract import CheckpointError, ModelError
from models.core.memory import Offloaded, device_bytes
from models.families.names import table_of
from models.families.qwen_vl import FAMILY
from models.families.qwen_vl.model import QwenVl, visible_tokens
from models.families.qwen_vl.rows import tree
from models.images.image import Image
from tests.models.contract.kind import ON_THE_CPU, numbers, outcomes
from tests.models.contract.qwens import FIRST, SECOND, VQAS, YES_NO
from tests.models.contract.references import QwenReference
from tests.support.pictures import png
from tests.support.runs import runs_of
from tests.support.vl_checkpoints import configure, qwen_vl

CALLS = VQAS["qwen3_vl"].calls


@pytest.fixture(params=VQAS)
def kind(request):
    return request.param


@pytest.fixture
def directory(kind, directories):
    return directories(kind)


@pytest.fixture
def model(kind, models):
    return models(kind)


def test_tokens_and_pixels_are_those_of_the_processor(model, directory):
    """With the chat template, text before and between images, and one token for so many patches."""
    reference = QwenReference(directory)
    for call in CALLS:
        if "<|" in call.question:
            continue
        chat, expected = model.prepare(call).data, reference.inputs(call)
        pixels = torch.cat([patches.pixels for _, patches in chat.images])

        assert [*chat.trunk, *chat.rest] == expected["input_ids"][0].tolist()
        assert [[*patches.grid] for _, patches in chat.images] == expected["image_grid_thw"].tolist()
        assert torch.equal(pixels, expected["pixel_values"])


def test_special_tokens_in_a_text_are_text(model):
    """A chat ends once, and shows its pictures only, whatever the prompt has."""
    plain, written = (model.prepare(call).data for call in YES_NO[2:4])

    assert plain.trunk == written.trunk
    for token in ("<|im_end|>", "<|image_pad|>"):
        id = model._chats._words.special.token_to_id(token)
        assert plain.rest.count(id) == written.rest.count(id)


def test_questions_about_a_picture_share_what_they_begin_with(model, monkeypatch):
    """The tower sees each picture once, and the language model reads the picture and common words once."""
    read, states = [], model.network.states
    monkeypatch.setattr(
        model.network, "states", lambda group, features: read.extend(group) or states(group, features)
    )
    with runs_of(model.network.module.model.visual) as looks:
        outcomes(model, *YES_NO)
    chats = [model.prepare(call).data for call in YES_NO]

    assert [2] == pictures_of(looks)
    assert {(FIRST.digest,), (SECOND.digest,)} == {row.images for row in read}
    for row in read:
        of_one = [chat for chat in chats if chat.images[0][0] == row.images[0]]
        beginnings = {chat.rest[:length] for chat in of_one for length in range(1, 1 + len(chat.rest))}
        assert row.branches
        assert len(of_one[0].trunk) + len(beginnings) == len(row.ids)


@pytest.mark.parametrize("seed", range(20))
def test_a_token_sees_the_tokens_of_its_own_way_only(seed):
    """Whatever paths have in common, and in whatever order they come."""
    random = Random(seed)
    paths = [tuple(random.choices(range(3), k=random.randint(1, 9))) for _ in range(random.randint(1, 12))]
    grown = tree(paths)
    sees = visible_tokens(torch.tensor([grown.ends]))[0, 0]

    for path in paths:
        places = grown.places[path]
        for length, place in enumerate(places):
            assert [*path[: 1 + length]] == [grown.ids[each] for each in sees[place].nonzero()[:, 0]]
            assert length == grown.depths[place]
    assert len({path[:length] for path in paths for length in range(1, 1 + len(path))}) == len(grown.ids)


def pictures_of(looks):
    """The number of pictures of each run of the tower."""
    return [len(run["grid_thw"]) for run in looks]


def test_a_picture_seen_before_is_not_seen_again(directory):
    """While its features are in memory; none are without that."""
    for megabytes, expected in ((1, [1]), (0, [1, 1])):
        model = QwenVl(directory, **ON_THE_CPU, features_mb=megabytes)
        with runs_of(model.network.module.model.visual) as looks:
            one, other = (numbers(outcomes(model, call)[0]) for call in (YES_NO[0], YES_NO[0]))

        assert one == other
        assert expected == pictures_of(looks)


def test_choices_are_letters_and_labels_of_one_distribution(model):
    """As behind vLLM: the letters stand below the question, and "Yes" as a label is "Yes" as an answer."""
    question = YES_NO[0].question
    listed = "What?\nA. a cat\nB. a dog\nAnswer with the option's letter from the given choices directly."
    choices, letters, labels, first, alone = outcomes(
        model,
        ChoiceCall(FIRST, "What?", ("a cat", "a  dog")),
        LabelCall(FIRST, listed, ("A", "B")),
        LabelCall(FIRST, question, ("Yes", "No", "very bad")),
        FirstTokenCall(FIRST, question, ("Yes", " very bad")),
        LikelihoodCall(FIRST, question, "very bad"),
    )

    assert numbers(letters) == pytest.approx(numbers(choices), abs=1e-5)
    assert [alone.log_p_yes, alone.log_p_no, *alone.log_probs] == pytest.approx(numbers(labels), abs=1e-5)
    assert [alone.log_p_yes, alone.log_probs[0]] == pytest.approx(first.log_probs, abs=1e-5)


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (AnswerCall(FIRST, "A dog?"), "writes no answers"),
        (LikelihoodCall(FIRST, "A dog?", " "), "the answer is empty"),
        (LikelihoodCall(FIRST, "dog " * 90_000), r"too long: .* tokens, and the model takes (128|262)"),
        (LikelihoodCall(Image(png("red", size=(300, 1))), "A dog?"), "more than 200 times the other"),
        (LabelCall(FIRST, "A dog?", ("bad", "bad")), "the same token"),
        (LabelCall(FIRST, "A dog?", ("very", "very bad")), "one label are the beginning of another's"),
        (ChoiceCall(FIRST, "A dog?", ("a",) * 27), "27 choices; there are 26 letters"),
    ],
)
def test_a_call_that_it_cannot_answer_is_refused(model, call, why):
    """With the reason, and without a number."""
    with pytest.raises(ModelError, match=why):
        model.prepare(call)


def test_a_larger_picture_is_scaled_down_to_the_limit_of_the_table(directory, model):
    """As by the processor with this limit; by default the limit is the checkpoint's own."""
    large = LikelihoodCall(Image.of(FIRST.rgb.resize((600, 500))), "A dog?")
    most = 300 * 300
    limited = VQAS["qwen3_vl"].load(directory, max_pixels=most, question="Is it {}?")
    processor = Qwen2VLImageProcessor.from_pretrained(directory)
    size = {"shortest_edge": processor.size["shortest_edge"], "longest_edge": most}
    expected = processor(images=large.image.rgb, size=size, return_tensors="pt")
    (of_limited, of_own) = (each.prepare(large).data.images[0][1].pixels for each in (limited, model))

    assert limited.info.question == "Is it {}?"
    assert len(of_limited) < len(of_own)
    assert torch.equal(of_limited, expected["pixel_values"])


def test_a_limit_below_the_fewest_pixels_of_the_checkpoint_is_refused(directories):
    """Or small pictures would be larger than it allows."""
    with pytest.raises(CheckpointError, match="max_pixels is 40000, and its pictures have 65536 or more"):
        QwenVl(directories("qwen3_vl"), **ON_THE_CPU, max_pixels=40_000)


def test_a_checkpoint_is_recognised_by_its_configuration(directory, model):
    """A question with choices is sent alone."""
    assert table_of(str(directory)) == {"role": "vqa", "family": "qwen_vl", "checkpoint": str(directory)}
    assert "{}" == model.info.choice_question


def test_small_models_have_the_embeddings_for_a_head(kind, tmp_path):
    """As published: their files have no other one, and numbers are those of a head with these weights."""
    tied, whole = (qwen_vl(tmp_path / name, kind) for name in ("tied", "whole"))
    tensors = load_file(tied / "model.safetensors")
    embeddings = next(each for name, each in tensors.items() if name.endswith("embed_tokens.weight"))
    save_file(
        {**tensors, "lm_head.weight": embeddings.clone()}, whole / "model.safetensors", {"format": "pt"}
    )
    del tensors["lm_head.weight"]
    save_file(tensors, tied / "model.safetensors", {"format": "pt"})
    with pytest.raises(CheckpointError, match="weights are missing or of another shape: lm_head"):
        QwenVl(tied, **ON_THE_CPU)
    configure(tied, tie_word_embeddings=True)
    found, expected = (outcomes(QwenVl(each, **ON_THE_CPU), *YES_NO) for each in (tied, whole))

    assert [*map(numbers, expected)] == [*map(numbers, found)]


def test_each_copy_answers_calls_that_another_one_prepared(directory, model):
    """On several devices; and after its weights and features were in the host's memory."""
    table = VQAS["qwen3_vl"].table(directory, devices=["cpu", "cpu:1"])
    copies = FAMILY.load("left", table)
    batch = [copies.prepare(call) for call in CALLS]
    expected = [*map(numbers, model.score(batch))]

    for copy in copies.on.values():
        assert expected == [*map(numbers, copy.score(batch))]
        away = Offloaded(copy)
        assert 0 == device_bytes(copy, "cpu")
        away.restore()
        assert expected == [*map(numbers, copy.score(batch))]


def thinking(directory):
    """A chat template that begins an answer with a thought, as that of the Thinking models."""
    for name in ("chat_template.json", "chat_template.jinja", "tokenizer_config.json"):
        path = directory / name
        if path.is_file():
            path.write_text(path.read_text().replace("|>assistant\\n", "|>assistant\\n<think>\\n"))


def without_yes(directory):
    """The tokenizer before words were added: "Yes" is two tokens."""
    path = directory / "tokenizer.json"
    written = json.loads(path.read_text())
    written["added_tokens"] = [each for each in written["added_tokens"] if each["content"] != "Yes"]
    path.write_text(json.dumps(written))


def with_a_head(directory):
    """A reward model's head beside the weights."""
    path = directory / "model.safetensors"
    save_file({**load_file(path), "rm_head.weight": torch.zeros(2, 3)}, path, {"format": "pt"})


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (thinking, "begins an answer with a thought"),
        (without_yes, "no tokens Yes and No"),
        (with_a_head, "not a checkpoint of Qwen3VLForConditionalGeneration, but with rm_head.weight"),
        (lambda path: configure(path, quantization_config={}), "its weights are quantised"),
        (
            lambda path: configure(path, text_config={"use_sliding_window": True}),
            "use_sliding_window is true",
        ),
        (
            lambda path: configure(path, model_type="qwen2_vl"),
            "model_type is 'qwen2_vl', not 'qwen2_5_vl' or",
        ),
    ],
)
def test_a_checkpoint_of_another_kind_is_refused(tmp_path, spoil, why):
    """At the start, with the reason: its numbers would be wrong."""
    directory = qwen_vl(tmp_path / "qwen")
    spoil(directory)
    with pytest.raises(CheckpointError, match=why):
        QwenVl(directory, **ON_THE_CPU)
