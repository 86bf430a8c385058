"""The plan of a question LLM for `--check`."""

from collections.abc import Iterator

from models.checkpoints.files import safetensors_files
from models.checkpoints.plan import plan_model
from models.core.contract import Prepared
from models.core.family import Plan
from models.families.question_llm import QuestionLLMSettings
from models.families.question_llm.model import QuestionLLM, load


def plan(settings: QuestionLLMSettings) -> Plan:
    """Return the plan of a question LLM.  Same errors as `plan_model`."""
    return plan_model(settings, safetensors_files, load, lambda llm, _: largest(llm))


def largest(llm: QuestionLLM) -> Iterator[list[Prepared]]:
    """
    Yield a chat as long as the example's and the longest answer together, and one token of answer.

    That holds as many keys and values as the end of such an answer, and activations of more tokens.
    """
    cost = llm.prepare(llm.example()).cost
    yield [Prepared(cost, ([0] * cost, 1, None))]
