"""The types of requests."""

from pathlib import Path

from service.core.settings.tree import Settings
from service.metrics.common.registry import configured, metrics
from service.web.wire.types import Requests, requests_with
from tests.support.rubrics import TWO_CALLS


def with_rubrics(*folders: Path) -> Requests:
    """Return the types of requests of a service with the rubrics of *folders*."""
    judge = {"rubrics": [str(folder) for folder in folders]}
    settings = Settings.model_validate({"models": {}, "judge": judge})
    return requests_with(configured(metrics(), settings))


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


def test_services_with_equal_rubrics_share_the_types_of_requests(tmp_path):
    """Building them takes as long as ten small requests; files with the same content are equal."""
    (tmp_path / "two.toml").write_text(TWO_CALLS)

    assert with_rubrics() is with_rubrics()
    assert with_rubrics(tmp_path) is with_rubrics(tmp_path)


def test_a_rubric_that_was_written_anew_is_the_next_services(tmp_path):
    """The file of a rubric is read at each start."""
    (tmp_path / "two.toml").write_text(TWO_CALLS)
    before = with_rubrics(tmp_path)

    (tmp_path / "two.toml").write_text(f"{TWO_CALLS}\n# A comment does not count.")
    assert with_rubrics(tmp_path) is before

    (tmp_path / "two.toml").write_text(TWO_CALLS.replace("retries = 1", "retries = 0"))
    options = with_rubrics(tmp_path).score.model_fields["options"].get_default(call_default_factory=True)
    assert options.judge.tables["two"].retries == 0
