"""VQAScore (Lin et al. 2024, "Evaluating Text-to-Visual Generation with Image-to-Text Generation")."""

from math import exp
from typing import Literal

from models.outcomes import Likelihood
from service.fields import Prompt, Template
from service.metrics.contract import Item, Metric, MetricOptions, Score
from service.metrics.models import Models


class VqaScoreOptions(MetricOptions):
    """Options of `vqascore`."""

    question: Template | None = None
    answer: Prompt = "Yes"
    output: Literal["probability", "logit"] = "probability"
    normalization: Literal["reference", "product", "first_token"] = "reference"


async def vqascore(item: Item, models: Models, options: VqaScoreOptions) -> Score:
    """
    P("Yes" | image, 'Does this figure show "{prompt}"? Please answer yes or no.'), equations 2-3.

    The paper's likelihood is a product over the answer's tokens [Yes, </s>]; the released code
    (t2v_metrics) averages their log-probabilities, so that published scores are the square root of
    that product.  The default is the released code's; `normalization` reaches the others.
    """
    question = (options.question or models.vqa.question).replace("{}", item.prompt)
    [answer] = await models.vqa.ask(item.image, [question], options.answer)
    chance = likelihood(answer, options.normalization)
    details = {
        "question": question,
        "answer": options.answer,
        "likelihood": chance,
        "normalization": options.normalization,
        "log_probs": list(answer.log_probs),
        "p_yes": exp(answer.log_p_yes),
        "p_no": exp(answer.log_p_no),
        "logit": answer.logit,
        "label_mass": answer.label_mass,
    }
    cut = ("the question was cut at the model's length",) if answer.truncated else ()
    return Score(answer.logit if options.output == "logit" else chance, details, warnings=cut)


def likelihood(answer: Likelihood, normalization: str) -> float:
    """exp of the mean ("reference"), of the sum ("product") or of the first log-probability."""
    log_probs = answer.log_probs
    if normalization == "first_token":
        return exp(log_probs[0])
    return exp(sum(log_probs) / (len(log_probs) if normalization == "reference" else 1))


metric = Metric(
    "vqascore",
    vqascore,
    options=VqaScoreOptions,
    roles=("vqa",),
    range=(0, 1),
    paper="Lin et al. 2024, arXiv 2404.01291",
    default=True,
)
