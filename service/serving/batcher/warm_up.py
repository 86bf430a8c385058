"""Warm-up: the first calls of a model on its device, before it serves."""

from collections.abc import Callable, Sequence
from typing import Any

from models.core.contract import Model
from models.core.known import changed
from models.core.reason import in_short
from service.core.errors import ModelFault
from service.core.settings import NotYet
from service.serving.batcher.execution_slot import ExecutionSlot, is_out_of_memory


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
