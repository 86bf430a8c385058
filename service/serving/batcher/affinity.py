"""Affinity: the calls that a free device skips, since another one has the features of their image."""

from collections.abc import Collection, Mapping
from typing import Any

SOON = 0.25  # of a typical call's time: about what computing the features of its image takes


def skips(image: str, device: str, copies: Mapping[str, Any], soon: Collection[str]) -> bool:
    """
    Return True if *device*, which is free, skips a call: another device has features of its image.

    Args:
        image: its digest; empty if the model keeps no features.
        copies: of the model, by device.
        soon: the other devices that are free now or soon.
    """
    if not image:
        return False
    holders = {name for name, copy in copies.items() if image in getattr(copy, "features", ())}
    return device not in holders and not holders.isdisjoint(soon)
