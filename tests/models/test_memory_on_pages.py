"""The memory that the documents tell is counted, and nothing is said of what nobody measured."""

import re

import pytest

from service.process.check import described, on_any_machine, plans, weights_of
from service.wiring.load import load_settings
from tests.support.machines import FakeMachine
from tests.support.paths import ROOT

PROFILES = ROOT / "deploy" / "profiles"


def settings_of(path):
    """The settings of a profile on a machine of eight GPUs."""
    return on_any_machine(load_settings(path, {}), FakeMachine(8))[0]


@pytest.mark.parametrize("path", sorted(PROFILES.glob("*.toml")), ids=lambda path: path.stem)
def test_every_profile_is_valid(path):
    """Settings, and what can be seen of the models without them."""
    settings = settings_of(path)
    rows, _, _ = described(settings, plans(settings)).partition("\n\n")

    assert list(settings.models) == [line.split()[0] for line in rows.splitlines()[1:]]


@pytest.mark.parametrize("profile", ["gpu-24gb", "gpu-80gb", "gpu-8x80gb", "vqascore-24gb", "qwen3-vl-24gb"])
def test_a_profile_adds_up_what_is_counted(profile):
    """The comment's lines of the service's own models, and the sum of all lines but that of activations."""
    file = PROFILES / f"{profile}.toml"
    text, settings = file.read_text(), settings_of(file)
    lines = dict(re.findall(r"^#   (\S.*?)  .* (\d+\.\d)(?:  .*)?$", text, re.MULTILINE))
    total = re.search(r"^# +sum +(\d+\.\d)$", text, re.MULTILINE)
    own = sum(float(size) for line, size in lines.items() if line.startswith(("CLIP", "Qwen3-VL")))
    counted = weights_of(settings, plans(settings))["cuda:0"] / 1e9

    assert counted <= own < 1.02 * counted + 0.1  # heads of CLIP-FlanT5 are float32
    assert total
    assert float(total[1]) == pytest.approx(sum(map(float, lines.values())), abs=0.05)
    assert re.search(r"^#   activations .* not measured$", text, re.MULTILINE)
