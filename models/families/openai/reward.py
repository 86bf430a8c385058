"""
A reward model behind vLLM's pooling API, with a head of one or a few outputs, such as the HPSv3 family's.

vLLM's `/classify` takes a chat with images and returns the head's outputs for the last
token.  `use_activation` false turns off the sigmoid or softmax.
"""

from collections.abc import Mapping
from typing import Any

from models.core.calls import RewardCall
from models.core.contract import ModelInfo, Post, Prepared, RemoteModel, UpstreamError
from models.core.examples import PICTURE, TEXTS
from models.core.outcomes import Reward
from models.families.openai import REWARD, RewardSettings
from models.families.openai.vlm import IMAGE_COST, part

KINDS = {type(None): "null", bool: "a boolean", str: "a text", list: "a list", dict: "an object"}  # of JSON


class OpenAiReward(RemoteModel):
    """
    A reward model of that API.

    Args:
        model: its name on the server.
        template: the text that follows the image; `{}` is the prompt.
        output: index of the reward in the head's outputs.
        extra_body: fields added to every request.
        id, revision: label of the scores.
    """

    def __init__(
        self,
        model: str,
        *,
        template: str = "{}",
        output: int = 0,
        extra_body: Mapping[str, Any],
        id: str = "",
        revision: str = "",
    ) -> None:
        self._model, self._extra = model, dict(extra_body)
        self._template, self._output = template, output
        self.info = ModelInfo(REWARD.role, REWARD.name, id or model, revision, "", "remote")

    def prepare(self, call: RewardCall) -> Prepared:
        """Build the request's body, with the image as a `data:` URI."""
        content = [part(call.image), part(self._template.replace("{}", call.prompt))]
        body = {
            **self._extra,
            "model": self._model,
            "messages": [{"role": "user", "content": content}],
            "use_activation": False,
        }
        return Prepared(IMAGE_COST, body)

    def opposites(self) -> tuple[RewardCall, ...]:
        """Return calls for a red picture with a right and a wrong prompt."""
        return tuple(RewardCall(PICTURE, text) for text in TEXTS)

    async def answer(self, prepared: Prepared, post: Post) -> Reward:
        """Return the head's outputs.  Raises `UpstreamError` if they are not numbers."""
        outputs = outputs_of(await post("../classify", prepared.data))
        if self._output >= len(outputs):
            raise UpstreamError(f"returned {len(outputs)} outputs, so there is no output {self._output}")
        return Reward(outputs, self._output)


def from_settings(settings: RewardSettings) -> OpenAiReward:
    """Return the model of a table, without a request."""
    return OpenAiReward(
        settings.model,
        template=settings.template,
        output=settings.output,
        extra_body=settings.extra_body,
        id=settings.id,
        revision=settings.revision,
    )


def outputs_of(answer: Mapping[str, Any]) -> tuple[float, ...]:
    """Return the outputs for the one chat of a request.  Raises `UpstreamError` for anything else."""
    match answer:
        case {"data": [{"probs": [_, *_] as outputs}]}:  # vLLM's name for them, with any activation
            odd = {KINDS.get(type(each), "a number") for each in outputs} - {"a number"}
            if odd:
                raise UpstreamError(f"returned {' and '.join(sorted(odd))} where its outputs are numbers")
            return tuple(map(float, outputs))
        case {"data": list(found)} if len(found) != 1:
            raise UpstreamError(f"returned the outputs of {len(found)} chats, not of one")
    raise UpstreamError("returned no outputs of a classifier")
