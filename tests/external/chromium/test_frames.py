"""Frames of a scene and of videos, the reasons for a ranking, and the banner of demo models."""

import json
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.external.chromium.steps import answer, enter, fill, pick, refuse, score, unfold
from tests.external.chromium.test_click_path import run_as_shown
from tests.support.chromium import complaints
from tests.support.films import COLOURS, film, mp4
from tests.support.pictures import png


@pytest.fixture
def views(tmp_path: Path) -> list[Path]:
    """Three pictures of one scene."""
    paths = [tmp_path / f"view {number}.png" for number in range(3)]
    for number, path in enumerate(paths):
        path.write_bytes(png((90 * number, 40, 10)))
    return paths


def plotted(page: Page) -> list[str | None]:
    """Return what the plot says of each of its points."""
    return page.locator(".plot circle title").all_text_contents()


def test_pictures_can_be_the_frames_of_one_scene(page, service, views):
    """One score, drawn and listed by frame; the code to copy gives the same."""
    enter(page, service)
    pick(page, "vqascore")
    fill(page, views[:1], "a red square")
    expect(page.locator("#frames-field")).to_be_hidden()
    page.locator("#files").set_input_files(views[1:])
    page.locator("#together").check()
    score(page)

    [result] = answer(page)["results"]
    frames = [f"{each['score']:.3f}" for each in result["details"]["vqascore"]["frames"]]
    assert [f"frame {number}: {figure}" for number, figure in enumerate(frames)] == plotted(page)
    assert plotted(page) == page.locator(".frames > details > summary").all_inner_texts()
    expect(page.locator("#said")).to_contain_text("1 scene scored")
    assert f"{result['scores']['vqascore']}" in run_as_shown(page, "python", views[0].parent)
    assert [] == complaints(page)


def test_the_plot_has_all_scores_where_an_option_changes_their_range(page, service, views):
    """A logit is not from 0 to 1, the range of the metric."""
    enter(page, service)
    pick(page, "vqascore")
    fill(page, views, "a red square")
    page.locator("#together").check()
    page.locator(".more > summary").click()
    page.locator("#options").fill('{"vqascore": {"output": "logit"}}')
    score(page)

    heights = page.locator(".plot circle").evaluate_all("all => all.map((one) => one.cy.baseVal.value)")
    assert 3 == len(heights)
    assert all(0 <= height <= 150 for height in heights)


@pytest.mark.parametrize("kind", ["gif", "mp4"])
def test_frames_of_a_video_are_taken_at_a_rate(page, service, tmp_path, kind):
    """The plot has their times; a part that cannot be is an error beside the fields."""
    if kind == "mp4":
        pytest.importorskip("av", reason="the extra `video` is not installed")
    clip = tmp_path / f"clip.{kind}"
    clip.write_bytes(mp4(COLOURS) if kind == "mp4" else film(colours=COLOURS[:3], duration=250))
    enter(page, service)
    pick(page, "vqascore")
    fill(page, [clip], "a red square")
    expect(page.locator("#together")).to_be_hidden()
    page.locator("#fps").fill("4")
    page.locator("#start").fill("0.25")
    score(page)
    shown = plotted(page)
    page.locator("#end").fill("0.1")
    refuse(page)

    assert ["0.25 s", "0.50 s"] == [text.split(": ")[0] for text in shown]
    expect(page.locator("#frames-error")).to_contain_text("is not after start")


def test_a_ranking_has_its_reasons(page, service, views):
    """Below each picture, by metric, if they are wanted."""
    enter(page, service)
    page.locator("#ask .modes label", has_text="rank").click()
    fill(page, views, "a red square")
    score(page)
    unfold(page)
    expect(page.locator(".ranking .why")).to_have_count(3)
    expect(page.locator(".ranking .why").first).to_contain_text("label_mass")

    page.locator("#explain").uncheck()
    page.locator("#go").click()
    expect(page.locator(".ranking .why")).to_have_count(0)
    assert [] == complaints(page)


@pytest.mark.parametrize("demo", [[True, True], [True, False]])
def test_a_banner_is_there_while_only_demo_models_serve(page, service, demo):
    """One real model is enough to take it away, unless it is the OCR model, as in the demo's profile."""

    def told(route):
        reply = route.fetch()
        body = reply.json()
        for model, is_demo in zip(body["models"], [*demo, *[demo[0]] * len(body["models"])], strict=False):
            model["demo"] = is_demo
        body["models"].append({**body["models"][0], "role": "ocr", "demo": False})
        route.fulfill(response=reply, body=json.dumps(body))

    page.route("**/models", told)
    enter(page, service)

    expect(page.locator("#demo")).to_be_visible(visible=all(demo))
