"""`POST /score`, `POST /rank` and `POST /compare`."""

from collections.abc import Mapping, Sequence
from functools import partial

from fastapi import APIRouter, Request, Response

from service.core.concurrency.tasks import while_connected
from service.core.fields import Orient
from service.metrics.common.contract import MetricOptions
from service.observability.notes import Note
from service.scoring.comparison import Compared, compared
from service.scoring.ranking import RankedItem, ranked
from service.scoring.report import ItemReport, Report, Warned
from service.scoring.win_rates import ranking, strengths, win_rates
from service.web.endpoints import (
    SERVER_TIMING,
    context_of,
    is_streamed,
    json_response,
    provenance_of,
    question_sets,
    requests_of,
    service_of,
    shown,
    timing_header,
    warnings_of,
)
from service.web.openapi import STREAM, TIMEOUT, TRACE, documented
from service.web.problems import entry
from service.web.server.body import read_body
from service.web.streaming import LINES_MEDIA_TYPE, ScoreStream
from service.web.wire.comparison import CompareRequest
from service.web.wire.requests import RankRequest, ScoreRequest, options_of
from service.web.wire.responses import (
    CompareAnswer,
    FailedPairEntry,
    Line,
    PairEntry,
    PlaceEntry,
    RankAnswer,
    Result,
    ScoreAnswer,
    ScoreWhole,
    Verdicts,
)
from service.web.wire.translate import check_served, group_of, items_of, rule_of

router = APIRouter()

LINES = """With `stream=1`: a line of JSON for each item when it is scored, as in `results`, in any order.
The last line has `done` and all other fields, or, if the rest failed as a whole, the `error`."""


@router.post(
    "/score",
    **documented(
        ScoreAnswer,
        ScoreRequest,
        never=[502],  # a model's failure is an entry's error
        parameters=[TIMEOUT, TRACE, STREAM],
        headers={SERVER_TIMING: "The stages of the request, in milliseconds."},
        lines=(LINES_MEDIA_TYPE, LINES),
    ),
)
async def score(request: Request) -> Response:
    """
    Score pictures against prompts.

    With `stream=1` lines that are not read yet are kept, within the memory of all requests; if that is
    full, the last line is the error `memory_full`. The connection is closed if the caller has not read all
    lines 5 s after the request's deadline, or reads less than 8 KiB a second over 30 s of waiting. An error
    before the first line has its status. Later it is the last line, `{"error": {"code": …, "detail": …}}`,
    as `model_changed` when a model was replaced. A response without a last line was cut off.

    Limits that are not settings: 64 pictures of an item, and 128 scored frames of their files (more with
    the option `samples`); 4,000 characters of a template or an answer; 64 questions of 1,000 characters in
    a set; 8 pictures by URL that a metric uses together, as in a grid; 68 file parts for each of
    `server.max_items`. `GET /models` has all limits.
    """
    service = service_of(request)
    wanted, parts = await read_body(request, requests_of(request).score, service.settings.server)
    asked = wanted.asked()
    options = options_of(wanted.options, [*asked.values()])
    items = items_of(wanted, options, parts, service.metrics)
    request.state.items = len(items)
    check_served(asked, service.engine)
    context = context_of(service, request, wanted.timeout_ms, wanted.priority)
    orient = wanted.orient or service.settings.images.orient

    def whole(report: Report) -> ScoreWhole:
        return {
            "request_id": context.request_id,
            "partial": report.partial,
            **warnings_of(report.warnings),
            "models": report.models,
            "provenance": provenance_of(report, options, service.metrics, orient),
            "timings_ms": context.timings_ms(),
        }

    if request.scope.get("query_string") and is_streamed(request):
        score = partial(service.engine.score_once, items, wanted.metrics, context)

        def line(index: int, item: ItemReport, notes: Sequence[Note]) -> Line:
            own = warnings_of([*map(Warned, notes), *item.warned(index)])
            return {**result(index, item, options, orient, wanted.explain), **own}

        return ScoreStream(
            score, line, lambda report: {"done": True, **whole(report)}, context, service.memory
        )
    work = service.engine.score(items, wanted.metrics, context)
    report = await while_connected(request.receive, work)
    if report.partial:
        report.raise_if_failed()
    results = [
        result(index, item, options, orient, wanted.explain) for index, item in enumerate(report.items)
    ]
    content: ScoreAnswer = {"results": results, **whole(report)}
    return json_response(content, headers=timing_header(content["timings_ms"]))


def result(
    index: int, item: ItemReport, shared: Mapping[str, MetricOptions], orient: Orient, explain: bool
) -> Result:
    """Build the entry of one item; *shared* are the options of the request, *orient* is its orientation."""
    scores, errors = item.scores, item.errors
    content: Result = {"index": index, "scores": {name: score.value for name, score in scores.items()}}
    if item.item.id is not None:
        content["id"] = item.item.id
    if errors:
        content["errors"] = {name: entry(error) for name, error in errors.items()}
    if item.item.required:
        content["usable"] = errors.keys().isdisjoint(item.item.required)
    if cache := {name: score.cache for name, score in scores.items() if score.cache}:
        content["cache"] = cache
    if any(shared[name] != options for name, options in item.item.options.items()):
        content["options"] = shown(item.item.options)
    if item.item.orient not in (None, orient):
        content["orient"] = item.item.orient
    if sets := question_sets(scores):
        content["question_sets"] = sets
    if explain:
        content["details"] = {name: score.details for name, score in scores.items()}
    return content


@router.post(
    "/rank",
    **documented(
        RankAnswer,
        RankRequest,
        never=[502],  # a model's failure is an entry's error
        parameters=[TIMEOUT, TRACE],
        headers={SERVER_TIMING: "The stages of the request, in milliseconds."},
    ),
)
async def rank(request: Request) -> Response:
    """Order pictures by how well they fit a prompt, and accept those above the threshold."""
    service = service_of(request)
    wanted, parts = await read_body(request, requests_of(request).rank, service.settings.server)
    options = options_of(wanted.options, [*wanted.metrics.values()])
    items = items_of(wanted.to_score(), options, parts, service.metrics)
    request.state.items = len(items)
    check_served(wanted.metrics, service.engine)
    context = context_of(service, request, wanted.timeout_ms, wanted.priority)
    work = ranked(service.engine, items, rule_of(wanted, service.metrics), context)
    outcome = await while_connected(request.receive, work)
    report, timings = outcome.report, context.timings_ms()
    orient = wanted.orient or service.settings.images.orient
    content: RankAnswer = {
        "request_id": context.request_id,
        "ranking": [placed(place, report.items[place.index], wanted.explain) for place in outcome.places],
        **warnings_of(report.warnings),
        "models": report.models,
        "provenance": provenance_of(report, options, service.metrics, orient),
        "timings_ms": timings,
    }
    return json_response(content, headers=timing_header(timings))


def placed(place: RankedItem, item: ItemReport, explain: bool) -> PlaceEntry:
    """Build the entry of one picture."""
    scores = item.scores
    content: PlaceEntry = {
        "index": place.index,
        "accepted": place.accepted,
        "scores": {name: score.value for name, score in scores.items()},
    }
    if place.decided_by:
        content["score"] = scores[place.decided_by].value
        content["decided_by"] = place.decided_by
    if place.failed:
        metric, error = place.failed
        content["error"] = {"metric": metric, **entry(error)}
    if sets := question_sets(scores):
        content["question_sets"] = sets
    if explain:
        content["details"] = {name: score.details for name, score in scores.items()}
    return content


@router.post(
    "/compare",
    **documented(
        CompareAnswer,
        CompareRequest,
        never=[502],  # a model's failure is a pair's error
        parameters=[TIMEOUT, TRACE],
        headers={SERVER_TIMING: "The stages of the request, in milliseconds."},
    ),
)
async def compare(request: Request) -> Response:
    """Compare pictures of one prompt in pairs: who wins, how often, and how strong each one is."""
    service = service_of(request)
    wanted, parts = await read_body(request, requests_of(request).compare, service.settings.server)
    check_served({"/metric" if wanted.rubric is None else "/rubric": wanted.named}, service.engine)
    group = group_of(wanted, parts, service.metrics)
    request.state.items = len(group.items)
    context = context_of(service, request, wanted.timeout_ms, wanted.priority)
    outcome = await while_connected(request.receive, compared(service.engine, group, context))
    report, timings = outcome.report, context.timings_ms()
    orient = wanted.orient or service.settings.images.orient
    content: CompareAnswer = {
        "request_id": context.request_id,
        "metric": group.metric,
        **verdicts(outcome, wanted.explain),
        **warnings_of(report.warnings),
        "models": report.models,
        "provenance": provenance_of(report, {group.metric: group.options}, service.metrics, orient),
        "timings_ms": timings,
    }
    return json_response(content, headers=timing_header(timings))


def verdicts(outcome: Compared, explain: bool) -> Verdicts:
    """Build the entries of pairs, and what they come to."""
    pairs: list[PairEntry] = []
    for pair in outcome.pairs:
        pairs.append({"a": pair.a, "b": pair.b, "winner": pair.winner, "orders_agree": pair.orders_agree})
        if explain:
            pairs[-1]["details"] = dict(pair.details)
    failed: list[FailedPairEntry] = [
        {"a": pair.a, "b": pair.b, "error": entry(pair.error)} for pair in outcome.failed
    ]
    strong = strengths(outcome.count, outcome.pairs)
    content: Verdicts = {
        "ranking": ranking(strong),
        "win_rates": win_rates(outcome.count, outcome.pairs),
        "strengths": [each and {"value": each.value, "stderr": each.stderr} for each in strong],
        "pairs": pairs,
        "failed": failed,
    }
    ids = [item.item.id for item in outcome.report.items]
    if any(id is not None for id in ids):
        content["ids"] = ids
    return content
