"""
InstructBLIP (Dai et al. 2023) and BLIP-2 (Li et al. 2023) with a FlanT5, in the role `vqa`.

```toml
[models.vqa]
family = "instructblip"
checkpoint = "Salesforce/instructblip-flan-t5-xl"
device = "cuda:0"
dtype = "bfloat16"
```

Takes one picture a call. The question is LAVIS's, `Question: Does this figure show "{}"? Please answer yes
or no.`, cut at 128 tokens, with a warning. `"options": {"vqascore": {"answer": "yes"}}`, in lower case,
gives t2v_metrics' score, except that pictures are cropped there, and squashed here.
"""

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
    loads="an InstructBLIP, or a BLIP-2 with a FlanT5",
    settings=LocalSettings,
    loader="models.families.instructblip.model:from_settings",
    weights="models.families.instructblip.model:weights",
    signs=Signs(
        model_types=("instructblip",), architectures=("Blip2ForConditionalGeneration",), refusal=refusal
    ),
)
