"""The profiles of deploy/profiles, with what can be seen of their models."""

import pytest

from service.check import check
from service.settings.load import load_settings
from tests.support.paths import ROOT

PROFILES = sorted((ROOT / "deploy" / "profiles").glob("*.toml"))

every_profile = pytest.mark.parametrize("path", PROFILES, ids=lambda path: path.stem)


@every_profile
def test_every_profile_is_valid(path):
    """Settings, and what can be seen of the models without them."""
    settings = load_settings(path, {})

    assert list(settings.models) == [
        line.split()[0] for line in check(settings).partition("\n\n")[0].splitlines()[1:]
    ]
