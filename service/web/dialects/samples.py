"""
Samples of trainers of language models: prompt, response and label, one of which has a picture.

The picture is scored with the response.  If the response is the picture, its text is the label or the prompt.
"""

import re
from collections.abc import Iterator
from typing import Any

from service.core.errors import Invalid
from service.web.dialects.wire import ADDRESS, ImageSource, image_source, is_image, text

# A placeholder of a picture, which processors repeat, and tokens that end a turn.
PLACEHOLDER = r"<\|[^<>|]{1,64}\|>|<image>|<img>|<image_soft_token>|<IMG_CONTEXT>|\[IMG\]"
REPEATED_PLACEHOLDER = re.compile(rf"({PLACEHOLDER})(?:\1)+")
LEADING_TOKENS = re.compile(rf"(?:{PLACEHOLDER}|<s>|<bos>|\s)*")
LAST_TOKEN = re.compile(r"(?:<\|[^<>|]{1,64}\|>|</s>|<eos>|<end_of_turn>)\Z")
MAX_TOKEN_CHARACTERS = 68  # characters of a token
MAX_CUT_CHARACTERS = 2**20  # characters, of which 0.1 s may be tokens at the end


def pair(prompt: Any, response: Any, label: Any, place: str) -> tuple[str, ImageSource]:
    """
    Return the text and the picture of a sample.

    Args:
        prompt: a text, or a list of messages, whose contents may have parts.
        label: a text or a picture, which may be an address.
        place: of the sample, for errors.

    Raises:
        Invalid: there is no picture or no text, or there are several pictures.
    """
    texts = list[Any]()
    images = [response] if is_image(response) else []
    for each in parts(prompt):
        (images if is_image(each) else texts).append(each)
    address = isinstance(label, str) and ADDRESS.match(label)
    (images if is_image(label) or address else texts).append(label)
    if len(images) != 1:
        raise Invalid(f"{place}: has {len(images)} pictures in prompt, label and response; one is scored")
    if not is_image(response):
        return text(response, place), image_source(images[0], place)
    if not any(texts):
        raise Invalid(f"{place}: the response is a picture, and neither label nor prompt is a text")
    return text([each for each in texts if each][-1], place), image_source(response, place)


def parts(prompt: Any) -> Iterator[Any]:
    """Yield the parts of all messages of a prompt, or a prompt that is a text."""
    for message in prompt if isinstance(prompt, list) else [prompt]:
        content = message.get("content", message) if isinstance(message, dict) else message
        yield from content if isinstance(content, list) else [content]


def response_in(query: str, prompt: str, place: str) -> str:
    """
    Return what follows *prompt* in *query*, without the tokens that end a turn.

    Raises:
        Invalid: the query does not begin with the prompt, apart from the number of a picture's placeholders.
    """
    query, prompt = REPEATED_PLACEHOLDER.sub(r"\1", query), REPEATED_PLACEHOLDER.sub(r"\1", prompt)
    start = query.find(prompt)
    if start < 0 or not LEADING_TOKENS.fullmatch(query, 0, start):
        raise Invalid(f"{place}: the query does not begin with its prompt")
    return ended(query[start + len(prompt) :])


def ended(said: str) -> str:
    """
    Return a text without the white space and the tokens at its end.

    One of more than `MAX_CUT_CHARACTERS` characters stays whole: it is a picture, or it is refused.
    """
    end = len(said)
    if end > MAX_CUT_CHARACTERS:
        return said
    while end:
        if said[end - 1].isspace():
            end -= 1
        elif last := LAST_TOKEN.search(said, max(0, end - MAX_TOKEN_CHARACTERS), end):
            end = last.start()
        else:
            break
    return said[:end]
