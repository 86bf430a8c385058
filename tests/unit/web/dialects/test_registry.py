"""Dialects are declared in their files, and found there."""

from fastapi import APIRouter

from service.core.settings.dialects import OVER_HTTP, Dialects, Timeouts
from service.web.dialects.registry import Dialect, dialects, routers
from tests.support.paths import ROOT

FOLDER = ROOT / "service/web/dialects"


def router(path):
    """A router with one route."""
    made = APIRouter()
    made.get(path)(lambda: None)
    return made


def test_every_file_with_routes_declares_a_dialect_that_is_found():
    """And the names of these dialects are those that may be enabled."""
    declaring = {path.stem for path in FOLDER.glob("*.py") if "APIRouter(" in path.read_text("utf-8")}
    declaring |= {path.parent.name for path in FOLDER.glob("*/routes.py")}

    assert declaring == {name for name, each in dialects().items() if each.router} == set(OVER_HTTP)


def test_every_dialect_has_a_timeout_in_the_settings():
    """And no other name has one."""
    assert dialects().keys() == Timeouts.model_fields.keys()


def test_a_dialect_that_may_not_be_enabled_has_an_app_and_the_setting_of_its_port():
    """It is never on the main port, and its errors have a format of their own."""
    alone = {name: each for name, each in dialects().items() if name not in OVER_HTTP}

    assert alone
    assert all(each.app and each.error_format and not each.router for each in alone.values())
    assert {f"{name}_port" for name in alone} <= Dialects.model_fields.keys()


def test_dialects_whose_paths_begin_with_a_metric_come_last():
    """So that `/unirl/health` is no metric's; otherwise the order is that of the files."""
    names = [*dialects()]
    last = ["flow_factory", "openrlhf", "slime"]

    assert last == names[-len(last) :] == [name for name in names if dialects()[name].takes_any_path]
    assert sorted(names[: -len(last)]) == names[: -len(last)]


def test_a_dialect_takes_any_path_if_one_of_its_paths_begins_with_a_parameter():
    """A parameter further down takes no path of another dialect."""
    assert Dialect("one", router("/{metric}/compute")).takes_any_path
    assert not Dialect("two", router("/two/{metric}")).takes_any_path


def test_the_routers_of_what_is_enabled_have_the_order_of_all_dialects():
    """Whatever the order of the setting; the own port of a dialect has further routes behind its own."""
    chosen = dialects()["rerank"], dialects()["slime"]

    assert [each.router for each in chosen] == [*routers(["slime", "rerank"])]
    assert [chosen[0].router, chosen[0].on_own_port, chosen[1].router] == [
        *routers(["slime", "rerank"], own_port=True)
    ]
