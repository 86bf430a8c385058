"""
A causal language model run through transformers, in the role `questions`.

The family `transformers` writes greedily, one prompt after the other, with a fast tokenizer and
safetensors. For a model of a useful size take vLLM.
"""

from typing import Annotated

from pydantic import Field

from models.core.family import Family, Signs
from models.core.settings import NOT_IN_RECIPE, LocalSettings


class QuestionLLMSettings(LocalSettings):
    """A checkpoint as transformers saves it."""

    timeout_s: Annotated[float, NOT_IN_RECIPE] = Field(
        60, gt=0, description="Time for one question set, waiting included."
    )


FAMILY = Family(
    "transformers",
    role="questions",
    loads="a causal language model with a fast tokenizer and a chat template",
    settings=QuestionLLMSettings,
    loader="models.families.question_llm.model:from_settings",
    weights="models.checkpoints.files:safetensors_files",
    required=False,
    signs=Signs(architectures=("ForCausalLM",)),
)


def user_message(style: str, prompt: str) -> str:
    """Return the user message; the system message explains the *style* of the questions."""
    return f"style: {style}\nprompt: {prompt}"
