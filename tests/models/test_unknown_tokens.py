"""The share of a text's tokens that a model's tokenizer does not know, in every family with such a token."""

import pytest
import torch

from models.checkpoints.pretrained import Unknown
from models.core.calls import ChoiceCall, EntailmentCall, ImageCall, LikelihoodCall, RewardCall, TextCall
from models.families.clip_flant5.model import ClipFlanT5
from models.families.registry import families
from models.images.image import Image
from tests.support import blip_checkpoints, nli_checkpoints, transformers_clips
from tests.support.clip_checkpoints import clip, save_published
from tests.support.imagereward_checkpoints import imagereward
from tests.support.paths import GOLDEN
from tests.support.pictures import png

PICTURE = Image(png("red", size=(40, 30)))
KNOWN, FOREIGN = "a red circle", "\u4e00\u53ea\u7ea2\u8272\u7684\u732b"  # a red cat in Chinese


def asks(text):
    return LikelihoodCall(PICTURE, text, "yes")


def entails(text):
    return EntailmentCall(text, "a red")


def rewards(text):
    return RewardCall(PICTURE, text)


CASES = {
    "blip_itm": (blip_checkpoints.blip, rewards),
    "blip_vqa": (blip_checkpoints.blip_vqa, asks),
    "clip_flant5": (lambda folder: GOLDEN / "clip_flant5", asks),
    "imagereward": (imagereward, rewards),
    "instructblip": (blip_checkpoints.instructblip, asks),
    "sentence_transformer": (nli_checkpoints.sentences, TextCall),
    "transformers_clip": (lambda folder: transformers_clips.save("siglip", folder), TextCall),
    "transformers_nli": (nli_checkpoints.classifier, entails),
    "transformers_nli TRUE": (nli_checkpoints.true, entails),
}


@pytest.mark.parametrize("name", CASES)
def test_unknown_tokens_are_counted_in_the_result(name, tmp_path):
    """None of a text of the model's own words, and some of a text in another script."""
    make, call = CASES[name]
    family = families()[name.split()[0]]
    made = make(tmp_path) or tmp_path
    table = family.settings(family=family.name, role=family.role, checkpoint=str(made))
    model = family.load("left", table)
    known, foreign = model.score([model.prepare(call(text)) for text in (KNOWN, FOREIGN)])

    assert known.unknown < foreign.unknown <= 1
    assert type(foreign).loads(foreign.dumps()).unknown == foreign.unknown


def test_the_share_is_that_of_question_and_answers():
    """Of all their pieces, without </s>."""
    model = ClipFlanT5(GOLDEN / "clip_flant5", dtype="float32", device="cpu")
    words, unknown = model.tokenizer, model.tokenizer.unknown.id
    question, choices = "What is it?", (FOREIGN, "a dog")
    [found] = model.score([model.prepare(ChoiceCall(PICTURE, question, choices))])
    pieces = [id for text in (question, *choices) for id in words.encode(text)[:-1]]

    assert found.unknown == pieces.count(unknown) / len(pieces) > 0


def test_padding_and_marks_are_no_part_of_the_share():
    """And a tokenizer without an unknown token knows everything."""
    assert Unknown(3, frozenset((0, 1))).share([0, 5, 3, 6, 7, 1, 1]) == 1 / 4
    assert Unknown(3, frozenset((0, 1, 3))).share([3, 1]) == 1
    assert Unknown(None).share([3, 1]) == Unknown(3).share([]) == 0


@pytest.fixture(scope="module", params=[{}, {"eos_token_id": 2}], ids=["by id", "by the largest id"])
def ended(request, tmp_path_factory):
    """A CLIP that finds the end of a text either way."""
    directory = tmp_path_factory.mktemp("ended")
    save_published(directory, request.param)
    return clip(directory)


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("a cat", False),
        ("a dog <|endoftext|> cat", True),
        ("<|endoftext|>", True),
        ("x " * 75, False),
        ("x " * 76, True),
        (FOREIGN, False),
    ],
)
def test_a_text_that_ends_before_its_end_was_cut(ended, text, cut):
    """By <|endoftext|> in it, which CLIP's tokenizer reads as the end, or by its length."""
    [found] = ended.score([ended.prepare(TextCall(text))])

    assert cut == found.truncated
    assert 0 == found.unknown


def test_what_follows_the_end_changes_no_embedding(ended):
    """So the warning is true."""
    one, other, image = ended.score(
        [
            ended.prepare(TextCall("a dog <|endoftext|> cat")),
            ended.prepare(TextCall("a dog <|endoftext|> house")),
            ended.prepare(ImageCall(PICTURE)),
        ]
    )

    assert torch.equal(torch.tensor(one.vector), torch.tensor(other.vector))
    assert not image.truncated
