"""A family of models, declared once: its role, the settings it understands, and what loads it."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from models.core.contract import CheckpointAway, CheckpointError, Model, RemoteModel
from models.core.settings import ModelSettings

Loaded = Model | RemoteModel


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes on a device: what a model holds, and what its largest batch adds for a while."""

    weights: int
    activations: int


@dataclass(frozen=True, slots=True)
class Plan:
    """
    What `--check` says of one model: what it *loads*, from *where*, and how many *numbers* it holds.

    *numbers* is None where that is not known before a download; *remote* models take no memory here.
    *memory* is what it takes of a CUDA device, None where that was not predicted.
    """

    loads: str
    where: str
    numbers: int | None = None
    remote: bool = False
    memory: Memory | None = None


@dataclass(frozen=True, slots=True)
class Family:
    """
    Attributes:
        name: `family` in a table under `models`.
        role: what its models are for; empty where the table says it (`fake`).
        settings: the tables that the family understands.
        loader: "package.module:function", imported when the first model is loaded.  The function takes
            a table and returns the model.
        planner: the same for `--check`: takes a table and returns its `Plan`, and loads nothing.
        required: whether the service is ready only when a model of this family serves, unless its
            table says otherwise.
    """

    name: str
    role: str
    settings: type[ModelSettings]
    loader: str
    planner: str = ""
    required: bool = True

    def __post_init__(self) -> None:
        """Raises `TypeError` or `ValueError` for a declaration that cannot be used."""
        if not (isinstance(self.settings, type) and issubclass(self.settings, ModelSettings)):
            raise TypeError(f"the settings of {self.name} must be a subclass of ModelSettings")
        if ":" not in self.loader:
            raise ValueError(f'the loader of {self.name} must be "package.module:function"')

    def imports(self, name: str) -> None:
        """Import the loader, and with it what its models compute with.  Raises `CheckpointError`."""
        named(name, lambda: found(self.loader))

    def load(self, name: str, settings: ModelSettings) -> Loaded:
        """The model of the table *name*.  Raises `CheckpointError`, which names the table."""
        model: Loaded = named(name, lambda: found(self.loader)(settings))
        return model

    def plan(self, name: str, settings: ModelSettings) -> Plan:
        """What would be loaded.  Raises `CheckpointError` where it can be seen not to work."""
        if not self.planner:
            return Plan(settings.id or name, self.loader)
        plan: Plan = named(name, lambda: found(self.planner)(settings))
        return plan


def found(place: str) -> Callable[[ModelSettings], Any]:
    """The function at *place*, "package.module:function"."""
    module, _, function = place.partition(":")
    work: Callable[[ModelSettings], Any] = getattr(import_module(module), function)
    return work


def named(name: str, work: Callable[[], Any]) -> Any:
    """
    What *work* makes for the table *name*.

    Raises:
        CheckpointAway: it failed for something that passes by itself.
        CheckpointError: it failed; the message names the table.
    """
    try:
        return work()
    except Exception as exc:  # torch, a config.json that lacks something, and loaders of other packages
        from models.core.passing import passes  # which imports the hub's library, as whoever loads has done

        known = isinstance(exc, CheckpointError | RuntimeError)
        reason = str(exc).partition("\n")[0] if known else repr(exc)
        kind = CheckpointAway if passes(exc) else CheckpointError
        raise kind(f"models.{name}: {reason}") from exc
