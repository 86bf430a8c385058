"""
A multimodal reranker behind vLLM's `POST /v1/score`, such as Qwen3-VL-Reranker or jina-reranker-m0.

A request has one pair: lists of images and texts are split otherwise by older versions.  `use_activation` is
in each request, since its default has changed between versions.
"""

from collections.abc import Mapping
from math import exp, isfinite
from typing import Any, Literal

from models.core.calls import RerankCall
from models.core.contract import KnownCalls, Opposite, Post, Prepared, UpstreamError
from models.core.examples import IMAGE, OTHER_IMAGE, TEXTS
from models.core.outcomes import Reward
from models.families.openai import RERANKER, RerankerSettings, ServedModel, served_arguments
from models.families.openai.vlm import IMAGE_COST_TOKENS, part

MIN_SCORE_DIFFERENCE = 0.01  # a wrong template scores every pair about 0.5
MAX_SCORE_DRIFT = 1e-3
SAME_IMAGES = (
    "gives a red and a blue picture the same score for one text; a vLLM does that with a wrong chat "
    "template, without the hf_overrides of the model, or where it drops pictures"
)
NO_INSTRUCTION = "gives a known pair the same score with and without its instruction: the server ignores it"
NO_ACTIVATION = "ignores use_activation: its logit is no logit of its score"
ACTIVATION_TOLERANCE = 0.02  # bfloat16 changes a score by less


class OpenAiReranker(ServedModel):
    """
    A reranker of that API.  Args as in `ServedModel`.

    Args:
        query: which of the two is the query; the other one is the document.
        instruction: of the task; empty for the model's own.
    """

    family = RERANKER

    def __init__(
        self, *args: Any, query: Literal["text", "image"] = "text", instruction: str = "", **served: Any
    ) -> None:
        super().__init__(*args, **served)
        self._query, self._instruction = query, instruction
        self._activates = False  # whether the server was seen to read `use_activation`

    def prepare(self, call: RerankCall) -> Prepared:
        """Build the request's body, with the image as a `data:` URI."""
        return Prepared(IMAGE_COST_TOKENS, self._body(call))

    def _body(self, call: RerankCall) -> dict[str, Any]:
        sides: list[Any] = [call.prompt, {"content": [part(call.image)]}]
        query, document = sides if self._query == "text" else reversed(sides)
        told = {"instruction": self._instruction} if self._instruction and call.instructed else {}
        return self.body(data_1=query, data_2=document, use_activation=call.activated, **told)

    def known_calls(self) -> KnownCalls:
        """Return a text with a right and a wrong picture, and the right one without instruction."""
        opposites = [Opposite(RerankCall(OTHER_IMAGE, TEXTS[0]), SAME_IMAGES, MIN_SCORE_DIFFERENCE)]
        compared = "scores of a red and a blue picture"
        if self._instruction:
            compared += ", and with and without the instruction,"
            # A sure model's score may change little with its instruction.
            plain = RerankCall(IMAGE, TEXTS[0], instructed=False)
            opposites.append(Opposite(plain, NO_INSTRUCTION, MAX_SCORE_DRIFT))
        first = RerankCall(IMAGE, TEXTS[0])
        return KnownCalls(first, tuple(opposites), compared, drift=MAX_SCORE_DRIFT)

    async def answer(self, prepared: Prepared, post: Post) -> Reward:
        """
        Return the score of the pair.

        Before the first logit its score is fetched, too: a server that ignores `use_activation` returns it
        for both.

        Raises:
            UpstreamError: the response has no score of one pair, or one outside its range.
        """
        body: dict[str, Any] = prepared.data
        score = score_of(await post("score", body))
        if body["use_activation"]:
            if not 0 <= score <= 1:
                raise UpstreamError(f"returned the score {score}, which is not between 0 and 1")
        elif not self._activates:
            activated = score_of(await post("score", {**body, "use_activation": True}))
            # A score near 0.66 is about its own sigmoid, so that equal ones show nothing.
            if activated == score or abs(activated - sigmoid(score)) > ACTIVATION_TOLERANCE:
                raise UpstreamError(NO_ACTIVATION)
            self._activates = True
        return Reward((score,))


def score_of(answer: Mapping[str, Any]) -> float:
    """Return the score of the one pair of a request.  Raises `UpstreamError` for anything else."""
    match answer:
        case {"data": [{"score": int() | float() as score}]} if type(score) is not bool and isfinite(score):
            return float(score)
        case {"data": [*rows]} if len(rows) != 1:
            raise UpstreamError(f"returned the scores of {len(rows)} pairs, not of one")
    raise UpstreamError("returned no score of a pair")


def sigmoid(logit: float) -> float:
    """Return the probability of a logit, without overflow."""
    small = exp(-abs(logit))
    return 1 / (1 + small) if logit >= 0 else small / (1 + small)


def from_settings(settings: RerankerSettings) -> OpenAiReranker:
    """Return the model of a table, without a request."""
    return OpenAiReranker(
        **served_arguments(settings), query=settings.query, instruction=settings.instruction
    )
