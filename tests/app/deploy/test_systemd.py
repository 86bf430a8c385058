"""deploy/systemd: units with settings that the service accepts."""

from pathlib import Path

import scoregate_server
from service.process import BROKEN, LATER, WRONG
from service.process.command import parser
from service.process.launch import CLOSE_S
from service.wiring.load import load_settings
from tests.support.paths import ROOT
from tests.support.units import FOLDER, Unit, options, told_in, unit

PROFILE = ROOT / "deploy" / "profiles" / "gpu-24gb.toml"
NAMES = sorted(path.stem for path in FOLDER.glob("*.service"))


def test_the_service_accepts_the_settings_of_its_unit():
    """Its command, and its variables over the profile that the page copies."""
    service = unit("scoregate")
    program, *arguments = service.command
    parsed = parser().parse_args(arguments)
    settings = load_settings(PROFILE, service.environment)

    assert ("scoregate-server", "serve") == (Path(program).name, parsed.command)
    assert "/etc/scoregate/profile.toml" == str(parsed.config)
    assert "127.0.0.1" == settings.server.host


def test_it_may_write_where_it_is_told_to():
    """All folders of its variables are below its state's, and the rest cannot be written."""
    for name in NAMES:
        service = unit(name)
        places = [value.removeprefix("sqlite:///") for value in service.environment.values() if "/" in value]
        state = f"/var/lib/{service.one('StateDirectory')}"

        assert places
        assert all(Path(place).is_relative_to(state) for place in places)
        assert ("strict", "yes") == (service.one("ProtectSystem"), service.one("DynamicUser"))


def test_the_requests_in_progress_are_finished_before_systemd_kills():
    """The grace, the close after it, and a while."""
    service = unit("scoregate")
    settings = load_settings(PROFILE, service.environment)

    assert settings.server.grace_s + CLOSE_S + 5 <= float(service.one("TimeoutStopSec"))


def test_only_a_wrong_setting_is_not_tried_again():
    """Its status is the service's own; that of what passes by itself is another one."""
    service = unit("scoregate")

    assert (2, 3, 75) == (WRONG, BROKEN, LATER)
    assert ("always", str(scoregate_server.WRONG)) == (
        service.one("Restart"),
        service.one("RestartPreventExitStatus"),
    )


def test_the_vllm_is_the_one_that_the_profile_counts_with():
    """The same arguments, on the port that the service asks, and before the service."""
    vllm, service = unit("scoregate-vllm"), unit("scoregate")
    settings = load_settings(PROFILE, service.environment)
    port = options(vllm.command[2:])["--port"]

    assert told_in(PROFILE) == vllm.command[2:]
    assert f"http://127.0.0.1:{port}/v1" == settings.models["questions"].base_url
    assert f"http://127.0.0.1:{port}/health" in vllm.one("ExecStartPost")
    assert vllm.path.name in service.one("After").split()


def test_a_directive_over_several_lines_is_read_whole(tmp_path):
    """So that the tests above see all of a command."""
    (tmp_path / "x.service").write_text("# A=1\nExecStart=a b \\\n  --c d\n", "utf-8")

    assert ["a", "b", "--c", "d"] == Unit(tmp_path / "x.service").command
