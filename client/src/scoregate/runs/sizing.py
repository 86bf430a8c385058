"""How long a data set takes on some GPUs, by the formula of docs/operations/sizing.md."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Annotated, Any

from scoregate.errors import InputError
from scoregate.settings import Setting, finite, seconds, whole

# 10^12 operations of one picture with one question, of 336^2 for CLIP-FlanT5 and of 224^2 for a CLIP.
TFLOP_PER_ITEM = {
    "clip-vit-l-14": 0.162,
    "clip-vit-h-14": 0.335,
    "clip-flant5-xl": 1.9,
    "clip-flant5-xxl": 6.35,
}
# 10^12 operations a second in bfloat16; of the cards of the shipped profiles.
TFLOPS_PER_S = {"H100": 400.0, "A100": 156.0, "RTX-4090": 82.5, "L4": 60.5}
JPEGS_PER_CORE_S = 517.0  # JPEGs of 512^2 that a core decodes and resizes in a second


def number(text: str) -> int:
    """Return a whole number from 1, which may be written as 1e9."""
    return whole(str(int(finite(text))))


@dataclass(frozen=True, kw_only=True)
class SizingSettings:
    """Settings of an estimate: each model with each number of pictures on each number of cards."""

    models: Annotated[
        Sequence[str],
        Setting(
            f"of {', '.join(TFLOP_PER_ITEM)} (default: clip-vit-l-14, clip-flant5-xl)",
            positional=True,
            several=True,
            nargs="*",
            metavar="MODEL",
        ),
    ] = ("clip-vit-l-14", "clip-flant5-xl")
    images: Annotated[
        Sequence[int],
        Setting(
            "such as 1e9 (default: 1e7 and 1e9)", ("--pictures",), metavar="N", parse=number, several=True
        ),
    ] = (10**7, 10**9)
    cards: Annotated[
        Sequence[int], Setting("GPUs (default: 1 and 64)", metavar="N", parse=whole, several=True)
    ] = (1, 64)
    card: Annotated[str, Setting("default %(default)s", choices=[*TFLOPS_PER_S])] = "H100"
    rate: Annotated[
        float | None,
        Setting(
            "pictures a second of a card, as measured, in place of the formula", metavar="X", parse=seconds
        ),
    ] = None
    kb: Annotated[float, Setting("of a picture's file (default %(default)g)", metavar="X", parse=finite)] = (
        100.0
    )
    price: Annotated[
        float | None, Setting("of an hour of a card, in any currency", metavar="X", parse=finite)
    ] = None


def estimates(settings: SizingSettings) -> Iterator[dict[str, Any]]:
    """
    Yield the figures of each model with each number of pictures on each number of cards.

    Raises:
        InputError: the operations of a model are not known.
    """
    if unknown := [model for model in settings.models if model not in TFLOP_PER_ITEM]:
        raise InputError(f"no model {', '.join(unknown)}; there are {', '.join(TFLOP_PER_ITEM)}")
    for model, count, used in product(settings.models, settings.images, settings.cards):
        rate = used * (settings.rate or TFLOPS_PER_S[settings.card] / TFLOP_PER_ITEM[model])
        hours = count / rate / 3600
        price = {} if settings.price is None else {"price": hours * used * settings.price}
        yield {
            "model": model,
            "pictures": count,
            "cards": used,
            "per_second": rate,
            "hours": hours,
            "card_hours": hours * used,
            "cores": rate / JPEGS_PER_CORE_S,
            "read_mb_s": rate * settings.kb / 1000,
            **price,
        }
