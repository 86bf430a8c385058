"""The declaration of a family of models: its role, its settings and its loader."""

import gc
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, cast

from models.core.contract import CheckpointAway, CheckpointError, Model, RemoteModel
from models.core.copies import load_each, on_first
from models.core.settings import ModelSettings

Loaded = Model | RemoteModel

# It plans a checkpoint in a directory or on the hub, and imports torch.
CHECKPOINT_PLANNER = "models.checkpoints.plan:plan"
BYTES_PER_NUMBER = {"float32": 4, "bfloat16": 2, "float16": 2}


@dataclass(frozen=True, slots=True)
class Plan:
    """
    The plan of one model for `--check`.

    Attributes:
        loads: the name of what is loaded.
        where: the place that it is loaded from.
        num_parameters: None before a download.
        remote: the model is on another server, and takes no memory here.
        repository: for a name of open_clip, the repository on the hub that is to be downloaded.
    """

    loads: str
    where: str
    num_parameters: int | None = None
    remote: bool = False
    repository: str = ""


@dataclass(frozen=True, slots=True)
class Signs:
    """
    The signs in a checkpoint's files that it is one of a family, in the order in which they count.

    Attributes:
        files: any of these files is in the checkpoint.
        keys: any of these keys is in its `config.json`.
        model_types: `model_type` is one of them.
        architectures: a name in `architectures` ends with one of them; of several families the longest end
            counts, since it says most.
        refusal: takes the `config.json` of a checkpoint with such signs, and returns why the family cannot
            load it, or an empty text.  Called before the weights are downloaded.
    """

    files: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    model_types: tuple[str, ...] = ()
    architectures: tuple[str, ...] = ()
    refusal: Callable[[Mapping[str, Any]], str] | None = None


@dataclass(frozen=True, slots=True)
class Served:
    """
    How models behind an API are named: `ROLE=openai:NAME@URL`, or `openai:NAME@URL`.

    Attributes:
        short: another word for the role; empty for none.
        words: searched for in a NAME without a role; the first family with a word in it has the model.
        released: settings of released models, each by a part of its name in lower case.
    """

    short: str = ""
    words: re.Pattern[str] | None = None
    released: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def fits(self, model: str) -> bool:
        """Return True if one of the words is in the name of *model*."""
        return self.words is not None and self.words.search(model) is not None

    def settings_of(self, model: str) -> Mapping[str, Any]:
        """Return the settings of the release of *model*; empty if it is none of them."""
        return next((table for name, table in self.released.items() if name in model.lower()), {})


@dataclass(frozen=True, slots=True)
class Family:
    """
    A family of models.

    Attributes:
        name: `family` in a table under `models`.
        role: of its models; empty if the table has it (`fake`).
        loads: what it loads or calls, in words.
        settings: type of its tables.
        loader: "package.module:function", imported when the first model is loaded.  The function takes
            a table and returns the model.
        weights: "package.module:function", for `--check`.  The function takes a checkpoint's directory,
            checks the other files in it, and returns the files with the weights.
        planner: "package.module:function", for `--check` of a model that is not in such a directory.  The
            function takes a table and returns its `Plan`, without loading the model.
        required: default of the setting `required`: the service is ready only when the model is.
        repositories: the hub ids of its published models, each with further settings of its table.  The id
            is the checkpoint, unless they have `model`.
        base: the hub id of the model that they were trained from, with files that their repositories lack,
            such as a tokenizer.
        signs: of its other checkpoints.
        library: "package.module:function", for names NAME:TAG or NAME of the library whose name the family
            has.  The function takes such a name and returns the settings of its table, or None if the library
            has no such model.
        served: how its models behind an API are named; None if they have no such names.
        fetched: patterns of the files to download from a repository, the weights last; of several tuples the
            first counts whose weights are there.  Empty: the files of `transformers`.
        exact: its models have float32 on a GPU, too, if only `--model` names them.
    """

    name: str
    role: str
    settings: type[ModelSettings]
    loader: str
    loads: str = ""
    weights: str = ""
    planner: str = ""
    required: bool = True
    repositories: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    base: str = ""
    signs: Signs = Signs()
    library: str = ""
    served: Served | None = None
    fetched: tuple[tuple[str, ...], ...] = ()
    exact: bool = False

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

        def work() -> Loaded:
            load = found(self.loader)
            with own_dtype():
                return cast(Loaded, load_each(settings, load))

        return cast(Loaded, named(name, work))

    def plan(self, name: str, settings: ModelSettings) -> Plan:
        """Return the plan of a table.  Raises `CheckpointError` if the model cannot be loaded."""
        if not (self.planner or self.weights):
            return Plan(settings.id or name, self.loader)

        def work() -> Plan:
            table = on_first(settings)
            if self.planner:
                return cast(Plan, found(self.planner)(table))
            return cast(Plan, found(CHECKPOINT_PLANNER)(table, found(self.weights)))

        return cast(Plan, named(name, work))


def found(place: str) -> Callable[..., Any]:
    """Import the function at *place*, "package.module:function"."""
    module, _, function = place.partition(":")
    with uncollected():
        return cast(Callable[..., Any], getattr(import_module(module), function))


def own_dtype() -> AbstractContextManager[None]:
    """Give this thread torch's default dtype as its own; without torch there is no batch to disturb."""
    if "torch" not in sys.modules:
        return nullcontext()
    from models.core.default_dtype import own_default_dtype

    return own_default_dtype()


@contextmanager
def uncollected() -> Iterator[None]:
    """Turn the garbage collector off: imported modules stay, and its passes take a fifth of an import."""
    on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if on:
            gc.enable()


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
