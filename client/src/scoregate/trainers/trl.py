"""
Reward functions in TRL's style: `function(prompts, completions, **columns)` gives one reward for each.

TRL's own trainers write text.  Trainers that follow its convention and draw pictures hand these over as a
column, or as the completions.  TRL's old DDPOTrainer takes `scoregate.trainers.flow_grpo.t2i_score()`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from scoregate.errors import ScoregateError
from scoregate.trainers.reward import Reward, complete, of_one

TRLReward = Callable[..., "list[float | None]"]


def reward_function(
    metric: str = "vqascore", *, pictures: str = "pictures", mask: bool = False, **settings: Any
) -> TRLReward:
    """
    Return a reward function; its name, which TRL logs, is the metric's.

    Args:
        pictures: the keyword that holds the pictures, `completions` for example.  In TRL's own trainers the
            columns `image` and `images` are the model's inputs.
        mask: return None for a picture without a score, instead of raising.  A failed request always raises.
            TRL drops a row from its group if no reward function has a number for it; before 1.6 it counted
            such a row as 0.
        settings: attributes of `Reward`.
    """
    reward = Reward(metric, **settings)

    def function(prompts: Sequence[Any], **columns: Any) -> list[float | None]:
        if pictures not in columns:
            raise TypeError(f"there is no column {pictures!r} with the pictures, but {', '.join(columns)}")
        texts = [text_of(prompt) for prompt in prompts]
        outcomes: list[float | ScoregateError | None] = [*reward.outcomes(columns[pictures], texts)]
        if mask:
            outcomes = [None if isinstance(one, ScoregateError) and of_one(one) else one for one in outcomes]
        return complete(outcomes)

    function.__name__ = metric
    return function


def text_of(prompt: Any) -> Any:
    """Return a prompt's text; of a conversation, what the user said last."""
    if isinstance(prompt, str):
        return prompt
    content = next(message["content"] for message in reversed(prompt) if message["role"] == "user")
    if isinstance(content, str):
        return content
    return " ".join(part["text"] for part in content if part["type"] == "text")
