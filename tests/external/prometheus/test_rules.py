"""The rules for Prometheus, checked by its own promtool."""

import re
import subprocess

import pytest
import yaml

from tests.external.prometheus.files import ALERTS, RULES, alerts, rules
from tests.support.pages import ROOT, fences, page
from tests.support.prometheus_server import program

RUNBOOKS = "docs/operations/runbooks.md"


def promtool(*arguments):
    """What promtool says, and how it ends."""
    done = subprocess.run(
        [program("promtool"), *map(str, arguments)], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


def test_promtool_finds_nothing_wrong_with_the_rules():
    """Syntax, templates, and no rule twice."""
    status, said = promtool("check", "rules", "--lint-fatal", RULES)

    assert 0 == status, said


def test_the_configuration_of_the_page_is_valid(tmp_path):
    """With the rules that it names, which are those of the chart."""
    [(name, text)] = fences("operations/watching.md", "yaml")
    (tmp_path / "helm").symlink_to(ROOT / "helm")
    (tmp_path / name).write_text(text, "utf-8")
    status, said = promtool("check", "config", tmp_path / name)

    assert 0 == status, said
    assert "1 rule files found" in said


def test_every_alert_fires_and_stays_quiet_as_its_tests_say():
    """tests/external/prometheus/alerts.yaml."""
    status, said = promtool("test", "rules", ALERTS)

    assert 0 == status, said


def test_the_tests_of_alerts_evaluate_the_groups_in_the_order_of_their_file():
    """An alert compares what its own moment recorded; promtool's own order is random."""
    groups = [group["name"] for group in yaml.safe_load(RULES.read_text("utf-8"))["groups"]]

    assert groups == yaml.safe_load(ALERTS.read_text("utf-8"))["group_eval_order"]


def test_each_alert_has_a_test_where_it_fires_and_one_where_it_does_not():
    """With every severity that it has."""
    fires, quiet = set(), set()
    for test in yaml.safe_load(ALERTS.read_text("utf-8"))["tests"]:
        for case in test["alert_rule_test"]:
            fires |= {(case["alertname"], alert["exp_labels"]["severity"]) for alert in case["exp_alerts"]}
            if not case["exp_alerts"]:
                quiet.add(case["alertname"])

    assert {(alert["alert"], alert["labels"]["severity"]) for alert in alerts()} == fires
    assert {alert["alert"] for alert in alerts()} == quiet


def test_each_alert_links_to_its_runbook_and_each_runbook_has_its_alert():
    """The anchor of a heading is its text in lower case."""
    linked = {(alert["alert"], alert["annotations"]["runbook_url"]) for alert in alerts()}
    headings = re.findall(r"^## (Scoregate\w+)$", page("operations/runbooks.md"), re.MULTILINE)

    assert {(name, f"{RUNBOOKS}#{name.lower()}") for name in headings} == linked


def test_a_budget_can_be_spent_as_fast_as_its_alerts_ask():
    """One of 10 % never burns 14.4 times as fast as it may: more than all requests would have to be bad."""
    budgets = [
        1 - float(rule["expr"].split("-")[1].strip(" )"))
        for rule in rules()
        if "budget" in rule.get("record", "")
    ]

    assert 3 == len(budgets)
    assert all(14.4 * budget < 1 for budget in budgets)


@pytest.mark.parametrize("name", ["helm/rules/scoregate.yaml", "helm/dashboards/scoregate.json"])
def test_the_page_names_the_files(name):
    """docs/operations/watching.md says where they are."""
    assert (ROOT / name).is_file()
    assert name in page("operations/watching.md")
