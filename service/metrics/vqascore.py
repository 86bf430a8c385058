"""
VQAScore (Lin et al. 2024, "Evaluating Text-to-Visual Generation with Image-to-Text Generation").

The question is `Does this figure show "PROMPT"? Please answer yes or no.` The score is the likelihood of
the answer's two tokens: `Yes` with probability p₁, and then the end token `</s>` with probability p₂.

A VLM behind a server has p₁ alone, in all forms.
"""

from math import exp, inf
from typing import Literal

from pydantic import ValidationInfo, field_validator
from typing_extensions import TypedDict

from service.core.fields import PLACEHOLDER, TextOrTemplate
from service.metrics.common.contract import Item, Metric, MetricOptions, Score
from service.metrics.common.model_calls import ModelCalls
from service.observability.notes import Code, Note
from service.serving.admission import Demand

QUESTION_CUT_NOTE = Note(Code.QUESTION_TRUNCATED, "the question was cut at the model's length")


class VqaScoreOptions(MetricOptions):
    """
    Options of `vqascore`.  A question without `{}` needs an answer with it.

    Attributes:
        normalization: `"reference"` (default): exp((log p₁ + log p₂) / 2) = √(p₁ p₂), the authors' released
            code, t2v_metrics; `"product"`: p₁ p₂, the paper's equation 3; `"first_token"`: p₁, P(Yes) alone
        question: other templates; one of both must have `{}`, for the prompt. The answer `{}` gives
            VisualGPTScore (arXiv 2306.01879), for comparing pictures of one prompt.
        answer: other templates; one of both must have `{}`, for the prompt. The answer `{}` gives
            VisualGPTScore (arXiv 2306.01879), for comparing pictures of one prompt.
        output: `"logit"`: log P(Yes) - log P(No) of the first token, without bounds; `"negative_no"`: -P(No)
            of the first token. Neither output depends on `answer` or `normalization`.
    """

    answer: TextOrTemplate = "Yes"
    question: TextOrTemplate | None = None
    output: Literal["probability", "logit", "negative_no"] = "probability"
    normalization: Literal["reference", "product", "first_token"] = "reference"

    @field_validator("question")
    @classmethod
    def _one_of_both_holds_the_prompt(cls, question: str | None, info: ValidationInfo) -> str | None:
        answer = info.data.get("answer", PLACEHOLDER)  # it is missing if it was refused already
        if question is not None and PLACEHOLDER not in question and PLACEHOLDER not in answer:
            raise ValueError("must contain {} exactly once, where the prompt goes, unless answer contains it")
        return question

    def overruled(self) -> dict[str, str]:
        """Return the options without effect: only a likelihood has an answer of its own."""
        of_likelihood = dict.fromkeys(("answer", "normalization"), "output")
        return super().overruled() | (of_likelihood if self.output != "probability" else {})


class VqaScoreDetails(TypedDict):
    """
    Details of `vqascore`.

    Attributes:
        likelihood: of the answer, under the *normalization*.
        log_probs: of the answer's tokens.
        p_yes: of "Yes" as the first token; p_no likewise, and label_mass is their sum.
        logit: log p_yes - log p_no.
    """

    question: str
    answer: str
    likelihood: float
    normalization: str
    log_probs: list[float]
    p_yes: float
    p_no: float
    logit: float
    label_mass: float


async def vqascore(item: Item, models: ModelCalls, options: VqaScoreOptions) -> Score:
    """
    Return P("Yes" | image, 'Does this figure show "{prompt}"? Please answer yes or no.'), equations 2-3.

    The paper's likelihood is a product over the answer's tokens [Yes, </s>]; the released code
    (t2v_metrics) averages their log-probabilities, so that published scores are the square root of
    that product.  The default is that of the released code; `normalization` selects the others.

    With `{}` in `answer`, the score is P(prompt | image, question): VisualGPTScore (Lin et al. 2024,
    "Revisiting the Role of Language Priors in Vision-Language Models").  Tables 13 and 14 of the VQAScore
    paper compare questions and answers; `output: "negative_no"` is -P("No") of table 14.
    """
    vqa = models.vqa
    question = (options.question or vqa.question).replace(PLACEHOLDER, item.prompt)
    expected = options.answer.replace(PLACEHOLDER, item.prompt)
    [answer] = await vqa.ask(item.image, [question], expected)
    details: VqaScoreDetails = {
        "question": question,
        "answer": expected,
        "likelihood": answer.normalized(options.normalization),
        "normalization": options.normalization,
        "log_probs": list(answer.log_probs),
        "p_yes": exp(answer.log_p_yes),
        "p_no": exp(answer.log_p_no),
        "logit": answer.logit,
        "label_mass": answer.label_mass,
    }
    outputs = {
        "probability": details["likelihood"],
        "logit": answer.logit,
        "negative_no": -details["p_no"],
    }
    cut = (QUESTION_CUT_NOTE,) if answer.truncated else ()
    return Score(outputs[options.output], details, warnings=cut)


def demand_of(prompt: str, options: VqaScoreOptions) -> dict[str, Demand]:
    """Return one call, with a question and an answer that may both be long."""
    texts = (options.question or PLACEHOLDER, options.answer)
    return {"vqa": Demand(1, sum(len(text.replace(PLACEHOLDER, prompt)) for text in texts))}


def range_of(options: VqaScoreOptions) -> tuple[float, float]:
    """Return the range of an output; a logit has no bounds."""
    ranges = {"probability": (0, 1), "logit": (-inf, inf), "negative_no": (-1, 0)}
    return ranges[options.output]


metric = Metric(
    "vqascore",
    vqascore,
    options=VqaScoreOptions,
    details=VqaScoreDetails,
    roles=("vqa",),
    demand_of=demand_of,
    range=range_of,
    formula='√(P("Yes")·P("</s>"|"Yes"))',
    paper="Lin et al. 2024, arXiv 2404.01291",
    default=True,
)
