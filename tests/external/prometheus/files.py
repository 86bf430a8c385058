"""The dashboard and the rules, as tests read them."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tests.support.paths import ROOT

RULES = ROOT / "helm" / "rules" / "scoregate.yaml"
DASHBOARD = ROOT / "helm" / "dashboards" / "scoregate.json"
ALERTS = Path(__file__).with_name("alerts.yaml")

VARIABLES = ("namespace", "job", "lane", "model", "metric")


def rules() -> list[dict[str, Any]]:
    """Every rule: those that record a series, and the alerts."""
    groups = yaml.safe_load(RULES.read_text("utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def alerts() -> list[dict[str, Any]]:
    """The rules that are alerts; some have two severities."""
    return [rule for rule in rules() if "alert" in rule]


def dashboard() -> dict[str, Any]:
    """The dashboard's JSON."""
    parsed: dict[str, Any] = json.loads(DASHBOARD.read_text("utf-8"))
    return parsed


def panels() -> list[dict[str, Any]]:
    """Everything on the dashboard but the headings."""
    return [panel for panel in dashboard()["panels"] if panel["type"] != "row"]


def expressions() -> Iterator[tuple[str, str]]:
    """Where each expression of the dashboard and the rules stands, and how it can be evaluated."""
    for panel in panels():
        for target in panel["targets"]:
            yield f"panel {panel['title']}, {target['refId']}", filled_in(target["expr"])
    for variable in dashboard()["templating"]["list"]:
        if variable["type"] == "query":
            asked = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"]["query"])
            assert asked, variable["query"]
            series, label = asked[1].removesuffix("}"), asked[2]
            series += "," if "{" in series else "{"
            yield f"variable {variable['name']}", filled_in(f'{series}{label}!=""}}')
    for rule in rules():
        if "record" in rule:
            yield f"rule {rule['record']}", soon(rule["expr"])
        else:
            yield f"alert {rule['alert']}, {rule['labels']['severity']}", compared(rule["expr"])


def filled_in(expression: str) -> str:
    """With all variables of the dashboard as they are at first."""
    for name in VARIABLES:
        expression = expression.replace(f"${name}", ".*")
    expression = expression.replace("$__rate_interval", "1m")
    assert "$" not in expression
    return expression


def soon(expression: str) -> str:
    """Without an offset: what tests start runs for minutes."""
    return expression.replace(" offset 1h", "")


def compared(expression: str) -> str:
    """An alert's expression, whose comparisons are 0 or 1: it is empty only where its series are missing."""
    return re.sub(r" (==|>=|>|<) ", r" \1 bool ", expression)
