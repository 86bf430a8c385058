"""Wire types of responses: routes return them, and they document the API."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from service.core.fields import Orient
from service.core.policy import Verdict
from service.observability.notes import Code


class ServiceBuild(TypedDict):
    """The service's version, and the commit of its code if known."""

    version: str
    commit: NotRequired[str]


class UsedModel(TypedDict):
    """
    A model of a request.

    Attributes:
        recipe: a digest of everything that affects its outputs; with an equal one they differ by rounding.
        hardware: the name of its GPU.
    """

    recipe: str
    dtype: str
    device: str
    hardware: NotRequired[str]


class Preprocessing(TypedDict):
    """
    How pictures become pixels.

    Attributes:
        arithmetic: the version of preprocessing and forward passes.
        orient: of pictures that have no orientation of their own in the request.
    """

    arithmetic: int
    orient: Orient


class PartEntry(TypedDict):
    """One part of a composite, with the options that differ from their defaults."""

    weight: float
    subtract: float
    divide_by: float
    options: dict[str, Any]


class Provenance(TypedDict):
    """
    What the scores of a response were computed with.

    Attributes:
        models: by configured name, as `models` of the response.
        options: of each metric, defaults included.
        composites: the parts of each composite, as in `GET /models`; absent without one.
        libraries: versions of Python and of libraries.
    """

    service: ServiceBuild
    models: dict[str, UsedModel]
    options: dict[str, dict[str, Any]]
    composites: NotRequired[dict[str, dict[str, PartEntry]]]
    preprocessing: Preprocessing
    libraries: Mapping[str, str]


class ErrorEntry(TypedDict):
    """
    Why a score or a question set is missing.

    Attributes:
        code: a stable code.
        detail: a sentence for people.
        retry_after_s: the predicted wait, if one was predicted.
    """

    code: str
    detail: str
    retry_after_s: NotRequired[float]


class Result(TypedDict):
    """
    Scores of one item.

    Attributes:
        index: of the item in the request.
        scores: a finite number for each metric that has one.
        errors: by metric, for each one without a score.
        cache: by metric with a score: `hit` if all its calls were cached, `coalesced` if the others joined
            calls in progress, else `miss`.  With questions: whether the set was stored (`hit`), written for
            this request (`miss`) or for another one at the time (`coalesced`).  If `cache.scores` is off, or
            the model has no revision, calls have no `hit` or `miss`, and one that joined makes `coalesced`.
        details: with `explain`.
        usable: each `required` metric has a score; absent if none is required.
        options: as in `provenance`, if the item has options of its own.
        orient: of its pictures, if it differs from that in `provenance`.
        question_sets: the ids of the sets by metric; a composite's part is `NAME.PART`.
    """

    index: int
    id: NotRequired[str]
    scores: dict[str, float]
    errors: NotRequired[dict[str, ErrorEntry]]
    usable: NotRequired[bool]
    cache: NotRequired[dict[str, Literal["hit", "miss", "coalesced"]]]
    options: NotRequired[dict[str, dict[str, Any]]]
    orient: NotRequired[Orient]
    question_sets: NotRequired[dict[str, str]]
    details: NotRequired[dict[str, Any]]


class WarningCode(TypedDict):
    """
    The code of the warning at the same index of `warnings`.

    `item` is there if it is about one item, and not about the whole request, and `metric` if it is about one
    score.  `share` is that of unknown tokens.
    """

    code: Annotated[str, Field(description=f"One of {', '.join(Code)}; there may be others later.")]
    item: NotRequired[int]
    metric: NotRequired[str]
    share: NotRequired[float]


class Warnings(TypedDict, total=False):
    """Sentences and their codes, with the same length and order; absent without warnings."""

    warnings: list[str]
    warning_codes: list[WarningCode]


class Line(Result, Warnings):
    """Line of an item in `POST /score?stream=1`: its entry of `results`, with its own warnings."""


class ScoreWhole(Warnings):
    """
    What concerns all items of `POST /score`.

    Attributes:
        partial: whether a score is missing.  The status is 200 even if every picture is broken.
        models: `id@revision` of each model, by its configured name.
        timings_ms: the longest time of one picture or call in each stage, and the total.
    """

    request_id: str
    partial: bool
    models: Mapping[str, str]
    provenance: Provenance
    timings_ms: dict[str, float]


class ScoreAnswer(ScoreWhole):
    """
    Response of `POST /score`; `warnings` and `warning_codes` have the same length and order.

    Attributes:
        results: one for each item, in the order of the request.
        partial: whether a score is missing.  The status is 200 even if every picture is broken.
        warnings: sentences for people.
        models: `id@revision` of each model, by its configured name.
        timings_ms: the longest time of one picture or call in each stage, and the total.
    """

    results: list[Result]


class ScoreEnd(ScoreWhole):
    """Last line of `POST /score?stream=1`, if nothing has failed as a whole."""

    done: Literal[True]


class PlaceError(ErrorEntry):
    """Why a picture has no place by score, and the metric that it failed under."""

    metric: str


class PlaceEntry(TypedDict):
    """
    One picture of a ranking; either `score` and `decided_by` are there, or `error`.

    Attributes:
        score: by the metric that decided.
        decided_by: that metric.
        scores: by each metric that the picture was shown to.
        question_sets: as in `POST /score`.
    """

    index: int
    accepted: bool
    score: NotRequired[float]
    decided_by: NotRequired[str]
    error: NotRequired[PlaceError]
    scores: dict[str, float]
    question_sets: NotRequired[dict[str, str]]
    details: NotRequired[dict[str, Any]]


class RankAnswer(Warnings):
    """Response of `POST /rank`: the pictures, best first, and last those that failed."""

    request_id: str
    ranking: list[PlaceEntry]
    models: Mapping[str, str]
    provenance: Provenance
    timings_ms: dict[str, float]


class StrengthEntry(TypedDict):
    """A Bradley-Terry strength, in log-odds, and its standard error."""

    value: float
    stderr: float


class PairEntry(TypedDict):
    """
    The verdict on two pictures.

    Attributes:
        orders_agree: both orders have the same verdict; a metric that sees one picture has no orders.
        details: `difference` and `noise` of the scores, or `orders`: for each order the candidate, its
            score, and the metric's details.
    """

    a: int
    b: int
    winner: Literal["a", "b", "tie"]
    orders_agree: bool
    details: NotRequired[dict[str, Any]]


class FailedPairEntry(TypedDict):
    """Two pictures without a verdict, and the reason."""

    a: int
    b: int
    error: ErrorEntry


class Verdicts(TypedDict):
    """
    The pairs of a comparison, and what they come to; pictures are named by their indices.

    Attributes:
        ranking: the pictures that have a pair, the strongest first.
        win_rates: in the order of the request; null for a picture without a pair.
        strengths: likewise.
        ids: of the items, if one has an id.
    """

    ranking: list[int]
    win_rates: list[float | None]
    strengths: list[StrengthEntry | None]
    pairs: list[PairEntry]
    failed: list[FailedPairEntry]
    ids: NotRequired[list[str | None]]


class CompareAnswer(Verdicts, Warnings):
    """Response of `POST /compare`."""

    request_id: str
    metric: str
    models: Mapping[str, str]
    provenance: Provenance
    timings_ms: dict[str, float]


class PolicyDecision(TypedDict):
    """
    The decision of one policy about one item.

    Attributes:
        because: the comparisons from which it follows, or what decided in their place.
        skipped: metrics of the policy that were not started.
    """

    decision: Verdict
    because: str
    skipped: list[str]
    decision_id: str


class DecisionEntry(TypedDict):
    """
    The decision about one item.

    Attributes:
        decision, because, skipped, decision_id: if the request names one policy; else `policies` has them.
        policies: the decisions of several policies, by name.
        question_sets: as in `POST /score`.
    """

    index: int
    id: NotRequired[str]
    group: NotRequired[str]
    decision: NotRequired[Verdict]
    because: NotRequired[str]
    skipped: NotRequired[list[str]]
    decision_id: NotRequired[str]
    policies: NotRequired[dict[str, PolicyDecision]]
    scores: dict[str, float]
    errors: NotRequired[dict[str, ErrorEntry]]
    question_sets: NotRequired[dict[str, str]]
    details: NotRequired[dict[str, Any]]


class DecideAnswer(Warnings):
    """Response of `POST /decide`; `policy` has the ids, as many as the request has names."""

    request_id: str
    policy: str | list[str]
    decisions: list[DecisionEntry]
    models: Mapping[str, str]
    provenance: Provenance
    timings_ms: dict[str, float]


class PolicyEntry(TypedDict):
    """
    One policy, with its id as it is now.

    Attributes:
        ranges: the least and the largest score of each metric by its options; null where there is no bound.
    """

    id: str
    accept: str
    review: NotRequired[str]
    rank_by: NotRequired[str]
    without_score: Verdict
    unreadable: Verdict
    timeout_ms: int
    options: dict[str, dict[str, Any]]
    ranges: dict[str, tuple[float | None, float | None]]


class PoliciesAnswer(TypedDict):
    """Response of `GET /policies`: each policy, by name."""

    policies: dict[str, PolicyEntry]


class LabelAnswer(TypedDict):
    """Response of `POST /decisions/{id}/label`, once the label is stored."""

    request_id: str


class QuestionEntry(TypedDict):
    """
    One question of a set.

    Attributes:
        kind: what it tests.
        depends_on: the ids of its parents.
        expected: the right answer.
        phrase: the words of the prompt that it is about.
    """

    id: int
    kind: str
    text: str
    depends_on: list[int]
    expected: str
    choices: NotRequired[list[str]]
    phrase: NotRequired[str]


class SetEntry(TypedDict):
    """
    The question set of one prompt, or the error.

    Attributes:
        id: a digest of the questions, for the option `question_set`.
        cached: whether it was stored already.
        provenance: what wrote it.
        unasked: keywords of the prompt without a question.
    """

    prompt: str
    style: str
    id: NotRequired[str]
    cached: NotRequired[bool]
    questions: NotRequired[list[QuestionEntry]]
    provenance: NotRequired[dict[str, str]]
    unasked: NotRequired[list[str]]
    error: NotRequired[ErrorEntry]


class QuestionsAnswer(TypedDict):
    """
    Response of `POST /questions`.

    Attributes:
        sets: one for each prompt, in order.
        models: the label of the question LLM, by its configured name.
    """

    request_id: str
    sets: list[SetEntry]
    models: dict[str, str]


class ModelEntry(TypedDict):
    """
    One configured model.

    Attributes:
        hardware: the name of the GPU.
        devices: the state of each device that has a copy, if there are several.
        id: of the checkpoint.
        recipe: as in a score's provenance.
        ready: whether it serves.
        demo: one of the repository's own, whose scores mean nothing for real pictures.
    """

    name: str
    role: str
    family: str
    id: str
    revision: str
    dtype: str
    device: str
    recipe: str
    hardware: NotRequired[str]
    ready: bool
    demo: bool
    devices: NotRequired[dict[str, str]]


class MetricEntry(TypedDict):
    """
    One metric with its default options, and whether it is ready.

    Attributes:
        range: the smallest and the largest score; null where there is no bound.
        roles: of the models that all requests need.
        may_use: roles that only some requests need.
        uses: other inputs, at least with some options: `references`, `source`.
        reads_prompt: whether it needs a prompt.
        options: with their defaults.
        models: the configured names of the models that it may use.
        ready: whether all models that it needs are ready, and none that it may use failed.
        needs: what an item must have besides its picture and prompt.
        style: of its question sets, if it has some.
        degraded: which model failed, and how, if one did; the metric is tried all the same.
        only: what it can score, if a model that it may use is not configured.
        parts: those of a composite, by metric.
    """

    range: tuple[float | None, float | None]
    direction: str
    formula: str
    paper: str
    roles: list[str]
    may_use: list[str]
    uses: list[str]
    reads_prompt: bool
    options: dict[str, Any]
    models: list[str]
    ready: bool
    needs: NotRequired[str]
    style: NotRequired[str]
    degraded: NotRequired[str]
    only: NotRequired[str]
    parts: NotRequired[dict[str, PartEntry]]


class AbsentMetricEntry(TypedDict):
    """One metric that is not served: why, and its options with their defaults."""

    reason: str
    options: dict[str, Any]


class ModelsAnswer(TypedDict):
    """
    Response of `GET /models`; `preprocessing` and `libraries` are as in a score's provenance.

    Attributes:
        metrics: those that are served, by name.
        absent: those that are not served, by name.
        limits: every limit of a request, and the default of `orient`.
    """

    service: ServiceBuild
    preprocessing: Preprocessing
    libraries: Mapping[str, str]
    models: list[ModelEntry]
    metrics: dict[str, MetricEntry]
    absent: dict[str, AbsentMetricEntry]
    limits: dict[str, Any]


class LiveAnswer(TypedDict):
    """Response of `GET /livez`."""

    status: Literal["ok"]


class HealthAnswer(TypedDict):
    """
    Response of `GET /health`: the metrics that are ready, and why others are not.

    Attributes:
        rewards: the metrics whose models all work, with the word that trainers read.
        degraded: metrics that are tried although a model of theirs failed, each with the reason.
        not_ready: metrics that cannot be scored now, each with the reasons.
        devices: by model, devices that were taken out while others serve it, each with its fault; with one
            the status is "degraded".
    """

    status: Literal["ok", "degraded"]
    rewards: dict[str, list[str]]
    degraded: dict[str, str]
    not_ready: dict[str, list[str]]
    devices: dict[str, dict[str, str]]


class ReadyAnswer(TypedDict):
    """
    Response of `GET /readyz`.

    Attributes:
        reasons: why it is not ready.
        models: `ready` or a reason, by configured name.
        caches: `ready` or a reason of each cache in a Redis, which does not change the status.
    """

    ready: bool
    reasons: list[str]
    models: dict[str, str]
    caches: dict[str, str]


class FaultEntry(TypedDict):
    """
    One error of a request.

    Attributes:
        pointer: its place in the request, as a JSON pointer.
        code: such as `missing`, `extra_forbidden` or `too_many_items`.
        valid: allowed names or values, for an unknown one.
        did_you_mean: the one of them that is most alike.
    """

    pointer: str
    code: str
    detail: str
    valid: NotRequired[list[str]]
    did_you_mean: NotRequired[str]


class Problem(TypedDict):
    """
    A failed request, as `application/problem+json` (RFC 9457).

    Attributes:
        code: a stable code.
        detail: a sentence for people.
        errors: at most twenty wrong places of the request.
        docs: the path of the page about the API, on this server.
        retry_after_s: the predicted wait, if one was predicted.
    """

    type: str
    title: str
    status: int
    detail: str
    code: str
    request_id: str
    errors: NotRequired[list[FaultEntry]]
    docs: NotRequired[str]
    retry_after_s: NotRequired[float]
