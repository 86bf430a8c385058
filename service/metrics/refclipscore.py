"""
RefCLIPScore (Hessel et al. 2021): CLIPScore, and the likeness of the prompt to reference texts.

CLIPScore for captions of which others are known: the harmonic mean of a, the picture's score, and b, the
likeness of the prompt to the closest of the `reference_texts`, 1 to 64 of them, usually an item's own:

    score = 2ab / (a + b)
    a     = 2.5 · max(cos(E_image, E_prompt), 0)
    b     = max(max over the texts t of cos(E_prompt, E_t), 0)

The largest score is 10/7. If a and b are 0, so is the score, where the released code has NaN; it does not
bound b either. Without texts the error is `invalid`. `prefix`: before the prompt and each text; `null` for
none.
"""

from collections.abc import Iterator
from typing import Annotated

import numpy as np
from pydantic import Field
from typing_extensions import TypedDict

from models.core.calls import ImageCall, TextCall
from service.core.errors import Invalid
from service.core.fields import Prompt
from service.metrics.common.contract import Item, Metric, MetricOptions, Score
from service.metrics.common.model_calls import PROMPT_CUT_NOTE, ModelCalls
from service.metrics.common.texts import prefixed
from service.observability.notes import Code, Note
from service.serving.admission import Demand

ROLE = "clip"
MAX_TEXTS = 64
FACTOR = 2.5  # factor on the cosine of image and prompt
CUT_TEXT = Note(
    Code.PROMPT_TRUNCATED, "a reference text was cut at CLIP's context length, or at <|endoftext|> in it"
)


class RefClipScoreOptions(MetricOptions):
    """
    Options of `refclipscore`.

    Attributes:
        reference_texts: other captions of what the picture shows.
        prefix: before the prompt and each of these texts, followed by a space; the paper's by default.
    """

    reference_texts: Annotated[list[Prompt], Field(min_length=1, max_length=MAX_TEXTS)] | None = None
    prefix: Prompt | None = "A photo depicts"

    def texts(self, prompt: str) -> Iterator[str]:
        """Yield the texts that CLIP gets, that of the prompt first."""
        return (prefixed(self.prefix, text) for text in (prompt, *(self.reference_texts or ())))


class RefClipScoreDetails(TypedDict):
    """
    Details of `refclipscore`.

    Attributes:
        image_score: 2.5 * max(cos(E_image, E_prompt), 0).
        text_score: the largest cosine of the prompt with a reference text, at least 0.
        cosines: with each of these texts, in order.
    """

    image_score: float
    text_score: float
    cosines: list[float]


async def refclipscore(item: Item, models: ModelCalls, options: RefClipScoreOptions) -> Score:
    """
    Return the harmonic mean of CLIPScore and the largest cosine of the prompt with a reference text.

    Neither is less than 0, as in the paper's section 3.  The released code does not bound the cosine, and has
    NaN where both are 0; here the score is 0 then.

    Raises:
        Invalid: there are no reference texts.
    """
    if not options.reference_texts:
        raise Invalid("refclipscore needs the option reference_texts, and there is none")
    calls = [ImageCall(item.image), *map(TextCall, options.texts(item.prompt))]
    image, prompt, *texts = await models.ask(ROLE, calls)
    seen, read, *others = (each.vector.astype(float) for each in (image, prompt, *texts))
    cosines = [float(np.dot(read, other)) for other in others]
    of_image, of_text = FACTOR * max(0.0, float(np.dot(seen, read))), max(0.0, *cosines)
    total = of_image + of_text
    details: RefClipScoreDetails = {"image_score": of_image, "text_score": of_text, "cosines": cosines}
    cuts = {PROMPT_CUT_NOTE: prompt.truncated, CUT_TEXT: any(text.truncated for text in texts)}
    warnings = tuple(note for note, cut in cuts.items() if cut)
    return Score(2 * of_image * of_text / total if total else 0.0, details, warnings=warnings)


def demand_of(prompt: str, options: RefClipScoreOptions) -> dict[str, Demand]:
    """Return one call for the image, the prompt and each reference text."""
    texts = [*options.texts(prompt)]
    return {ROLE: Demand(1 + len(texts), sum(map(len, texts)))}


metric = Metric(
    "refclipscore",
    refclipscore,
    options=RefClipScoreOptions,
    details=RefClipScoreDetails,
    roles=(ROLE,),
    demand_of=demand_of,
    range=(0, 2 * FACTOR / (FACTOR + 1)),
    formula="2ab/(a + b); a = 2.5·max(cos(E_image, E_prompt), 0), b = max(cos(E_prompt, E_text), 0)",
    paper="Hessel et al. 2021, arXiv 2104.08718",
    needs="the option reference_texts",
)
