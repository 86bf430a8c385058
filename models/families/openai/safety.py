"""
A VLM behind vLLM's API that answers whether an image is against a policy, such as ShieldGemma 2.

The call is that of VQAScore, with the operator's text as the question:

    score = 1 - P("Yes") / (P("Yes") + P("No"))
"""

from typing import Any

from models.core.calls import LikelihoodCall, RewardCall
from models.core.contract import ModelError, Post, Prepared
from models.core.outcomes import Reward
from models.families.openai import SAFETY, SafetySettings, served_arguments
from models.families.openai.vlm import OpenAiVlm

MIN_ANSWER_MASS = 0.5  # the share of "Yes" and "No" together; with less, it answers something else
NO_ANSWER = 'answers neither "Yes" nor "No" to the policy: both together have the probability'


class OpenAiSafety(OpenAiVlm):
    """
    A VLM with a policy.  Args as in `ServedModel`.

    Args:
        policy: the question whose answer "Yes" means that an image is unsafe.
    """

    family = SAFETY

    def __init__(self, *args: Any, policy: str, **served: Any) -> None:
        super().__init__(*args, **served)
        self._policy = policy

    def prepare(self, call: Any) -> Prepared:
        """Build the message with the policy after the image; a known call has a question of its own."""
        return super().prepare(
            LikelihoodCall(call.image, self._policy) if isinstance(call, RewardCall) else call
        )

    async def answer(self, prepared: Prepared, post: Post) -> Reward:
        """
        Return the score and P("Yes") among "Yes" and "No".

        Raises:
            ModelError: the model answers something else.
            UpstreamError: see `OpenAiVlm`.
        """
        found: Any = await super().answer(prepared, post)
        of_a_policy = prepared.data.parts[-1]["text"] == self._policy  # a known call is only compared
        if of_a_policy and found.label_mass < MIN_ANSWER_MASS:
            raise ModelError(f"{NO_ANSWER} {found.label_mass:.2g}")
        return Reward((1 - found.probability, found.probability))


def from_settings(settings: SafetySettings) -> OpenAiSafety:
    """Return the model of a table, without a request."""
    return OpenAiSafety(**served_arguments(settings), policy=settings.policy)
