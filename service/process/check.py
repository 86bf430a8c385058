"""`scoregate-server --check`: the models that a profile would load, from where, and their memory."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from models.core.contract import CheckpointError
from models.core.copies import devices_of
from models.core.family import BYTES_PER_NUMBER, Plan
from models.core.machine import THIS_MACHINE, Machine
from models.core.settings import ALL_DEVICES, DeviceSettings
from models.families.registry import families
from service.core.settings.tree import Settings
from service.serving.loading import is_placed
from service.web.keys import Keys

EACH_GPU = "cuda"  # each GPU of a machine whose GPUs are not visible here
NO_GPU = 'devices = "all": no GPU is visible here. '
NO_GPU += f"{EACH_GPU} stands for each GPU of the machine that serves.\n"
CONTEXT_BYTES = 600_000_000  # CUDA takes about so much in each process


def check(settings: Settings, machine: Machine = THIS_MACHINE) -> str:
    """
    Return a table of the models, without loading one and without a request.

    Raises:
        SettingsError: the file of keys is invalid.
        CheckpointError: a checkpoint is missing or broken.
    """
    Keys.read(settings.server.api_keys_file)
    settings, note = on_any_machine(settings, machine)
    planned = plans(settings)
    weights = weights_of(settings, planned, machine)
    free = () if settings.runtime.kind == "ray" else against_free(weights, machine)
    return described(settings, planned, machine) + "".join(f"{line}\n" for line in free) + note


def on_any_machine(settings: Settings, machine: Machine) -> tuple[Settings, str]:
    """Return settings with names in place of "all" GPUs: `EACH_GPU` if none is visible, with a line."""
    wants = {
        name: table
        for name, table in settings.models.items()
        if isinstance(table, DeviceSettings) and table.devices == (ALL_DEVICES,)
    }
    if not wants:
        return settings, ""
    gpus, line = (machine.gpus(), "") if machine.gpu_count() else ((EACH_GPU,), NO_GPU)
    own = {name: table.model_copy(update={"devices": gpus}) for name, table in wants.items()}
    return settings.model_copy(update={"models": {**settings.models, **own}}), line


def plans(settings: Settings) -> dict[str, Plan]:
    """Plan what each model would load.  Raises `CheckpointError` as `check` does."""
    return {name: families()[table.family].plan(name, table) for name, table in settings.models.items()}


def described(settings: Settings, planned: Mapping[str, Plan], machine: Machine = THIS_MACHINE) -> str:
    """Format the table of *planned* loads, with sums."""
    rows = [("MODEL", "ROLE", "LOADS", "FROM", "AS", "MEMORY")]
    for name, table in settings.models.items():
        plan = planned[name]
        dtype, devices = getattr(table, "dtype", "float32"), devices_of(table, machine) or ("",)
        size = plan.num_parameters
        memory = (
            "none here"
            if plan.remote
            else "unknown"
            if size is None
            else as_bytes(size * BYTES_PER_NUMBER[dtype])
        )
        kind = ", ".join((dtype, *devices)) if devices[0] else "-"
        rows.append((name, table.role, plan.loads, plan.where, kind, memory))
    weights = weights_of(settings, planned, machine)
    sums = [f"{place} {as_bytes(size)}" for place, size in weights.items() if size]
    if any(not plan.remote and plan.num_parameters is None for plan in planned.values()):
        sums.append("more, not known until it is fetched")
    total = f"{'; '.join(sums)}. Activations come on top." if sums else "none here."
    cores = machine.cores() if computes_here(settings, planned, machine) else 0
    lines = threads(settings.images.decode_workers, cores)
    cards = "".join(f"{line}\n" for line in with_servers(settings, weights, machine))
    return f"{table_of(rows)}\n\n{lines}\nWeights: {total}\n{cards}{demos(settings.demo_models)}"


def weights_of(
    settings: Settings, planned: Mapping[str, Plan], machine: Machine = THIS_MACHINE
) -> dict[str, int]:
    """Return the bytes of all known weights on each device; on Ray of each copy, whose place Ray decides."""
    weights: dict[str, int] = {}
    for name, table in settings.models.items():
        size = (planned[name].num_parameters or 0) * BYTES_PER_NUMBER[getattr(table, "dtype", "float32")]
        for device in () if planned[name].remote else devices_of(table, machine):
            place = f"{device}, each copy of {name}" if is_placed(settings, table) else device
            weights[place] = weights.get(place, 0) + size
    return weights


def computes_here(settings: Settings, planned: Mapping[str, Plan], machine: Machine) -> bool:
    """Return True if a model with weights computes on the CPU of this machine."""
    return any(
        "cpu" in devices_of(table, machine) and not is_placed(settings, table)
        for name, table in settings.models.items()
        if not planned[name].remote and planned[name].num_parameters != 0
    )


def with_servers(settings: Settings, weights: Mapping[str, int], machine: Machine) -> Iterator[str]:
    """Yield a line for each GPU with other processes on it: all that is there, and the size of the GPU."""
    servers: dict[str, dict[str, float]] = {}
    for name, table in settings.models.items():
        for device, gigabytes in getattr(table, "server_memory_gb", {}).items():
            servers.setdefault(device, {})[name] = gigabytes * 1e9
    for device in {**weights, **servers}:
        if not device.startswith("cuda") or ", each copy" in device:
            continue
        ours, names = weights.get(device, 0), servers.get(device, {})
        used, total = machine.used_and_total(device) or (0, 0)
        declared = round(sum(names.values()))
        if not (used or declared):
            continue
        other = f"{as_bytes(declared)} of the server of {', '.join(names)}"
        parts = [other if declared >= used else f"{as_bytes(used)} in use now"]
        parts += [f"{as_bytes(CONTEXT_BYTES)} of CUDA, estimated"] if ours else []
        needed = ours + max(declared, used) + (CONTEXT_BYTES if ours else 0)
        size = f" of {as_bytes(total)}" if total else ""
        verdict = ": too much" if 0 < total < needed else ""
        yield f"{device}: {as_bytes(needed)}{size} with {' and '.join(parts)}{verdict}."


def against_free(weights: Mapping[str, int], machine: Machine) -> Iterator[str]:
    """Yield a line for each device that answers."""
    for device, size in weights.items():
        try:
            free = machine.free_bytes(device) if size else 0
        except CheckpointError:  # only the machine that serves has this GPU
            continue
        if size:
            verdict = ": too little" if free < size else ""
            yield f"{device}: {as_bytes(size)} of weights needed, {as_bytes(free)} free{verdict}."


def threads(decoders: int, cores: int) -> str:
    """Return a line about the threads that decode in each lane, and the *cores* of batches, if there are."""
    line = f"Threads: {decoders} for each lane decode pictures."
    if not cores:
        return line
    many = f"one core each, those of large models with all {cores}" if cores > 1 else "one core"
    return f"{line} Batches on a CPU compute with {many}."


def demos(names: Sequence[str]) -> str:
    """Return a line about demo models; empty without any."""
    return f"Demo models: {', '.join(names)}. Their scores mean nothing for real pictures.\n" if names else ""


def as_bytes(size: int) -> str:
    """Format *size* in bytes."""
    return f"{size / 1e9:.1f} GB" if size >= 1e8 else f"{size / 1e6:.1f} MB"


def table_of(rows: Iterable[tuple[str, ...]]) -> str:
    """Format rows of text in columns."""
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
