"""docs/reference/dialects.md: the profile that it shows."""

from service.core.settings.dialects import OVER_HTTP
from service.wiring.load import load_settings
from tests.support.pages import fences

PAGE = "reference/dialects.md"


def test_the_profile_shown_can_be_used(tmp_path):
    [(_, text)] = fences(PAGE, "toml")
    profile = tmp_path / "profile.toml"
    profile.write_text(text, "utf-8")
    enabled = load_settings(profile, {}).dialects.enabled

    assert [*OVER_HTTP] == enabled
