"""Pictures that people name, in one request: scored, ranked, compared, or decided about."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic
from typing import Annotated, Any, Literal, NamedTuple

import scoregate
from scoregate.data.sources import names_of, read_images, tiles_of, tried
from scoregate.data.tiles import grid_of
from scoregate.errors import InputError, NoResultError, named
from scoregate.local import Service
from scoregate.records import check_json
from scoregate.results import lower_is_better
from scoregate.runs.summary import ScoreFigures
from scoregate.settings import (
    GRID_HELP,
    METRIC,
    MetricName,
    MetricNames,
    OptionsByMetric,
    Orient,
    Setting,
    SettingError,
    Strict,
    finite,
    metric_names,
    name_or_table,
    whole,
)

IMAGE_POINTER = re.compile(r"/images/(\d+)")
ALL = "all"  # pairs
GROUP = "pictures"  # all of a call, with --keep

Images = Annotated[
    Sequence[str],
    Setting("a file, a folder or a URL", positional=True, nargs="+", several=True, metavar="IMAGE"),
]
PromptOfAll = Annotated[str, Setting("of all pictures", ("-p", "--prompt"))]
Options = Annotated[Mapping[str, Mapping[str, Any]], OptionsByMetric("of the metrics, by metric")]


# --- score ---


@dataclass(frozen=True, kw_only=True)
class ScoringSettings:
    """Settings of scores of pictures, each against each prompt."""

    images: Images
    prompts: Annotated[
        Sequence[str],
        Setting(
            "may be given several times: each picture is scored against each prompt; some metrics need none",
            ("-p", "--prompt"),
            metavar="PROMPT",
            several=True,
        ),
    ] = ()
    metrics: Annotated[
        Sequence[str],
        MetricNames(f"may be given several times, or with commas (default {METRIC})", column=False),
    ] = ()
    options: Options = field(default_factory=dict)
    orient: Orient = None
    strict: Strict = False
    grid: Annotated[str | None, Setting(GRID_HELP, metavar="RxC")] = None
    explain: Annotated[
        bool, Setting("show what each score is made of: questions, answers, probabilities")
    ] = False


@dataclass(frozen=True)
class ScoredImages:
    """
    The scores of pictures.

    Attributes:
        report: a result of each picture with each of *prompts*, picture by picture.
        lower: the metrics whose lower scores are better.
        faults: a line about each picture that cannot be read.
        seconds: that the request took.
    """

    names: Sequence[str]
    prompts: Sequence[str]
    metrics: Sequence[str]
    report: scoregate.Report
    lower: set[str]
    faults: Sequence[str]
    seconds: float

    @property
    def complete(self) -> bool:
        """Whether each picture has each score."""
        return not (self.report.partial or self.faults)

    @property
    def places(self) -> list[str]:
        """What each result is about: the picture, and the prompt if there are several."""
        if len(self.prompts) == 1:
            return [*self.names]
        return [f'{name}, "{prompt}"' for name in self.names for prompt in self.prompts]

    @property
    def figures(self) -> dict[str, ScoreFigures]:
        """The figures of each metric."""
        found: dict[str, ScoreFigures] = {}
        for place, result in zip(self.places, self.report, strict=True):
            for metric, score in result.scores.items():
                found.setdefault(metric, ScoreFigures(metric in self.lower)).add(score, place)
        return found


def score_images(settings: ScoringSettings, service: Service) -> ScoredImages:
    """
    Score pictures, or the tiles of sheets, against each prompt.

    Raises:
        InputError: no picture can be read, or a name leads to none.
        ScoregateError: the request failed as a whole.
    """
    images, faults = read_images(settings.images)
    if settings.grid:
        grid = grid_of(settings.grid)
        images = [tile for name, data in images for tile in tiles_of(name, data, grid)]
    prompts = list(dict.fromkeys(settings.prompts)) or [""]
    items = [
        scoregate.Item(prompt=prompt, image=image, orient=settings.orient)
        for _, image in images
        for prompt in prompts
    ]
    metrics, options = list(dict.fromkeys(settings.metrics)) or [METRIC], settings.options
    with service.client(metrics=metrics, options=options, strict=settings.strict) as client:
        begun_s = monotonic()
        report = client.score_items(items, metrics, options=options, explain=settings.explain)
        seconds = monotonic() - begun_s
        lower = lower_metrics(client, metrics) if len(items) > 1 else set[str]()
    return ScoredImages([name for name, _ in images], prompts, metrics, report, lower, faults, seconds)


def lower_metrics(client: scoregate.Client, metrics: Sequence[str]) -> set[str]:
    """Return the metrics whose lower scores are better; none behind a gateway that does not list metrics."""
    with suppress(scoregate.ScoregateError):
        known = client.models().get("metrics", {})
        return {name for name in metrics if lower_is_better(known.get(name, {}))}
    return set()


# --- rank ---


def cascade_of(text: str) -> scoregate.Cascade:
    """Return the metric that chooses, and how many pictures it keeps."""
    metric, colon, keep = text.rpartition(":")
    if not (colon and metric and keep.removeprefix("-").isdecimal()):
        raise SettingError("it has the form METRIC:KEEP, such as clipscore:8")
    return scoregate.Cascade(metric, whole(keep))


@dataclass(frozen=True, kw_only=True)
class RankingSettings:
    """Settings of a ranking of the pictures of a prompt."""

    images: Images
    prompt: PromptOfAll
    metric: Annotated[str, MetricName("default %(default)s", column=False)] = METRIC
    top_k: Annotated[int | None, Setting("accept the best N only", metavar="N", parse=whole)] = None
    threshold: Annotated[
        float | None, Setting("accept scores as good as this one", metavar="SCORE", parse=finite)
    ] = None
    cascade: Annotated[
        scoregate.Cascade | None,
        Setting(
            "let this cheap metric choose the KEEP pictures that are worth the other",
            metavar="METRIC:KEEP",
            parse=cascade_of,
        ),
    ] = None
    on_error: Annotated[
        Literal["raise", "pass", "block"],
        Setting(
            "pictures without a score end the call, or come last as accepted or not (default %(default)s)"
        ),
    ] = "raise"
    options: Options = field(default_factory=dict)
    orient: Orient = None
    strict: Strict = False


@dataclass(frozen=True)
class RankedImages:
    """A ranking of pictures by their names, and a line about each that cannot be read."""

    ranking: scoregate.Ranking
    names: Sequence[str]
    faults: Sequence[str]

    @property
    def complete(self) -> bool:
        """Whether each picture has a score."""
        return not (self.faults or any(ranked.error for ranked in self.ranking))


def rank_images(settings: RankingSettings, service: Service) -> RankedImages:
    """
    Order the pictures of a prompt, the best first.

    Raises:
        InputError: no picture can be read, a name leads to none, or several metrics are named.
        NoResultError: a picture has no score, and *on_error* is `raise`.
        ScoregateError: the request failed as a whole.
    """
    images, faults = read_images(settings.images)
    if faults and settings.on_error == "raise":
        raise NoResultError(f"{'; '.join(faults)}; {named('on_error')} pass or block ranks the others")
    names, cheap = [name for name, _ in images], settings.cascade
    if len(metric_names([settings.metric])) > 1:
        one = f"name one by {named('metric')}, and a cheap one by {named('cascade')}"
        raise InputError(f"rank orders by one metric: {one}")
    metrics = [settings.metric, *([cheap.metric] if cheap else [])]
    opened = service.client(metrics=metrics, options=settings.options, strict=settings.strict)
    with opened as client, naming(names):
        ranking = client.rank(
            settings.prompt,
            [image for _, image in images],
            metric=settings.metric,
            accept=scoregate.Accept(
                top_k=settings.top_k, threshold=settings.threshold, on_error=settings.on_error
            ),
            cascade=cheap,
            orient=settings.orient,
            options=settings.options,
        )
    return RankedImages(ranking, names, faults)


# --- compare ---


def schedule_of(text: str) -> str | dict[str, Any]:
    """Return all pairs, or the kind of a schedule and its pairs for each picture."""
    if text == ALL:
        return text
    kind, _, count = text.partition(":")
    if kind not in ("swiss", "anchor") or not count.removeprefix("-").isdecimal():
        raise SettingError("it has the form KIND:N, such as swiss:4 or anchor:2")
    return {"kind": kind, "pairs_per_image": whole(count)}


@dataclass(frozen=True, kw_only=True)
class ComparisonSettings:
    """Settings of a comparison of the pictures of a prompt in pairs."""

    images: Annotated[
        Sequence[str],
        Setting(
            "a file, a folder or a URL; 2 to 32", positional=True, nargs="+", several=True, metavar="IMAGE"
        ),
    ]
    prompt: PromptOfAll
    metric: Annotated[
        str | None, MetricName("compare its scores; default vqascore", column=False, excludes="how")
    ] = None
    rubric: Annotated[
        str | None,
        Setting(
            "have a judge see both pictures: preference, …, or @FILE.toml", metavar="NAME", excludes="how"
        ),
    ] = None
    source: Annotated[str | None, Setting("the picture before the edits", metavar="IMAGE")] = None
    noise: Annotated[
        float | None, Setting("the largest difference that is a tie", metavar="SCORE", parse=finite)
    ] = None
    schedule: Annotated[
        str | Mapping[str, Any],
        Setting(
            "swiss or anchor, with N pairs for each picture, in place of all pairs",
            metavar="KIND:N",
            parse=schedule_of,
        ),
    ] = ALL
    options: Options = field(default_factory=dict)
    orient: Orient = None
    strict: Strict = False


def compare_images(settings: ComparisonSettings, service: Service) -> tuple[scoregate.Comparison, list[str]]:
    """
    Compare the pictures of a prompt in pairs.  Return the comparison, and the pictures' names.

    Raises:
        InputError: there are less than two pictures, or a name leads to none.
        NoResultError: a picture cannot be read.
        ScoregateError: the request failed as a whole.
    """
    images, faults = read_images(settings.images)
    if faults:
        raise NoResultError("; ".join(faults))
    if len(images) < 2:
        raise InputError("name two pictures or more, or a folder of them")
    names = [name for name, _ in images]
    rubric = name_or_table(settings.rubric) if settings.rubric else None
    metrics = [] if rubric else [settings.metric or METRIC]
    opened = service.client(metrics=metrics, options=settings.options, strict=settings.strict)
    with opened as client, naming(names):
        comparison = client.compare(
            settings.prompt,
            [image for _, image in images],
            metric=settings.metric,
            rubric=rubric,
            source=settings.source,
            pairs=scoregate.Pairing(settings.schedule, settings.noise),
            orient=settings.orient,
            options=settings.options,
        )
    return comparison, names


# --- decide ---


@dataclass(frozen=True, kw_only=True)
class DecisionSettings:
    """Settings of decisions about pictures."""

    images: Annotated[
        Sequence[str], Setting("a file, a folder or a URL", positional=True, nargs="+", several=True)
    ]
    prompt: Annotated[str | None, Setting("some metrics need none", ("-p", "--prompt"))] = None
    policy: Annotated[
        Sequence[str],
        Setting(
            "may be given several times: the first decides, and all are shown (default show)",
            metavar="NAME",
            several=True,
        ),
    ] = ()
    policy_file: Annotated[
        Path | None, Setting("a TOML file with the policies, for models of --local", metavar="FILE")
    ] = None
    keep: Annotated[
        int | None, Setting("accept the best N at most, by the policy's rank_by", metavar="N", parse=whole)
    ] = None
    orient: Orient = None
    out: Annotated[Path | None, Setting("write JSON to this file", ("-o", "--out"))] = None


class DecidedImages(NamedTuple):
    """The decisions about pictures, their names, and a line about each that cannot be read."""

    decisions: scoregate.Decisions
    names: Sequence[str]
    faults: Sequence[str]

    def as_json(self) -> list[dict[str, Any]]:
        """Return the decisions as JSON."""
        return [
            {"picture": name, **fields_of(one), "scores": dict(one.scores), "errors": errors_of(one)}
            | (
                {"policies": {name: fields_of(each) for name, each in one.policies.items()}}
                if one.policies
                else {}
            )
            for name, one in zip(self.names, self.decisions, strict=True)
        ]


def fields_of(one: scoregate.Decision) -> dict[str, Any]:
    """Return what is of one policy."""
    return {
        "policy": one.policy,
        "decision": one.decision,
        "because": one.because,
        "skipped": list(one.skipped),
        "decision_id": one.decision_id,
    }


def errors_of(one: scoregate.Decision) -> dict[str, Any]:
    """Return the errors of a decision as JSON."""
    return {name: error.as_json() for name, error in one.errors.items()}


def decide_images(settings: DecisionSettings, service: Service) -> DecidedImages:
    """
    Decide about pictures, and write the decisions into the file `out`, if there is one.

    A picture that cannot be read is decided by the policy.

    Raises:
        InputError: a file that was named does not exist, or `out` cannot have JSON.
        OSError: `out` cannot be written.
        ScoregateError: the request failed as a whole.
    """
    if settings.out:
        check_json(settings.out)
    names, read = [], []
    for given in settings.images:
        for name in names_of(given):
            names.append(name)
            read.append(tried(name, name == given))
    group = None if settings.keep is None else GROUP
    items = [
        scoregate.Item(prompt=settings.prompt, image=data, orient=settings.orient, group=group)
        for data, _ in read
    ]
    policies = list(dict.fromkeys(settings.policy)) or ["show"]
    with replace(service, policies=str(settings.policy_file or "")).client() as client:
        policy = policies[0] if len(policies) == 1 else policies
        decisions = client.decide_items(items, policy, keep=settings.keep or 1)
    found = DecidedImages(decisions, names, [why for _, why in read if why])
    if settings.out:
        settings.out.write_text(json.dumps(found.as_json(), indent=1) + "\n", "utf-8")
    return found


@contextmanager
def naming(names: Sequence[str]) -> Iterator[None]:
    """Turn an error about some pictures into `NoResultError` with their names; let other errors pass."""
    try:
        yield
    except scoregate.ScoregateError as exc:
        places = [(IMAGE_POINTER.fullmatch(fault["pointer"]), fault["detail"]) for fault in exc.errors]
        if faults := [f"{names[int(found[1])]}: {detail}" for found, detail in places if found]:
            raise NoResultError("; ".join(faults)) from exc
        raise
