"""Requests that are repeated once because a model was replaced meanwhile."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from typing import TypeVar

from service.core.errors import ModelChanged
from service.serving.context import Context, free

T = TypeVar("T")


async def repeated(work: Callable[[Context], Awaitable[T]], context: Context) -> T:
    """
    Return the result of *work* on a whole request, repeated once if a model was replaced meanwhile.

    Scores of two models would stand under one name otherwise.  The repetition is not charged.

    Raises:
        ModelChanged: a model was replaced during the repetition, too.
    """
    try:
        return await work(context)
    except ModelChanged:
        context.request.models.clear()
        return await work(replace(context, charge=free))


def raise_if_changed(results: Iterable[object]) -> None:
    """Raise the first `ModelChanged` among *results*: it is an error of the request, not of one score."""
    for result in results:
        if isinstance(result, ModelChanged):
            raise result
