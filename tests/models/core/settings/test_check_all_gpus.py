"""`check` on a machine without the GPUs of its profile."""

import pytest

from service.core.settings.tree import Settings
from service.process.check import check
from tests.models.core.settings.test_check import XL
from tests.support.machines import FakeMachine


@pytest.mark.parametrize(("gpus", "places"), [(0, ["cuda"]), (2, ["cuda:0", "cuda:1"])])
def test_all_gpus_are_counted_where_none_is_visible(gpus, places):
    """As one that stands for each: a check needs no GPU."""
    machine = FakeMachine(gpus, dict.fromkeys(places, 10**10))
    table = {key: value for key, value in XL.items() if key != "device"} | {"devices": "all"}
    lines = check(Settings.model_validate({"models": {"vqa": table}}), machine).splitlines()

    assert f"bfloat16, {', '.join(places)} " in lines[1]
    assert places == [line.partition(": ")[0] for line in lines if "of weights needed" in line]
    assert (not gpus) == any("cuda stands for each GPU" in line for line in lines)
