"""The profiles of deploy/profiles: pinned, and with the command their other server is started by."""

import re
import shlex
from pathlib import Path

import pytest

from models.core.settings import RemoteSettings
from service.core.settings import SettingsError
from service.wiring.load import load_settings
from tests.support.paths import ROOT

PROFILES = sorted((ROOT / "deploy" / "profiles").glob("*.toml"))
REAL = [path for path in PROFILES if path.name != "demo.toml"]

UNPINNED = "zhiqiulin/clip-flant5-xxl", "facebook/mask2former-swin-small-coco-instance"

every_real_profile = pytest.mark.parametrize("path", REAL, ids=lambda path: path.stem)


def served(path: Path) -> dict[str, list[str]]:
    """Each model that a `vllm serve` line of the comments starts, with the line's words."""
    text = path.read_text("utf-8").replace("\\\n#", "")
    lines = re.findall(r"^#\s+(vllm serve .*)$", text, re.MULTILINE)
    return {words[2]: words for words in map(shlex.split, lines)}


def option(words: list[str], name: str) -> str:
    return words[words.index(name) + 1]


def test_the_profile_of_eight_gpus_has_the_models_of_one():
    """On all devices and in longer batches, with the same numbers."""
    own = {"device", "devices", "batch"}
    one, eight = (
        {
            name: model.model_dump(exclude=own)
            for name, model in load_settings(ROOT / f"deploy/profiles/{profile}.toml", {}).models.items()
        }
        for profile in ("gpu-80gb", "gpu-8x80gb")
    )

    assert one == eight


@pytest.mark.parametrize("path", PROFILES, ids=lambda path: path.stem)
def test_a_name_is_a_profile_of_the_package(path):
    """Where no file has the name."""
    assert load_settings(Path(path.stem), {}) == load_settings(path, {})


def test_a_file_comes_before_a_profile_of_the_package(tmp_path, monkeypatch):
    """Also one without a suffix."""
    (tmp_path / "vlm").write_text('[models.other]\nrole = "vqa"\nfamily = "fake"\n', "utf-8")
    monkeypatch.chdir(tmp_path)

    assert load_settings(Path("vlm"), {}).models.keys() == {"other"}


@every_real_profile
def test_every_checkpoint_of_the_hub_is_pinned(path):
    """To a commit; for others the comment says that the newest one is loaded with a warning."""
    for model in load_settings(path, {}).models.values():
        if getattr(model, "checkpoint", "") in UNPINNED:
            assert "with a warning" in path.read_text("utf-8")
        elif isinstance(model, RemoteSettings) or model.checkpoint:
            assert re.fullmatch(r"[0-9a-f]{40}", model.revision)


@every_real_profile
def test_every_model_of_another_server_has_the_line_that_serves_it(path):
    """Same model, same revision, same port."""
    commands = served(path)
    remote = [model for model in load_settings(path, {}).models.values() if isinstance(model, RemoteSettings)]

    assert commands.keys() == {model.model for model in remote}
    for model in remote:
        words = commands[model.model]
        assert model.revision == option(words, "--revision")
        assert f"http://{option(words, '--host')}:{option(words, '--port')}/v1" == model.base_url


@every_real_profile
def test_the_sum_of_the_memory_is_the_sum_of_its_lines(path):
    """Figures in the last column of the comments; parts of a line above begin further right."""
    lines = re.findall(r"^#   (\S.*?)  +([\d.]+)(?:  .*)?$", path.read_text("utf-8"), re.MULTILINE)
    total = re.search(r"^# +sum +([\d.]+)", path.read_text("utf-8"), re.MULTILINE)

    assert total is not None
    assert float(total[1]) == pytest.approx(sum(float(figure) for _, figure in lines), abs=0.05)


@every_real_profile
def test_a_server_takes_the_memory_that_the_comments_give_it(path):
    """So that `check` counts it."""
    tables = load_settings(path, {}).models.values()
    taken = [gb for table in tables for gb in getattr(table, "server_memory_gb", {}).values()]
    line = re.search(
        r"^#   vLLM .*? ([\d.]+)$|^#  +sum +([\d.]+)  = 0.90 of", path.read_text("utf-8"), re.MULTILINE
    )

    assert taken == ([float(line[1] or line[2])] if line else [])


def test_a_profile_that_is_nested_too_deep_is_an_error_with_its_file(tmp_path):
    """As any other text that cannot be parsed."""
    file = tmp_path / "deep.toml"
    file.write_text(f"a = {50_000 * '['}")

    with pytest.raises(SettingsError, match=r"deep\.toml: maximum recursion depth"):
        load_settings(file)
