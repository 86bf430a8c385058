"""The shadows of a service, by the model that each of them shadows."""

import logging
from collections.abc import Iterator, Sequence
from functools import partial

from service.core.errors import Fault, Invalid, NotFound
from service.images.byte_budget import ByteBudget
from service.images.loader import ImageLoader
from service.observability.collectors import Sample
from service.observability.instruments import Instruments
from service.scoring.engine import Engine
from service.scoring.frames import MetricInput
from service.scoring.shadows.shadow import Options, Results, Shadow
from service.serving.handle import Handle
from service.serving.lifecycle import Lifecycle, check_loaded
from service.serving.runtime import Runtime

log = logging.getLogger("scoregate.shadow")


class Shadows:
    """
    Starts and ends shadows, and gives them what the engine scores.

    Args:
        lifecycle: of the models; a start or an end is a change of the model.
        memory: the budget of all requests.
    """

    def __init__(
        self,
        engine: Engine,
        runtime: Runtime,
        lifecycle: Lifecycle,
        images: ImageLoader,
        memory: ByteBudget,
        instruments: Instruments,
    ) -> None:
        self._engine, self._runtime, self._lifecycle = engine, runtime, lifecycle
        self._images, self._memory, self._instruments = images, memory, instruments
        self._of: dict[str, Shadow] = {}
        engine.on_scored = self._take
        lifecycle.before.append(self._free)
        instruments.shadows.read = self._samples

    async def start(self, name: str, revision: str, share: float) -> Shadow:
        """
        Return the shadow of the model *name*; one with another revision ends.

        Args:
            revision: of its checkpoint, which is loaded; or the configured name of another model.
            share: of the inputs.

        Raises:
            NotFound: there is no model *name*.
            Invalid: *revision* cannot take its place.
            Conflict, NotReady: see `Lifecycle.exclusively`.
            ModelFault: the revision fails on its example.
        """
        start = partial(self._start, self._handle(name), revision, share)
        return await self._lifecycle.exclusively(name, "shadow", start)

    def of(self, name: str) -> Shadow:
        """Return the shadow of the model *name*.  Raises `NotFound`."""
        if found := self._of.get(self._handle(name).name):
            return found
        raise NotFound(f"the model {name} has no shadow")

    async def end(self, name: str) -> Shadow:
        """End the shadow of the model *name*, and return it.  Raises `NotFound`, `Conflict`."""
        self.of(name)
        return await self._lifecycle.exclusively(name, "shadow", partial(self._end, name))

    async def aclose(self) -> None:
        """End all shadows."""
        for name in tuple(self._of):
            await self._end(name)

    async def _start(self, served: Handle, revision: str, share: float) -> Shadow:
        name = served.name
        running = self._of.get(name)
        if running and running.revision == revision and not running.outdated:
            running.share = share
            return running
        metrics = [each for each in self._engine.metrics if name in self._engine.catalog.handles([each])]
        configured = self._configured(served, revision)
        shadow = configured or await self._loaded(served, revision)
        if running:
            await self._end(name)
        self._of[name] = Shadow(
            served,
            shadow,
            share,
            revision=revision,
            temporary=not configured,
            scorer=self._engine.scorer,
            metrics=metrics,
            images=self._images,
            memory=self._memory,
            instruments=self._instruments,
        )
        return self._of[name]

    async def _end(self, name: str) -> Shadow:
        ended = self._of.pop(name)
        await ended.aclose()
        return ended

    async def _free(self, name: str) -> None:
        """Free the model that was loaded for the shadow of *name*: a change of that one needs the memory."""
        if shadow := self._of.get(name):
            await shadow.free()

    def _handle(self, name: str) -> Handle:
        if found := self._runtime.handles.get(name):
            return found
        raise NotFound(f"there is no model {name} here; there are {', '.join(self._runtime.handles)}")

    def _configured(self, served: Handle, revision: str) -> Handle | None:
        """Return the other model of the profile with the name *revision*, if any.  Raises `Invalid`."""
        role, handles = served.info.role, self._runtime.handles
        if role == "questions":
            raise invalid(f"{served.name} writes questions, and both models have to answer the same ones")
        valid = self._valid(served)
        if revision in handles and revision not in valid:
            raise invalid(f"is no other model of the role {role} in the profile", revision, valid)
        return handles.get(revision)

    async def _loaded(self, served: Handle, revision: str) -> Handle:
        """Return *revision* of the checkpoint of *served*.  Raises as `Backend.add_revision`."""
        try:
            if revision == served.info.revision:
                raise Invalid(f"{served.info.label} serves already")
            check_loaded(served)
            await self._free(served.name)  # first: the memory may not suffice for three models
            return Handle(await served.backend.add_revision(revision), cache=None)
        except Invalid as exc:
            detail = f"{exc}, and no model of the profile has this name"
            raise invalid(detail, revision, self._valid(served)) from exc

    def _valid(self, served: Handle) -> list[str]:
        """Return the names of the other models of the role."""
        handles = self._runtime.handles.values()
        return [each.name for each in handles if each.info.role == served.info.role and each is not served]

    def _take(self, input: MetricInput, prompt: str, options: Options, results: Results) -> None:
        for name, shadow in self._of.items():
            try:
                shadow.take(input, prompt, options, results)
            except Exception as exc:  # the caller's scores are complete
                log.error("shadow failed", extra={"model": name}, exc_info=exc)

    def _samples(self) -> Iterator[Sample]:
        """Yield the figures of all shadows for Prometheus."""
        for name, shadow in self._of.items():
            for metric in shadow.pairs:
                compared = shadow.comparison(metric)
                if not (figures := compared.figures):
                    continue
                for revision, of in (("served", figures.served), ("shadow", figures.shadow)):
                    for quantile, value in of.quantiles.items():
                        yield "score", (name, metric, revision, quantile), value
                difference = figures.difference
                yield "difference", (name, metric, "mean"), difference.mean
                yield "difference", (name, metric, "sd"), difference.sd
                for method, found in (("pearson", figures.pearson), ("spearman", figures.spearman)):
                    if found is not None:
                        yield "correlation", (name, metric, method), found


def invalid(detail: str, given: str = "", valid: Sequence[str] = ()) -> Invalid:
    """Return the error for the field `revision`."""
    fault = Fault.unknown("/revision", "unknown_model", detail, given, valid)
    return Invalid(f"revision: {fault.detail}", faults=[fault])
