"""The recipe of a model: all that its outputs depend on, as a digest in cache keys."""

import hashlib
import json
from dataclasses import replace
from typing import Any

from models.core.contract import ARITHMETIC, ModelInfo
from models.core.settings import NOT_IN_RECIPE, ModelSettings
from models.families.registry import packages
from service import __version__

DIGITS = 16


def with_recipe(info: ModelInfo, table: ModelSettings) -> ModelInfo:
    """Return *info* with the digest of the recipe, and the name of its GPU."""
    content = json.dumps(recipe(info, table), sort_keys=True).encode()
    digest = hashlib.sha256(content).hexdigest()[:DIGITS]
    return replace(info, recipe=digest, hardware=hardware(info.device))


def hardware(device: str) -> str:
    """Return the name of a GPU of this process; empty for other devices."""
    if not device.startswith("cuda"):
        return ""
    import torch  # loaded, since a model is on it

    return torch.cuda.get_device_name(device) if torch.cuda.is_available() else ""


def recipe(info: ModelInfo, table: ModelSettings) -> dict[str, Any]:
    """
    Return everything that an outcome depends on, apart from the call.

    An option is included unless it is declared as `NOT_IN_RECIPE`, so a missing declaration may cost a
    repeated computation, but never a wrong score.
    """
    return {
        "service": __version__,
        "arithmetic": ARITHMETIC,
        "package": packages().get(table.family, ""),
        "family": info.family,
        "id": info.id,
        "revision": info.revision,
        "files": info.files,
        "dtype": info.dtype,
        "options": options(table),
    }


def options(table: ModelSettings) -> dict[str, Any]:
    """Return the options of *table* that may change an output."""
    fields = type(table).model_fields
    outside = {name for name, field in fields.items() if NOT_IN_RECIPE in field.metadata}
    return table.model_dump(mode="json", exclude=outside)
