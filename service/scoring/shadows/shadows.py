"""The shadows of a service, by the model that each of them shadows."""

import logging
from collections.abc import Iterator, Sequence

from service.core.errors import Fault, Invalid, NotFound
from service.images.byte_budget import ByteBudget
from service.images.loader import ImageLoader
from service.observability.collectors import Sample
from service.observability.instruments import Instruments
from service.scoring.engine import Engine
from service.scoring.frames import MetricInput
from service.scoring.shadows.shadow import Options, Results, Shadow
from service.serving.handle import Handle
from service.serving.runtime import Runtime

log = logging.getLogger("scoregate.shadow")


class Shadows:
    """
    Starts and ends shadows, and gives them what the engine scores.

    Args:
        memory: the budget of all requests.
    """

    def __init__(
        self,
        engine: Engine,
        runtime: Runtime,
        images: ImageLoader,
        memory: ByteBudget,
        instruments: Instruments,
    ) -> None:
        self._engine, self._runtime = engine, runtime
        self._images, self._memory, self._instruments = images, memory, instruments
        self._of: dict[str, Shadow] = {}
        engine.on_scored = self._take
        instruments.shadows.read = self._samples

    async def start(self, name: str, revision: str, share: float) -> Shadow:
        """
        Return the shadow of the model *name*; one with another revision is ended first.

        Args:
            revision: the configured name of the model that takes its place.
            share: of the inputs.

        Raises:
            NotFound: there is no model *name*.
            Invalid: *revision* cannot take its place.
        """
        served, shadow = self._handle(name), self._candidate(name, revision)
        running = self._of.get(name)
        if running and running.shadow is shadow and not running.outdated:
            running.share = share
            return running
        if running:
            await self.end(name)
        metrics = [each for each in self._engine.metrics if name in self._engine.catalog.handles([each])]
        self._of[name] = Shadow(
            served,
            shadow,
            share,
            scorer=self._engine.scorer,
            metrics=metrics,
            images=self._images,
            memory=self._memory,
            instruments=self._instruments,
        )
        return self._of[name]

    def of(self, name: str) -> Shadow:
        """Return the shadow of the model *name*.  Raises `NotFound`."""
        if found := self._of.get(self._handle(name).name):
            return found
        raise NotFound(f"the model {name} has no shadow")

    async def end(self, name: str) -> Shadow:
        """End the shadow of the model *name*, and return it.  Raises `NotFound`."""
        ended = self.of(name)
        del self._of[name]
        await ended.aclose()
        return ended

    async def aclose(self) -> None:
        """End all shadows."""
        for name in tuple(self._of):
            await self.end(name)

    def _handle(self, name: str) -> Handle:
        if found := self._runtime.handles.get(name):
            return found
        raise NotFound(f"there is no model {name} here; there are {', '.join(self._runtime.handles)}")

    def _candidate(self, name: str, revision: str) -> Handle:
        """Return the model that may shadow the model *name*.  Raises `Invalid`."""
        handles = self._runtime.handles
        role = handles[name].info.role
        if role == "questions":
            raise invalid(f"{name} writes questions, and both models have to answer the same ones")
        valid = [each for each, handle in handles.items() if handle.info.role == role and each != name]
        if revision not in valid:
            raise invalid(f"is no other model of the role {role} in the profile", revision, valid)
        return handles[revision]

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
