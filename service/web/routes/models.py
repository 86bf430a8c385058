"""`GET /models`, and `POST /models/{name}/load`, `/offload` and `/unload`."""

from typing import Any

from fastapi import APIRouter, Request, Response

from service.core.fields import MAX_PROMPT, Revision, Strict
from service.core.lanes import LANES
from service.core.settings.sections import MAX_TIMEOUT_MS
from service.images.frames import MAX_FILES
from service.metrics.common.composites import Composite
from service.metrics.common.contract import MAX_REFERENCES, Metric
from service.observability.build import libraries
from service.questions.sets import MAX_CHARACTERS, MAX_QUESTIONS
from service.serving.handle import Handle
from service.serving.lifecycle import Action, Change
from service.web.endpoints import build, check_operator, json_response, parts_of, preprocessing, service_of
from service.web.openapi import TEXT, Json, documented
from service.web.server.body import MAX_VALUES, read_body
from service.web.wire.comparison import most_compared
from service.web.wire.requests import MAX_RANKED
from service.web.wire.responses import MetricEntry, ModelEntry, ModelsAnswer
from service.wiring.bootstrap import READY, Service

router, changes = APIRouter(), APIRouter()


@router.get("/models", **documented(ModelsAnswer))
async def models(request: Request) -> Response:
    """Return the loaded models, the metrics that they serve, and the limits of a request."""
    service = service_of(request)
    catalog = service.engine.catalog
    content: ModelsAnswer = {
        "service": build(),
        "preprocessing": preprocessing(service.settings.images.orient),
        "libraries": libraries(),
        "models": [
            described_model(name, service.runtime.handles[name], demo=name in service.settings.demo_models)
            for name in service.settings.models
        ],
        "metrics": {name: described(metric, service) for name, metric in service.engine.metrics.items()},
        "absent": {
            name: {"reason": catalog.lacking(name), "options": default_options(metric)}
            for name, metric in catalog.known.items()
            if not catalog.serves(name)
        },
        "limits": limits(service),
    }
    return json_response(content)


def described_model(name: str, handle: Handle, *, demo: bool) -> ModelEntry:
    """Describe a model; *demo* if it is one of the repository's own."""
    info, devices = handle.info, handle.backend.devices
    entry: ModelEntry = {
        "name": name,
        "role": info.role,
        "family": info.family,
        "id": info.id,
        "revision": info.revision,
        "dtype": info.dtype,
        "device": info.device,
        "recipe": info.recipe,
        "ready": not handle.backend.missing,
        "demo": demo,
    }
    if info.hardware:
        entry["hardware"] = info.hardware
    if len(devices) > 1:
        entry["devices"] = {name: fault or READY for name, fault in devices.items()}
    return entry


def described(metric: Metric, service: Service) -> MetricEntry:
    """Describe a metric: its declaration, the models that it may use, and whether it is ready."""
    handles = service.engine.catalog.handles([metric.name])
    degraded = service.engine.catalog.degraded(metric.name)
    entry: MetricEntry = {
        "range": metric.range_of(),
        "direction": metric.direction,
        "formula": metric.formula,
        "paper": metric.paper,
        "roles": [*metric.roles],
        "may_use": [*metric.may_use],
        "uses": [*metric.uses_of()],
        "reads_prompt": metric.reads_prompt,
        "options": default_options(metric),
        "models": list(handles),
        "ready": not (degraded or service.missing(metric)),
    }
    if metric.needs:
        entry["needs"] = metric.needs
    if metric.style:
        entry["style"] = metric.style_of().name
    if degraded:
        entry["degraded"] = degraded
    absent = [role for role in metric.may_use if service.runtime.handle(metric.name, role) is None]
    if only := [text for role, text in (metric.without or {}).items() if role in absent]:
        entry["only"] = "; ".join(only)
    if isinstance(metric, Composite):
        entry["parts"] = parts_of(metric)
    return entry


def default_options(metric: Metric) -> dict[str, Any]:
    """Return the options of a metric, as JSON."""
    return metric.options().model_dump(mode="json")


def limits(service: Service) -> dict[str, Any]:
    """Return the limits of a request, and defaults."""
    server, images = service.settings.server, service.settings.images
    return {
        "max_items": server.max_items,
        "max_ranked": min(MAX_RANKED, server.max_items),
        "max_compared": most_compared(server.max_items),
        "max_frames": MAX_FILES,
        "max_references": MAX_REFERENCES,
        "max_prompt_characters": MAX_PROMPT,
        "max_questions": MAX_QUESTIONS,
        "max_question_characters": MAX_CHARACTERS,
        "body_limit_mb": server.body_limit_mb,
        "max_json_values": MAX_VALUES,
        "body_timeout_s": server.body_timeout_s,
        "keep_alive_s": server.keep_alive_s,
        "default_timeout_ms": server.default_timeout_ms,
        "max_timeout_ms": MAX_TIMEOUT_MS,
        "orient": images.orient,
        "max_pixels": images.max_pixels,
        "max_side": images.max_side,
        "max_image_bytes": images.max_bytes,
        "image_formats": images.formats,
        "image_urls": images.allow_urls,
        "lanes": LANES,
    }


NAME: Json = {"name": "name", "in": "path", "required": True, "schema": TEXT}
STATUSES = [403, 404, 409, 422, 500, 502, 503]


class LoadRequest(Strict):
    """
    Body of `POST /models/{name}/load`.

    Attributes:
        revision: of the same checkpoint, in place of the loaded one.
    """

    revision: Revision | None = None


@changes.post(
    "/models/{name}/load", **documented(Change, LoadRequest, also=[404, 409], never=[504], parameters=[NAME])
)
async def load(request: Request) -> Response:
    """
    Bring a model back, or load another revision of it; check its example, and serve it.

    Another revision is checked before the model stops: its files, its family, and the memory for its weights.
    If loading or the test call fails, the old revision serves again, and the answer is the error. A model
    whose test call has other numbers than at first does not serve (500 `model_fault`). A restart begins with
    the profile's revision. Behind vLLM it calls `/wake_up`, and loads no other revision.
    """
    check_operator(request)
    wanted, _ = await read_body(request, LoadRequest, service_of(request).settings.server)
    return await change(request, "load", wanted.revision or "")


@changes.post("/models/{name}/offload", **documented(Change, also=STATUSES, parameters=[NAME]))
async def offload(request: Request) -> Response:
    """
    Move the weights of a model to the host's memory.

    It is pinned, and the GPU's memory is given back; on a CPU nothing is freed. Behind vLLM it calls
    `/sleep`; vLLM needs `--enable-sleep-mode` and `VLLM_SERVER_DEV_MODE=1`. A model changes only while no
    request uses it. Requests for one that is away get 503 `not_ready`, or with `queue.wait_for_models = true`
    wait for it.
    """
    return await change(request, "offload")


@changes.post("/models/{name}/unload", **documented(Change, also=STATUSES, parameters=[NAME]))
async def unload(request: Request) -> Response:
    """Drop the weights of a model."""
    return await change(request, "unload")


async def change(request: Request, action: Action, revision: str = "") -> Response:
    """Change a model, and describe it."""
    check_operator(request)
    lifecycle = service_of(request).lifecycle
    return json_response(await lifecycle.change(request.path_params["name"], action, revision))
