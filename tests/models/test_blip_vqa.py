"""BLIP for visual question answering: transformers' likelihoods, on small random checkpoints."""

import json

import pytest
import torch
from transformers import AutoTokenizer

from models.core.calls import AnswerCall, LabelCall, LikelihoodCall
from models.core.contract import CheckpointError, ModelError
from models.families.blip_vqa.model import MAX_TOKENS, BlipVqa
from tests.models.contract.blips import (
    ANSWERS,
    BLIPS,
    PICTURES,
    QUESTIONS,
    are_of_one_distribution,
)
from tests.models.contract.kind import outcomes
from tests.models.contract.references import blip_answers
from tests.support.blip_checkpoints import DEC, blip, blip_vqa
from tests.support.runs import runs_of

CALLS = BLIPS["blip_vqa"].calls
PAIRS = [LikelihoodCall(picture, question, "yes") for picture in PICTURES for question in QUESTIONS]


@pytest.fixture
def directory(directories):
    return directories("blip_vqa")


@pytest.fixture
def model(models):
    return models("blip_vqa")


def test_yes_is_compared_with_no_as_in_the_code_of_the_benchmark(directory, model):
    """The probability of yes among both words as the first token after [DEC]."""
    reference = blip_answers(directory)
    for call, found in zip(PAIRS, outcomes(model, *PAIRS), strict=True):
        yes, no = torch.tensor(reference(call)[-2:]).exp().tolist()

        assert yes / (yes + no) == pytest.approx(found.probability, abs=1e-5)


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


def test_a_question_with_choices_is_sent_alone(model):
    """As in BLIP's released code."""
    assert "{}" == model.info.choice_question


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
