"""What the values of a pickled request ask for, and where they are wrong."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from service.core.errors import Invalid
from service.core.fields import MAX_PROMPT
from service.metrics.common.registry import own
from service.web.dialects.pickled.app import PickleRequest, no_prompts, request_of
from service.web.dialects.pickled.opcodes import LongText

PICTURES = [b"one", bytearray(b"two")]
LONG = LongText(memoryview(b"a" * 100_000))


def request(keys=(), **value):
    return request_of(value, keys, lambda size: None)


def test_prompts_are_one_for_each_picture():
    """A tuple is as good as a list, and bytes that can change are bytes."""
    asked = request(images=tuple(PICTURES), prompts=("a dog", "a cat"))

    assert ([b"one", b"two"], ["a dog", "a cat"]) == (asked.images, asked.prompts)
    assert (False, False) == (asked.alone, asked.compared)
    assert [bytes, bytes] == [type(image) for image in asked.images]


def test_pictures_alone_have_no_prompts():
    """Nor have those whose prompts are None, which are not alone."""
    alone, empty = request(images=PICTURES), request(images=PICTURES, prompts=None)

    assert (None, True, None, False) == (alone.prompts, alone.alone, empty.prompts, empty.alone)


def test_answers_are_prompts_where_there_are_no_others():
    """ddpo-pytorch sends a list of one text for each picture, and says what it takes for the answer."""
    answers = [["The image contains a dog"], ["a cat"]]
    compared = request(images=PICTURES, answers=answers)
    both = request(images=PICTURES, answers=answers, prompts=["a cow", "a bee"])

    assert (True, ["a dog", "a cat"]) == (compared.compared, compared.prompts)
    assert (False, ["a cow", "a bee"]) == (both.compared, both.prompts)


def test_entries_stand_beside_the_pictures_or_in_the_metadata():
    """Those that nobody reads are left out, and so are empty ones."""
    beside = request(["a", "b", "c"], images=PICTURES, a=[1, 2], b=[], c=None, d=[3, 4])
    within = request(["a", "b"], images=PICTURES, metadata={"a": [1, 2], "b": None, "d": [3, 4]})

    assert {"a": [1, 2]} == beside.entries == within.entries


def test_the_number_of_pictures_is_checked():
    """Before anything else is read."""
    sizes = []
    request_of({"images": PICTURES}, (), sizes.append)

    assert [2] == sizes


WRONG = {
    "a list": ([], "the pickle must hold a dict with images and prompts, not list"),
    "nothing": (None, "the pickle must hold a dict with images and prompts, not nothing"),
    "a long text": (LONG, "the pickle must hold a dict with images and prompts, not str"),
    "no pictures": ({}, "images: must be a list, not nothing"),
    "a dict of pictures": ({"images": {}}, "images: must be a list, not dict"),
    "a text as picture": ({"images": ["x"]}, "images/0: must be the bytes of a picture file, not str"),
    "a prompt too few": (
        {"images": PICTURES, "prompts": ["a dog"]},
        "2 images and 1 prompts: send one for each",
    ),
    "an answer too many": (
        {"images": [b"x"], "answers": [["a"], ["b"]]},
        "1 images and 2 answers: send one for each",
    ),
    "one prompt for all": ({"images": PICTURES, "prompts": "a dog"}, "prompts: must be a list, not str"),
    "a prompt in a list": (
        {"images": [b"x"], "prompts": [["a dog"]]},
        "prompts/0: Input should be a valid string",
    ),
    "a prompt of bytes": (
        {"images": PICTURES, "prompts": ["a dog", b"a cat"]},
        "prompts/1: Input should be a valid string",
    ),
    "an empty prompt": ({"images": [b"x"], "prompts": [" "]}, "prompts/0: is empty"),
    "a long prompt": (
        {"images": [b"x"], "prompts": [LONG]},
        f"prompts/0: String should have at most {MAX_PROMPT} characters",
    ),
    "two answers in one": (
        {"images": [b"x"], "answers": [["a", "b"]]},
        "prompts/0: Input should be a valid string",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_named_with_its_place(name):
    """And with what it is instead."""
    value, detail = WRONG[name]
    with pytest.raises(Invalid) as refused:
        request_of(value, (), lambda size: None)

    assert detail == refused.value.detail


LINE = {"tag": "counting", "include": [{"class": "dog", "count": 2}], "prompt": "a photo of two dogs"}


@pytest.mark.parametrize(
    ("metric", "value", "prompt"),
    [
        ("aesthetic", {"images": [b"x"]}, ""),
        ("vqascore", {"images": [b"x"], "prompts": ["a dog"]}, "a dog"),
        ("geneval", {"images": [b"x"], "meta_datas": [LINE], "prompts": ["a dog"]}, "a photo of two dogs"),
    ],
)
def test_a_picture_has_the_prompt_of_its_entry_or_its_own_or_none(metric, value, prompt):
    """Entries of a metric have their prompts in them."""
    known = {metric: own()[metric]}
    dialects = SimpleNamespace(known=known, options=lambda metric: metric.options())
    [wanted] = PickleRequest(request(["meta_datas"], **value), metric, dialects).wanted

    assert (prompt, b"x", (metric,)) == (wanted.prompt, wanted.image, wanted.metrics)


NEEDED = 'the request has no "prompts", and vqascore scores a picture against its prompt: '
SEND = 'send {"images": [bytes, …], "prompts": [str, …]}'


@pytest.mark.parametrize(
    ("served", "advice"),
    [
        ([], ""),
        (["aesthetic"], ", or to the path /aesthetic, which needs none"),
        (["aesthetic", "beauty"], ", or to the path /aesthetic or /beauty, which needs none"),
    ],
)
def test_whoever_sends_pictures_alone_is_told_what_to_send_and_where_else(served, advice):
    """Metrics that are configured and need the picture alone are named; `clip_i` needs references."""
    metrics = own()
    known = {"vqascore": metrics["vqascore"], "clip_i": metrics["clip_i"]}
    known |= {name: replace(metrics["aesthetic"], name=name) for name in ("aesthetic", "beauty")}
    dialects = SimpleNamespace(
        known=known, absent=lambda name: "" if name in [*served, "clip_i"] else "no model"
    )

    assert NEEDED + SEND + advice == no_prompts(metrics["vqascore"], dialects).detail
