"""`scoregate sizing`: its figures are those of docs/operations/sizing.md."""

import json
import re
import shlex

import pytest

from scoregate.errors import InputError
from scoregate.runs.sizing import JPEGS_PER_CORE_S, TFLOP_PER_ITEM, TFLOPS_PER_S, SizingSettings, estimates
from tests.support.pages import fences, page, rows
from tests.unit.client.cli.conftest import run

__all__ = ["run"]

PAGE = page("operations/sizing.md")
NAMES = {
    "CLIP-FlanT5-XL": "clip-flant5-xl",
    "CLIP-FlanT5-XXL": "clip-flant5-xxl",
    "CLIP ViT-L/14": "clip-vit-l-14",
    "CLIP ViT-H/14": "clip-vit-h-14",
}


def test_the_speeds_are_those_of_the_page():
    """The operations of a picture, its pictures a second on both cards, and those that a core prepares."""
    table = {NAMES[name]: cells for cells in rows(PAGE) if (name := cells[0].partition(" (")[0]) in NAMES}
    [core] = [cells[-1] for cells in rows(PAGE) if cells[0] == "JPEG of 512², 128 a request"]

    assert TFLOP_PER_ITEM.keys() == table.keys()
    for name, (_, work, _, h100, _, a100, _) in table.items():
        assert float(work) == pytest.approx(TFLOP_PER_ITEM[name], rel=0.02)
        for card, cell in (("H100", h100), ("A100", a100)):
            stated = int(re.sub(r"\D", "", cell))
            assert stated == pytest.approx(TFLOPS_PER_S[card] / TFLOP_PER_ITEM[name], rel=0.03), (name, card)
    assert JPEGS_PER_CORE_S == float(core)


def of_xl(**settings):
    """The estimates of a million pictures."""
    return [*estimates(SizingSettings(models=["clip-flant5-xl"], images=[10**6], **settings))]


def test_the_cards_are_those_of_the_page_and_of_the_shipped_profiles():
    """With the operations that the page states; a card of 24 GB and one of 80 GB can be chosen."""
    stated = {cells[0]: float(cells[2]) for cells in rows(PAGE) if cells[0] in TFLOPS_PER_S}
    sizes = {cells[0]: cells[1] for cells in rows(PAGE) if cells[0] in TFLOPS_PER_S}
    work = {}
    for card in TFLOPS_PER_S:
        [one] = of_xl(cards=[1], card=card)
        work[card] = one["per_second"] * TFLOP_PER_ITEM["clip-flant5-xl"]

    assert stated == TFLOPS_PER_S == pytest.approx(work)
    assert {"24 GB", "80 GB"} == {*sizes.values()}


def test_twice_the_cards_take_half_the_time_and_cost_the_same():
    """The price is of all hours of all cards."""
    one, two = of_xl(cards=[1, 2], price=3.0)

    assert one["hours"] == pytest.approx(2 * two["hours"])
    assert one["price"] == pytest.approx(two["price"]) == pytest.approx(3 * one["hours"])
    assert 1_000_000 == one["pictures"]


def test_a_measured_rate_takes_the_place_of_the_formula():
    """As pictures a second of one card."""
    [one] = estimates(SizingSettings(models=["clip-vit-l-14"], images=[36000], cards=[1], rate=10.0))

    assert 1.0 == one["hours"]


def test_a_model_that_is_not_known_is_bad_input():
    """The line has those that are."""
    with pytest.raises(InputError, match="no model clip; there are clip-vit-l-14"):
        next(estimates(SizingSettings(models=["clip"])))


def test_the_command_without_models_prints_two_in_json(run):
    """Whether or not an option precedes them; each number of pictures on each number of cards."""
    default = json.loads(run("sizing", "--json").stdout)
    after_an_option = json.loads(run("sizing", "--pictures", "1e6", "clip-vit-h-14", "--json").stdout)

    assert [each["model"] for each in default] == ["clip-vit-l-14"] * 4 + ["clip-flant5-xl"] * 4
    assert [("clip-vit-h-14", 1_000_000, cards) for cards in (1, 64)] == [
        (each["model"], each["pictures"], each["cards"]) for each in after_an_option
    ]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [(("clip",), "no model clip; there are clip-vit-l-14"), (("--pictures", "0"), "at least 1")],
)
def test_a_wrong_argument_is_one_line(run, arguments, why):
    """With what is allowed."""
    done = run("sizing", *arguments)

    assert 2 == done.returncode
    assert why in done.stderr


def test_the_page_about_a_cluster_shows_what_the_command_prints(run):
    """Of ten million and a billion pictures, on one card and on 64."""
    [(_, shown)] = fences("guides/billion-on-a-cluster.md", "console")
    command, _, table = shown.partition("\n")

    assert table == run(*shlex.split(command)[2:]).stdout
