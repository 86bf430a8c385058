"""The plan of an aesthetic predictor for `--check`."""

from dataclasses import replace

from models.checkpoints.hub_file import hub_file
from models.checkpoints.weights import num_parameters, read_file
from models.core.family import Plan
from models.families.aesthetic import AestheticSettings
from models.families.aesthetic.head import head_file
from models.families.clip.plan import plan as plan_clip
from models.families.linear_head import linear_head


def plan(settings: AestheticSettings) -> Plan:
    """Return the plan of the CLIP, with the parameters of the head.  Same errors as for the CLIP."""
    clip, file = plan_clip(settings), hub_file(settings.head)
    if file and not file.cached():
        return replace(clip, loads=f"{clip.loads} and {file.name} of {file.shown}")
    path = (file and file.cached()) or head_file(settings.head)
    linear_head(read_file(path, "meta"), path)  # raises for a file of something else
    total = None if clip.num_parameters is None else clip.num_parameters + num_parameters([path])
    return replace(clip, loads=f"{clip.loads} and {path.name}", num_parameters=total)
