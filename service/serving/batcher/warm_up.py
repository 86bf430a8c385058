"""Warm-up: the first calls of a model on its device, before it serves."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from models.core.contract import Model, Prepared
from models.core.examples import changed
from models.core.messages import in_short
from models.images.image import Image
from service.core.errors import ModelFault
from service.core.settings import NotYet
from service.serving.batcher.cpu_policy import loaded_torch
from service.serving.batcher.execution_slot import ExecutionSlot, is_out_of_memory

log = logging.getLogger("scoregate.device")


async def warm_up(
    name: str, copies: Sequence[tuple[Model, ExecutionSlot]], clock: Callable[[], float]
) -> tuple[int, float, Any]:
    """
    Score the model's example twice with each copy on its slot: the first run includes one-time costs.

    Returns:
        The example's cost in tokens, and the seconds and the outcome of its last run.

    Raises:
        ModelFault: the model fails, or its outcomes differ.
        NotYet: the device has too little free memory.
    """
    first = copies[0][0]
    example, outcomes, seconds = first.prepare(first.example()), [], 0.0
    for model, slot in (*copies, *copies):
        began = clock()
        try:
            [outcome] = await slot.score(model, [example])
        except Exception as exc:
            if not is_out_of_memory(exc):
                raise
            raise NotYet(f"models.{name}: no memory is left for its test call: {in_short(exc)}") from exc
        if isinstance(outcome, Exception):
            raise ModelFault(f"{name}: the model failed on its test call: {outcome}")
        outcomes.append(outcome)
        seconds = clock() - began
    if any(changed(outcomes[0], each) for each in outcomes):
        raise ModelFault(f"{name}: the model gives its test call different numbers each time")
    return example.cost, seconds, outcome


async def measure(name: str, model: Model, slot: ExecutionSlot, calls: int) -> None:
    """
    Score *calls* calls like the example, each with a picture of its own, on a GPU, and log its memory.

    What is logged is the most that tensors took meanwhile, weights and other models' included.

    Args:
        calls: as many as a batch may hold.

    Raises:
        ModelFault: the model fails.
        NotYet: the device has too little free memory for them.
    """
    torch, device = loaded_torch(), model.info.device
    if not (device.startswith("cuda") and torch and torch.cuda.is_available()):
        return
    torch.cuda.reset_peak_memory_stats(device)
    try:
        outcomes = await slot.score(model, await slot.run(like_the_example, model, calls))
    except Exception as exc:
        if not is_out_of_memory(exc):
            raise
        raise NotYet(
            f"models.{name}: no memory is left on {device} for {calls} calls, the largest batch;"
            f" lower batch.max_items or batch.max_cost_tokens: {in_short(exc)}"
        ) from exc
    if failed := next((each for each in outcomes if isinstance(each, Exception)), None):
        raise ModelFault(f"{name}: the model failed on a batch of {calls} test calls: {failed}")
    peak = torch.cuda.max_memory_allocated(device)
    log.info("models.%s: %s: %.1f GB with the largest batch, %d calls", name, device, peak / 1e9, calls)


def like_the_example(model: Model, calls: int) -> list[Prepared]:
    """Prepare the example *calls* times, as about different pictures if it has one."""
    example: Any = model.example()
    if not hasattr(example, "image"):
        return [model.prepare(example)] * calls
    picture = example.image
    pictures = (Image.of(picture.rgb, f"{picture.digest} {number}") for number in range(calls))
    return [model.prepare(replace(example, image=each)) for each in pictures]
