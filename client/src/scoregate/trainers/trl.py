"""
Reward functions in TRL's style: `function(prompts, completions, **columns)` gives one reward for each.

TRL's own trainers write text.  Trainers that follow its convention and draw pictures hand these over as a
column, or as the completions.  TRL's old DDPOTrainer takes `scoregate.trainers.flow_grpo.t2i_score()`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from scoregate.errors import ScoregateError
from scoregate.trainers.reward import Reward

TRLReward = Callable[..., "list[float | None]"]


def reward_function(
    metric: str = "vqascore", *, pictures: str = "images", mask: bool = False, **settings: Any
) -> TRLReward:
    """
    A reward function; its name, which TRL logs, is the metric's.

    Args:
        pictures: the keyword that holds the pictures, `completions` for example.
        mask: give None for a picture without a score, and do not raise.  TRL leaves None out of its sum over
            reward functions, which is the same as a 0 there.  So this is right only for a trainer that drops
            such samples.
        settings: those of `Reward`.
    """
    reward = Reward(metric, **settings)

    def function(prompts: Sequence[Any], **columns: Any) -> list[float | None]:
        images, texts = columns[pictures], [text_of(prompt) for prompt in prompts]
        if mask:
            outcomes = reward.outcomes(images, texts)
            return [None if isinstance(one, ScoregateError) else one for one in outcomes]
        return list(reward(images, texts))

    function.__name__ = metric
    return function


def text_of(prompt: Any) -> Any:
    """A prompt's text; of a conversation, what the user said last."""
    if isinstance(prompt, str):
        return prompt
    content = next(message["content"] for message in reversed(prompt) if message["role"] == "user")
    if isinstance(content, str):
        return content
    return " ".join(part["text"] for part in content if part["type"] == "text")
