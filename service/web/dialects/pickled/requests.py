"""The contents of a pickled request, its metric, and the format of its response."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter, ValidationError

from service.core.errors import Invalid
from service.core.fields import MAX_PROMPT, Prompt
from service.metrics.common.contract import Metric, Score, TrainerFormat
from service.web.dialects.pickled.opcodes import LongText
from service.web.dialects.scoring import DialectScoring, Wanted

PROMPT: TypeAdapter[str] = TypeAdapter(Prompt)
ANSWER = "The image contains "  # what ddpo-pytorch puts before each prompt


@dataclass(frozen=True, slots=True)
class Pickled:
    """
    Attributes:
        images: picture files.
        prompts: one per image; None without any.
        entries: by key, other values of each picture.
        alone: whether there are only pictures.
        compared: whether it is ddpo-pytorch's request for a comparison of texts, which expects more.
    """

    images: list[bytes]
    prompts: list[str] | None
    entries: Mapping[str, list[Any]]
    alone: bool
    compared: bool


def request_of(value: Any, keys: Collection[str], check_size: Callable[[int], None]) -> Pickled:
    """
    Check the plain *value* of a body.

    Args:
        keys: of entries that metrics read, at the top level or in the `metadata`.
        check_size: raises `Invalid` for too many pictures, or too few.

    Raises:
        Invalid: it names the place.
    """
    if not isinstance(value, dict):
        raise Invalid(f"the pickle must hold a dict with images and prompts, not {kind(value)}")
    images = listed(value.get("images"), "images")
    check_size(len(images))
    compared = "prompts" not in value and "answers" in value
    named = "answers" if compared else "prompts"
    prompts = None if value.get(named) is None else of_each(value[named], named, images)
    if prompts is not None:
        prompts = [prompt(answer(each) if compared else each, number) for number, each in enumerate(prompts)]
    metadata = value.get("metadata")
    places = [value, metadata] if isinstance(metadata, dict) else [value]
    entries = {
        key: of_each(place[key], key, images)
        for key in keys
        for place in places
        if not (place.get(key) is None or place[key] == [])
    }
    found = [image(each, number) for number, each in enumerate(images)]
    return Pickled(found, prompts, entries, value.keys() == {"images"}, compared)


def listed(value: Any, name: str) -> list[Any]:
    """Return a list or a tuple as a list.  Raises `Invalid`."""
    if not isinstance(value, list | tuple):
        raise Invalid(f"{name}: must be a list, not {kind(value)}")
    return list(value)


def of_each(value: Any, name: str, images: Collection[Any]) -> list[Any]:
    """Return a list with an entry for each of *images*.  Raises `Invalid`."""
    found = listed(value, name)
    if len(found) != len(images):
        raise Invalid(f"{len(images)} images and {len(found)} {name}: send one for each")
    return found


def image(value: Any, number: int) -> bytes:
    """Return a picture's file.  Raises `Invalid`."""
    if not isinstance(value, bytes | bytearray):
        raise Invalid(f"images/{number}: must be the bytes of a picture file, not {kind(value)}")
    return bytes(value)


def prompt(value: Any, number: int) -> str:
    """Check a prompt.  Raises `Invalid`."""
    if isinstance(value, LongText):
        raise Invalid(f"prompts/{number}: String should have at most {MAX_PROMPT} characters")
    try:
        return PROMPT.validate_python(value, strict=True)
    except ValidationError as exc:
        detail = exc.errors()[0]["msg"].removeprefix("Value error, ")
        raise Invalid(f"prompts/{number}: {detail}") from exc


def answer(value: Any) -> Any:
    """Return the prompt in an answer of ddpo-pytorch: a list of one text."""
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], str):
        return value[0].removeprefix(ANSWER)
    return value


def kind(value: Any) -> str:
    """Return the name of a value's type in error messages."""
    if isinstance(value, LongText):
        return "str"
    return "nothing" if value is None else type(value).__name__


class RewardCall:
    """
    The metric and the pictures of one request.

    Args:
        named: the metric in its path; empty without one.

    Raises:
        UnknownMetric: its metric is not served.
        Invalid: an input of the metric is missing or wrong; the error names the place.
    """

    def __init__(self, request: Pickled, named: str, dialects: DialectScoring) -> None:
        self._compared = request.compared
        self._metric = dialects.known[named or metric_of(request, dialects)]
        self._format = format_in(request, self._metric)
        if self._format:
            self.wanted = self._by_entries(request, self._format, dialects)
            return
        if request.prompts is None and self._metric.reads_prompt:
            raise no_prompts(self._metric, dialects)
        prompts = request.prompts or [""] * len(request.images)
        self.wanted = [
            Wanted(prompt, image, (self._metric.name,))
            for image, prompt in zip(request.images, prompts, strict=True)
        ]

    def _by_entries(
        self, request: Pickled, form: TrainerFormat[Any], dialects: DialectScoring
    ) -> list[Wanted]:
        name, options = self._metric.name, dialects.options(self._metric)
        wanted = []
        for number, (image, entry) in enumerate(zip(request.images, request.entries[form.key], strict=True)):
            try:
                own = form.options_of(entry, options)
            except Invalid as error:
                raise error.of_part(f"{form.key}/{number}") from None
            wanted.append(Wanted(own.prompt, image, (name,), {name: own}))
        return wanted

    def answer(self, outcomes: Sequence[Any]) -> dict[str, Any]:
        """Build the response that the trainer reads; all outcomes must be scores."""
        found = [each[self._metric.name] for each in outcomes]
        scores = [score for score in found if isinstance(score, Score)]
        if self._format:
            return self._format.answer(scores)
        # Each client reads one of these names.
        names = ("scores", "outputs", *(("recall", "precision", "f1") if self._compared else ()))
        values = [score.value for score in scores]
        return dict.fromkeys(names, values)


def metric_of(request: Pickled, dialects: DialectScoring) -> str:
    """
    Return the metric of a request that names none.

    This is the metric whose entries it has; for pictures alone, the one that needs no prompts; else that of
    the settings.  Raises `UnknownMetric` if it is not served.
    """
    for metric in dialects.known.values():
        if format_in(request, metric):
            return dialects.metric(metric.name)
    chosen = dialects.metric(None)
    if request.alone and dialects.known[chosen].reads_prompt and len(free := without_prompts(dialects)) == 1:
        return free[0]
    return chosen


def format_in(request: Pickled, metric: Metric) -> TrainerFormat[Any] | None:
    """Return the entry format of *metric*, if the request has such entries."""
    return metric.trainers if metric.trainers and metric.trainers.key in request.entries else None


def without_prompts(dialects: DialectScoring) -> list[str]:
    """Return the served metrics that need the picture alone."""
    return [
        name
        for name, metric in dialects.known.items()
        if not metric.reads_prompt and not metric.uses_of() and not dialects.absent(name)
    ]


def no_prompts(metric: Metric, dialects: DialectScoring) -> Invalid:
    free = " or ".join(f"/{name}" for name in without_prompts(dialects))
    other = f", or to the path {free}, which needs none" if free else ""
    return Invalid(
        f'the request has no "prompts", and {metric.name} scores a picture against its prompt: '
        f'send {{"images": [bytes, …], "prompts": [str, …]}}{other}'
    )
