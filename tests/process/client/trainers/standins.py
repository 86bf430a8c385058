"""
Stand-ins for trainers: they call a reward exactly as the trainer does, and do with it what the trainer does.

None of the trainers can be installed here.  Each stand-in names the file whose behaviour it has.
"""

import asyncio
import inspect
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import PIL.Image
import torch

# --- flow_grpo: flow_grpo/rewards.py (multi_score), scripts/train_sd3.py ---------------------------


def multi_score(
    device: str, weights: Mapping[str, float], score_functions: Mapping[str, Any]
) -> Callable[..., Any]:
    """A weighted sum of rewards; `device` is passed only where the factory's code has that name."""
    made = {
        name: factory(device) if "device" in factory.__code__.co_varnames else factory()
        for name, factory in ((name, score_functions[name]) for name in weights)
    }

    def function(
        images: Any, prompts: Any, metadata: Any, only_strict: bool = True
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        total: list[Any] = []
        details = {}
        for name, weight in weights.items():
            scores, _ = made[name](images, prompts, metadata)
            details[name] = scores
            weighted = [weight * score for score in scores]
            total = [a + b for a, b in zip(total, weighted, strict=True)] if total else weighted
        return {**details, "avg": total}, {}

    return function


def rollout(
    reward: Callable[..., Any], ranks: Sequence[Sequence[tuple[torch.Tensor, list[str]]]]
) -> torch.Tensor:
    """The gathered rewards of all ranks; a rank has eight threads, and submits each of its batches."""
    gathered = []
    for batches in ranks:
        with ThreadPoolExecutor(max_workers=8) as executor:
            futures = [
                executor.submit(reward, images, prompts, [{}] * len(prompts), only_strict=True)
                for images, prompts in batches
            ]
            gathered += [torch.as_tensor(future.result()[0]["avg"]).float() for future in futures]
    return torch.cat(gathered)


def advantages(rewards: torch.Tensor, prompts: Sequence[str]) -> torch.Tensor:
    """Normalised within each prompt's group, wherever its pictures were scored."""
    values, names = torch.zeros_like(rewards), np.array(prompts)
    for prompt in set(prompts):
        group = torch.from_numpy(names == prompt)
        values[group] = (rewards[group] - rewards[group].mean()) / (rewards[group].std() + 1e-4)
    return values


def evaluated(scores: Sequence[float]) -> float:
    """The mean that is logged at an evaluation."""
    values = np.array(scores)
    return float(values[values != -10].mean())


# --- verl-omni: verl_omni/reward_loop/reward_manager/multi.py --------------------------------------


class MultiVisualRewardManager:
    """One function of `reward.reward_functions`; its other keys are handed to it by name."""

    def __init__(self, function: Callable[..., Any], *, required: bool = False, **extra: Any) -> None:
        self.function, self.required, self.extra = function, required, extra

    async def run_single(self, image: torch.Tensor, prompt: str) -> float:
        given = {
            "data_source": "x",
            "solution_image": image,
            "ground_truth": prompt,
            "extra_info": {},
            **self.extra,
        }
        parameters = inspect.signature(self.function).parameters
        if not any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
            given = {name: value for name, value in given.items() if name in parameters}
        try:
            assert inspect.iscoroutinefunction(self.function)
            return float((await self.function(**given))["score"])
        except Exception as exc:
            if self.required:
                raise RuntimeError(f"Required sub-reward failed: {exc}") from exc
            return 0.0

    async def run(self, samples: Sequence[tuple[torch.Tensor, str]]) -> list[float]:
        """All samples of a step at once."""
        return await asyncio.gather(*(self.run_single(*sample) for sample in samples))


# --- Flow-Factory: rewards/abc.py, registry.py, reward_processor.py, utils/image.py -----------------


class PointwiseRewardModel:
    required_fields: tuple[str, ...] = ()
    use_tensor_inputs = False

    def __init__(self, config: Any, accelerator: Any) -> None:
        self.config, self.accelerator = config, accelerator
        self.device, self.dtype, self.model = accelerator.device, config.dtype, None


class GroupwiseRewardModel(PointwiseRewardModel):
    """Is called once for each group, with all of its samples."""


@dataclass
class RewardModelOutput:
    rewards: Any
    extra_info: Any = None


class RewardArguments:
    """What a reward's YAML says; unknown keys are kept, and read as attributes."""

    def __init__(self, **extra: Any) -> None:
        self.dtype, self.batch_size = torch.bfloat16, extra.pop("batch_size", 16)
        self.extra_kwargs = extra

    def __getattr__(self, name: str) -> Any:
        if name in self.__dict__.get("extra_kwargs", {}):
            return self.extra_kwargs[name]
        raise AttributeError(name)


def flow_factory() -> dict[str, ModuleType]:
    """The modules that a reward model imports."""
    package, rewards, abc = (ModuleType(f"flow_factory{name}") for name in ("", ".rewards", ".rewards.abc"))
    for each in (PointwiseRewardModel, GroupwiseRewardModel, RewardModelOutput):
        setattr(abc, each.__name__, each)
    return {module.__name__: module for module in (package, rewards, abc)}


def shown(images: Sequence[torch.Tensor], model: Any) -> Sequence[Any]:
    """
    The pictures of a batch as the model is given them.

    Samples hold tensors of CHW.  For a model that wants PIL images, one range of values is guessed for all of
    them.  A single NaN makes that [0, 255].
    """
    if model.use_tensor_inputs:
        return images
    batch = torch.stack(list(images))
    scale = 255 if batch.max() <= 1 else 1
    pixels = (batch * scale).round().clamp(0, 255).to(torch.uint8).movedim(1, -1)
    return [PIL.Image.fromarray(one.numpy()) for one in pixels]


def pointwise_rewards(model: Any, samples: Sequence[Mapping[str, Any]]) -> torch.Tensor:
    """The rewards of a rank's samples, batch by batch, as the processor computes them."""
    assert isinstance(model, PointwiseRewardModel)
    rewards = []
    for start in range(0, len(samples), model.config.batch_size):
        batch = samples[start : start + model.config.batch_size]
        fields = {name: [sample[name] for sample in batch] for name in batch[0]}
        fields["image"] = shown(fields["image"], model)
        if "condition_images" in fields:
            fields["condition_images"] = [shown(each, model) for each in fields["condition_images"]]
        output = model(**fields)
        rewards.append(torch.as_tensor(output.rewards, device="cpu", dtype=torch.float32))
    return torch.cat(rewards)


# --- TRL since 1.6: trainer/grpo_trainer.py (_generate_and_score_completions, _calculate_rewards) ------


def trl_rewards(
    functions: Sequence[Any], inputs: Sequence[Mapping[str, Any]], completions: Sequence[Any]
) -> torch.Tensor:
    """The rewards that TRL trains with: None is left out of the sum, and a row of nothing else is NaN."""
    if {"image", "images"} & inputs[0].keys() and isinstance(inputs[0]["prompt"], str):
        raise ValueError("Multimodal training requires conversational prompts.")
    table = torch.zeros(len(inputs), len(functions))
    columns = {
        name: [each[name] for each in inputs] for name in inputs[0] if name not in ("prompt", "completion")
    }
    for index, function in enumerate(functions):
        assert function.__name__
        scores = function(
            prompts=[each["prompt"] for each in inputs],
            completions=completions,
            completion_ids=[],
            **columns,
            trainer_state=None,
            log_extra=None,
            log_metric=None,
        )
        table[:, index] = torch.tensor(
            [torch.nan if one is None else one for one in scores], dtype=torch.float32
        )
    return table.nansum(dim=1).where(~table.isnan().all(dim=1), torch.nan)


def trl_advantages(rewards: torch.Tensor) -> torch.Tensor:
    """Those of one group: a row without a reward is left out of it, and has none."""
    there = rewards[~rewards.isnan()]
    return ((rewards - there.mean()) / (there.std() + 1e-4)).nan_to_num(0.0)
