"""
Reward functions in TRL's style: `function(prompts, completions, **columns)` gives one reward for each.

TRL's own trainers write text.  Trainers that follow its convention and draw pictures hand these over as a
column, or as the completions.  TRL's old DDPOTrainer takes `scoregate.trainers.flow_grpo.t2i_score()`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from scoregate.errors import ScoregateError
from scoregate.trainers.outcomes import complete, of_one
from scoregate.trainers.reward import Reward

TRLReward = Callable[..., "list[float | None]"]


def reward_function(
    metric: str = "vqascore", *, pictures: str = "pictures", mask: bool = False, **settings: Any
) -> TRLReward:
    """
    Return a reward function; its name, which TRL logs, is that of its metrics.

    It passes `Reward.statistics` to TRL's `log_metric`, and each picture's scores by metric to `log_extra`.

    Args:
        pictures: the keyword that holds the pictures, `completions` for example.  In TRL's own trainers the
            columns `image` and `images` are the model's inputs.
        mask: return None for a picture without a score, instead of raising.  A failed request always raises.
            TRL drops a row from its group if no reward function has a number for it; before 1.6 it counted
            such a row as 0.
        settings: attributes of `Reward`.
    """
    reward = Reward(metric, **settings)

    def function(
        prompts: Sequence[Any],
        log_metric: Callable[[str, float], Any] | None = None,
        log_extra: Callable[[str, list[Any]], Any] | None = None,
        **columns: Any,
    ) -> list[float | None]:
        if pictures not in columns:
            raise TypeError(f"there is no column {pictures!r} with the pictures, but {', '.join(columns)}")
        texts = [text_of(prompt) for prompt in prompts]
        outcomes = reward.outcomes(columns[pictures], texts)
        masked = [isinstance(one, ScoregateError) and mask and of_one(one) for one in outcomes]
        scored = complete([None if out else one for one, out in zip(outcomes, masked, strict=True)])
        if log_metric is not None:
            for name, value in reward.statistics().items():
                log_metric(name, value)
        if log_extra is not None:
            for name in reward.names:
                log_extra(name, [None if one is None else one.parts[name] for one in scored])
        return [None if one is None else float(one) for one in scored]

    function.__name__ = "+".join(reward.names)
    return function


def text_of(prompt: Any) -> Any:
    """Return a prompt's text; of a conversation, what the user said last."""
    if isinstance(prompt, str):
        return prompt
    content = next(message["content"] for message in reversed(prompt) if message["role"] == "user")
    if isinstance(content, str):
        return content
    return " ".join(part["text"] for part in content if part["type"] == "text")
