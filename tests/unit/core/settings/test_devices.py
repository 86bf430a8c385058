"""The devices of a model in a profile."""

import pytest

from models.core.contract import CheckpointError
from models.core.copies import Copies, devices_of, load_each, on_first
from models.core.settings import LocalSettings
from service.core.settings import SettingsError
from service.wiring.load import load_settings
from tests.support.machines import FakeMachine


def table(**more):
    return LocalSettings(role="vqa", family="clip_flant5", **more)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('device = "cuda:0"\ndevices = ["cuda:1"]', "device and devices: give one of them"),
        ("devices = []", "devices: names none"),
        ('devices = [""]', "devices: names none"),
        ('devices = ["cuda:0", "cuda:0"]', "devices: names one twice"),
        ('devices = ["cuda", "cuda:0"]', "devices: names one twice"),
        ('devices = ["cpu:0", "cpu"]', "devices: names one twice"),
        ('devices = "cuda:0"', r'devices: give a list, such as \["cuda:0", "cuda:1"\], or "all"'),
        ('devices = ["all", "cuda:0"]', '"all" stands alone'),
    ],
)
def test_devices_that_cannot_be_are_refused(tmp_path, text, reason):
    profile = tmp_path / "profile.toml"
    profile.write_text(f'[models.vqa]\nfamily = "fake"\n{text}\n')
    with pytest.raises(SettingsError, match=reason):
        load_settings(profile, {})


def test_a_replica_under_ray_has_one_device(tmp_path):
    profile = tmp_path / "profile.toml"
    profile.write_text(
        '[runtime]\nkind = "ray"\n[models.vqa]\nfamily = "fake"\ndevices = ["cpu:0", "cpu:1"]\n'
    )
    with pytest.raises(SettingsError, match=r"models\.vqa\.devices: under Ray each replica has one device"):
        load_settings(profile, {})


def test_a_variable_names_several_as_json(tmp_path):
    profile = tmp_path / "profile.toml"
    profile.write_text('[models.vqa]\nfamily = "fake"\n')
    for text, expected in (('["cpu:0", "cpu:1"]', ("cpu:0", "cpu:1")), ("all", ("all",))):
        settings = load_settings(profile, {"SCOREGATE_MODELS__VQA__DEVICES": text})
        assert expected == settings.models["vqa"].devices


def test_all_are_the_gpus_that_cuda_shows():
    """Torch counts those that `CUDA_VISIBLE_DEVICES` leaves, from 0."""
    assert ("cuda:0", "cuda:1", "cuda:2") == devices_of(table(devices=("all",)), FakeMachine(3))
    with pytest.raises(CheckpointError, match='devices = "all": no CUDA device is visible'):
        devices_of(table(devices=("all",)), FakeMachine(0))


def test_each_copy_is_what_the_loader_makes_for_its_device():
    """One device is loaded as ever."""
    loaded = load_each(table(devices=("cpu:0", "cpu:1")), lambda table: (table.device, table.devices))
    assert isinstance(loaded, Copies)
    assert {"cpu:0": ("cpu:0", None), "cpu:1": ("cpu:1", None)} == loaded.on
    assert "cuda:2" == load_each(table(device="cuda:2"), lambda table: table.device)
    assert "cpu:0" == on_first(table(devices=("cpu:0", "cpu:1"))).device


def test_settings_with_devices_can_be_written_and_read(tmp_path):
    """As processes send them to each other."""
    profile = tmp_path / "profile.toml"
    profile.write_text('[models.vqa]\nfamily = "fake"\ndevices = ["cpu:0", "cpu:1"]\n', "utf-8")
    settings = load_settings(profile, {})

    assert settings == type(settings).model_validate(settings.model_dump())
