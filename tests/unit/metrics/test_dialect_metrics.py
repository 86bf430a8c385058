"""The metric and the options of requests in dialects, as a profile sets them."""

import pytest

from service.core.settings import SettingsError
from service.core.settings.dialects import Dialects
from service.metrics.common.registry import Rewards, check_rewards, own, rewards
from service.metrics.ocr import OcrOptions
from service.metrics.vqascore import VqaScoreOptions

METRICS = {name: metric for name, metric in own().items() if name in ("vqascore", "dsg", "ocr")}
MODELS = {("vqascore", "vqa"): "large", ("dsg", "vqa"): "large"}


def test_a_request_that_names_no_metric_has_the_profiles_or_the_default_one():
    """With the options that the profile sets, by metric; others keep their defaults."""
    table = {"vqascore": {"output": "logit"}, "ocr": {"text": "OPEN"}}
    options = {"vqascore": VqaScoreOptions(output="logit"), "ocr": OcrOptions(text="OPEN")}

    assert Rewards("vqascore", {}) == rewards(METRICS, Dialects())
    assert Rewards("dsg", {}) == rewards(METRICS, Dialects(metric="dsg"))
    assert Rewards("vqascore", options) == rewards(METRICS, Dialects(options=table))


@pytest.mark.parametrize(
    ("table", "error"),
    [
        ({"metric": "beauty"}, "dialects.metric: there is no metric beauty; there are vqascore, dsg, ocr"),
        (
            {"options": {"beauty": {}}},
            "dialects.options: there is no metric beauty; there are vqascore, dsg, ocr",
        ),
    ],
)
def test_an_unknown_metric_is_refused_with_the_names_of_all(table, error):
    with pytest.raises(SettingsError) as refused:
        rewards(METRICS, Dialects(**table))

    assert error == str(refused.value)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"output": "loud"}, r"^dialects\.options\.vqascore\.output: .*'probability', 'logit'"),
        ({"volume": 1}, r"^dialects\.options\.vqascore\.volume: "),
    ],
)
def test_an_option_that_its_metric_does_not_have_is_refused_by_its_place(given, error):
    with pytest.raises(SettingsError, match=error):
        rewards(METRICS, Dialects(options={"vqascore": given}))


def test_a_metric_of_dialects_has_a_model_for_each_of_its_roles():
    """Before anything is loaded; without a metric in the profile, the default one may lack a model."""
    check_rewards(METRICS, MODELS, Dialects(metric="vqascore"))
    check_rewards(METRICS, {}, Dialects())

    with pytest.raises(SettingsError) as refused:
        check_rewards(METRICS, MODELS, Dialects(metric="ocr"))

    assert "dialects.metric: ocr has no model for its roles: ocr" == str(refused.value)
