"""BLIP for visual question answering: transformers' likelihoods, on small random checkpoints."""

import json

import pytest
import torch
from transformers import AutoTokenizer, BlipForQuestionAnswering, BlipImageProcessorPil

from models.core.calls import AnswerCall, LabelCall, LikelihoodCall
from models.core.contract import CheckpointError, ModelError
from models.core.family import Plan
from models.core.outcomes import Likelihood
from models.families.blip_vqa.model import MAX_TOKENS, BlipVqa
from tests.support.blip_checkpoints import DEC, blip, blip_vqa
from tests.support.blip_models import (
    ANSWERS,
    PICTURES,
    are_of_one_distribution,
    likelihoods,
    numbers,
    outcomes,
    table,
)
from tests.support.dry_run import dry_run
from tests.support.runs import runs_of
from tests.support.spoiled_checkpoints import cut_weights, no_config, no_weights, pickled_weights

QUESTIONS = ["a red dog?", "the blue circle left of the green square on a cat?", "dog?"]
CALLS = likelihoods(QUESTIONS)
PAIRS = [LikelihoodCall(picture, question, "yes") for picture in PICTURES for question in QUESTIONS]


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    """A checkpoint, to be read only."""
    return blip_vqa(tmp_path_factory.mktemp("blip"))


@pytest.fixture(scope="module")
def model(directory):
    return BlipVqa(directory, dtype="float32", device="cpu")


@pytest.fixture(scope="module")
def reference(directory):
    """Transformers' own forward pass of one call: log-probabilities of the answer, and of yes and no."""
    network = BlipForQuestionAnswering.from_pretrained(directory).eval()
    processor = BlipImageProcessorPil.from_pretrained(directory)
    words = AutoTokenizer.from_pretrained(directory)

    def log_prob(call, answer):
        text = words(call.question, return_tensors="pt")
        text["input_ids"][0, 0] = DEC + 1  # [ENC], as in BLIP's released code
        pixels = processor(images=call.image.rgb, return_tensors="pt").pixel_values
        labels = torch.tensor([[DEC, *answer]])
        with torch.inference_mode():  # the loss is the mean over the answer's tokens
            return -network(**text, pixel_values=pixels, labels=labels).loss.item() * len(answer)

    def of(call):
        answer = words(call.answer).input_ids[1:]
        sums = [log_prob(call, answer[: count + 1]) for count in range(len(answer))]
        each = [after - before for before, after in zip([0, *sums], sums, strict=False)]
        return each + [log_prob(call, words(word).input_ids[1:2]) for word in ("yes", "no")]

    return of


def test_every_number_is_that_of_transformers(model, reference):
    """Of answers of several lengths, all in one batch, within 1e-5 of each."""
    found = outcomes(model, *CALLS)

    for call, one in zip(CALLS, found, strict=True):
        assert reference(call) == pytest.approx(numbers(one), rel=1e-5, abs=1e-5)
    assert len({round(one.log_probs[0], 3) for one in found}) == len(CALLS)


def test_yes_is_compared_with_no_as_in_the_code_of_the_benchmark(model, reference):
    """The probability of yes among both words as the first token after [DEC]."""
    for call, found in zip(PAIRS, outcomes(model, *PAIRS), strict=True):
        yes, no = torch.tensor(reference(call)[-2:]).exp().tolist()

        assert yes / (yes + no) == pytest.approx(found.probability, abs=1e-5)


def test_company_changes_nothing(model):
    """Alone, or in a batch with longer questions and other pictures: the same within 1e-5."""
    for call, found in zip(CALLS, outcomes(model, *CALLS), strict=True):
        assert numbers(found) == pytest.approx(numbers(outcomes(model, call)[0]), rel=1e-5, abs=1e-5)


def test_a_question_begins_with_enc_and_ends_with_sep(model, directory):
    """A tokenizer of transformers puts [CLS] there; a vocabulary without [ENC] keeps it."""
    ids = model.prepare(CALLS[0]).data[0].ids
    words = AutoTokenizer.from_pretrained(directory)

    assert (DEC + 1, words.sep_token_id) == (ids[0], ids[-1])
    assert words("a red dog?").input_ids[1:] == [*ids[1:]]


def test_a_vocabulary_without_enc_keeps_cls(tmp_path):
    """[DEC] is a word of its tokenizer then."""
    model = BlipVqa(blip_vqa(tmp_path, bos_token_id=5), dtype="float32", device="cpu")

    assert 2 == model.prepare(CALLS[0]).data[0].ids[0]


def test_punctuation_of_a_question_is_dropped(model):
    """As in BLIP's released code, which also writes it in lower case."""
    plain, written = (
        model.prepare(LikelihoodCall(PICTURES[0], text)).data[0].ids
        for text in ("a red dog?", 'A "red" dog.!? *:;~()')
    )

    assert plain == written


def test_choices_labels_and_first_tokens_are_of_the_same_distribution(model):
    """Each answer of a choice is as likely as by itself; its first token as a label."""
    are_of_one_distribution(model, QUESTIONS[0])


def test_a_picture_and_a_question_are_encoded_once(model):
    """Whatever answers they have."""
    calls = [LikelihoodCall(PICTURES[0], each, answer) for each in QUESTIONS for answer in ANSWERS]
    with runs_of(model.network.vision_model) as looks, runs_of(model.network.text_encoder) as reads:
        outcomes(model, *calls)

    assert [1] == [len(each["pixel_values"]) for each in looks]
    assert [3] == [len(each["input_ids"]) for each in reads]


def test_a_long_question_is_cut_and_its_result_has_that(model):
    """At 35 tokens; [SEP] in a question is text."""
    batch = [model.prepare(LikelihoodCall(PICTURES[0], "dog " * count, "yes")) for count in (34, 33)]
    typed = model.prepare(LikelihoodCall(PICTURES[0], "a [SEP] dog")).data[0].ids

    assert [MAX_TOKENS, MAX_TOKENS] == [len(each.data[0].ids) for each in batch]
    assert batch[0].data[0].ids == batch[1].data[0].ids
    assert [True, False] == [found.truncated for found in model.score(batch)]
    assert 1 == typed.count(typed[-1])


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (LikelihoodCall(PICTURES[0], "dog?", "dog " * 40), "an answer has 41 tokens, and the model takes 40"),
        (AnswerCall(PICTURES[0], "dog?"), "writes no answers"),
        (LabelCall(PICTURES[0], "dog?", ("a dog", "no")), "label 1 of 2 has 2 tokens"),
    ],
)
def test_a_call_that_it_cannot_answer_is_refused(model, call, why):
    """With the reason, and without a number."""
    with pytest.raises(ModelError, match=why):
        model.prepare(call)


def test_an_output_that_is_not_finite_is_an_error(directory):
    """Never a number, and never 0."""
    model = BlipVqa(directory, dtype="float32", device="cpu")
    with torch.no_grad():
        model.network.text_decoder.cls.predictions.bias.fill_(torch.nan)

    assert [ModelError] == [*map(type, outcomes(model, model.example()))]


def test_in_bfloat16_only_the_vision_tower_is_rounded(directory, model):
    """The log-probabilities are near those of float32."""
    rough = BlipVqa(directory, dtype="bfloat16", device="cpu")

    assert {torch.bfloat16} == {weight.dtype for weight in rough.network.vision_model.parameters()}
    assert {torch.float32} == {weight.dtype for weight in rough.network.text_decoder.parameters()}
    for exact, found in zip(outcomes(model, *CALLS), outcomes(rough, *CALLS), strict=True):
        assert numbers(exact) == pytest.approx(numbers(found), abs=1)


def test_a_table_loads_the_checkpoint_with_its_label(directory):
    """A question with choices is sent alone; the model answers its own example."""
    family, settings = table("blip_vqa", "vqa", directory, id="ours", revision="7")
    model = family.load("left", settings)

    assert ("ours@7", "vqa", "{}") == (model.info.label, model.info.role, model.info.choice_question)
    assert [Likelihood] == [*map(type, outcomes(model, model.example()))]


def test_a_plan_counts_the_numbers(directory, model):
    """Those of its tensors, none of which is loaded."""
    family, settings = table("blip_vqa", "vqa", directory)
    count = sum(weight.numel() for weight in model.network.parameters())

    assert Plan(directory.name, str(directory), count) == family.plan("ours", settings)


def test_a_tensor_that_is_left_on_the_cpu_raises(directory):
    """As on a GPU; without that the batch is answered."""
    with dry_run():
        model = BlipVqa(directory, dtype="bfloat16", device="cuda", revision="-")
        assert [Likelihood] * len(CALLS) == [*map(type, outcomes(model, *CALLS))]
        model.network.text_decoder.cls.to("cpu")
        with pytest.raises(RuntimeError, match="device"):
            outcomes(model, *CALLS)


@pytest.mark.parametrize("spoil", [no_config, no_weights, cut_weights, pickled_weights])
def test_a_spoiled_checkpoint_is_one_line(tmp_path, spoil):
    """Which names the file."""
    directory = blip_vqa(tmp_path / "blip")
    spoil(directory)
    with pytest.raises(CheckpointError, match="blip"):
        BlipVqa(directory, dtype="float32", device="cpu")


def test_a_blip_without_a_decoder_is_refused(tmp_path):
    """As that for retrieval, of the same model_type: no weight is random."""
    directory = blip(tmp_path / "blip")
    with pytest.raises(CheckpointError, match="weights are missing or of another shape: text_decoder"):
        BlipVqa(directory, dtype="float32", device="cpu")


def test_a_start_of_answers_that_is_no_word_is_refused(tmp_path):
    """With the file and the field."""
    directory = blip_vqa(tmp_path / "blip")
    path = directory / "config.json"
    config = json.loads(path.read_text())
    config["text_config"]["bos_token_id"] = DEC + 2
    path.write_text(json.dumps(config))
    with pytest.raises(CheckpointError, match=rf"config.json: bos_token_id is {DEC + 2}"):
        BlipVqa(directory, dtype="float32", device="cpu")


def test_a_tokenizer_without_yes_and_no_is_refused(tmp_path):
    """Both would be the unknown token, and every P(yes) one half."""
    directory = blip_vqa(tmp_path / "blip")
    path = directory / "tokenizer.json"
    written = json.loads(path.read_text())
    vocabulary = written["model"]["vocab"]
    vocabulary |= {"so": vocabulary.pop("yes"), "not": vocabulary.pop("no")}
    path.write_text(json.dumps(written))
    with pytest.raises(CheckpointError, match="no words yes and no"):
        BlipVqa(directory, dtype="float32", device="cpu")
