"""`scoregate-server --check`: the models that a profile would load, from where, and their memory."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from models.core.copies import devices_of, gpu_count
from models.core.family import BYTES, Memory, Plan
from models.core.settings import ALL, DeviceSettings, LocalSettings
from models.families.registry import families
from service.core.settings.tree import Settings
from service.process.launching import batch_ms, processes
from service.serving.batcher.device import all_cores, loaded_torch
from service.serving.loading import is_placed
from service.web.keys import Keys

EACH = "cuda"  # each GPU of a machine whose GPUs are not visible here
CONTEXT_BYTES = 600_000_000  # of CUDA, in each process; estimated


def check(settings: Settings) -> str:
    """
    Return a table of the models, without loading one and without a request.

    Raises:
        SettingsError: the file of keys is invalid.
        CheckpointError: a checkpoint is missing or broken.
    """
    Keys.read(settings.server.api_keys_file)
    settings, note = on_any_machine(settings)
    return described(settings, plans(settings)) + note


def on_any_machine(settings: Settings) -> tuple[Settings, str]:
    """Return settings with `EACH` in place of all GPUs if none is visible, and a line about that."""
    wants = {
        name: table
        for name, table in settings.models.items()
        if isinstance(table, DeviceSettings) and table.devices == (ALL,)
    }
    if not wants or gpu_count():
        return settings, ""
    one = {name: table.model_copy(update={"devices": (EACH,)}) for name, table in wants.items()}
    line = (
        f'devices = "all": no GPU is visible here. {EACH} stands for each GPU of the machine that serves.\n'
    )
    return settings.model_copy(update={"models": {**settings.models, **one}}), line


def plans(settings: Settings) -> dict[str, Plan]:
    """Plan what each model would load.  Raises `CheckpointError` as `check` does."""
    return {name: families()[table.family].plan(name, table) for name, table in settings.models.items()}


def described(settings: Settings, planned: Mapping[str, Plan]) -> str:
    """Format the table of *planned* loads, with sums."""
    rows = [("MODEL", "ROLE", "LOADS", "FROM", "AS", "MEMORY")]
    weights: Counter[str] = Counter()
    unknown = False
    cards: dict[str, Card] = {}
    for name, table in settings.models.items():
        plan = planned[name]
        dtype, devices = getattr(table, "dtype", "float32"), devices_of(table) or ("",)
        size = (plan.num_parameters or 0) * BYTES[dtype]
        for device in devices:
            place = f"{device}, each copy of {name}" if is_placed(settings, table) else device
            weights[place] += size
            if device.startswith("cuda"):
                cards.setdefault(place, Card()).add(name, plan.memory, parallel=table.role == "questions")
        for device, gigabytes in getattr(table, "server_memory_gb", {}).items():
            cards.setdefault(device, Card()).servers[name] = round(gigabytes * 1e9)
        unknown |= not plan.remote and plan.num_parameters is None
        memory = "none here" if plan.remote else "unknown" if plan.num_parameters is None else as_bytes(size)
        kind = ", ".join((dtype, *devices)) if devices[0] else "-"
        rows.append((name, table.role, plan.loads, plan.where, kind, memory))
    sums = [f"{place} {as_bytes(size)}" for place, size in weights.items() if size]
    sums += ["more, not known until it is fetched"] * unknown
    total = f"{'; '.join(sums)}. Activations come on top." if sums else "none here."
    peaks = "".join(on_card(place, card) for place, card in cards.items())
    below = f"{peaks}{launches(settings, planned)}{demos(settings.demo_models)}"
    return f"{table_of(rows)}\n\n{threads(settings)}\nWeights: {total}\n{below}"


def launches(settings: Settings, planned: Mapping[str, Plan]) -> str:
    """Return a line for each model that needs several processes for its GPUs."""
    lines = ""
    for name, table in settings.models.items():
        launch_ms, memory = families()[table.family].launch_ms, planned[name].memory
        if not (launch_ms and memory and memory.operations and isinstance(table, LocalSettings)):
            continue
        full_ms = batch_ms(memory.operations, table.dtype, table.batch.max_batch_ms)
        gpus = sum(device.startswith("cuda") for device in devices_of(table))
        lines += processes(name, gpus, launch_ms, full_ms)
    return lines


def threads(settings: Settings) -> str:
    """Return a line about the cores that each thread computes with."""
    line = f"Threads: {settings.images.decode_workers} for each lane decode pictures."
    if loaded_torch() is None:  # no model computes here
        return line
    many = f"{all_cores()} cores, small ones with one" if all_cores() > 1 else "one core"
    return f"{line} Batches on a CPU compute with {many}."


class Card:
    """
    The memory of all models on one GPU.

    Attributes:
        servers: bytes of other servers on it, by the model that they serve.
    """

    def __init__(self) -> None:
        self.servers: dict[str, int] = {}
        self.weights = self._parallel = self._turns = 0
        self._unknown: list[str] = []

    @property
    def peak(self) -> int:
        """The predicted bytes with the largest batches."""
        return self.weights + self._parallel + self._turns

    def add(self, name: str, memory: Memory | None, *, parallel: bool) -> None:
        """Add a model.  Models take turns, so the largest counts, except for those that run in parallel."""
        if memory is None:
            self._unknown.append(name)
            return
        self.weights += memory.weights
        self._parallel += memory.activations if parallel else 0
        self._turns = max(self._turns, 0 if parallel else memory.activations)

    def __str__(self) -> str:
        """Return one sentence."""
        missing = (
            f", without {', '.join(self._unknown)}, which could not be predicted" if self._unknown else ""
        )
        peak = as_bytes(self.peak)
        return f"{peak} with the largest batches, predicted{missing}. CUDA's own memory comes on top."


def on_card(device: str, card: Card) -> str:
    """Return a line about our models on a GPU, and one about all that is there, if other servers are."""
    from models.sizing.free import used_and_total

    ours = f"{device}: {card}\n" if card.peak or not card.servers else ""
    used, total = used_and_total(device) or (0, 0)
    declared = sum(card.servers.values())
    if not (used or declared):
        return ours
    servers = f"{as_bytes(declared)} of the server of {', '.join(card.servers)}"
    parts = [servers if declared >= used else f"{as_bytes(used)} in use now"]
    parts += [f"{as_bytes(CONTEXT_BYTES)} of CUDA, estimated"] if ours else []
    needed = card.peak + max(declared, used) + (CONTEXT_BYTES if ours else 0)
    size = f" of {as_bytes(total)}" if total else ""
    verdict = ": too much" if 0 < total < needed else ""
    return f"{ours}{device}: {as_bytes(needed)}{size} with {' and '.join(parts)}{verdict}.\n"


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
