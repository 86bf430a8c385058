"""Whether the replicas that are asked for fit on the nodes that there are."""

from collections.abc import Mapping, Sequence

from models.core.settings import ModelSettings, PlacedSettings
from service.core.settings.tree import Settings
from service.serving.loading import is_placed

Resources = dict[str, float]


def unplaced(settings: Settings, nodes: Sequence[Mapping[str, float]]) -> str:
    """Why not all replicas can be placed on *nodes*, which offer those resources; empty where they can."""
    free: list[Resources] = [dict(node) for node in nodes]
    wanted: list[tuple[str, Resources]] = []
    for name, table in settings.models.items():
        if is_placed(settings, table):
            need = {"GPU": gpus(table), "CPU": PlacedSettings.of(table).num_cpus}
            wanted += [(name, need)] * PlacedSettings.of(table).fewest
    for name, need in sorted(wanted, key=lambda each: (-each[1]["GPU"], -each[1]["CPU"])):
        node = next((node for node in free if fits(need, node)), None)
        if node is None:
            asks = " and ".join(f"{amount:g} {kind}" for kind, amount in need.items() if amount)
            return f"models.{name}: no node of the cluster has {asks} left for one of its replicas"
        for kind, amount in need.items():
            node[kind] = node.get(kind, 0.0) - amount
    return ""


def fits(need: Resources, node: Resources) -> bool:
    """Whether *node* has as much left; parts of a GPU add up with rounding errors."""
    return all(node.get(kind, 0.0) + 1e-6 >= amount for kind, amount in need.items())


def gpus(table: ModelSettings) -> float:
    """GPUs of each copy."""
    given = PlacedSettings.of(table).num_gpus
    on_gpu = str(getattr(table, "device", "cpu")) != "cpu"
    return float(on_gpu if given is None else given)
