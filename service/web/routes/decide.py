"""`POST /decide` and `GET /policies`."""

from dataclasses import replace

from fastapi import APIRouter, Request, Response

from service.core.concurrency.tasks import while_connected
from service.scoring.decide import Decided, Decision, decided, handles_of, records
from service.scoring.policies import together
from service.web.endpoints import (
    SERVER_TIMING,
    context_of,
    header_timeout,
    json_response,
    provenance_of,
    question_sets,
    requests_of,
    service_of,
    shown,
    timing_header,
    warnings_of,
)
from service.web.openapi import TIMEOUT, TRACE, documented
from service.web.problems import entry
from service.web.server.body import read_body
from service.web.wire.decide import DecideRequest, candidates_of, policies_of
from service.web.wire.responses import (
    DecideAnswer,
    DecisionEntry,
    PoliciesAnswer,
    PolicyDecision,
    PolicyEntry,
)
from service.wiring.bootstrap import Service

router = APIRouter()


@router.post(
    "/decide",
    **documented(
        DecideAnswer,
        DecideRequest,
        never=[502, 504],  # what a model or the time denies is an entry's error, and there is a decision
        parameters=[TIMEOUT, TRACE],
        headers={SERVER_TIMING: "The stages of the request, in milliseconds."},
    ),
)
async def decide(request: Request) -> Response:
    """
    Accept, review or reject pictures by policies of the settings, within their time.

    The status is 200, with a decision for each item, also if a lane is full, a model is down or hangs, a
    picture cannot be read, or the time is over. Only a request that is wrong itself is refused: its body, key
    or quota, or an `unknown_policy`.

    * **What is unknown**: a metric that failed, or is not there yet, may have any score of its range. A
      decision that all such scores give is made. Otherwise it is `without_score` if that is possible, and
      else the strictest that is.
    * **The cheapest first**: the metrics of an item run one after the other, by predicted cost, until no
      decision can change. If they would be late one after the other, the rest start together. `skipped` are
      those that were never started.
    * **A picture that cannot be read** (`bad_image`, `not_base64`, `image_undecodable`, `image_too_large`,
      `no_frames`) decides by `unreadable`. One that could not be downloaded has no score.
    * The id of a policy changes with its expressions, its options and the identities of its models.
    * A request is charged for all metrics of its policies, and gets those back that were not started.
    """
    service = service_of(request)
    wanted, parts = await read_body(request, requests_of(request).decide, service.settings.server)
    policies = policies_of(wanted, service.policies)
    candidates = candidates_of(wanted, policies, parts, service.metrics)
    if service.audits is not None:
        candidates = replace(candidates, audited=service.audits.chosen(len(candidates.items)))
    request.state.items = len(candidates.items)
    limits = [policy.timeout_ms for policy in policies]
    limits += filter(None, [wanted.timeout_ms or header_timeout(request)])
    context = context_of(service, request, min(limits), None)
    made = await while_connected(request.receive, decided(service.engine, candidates, context))
    report, timings = made.report, context.timings_ms()
    orient = wanted.orient or service.settings.images.orient
    ids = [*made.policies.values()]
    content: DecideAnswer = {
        "request_id": context.request_id,
        "policy": ids[0] if isinstance(wanted.policy, str) else ids,
        "decisions": [
            decision_entry(index, made, wanted, candidates.groups[index])
            for index in range(len(report.items))
        ],
        **warnings_of(report.warnings),
        "models": report.models,
        "provenance": provenance_of(report, together(policies), service.metrics, orient),
        "timings_ms": timings,
    }
    response = json_response(content, headers=timing_header(timings))
    if service.decisions is not None:
        service.decisions.record([*records(made, candidates, service.engine.catalog, context)])
    if service.audits is not None:
        service.audits.start(made, candidates, context)
    return response


def decision_entry(index: int, made: Decided, wanted: DecideRequest, group: str | None) -> DecisionEntry:
    """Build the entry of one item."""
    item = made.report.items[index]
    content: DecisionEntry = {
        "index": index,
        "scores": {name: score.value for name, score in item.scores.items()},
    }
    each = {name: by_policy(one) for name, one in made.decisions[index].items()}
    if isinstance(wanted.policy, str):
        content = {**content, **each[wanted.policy]}
    else:
        content["policies"] = each
    if item.item.id is not None:
        content["id"] = item.item.id
    if group is not None:
        content["group"] = group
    if item.errors:
        content["errors"] = {name: entry(error) for name, error in item.errors.items()}
    if sets := question_sets(item.scores):
        content["question_sets"] = sets
    if wanted.explain:
        content["details"] = {name: score.details for name, score in item.scores.items()}
    return content


def by_policy(one: Decision) -> PolicyDecision:
    """Build the decision of one policy."""
    return {
        "decision": one.outcome.decision,
        "because": one.outcome.because,
        "skipped": [*one.skipped],
        "decision_id": one.id,
    }


@router.get("/policies", **documented(PoliciesAnswer))
async def policies(request: Request) -> Response:
    """Return the policies with their ids and expressions."""
    content: PoliciesAnswer = {"policies": listed_policies(service_of(request))}
    return json_response(content)


def listed_policies(service: Service) -> dict[str, PolicyEntry]:
    """Build the entry of each policy of the settings."""
    catalog, found = service.engine.catalog, dict[str, PolicyEntry]()
    for name, policy in service.policies.items():
        handles = handles_of(policy.rules.metrics, catalog)
        infos = {handle.name: handle.info for handle in handles.values()}
        found[name] = {
            "id": policy.id(infos),
            **policy.expressions,  # type: ignore[typeddict-item]
            "timeout_ms": policy.timeout_ms,
            "options": shown(policy.options),
            "ranges": {metric: (range.low, range.high) for metric, range in policy.ranges.items()},
        }
    return found
