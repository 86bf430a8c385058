"""What a profile takes before its models are loaded: downloads, memory, and the models that it lacks."""

import shutil
from collections.abc import Iterable, Iterator, Mapping

from models.core.contract import CheckpointError
from models.core.copies import devices_of
from models.core.family import BYTES_PER_NUMBER, Plan
from models.core.machine import THIS_MACHINE, Machine
from models.core.settings import ALL_DEVICES, LocalSettings, ModelSettings
from models.families.registry import families
from service.core.settings import SettingsError
from service.core.settings.tree import Settings
from service.metrics.common.registry import assign, metrics
from service.process.check import as_bytes, described, plans, weights_of

# A model for each role that a metric may lack, as an argument of the command.
SETTINGS_TO_ADD = {
    "questions": "--model openai:NAME@URL, an LLM that vLLM serves",
    "vqa": "--model zhiqiulin/clip-flant5-xl",
    "clip": "--model openai/clip-vit-large-patch14-336",
    "detector": "--model facebook/mask2former-swin-small-coco-instance",
}


def needs(settings: Settings, machine: Machine = THIS_MACHINE) -> str:
    """
    Return lines for people: the models with their memory, what is downloaded, and what is free.

    Raises:
        CheckpointError: a checkpoint is missing or broken, or a device does not answer.
        SettingsError: a device has less free memory than the weights take, or the hub's cache less room than
            the downloads.
    """
    planned = plans(settings)
    fits = [*memory(settings, planned, machine)]  # memory is computed before the hub is called for sizes
    lines = [*downloads(settings, planned, machine), *fits, *lacking(settings)]
    return described(settings, planned, machine) + "".join(f"{line}\n" for line in lines)


def downloads(
    settings: Settings, planned: Mapping[str, Plan], machine: Machine = THIS_MACHINE
) -> Iterator[str]:
    """
    Yield a line for each model that is to be downloaded.

    Raises:
        SettingsError: the hub's cache has no room for all of them.
        CheckpointError: as `pending`.
    """
    from models.checkpoints.locate import cache_folder

    total = 0
    for name, table in settings.models.items():
        plan = planned[name]
        if not is_pending(table, plan):
            continue
        repository, size = pending(table, plan)
        if repository:
            total += size
            yield f"{name}: downloads {as_bytes(size)} from the hub's {repository}."
            if plan.num_parameters is None:
                yield from too_large(name, table, size, machine)
        else:
            numbers = (plan.num_parameters or 0) * BYTES_PER_NUMBER["float32"]
            about = f"about {as_bytes(numbers)}" if numbers else "of unknown size"
            yield f"{name}: downloads {plan.loads}, {about}."
    folder = cache_folder()
    if total > (free := shutil.disk_usage(folder).free):
        raise SettingsError(
            f"the downloads take {as_bytes(total)}, and {as_bytes(free)} are free at {folder};"
            " set HF_HOME to a folder on another disk"
        )


def too_large(name: str, table: ModelSettings, size: int, machine: Machine) -> Iterator[str]:
    """Yield a line for each device with less free memory than the files of a model, of *size* bytes."""
    for device in devices_of(table):
        if size > (free := machine.free_bytes(device)):
            yield f"{name}: its files are larger than the {as_bytes(free)} that are free on {device}."


def check_devices(devices: Iterable[str], machine: Machine) -> None:
    """
    Check that each of *devices* answers, and that a GPU is visible if they are "all".

    Raises:
        CheckpointError: one does not answer, or PyTorch has no device of that name.
    """
    import torch

    for device in machine.gpus() if [*devices] == [ALL_DEVICES] else devices:
        try:
            torch.device(device)
        except RuntimeError as exc:
            raise CheckpointError(f"--devices {device}: {str(exc).splitlines()[0]}") from exc
        machine.free_bytes(device)


def is_pending(table: ModelSettings, plan: Plan) -> bool:
    """Return True if the weights of *table* are not on this machine yet."""
    return isinstance(table, LocalSettings) and "not in" in plan.where


def pending(table: ModelSettings, plan: Plan) -> tuple[str, int]:
    """
    Return the hub's repository of a table whose weights are to be downloaded, and the bytes.

    Without a repository the size is not known.  Same errors as `pending_bytes`.
    """
    from models.checkpoints.locate import HUB_ID, pending_bytes

    repository = plan.repository or getattr(table, "model", "") or getattr(table, "checkpoint", "")
    if not HUB_ID.fullmatch(repository):
        return "", 0
    revision = "" if plan.repository else table.revision
    return repository, pending_bytes(repository, revision, families()[table.family].fetched)


def memory(settings: Settings, planned: Mapping[str, Plan], machine: Machine) -> Iterator[str]:
    """Yield a line for each device.  Raises `SettingsError` if the weights exceed its free memory."""
    for device, weights in weights_of(settings, planned).items():
        free = machine.free_bytes(device)
        if weights > free:
            raise SettingsError(
                f"{device}: the weights take {as_bytes(weights)}, and {as_bytes(free)} are free;"
                " choose a smaller model, --dtype bfloat16, or another device"
            )
        yield f"{device}: {as_bytes(weights)} of weights needed, {as_bytes(free)} free."


def lacking(settings: Settings) -> Iterator[str]:
    """
    Yield a line for each set of roles that metrics lack, with the argument that adds each model.

    A metric with questions lacks a question LLM, though it scores with question sets of the caller's.
    """
    assigned = assign(metrics(), settings)
    lack: dict[tuple[str, ...], list[str]] = {}
    for metric in metrics().values():
        writes = ("questions",) if metric.style else ()
        roles = tuple(role for role in (*metric.roles, *writes) if (metric.name, role) not in assigned)
        if roles and not metric.own_model and all(role in SETTINGS_TO_ADD for role in roles):
            lack.setdefault(roles, []).append(metric.name)
    for roles, names in sorted(lack.items()):
        yield f"Missing for {', '.join(names)}: {' and '.join(SETTINGS_TO_ADD[role] for role in roles)}."
