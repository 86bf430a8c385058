"""
A reward model behind vLLM's pooling API, with a head of one or a few outputs, such as the HPSv3 family's.

vLLM's `/classify` takes a chat with images and returns the head's outputs for the last
token.  `use_activation` false turns off the sigmoid or softmax.
"""

from collections.abc import Mapping
from typing import Any

from models.core.calls import RewardCall
from models.core.contract import KnownCalls, Post, Prepared, UpstreamError
from models.core.examples import IMAGE, TEXTS
from models.core.outcomes import Reward
from models.families.openai import REWARD, RewardSettings, ServedModel, served_arguments
from models.families.openai.vlm import IMAGE_COST_TOKENS, part

JSON_TYPES = {type(None): "null", bool: "a boolean", str: "a text", list: "a list", dict: "an object"}


class OpenAiReward(ServedModel):
    """
    A reward model of that API.  Args as in `ServedModel`.

    Args:
        template: the text that follows the image; `{}` is the prompt.
        output: index of the reward in the head's outputs.
    """

    family = REWARD

    def __init__(self, *args: Any, template: str = "{}", output: int = 0, **served: Any) -> None:
        super().__init__(*args, **served)
        self._template, self._output = template, output

    def prepare(self, call: RewardCall) -> Prepared:
        """Build the request's body, with the image as a `data:` URI."""
        content = [part(call.image), part(self._template.replace("{}", call.prompt))]
        messages = [{"role": "user", "content": content}]
        return Prepared(IMAGE_COST_TOKENS, self.body(messages=messages, use_activation=False))

    def known_calls(self) -> KnownCalls:
        """Return calls for a red picture with a right and a wrong prompt."""
        return KnownCalls.of(
            *(RewardCall(IMAGE, text) for text in TEXTS),
            compared="outputs for a right and a wrong text of a picture",
        )

    async def answer(self, prepared: Prepared, post: Post) -> Reward:
        """Return the head's outputs.  Raises `UpstreamError` if they are not numbers."""
        outputs = outputs_of(await post("../classify", prepared.data))
        if self._output >= len(outputs):
            raise UpstreamError(f"returned {len(outputs)} outputs, so there is no output {self._output}")
        return Reward(outputs, self._output)


def from_settings(settings: RewardSettings) -> OpenAiReward:
    """Return the model of a table, without a request."""
    return OpenAiReward(**served_arguments(settings), template=settings.template, output=settings.output)


def outputs_of(answer: Mapping[str, Any]) -> tuple[float, ...]:
    """Return the outputs for the one chat of a request.  Raises `UpstreamError` for anything else."""
    match answer:
        case {"data": [{"probs": [_, *_] as outputs}]}:  # vLLM's name for them, with any activation
            odd = {JSON_TYPES.get(type(each), "a number") for each in outputs} - {"a number"}
            if odd:
                raise UpstreamError(f"returned {' and '.join(sorted(odd))} where its outputs are numbers")
            return tuple(map(float, outputs))
        case {"data": list(found)} if len(found) != 1:
            raise UpstreamError(f"returned the outputs of {len(found)} chats, not of one")
    raise UpstreamError("returned no outputs of a classifier")
