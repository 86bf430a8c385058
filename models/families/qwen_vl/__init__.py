"""
Qwen2.5-VL (Bai et al. 2025, arXiv 2502.13923) and Qwen3-VL (arXiv 2511.21631), in the role `vqa`.

```toml
[models.vqa]
family = "qwen_vl"
checkpoint = "Qwen/Qwen3-VL-8B-Instruct"
device = "cuda:0"
dtype = "bfloat16"
```

A Qwen2.5-VL (`Qwen2_5_VLForConditionalGeneration`) or Qwen3-VL (`Qwen3VLForConditionalGeneration`) in this
process, without vLLM, for `vqascore`, metrics with questions, and `judge` by labels. Written answers,
Thinking models, mixtures of experts and quantised weights need a server.

* **Numbers.** `vqascore` is P("Yes") as the first token, over the whole vocabulary. A label may be several
  tokens, whose probabilities are multiplied; no label may begin another. Choices are letters, as behind
  vLLM.
* **Parity.** On small random checkpoints of both classes, tokens and pixels equal those of transformers
  5.23 to the bit, and log-probabilities within 1e-5 in float32, also in a batch. Published weights have not
  been run here.
* **Shared.** Questions about a picture in one batch share the picture and the words that they begin with.
  Against `batch.max_cost_tokens` the picture counts once: one of 1024x1024 as about 5,100 with Qwen3-VL.
"""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from models.core.contract import QUESTION
from models.core.family import Family, Signs
from models.core.settings import NOT_IN_RECIPE, LocalSettings, QuestionTemplate

MODEL_TYPES = ("qwen2_5_vl", "qwen3_vl")
# The number of parameters of published models, known before a download.
PUBLISHED_MODELS = {
    "Qwen/Qwen3-VL-8B-Instruct": 8_767_123_696,
    "Qwen/Qwen2.5-VL-7B-Instruct": 8_292_166_656,
}


class QwenVlSettings(LocalSettings):
    """A checkpoint as transformers saves it."""

    question: QuestionTemplate = QUESTION
    max_pixels: int | None = Field(
        None,
        ge=56 * 56,
        description="Most pixels of a picture; a larger one is scaled down. By default"
        " the checkpoint's own limit.",
    )
    features_mb: Annotated[int, NOT_IN_RECIPE] = Field(
        256,
        ge=0,
        description="Memory on the device for features of recent pictures: 34 for one of 1024x1024 with"
        " Qwen3-VL-8B in `bfloat16`; 0: none.",
    )


def refusal(config: Mapping[str, Any]) -> str:
    """Return why a checkpoint with this `config.json` cannot be loaded; empty if it can."""
    text = config.get("text_config")
    if config.get("quantization_config") is not None:
        return "its weights are quantised; vLLM serves such a checkpoint"
    if (text if isinstance(text, dict) else config).get("use_sliding_window"):
        return "use_sliding_window is true; only false is implemented"
    return ""


FAMILY = Family(
    "qwen_vl",
    role="vqa",
    loads="a Qwen2.5-VL or Qwen3-VL",
    settings=QwenVlSettings,
    loader="models.families.qwen_vl.model:from_settings",
    planner="models.families.qwen_vl.model:plan",
    repositories={name: {} for name in PUBLISHED_MODELS},
    signs=Signs(model_types=MODEL_TYPES, refusal=refusal),
)
