"""The metric of a pickled request, and the format of its response."""

from collections.abc import Sequence
from typing import Any

from service.core.errors import Invalid
from service.images.sources import Encoded
from service.metrics.common.contract import Metric, Score, TrainerFormat
from service.web.dialects.pickled.requests import Pickled
from service.web.dialects.scoring import Dialects, Wanted


class Reward:
    """
    The metric and the pictures of one request.

    Args:
        named: the metric in its path; empty without one.

    Raises:
        UnknownMetric: its metric is not served.
        Invalid: an input of the metric is missing or wrong; the error names the place.
    """

    def __init__(self, request: Pickled, named: str, dialects: Dialects) -> None:
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
            Wanted(prompt, Encoded(image), (self._metric.name,))
            for image, prompt in zip(request.images, prompts, strict=True)
        ]

    def _by_entries(self, request: Pickled, form: TrainerFormat[Any], dialects: Dialects) -> list[Wanted]:
        name, options = self._metric.name, dialects.options(self._metric)
        wanted = []
        for number, (image, entry) in enumerate(zip(request.images, request.entries[form.key], strict=True)):
            try:
                own = form.options_of(entry, options)
            except Invalid as error:
                raise error.of_part(f"{form.key}/{number}") from None
            wanted.append(Wanted(own.prompt, Encoded(image), (name,), {name: own}))
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


def metric_of(request: Pickled, dialects: Dialects) -> str:
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


def without_prompts(dialects: Dialects) -> list[str]:
    """Return the served metrics that read no prompt."""
    return [
        name
        for name, metric in dialects.known.items()
        if not metric.reads_prompt and not dialects.absent(name)
    ]


def no_prompts(metric: Metric, dialects: Dialects) -> Invalid:
    free = " or ".join(f"/{name}" for name in without_prompts(dialects))
    other = f", or to the path {free}, which needs none" if free else ""
    return Invalid(
        f'the request has no "prompts", and {metric.name} scores a picture against its prompt: '
        f'send {{"images": [bytes, …], "prompts": [str, …]}}{other}'
    )
