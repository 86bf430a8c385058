"""The declaration of a family of models: its role, its settings and its loader."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from models.core.contract import CheckpointAway, CheckpointError, Model, RemoteModel
from models.core.copies import load_each, on_first
from models.core.settings import ModelSettings

Loaded = Model | RemoteModel

BYTES = {"float32": 4, "bfloat16": 2}  # per number


@dataclass(frozen=True, slots=True)
class Memory:
    """
    What a model takes on a device.

    Attributes:
        weights: bytes of them.
        activations: bytes of those of the largest batch.
        operations: multiplications and additions of an ordinary full batch; 0: unknown.
    """

    weights: int
    activations: int
    operations: int = 0


@dataclass(frozen=True, slots=True)
class Plan:
    """
    The plan of one model for `--check`: what it *loads*, from *where*, and its *num_parameters*.

    *num_parameters* is None before a download, *memory* if not predicted.  A *remote* model takes none here.
    *repository* is the hub's that a name stands for, if it is to be downloaded.
    """

    loads: str
    where: str
    num_parameters: int | None = None
    remote: bool = False
    memory: Memory | None = None
    repository: str = ""


@dataclass(frozen=True, slots=True)
class Family:
    """
    A family of models.

    Attributes:
        name: `family` in a table under `models`.
        role: of its models; empty if the table has it (`fake`).
        settings: type of its tables.
        loader: "package.module:function", imported when the first model is loaded.  The function takes
            a table and returns the model.
        planner: like *loader*, for `--check`: returns the `Plan` of a table, and loads nothing.
        required: by default, the service is ready only when the models of this family are.
        launch_ms: of Python's lock to launch a batch on a GPU, by `benchmarks.launch`; None: not measured.
    """

    name: str
    role: str
    settings: type[ModelSettings]
    loader: str
    planner: str = ""
    required: bool = True
    launch_ms: float | None = None

    def __post_init__(self) -> None:
        """Raise `TypeError` or `ValueError` for an invalid declaration."""
        if not (isinstance(self.settings, type) and issubclass(self.settings, ModelSettings)):
            raise TypeError(f"the settings of {self.name} must be a subclass of ModelSettings")
        if ":" not in self.loader:
            raise ValueError(f'the loader of {self.name} must be "package.module:function"')

    def imports(self, name: str) -> None:
        """Import the loader with its dependencies.  Raises `CheckpointError`."""
        named(name, lambda: found(self.loader))

    def load(self, name: str, settings: ModelSettings) -> Loaded:
        """Load the model of the table *name* on each of its devices.  Raises `CheckpointError`."""
        model: Loaded = named(name, lambda: load_each(settings, found(self.loader)))
        return model

    def plan(self, name: str, settings: ModelSettings) -> Plan:
        """Return the plan of a table.  Raises `CheckpointError` if the model cannot be loaded."""
        if not self.planner:
            return Plan(settings.id or name, self.loader)
        plan: Plan = named(name, lambda: found(self.planner)(on_first(settings)))
        return plan


def found(place: str) -> Callable[[ModelSettings], Any]:
    """Import the function at *place*, "package.module:function"."""
    module, _, function = place.partition(":")
    work: Callable[[ModelSettings], Any] = getattr(import_module(module), function)
    return work


def named(name: str, work: Callable[[], Any]) -> Any:
    """
    Call *work* for the table *name*.

    Raises:
        CheckpointAway: it failed for a temporary reason.
        CheckpointError: it failed; the message names the table.
    """
    try:
        return work()
    except Exception as exc:  # torch, a config.json that lacks something, and loaders of other packages
        from models.core.passing import passes  # imports the hub's library, which every loader has imported

        known = isinstance(exc, CheckpointError | RuntimeError)
        reason = str(exc).partition("\n")[0] if known else repr(exc)
        kind = CheckpointAway if passes(exc) else CheckpointError
        raise kind(f"models.{name}: {reason}") from exc
