"""docs/guides/online-filter.md: a threshold, and a decision in any case."""

import re
import shlex
import tomllib

import pytest

import scoregate
from demo.process import free_port, url
from scoregate.cli.main import parser
from scoregate.decisions.policies import PolicyFile, policy_of
from service.core.settings.tree import Settings
from service.metrics.common.registry import own
from service.observability.instruments import Instruments
from tests.support.packages import files_of
from tests.support.pages import fences
from tests.support.pictures import png

PAGE, FILE = "online-filter.md", "picture_filter.py"
PICTURES = [png(colour) for colour in ("red", "lime", "blue", "white", "orange", "brown")]
PROMPT = 'a "red" square'


@pytest.fixture(params=["reject", "accept"])
def guide(request, module, tmp_path):
    """The page's module, as it stands and with the other fallback."""
    made = module(PAGE, FILE)
    made.client.close()
    if request.param == "accept":
        text = files_of(f"guides/{PAGE}")[FILE].replace('fallback="reject"', 'fallback="accept"')
        exec(compile(text, FILE, "exec"), vars(made))
        made.client.close()
    made.fails_open = request.param == "accept"
    return made


@pytest.fixture
def serving(guide, fake_service):
    """That module on a service whose policy `show` accepts scores from 0.5, with time for a busy machine."""
    with scoregate.Client(fake_service.url, timeout_s=60) as guide.client:
        yield guide


def test_the_commands_of_the_page_are_valid():
    """The arguments that choose a threshold."""
    [(_, commands)] = fences(f"guides/{PAGE}", "sh")

    assert ["batch", "calibrate"] == [
        parser().parse_args(shlex.split(line)[1:]).command for line in commands.splitlines()
    ]


@pytest.mark.parametrize(("place", "reads"), [(0, {"vqascore", "dsg", "ocr"}), (1, {"vqascore", "safety"})])
def test_the_policies_of_the_page_are_valid(tmp_path, place, reads):
    """By the name that the code has; the second one with the model of its metric."""
    text = fences(f"guides/{PAGE}", "toml")[place][1]
    (tmp_path / "policy.toml").write_text(text, "utf-8")
    policy = policy_of(PolicyFile(file=tmp_path / "policy.toml"))
    settings = Settings.model_validate({"models": {}, **tomllib.loads(text)})

    assert "show" == policy.name
    assert reads == {name for name in own() if name in settings.policies["show"].accept}
    assert reads & {"safety"} == {table.role for table in settings.models.values()}


def test_a_picture_with_scores_is_shown_by_the_policy(serving):
    """Whichever way failures go."""
    scores = [serving.client.score(picture, PROMPT).value for picture in PICTURES]

    assert {True, False} == {score >= 0.5 for score in scores}
    assert [score >= 0.5 for score in scores] == [serving.is_shown(picture, PROMPT) for picture in PICTURES]


def test_a_broken_picture_is_not_shown_even_by_a_filter_that_fails_open(serving):
    """The policy rejects what cannot be read, of whatever fallback."""
    for broken in (png()[:40], b"", b"no picture"):
        assert not serving.is_shown(broken, PROMPT)
        assert serving.best([broken], PROMPT) is None


def test_without_a_service_the_filter_fails_as_it_says(guide):
    """Open or closed; a picture without content is not shown, and one of several at most."""
    with scoregate.Client(url(free_port(0)), timeout_s=0.2, retries=0) as guide.client:
        assert guide.fails_open == guide.is_shown(png(), PROMPT)
        assert not guide.is_shown(b"", PROMPT)
        assert (PICTURES[0] if guide.fails_open else None) == guide.best(PICTURES, PROMPT)


def test_the_best_picture_is_the_one_that_is_shown(serving):
    """Among those that the policy accepts."""
    scores = [serving.client.score(picture, PROMPT).value for picture in PICTURES]

    assert PICTURES[scores.index(max(scores))] == serving.best([png()[:40], *PICTURES], PROMPT)


@pytest.mark.parametrize("page", [PAGE, "troubleshooting.md"])
def test_queries_name_instruments_that_exist(page):
    """The PromQL of the guides uses series that this service exposes."""
    instruments = Instruments(["vqa"], {"vqascore": (0, 1)})
    instruments.count_decision("show", "accept", "expression", 0.1)
    series = {sample.name for family in instruments.registry.collect() for sample in family.samples}
    queries = [text for _, text in fences(f"guides/{page}", "promql")]

    assert queries
    assert {name for query in queries for name in re.findall(r"scoregate_\w+", query)} <= series
