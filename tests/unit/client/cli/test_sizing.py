"""`scoregate sizing`: its figures are those of docs/operations/sizing.md."""

import json
import re
import shlex

import pytest

from scoregate.cli.sizing import JPEGS_PER_CORE_S, TFLOP_PER_ITEM, TFLOPS_PER_S
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


def test_the_cards_are_those_of_the_page_and_of_the_shipped_profiles(run):
    """With the operations that the page states; a card of 24 GB and one of 80 GB can be chosen."""
    stated = {cells[0]: float(cells[2]) for cells in rows(PAGE) if cells[0] in TFLOPS_PER_S}
    sizes = {cells[0]: cells[1] for cells in rows(PAGE) if cells[0] in TFLOPS_PER_S}
    work = {}
    for card in TFLOPS_PER_S:
        done = run("sizing", "clip-flant5-xl", "--pictures", "1e6", "--cards", "1", "--card", card, "--json")
        work[card] = json.loads(done.stdout)[0]["per_second"] * TFLOP_PER_ITEM["clip-flant5-xl"]

    assert stated == TFLOPS_PER_S == pytest.approx(work)
    assert {"24 GB", "80 GB"} == {*sizes.values()}


def test_twice_the_cards_take_half_the_time_and_cost_the_same(run):
    """The price is of all hours of all cards."""
    done = run(
        "sizing",
        "clip-flant5-xl",
        "--pictures",
        "1e6",
        "--cards",
        "1",
        "--cards",
        "2",
        "--price",
        "3",
        "--json",
    )
    one, two = json.loads(done.stdout)

    assert one["hours"] == pytest.approx(2 * two["hours"])
    assert one["price"] == pytest.approx(two["price"]) == pytest.approx(3 * one["hours"])
    assert 1_000_000 == one["pictures"]


def test_a_measured_rate_takes_the_place_of_the_formula(run):
    """As pictures a second of one card."""
    done = run("sizing", "clip-vit-l-14", "--pictures", "36000", "--cards", "1", "--rate", "10", "--json")

    assert 1.0 == json.loads(done.stdout)[0]["hours"]


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
