"""The types of requests, made from the declarations of the metrics."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, create_model

from service.core.fields import Name, Prompt, schema_keywords
from service.metrics.common.contract import Metric
from service.web.wire.comparison import PairMetric, compare_request
from service.web.wire.decide import DecideRequest, decide_request
from service.web.wire.requests import (
    MAX_ITEMS,
    MAX_RANKED,
    Options,
    QuestionsRequest,
    RankRequest,
    ScoreRequest,
    WireImage,
    WireItem,
    different,
    listed,
    of_the_request,
    over_the_requests,
    shared,
)


class Requests:
    """
    The requests that can be made where there are these metrics.

    Args:
        by_metric: the options of each metric.
        default: the metrics of a request that names none; a ranking's is the first.
        styles: styles of the metrics' question sets.
        max_items: most items of a request, and most prompts.
        pairwise: the metric of rubrics.

    Attributes:
        score: `ScoreRequest` with an options field for each metric.
        rank: `RankRequest` with the same options.
        compare: `CompareRequest` with the same options.
        decide: `DecideRequest`, whose items may have the same options.
        questions: `QuestionsRequest` with those styles.
    """

    def __init__(
        self,
        by_metric: tuple[tuple[str, type[BaseModel]], ...],
        default: tuple[str, ...],
        styles: tuple[str, ...],
        max_items: int,
        pairwise: PairMetric,
    ) -> None:
        fields: dict[str, Any] = {name: (options, shared(options())) for name, options in by_metric}
        options: Any = create_model("Options", __base__=Options, __doc__=Options.__doc__, **fields)
        every = shared(options())
        own = Annotated[options, BeforeValidator(over_the_requests)] | None
        names = Annotated[
            list[Name],
            Field(min_length=1, max_length=len(by_metric), fail_fast=True),
            AfterValidator(different),
            schema_keywords(uniqueItems=True),
        ]
        item = create_model(
            "WireItem",
            __base__=WireItem,
            __doc__=WireItem.__doc__,
            options=(own, None),
            metrics=(names | None, None),
            required=(names | None, None),
        )
        self.score: type[ScoreRequest] = create_model(
            "ScoreRequest",
            __base__=ScoreRequest,
            __doc__=ScoreRequest.__doc__,
            options=(Annotated[options, AfterValidator(of_the_request)], every),
            items=(listed(item, max_items) | None, None),
            images=(listed(WireImage, max_items) | None, None),
            metrics=(names, [*default]),
            required=(names | None, None),
        )
        self.rank: type[RankRequest] = create_model(
            "RankRequest",
            __base__=RankRequest,
            __doc__=RankRequest.__doc__,
            options=(options, every),
            images=(listed(WireImage, min(max_items, MAX_RANKED)), ...),
            metric=(Name, default[0]),
        )
        self.compare = compare_request(options, every, default[0], pairwise, max_items)
        self.decide: type[DecideRequest] = decide_request(options, max_items)
        style: Any = Literal[styles]
        self.questions: type[QuestionsRequest] = create_model(
            "QuestionsRequest",
            __base__=QuestionsRequest,
            __doc__=QuestionsRequest.__doc__,
            prompts=(listed(Prompt, max_items), ...),
            style=(style, styles[0]),
            options=(options, every),
        )


# Apps with equal metrics share them: building them takes as long as ten small requests.
_made = lru_cache(maxsize=8)(Requests)


def requests_with(metrics: Mapping[str, Metric], max_items: int = MAX_ITEMS) -> Requests:
    """Return the request types for *metrics*; apps with the same ones share them."""
    by_metric = tuple((name, metric.options) for name, metric in metrics.items())
    default = tuple(name for name, metric in metrics.items() if metric.default)
    asking = [name for m in metrics.values() if m.style for name in (m.style_of().name, m.name, *m.styles)]
    pairwise = next(
        PairMetric(name, metric.options, metric.pairwise)
        for name, metric in metrics.items()
        if metric.pairwise and "rubric" in metric.options.model_fields
    )
    return _made(by_metric, default, tuple(dict.fromkeys(asking)), max_items, pairwise)
