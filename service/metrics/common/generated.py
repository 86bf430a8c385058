"""Answers that a VQA model writes, in place of likelihoods."""

import re
from collections.abc import Sequence

from models.core.calls import AnswerCall
from models.images.image import Image
from service.core.errors import Unanswered
from service.metrics.common.model_calls import Vqa

YES_OR_NO = re.compile(r"\W*(yes|no)\b", re.IGNORECASE)
MOST = 100  # characters of an answer in an error


async def written(vqa: Vqa, image: Image, questions: Sequence[str]) -> list[str]:
    """Return the VQA model's text for each question, without spaces around it.  Raises `Unanswered`."""
    answers = await vqa.answer([AnswerCall(image, question) for question in questions])
    texts = [answer.text.strip() for answer in answers]
    if not all(texts):
        raise Unanswered(f"the answer to question {texts.index('') + 1} is empty")
    return texts


async def said_yes(vqa: Vqa, image: Image, questions: Sequence[str]) -> list[bool]:
    """Return whether each text begins with "yes".  Raises `Unanswered` if one begins with neither."""
    said = []
    for number, text in enumerate(await written(vqa, image, questions), 1):
        word = YES_OR_NO.match(text)
        if word is None:
            raise Unanswered(f'the answer to question {number} is neither yes nor no: "{text[:MOST]}"')
        said.append(word[1].casefold() == "yes")
    return said
