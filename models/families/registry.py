"""
All families of models.

Those of this repository are declared in the packages of this folder; other packages add theirs by entry
points of the group `scoregate.models`.  Declarations need neither weights nor torch.
"""

from collections.abc import Mapping
from functools import cache
from importlib.metadata import entry_points

from models.core.family import Family
from models.families import (
    aesthetic,
    artifact,
    blip_itm,
    clip,
    clip_flant5,
    decisions,
    detector,
    embedding,
    fake,
    imagereward,
    instructblip,
    nli,
    ocr,
    openai,
    question_llm,
    transformers_clip,
)
from models.families.plugins import loaded, with_plugins

GROUP = "scoregate.models"
OWN = (
    clip.FAMILY,
    transformers_clip.FAMILY,
    clip_flant5.FAMILY,
    instructblip.FAMILY,
    openai.VLM,
    decisions.FAMILY,
    question_llm.FAMILY,
    openai.LLM,
    openai.REWARD,
    blip_itm.FAMILY,
    imagereward.FAMILY,
    aesthetic.FAMILY,
    artifact.FAMILY,
    nli.FAMILY,
    embedding.FAMILY,
    openai.EMBEDDING,
    ocr.FAMILY,
    detector.MASK2FORMER,
    detector.OWLV2,
    fake.FAMILY,
)


@cache
def families() -> Mapping[str, Family]:
    """Return every family by name.  Raises `PluginError` for an unusable one of another package."""
    return with_plugins({family.name: family for family in OWN}, GROUP, Family)


@cache
def packages() -> Mapping[str, str]:
    """Return package and version for each family of another package."""
    entries = entry_points(group=GROUP)
    return {loaded(each).name: f"{each.dist.name} {each.dist.version}" for each in entries if each.dist}
