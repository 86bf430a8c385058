"""What the tests of BLIP's models share: pictures, calls, their outcomes, and tables of settings."""

import pytest

from models.core.calls import ChoiceCall, FirstTokenCall, LabelCall, LikelihoodCall
from models.families.registry import families
from models.images.image import Image
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


def outcomes(model, *calls):
    """Return the outcomes of calls in one batch."""
    return model.score([model.prepare(call) for call in calls])


def numbers(found):
    """Return all log-probabilities of a likelihood."""
    return [*found.log_probs, found.log_p_yes, found.log_p_no]


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


def table(name, role, directory, **more):
    """Return a family, and its settings for a checkpoint."""
    family = families()[name]
    return family, family.settings(family=name, role=role, checkpoint=str(directory), **more)
