"""CLIP-FlanT5's choices and first tokens say what its likelihoods of single answers say."""

import math
from functools import cache

import PIL.Image
import pytest

from models.core.calls import AnswerCall, ChoiceCall, FirstTokenCall, LabelCall, LikelihoodCall
from models.core.contract import ModelError
from models.families.clip_flant5.model import ClipFlanT5
from models.images.image import Image
from tests.support.paths import GOLDEN

DIRECTORY = GOLDEN / "clip_flant5"
PICTURE = Image.of(PIL.Image.linear_gradient("L").convert("RGB"), "gradient")
QUESTION = "What is it?"
WORDS = ("Yes", "a red circle", "Yes", "the star")


@cache
def model():
    return ClipFlanT5(DIRECTORY, dtype="float32", device="cpu")


def scored(*calls):
    return model().score([model().prepare(call) for call in calls])


def alone(answer):
    [likelihood] = scored(LikelihoodCall(PICTURE, QUESTION, answer))
    return likelihood


def test_choices_have_the_log_probabilities_that_each_has_alone():
    """All tokens of all of them, in their order."""
    [said] = scored(ChoiceCall(PICTURE, QUESTION, WORDS))

    for tokens, word in zip(said.log_probs, WORDS, strict=True):
        assert alone(word).log_probs == pytest.approx(tokens, abs=1e-5)


def test_first_tokens_are_told_over_the_whole_vocabulary_and_each_is_counted_once():
    """Two answers that begin alike add nothing."""
    [said] = scored(FirstTokenCall(PICTURE, QUESTION, WORDS))
    first = [alone(word).log_probs[0] for word in WORDS]

    assert first == pytest.approx(list(said.log_probs), abs=1e-5)
    assert said.tokens[0] == said.tokens[2]
    distinct = {token: log for token, log in zip(said.tokens, first, strict=True)}
    assert sum(map(math.exp, distinct.values())) == pytest.approx(said.probability, abs=1e-6)


def test_a_question_is_encoded_once_whatever_is_asked_of_it(monkeypatch):
    """Its likelihood, its choices and its first tokens in one batch."""
    encoded = []
    encode = model().forward.encode
    monkeypatch.setattr(
        model().forward,
        "encode",
        lambda features, texts: encoded.append(len(texts)) or encode(features, texts),
    )
    likelihood, choices, first = scored(
        LikelihoodCall(PICTURE, QUESTION, "the star"),
        ChoiceCall(PICTURE, QUESTION, WORDS),
        FirstTokenCall(PICTURE, QUESTION, ("the star", "Yes")),
    )

    assert [1] == encoded
    assert likelihood.log_probs == pytest.approx(choices.log_probs[3], abs=1e-5)
    assert likelihood.log_probs[0] == pytest.approx(first.log_probs[0], abs=1e-5)
    assert likelihood.log_p_yes == pytest.approx(first.log_probs[1], abs=1e-5)


def test_a_call_costs_its_question_once_and_each_token_of_its_choices():
    """What admission and batches count."""
    one, both = (
        model().prepare(ChoiceCall(PICTURE, QUESTION, choices)).cost
        for choices in (("the star",), ("the star", "the star"))
    )
    star = model().tokenizer.encode("the star")

    assert len(star) == both - one
    assert one == model().prepare(LikelihoodCall(PICTURE, QUESTION, "the star")).cost


def test_a_lone_space_tells_no_answer_apart():
    """Any word without a piece of its own begins with it, so it does not count."""
    [said] = scored(FirstTokenCall(PICTURE, QUESTION, ("blue", "the star")))

    assert (model().tokenizer.encode("the star")[0],) == said.tokens
    with pytest.raises(ModelError, match="begins with a distinctive token"):
        model().prepare(FirstTokenCall(PICTURE, QUESTION, ("blue",)))


def test_labels_have_the_log_probabilities_that_each_has_as_a_first_token():
    """One each, over the whole vocabulary."""
    labels = ("A", "B", "C", "D", "E")
    [said] = scored(LabelCall(PICTURE, QUESTION, labels))

    for (log_prob,), label in zip(said.log_probs, labels, strict=True):
        assert alone(label).log_probs[0] == pytest.approx(log_prob, abs=1e-5)


@pytest.mark.parametrize(
    ("labels", "told"),
    [
        (("3", "4"), "label 2 of 2 has 2 tokens"),
        (("A", "the star"), "label 2 of 2 has"),
        (("A", "B", "A"), "two labels are the same token"),
        (("A", ""), "empty"),
    ],
)
def test_a_label_that_is_no_token_of_its_own_is_refused(labels, told):
    """Its first piece would say nothing, or be another label's."""
    with pytest.raises(ModelError, match=told):
        model().prepare(LabelCall(PICTURE, QUESTION, labels))


def test_several_images_and_written_answers_are_refused():
    """The network has a place for one image, and likelihoods only."""
    with pytest.raises(ModelError, match="takes one image"):
        model().prepare(LabelCall(PICTURE, QUESTION, ("A", "B"), ("Before:", PICTURE)))
    with pytest.raises(ModelError, match="writes no answers"):
        model().prepare(AnswerCall(PICTURE, QUESTION))


@pytest.mark.parametrize("call", [ChoiceCall, FirstTokenCall])
def test_an_empty_answer_is_refused(call):
    """It has no first token."""
    with pytest.raises(ModelError, match="empty"):
        model().prepare(call(PICTURE, QUESTION, ("the star", " ")))
