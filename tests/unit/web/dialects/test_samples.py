"""Samples of trainers of language models: which text is scored with which picture."""

import pytest

from service.core.errors import Invalid
from service.images.loader import Base64, Url
from service.web.dialects.samples import MAX_CUT_CHARACTERS, pair, response_in

DATA = "data:image/png;base64,AAAA"
PART = {"type": "image", "image": DATA}
ASK = {"type": "text", "text": "Describe it."}
MESSAGES = [{"role": "system", "content": "You describe."}, {"role": "user", "content": [PART, ASK]}]


@pytest.mark.parametrize(
    ("sample", "text", "source"),
    [
        (("Describe it.", "a cat", DATA), "a cat", DATA),
        (("Describe it.", "a cat", {"image": "AAAA"}), "a cat", "AAAA"),
        (("Describe it.", "a cat", "https://x/cat.png"), "a cat", "https://x/cat.png"),
        ((MESSAGES, "a cat", "a label"), "a cat", DATA),
        (("a cat", DATA, None), "a cat", DATA),
        (("Draw it.", DATA, "a cat"), "a cat", DATA),
        (([{"role": "user", "content": "Draw it."}], {"image": DATA}, ""), "Draw it.", DATA),
    ],
)
def test_a_sample_is_a_text_and_a_picture(sample, text, source):
    """The response is one of both."""
    found, picture = pair(*sample, "sample 0")

    assert text == found
    assert source == (picture.url if isinstance(picture, Url) else picture.text)
    assert isinstance(picture, Url) is source.startswith("https")
    assert isinstance(picture, Url | Base64)


@pytest.mark.parametrize(
    ("sample", "said"),
    [
        (("Describe it.", "a cat", "a label"), "0 pictures"),
        (("Describe it.", "a cat", None), "0 pictures"),
        ((MESSAGES, "a cat", DATA), "2 pictures"),
        (([*MESSAGES, *MESSAGES], "a cat", None), "2 pictures"),
        (("Describe it.", "", DATA), "empty"),
        (("Describe it.", None, DATA), "string"),
        (("Describe it.", 3, DATA), "string"),
        (("", DATA, None), "neither label nor prompt"),
        ((None, DATA, DATA), "2 pictures"),
        ((MESSAGES, DATA, None), "2 pictures"),
        (("a cat", DATA, "https://x/reference.png"), "2 pictures"),
        (("Describe it.", "x" * 4001, DATA), "4000"),
    ],
)
def test_another_sample_is_refused_with_its_place(sample, said):
    with pytest.raises(Invalid, match=said) as refused:
        pair(*sample, "sample 7")

    assert "sample 7" in refused.value.detail


PAD = "<|image_pad|>"
PROMPT = (
    f"<|im_start|>user\n<|vision_start|>{PAD}<|vision_end|>Describe it.<|im_end|>\n<|im_start|>assistant\n"
)


@pytest.mark.parametrize(
    ("query", "prompt"),
    [
        (f"{PROMPT}a cat<|im_end|>", PROMPT),
        (f"{PROMPT.replace(PAD, PAD * 1000)}a cat<|im_end|>\n<|endoftext|> ", PROMPT),
        ("<s>Describe <image>: a cat</s>", "Describe <image>:"),
        ("a cat", ""),
    ],
)
def test_the_response_is_what_follows_the_prompt(query, prompt):
    """Processors repeat a picture's placeholder, tokenizers begin with a token, and a turn ends with one."""
    assert "a cat" == response_in(query, prompt, "sample 0").strip()


@pytest.mark.parametrize("query", ["a cat", "Sure. Describe it: a cat"])
def test_a_query_without_its_prompt_is_refused(query):
    """As one that was cut to the trainer's length."""
    with pytest.raises(Invalid, match="sample 3: the query does not begin"):
        response_in(query, "Describe it:", "sample 3")


def test_long_queries_are_read_in_a_time_linear_in_their_length():
    """Runs of white space, of tokens, and of their beginnings."""
    for part in (" ", "</s>", "<|", "<|a|>", "<", "[IMG]"):
        assert response_in(f"p{part * 100_000}x", "p", "sample 0").endswith("x")
        response_in(f"p{part * 100_000}", "p", "sample 0")


def test_a_response_that_no_model_writes_is_not_cut():
    """Its tokens would be counted one by one, for seconds; it is refused as too long."""
    response = "a cat" + "</s>" * (MAX_CUT_CHARACTERS // 4)

    assert response == response_in(response, "", "sample 0")
    with pytest.raises(Invalid, match="4000"):
        pair("", response, DATA, "sample 0")
