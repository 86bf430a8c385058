"""
VQA models behind a decision endpoint, which answers many questions about a picture in one request.

```toml
[models.vqa]
family = "decisions"
base_url = "http://127.0.0.1:8003/v1"
model = "/srv/models/my-lfm2-vl"
body = "systemone"
```

All questions about a picture that wait together are one request, in one of three bodies.

* **Questions.** Only "Yes" has a likelihood, choices need two options, and references or written answers
  are `call_refused`.
* **Probabilities** are shares times `label_mass`, which OpenAI's body lacks.
* **Errors.** A question that is refused, or has a probability of exactly 0 or 1, does not affect the
  others.

vLLM 0.32 has `/v1/systemone`, for at most 64 questions and 26 options:

* **LFM2-VL**: `yes`, `Yes` and `YES` are one label, with the share of the likeliest form and the mass of
  all. **On a CPU, vLLM 0.32 computes all published LFM2 wrongly** (those with several attention heads).
  Serve on a GPU, and compare some numbers with transformers first.
* **Clef-Omni**: the mass is 1. Set `max_questions = 1`, or answers depend on the other questions of a
  request.
* **Others** take no pictures, and the model is never ready.
* **Batches** change probabilities by rounding; with `VLLM_BATCH_INVARIANT=1` vLLM does not start for
  LFM2-VL.
* **Tested** only with a tiny random LFM2-VL behind vLLM's CPU build.
"""

from typing import Literal

from pydantic import Field

from models.core.contract import QUESTION
from models.core.family import Family
from models.core.settings import QuestionTemplate, RemoteSettings

Body = Literal["openai", "sglang", "systemone"]


class DecisionEndpointSettings(RemoteSettings):
    """Settings of a decision endpoint."""

    body: Body = Field(
        "openai",
        description="The format of requests: `openai`, `sglang` (both `POST /v1/decisions`), `systemone` "
        "(vLLM, SGLang).",
    )
    max_questions: int = Field(64, ge=1, le=400, description="Most questions of a request; vLLM takes 64.")
    question: QuestionTemplate = QUESTION


FAMILY = Family(
    "decisions",
    role="vqa",
    loads="calls a decision endpoint",
    settings=DecisionEndpointSettings,
    loader="models.families.decisions.model:from_settings",
    planner="models.families.openai:plan",
)
