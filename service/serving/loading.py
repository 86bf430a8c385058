"""Loading of the configured models, and the identity of what was loaded."""

import hashlib
import json
import logging
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, cast

from models.core.contract import ARITHMETIC, CheckpointAway, ModelInfo
from models.core.copies import Unloaded, devices_of
from models.core.family import BYTES_PER_NUMBER, Loaded, named
from models.core.machine import THIS_MACHINE
from models.core.settings import NOT_IN_RECIPE, LocalSettings, ModelSettings, RemoteSettings
from models.core.turn import LOADING
from models.families.registry import families, packages
from service import __version__
from service.core.settings.environment import read_secret
from service.core.settings.tree import Settings
from service.serving.batcher.device import compute_on_one_core

DIGEST_DIGITS = 16
log = logging.getLogger("scoregate.loading")
COMMIT_LENGTH = 40
WRITER = "questions"  # the role of models that generate text


def with_recipe(info: ModelInfo, table: ModelSettings) -> ModelInfo:
    """Return *info* with the digest of the recipe, and the name of its GPU."""
    content = json.dumps(recipe(info, table), sort_keys=True).encode()
    digest = hashlib.sha256(content).hexdigest()[:DIGEST_DIGITS]
    return replace(info, recipe=digest, hardware=hardware(info.device))


def hardware(device: str) -> str:
    """Return the name of a GPU of this process; empty for other devices."""
    if not device.startswith("cuda"):
        return ""
    import torch  # a model is on the device, so torch is loaded

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


def load_models(settings: Settings, *, later: bool = False) -> dict[str, Loaded]:
    """
    Return the models of this process by configured name, except those that Ray places.

    Args:
        later: return an `Unloaded` for each model that would be loaded into this process.

    Raises:
        SettingsError: the secret that a table names is not set; checked before any weights are read.
        CheckpointError: a model cannot be loaded; the message names its table.
    """
    here = {name: table for name, table in settings.models.items() if not is_placed(settings, table)}
    for table in here.values():
        if variable := getattr(table, "api_key_env", ""):
            read_secret(variable)
    load = unloaded if later else load_model
    return {
        name: load_model(name, table) if isinstance(table, RemoteSettings) else load(name, table)
        for name, table in here.items()
    }


def unloaded(name: str, table: ModelSettings) -> Loaded:
    """Return what stands for the model of a table until it is loaded.  Raises `CheckpointError`."""
    if isinstance(table, LocalSettings):
        import torch  # noqa: F401  # the threads that will run it have torch's number of cores
    devices = named(name, lambda: devices_of(table)) or ("cpu",)
    checkpoint = getattr(table, "model", "") or getattr(table, "checkpoint", "")
    info = ModelInfo(
        table.role,
        table.family,
        table.id or checkpoint or name,
        table.revision,
        getattr(table, "dtype", "float32"),
        devices[0],
        generates=table.role == WRITER,
    )
    return cast(Loaded, Unloaded(info, devices))


def load_model(name: str, table: ModelSettings) -> Loaded:
    """
    Load one model, with a warning if it is the hub's newest of no revision.

    Loads of several threads are one after the other, but for their downloads, and for models that a server
    runs.  Raises `CheckpointError`.
    """
    family = families()[table.family]
    family.imports(name)
    if transformers := sys.modules.get("transformers"):  # its bars would stand in logs and in answers
        transformers.utils.logging.disable_progress_bar()
    compute_on_one_core()  # after the imports torch is loaded, if the model needs it
    with nullcontext() if isinstance(table, RemoteSettings) else LOADING.taken():
        model = family.load(name, table)
    if not table.revision and len(model.info.revision) == COMMIT_LENGTH:
        log.warning(
            "models.%s: no revision is set; the newest commit is loaded, %s", name, model.info.revision
        )
    return model


def check_loadable(name: str, table: ModelSettings, given_back: Mapping[str, int]) -> None:
    """
    Check the files and the family of a model, and the memory for its weights; load nothing.

    Args:
        given_back: bytes on each device that will be free before the weights are loaded there.

    Raises:
        CheckpointAway: the hub cannot be reached, or a device has too little free memory now.
        CheckpointError: the model cannot be loaded.
    """
    family = families()[table.family]
    if isinstance(table, LocalSettings) and table.checkpoint:
        from models.checkpoints.locate import locate  # imports the hub's library

        named(name, lambda: locate(table.checkpoint, table.revision))
    numbers = family.plan(name, table).num_parameters
    if not numbers:  # the sizes are not known, or there are none
        return
    needed = numbers * BYTES_PER_NUMBER[getattr(table, "dtype", "float32")]
    for device, given in given_back.items():
        free = THIS_MACHINE.free_bytes(device or "cpu") + given
        if needed > free:
            raise CheckpointAway(f"models.{name}: {device}: the weights take {needed} bytes, {free} are free")


def is_placed(settings: Settings, table: ModelSettings) -> bool:
    """Return True if Ray places the model of *table*."""
    return settings.runtime.kind == "ray" and not isinstance(table, RemoteSettings)
