"""`scoregate-server --check`: what a profile would load, from where, and how much memory it takes."""

from collections import Counter
from collections.abc import Iterable, Sequence

from models.checkpoints.weights import DTYPES
from models.registry import families
from service.http.keys import Keys
from service.settings.tree import Settings


def check(settings: Settings) -> str:
    """
    A table of the models, without loading one and without a request.

    Raises:
        SettingsError: the file of keys cannot be used.
        CheckpointError: a checkpoint that should be here is not, or can be seen not to work.
    """
    Keys.read(settings.server.api_keys_file)
    rows = [("MODEL", "ROLE", "LOADS", "FROM", "AS", "MEMORY")]
    weights: Counter[str] = Counter()
    unknown = False
    for name, table in settings.models.items():
        plan = families()[table.family].plan(name, table)
        dtype, device = getattr(table, "dtype", "float32"), getattr(table, "device", "")
        size = (plan.numbers or 0) * DTYPES[dtype].itemsize
        weights[device] += size
        unknown |= not plan.remote and plan.numbers is None
        memory = "none here" if plan.remote else "unknown" if plan.numbers is None else as_bytes(size)
        kind = f"{dtype}, {device}" if device else "-"
        rows.append((name, table.role, plan.loads, plan.where, kind, memory))
    sums = [f"{device} {as_bytes(size)}" for device, size in weights.items() if size]
    sums += ["more, not known until it is fetched"] * unknown
    total = f"{'; '.join(sums)}. Activations come on top." if sums else "none here."
    return f"{table_of(rows)}\n\nWeights: {total}\n{beside(settings.demo_models)}"


def beside(demo: Sequence[str]) -> str:
    """A line about demo models that stand beside real ones; empty where there are none."""
    line = f"Demo models stand beside real ones: {', '.join(demo)}. Their scores mean nothing.\n"
    return line if demo else ""


def as_bytes(size: int) -> str:
    """*size* in bytes, as a person reads it."""
    return f"{size / 1e9:.1f} GB" if size >= 1e8 else f"{size / 1e6:.1f} MB"


def table_of(rows: Iterable[tuple[str, ...]]) -> str:
    """Rows of text in columns."""
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
