"""InstructBLIP (Dai et al. 2023) and BLIP-2 (Li et al. 2023) with a FlanT5, in the role `vqa`."""

from collections.abc import Mapping
from typing import Any

from models.core.family import Family, Signs
from models.core.settings import LocalSettings


def refusal(config: Mapping[str, Any]) -> str:
    """Return why a checkpoint with this `config.json` cannot be loaded: only a T5 writes its answers here."""
    text = config.get("text_config")
    language = text.get("model_type") if isinstance(text, dict) else None
    return "" if language == "t5" else f"its language model must be a T5, not {language!r}"


FAMILY = Family(
    "instructblip",
    role="vqa",
    settings=LocalSettings,
    loader="models.families.instructblip.model:from_settings",
    weights="models.families.instructblip.model:weights",
    signs=Signs(
        model_types=("instructblip",), architectures=("Blip2ForConditionalGeneration",), refusal=refusal
    ),
)
