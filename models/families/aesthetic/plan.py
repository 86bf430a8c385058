"""What `--check` says of an aesthetic predictor."""

from dataclasses import replace
from math import prod

from models.core.family import Plan
from models.families.aesthetic import AestheticSettings
from models.families.aesthetic.head import head_file, shapes_of
from models.families.clip.plan import plan as plan_clip


def plan(settings: AestheticSettings) -> Plan:
    """
    What would be loaded: a CLIP, which alone takes memory of the device, and a head.

    Raises:
        CheckpointError: it can be seen that this will not work.
        RuntimeError: torch knows no such device.
    """
    path = head_file(settings.head)
    numbers = sum(prod(tensor.shape) for tensor in shapes_of(path).values())
    clip = plan_clip(settings)
    whole = None if clip.numbers is None else clip.numbers + numbers
    return replace(clip, loads=f"{clip.loads} and {path.name}", numbers=whole)
