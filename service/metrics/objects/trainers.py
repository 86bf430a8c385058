"""GenEval in trainers' format: a line of metadata per image, and five lists in the response."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, get_args

from pydantic import ValidationError

from service.core.errors import Invalid
from service.metrics.common.contract import MetricOptions, Score, TrainerFormat
from service.metrics.objects.tasks import Tag

READ = ("tag", "include", "exclude", "prompt")  # of a line; others are ignored
NOT_OF_THE_TASK = -10.0  # trainers leave it out

Options = TypeVar("Options", bound=MetricOptions)


def options_of(line: Any, options: Options) -> Options:
    """Return *options* with the values of a *line* of metadata.  Raises `Invalid`."""
    if not isinstance(line, Mapping):
        raise Invalid("must be a dict of GenEval's metadata")
    said = {name: line[name] for name in READ if name in line}
    if lacking := [name for name in ("tag", "include", "prompt") if said.get(name) is None]:
        raise Invalid(f"has no {lacking[0]}")
    try:
        return type(options).model_validate(options.model_dump(exclude_unset=True) | said)
    except ValidationError as exc:
        first = exc.errors()[0]
        place = "/".join(map(str, first["loc"]))
        raise Invalid(f"{place}: {first['msg'].removeprefix('Value error, ')}") from exc


def answered(scores: Sequence[Score]) -> dict[str, Any]:
    """Return the response of their reward servers, with both kinds of rewards for any request."""
    shown = [score.details for score in scores]
    correct = [float(each["correct"]) for each in shown]
    strict = [float(each["strict"]) for each in shown]
    tags = [each["tag"] for each in shown]
    return {
        "scores": [float(each["reward"]) for each in shown],
        "rewards": correct,
        "strict_rewards": strict,
        "group_rewards": by_task(correct, tags),
        "group_strict_rewards": by_task(strict, tags),
    }


def by_task(values: Sequence[float], tags: Sequence[str]) -> dict[str, list[float]]:
    """Return the values of each task, with -10 for images of another one."""
    return {
        task: [value if tag == task else NOT_OF_THE_TASK for value, tag in zip(values, tags, strict=True)]
        for task in get_args(Tag)
    }


FORMAT: TrainerFormat[Any] = TrainerFormat("meta_datas", options_of, answered)
