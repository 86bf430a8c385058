"""Calls: their keys tell apart whatever could change an outcome, and nothing else."""

import pytest

from models.core.calls import (
    AnswerCall,
    ChoiceCall,
    ContrastCall,
    EditCall,
    EntailmentCall,
    FirstTokenCall,
    GenerateCall,
    ImageCall,
    LabelCall,
    LikelihoodCall,
    ProgressCall,
    ReadCall,
    RewardCall,
    TextCall,
    VideoCall,
)
from models.images.image import Image

MODEL = ("vqa", "tiny", "1")
SCHEMA = {"type": "object"}


def calls():
    """One of each, made anew; the bytes of an image count by their digest alone."""
    return {
        "image": ImageCall(Image(b"a")),
        "text": TextCall("a"),
        "likelihood": LikelihoodCall(Image(b"a"), "Is it a?"),
        "choice": ChoiceCall(Image(b"a"), "Is it a?", ("a", "b")),
        "first token": FirstTokenCall(Image(b"a"), "Is it a?", ("a", "b")),
        "answer": AnswerCall(Image(b"a"), "Is it a?", ("b:", Image(b"b")), schema=SCHEMA),
        "label": LabelCall(Image(b"a"), "Is it a?", ("a", "b"), ("b:", Image(b"b"))),
        "entailment": EntailmentCall("a", "b"),
        "read": ReadCall(Image(b"a")),
        "generate": GenerateCall("system", "user"),
    }


@pytest.mark.parametrize("kind", calls())
def test_equal_calls_have_equal_keys(kind):
    """In any process: 32 bytes made of their content."""
    one, other = calls()[kind], calls()[kind]

    assert one.key(MODEL) == other.key(MODEL)
    assert 32 == len(one.key(MODEL))


OTHERS = [
    *calls().values(),
    ImageCall(Image(b"b")),
    ImageCall(Image(b"a", "b")),
    TextCall("b"),
    TextCall(""),
    LikelihoodCall(Image(b"b"), "Is it a?"),
    LikelihoodCall(Image(b"a"), "Is it b?"),
    LikelihoodCall(Image(b"a"), "Is it a?", "No"),
    ChoiceCall(Image(b"a"), "Is it a?", ("b", "a")),
    ChoiceCall(Image(b"a"), "Is it b?", ("a", "b")),
    ChoiceCall(Image(b"b"), "Is it a?", ("a", "b")),
    FirstTokenCall(Image(b"a"), "Is it a?", ("a",)),
    LabelCall(Image(b"a"), "Is it a?", ("a", "b")),
    LabelCall(Image(b"a"), "Is it a?", ("b", "a"), ("b:", Image(b"b"))),
    LabelCall(Image(b"a"), "Is it a?", ("a", "b"), ("c:", Image(b"b"))),
    LabelCall(Image(b"a"), "Is it a?", ("a", "b"), ("b:", Image(b"c"))),
    LabelCall(Image(b"a"), "Is it a?", ("a", "b"), (Image(b"b"), "b:")),
    LabelCall(Image(b"a"), "Is it a?", ("a", "b"), ("b:", Image(b"b").digest)),
    LabelCall(Image(b"b"), "Is it a?", ("a", "b"), ("b:", Image(b"a"))),
    LabelCall(Image(b"a"), "Is it a?", ("a", "b"), ("b:", Image(b"b")), "sha256:1"),
    AnswerCall(Image(b"a"), "Is it a?"),
    AnswerCall(Image(b"b"), "Is it a?"),
    AnswerCall(Image(b"a"), "Is it b?"),
    AnswerCall(Image(b"a"), "Is it a?", ("b:", Image(b"b"))),
    AnswerCall(Image(b"a"), "Is it a?", (Image(b"b"), "b:"), schema=SCHEMA),
    AnswerCall(Image(b"a"), "Is it a?", ("b:", Image(b"b").digest), schema=SCHEMA),
    AnswerCall(Image(b"a"), "Is it a?", max_tokens=65),
    AnswerCall(Image(b"a"), "Is it a?", temperature=1.0),
    AnswerCall(Image(b"a"), "Is it a?", seed=1),
    AnswerCall(Image(b"a"), "Is it a?", rubric="sha256:1"),
    EntailmentCall("b", "a"),
    EntailmentCall("", "ab"),
    ReadCall(Image(b"b")),
    *(call(Image(b"a"), "a") for call in (RewardCall, ContrastCall, ProgressCall)),
    ProgressCall(Image(b"a"), "a", 0.5),
    EditCall(Image(b"a"), "a", Image(b"b")),
    EditCall(Image(b"b"), "a", Image(b"a")),
    VideoCall((Image(b"a"), Image(b"b")), "a"),
    VideoCall((Image(b"b"), Image(b"a")), "a"),
    VideoCall((Image(b"a"),), "a"),
    GenerateCall("", "systemuser"),
    GenerateCall("system", "user", 5),
    GenerateCall("system", "user", schema=SCHEMA),
    GenerateCall("system", "user", seed=1),
]


def test_calls_that_differ_in_anything_have_other_keys():
    """Kind, image, texts, schema, seed; and the model that is asked."""
    keys = {call.key(model) for call in OTHERS for model in (MODEL, ("vqa", "tiny", "2"), ("clip", "tiny"))}

    assert 3 * len(OTHERS) == len(keys)


@pytest.mark.parametrize("kind", ["answer", "label"])
def test_the_images_of_a_call_are_all_that_it_shows(kind):
    """That of the question, and those before it."""
    assert [Image(b"a").digest, Image(b"b").digest] == [image.digest for image in calls()[kind].images]


def test_an_image_counts_by_its_digest():
    """Nothing is decoded for a key: these bytes are no pictures."""
    assert ImageCall(Image(b"a", "d")).key(MODEL) == ImageCall(Image(b"b", "d")).key(MODEL)


def test_what_an_llm_wrote_is_not_cached():
    """Question sets have a store of their own."""
    assert ["generate"] == [kind for kind, call in calls().items() if not call.cacheable]


@pytest.mark.parametrize("call", OTHERS)
def test_a_call_with_other_images_has_them_wherever_it_had_images(call):
    """In the same order; all else stays, and a call without images is the same one."""

    def other(image):
        return Image(image.encoded, f"another {image.digest}")

    changed, copied = call.with_images(other), call.with_images(lambda image: Image(b"", image.digest))

    assert [f"another {image.digest}" for image in call.images] == [image.digest for image in changed.images]
    assert call.key(MODEL) == copied.key(MODEL)
    assert (changed is call) is (not call.images)
