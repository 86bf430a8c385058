"""Calls outside any metric: questions about one picture to a VQA model, and question sets for prompts."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from models.core.calls import Call
from models.core.contract import ModelInfo
from models.images.image import Image, ImageError
from service.core.concurrency.budget import one_caller
from service.core.concurrency.tasks import side_by_side
from service.core.errors import REFUSALS, DeadlineExceeded, ScoregateError
from service.images.loader import ImageLoader, ImageRef
from service.questions.sets import QuestionSet
from service.questions.style import Style
from service.questions.writer import QuestionWriter
from service.scoring.engine import raise_if_changed, repeated
from service.serving.admission import Demand
from service.serving.backends.contract import not_decoded
from service.serving.context import CacheStatus, Context
from service.serving.handle import Handle, used
from service.serving.runtime import Runtime


class Asker:
    """Sends the calls of a request to models of the *runtime*, with pictures from *images*."""

    def __init__(self, runtime: Runtime, images: ImageLoader, writer: QuestionWriter) -> None:
        self._runtime, self._images, self._writer = runtime, images, writer

    @property
    def models(self) -> dict[str, Handle]:
        """The VQA models by their names in the settings."""
        return {name: each for name, each in self._runtime.handles.items() if each.info.role == "vqa"}

    async def ask(
        self,
        model: Handle,
        refs: Mapping[ImageRef, str],
        calls: Callable[[Sequence[Image], ModelInfo], Sequence[Call]],
        demand: Demand,
        context: Context,
    ) -> tuple[list[Any], ModelInfo]:
        """
        Return the outcome of each call in order, errors among them, and the model that computed all.

        Args:
            refs: with their places in the request, for errors.
            calls: makes the calls of the opened pictures, in order, for a model.

        Raises:
            LaneFull, Overloaded, TooLarge: the model cannot take the request.
            QuotaExceeded, LargerThanQuota: it exceeds the caller's quota, of which each call is one.
            BadImage: a picture cannot be opened.
            DeadlineExceeded: the deadline passed.
            ModelChanged: the model was replaced, and again during the repetition.
        """

        async def once(context: Context) -> tuple[list[Any], ModelInfo]:
            with one_caller(context.account.name), model.used_by(context):
                model.admit(context, demand)
                context.account.charge(demand.calls)
                try:
                    async with (
                        asyncio.timeout_at(context.deadline),
                        self._opened(refs, context) as images,
                    ):
                        info = model.info
                        context.use(model.name, info)
                        outcomes = await model.call(calls(images, info), context)
                        raise_if_changed(outcomes)
                        return outcomes, info
                except TimeoutError as exc:
                    raise DeadlineExceeded(stage=context.calls.stage) from exc
                except ImageError as exc:
                    raise not_decoded(exc) from exc

        return await repeated(once, context)

    @asynccontextmanager
    async def _opened(self, refs: Mapping[ImageRef, str], context: Context) -> AsyncIterator[Sequence[Image]]:
        """Open *images*, with the memory of all pixels reserved in one step.  Raises `BadImage`."""
        if len(refs) == 1:
            [only] = refs
            async with self._images.open(only, context) as image:
                yield [image]
            return
        async with AsyncExitStack() as stack:
            read = await self._images.read_together(refs, stack, context)
            images = [read[ref] for ref in refs]
            async with self._images.pixels.reserve(images, context):
                yield images

    async def question_sets(
        self, prompts: Sequence[str], style: Style, llm: Handle | None, context: Context
    ) -> list[tuple[QuestionSet, CacheStatus] | ScoregateError]:
        """
        Return for each prompt, in order, its question set and cache status, or an error.

        Raises:
            LaneFull, Overloaded: the question LLM is full, and some set has to be written.
            TooLarge: more sets are missing than any request may have written.
            NotReady: the store failed.
            QuotaExceeded, LargerThanQuota: it exceeds the caller's quota.
            ModelChanged: the LLM was replaced twice, during the work and during its repetition.
        """
        return await repeated(lambda context: self._question_sets(prompts, style, llm, context), context)

    async def _question_sets(
        self, prompts: Sequence[str], style: Style, llm: Handle | None, context: Context
    ) -> list[tuple[QuestionSet, CacheStatus] | ScoregateError]:
        if llm and (unwritten := await self._writer.unwritten(prompts, style, llm)):
            llm.admit(context, Demand(len(unwritten), sum(map(len, unwritten))))
        context.account.charge(len(prompts))
        with used([llm] if llm else [], context):
            results = await side_by_side([self._question_set(each, style, llm, context) for each in prompts])
        raise_if_changed(results)
        refused = {result.code: result for result in results if isinstance(result, REFUSALS)}
        if any(not isinstance(result, ScoregateError) for result in results):
            for error in refused.values():  # the rejection of a whole request is counted by its response
                context.instruments.count_rejection(error)
        return results

    async def _question_set(
        self, prompt: str, style: Style, llm: Handle | None, context: Context
    ) -> tuple[QuestionSet, CacheStatus] | ScoregateError:
        try:
            async with asyncio.timeout_at(context.deadline):
                return await self._writer.of(prompt, style, llm, context, admitted=True)
        except TimeoutError:
            return DeadlineExceeded()
        except ScoregateError as error:
            return error
