"""`scoregate-server --check`: what a profile would load, from where, and how much memory it takes."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from models.core.family import Memory, Plan
from models.families.registry import families
from service.core.settings.tree import Settings
from service.serving.batcher.cpu_policy import all_cores, loaded_torch
from service.serving.loading import is_placed
from service.web.auth.keys import Keys

BYTES = {"float32": 4, "bfloat16": 2}  # of a number


def check(settings: Settings) -> str:
    """
    A table of the models, without loading one and without a request.

    Raises:
        SettingsError: the file of keys cannot be used.
        CheckpointError: a checkpoint that should be here is not, or can be seen not to work.
    """
    Keys.read(settings.server.api_keys_file)
    return described(settings, plans(settings))


def plans(settings: Settings) -> dict[str, Plan]:
    """What each model would load.  Raises `CheckpointError` as `check` does."""
    return {name: families()[table.family].plan(name, table) for name, table in settings.models.items()}


def described(settings: Settings, planned: Mapping[str, Plan]) -> str:
    """The table of what is *planned*, with sums."""
    rows = [("MODEL", "ROLE", "LOADS", "FROM", "AS", "MEMORY")]
    weights: Counter[str] = Counter()
    unknown = False
    cards: dict[str, Card] = {}
    for name, table in settings.models.items():
        plan = planned[name]
        dtype, device = getattr(table, "dtype", "float32"), getattr(table, "device", "")
        size = (plan.num_parameters or 0) * BYTES[dtype]
        place = f"{device}, each copy of {name}" if is_placed(settings, table) else device
        weights[place] += size
        unknown |= not plan.remote and plan.num_parameters is None
        if device.startswith("cuda"):
            cards.setdefault(place, Card()).add(name, plan.memory, beside_others=table.role == "questions")
        memory = "none here" if plan.remote else "unknown" if plan.num_parameters is None else as_bytes(size)
        kind = f"{dtype}, {device}" if device else "-"
        rows.append((name, table.role, plan.loads, plan.where, kind, memory))
    sums = [f"{place} {as_bytes(size)}" for place, size in weights.items() if size]
    sums += ["more, not known until it is fetched"] * unknown
    total = f"{'; '.join(sums)}. Activations come on top." if sums else "none here."
    peaks = "".join(f"{place}: {card}\n" for place, card in cards.items())
    return f"{table_of(rows)}\n\n{threads(settings)}\nWeights: {total}\n{peaks}{demos(settings.demo_models)}"


def threads(settings: Settings) -> str:
    """A line about who computes with how many cores."""
    line = f"Threads: {settings.images.decode_workers} for each lane decode pictures."
    if loaded_torch() is None:  # no model computes here
        return line
    few = {1: "one core", 2: "2 cores, or two at once with one core each"}
    many = f"{all_cores()} cores, less those that decode meanwhile, which are at most half"
    return f"{line} Batches on a CPU compute with {few.get(all_cores(), many)}."


class Card:
    """What the models of one GPU take of it together."""

    def __init__(self) -> None:
        self._weights = self._beside = self._turns = 0
        self._unknown: list[str] = []

    def add(self, name: str, memory: Memory | None, *, beside_others: bool) -> None:
        """A model; all but those that run *beside_others* take turns, so the largest of them counts."""
        if memory is None:
            self._unknown.append(name)
            return
        self._weights += memory.weights
        self._beside += memory.activations if beside_others else 0
        self._turns = max(self._turns, 0 if beside_others else memory.activations)

    def __str__(self) -> str:
        """One sentence."""
        peak = as_bytes(self._weights + self._beside + self._turns)
        missing = (
            f", without {', '.join(self._unknown)}, which could not be predicted" if self._unknown else ""
        )
        return f"{peak} with the largest batches, predicted{missing}. CUDA's own memory comes on top."


def demos(names: Sequence[str]) -> str:
    """A line about demo models; empty where there are none."""
    return f"Demo models: {', '.join(names)}. Their scores mean nothing for real pictures.\n" if names else ""


def as_bytes(size: int) -> str:
    """*size* in bytes, as a person reads it."""
    return f"{size / 1e9:.1f} GB" if size >= 1e8 else f"{size / 1e6:.1f} MB"


def table_of(rows: Iterable[tuple[str, ...]]) -> str:
    """Rows of text in columns."""
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
