"""Groups of calls on their way to a replica and back."""

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol
from uuid import uuid4

from models.core.calls import Call
from models.core.contract import ModelInfo, Prepared
from models.core.settings import ModelSettings, PlacedSettings
from models.images.image import Image
from service import __version__
from service.core.settings.tree import Settings
from service.observability.instruments import Instruments, gpu_memory
from service.serving.job import JobResult
from service.serving.loading import is_placed

Resources = dict[str, float]


@dataclass(frozen=True, slots=True)
class Work:
    """
    The batches of a replica since its last result for any gateway, so that all gateways count each one once.

    Attributes:
        answered: calls and seconds of each batch whose calls were answered; halves of one count separately.
        ran: calls and seconds of each batch on the device.
        out_of_memory: number of batches.
        memory: bytes of its GPUs now, by kind.
    """

    answered: list[tuple[int, float]] = field(default_factory=list)
    ran: list[tuple[int, float]] = field(default_factory=list)
    out_of_memory: int = 0
    memory: Mapping[str, int] = field(default_factory=dict)

    def count(self, instruments: Instruments, model: str) -> None:
        """Count the batches of *model*."""
        for size, seconds in self.answered:
            instruments.count_batch(model, size, seconds)

    def count_on(self, instruments: Instruments, model: str, device: str) -> None:
        """Count them by *device*, as the series of a device of this process."""
        for size, seconds in self.ran:
            instruments.count_device(model, device, size, seconds)
        if self.out_of_memory:
            instruments.count_out_of_memory(model, device, self.out_of_memory)
        if self.memory:
            instruments.gpu_memory.elsewhere[device] = self.memory


class Recorder(Instruments):
    """The instruments of a replica, which has no exporter: batches are kept until they are sent."""

    def __init__(self, model: str, memory: Callable[[], Iterable[tuple[str, str, int]]] = gpu_memory) -> None:
        super().__init__([model])
        self._memory = memory
        self._answered: list[tuple[int, float]] = []
        self._ran: list[tuple[int, float]] = []
        self._out_of_memory = 0

    def count_batch(self, model: str, size: int, seconds: float) -> None:
        """Record the size and seconds of a batch of the model, for `take`."""
        self._answered.append((size, seconds))

    def count_device(self, model: str, device: str, size: int, seconds: float) -> None:
        """Record the size and seconds of a batch on the device, for `take`."""
        self._ran.append((size, seconds))

    def count_out_of_memory(self, model: str, device: str, batches: int = 1) -> None:
        """Add *batches*."""
        self._out_of_memory += batches

    def take(self) -> Work:
        """Return the work since the last time."""
        memory: dict[str, int] = defaultdict(int)
        for _, kind, size in self._memory():
            memory[kind] += size
        work = Work(self._answered, self._ran, self._out_of_memory, dict(memory))
        self._answered, self._ran, self._out_of_memory = [], [], 0
        return work


@dataclass(frozen=True, slots=True)
class Sent:
    """A call that is sent to a replica, with its lane and the seconds to its deadline."""

    call: Call
    lane: str
    left_s: float


@dataclass(frozen=True, slots=True)
class Described:
    """
    A replica and its model.

    Attributes:
        cost, seconds: tokens and duration of the model's example call.
    """

    id: str
    info: ModelInfo
    cost: int
    seconds: float

    @property
    def device(self) -> str:
        """The label of its series."""
        return f"ray:{self.id}"

    @property
    def model(self) -> str:
        """The identity of its model as a string."""
        return " ".join(self.info.identity)


@dataclass(frozen=True, slots=True)
class GroupResult:
    """The result of each call of a group, and what the replica ran since its last result."""

    results: list[JobResult]
    work: Work


class Lost(Exception):
    """A replica ended while it worked on a group, or Ray could not reach it."""


class Deployment(Protocol):
    """The replicas of one model."""

    async def describe(self, replica: str) -> Described:
        """Return the description of *replica*.  Raises `Lost`."""
        ...

    async def ask(self, replica: str, group: str, model: str, calls: Sequence[Sent]) -> GroupResult | None:
        """Return the result of `Replica.ask`.  Raises `Lost`."""
        ...

    async def promote(self, replica: str, group: str) -> None:
        """Make a group interactive, unless it has ended."""
        ...

    def listen(self, listener: Callable[[Sequence[str]], None]) -> Callable[[], None]:
        """Call *listener* with the running replicas, now and after each change, on any thread."""
        ...


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


def version_of(tables: Mapping[str, Any], before: str = "") -> str:
    """
    Return the version of a deployment whose replicas have the settings *tables*.

    Ray keeps the replicas of a version that is deployed already.

    Args:
        before: the version that is deployed, empty if there is none or if it failed: Ray would not start
            its replicas again.
    """
    content = hashlib.sha256(json.dumps([__version__, tables], sort_keys=True).encode()).hexdigest()
    return before if before.startswith(content) else f"{content}-{uuid4().hex}"


class Sending:
    """
    Prepares the calls of one group, which share the data of equal images.

    Args:
        cost: usual tokens of a call.
    """

    def __init__(self, cost: int) -> None:
        self._cost = cost
        self._plain: dict[str, Image] = {}

    def prepare(self, call: Call) -> Prepared:
        """Return a call with its images as files and digests.  Raises `ImageError`."""
        return Prepared(self._cost, call.with_images(self._of))

    def _of(self, image: Image) -> Image:
        if image.digest not in self._plain:
            plain = image if type(image) is Image else Image(image.encoded, image.digest)
            self._plain[image.digest] = plain
        return self._plain[image.digest]
