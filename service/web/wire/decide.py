"""Wire types of `POST /decide`."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

from pydantic import AfterValidator, Discriminator, Field, StringConstraints, create_model, model_validator

from service.core.errors import Fault, Invalid, UnknownPolicy
from service.core.fields import CLEAN_PATTERN, WHOLE, Name, Orient, Prompt, branch, clean, schema_keywords
from service.metrics.common.contract import Metric, MetricOptions
from service.scoring.decide import Candidates
from service.scoring.policies import ServedPolicy, together
from service.web.problems import MAX_FAULTS
from service.web.wire.requests import (
    Clipped,
    Options,
    References,
    ScoreRequest,
    SingleImage,
    Timeout,
    WireImage,
    WireItem,
    different,
    listed,
    one_form,
    sent,
)
from service.web.wire.translate import FormParts, items_of

MAX_POLICIES = 8  # policies that decide from the same scores
MAX_ID = 128  # characters
QUESTION_SET = "question_set"  # the only option that an item may bring

# The fields that are as in `POST /score`.
DECIDE_ITEM_FIELDS = ("id", "prompt", "image", "orient", "references", "source", "start", "end", "fps")
OF_THE_REQUEST = (*DECIDE_ITEM_FIELDS, "images")
# All fields are given, since pydantic's defaults take as long as all the rest.
NOT_OF_AN_ITEM: dict[str, Any] = {"options": None, "metrics": None, "required": None}
NOT_OF_THE_REQUEST: dict[str, Any] = {
    "options": Options(),
    "required": None,
    "priority": None,
    "timeout_ms": None,
    "explain": False,
}

OwnId = Annotated[
    str, StringConstraints(max_length=MAX_ID), AfterValidator(clean), schema_keywords(pattern=CLEAN_PATTERN)
]
PolicyNames = Annotated[
    list[Name],
    Field(min_length=1, max_length=MAX_POLICIES, fail_fast=True),
    AfterValidator(different),
    schema_keywords(uniqueItems=True),
]


def policy_form(value: Any) -> str:
    """Return the branch of one name, or of several."""
    return "<names>" if isinstance(value, list) else "<name>"


Policies = Annotated[
    Annotated[Name, branch("<name>")] | Annotated[PolicyNames, branch("<names>")], Discriminator(policy_form)
]


class DecideItem(Clipped):
    """
    One picture with its prompt, as in `POST /score`; the policy has the metrics and their options.

    Attributes:
        id: returned with the decision.
        group: at most `keep` items of a group are accepted: the best by the policy's `rank_by`, and of equals
            the first.
        options: they may hold a `question_set` alone.
        prompt, image, orient, references, source: as in `POST /score`.
    """

    id: OwnId | None = None
    group: OwnId | None = None
    prompt: Prompt | None = None
    image: WireImage
    options: Options | None = None
    orient: Orient | None = None
    references: References | None = None
    source: SingleImage | None = None

    def to_score(self) -> WireItem:
        """Return the item that is scored, without options."""
        fields = {name: getattr(self, name) for name in DECIDE_ITEM_FIELDS}
        return WireItem.model_construct(**fields, **NOT_OF_AN_ITEM)


class DecideRequest(Clipped):
    """
    Body of `POST /decide`: `items`, or an `image` or many `images`, with one `prompt`.

    An `image` with its `prompt` is one item, and may have an item's `id`, `references` and `source`.

    Attributes:
        policy: the name of a policy, or several names, which decide from the same scores, as for a trial.
        items: pictures with their prompts, in place of the fields of a single one.
        images: many pictures of one prompt.
        id, prompt, image, references, source, orient: as in `POST /score`.
        keep: of the items of a group, see `group`.
        explain: whether to return `details`.
    """

    policy: Policies
    items: list[DecideItem] | None = None
    id: OwnId | None = None
    prompt: Prompt | None = None
    image: WireImage | None = None
    images: list[WireImage] | None = None
    references: References | None = None
    source: SingleImage | None = None
    keep: Annotated[int, Field(ge=1), WHOLE] = 1
    orient: Orient | None = None
    timeout_ms: Timeout | None = None
    explain: bool = False

    _one_form = model_validator(mode="after")(one_form)

    @property
    def named(self) -> dict[str, str]:
        """The names of the policies, by their place in the request."""
        if isinstance(self.policy, str):
            return {"/policy": self.policy}
        return {f"/policy/{number}": name for number, name in enumerate(self.policy)}

    @property
    def groups(self) -> list[str | None]:
        """The group of each item."""
        if self.items is None:
            return [None] * len(self.images or [self.image])
        return [item.group for item in self.items]

    def to_score(self, metrics: Sequence[str]) -> ScoreRequest:
        """Return the request that scores all of it by *metrics*."""
        own = {name: getattr(self, name) for name in OF_THE_REQUEST}
        items = None if self.items is None else [item.to_score() for item in self.items]
        return ScoreRequest.model_construct(**own, **NOT_OF_THE_REQUEST, items=items, metrics=[*metrics])


def decide_request(options: Any, max_items: int) -> type[DecideRequest]:
    """Return the request type where there are these *options* by metric."""
    item = create_model(
        "DecideItem", __base__=DecideItem, __doc__=DecideItem.__doc__, options=(options | None, None)
    )
    return create_model(
        "DecideRequest",
        __base__=DecideRequest,
        __doc__=DecideRequest.__doc__,
        items=(listed(item, max_items) | None, None),
        images=(listed(WireImage, max_items) | None, None),
    )


def policies_of(request: DecideRequest, served: Mapping[str, ServedPolicy]) -> list[ServedPolicy]:
    """
    Return the policies that a request names.

    Raises:
        UnknownPolicy: one of them is not served.
        Invalid: they cannot share the scores, or an item has a group and one of them ranks none.
    """
    detail = f"there is no such policy here; this server has: {', '.join(served) or 'none'}"
    faults = [
        Fault.unknown(place, "unknown_policy", detail, name, [*served])
        for place, name in request.named.items()
        if name not in served
    ]
    if faults:
        raise UnknownPolicy(f"{faults[0].pointer}: {faults[0].detail}", faults=faults)
    found = [served[name] for name in request.named.values()]
    try:
        together(found)
    except ValueError as exc:
        raise Invalid(f"/policy: {exc}", faults=[Fault("/policy", "invalid", str(exc))]) from exc
    unranked = [policy.name for policy in found if policy.rules.rank_by is None]
    for index, group in enumerate(request.groups):
        if group is not None and unranked:
            place, detail = f"/items/{index}/group", f"the policy {unranked[0]} has no rank_by"
            raise Invalid(f"{place}: {detail}", faults=[Fault(place, "invalid", detail)])
    return found


def candidates_of(
    request: DecideRequest,
    policies: Sequence[ServedPolicy],
    parts: FormParts,
    metrics: Mapping[str, Metric],
) -> Candidates:
    """
    Return the items that a request has decided.

    Raises:
        Invalid: as `items_of`, or an item has another option than a question set.
    """
    options = together(policies)
    items = items_of(request.to_score([*options]), options, parts, metrics)
    for index, item in enumerate(request.items or ()):
        if item.options is not None:
            items[index] = replace(items[index], options=with_sets(f"/items/{index}", item.options, options))
    return Candidates(items, request.groups, policies, request.keep)


def with_sets(place: str, own: Options, options: Mapping[str, MetricOptions]) -> dict[str, MetricOptions]:
    """Return the policies' options with the question sets of an item at *place*.  Raises `Invalid`."""
    faults, found = list[Fault](), dict(options)
    for name, given in sent(own).items():
        brought = sent(given)
        faults += [
            Fault(f"{place}/options/{name}/{each}", "invalid", "is the policy's; an item has a question_set")
            for each in brought
            if each != QUESTION_SET
        ]
        if name in options and QUESTION_SET in brought:
            kept = sent(options[name])
            found[name] = type(options[name]).model_validate({**kept, QUESTION_SET: brought[QUESTION_SET]})
    if faults:
        raise Invalid(f"{faults[0].pointer}: {faults[0].detail}", faults=faults[:MAX_FAULTS])
    return found
