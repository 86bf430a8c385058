"""Qwen2.5-VL and Qwen3-VL: transformers' own tokens and likelihoods, on small random checkpoints."""

import json
from functools import cache
from random import Random

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForImageTextToText, AutoProcessor, Qwen2VLImageProcessor

from models.core.calls import AnswerCall, ChoiceCall, FirstTokenCall, LabelCall, LikelihoodCall
from models.core.contract import CheckpointError, ModelError
from models.core.family import Plan
from models.core.memory import Offloaded, device_bytes
from models.core.outcomes import Choices, Likelihood
from models.families.names import table_of
from models.families.qwen_vl import FAMILY
from models.families.qwen_vl.model import QwenVl, visible_tokens
from models.families.qwen_vl.rows import tree
from models.families.vl_inputs import Patches
from models.images.image import Image
from tests.models.vl_reward.kinds import QWEN2_5_VL_7B, QWEN3_VL_8B
from tests.support.blip_models import numbers, outcomes, table
from tests.support.dry_run import dry_run
from tests.support.pictures import png
from tests.support.runs import runs_of
from tests.support.spoiled_checkpoints import cut_weights, no_config, no_weights, pickled_weights
from tests.support.vl_checkpoints import PICTURES, VQA_KINDS, configure, qwen_vl

ON_THE_CPU = {"dtype": "float32", "device": "cpu"}
FIRST, SECOND, *_ = PICTURES.values()
TEXTS = ("a cat", "a red dog left of a blue square on a mat", "a red dog", "\n a cat <|im_end|><|image_pad|>")
YES_NO = [
    LikelihoodCall(picture, f'Does this figure show "{text}"? Please answer yes or no.')
    for picture in (FIRST, SECOND)
    for text in TEXTS
]
LABELS = ("excellent", "bad", "very bad")
JUDGED = [
    LabelCall(SECOND, "How good is it?", LABELS, before)
    for before in ((), ("A drawing:", FIRST), (FIRST, "and", " then\n", SECOND, "\n\nlast:"))
]
CALLS = [*YES_NO, LikelihoodCall(FIRST, "A dog?", "very bad"), *JUDGED]


@pytest.fixture(scope="module")
def directories(tmp_path_factory):
    """The checkpoint of a class, to be read only."""
    return cache(lambda kind: qwen_vl(tmp_path_factory.mktemp(kind) / kind, kind))


@pytest.fixture(scope="module")
def models(directories):
    """The loaded model of a class, which no test changes."""
    return cache(lambda kind: QwenVl(directories(kind), **ON_THE_CPU))


@pytest.fixture(params=VQA_KINDS)
def kind(request):
    return request.param


@pytest.fixture
def directory(kind, directories):
    return directories(kind)


@pytest.fixture
def model(kind, models):
    return models(kind)


class Reference:
    """Transformers' own processor and forward pass, one call at a time."""

    def __init__(self, directory):
        self.processor = AutoProcessor.from_pretrained(directory)
        self.network = AutoModelForImageTextToText.from_pretrained(directory, dtype=torch.float32).eval()

    def inputs(self, call):
        """The inputs of a chat whose special tokens are plain words: transformers reads them as such."""
        shown = (*getattr(call, "before", ()), call.image, call.question)
        content = [
            {"type": "image", "image": each.rgb}
            if isinstance(each, Image)
            else {"type": "text", "text": each}
            for each in shown
        ]
        return self.processor.apply_chat_template(
            [{"role": "user", "content": content}],
            tokenize=True,
            add_generation_prompt=True,
            return_dict=True,
            return_tensors="pt",
        )

    @torch.inference_mode()
    def log_probs(self, call, label):
        """Those of a label's tokens, each given the ones before."""
        inputs = self.inputs(call)
        added = self.processor.tokenizer(label, return_tensors="pt", add_special_tokens=False).input_ids
        inputs["input_ids"] = torch.cat([inputs["input_ids"], added], 1)
        inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
        kinds = inputs["mm_token_type_ids"]
        inputs["mm_token_type_ids"] = torch.cat([kinds, torch.zeros_like(added)], 1)
        logits = self.network(**inputs).logits[0, -1 - added.shape[1] : -1].log_softmax(-1)
        return logits.gather(1, added[0][:, None])[:, 0].tolist()

    def numbers(self, call):
        """In the order of a result."""
        labels = call.labels if isinstance(call, LabelCall) else (call.answer,)
        found = [number for label in labels for number in self.log_probs(call, label)]
        if isinstance(call, LabelCall):
            return found
        return found + [number for word in ("Yes", "No") for number in self.log_probs(call, word)]


@pytest.fixture(scope="module")
def references(directories):
    return cache(lambda kind: Reference(directories(kind)))


@pytest.fixture
def reference(kind, references):
    return references(kind)


def is_plain(call):
    return "<|" not in call.question


def test_tokens_and_pixels_are_those_of_the_processor(model, reference):
    """With the chat template, text before and between images, and one token for so many patches."""
    for call in filter(is_plain, CALLS):
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


def test_every_number_is_that_of_transformers(model, reference):
    """P("Yes") as the first token, and labels of one token or several, all in one batch, to 1e-5."""
    found = outcomes(model, *CALLS)

    for call, one in zip(CALLS, found, strict=True):
        if is_plain(call):
            assert reference.numbers(call) == pytest.approx(every_number(one), rel=1e-5, abs=1e-5)
    assert len({round(one.log_p_yes, 3) for one in found[: len(YES_NO)]}) == len(YES_NO)


def every_number(found):
    return (
        numbers(found) if isinstance(found, Likelihood) else [n for tokens in found.log_probs for n in tokens]
    )


def test_company_changes_nothing(model):
    """Alone, beside other pictures, or behind a prefix that other questions share: the same to 1e-5."""
    for call, found in zip(CALLS, outcomes(model, *CALLS), strict=True):
        [alone] = outcomes(model, call)
        assert every_number(found) == pytest.approx(every_number(alone), rel=1e-5, abs=1e-5)


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

    assert every_number(letters) == pytest.approx(every_number(choices), abs=1e-5)
    assert [alone.log_p_yes, alone.log_p_no, *alone.log_probs] == pytest.approx(
        every_number(labels), abs=1e-5
    )
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
    family, settings = table("qwen_vl", "vqa", directory, max_pixels=most, question="Is it {}?")
    limited = family.load("left", settings)
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


def test_an_output_that_is_not_finite_is_an_error(directory):
    """Never a number, and never 0."""
    model = QwenVl(directory, **ON_THE_CPU)
    with torch.no_grad():
        model.network.module.lm_head.weight.fill_(torch.nan)

    assert [ModelError] * 2 == [*map(type, outcomes(model, model.example(), YES_NO[0]))]


def test_in_bfloat16_the_numbers_are_near(directory, model):
    """The log-probabilities of words as likely as one in some hundreds."""
    rough = QwenVl(directory, dtype="bfloat16", device="cpu")

    assert {torch.bfloat16} == {weight.dtype for weight in rough.network.module.parameters()}
    for exact, found in zip(outcomes(model, *CALLS), outcomes(rough, *CALLS), strict=True):
        assert every_number(found) == pytest.approx(every_number(exact), abs=1)
        assert every_number(found) != every_number(exact)


def test_a_table_loads_the_checkpoint_with_its_label(directory):
    """It is recognised by its configuration; the model answers its own example."""
    assert table_of(str(directory)) == {"role": "vqa", "family": "qwen_vl", "checkpoint": str(directory)}
    family, settings = table("qwen_vl", "vqa", directory, id="ours", revision="7")
    model = family.load("left", settings)

    assert ("ours@7", "vqa", "{}") == (model.info.label, model.info.role, model.info.choice_question)
    assert [Likelihood] == [*map(type, outcomes(model, model.example()))]


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
    _, settings = table("qwen_vl", "vqa", directory, devices=["cpu", "cpu:1"])
    copies = FAMILY.load("left", settings)
    batch = [copies.prepare(call) for call in CALLS]
    expected = [*map(every_number, model.score(batch))]

    for copy in copies.on.values():
        assert expected == [*map(every_number, copy.score(batch))]
        away = Offloaded(copy)
        assert 0 == device_bytes(copy, "cpu")
        away.restore()
        assert expected == [*map(every_number, copy.score(batch))]


def test_a_plan_counts_the_numbers(directory, model):
    """Those of its tensors, none of which is loaded."""
    family, settings = table("qwen_vl", "vqa", directory)
    count = sum(weight.numel() for weight in model.network.module.parameters())

    assert Plan(directory.name, str(directory), count) == family.plan("ours", settings)


SIZES = {
    "qwen2_5_vl": ({**QWEN2_5_VL_7B, "vocab_size": 152_064}, 1176, 3584),
    "qwen3_vl": (
        {**QWEN3_VL_8B, "text_config": {**QWEN3_VL_8B["text_config"], "vocab_size": 151_936}},
        1536,
        4096,
    ),
}


def test_a_tensor_that_is_left_on_the_cpu_raises(kind, tmp_path, monkeypatch):
    """
    As on a GPU, at the sizes of the published models with two layers; without that the batch is answered.

    The vision tower of transformers and its sums with deeper features read grids and masks as numbers, which
    a dry run does not have, so that stand-ins get their inputs.
    """
    sizes, columns, width = SIZES[kind]
    configure(qwen_vl(tmp_path / kind, kind), **sizes)
    seen = []

    def features(pixels, grids):
        seen.append((pixels.device.type, pixels.dtype, grids.device.type, pixels.shape[1]))
        shapes = [(len(pixels) // len(grids) // 4, width)] * len(grids)
        made = tuple(torch.empty(shape, dtype=pixels.dtype, device=pixels.device) for shape in shapes)
        deeper = {"deepstack_features": [made]} if kind == "qwen3_vl" else {}
        return type("Features", (), {"pooler_output": made, **deeper})

    def deeper(states, mask, embeddings):
        assert {"cuda"} == {states.device.type, mask.device.type, embeddings.device.type}
        return states

    with dry_run():
        model = QwenVl(tmp_path / kind, dtype="bfloat16", device="cuda", revision="-", features_mb=64)
        monkeypatch.setattr(model.network.module.model, "get_image_features", features)
        monkeypatch.setattr(
            model._pixels, "of", lambda image: Patches(torch.zeros(784, columns), (1, 28, 28))
        )
        if kind == "qwen3_vl":
            language = model.network.module.model.language_model
            monkeypatch.setattr(language, "_deepstack_process", deeper)
        assert [*map(type, outcomes(model, *CALLS))] == [Likelihood] * 9 + [Choices] * 3
        assert [("cuda", torch.bfloat16, "cuda", columns)] == seen
        model.network.module.lm_head.to("cpu")
        with pytest.raises(RuntimeError, match="device"):
            outcomes(model, *CALLS)


@pytest.mark.parametrize("spoil", [no_config, no_weights, cut_weights, pickled_weights])
def test_a_spoiled_checkpoint_is_one_line(tmp_path, spoil):
    """Which names the file."""
    directory = qwen_vl(tmp_path / "qwen")
    spoil(directory)
    with pytest.raises(CheckpointError, match="qwen"):
        QwenVl(directory, **ON_THE_CPU)


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
