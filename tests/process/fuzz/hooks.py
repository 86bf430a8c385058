"""
What a valid request must be beside what its schema says, so that the service can do something with it.

Schemathesis takes a valid request that is refused for a fault.  No schema can say that a file part is
there, that the questions of a set differ and make no circle, that an expected answer is one of the choices,
that a text is about something, that a metric looks at references, that a required metric is one of the
item's, or that a ranking's two metrics differ.
Ours says in words only that a request has one of three forms, where a template has its places, and that a
ranking needs a cascade to end early.

A ranking that is refused for a broken picture is refused for a fault, too.

A body with one wrong value must be refused for that value.  Where the rest of it is no valid request either,
it would be refused whatever the service does with the value.
"""

import gc
import re
from typing import Any

import schemathesis
from schemathesis.core.parameters import ParameterLocation
from schemathesis.generation.meta import CoverageScenario

from tests.process.fuzz.__main__ import KEY, LABEL_KEY, OPERATOR_KEY
from tests.support.fake_service import SPARE

THING = "a red dog: "  # which the fake question LLM finds in any prompt
PATIENT_MS = 10_000
PLACEHOLDERS = {"vq2": "{answer} {question} "}  # other metrics have one place in their question
BRACES = str.maketrans("", "", "{}")
TIMEOUT = "X-Request-Timeout-Ms"
LABELS, CHANGES = "/decisions/{id}/label", "/models/{name}/"

gc.set_threshold(100_000, 20, 100)  # schemathesis keeps each case, and Python would walk all of them often


@schemathesis.hook
def map_case(context: schemathesis.HookContext, case: schemathesis.Case) -> schemathesis.Case:
    """Mend a valid case; in one that means to be invalid, only what is missing beside that."""
    if case.operation.path.startswith(CHANGES) and not mutated(case, ParameterLocation.PATH):
        case.path_parameters["name"] = SPARE  # the others stay for what is sent to other paths
    if case.meta and case.meta.generation.mode.is_positive:
        if isinstance(case.body, dict):
            special = {
                "/rank": mended_ranking,
                "/score": mended_scoring,
                "/compare": mended_comparison,
                "/decide": mended_decision,
            }
            mend = special.get(case.operation.path, mended)
            # The part `request` alone: other parts need a filename, and schemathesis gives them none.
            form = "request" in case.body
            case.body = {"request": mend(case.body["request"])} if form else mend(case.body)
        if TIMEOUT in case.headers:
            case.headers[TIMEOUT] = str(PATIENT_MS)
    elif mutated(case, ParameterLocation.BODY) and isinstance(case.body, dict):
        asked = case.body.get("request", case.body)
        items = asked.get("items") if isinstance(asked, dict) else None
        for each in items if isinstance(items, list) else [asked]:
            if isinstance(each, dict):
                fill(each, place_of(case))
    return case


def fill(asked: dict[str, Any], place: str) -> None:
    """Put a text and pictures where a body or an item has null, besides at the *place* that is wrong."""
    if asked.get("prompt", "") is None:
        asked["prompt"] = THING
    if asked.get("images", "") is None and asked.get("image") is None and place != "/images":
        asked["images"] = ["", ""]


def mutated(case: schemathesis.Case, location: ParameterLocation) -> bool:
    """Return True if that part of the request means to be invalid."""
    part = case.meta.components.get(location) if case.meta else None
    return part is not None and part.mode.is_negative


@schemathesis.hook
def before_call(context: schemathesis.HookContext, case: schemathesis.Case, kwargs: dict[str, Any]) -> None:
    """Send a label, or a change of a model, with the key that has the right."""
    path = case.operation.path
    key = LABEL_KEY if path == LABELS else OPERATOR_KEY if path.startswith(CHANGES) else KEY
    for headers in (case.headers, kwargs.get("headers") or {}):
        for name, value in [*headers.items()]:
            if value in (KEY, f"Bearer {KEY}"):
                headers[name] = value.replace(KEY, key)


@schemathesis.check
def content_type_is_read(ctx: schemathesis.CheckContext, response: Any, case: schemathesis.Case) -> None:
    """A body of a type that no path reads is refused for its type."""
    if scenario_of(case) == CoverageScenario.UNSUPPORTED_CONTENT_TYPE and response.status_code != 415:
        raise AssertionError(f"a body of an unknown type is {response.status_code}, not 415")


@schemathesis.check
def refusal_names_the_place(ctx: schemathesis.CheckContext, response: Any, case: schemathesis.Case) -> None:
    """A body in which one value is wrong is refused for that one, and not for what no schema can say."""
    if response.status_code == 422 and mutated(case, ParameterLocation.BODY) and scenario_of(case):
        place = place_of(case)
        told = [fault["pointer"] for fault in response.json()["errors"]]
        if not any(re.match(place, pointer) for pointer in told):
            raise AssertionError(f"{place} is wrong, and the answer names {told}")


def scenario_of(case: schemathesis.Case) -> Any:
    """Return what a case of the coverage phase tries; None for others."""
    return getattr(case.meta.phase.data, "scenario", None) if case.meta else None


def place_of(case: schemathesis.Case) -> str:
    """Return the pattern of the place of a wrong value in the JSON, from its place in the schema."""
    words = ((case.meta and getattr(case.meta.phase.data, "location", None)) or "").split("/")[1:]
    place = ""
    while words and words[0] in ("properties", "items", "anyOf", "oneOf"):
        word = words.pop(0)
        if word == "items":
            place += "/[0-9]+"
        elif (name := words.pop(0) if words else "") and word == "properties" and name != "request":
            place += f"/{re.escape(name)}"
    return place


def mended_scoring(body: dict[str, Any]) -> dict[str, Any]:
    """A request in one of its three forms."""
    asked: dict[str, Any] = mended(body)
    forms = ("items", "id", "prompt", "image", "images", "references", "source")
    items, own_id, prompt, image, images, *_ = (asked.pop(name, None) for name in forms)
    short = {"image": image, "id": own_id} if image else {"images": images or [""]}
    return asked | ({"items": items} if items else {"prompt": prompt or THING, **short})


def mended_decision(body: dict[str, Any]) -> dict[str, Any]:
    """A request in one of its three forms, by a policy that there is, with no option but question sets."""
    asked = mended_scoring(body)
    for item in asked.get("items") or ():
        if item.get("options"):
            item["options"] = {
                name: {option: value for option, value in options.items() if option == "question_set"}
                for name, options in item["options"].items()
            }
    return asked | {"policy": ["show"] if isinstance(asked.get("policy"), list) else "show"}


def mended_ranking(body: dict[str, Any]) -> dict[str, Any]:
    """A ranking that is not refused for a broken picture, by a metric that is not its cascade's."""
    ranking: dict[str, Any] = mended(body)
    if ranking.get("on_error", "raise") == "raise":
        ranking["on_error"] = "block"
    cheap = (ranking.get("cascade") or {}).get("metric")
    if cheap == ranking.get("metric", "vqascore"):
        ranking["metric"] = "clipscore" if cheap == "vqascore" else "vqascore"
    if cheap is None:
        ranking["on_deadline"] = "fail"
    return ranking


def mended_comparison(body: dict[str, Any]) -> dict[str, Any]:
    """A comparison by one metric, of single pictures with one prompt, without what only some metrics use."""
    comparison: dict[str, Any] = mended(body)
    asked = {name: value for name, value in comparison.items() if name not in ("source", "items")}
    asked["images"] = [each if isinstance(each, str) else "" for each in asked.get("images") or ["", ""]]
    asked["prompt"] = asked.get("prompt") or THING
    if asked.get("rubric") is not None:
        asked = {name: value for name, value in asked.items() if name not in ("metric", "noise", "options")}
        asked["rubric"] = "preference"
    return asked


def mended(value: Any) -> Any:
    """*value* with everything in it that needs mending."""
    match value:
        case {"part": str()}:
            return {"data": ""}
        case {"image": _} | {"images": _} if value.get("prompt") is None:  # most metrics read it
            return mended({**value, "prompt": THING})
        case {"references": _, **others} | {"source": _, **others} if "prompt" in value:
            return mended(others)
        case {"required": _, **others}:
            return mended(others)
        case {"start": int() | float() as start, "end": int() | float() as end, **others} if end <= start:
            return {"start": start, **mended(others)}
        case {"prompts": list(prompts), **others}:
            return {"prompts": [(THING + prompt)[:4000] for prompt in prompts], **mended(others)}
        case {"options": dict(options), **others}:
            usable = {name: with_placeholders(name, mended(one)) for name, one in options.items()}
            return {"options": usable, **mended(others)}
        case {"question_set": list(questions), **others}:
            return {"question_set": different(questions), **mended(others)}
        case {"timeout_ms": int(timeout_ms), **others}:
            return {"timeout_ms": patient(timeout_ms), **mended(others)}
        case dict():
            return {name: mended(one) for name, one in value.items()}
        case list():
            return [mended(one) for one in value]
    return value


def with_placeholders(metric: str, options: dict[str, Any]) -> dict[str, Any]:
    """The options of a *metric*, whose templates have each place that they need once, and no other."""
    starts = {"question": PLACEHOLDERS.get(metric, "{} "), "answer": "a "}
    return options | {
        name: (start + options[name].translate(BRACES))[:4000]
        for name, start in starts.items()
        if isinstance(options.get(name), str)
    }


def different(questions: list[Any]) -> list[Any]:
    """The questions with ids and texts of their own; those with parents depend on the one before them."""
    return [
        {
            **question,
            "id": number,
            "text": f"{number}: {question['text']}"[:1000],
            **({"depends_on": [number - 1] if number > 1 else []} if question.get("depends_on") else {}),
            **expecting_a_choice(question.get("choices")),
        }
        for number, question in enumerate(questions, 1)
    ]


def expecting_a_choice(choices: list[str] | None) -> dict[str, Any]:
    """Choices that differ, at least two, the first of them expected; nothing where there are none."""
    if not choices:
        return {}
    told_apart = [f"{number}: {choice}"[:1000] for number, choice in enumerate([*choices, "other"][:26])]
    return {"choices": told_apart, "expected": told_apart[0]}


def patient(timeout_ms: int) -> int:
    """Time enough for an answer, or else one millisecond."""
    return timeout_ms if timeout_ms == 1 else max(timeout_ms, PATIENT_MS)
