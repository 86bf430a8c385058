"""What a profile may say of where its models run."""

import pytest

from service.core.settings import SettingsError
from service.wiring.load import load_settings

RAY = '[runtime]\nkind = "ray"\n'


def loaded(tmp_path, text):
    profile = tmp_path / "profile.toml"
    profile.write_text(text)
    return load_settings(profile, {})


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ("replicas = 2", r'models\.vqa\.replicas: needs kind = "ray" in \[runtime\]'),
        ("num_gpus = 1", r"models\.vqa\.num_gpus: needs kind"),
        ("autoscaling = { max_replicas = 2 }", r"models\.vqa\.autoscaling: needs kind"),
    ],
)
def test_what_only_ray_can_do_is_refused_without_it(tmp_path, setting, reason):
    with pytest.raises(SettingsError, match=reason):
        loaded(tmp_path, f'[models.vqa]\nfamily = "fake"\n{setting}\n')


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ('device = "cuda:1"', r"models\.vqa\.device: .*Ray chooses which GPU"),
        ("num_gpus = 1", r'models\.vqa\.num_gpus: its device is "cpu"'),
        ('device = "cuda"\nnum_gpus = 1.5', "num_gpus: a part of one GPU, or whole ones"),
        ("replicas = 0", "replicas"),
        ("replicas = 2\nautoscaling = { max_replicas = 2 }", "replicas and autoscaling: give one"),
        ("autoscaling = { min_replicas = 3, max_replicas = 2 }", "max_replicas is less than min_replicas"),
    ],
)
def test_what_ray_cannot_do_is_refused(tmp_path, setting, reason):
    with pytest.raises(SettingsError, match=reason):
        loaded(tmp_path, f'{RAY}[models.vqa]\nfamily = "fake"\n{setting}\n')


@pytest.mark.parametrize(
    "address", ["", "somewhere", "http://a:1", "user:secret@host:6379", "ray://host", "a:99999", "a:0"]
)
def test_an_address_is_a_word_or_a_host_and_a_port(tmp_path, address):
    with pytest.raises(SettingsError, match=r"runtime\.address"):
        loaded(tmp_path, f'{RAY}address = "{address}"\n[models.vqa]\nfamily = "fake"\n')


@pytest.mark.parametrize("address", ["local", "auto", "head:6379", "10.0.0.1:6379", "ray://head:10001"])
def test_known_addresses_are_taken(tmp_path, address):
    settings = loaded(tmp_path, f'{RAY}address = "{address}"\n[models.vqa]\nfamily = "fake"\n')
    assert settings.runtime.address == address
