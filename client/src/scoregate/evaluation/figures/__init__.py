"""Figures of tables of scores and ratings, by name: each a class of settings and a function."""

from typing import NamedTuple

from scoregate.evaluation.figures import generators, metrics, raters
from scoregate.evaluation.outcome import Evaluated, FigureOutcome, FigureSettings, sliced


class Figure(NamedTuple):
    """A figure: what it is, its settings, the function that computes it from a table, the words of a call."""

    help: str
    settings: type[FigureSettings]
    evaluated: Evaluated
    example: str


FIGURES = {
    "ts2": Figure(
        "a metric on graphs of pictures with known errors (T2IscoreScore): rank, separation, delta",
        metrics.Ts2Settings,
        metrics.of_ts2,
        "--scores scores.jsonl -m vqascore --graph graph --node node --version current",
    ),
    "agreement": Figure(
        "a metric against people's ratings: correlation, and pairwise accuracy with tie calibration",
        metrics.AgreementSettings,
        metrics.of_agreement,
        "--scores scores.jsonl -m vqascore --human rating",
    ),
    "ordering": Figure(
        "generators against each other: Wilcoxon's signed-rank test for every pair (Gecko)",
        generators.OrderingSettings,
        generators.of_ordering,
        "A=a.jsonl B=b.jsonl -m vqascore",
    ),
    "means": Figure(
        "the mean score of each generator; by skill with --by",
        generators.MeansSettings,
        generators.of_means,
        "A=a.jsonl B=b.jsonl -m vqascore --by skill",
    ),
    "alpha": Figure(
        "raters against each other: Krippendorff's alpha, and the share of extreme disagreement",
        raters.AlphaSettings,
        raters.of_alpha,
        "--ratings ratings.csv --unit picture --rater rater --rating stars",
    ),
    "winoground": Figure(
        "two captions and two pictures: Winoground's text, image and group score",
        metrics.WinogroundSettings,
        metrics.of_winoground,
        "--scores scores.jsonl -m vqascore --item id",
    ),
    "auroc": Figure(
        "right pictures against wrong ones: the area under the ROC curve",
        metrics.AurocSettings,
        metrics.of_auroc,
        "--scores scores.jsonl -m vqascore --label good",
    ),
    "preference": Figure(
        "pairs of pictures: the share in which a metric prefers what people prefer (binary accuracy)",
        metrics.PreferenceSettings,
        metrics.of_preference,
        "--scores scores.jsonl -m vqascore --human votes --group prompt",
    ),
    "convergence": Figure(
        "how many raters are enough: alpha, and the generators' order, from every number of them",
        raters.ConvergenceSettings,
        raters.of_convergence,
        "--ratings ratings.csv --unit picture --rater rater --rating stars",
    ),
    "reliable": Figure(
        "the prompts that raters agree about, for every generator and template (Gecko)",
        raters.ReliableSettings,
        raters.of_reliable,
        "--ratings ratings.csv --prompt prompt --model generator --rating stars",
    ),
    "geneval": Figure(
        "GenEval's verdicts: the share of correct pictures by task, and the kappa with people's verdicts",
        generators.GenEvalSettings,
        generators.of_geneval,
        "--results results.jsonl",
    ),
    "sxs": Figure(
        "side-by-side votes (Gecko): generators by majority, and the accuracy of metrics",
        generators.SideBySideSettings,
        generators.of_sxs,
        "--votes votes.csv",
    ),
    "templates": Figure(
        "answers of the templates word level, DSG(H) and Likert (Gecko): agreement, unsure, correlation",
        raters.TemplatesSettings,
        raters.of_templates,
        "--answers answers.csv",
    ),
}


def evaluate(figure: str, settings: FigureSettings) -> FigureOutcome:
    """
    Return a figure of the table that *settings* name; by the values of a column, if they name one.

    Raises:
        InputError: the table or a column has no information.
    """
    return sliced(FIGURES[figure].evaluated, settings, settings.read())
