"""The recipe of a model: what its answers depend on, as a digest that names it wherever they are kept."""

import hashlib
import json
from dataclasses import replace
from typing import Any

from models.core.arithmetic import ARITHMETIC
from models.core.contract import ModelInfo
from models.core.settings import NOT_IN_RECIPE, ModelSettings
from models.families.registry import packages
from service import __version__

DIGITS = 16


def with_recipe(info: ModelInfo, table: ModelSettings) -> ModelInfo:
    """The *info* of the model of *table*, with the digest of its recipe."""
    content = json.dumps(recipe(info, table), sort_keys=True).encode()
    return replace(info, recipe=hashlib.sha256(content).hexdigest()[:DIGITS])


def recipe(info: ModelInfo, table: ModelSettings) -> dict[str, Any]:
    """
    Everything that an outcome depends on beside the call.

    An option is part of it unless its declaration says otherwise, so one that is forgotten costs a
    repeated computation and never a wrong score.
    """
    return {
        "service": __version__,
        "arithmetic": ARITHMETIC,
        "package": packages().get(table.family, ""),
        "family": info.family,
        "id": info.id,
        "revision": info.revision,
        "dtype": info.dtype,
        "options": options(table),
    }


def options(table: ModelSettings) -> dict[str, Any]:
    """The options of *table* that may change a number."""
    fields = type(table).model_fields
    outside = {name for name, field in fields.items() if NOT_IN_RECIPE in field.metadata}
    return table.model_dump(mode="json", exclude=outside)
