"""InstructBLIP and BLIP-2 with a FlanT5: transformers' likelihoods, on small random checkpoints."""

import json

import pytest

from models.core.calls import LikelihoodCall
from models.core.contract import CheckpointError
from models.families.instructblip.model import MAX_TOKENS, InstructBlip
from tests.models.contract.blips import (
    ANSWERS,
    INSTRUCTIONS,
    PICTURES,
    are_of_one_distribution,
)
from tests.models.contract.kind import outcomes
from tests.support.blip_checkpoints import blip_2, instructblip
from tests.support.runs import runs_of


@pytest.fixture(params=["instructblip", "blip-2 of a T5"])
def model(request, models):
    return models(request.param)


def test_its_question_is_that_of_lavis(model):
    """With the words that its language model was taught."""
    assert model.info.question.startswith('Question: Does this figure show "{}"?')


def test_choices_labels_and_first_tokens_are_of_the_same_distribution(model):
    """Each answer of a choice is as likely as by itself; its first token as a label."""
    are_of_one_distribution(model, INSTRUCTIONS[0])


def test_a_picture_and_a_question_are_encoded_once(model):
    """Whatever is asked about them."""
    whole = model.network.whole
    calls = [LikelihoodCall(PICTURES[0], each, answer) for each in INSTRUCTIONS for answer in ANSWERS]
    with runs_of(whole.vision_model) as looks, runs_of(whole.language_model.encoder) as reads:
        outcomes(model, *calls)

    assert [1] == [len(each["pixel_values"]) for each in looks]
    assert [3] == [len(each["inputs_embeds"]) for each in reads]


def test_a_long_question_is_cut_and_says_so(model):
    """At 128 tokens."""
    batch = [model.prepare(LikelihoodCall(PICTURES[0], "dog " * count, "yes")) for count in (200, 9)]

    assert MAX_TOKENS == len(batch[0].data.text) > len(batch[1].data.text)
    assert [True, False] == [found.truncated for found in model.score(batch)]


def test_another_language_model_than_a_t5_is_refused(tmp_path):
    """Such as that of a BLIP-2 for retrieval, which has none."""
    directory = blip_2(tmp_path / "blip")
    with pytest.raises(CheckpointError, match="must be a T5"):
        InstructBlip(directory, dtype="float32", device="cpu")


def test_a_tokenizer_with_more_words_than_embeddings_is_refused(tmp_path):
    """That of the Q-Former as that of the language model."""
    directory = instructblip(tmp_path / "blip")
    path = directory / "qformer_tokenizer" / "tokenizer.json"
    written = json.loads(path.read_text())
    written["model"]["vocab"] |= {f"word{number}": 100 + number for number in range(9)}
    path.write_text(json.dumps(written))
    with pytest.raises(CheckpointError, match="words, and the embeddings have 24 rows"):
        InstructBlip(directory, dtype="float32", device="cpu")
