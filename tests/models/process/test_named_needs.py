"""`serve --model NAME`: devices, memory, disk and downloads, before anything is loaded."""

import os
from dataclasses import replace
from types import SimpleNamespace

import httpx
import pytest
import torch

from models.families.registry import families
from service.core.settings import SettingsError
from service.process import needs
from service.process.check import plans
from service.process.model_names import profile_of
from service.wiring.load import settings_of
from tests.support.command import server
from tests.support.machines import FakeMachine

__all__ = ["server"]


def profile(*names):
    """The settings of *names* on a CPU."""
    return settings_of(profile_of(names, {}, ["cpu"], ""), "--model", {})


def test_weights_that_do_not_fit_end_the_start_before_they_are_loaded():
    """The line has both sizes; a batch that may not fit is a remark."""
    small = FakeMachine(free={"cpu": 1_000_000})

    with pytest.raises(SettingsError, match=r"cpu: the weights take 7\.6 MB, and 1\.0 MB are free"):
        needs.needs(profile("demo:clip"), small)


def test_a_gpu_without_a_driver_is_one_line(server, monkeypatch):
    """With status 2, as by a profile: torch's own error."""

    def failing(device):
        raise RuntimeError("Found no NVIDIA driver on your system.\nMore lines")

    monkeypatch.setattr(torch.cuda, "mem_get_info", failing)
    status, _, lines = server("serve", "--model", "demo:clip", "--devices", "cuda:0")

    assert (2, ["scoregate-server: cuda:0: Found no NVIDIA driver on your system."]) == (status, lines)


@pytest.mark.parametrize("name", ["zhiqiulin/clip-flant5-xl", "owner/name", "ViT-L-14-quickgelu"])
def test_a_hub_that_is_away_may_come_back(name, server, hub_cache, fake_hub):
    """With status 75 and one line, whichever request fails first."""
    fake_hub.error = httpx.ConnectError("Name or service not known")
    status, _, [line] = server("serve", "--model", name, "--devices", "cpu", machine=FakeMachine())

    assert os.EX_TEMPFAIL == status
    assert "ConnectError: Name or service not known" in line


@pytest.fixture
def no_hub(hub_cache, fake_hub):
    """An empty cache, and a hub that may not be called."""
    fake_hub.error = AssertionError("the hub was called")
    yield
    assert [] == fake_hub.requests


@pytest.mark.parametrize(
    ("devices", "line"),
    [
        ("cuda:99", "cuda:99: "),
        ("all", "no CUDA device is visible"),
        ("cpu,gpu", "--devices gpu: Expected one of"),
    ],
)
def test_a_device_is_checked_before_the_hub_is_called(devices, line, server, no_hub):
    """Also for a name whose family only the hub can say."""
    without_gpu = FakeMachine()
    status, _, [said] = server("serve", "--model", "owner/name", "--devices", devices, machine=without_gpu)

    assert 2 == status
    assert line in said


def test_known_weights_are_compared_with_the_memory_before_the_hub_is_called(no_hub):
    """Those of CLIP-FlanT5 are in a table."""
    small = FakeMachine(free={"cpu": 8_000_000_000})

    with pytest.raises(SettingsError, match=r"cpu: the weights take 4\d\.\d GB, and 8\.0 GB are free"):
        needs.needs(profile("zhiqiulin/clip-flant5-xxl"), small)


@pytest.mark.parametrize("name", ["owner/name", "zhiqiulin/clip-flant5-xl", "ViT-L-14-quickgelu"])
def test_a_cache_that_cannot_be_written_is_named_before_the_hub_is_called(name, server, no_hub, hub_cache):
    """With the command that fills one."""
    hub_cache.touch()
    status, _, [line] = server("serve", "--model", name, "--devices", "cpu", machine=FakeMachine())

    assert 2 == status
    assert f"the hub's cache {hub_cache} cannot be written. Set HF_HUB_CACHE, or run `hf download " in line


def test_files_without_room_are_said_so(hub_cache, fake_hub):
    """In memory, in a line, since they may be in another dtype; on the disk, with status 2."""
    fake_hub.files = [SimpleNamespace(filename="model.safetensors", file_size=10**15, will_download=True)]
    settings = settings_of(
        {"models": {"questions": {"family": "transformers", "checkpoint": "owner/name"}}}, "", {}
    )
    planned = plans(settings)
    lines = needs.downloads(settings, planned)

    assert "questions: downloads 1000000.0 GB from the hub's owner/name." == next(lines)
    assert next(lines).startswith("questions: its files are larger than the ")
    with pytest.raises(
        SettingsError,
        match=f"the downloads take 1000000.0 GB, and .* are free at {hub_cache.parent}; set HF_HOME",
    ):
        next(lines)


def test_a_name_of_open_clip_is_downloaded_from_the_hub_that_says_the_size(hub_cache, fake_hub):
    """The first of its files of weights counts, as its family declares; for an address, the parameters."""
    fake_hub.files = [
        SimpleNamespace(filename="open_clip_model.safetensors", file_size=1_710_000_000, will_download=True)
    ]
    settings = profile("ViT-L-14-quickgelu")
    planned = plans(settings)

    assert ["clip: downloads 1.7 GB from the hub's timm/vit_large_patch14_clip_224.openai."] == [
        *needs.downloads(settings, planned)
    ]
    [*_, (_, options)] = fake_hub.requests
    assert families()["open_clip"].fetched[0] == tuple(options["allow_patterns"])

    elsewhere = replace(planned["clip"], repository="")
    assert ["clip: downloads ViT-L-14-quickgelu, openai, about 1.7 GB."] == [
        *needs.downloads(settings, {"clip": elsewhere})
    ]
