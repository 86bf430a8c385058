"""The types of requests."""

from service.metrics.common.registry import metrics
from service.web.wire.types import requests_with


def test_requests_without_options_share_the_defaults():
    """A copy of all metrics' options takes longer than everything else of a small request's validation."""
    wire = requests_with(metrics()).score
    body = {"items": [{"prompt": "a dog", "image": "iVBORw0KGgo="}], "metrics": ["vqascore"]}

    first, second = (wire.model_validate(body, context={}) for _ in range(2))

    assert first.options is second.options


def test_requests_with_options_of_one_metric_share_the_defaults_of_the_others():
    """The options of a metric that a request does not name are not copied either."""
    wire = requests_with(metrics()).score
    body = {"prompt": "a dog", "image": "iVBORw0KGgo=", "options": {"vqascore": {"output": "logit"}}}

    first, second = (wire.model_validate(body, context={}) for _ in range(2))

    assert first.options.judge is second.options.judge
