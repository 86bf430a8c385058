"""`POST /rank`."""

from fastapi import APIRouter, Request, Response

from service.core.concurrency.disconnect import while_connected
from service.scoring.ranking import RankedItem, ranked
from service.scoring.report import ItemReport
from service.web.caller import context_of
from service.web.openapi import TIMEOUT, TRACE, documented
from service.web.problems import entry
from service.web.provenance import provenance_of, question_sets
from service.web.routing import SERVER_TIMING, json_response, requests_of, service_of, timing_header
from service.web.server import body
from service.web.warnings import warnings_of
from service.web.wire.requests import RankRequest
from service.web.wire.responses import PlaceEntry, RankAnswer
from service.web.wire.translate import check_served, items_of, options_of, rule_of

router = APIRouter()


@router.post(
    "/rank",
    **documented(
        RankAnswer,
        RankRequest,
        never=[502],  # a model's failure is an entry's error's error
        parameters=[TIMEOUT, TRACE],
        headers={SERVER_TIMING: "The stages of the request, in milliseconds."},
    ),
)
async def rank(request: Request) -> Response:
    """Order pictures by how well they fit a prompt, and accept those above the threshold."""
    service = service_of(request)
    wanted, parts = await body.read(request, requests_of(request).rank, service.settings.server)
    items = items_of(wanted.to_score(), parts)
    request.state.items = len(items)
    check_served(wanted.metrics, service.engine)
    context = context_of(service, request, wanted.timeout_ms, wanted.priority)
    work = ranked(service.engine, items, rule_of(wanted, service.metrics), context)
    outcome = await while_connected(request.receive, work)
    report, timings = outcome.report, context.timings_ms()
    options = options_of(wanted.options, [*wanted.metrics.values()])
    orient = wanted.orient or service.settings.images.orient
    content: RankAnswer = {
        "request_id": context.request_id,
        "ranking": [placed(place, report.items[place.index], wanted.explain) for place in outcome.places],
        **warnings_of(report),
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
