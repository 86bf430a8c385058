"""deploy/compose.yaml: what the programs of its other containers make of their arguments and files."""

import subprocess

import yaml

from tests.support.compose import DEPLOY, METRICS_PORT, SERVICES, mounts
from tests.support.prometheus_server import program
from tests.support.redis_server import redis_server


def test_redis_drops_answers_and_keeps_question_sets(tmp_path):
    """A real redis-server, started with the container's own arguments."""
    command, *arguments = [
        str(tmp_path) if each == "/data" else each for each in SERVICES["redis"]["command"]
    ]
    with redis_server(tmp_path, *arguments) as server:
        policy, most = (server.do("CONFIG", "GET", name)[1] for name in ("maxmemory-policy", "maxmemory"))

    assert ("redis-server", b"volatile-lru") == (command, policy)
    assert 2 * int(most) <= 2**30 * float(SERVICES["redis"]["mem_limit"].removesuffix("g"))


def test_prometheus_scrapes_the_instruments_and_reads_the_rules(tmp_path):
    """promtool accepts its configuration with the rules where they are mounted."""
    text = (DEPLOY / "prometheus.yml").read_text("utf-8")
    for source, target in mounts("prometheus"):
        text = text.replace(target, str((DEPLOY / source).resolve()))
    (tmp_path / "prometheus.yml").write_text(text, "utf-8")
    done = subprocess.run(
        [program("promtool"), "check", "config", tmp_path / "prometheus.yml"], capture_output=True
    )
    [job] = yaml.safe_load(text)["scrape_configs"]

    assert not done.returncode, done.stderr
    assert [{"targets": [f"gateway:{METRICS_PORT}"]}] == job["static_configs"]
    assert ["gateway"] == SERVICES["demo"]["networks"]["front"]["aliases"]
    assert all("front" in SERVICES[name]["networks"] for name in ("gateway", "prometheus", "grafana"))
