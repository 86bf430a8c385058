"""Memory on a GPU, predicted without one."""

from typing import Any

from models.core.family import Memory
from models.families.registry import families


def memory(family: str, **table: Any) -> Memory | None:
    """Return the memory of a model with the settings *table*, or None where there is no GPU."""
    declared = families()[family]
    settings = declared.settings(family=family, **{"role": declared.role, "device": "cuda", **table})
    return declared.plan("left", settings).memory
