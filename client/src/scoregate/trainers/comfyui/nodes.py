"""Nodes that score a batch of pictures, and that filter it."""

from __future__ import annotations

from functools import cache
from math import nan
from typing import Any

from scoregate.client import Client
from scoregate.decisions.decision import Decisions
from scoregate.errors import BadImageError, NoScoreError, ScoregateError
from scoregate.items import Item
from scoregate.policy import STRICTEST_FIRST
from scoregate.text import fixed
from scoregate.trainers.images import items_of
from scoregate.trainers.outcomes import ScoredOrError, best_first, complete, reaching
from scoregate.trainers.reward import Reward

COLOURS = 3  # the axis of ComfyUI's IMAGE: BHWC, floats in [0, 1]

reward = cache(Reward)  # one for each set of settings
connected = cache(Client)  # one client counts the failures in a row


def inputs(optional: dict[str, Any] | None = None, **required: Any) -> dict[str, dict[str, Any]]:
    """Return the inputs of both nodes, and those given.  No key: workflows are saved in the pictures."""
    return {
        "required": {
            "images": ("IMAGE",),
            "prompt": ("STRING", {"multiline": True, "forceInput": True}),
            "metric": ("STRING", {"default": "vqascore"}),
            **required,
        },
        "optional": {
            "url": ("STRING", {"default": "", "tooltip": "empty: SCOREGATE_BASE_URL"}),
            **(optional or {}),
        },
    }


def table(outcomes: list[ScoredOrError]) -> str:
    """Return a line for each picture, for a node that shows text."""
    shown = [one.code if isinstance(one, ScoregateError) else fixed(one) for one in outcomes]
    return "\n".join(f"{index}: {text}" for index, text in enumerate(shown))


class ScoregateNode:
    """
    Both nodes, which ask the service about a batch.

    Attributes:
        timeout_s: of a batch.
    """

    CATEGORY = "scoregate"
    timeout_s = 60.0

    def scorer(self, metric: str, url: str) -> Reward:
        """Return the reward, of interactive priority."""
        settings: dict[str, Any] = {"base_url": url or None, "timeout_s": self.timeout_s}
        return reward(metric, logit=False, priority="interactive", **settings)

    def outcomes_of(self, images: Any, prompt: str, metric: str, url: str) -> list[ScoredOrError]:
        """Return the score of each picture, or its error."""
        prompts = [prompt] * len(images)
        return self.scorer(metric, url).outcomes(images, prompts, channels=COLOURS, trains=False)

    def decisions_of(
        self, images: Any, prompt: str, policy: str, count: int, fallback: Any, url: str
    ) -> Decisions:
        """
        Return the decision about each picture; without an answer of the service it is *fallback*.

        More pictures than *count* are a group: the policy's `rank_by` chooses among them.
        """
        found = items_of(images, [prompt] * len(images), COLOURS)
        group = "images" if count < len(found) else None
        items = [
            Item(prompt=prompt, image=b"" if isinstance(one, BadImageError) else one.image, group=group)
            for one in found
        ]
        client = connected(url or None, timeout_s=self.timeout_s)
        return client.decide_items(items, policy, keep=count, fallback=fallback)


class ScoregateScore(ScoregateNode):
    """How well each picture shows the prompt; a picture without a score is an error."""

    FUNCTION = "score"
    RETURN_TYPES = ("FLOAT", "STRING")
    RETURN_NAMES = ("scores", "text")
    OUTPUT_IS_LIST = (True, False)

    @classmethod
    def INPUT_TYPES(cls) -> dict[str, dict[str, Any]]:
        return inputs()

    def score(self, images: Any, prompt: str, metric: str, url: str = "") -> tuple[list[float], str]:
        outcomes = self.outcomes_of(images, prompt, metric, url)
        return [float(score) for score in complete(outcomes)], table(outcomes)


class ScoregateFilter(ScoregateNode):
    """
    The pictures that reach the threshold, best first; without any, the workflow stops.

    With a policy it decides in place of metric, threshold and on_error, and the pictures stay in order.
    """

    FUNCTION = "filter"
    RETURN_TYPES = ("IMAGE", "FLOAT", "STRING")
    RETURN_NAMES = ("images", "scores", "text")
    OUTPUT_IS_LIST = (False, True, False)

    @classmethod
    def INPUT_TYPES(cls) -> dict[str, dict[str, Any]]:
        return inputs(
            {
                "policy": ("STRING", {"default": "", "tooltip": "of the service; empty: the threshold"}),
                "fallback": ([*STRICTEST_FIRST], {"tooltip": "with a policy: if the service is down"}),
            },
            threshold=("FLOAT", {"default": 0.5, "min": -100.0, "max": 100.0, "step": 0.01}),
            count=("INT", {"default": 1, "min": 1, "max": 4096, "tooltip": "most pictures that pass"}),
            on_error=(["raise", "block"], {"tooltip": "block: a picture without a score does not pass"}),
        )

    def filter(
        self,
        images: Any,
        prompt: str,
        metric: str,
        threshold: float,
        count: int,
        on_error: str = "raise",
        url: str = "",
        policy: str = "",
        fallback: str = "reject",
    ) -> tuple[Any, list[float], str]:
        if policy:
            decisions = self.decisions_of(images, prompt, policy, count, fallback, url)
            return self.decided(images, decisions, metric)
        outcomes = self.outcomes_of(images, prompt, metric, url)
        lower_is_better = self.scorer(metric, url).lower_is_better
        reached = reaching(outcomes, threshold, lower_is_better)
        failed = [one for one in reached if isinstance(one, ScoregateError)]
        if failed and (on_error == "raise" or len(failed) == len(reached)):
            raise NoScoreError.among(reached)
        order = best_first(outcomes, lower_is_better)
        passed = [index for index in order if reached[index] is True][:count]
        if not passed:
            raise stop(f"no picture reaches {threshold:g}\n{table(outcomes)}")
        return images[passed], [order[index] for index in passed], table(outcomes)

    def decided(self, images: Any, decisions: Decisions, metric: str) -> tuple[Any, list[float], str]:
        text = "\n".join(f"{one.index}: {one.decision}: {one.because}" for one in decisions)
        if not decisions.accepted:
            raise stop(f"no picture is accepted\n{text}")
        scores = [one.scores.get(metric, nan) for one in decisions.accepted]
        return images[[one.index for one in decisions.accepted]], scores, text


def stop(reason: str) -> BaseException:
    """Return the exception that ends a workflow quietly in ComfyUI, which has no empty batch."""
    try:
        from comfy.model_management import (  # type: ignore[import-not-found]
            InterruptProcessingException,
        )
    except ImportError:
        return ScoregateError(reason, code="none_passed")
    print(f"scoregate: {reason}")
    interrupt: BaseException = InterruptProcessingException()
    return interrupt


NODE_CLASS_MAPPINGS = {"ScoregateScore": ScoregateScore, "ScoregateFilter": ScoregateFilter}
NODE_DISPLAY_NAME_MAPPINGS = {"ScoregateScore": "Scoregate Score", "ScoregateFilter": "Scoregate Filter"}
