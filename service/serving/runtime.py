"""The local runtime: every configured model in this process, each on its device."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from typing import Self

from models.base import CheckpointError, Model
from models.clip import Clip
from models.clip_flant5 import ClipFlanT5
from models.locate import locate
from models.question_llm import QuestionLLM
from service.serving.batching import Queue
from service.serving.cache import OutcomeCache
from service.serving.device import Device, Resident
from service.serving.handle import Handle
from service.settings import ModelSettings, Settings
from service.telemetry import Instruments


def load_model(name: str, settings: ModelSettings) -> Model:
    """Load one model.  Raises `CheckpointError`, naming the model."""
    place = {"device": settings.device, "dtype": settings.dtype}
    try:
        if settings.family == "open_clip":
            return Clip(
                settings.model or settings.checkpoint,
                pretrained=settings.pretrained,
                resize_mode=settings.resize_mode,
                id=settings.id,
                revision=settings.revision,
                **place,
            )
        found = locate(settings.checkpoint, settings.revision)
        named = {"id": settings.id or found.id, "revision": settings.revision or found.revision}
        if settings.family == "clip_flant5":
            return ClipFlanT5(found.directory, **place, **named)
        return QuestionLLM(found.directory, **place, **named)
    except (CheckpointError, RuntimeError, ValueError, KeyError, TypeError) as exc:
        # torch says RuntimeError to an unknown device, and a config.json may lack anything.
        known = isinstance(exc, CheckpointError | RuntimeError)
        reason = str(exc).partition("\n")[0] if known else repr(exc)
        raise CheckpointError(f"models.{name}: {reason}") from exc


def load_models(settings: Settings) -> dict[str, Model]:
    """Load all models, by configured name."""
    return {name: load_model(name, model) for name, model in settings.models.items()}


class LocalRuntime:
    """
    Devices, threads and handles for *models*.

    The question LLM gets a thread of its own: one generation takes as long as many batches.
    """

    def __init__(self, models: Mapping[str, Model], settings: Settings, instruments: Instruments) -> None:
        # The threads that decode and prepare.
        self.cpu = ThreadPoolExecutor(settings.images.decode_workers, thread_name_prefix="cpu")
        self._instruments = instruments
        self._stack = AsyncExitStack()
        self._settings = settings
        self._models = dict(models)
        cache = settings.cache
        self._cache = OutcomeCache(cache.scores_mb * 2**20) if cache.scores == "memory" else None
        self.devices: list[Device] = []
        self.handles: dict[str, Handle] = {}

    async def __aenter__(self) -> Self:
        """Build, warm, serve."""
        groups: dict[tuple[str, bool], list[Resident]] = {}
        for name, model in self._models.items():
            place = (self._settings.models[name].device, model.info.role == "questions")
            groups.setdefault(place, []).append(Resident(name, model, self._queue(name)))
        for residents in groups.values():
            device = await self._stack.enter_async_context(Device(residents, self._instruments))
            self.devices.append(device)
            for resident in residents:
                self.handles[resident.name] = Handle(resident, device, self.cpu, self._cache)
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Drain and close, in reverse."""
        await self._stack.aclose()
        self.cpu.shutdown()

    def _queue(self, name: str) -> Queue:
        batch, queue = self._settings.models[name].batch, self._settings.queue
        # Sets are written one by one: a batch would only make the first wait for the last.
        writes = self._models[name].info.role == "questions"
        return Queue(
            max_items=1 if writes else batch.max_items,
            max_cost=batch.max_cost_tokens,
            max_waiting=queue.max_cost,
            bulk_waits_s=queue.bulk_waits_s,
        )

    def handle(self, metric: str, role: str) -> Handle | None:
        """The handle that serves *role* for a metric, or None."""
        name = self._settings.model_for(metric, role)
        return None if name is None else self.handles[name]

    def stalled(self) -> bool:
        """Work waits, and no batch has finished for too long."""
        return any(device.stalled_for() > self._settings.server.stall_s for device in self.devices)

    def serving(self, name: str) -> bool:
        """Whether that model's device still runs batches."""
        return any(r.name == name and device.running for device in self.devices for r in device.residents)
