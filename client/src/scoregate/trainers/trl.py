"""
Reward functions in TRL's style: `function(prompts, completions, **columns)` gives one reward for each.

TRL's own trainers write text.  Trainers that follow its convention and draw pictures hand these over as a
column, or as the completions.  TRL's old DDPOTrainer takes `scoregate.trainers.flow_grpo.t2i_score()`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from scoregate.errors import ScoregateError
from scoregate.trainers.outcomes import ScoredOrError, complete, of_one
from scoregate.trainers.reward import Reward

Log = Callable[[str, Any], Any]


def reward_function(
    metric: str = "vqascore",
    *,
    images: str = "pictures",
    domains: str = "domain",
    mask: bool = False,
    asynchronous: bool = False,
    **settings: Any,
) -> Callable[..., Any]:
    """
    Return a reward function; its name, which TRL logs, is that of its metrics.  It can be pickled.

    It passes `Reward.statistics` to TRL's `log_metric`, and each picture's scores by metric to `log_extra`.

    Args:
        images: the keyword that holds the pictures, `completions` for example.  In TRL's own trainers the
            columns `image` and `images` are the model's inputs.
        domains: the keyword that holds the domains, if *settings* have `by_domain`.
        mask: return None for a picture without a score, instead of raising.  A failed request always raises.
            TRL drops a row from its group if no reward function has a number for it; before 1.6 it counted
            such a row as 0.
        asynchronous: return a coroutine function, which TRL awaits together with others.
        settings: attributes of `Reward`.
    """
    reward = Reward(metric, **settings)
    named = images, domains if reward.by_domain else ""
    function: Callable[..., Any] = partial(rewards_soon if asynchronous else rewards, reward, named, mask)
    function.__name__ = "+".join(reward.names)
    return function


def rewards(
    reward: Reward,
    named: tuple[str, str],
    mask: bool,
    /,  # a column may have any of these names
    prompts: Sequence[Any],
    log_metric: Log | None = None,
    log_extra: Log | None = None,
    **columns: Any,
) -> list[float | None]:
    """Return a reward for each prompt, as TRL calls it."""
    images, domains = columns_of(columns, *named)
    outcomes = reward.outcomes(images, list(map(text_of, prompts)), domains=domains)
    return logged(reward, mask, outcomes, log_metric, log_extra)


async def rewards_soon(
    reward: Reward,
    named: tuple[str, str],
    mask: bool,
    /,  # a column may have any of these names
    prompts: Sequence[Any],
    log_metric: Log | None = None,
    log_extra: Log | None = None,
    **columns: Any,
) -> list[float | None]:
    """Return a reward for each prompt, awaited."""
    images, domains = columns_of(columns, *named)
    outcomes = await reward.outcomes_soon(images, list(map(text_of, prompts)), domains)
    return logged(reward, mask, outcomes, log_metric, log_extra)


def columns_of(columns: Mapping[str, Any], images: str, domains: str) -> tuple[Any, Any]:
    """Return the two columns, None for an empty name.  Raises `TypeError` for a missing one."""
    for name, what in ((images, "pictures"), (domains, "domains")):
        if name and name not in columns:
            raise TypeError(f"there is no column {name!r} with the {what}, but {', '.join(columns)}")
    return columns[images], columns.get(domains)


def logged(
    reward: Reward,
    mask: bool,
    outcomes: Sequence[ScoredOrError],
    log_metric: Log | None,
    log_extra: Log | None,
) -> list[float | None]:
    """Return the rewards among *outcomes*, after TRL's log got their figures.  Raises `NoScoreError`."""
    masked = [isinstance(one, ScoregateError) and mask and of_one(one) for one in outcomes]
    scored = complete([None if out else one for one, out in zip(outcomes, masked, strict=True)])
    if log_metric is not None:
        for name, value in reward.statistics().items():
            log_metric(name, value)
    if log_extra is not None:
        for name in reward.names:
            log_extra(name, [None if one is None else one.parts.get(name) for one in scored])
    return [None if one is None else float(one) for one in scored]


def text_of(prompt: Any) -> Any:
    """Return a prompt's text; of a conversation, what the user said last."""
    if isinstance(prompt, str):
        return prompt
    content = next(message["content"] for message in reversed(prompt) if message["role"] == "user")
    if isinstance(content, str):
        return content
    return " ".join(part["text"] for part in content if part["type"] == "text")
