"""The table `dialects`: what is wrong with it is one line at the start."""

import pytest

from service.core.settings import SettingsError
from service.core.settings.sections import Server
from service.wiring.load import load_settings

WRONG = [
    (
        {"DIALECTS__ENABLED": '["trl"]'},
        "dialects.enabled.0: there is no such dialect; there are flow_factory, ",
    ),
    ({"DIALECTS__ENABLED": '["unirl", "unirl"]'}, "dialects.enabled: names a dialect twice"),
    ({"DIALECTS__PORT": "8001"}, "port: no dialect is listed in dialects.enabled"),
    ({"DIALECTS__PICKLE_PORT": "0"}, "dialects.pickle_port"),
    ({"DIALECTS__PICKLE": "true"}, "dialects.pickle"),
    ({"DIALECTS__METRIC": "beauty"}, "dialects.metric: there is no metric beauty"),
    ({"DIALECTS__METRIC": "pickscore"}, "dialects.metric: pickscore has no model for its roles: clip"),
    ({"DIALECTS__OPTIONS": '{"beauty": {}}'}, "dialects.options: there is no metric beauty"),
    ({"DIALECTS__OPTIONS": '{"vqascore": {"output": "loud"}}'}, "dialects.options.vqascore.output"),
    ({"DIALECTS__OPTIONS": '{"vqascore": {"volume": 1}}'}, "dialects.options.vqascore.volume"),
    ({"DIALECTS__TIMEOUTS_S__UNIRL": "0"}, "dialects.timeouts_s.unirl"),
    ({"DIALECTS__TIMEOUTS_S__TRL": "1"}, "dialects.timeouts_s.trl"),
]


@pytest.mark.parametrize(("variables", "named"), WRONG, ids=lambda value: str(value)[:40])
def test_a_wrong_setting_is_one_line_that_names_it(variables, named):
    with pytest.raises(SettingsError) as wrong:
        load_settings(None, {f"SCOREGATE_{name}": value for name, value in variables.items()})

    assert named in str(wrong.value)
    assert "\n" not in str(wrong.value)


def test_nothing_is_enabled_by_default():
    """And what is enabled with a port of its own is there for this machine alone."""
    dialects = load_settings(None, {}).dialects

    assert [] == dialects.enabled
    assert (None, None) == (dialects.port, dialects.pickle_port)
    assert "127.0.0.1" == dialects.host == Server().host


def test_timeouts_are_shorter_than_the_clients_wait():
    """Who gives up first sends the same body again."""
    timeouts = load_settings(None, {}).dialects.timeouts_s
    waits = {"flow_factory": 60, "unirl": 300, "pickle": 120, "openrlhf": 180, "slime": 120}

    assert all(0.9 * wait < getattr(timeouts, name) < wait for name, wait in waits.items() if name != "unirl")
    assert timeouts.unirl < waits["unirl"]


def test_a_composite_may_be_what_is_asked(tmp_path):
    profile = tmp_path / "profile.toml"
    text = (
        '[models.vqa]\nfamily = "fake"\n[models.clip]\nfamily = "fake"\n'
        "[composites.both]\nvqascore = {weight = 0.5}\nclipscore = {weight = 0.5}\n"
        '[dialects]\nenabled = ["unirl"]\nmetric = "both"\n'
    )
    profile.write_text(text, "utf-8")

    assert "both" == load_settings(profile, {}).dialects.metric
