"""The family `fake`: no weights, the same answers always, and the time that it is told to take."""

import json

import pytest

from models.core.calls import (
    AnswerCall,
    ChoiceCall,
    DetectCall,
    EditCall,
    EntailmentCall,
    FirstTokenCall,
    GenerateCall,
    ImageCall,
    LikelihoodCall,
    ProgressCall,
    ReadCall,
    RerankCall,
    RewardCall,
    TextCall,
    VideoCall,
)
from models.core.family import Plan
from models.families.fake.model import GREY, FakeModel
from models.families.registry import families, own
from models.images.image import Image, ImageError
from service.questions.styles.tifa import TIFA
from service.questions.styles.vq2 import VQ2

ROLES = sorted({family.role for family in own().values() if family.role})


def fake(role, **values):
    family = families()["fake"]
    return family.load("ours", family.settings(family="fake", role=role, **values))


def score(model, *calls):
    return model.score([model.prepare(call) for call in calls])


@pytest.mark.parametrize("role", [*ROLES, "a role of another package"])
def test_a_fake_of_each_role_answers_its_example(role):
    """And says what it is."""
    model = fake(role)
    [outcome] = score(model, model.example())

    assert outcome.is_finite()
    assert (role, "fake", f"fake-{role}@1") == (model.info.role, model.info.family, model.info.label)
    assert (role == "questions") == model.info.generates


CALLS = [
    LikelihoodCall(GREY, "Is it grey?"),
    TextCall("grey"),
    GenerateCall("", "style: example\nprompt: a grey square"),
    EntailmentCall("a grey square", "Is it grey? yes"),
    ReadCall(GREY),
    DetectCall(GREY, ("square",)),
    RewardCall(GREY),
    RewardCall(GREY, "grey"),
    RerankCall(GREY, "grey"),
    ProgressCall(GREY, "grey"),
    EditCall(GREY, "grey", GREY),
    VideoCall((GREY, GREY), "grey"),
]


@pytest.mark.parametrize("call", CALLS, ids=lambda call: type(call).__name__)
def test_a_fake_answers_every_kind_of_call_whatever_its_role(call):
    """A role of another package needs nothing here."""
    [outcome] = score(fake("vqa"), call)

    assert outcome.is_finite()


def test_equal_calls_get_equal_answers_and_others_do_not():
    """From the content alone, whichever instance is asked."""
    calls = [LikelihoodCall(GREY, text) for text in ("Is it red?", "Is it blue?")]
    first, second = score(FakeModel("vqa"), *calls)

    assert [second, first, first] == score(fake("vqa"), calls[1], calls[0], calls[0])
    assert first != second
    assert all(outcome.log_p_yes < 0 and outcome.log_p_no < 0 for outcome in (first, second))


def test_an_answer_follows_the_schema_of_its_call():
    """With another value for another seed; without a schema it is yes or no."""
    properties = {
        "grade": {"type": "integer", "enum": [*range(100)]},
        "level": {"type": "integer", "minimum": 3, "maximum": 5},
        "share": {"type": "number"},
        "more": {"type": "number", "minimum": 2.0, "maximum": 3.0},
        "why": {"type": "string"},
    }
    schema = {"type": "object", "properties": properties}
    calls = [AnswerCall(GREY, "Grade it.", schema=schema, seed=seed) for seed in (0, 1)]
    *graded, plain = score(fake("vqa"), *calls, AnswerCall(GREY, "Is it grey?"))
    first, second = (json.loads(outcome.text) for outcome in graded)

    assert properties.keys() == first.keys() == second.keys()
    assert first["grade"] in range(100)
    assert 2 < first["more"] < 3
    assert {3, 4, 5} >= {first["level"], second["level"]}
    assert 0 < first["share"] < 1
    assert first != second
    assert plain.text in ("Yes", "No")


def test_embeddings_are_unit_vectors_of_the_content():
    """Of an image's digest, or of a text."""
    image, text, other = score(fake("clip"), ImageCall(GREY), TextCall("grey"), TextCall("red"))

    assert 1 == pytest.approx(float(image.vector @ image.vector))
    assert 1 == pytest.approx(float(image.vector @ text.vector))  # the image's digest is "grey"
    assert 1 > float(text.vector @ other.vector)


def test_questions_are_about_the_nouns_of_the_prompt():
    """Each asked for once."""
    [text] = score(fake("questions"), GenerateCall("", "style: s\nprompt: a red cat, an old dog, a red cat"))

    asked = json.loads(text.text)["questions"]
    assert ["Is there a red cat?", "Is there a old dog?"] == [question["text"] for question in asked]
    assert [1, 2] == [question["id"] for question in asked]


def test_every_kind_of_call_has_an_answer_that_its_content_decides():
    """As many numbers as there are choices or answers, and no more than 1 in all."""
    choices = score(fake("vqa"), *(ChoiceCall(GREY, text, ("a", "b", "c")) for text in ("Which?", "What?")))
    [first] = score(fake("vqa"), FirstTokenCall(GREY, "Which?", ("a", "A", " a")))
    entailed = score(fake("nli"), EntailmentCall("a dog", "b"), EntailmentCall("a dog", "c"))
    [reading] = score(fake("ocr"), ReadCall(GREY))
    [seen] = score(fake("detector"), DetectCall(GREY, ("dog", "cat", "bed", "cup"), 0.0))
    [sure] = score(fake("detector"), DetectCall(GREY, ("dog", "cat", "bed", "cup"), seen.found[1].score))

    assert [3, 3] == [len(outcome.log_probs) for outcome in choices]
    assert choices[0] != choices[1]
    assert 3 == len(first.log_probs)
    assert 0 < first.probability <= 1
    assert all(0 < outcome.probability < 1 for outcome in entailed)
    assert entailed[0] != entailed[1]
    assert {"dog", "cat", "bed", "cup"} == {each.label for each in seen.found}
    assert seen.found[:1] == sure.found
    assert len({each.box for each in seen.found}) > 1
    assert "read in grey" == reading.lines[0].text


def test_questions_follow_the_schema_that_they_are_asked_under():
    """One entry for each noun, with the fields of the schema and no others."""
    [tifa, vq2] = score(fake("questions"), TIFA.call("a red cat"), VQ2.call("a red cat"))

    assert ["Is there a red cat?"] == [question.text for question in TIFA.parse(tifa.text)]
    assert ["red cat"] == [pair.expected for pair in VQ2.parse(vq2.text)]
    assert {"pairs": [{"answer": "red cat", "question": "What is there?"}]} == json.loads(vq2.text)


def test_a_batch_takes_the_time_that_the_table_says():
    """Milliseconds of a batch, and of each call in it."""
    slept = []
    for model in (fake("vqa", fixed_ms=20, per_call_ms=5), fake("vqa")):
        model.sleep = slept.append
        score(model, *[LikelihoodCall(GREY, "Is it?")] * 4)

    assert [0.04] == pytest.approx(slept)


def test_a_fake_looks_at_its_images():
    """A broken one fails where it would with any model."""
    with pytest.raises(ImageError):
        fake("vqa").prepare(LikelihoodCall(Image(b"broken"), "Is it?"))


def test_a_fake_plans_to_load_nothing():
    """`--check` says so."""
    family = families()["fake"]

    assert Plan("fake-vqa", "no weights", 0) == family.plan(
        "ours", family.settings(family="fake", role="vqa")
    )


def test_a_fake_has_the_revision_of_its_table():
    """So that another one is seen; "1" without one."""
    assert "2" == fake("vqa", revision="2").info.revision
    assert "1" == fake("vqa").info.revision
