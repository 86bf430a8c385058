"""Calls as they travel to a replica."""

from collections.abc import Sequence
from dataclasses import replace

from models.calls import Call
from models.contract import Prepared
from models.image import Image, ImageError
from service.errors import ImageUndecodable, ScoregateError


def prepare_to_send(calls: Sequence[Call], cost: int) -> list[Prepared | ScoregateError]:
    """Each call as it travels: an image as its file and its digest."""
    plain: dict[str, Image] = {}
    return [to_send(call, cost, plain) for call in calls]


def to_send(call: Call, cost: int, plain: dict[str, Image]) -> Prepared | ScoregateError:
    """One call; calls about one image share what is sent of it."""
    image = getattr(call, "image", None)
    if image is None:
        return Prepared(cost, call)
    try:
        if image.digest not in plain:
            plain[image.digest] = image if type(image) is Image else Image(image.encoded, image.digest)
    except ImageError as exc:
        return ImageUndecodable(str(exc))
    return Prepared(cost, replace(call, image=plain[image.digest]))  # type: ignore[type-var]
