"""
Published answers of models, folded by the functions that `/score` calls.

The formulas stand in the package `scoregate-server`, and this folder is the only part of the client that
imports it.  No extra requires that package: while its name is not ours on the public index, an installer
could get somebody else's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from scoregate.errors import InputError
from scoregate.records import json_or_text
from scoregate.settings import Setting, SettingError


@dataclass(frozen=True, kw_only=True)
class LikertReplay:
    """Settings of the correlation of a VQA model's answers with people's ratings."""

    answers: Annotated[Path, Setting("CSV of a VQA model's answers")]
    likert: Annotated[Path, Setting("CSV of people's ratings")]


@dataclass(frozen=True, kw_only=True)
class DsgReplay(LikertReplay):
    """Settings of DSG's figures."""

    dependencies: Annotated[Literal["direct", "transitive", "none"], Setting("as the metric's option")] = (
        "direct"
    )


@dataclass(frozen=True, kw_only=True)
class Vq2Replay(LikertReplay):
    """Settings of VQ²'s figures."""


@dataclass(frozen=True, kw_only=True)
class TifaReplay:
    """Settings of TIFA's figures."""

    answers: Annotated[Path, Setting("JSON of an evaluation's result")]


@dataclass(frozen=True, kw_only=True)
class GeckoReplay:
    """Settings of Gecko's figures."""

    answers: Annotated[Path, Setting("JSON Lines: qas, rubric_results")]


def option(text: str) -> Any:
    """Parse an option of a metric: JSON, or a text."""
    value = json_or_text(text)
    if value is None:
        raise SettingError("null is no value of an option")
    return value


OPTION = Setting(
    "as the metric's option; default that of the released code", metavar="VALUE", parse=option
)  # on which GenEval's checks of detected objects depend


@dataclass(frozen=True, kw_only=True)
class GenEvalReplay:
    """Settings of GenEval's verdicts: the cases, and options of the metric that need no picture."""

    cases: Annotated[Path, Setting("JSON Lines: metadata and detections")]
    position_rule: Annotated[str | None, OPTION] = None
    position_threshold: Annotated[float | None, OPTION] = None
    threshold: Annotated[float | None, OPTION] = None
    counting_threshold: Annotated[float | None, OPTION] = None
    max_objects: Annotated[int | None, OPTION] = None
    max_overlap: Annotated[float | None, OPTION] = None

    @property
    def options(self) -> dict[str, Any]:
        """The options that are given."""
        return {name: value for name, value in vars(self).items() if name != "cases" and value is not None}


ReplaySettings = DsgReplay | Vq2Replay | TifaReplay | GeckoReplay | GenEvalReplay


class Replay(NamedTuple):
    """Published answers to a metric's questions: what they are, the settings, the words of a call."""

    help: str
    settings: type[ReplaySettings]
    example: str


REPLAYS = {
    "dsg": Replay(
        "DSG's answers against people's ratings", DsgReplay, "--answers answers.csv --likert ratings.csv"
    ),
    "vq2": Replay(
        "VQ²'s answers against people's ratings", Vq2Replay, "--answers answers.csv --likert ratings.csv"
    ),
    "tifa": Replay("TIFA's sample of an evaluation", TifaReplay, "--answers result.json"),
    "gecko": Replay(
        "Gecko's verdicts on the questions of its rubrics", GeckoReplay, "--answers verdicts.jsonl"
    ),
    "geneval": Replay("GenEval's checks of the objects in pictures", GenEvalReplay, "--cases cases.jsonl"),
}


def replay(settings: ReplaySettings) -> Sequence[Mapping[str, Any]]:
    """
    Return the figures of published answers; of GenEval the verdict on each case.

    Raises:
        InputError: a file cannot be used, or a package is not installed.
    """
    try:
        from scoregate.replay import ratings, verdicts
    except ModuleNotFoundError as exc:
        ours = str(exc.name).partition(".")[0] == "service"
        package = "the package scoregate-server" if ours else "the extra `evaluate`"
        raise InputError(f"replay needs {exc.name}, which {package} of the same checkout brings") from exc
    try:
        match settings:
            case DsgReplay():
                return [ratings.dsg(settings.answers, settings.likert, settings.dependencies)]
            case Vq2Replay():
                return [ratings.vq2(settings.answers, settings.likert)]
            case TifaReplay():
                return [verdicts.tifa(settings.answers)]
            case GeckoReplay():
                return [verdicts.gecko(settings.answers)]
            case GenEvalReplay():
                return verdicts.geneval(settings.cases, **settings.options)
    except ValueError as exc:
        raise InputError(str(exc)) from exc
