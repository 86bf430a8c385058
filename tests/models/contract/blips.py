"""BLIPs: their calls, and a small checkpoint of each."""

from typing import Any

import pytest

from models.core.calls import ChoiceCall, ContrastCall, FirstTokenCall, LabelCall, LikelihoodCall, RewardCall
from models.core.outcomes import Likelihood, Reward
from models.images.image import Image
from tests.models.contract import references
from tests.models.contract.kind import Kind, outcomes
from tests.support import blip_checkpoints
from tests.support.pictures import png

PICTURES = [Image(png(colour, size=size)) for colour, size in (("red", (40, 30)), ("blue", (17, 50)))]
ANSWERS = ["yes", "no", "a blue dog"]


def likelihoods(questions):
    """Return a call for each picture and question, each with one of the answers."""
    return [
        LikelihoodCall(picture, question, answer)
        for picture in PICTURES
        for question, answer in zip(questions, ANSWERS, strict=True)
    ]


def are_of_one_distribution(model, question):
    """Check that each answer of a choice is as likely as by itself, and its first token as a label."""
    picture = PICTURES[0]
    alone = outcomes(model, *(LikelihoodCall(picture, question, answer) for answer in ANSWERS))
    choices, labels, first = outcomes(
        model,
        ChoiceCall(picture, question, tuple(ANSWERS)),
        LabelCall(picture, question, ("yes", "no")),
        FirstTokenCall(picture, question, ("yes", "no")),
    )

    for found, of_choice in zip(alone, choices.log_probs, strict=True):
        assert found.log_probs == pytest.approx(of_choice, abs=1e-5)
    expected = [alone[0].log_p_yes, alone[0].log_p_no]
    assert expected == pytest.approx([log_prob for [log_prob] in labels.log_probs], abs=1e-5)
    assert expected == pytest.approx(first.log_probs, abs=1e-5)


PROMPTS = ["a red circle", "the blue square left of a green dog on the cat", "A DOG", "zebra"]
PAIRS = [(picture, prompt) for picture in PICTURES for prompt in PROMPTS]
MATCHED = [call(*pair) for pair in PAIRS for call in (RewardCall, ContrastCall)]
QUESTIONS = ["a red dog?", "the blue circle left of the green square on a cat?", "dog?"]
INSTRUCTIONS = ["Question: a red dog ?", "is there a blue circle left of the square ?", "dog"]


def matcher(make: Any) -> Kind:
    return Kind(
        family="blip_itm",
        make=make,
        calls=MATCHED,
        result=Reward,
        reference=references.matching,
        relative=1e-5,
        near={"bfloat16": 0.5},
        rounded=lambda model: model.network.vision_model,
        exact=lambda model: [model.network.itm_head],
        last=lambda model: model.network.itm_head.bias,
        parts=lambda model: [model.network.itm_head],
    )


def instructed(make: Any) -> Kind:
    return Kind(
        family="instructblip",
        make=make,
        calls=likelihoods(INSTRUCTIONS),
        result=Likelihood,
        reference=references.flant5_answers,
        relative=2e-5,  # kernels differ between CPUs
        near={"bfloat16": 2},
        rounded=lambda model: model.network.whole.vision_model,
        last=lambda model: model.network.whole.language_projection.bias,
        parts=lambda model: [model.network.whole.language_projection],
    )


BLIPS = {
    "blip": matcher(blip_checkpoints.blip),
    "blip-2": matcher(blip_checkpoints.blip_2),
    "blip_vqa": Kind(
        family="blip_vqa",
        make=blip_checkpoints.blip_vqa,
        calls=likelihoods(QUESTIONS),
        result=Likelihood,
        reference=references.blip_answers,
        relative=1e-5,
        near={"bfloat16": 1},
        rounded=lambda model: model.network.vision_model,
        exact=lambda model: [model.network.text_decoder],
        last=lambda model: model.network.text_decoder.cls.predictions.bias,
        parts=lambda model: [model.network.text_decoder.cls],
    ),
    "instructblip": instructed(blip_checkpoints.instructblip),
    "blip-2 of a T5": instructed(blip_checkpoints.blip_2_t5),
}
