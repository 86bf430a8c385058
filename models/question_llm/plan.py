"""What `--check` says of a question LLM that runs through transformers."""

from pathlib import Path

import torch

from models.checkpoints.files import weight_files
from models.checkpoints.plan import plan_checkpoint, total
from models.family import Plan
from models.question_llm import QuestionLLMSettings


def plan(settings: QuestionLLMSettings) -> Plan:
    """
    What would be loaded.

    Raises:
        CheckpointError: it can be seen that this will not work.
        RuntimeError: torch knows no such device.
    """
    torch.device(settings.device)
    return plan_checkpoint(settings.checkpoint, settings.revision, count, published={})


def count(directory: Path) -> int:
    """How many numbers the weights hold."""
    return total(weight_files(directory))
