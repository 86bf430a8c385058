"""Questions about one picture to a VQA model, outside any metric."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from models.core.calls import Call
from models.core.contract import ModelInfo
from models.images.image import Image, ImageError
from service.core.concurrency.budget import one_caller
from service.core.errors import DeadlineExceeded
from service.images.loader import ImageLoader, ImageRef
from service.scoring.repeated import raise_if_changed, repeated
from service.serving.backends.prepare import not_decoded
from service.serving.context import Context
from service.serving.demand import Demand
from service.serving.handle import Handle
from service.serving.runtime import Runtime


class Asker:
    """Sends the calls of a request to one VQA model of the *runtime*, with pictures from *images*."""

    def __init__(self, runtime: Runtime, images: ImageLoader) -> None:
        self._runtime, self._images = runtime, images

    @property
    def models(self) -> dict[str, Handle]:
        """The VQA models by their names in the settings."""
        return {name: each for name, each in self._runtime.handles.items() if each.info.role == "vqa"}

    async def ask(
        self,
        model: Handle,
        picture: ImageRef,
        calls: Callable[[Image, ModelInfo], Sequence[Call]],
        demand: Demand,
        context: Context,
    ) -> tuple[list[Any], ModelInfo]:
        """
        Return the outcome of each call in order, errors among them, and the model that computed all.

        Args:
            calls: makes the calls of the opened picture, for a model.

        Raises:
            LaneFull, Overloaded, TooLarge: the model cannot take the request.
            QuotaExceeded, LargerThanQuota: it exceeds the caller's quota, of which each call is one.
            BadImage: the picture cannot be opened.
            DeadlineExceeded: the deadline passed.
            ModelChanged: the model was replaced, and again during the repetition.
        """
        return await repeated(lambda context: self._ask(model, picture, calls, demand, context), context)

    async def _ask(
        self,
        model: Handle,
        picture: ImageRef,
        calls: Callable[[Image, ModelInfo], Sequence[Call]],
        demand: Demand,
        context: Context,
    ) -> tuple[list[Any], ModelInfo]:
        with one_caller(context.caller), model.used_by(context):
            model.admit(context, demand)
            context.charge(demand.calls)
            try:
                async with (
                    asyncio.timeout_at(context.deadline),
                    self._images.open(picture, context) as image,
                ):
                    info = model.info
                    context.use(model.name, info)
                    outcomes = await model.call(calls(image, info), context)
                    raise_if_changed(outcomes)
                    return outcomes, info
            except TimeoutError as exc:
                raise DeadlineExceeded(stage=context.stage) from exc
            except ImageError as exc:
                raise not_decoded(exc) from exc
