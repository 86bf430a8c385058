"""A prompt alone, as distinct from instructions to judges."""

import re

from service.core.errors import Invalid
from service.core.fields import MAX_PROMPT

# Linear in the text: no part matches both a sentence's start and the white space after it, and of the images
# that a sentence names only the first is tried.
SENTENCE = r"(?:^|[.!?:;\n])[^\S\n]*"
INSTRUCTIONS = re.compile(
    "|".join(
        [
            # "Rate this image …", "Please evaluate how …"
            rf"{SENTENCE}(?:please |carefully )*"
            r"(?:rate|score|grade|evaluate|assess|judges?|compare|decide|determine) "
            r"(?:this|these|the|that|how|if|whether|each|its|both)\b",
            # "Respond in JSON", "Answer with yes or no"
            rf"{SENTENCE}(?:please |only |then |and )*"
            r"(?:respond|reply|answer|return|output|provide|give) [^.\n]{0,60}"
            r"\b(?:json|yes|no|only|number|integer|score|rating|format|letter|word|tag)s?\b",
            r"\bon a scale (?:of|from)\b",
            r"\b(?:rating|score|grade)\s+(?:from|between|of)\s+-?\d+\s*(?:to|and|-)\s*\d",
            r"^you are (?:a|an|the) [^.\n]{0,60}"
            r"\b(?:judges?|evaluator|expert|assistant|critic|grader|annotator)\b",
            # "Does this image show …?"
            r"(?:^|[.\n])(?>[^.\n]*?\b(?:this|the) (?:image|picture|photo|figure|video)\b)[^.\n]*\?",
            # {"score": …}
            r"\{\s*\"\w+\"\s*:",
        ]
    ),
    re.IGNORECASE,
)
FORMS = (
    "read are a prompt alone, with `logprobs` a question of yes or no, and a rubric of lines "
    "`- NAME: QUESTION` below a line `CORRECTNESS QUESTIONS:`"
)


def prompt(text: str) -> str:
    """
    Return *text*.

    Raises:
        Invalid: it is too long, or has instructions, whose score as a prompt would have no meaning.
    """
    if len(text) > MAX_PROMPT:
        raise Invalid(f"/messages: the prompt has more than {MAX_PROMPT} characters")
    if INSTRUCTIONS.search(text):
        raise Invalid(f"/messages: the text has instructions, as for judges; {FORMS}")
    return text
