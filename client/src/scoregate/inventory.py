"""What a service has: whether it is ready, its models and metrics, and the questions about prompts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from scoregate.errors import InputError, ScoregateError, named
from scoregate.local import Service
from scoregate.results import Notice, QuestionSet, demos
from scoregate.settings import Setting
from scoregate.text import meant

QUESTIONS_ROLE = "questions"  # models that write questions have this role
ACTIONS = ("load", "offload", "unload")


@dataclass(frozen=True)
class Health:
    """
    The state of a service.

    Attributes:
        detail: why it is not ready.
        models, metrics: as of `Client.models`; empty if that request failed, by the error *fault*.
        reached: whether it is a service at all; if not, *fault* says why.
    """

    ready: bool
    detail: str
    models: Sequence[Mapping[str, Any]] = ()
    metrics: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    fault: ScoregateError | None = None
    reached: bool = True

    @property
    def warnings(self) -> list[Notice]:
        """A warning about demo models, if there are any."""
        return demos({model["name"]: model["id"] for model in self.models})

    @property
    def degraded(self) -> dict[str, list[str]]:
        """The metrics whose model failed recently, by the reason."""
        degraded: dict[str, list[str]] = {}
        for name, metric in self.metrics.items():
            if reason := metric.get("degraded"):
                degraded.setdefault(reason, []).append(name)
        return degraded

    def as_json(self) -> dict[str, Any]:
        """Return the state as JSON."""
        found: dict[str, Any] = {"ready": self.ready}
        found |= {} if self.ready else {"detail": self.detail}
        found |= {} if self.fault else {"models": self.models, "metrics": self.metrics}
        return found | ({"warnings": self.warnings} if self.warnings else {})


def health(service: Service) -> Health:
    """Return the state of a service.  Raises `ScoregateError` if models of this process cannot be loaded."""
    ready, answer, reached = False, dict[str, Any](), False
    with service.client(retries=0) as client:
        try:
            ready, answer = client.ready()
            reached, there = True, client.models()
        except ScoregateError as exc:
            return Health(ready, str(answer.get("detail", "")), fault=exc, reached=reached)
    return Health(ready, str(answer.get("detail", "")), there["models"], there["metrics"])


@dataclass(frozen=True, kw_only=True)
class MetricsSettings:
    """Settings of a list of metrics."""

    names: Annotated[
        Sequence[str], Setting("default: all", positional=True, several=True, nargs="*", metavar="METRIC")
    ] = ()


def metrics(settings: MetricsSettings, service: Service) -> dict[str, Mapping[str, Any]]:
    """
    Return the metrics that are named, or all, as `Client.metrics`.

    Raises:
        InputError: there is no such metric.
        ScoregateError: the request failed.
    """
    with service.client() as client:
        known = client.metrics()
    if missing := [name for name in settings.names if name not in known]:
        near = meant(missing[0], known) or ";"
        raise InputError(f"{missing[0]}: there is no such metric{near} there are {', '.join(known)}")
    return {name: known[name] for name in settings.names or known}


@dataclass(frozen=True, kw_only=True)
class ModelsSettings:
    """Settings of a change of a model; without an action, of a list of the models."""

    action: Annotated[
        str | None, Setting("default: list the models", positional=True, nargs="?", choices=ACTIONS)
    ] = None
    name: Annotated[str | None, Setting("of the model in the profile", positional=True, nargs="?")] = None
    revision: Annotated[str, Setting("for load: another revision, in its place")] = ""


def models(settings: ModelsSettings, service: Service) -> dict[str, Any]:
    """
    Return the service's answer to a change of a model, or that of `Client.models`.

    Raises:
        InputError: a revision without `load`, or an action without a name.
        ScoregateError: the request failed.
    """
    action, name = settings.action, settings.name
    if settings.revision and action != "load":
        raise InputError(f"{named('revision')} belongs to load")
    if action and not name:
        raise InputError(f"{action} needs the name of a model")
    with service.client() as client:
        if not action:
            return client.models()
        given = (name, settings.revision) if settings.revision else (name,)
        answer: dict[str, Any] = getattr(client, f"{action}_model")(*given)
        return answer


@dataclass(frozen=True, kw_only=True)
class QuestionsSettings:
    """Settings of question sets."""

    prompts: Annotated[
        Sequence[str],
        Setting("those that need a set", positional=True, several=True, nargs="+", metavar="PROMPT"),
    ]
    style: Annotated[str, Setting("the metric that uses them (default %(default)s)")] = "dsg"


@dataclass(frozen=True)
class Questions:
    """The question set of each prompt, and a warning if a demo model writes them."""

    sets: Sequence[QuestionSet]
    warnings: Sequence[Notice]

    @property
    def complete(self) -> bool:
        """Whether each prompt has a set."""
        return not any(each.error for each in self.sets)


def questions(settings: QuestionsSettings, service: Service) -> Questions:
    """Return the question sets of prompts.  Raises `ScoregateError` if the request failed."""
    with service.client() as client:
        sets = client.questions(settings.prompts, settings.style)
        there = client.models()["models"]
    writers = {each["name"]: each["id"] for each in there if each["role"] == QUESTIONS_ROLE}
    return Questions(sets, demos(writers))
