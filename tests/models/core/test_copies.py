"""Real models on several devices."""

import pytest

from models.core.copies import Copies
from models.core.examples import changed
from service.serving.loading import load_model
from service.wiring.load import load_settings

SETTINGS = load_settings(None, {})
LOADED = [name for name, table in SETTINGS.models.items() if hasattr(table, "devices")]


@pytest.mark.parametrize("name", LOADED)
def test_each_copy_of_a_demo_model_answers_calls_that_any_copy_prepared(name):
    """As the model on one device does; torch takes a CPU's number and ignores it."""
    table = SETTINGS.models[name]
    alone = load_model(name, table)
    several = load_model(name, table.model_copy(update={"devices": ("cpu:0", "cpu:1")}))
    assert isinstance(several, Copies)
    call = several.prepare(several.example())
    [expected] = alone.score([call])
    outcomes = [copy.score([call])[0] for copy in several.on.values()]

    assert not any(changed(expected, outcome) for outcome in outcomes)
    assert ["cpu:0", "cpu:1"] == [copy.info.device for copy in several.on.values()]
    first, second = several.on.values()
    assert first is not second
