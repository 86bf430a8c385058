"""A check that the configured replicas fit on the nodes of the cluster."""

from collections.abc import Iterator, Mapping, Sequence

from models.core.settings import ModelSettings, PlacedSettings
from service.core.settings.tree import Settings
from service.serving.loading import is_placed

Resources = dict[str, float]


def unplaced(settings: Settings, nodes: Sequence[Mapping[str, float]]) -> str:
    """Return why the replicas do not fit on *nodes*, given by their resources; empty if they do."""
    free: list[Resources] = [dict(node) for node in nodes]
    wanted: list[tuple[str, Resources]] = []
    for name, need in needs(settings):
        wanted += [(name, need)] * PlacedSettings.of(settings.models[name]).fewest
    for name, need in sorted(wanted, key=lambda each: (-each[1]["GPU"], -each[1]["CPU"])):
        node = next((node for node in free if fits(need, node)), None)
        if node is None:
            missing = " and ".join(f"{amount:g} {kind}" for kind, amount in need.items() if amount)
            return f"models.{name}: no node of the cluster has {missing} left for one of its replicas"
        for kind, amount in need.items():
            node[kind] = node.get(kind, 0.0) - amount
    return ""


def has_room(settings: Settings, free: Sequence[Mapping[str, float]]) -> bool:
    """Return True if one more replica of any model fits into what is *free* on the nodes."""
    return all(any(fits(need, node) for node in free) for _, need in needs(settings))


def needs(settings: Settings) -> Iterator[tuple[str, Resources]]:
    """Yield each model that Ray places, and the resources of one replica."""
    for name, table in settings.models.items():
        if is_placed(settings, table):
            yield name, {"GPU": gpus(table), "CPU": PlacedSettings.of(table).num_cpus}


def fits(need: Resources, node: Mapping[str, float]) -> bool:
    """Return True if *node* has enough left; fractions of a GPU add up with rounding errors."""
    return all(node.get(kind, 0.0) + 1e-6 >= amount for kind, amount in need.items())


def gpus(table: ModelSettings) -> float:
    """Return the GPUs of each replica."""
    given = PlacedSettings.of(table).num_gpus
    on_gpu = str(getattr(table, "device", "cpu")) != "cpu"
    return float(on_gpu if given is None else given)
