"""`check` on a machine without the GPUs of its profile."""

import pytest

from service.core.settings.tree import Settings
from service.process.check import check
from tests.models.core.settings.test_check import XL


@pytest.mark.parametrize(("gpus", "places"), [(0, ["cuda"]), (2, ["cuda:0", "cuda:1"])])
def test_all_gpus_are_counted_where_none_is_visible(monkeypatch, gpus, places):
    """As one that stands for each: a check needs no GPU."""
    monkeypatch.setattr("models.core.memory.free_bytes", lambda device: 10**10)
    for module in ("models.core.copies", "service.process.check"):
        monkeypatch.setattr(f"{module}.gpu_count", lambda: gpus)
    table = {key: value for key, value in XL.items() if key != "device"} | {"devices": "all"}
    lines = check(Settings.model_validate({"models": {"vqa": table}})).splitlines()

    assert f"bfloat16, {', '.join(places)} " in lines[1]
    assert places == [line.partition(": ")[0] for line in lines if "of weights needed" in line]
    assert (not gpus) == any("cuda stands for each GPU" in line for line in lines)
