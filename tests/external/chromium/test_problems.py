"""What goes wrong is said beside what it is about, with a way on."""

import json

import httpx
import pytest
from playwright.sync_api import expect

from tests.external.chromium.steps import enter, fill, refuse, result, score, take_sample, write
from tests.support.fake_service import KEY, QUOTA, fake_service
from tests.support.pictures import png

# Press the button before each second that it asks for, and return what it said.
WAIT = """() => {
    const again = document.querySelector(".again"), told = [];
    while (again.hasAttribute("aria-disabled")) {
        told.push(again.innerText);
        again.click();
        second();
    }
    return told;
}"""


@pytest.fixture
def scores(page):
    """The requests for scores that the page has sent."""
    sent = []
    page.on("request", lambda request: request.url.endswith("/score") and sent.append(request))
    return sent


def test_what_is_missing_is_named_before_anything_is_sent(page, service, scores):
    """Both fields say it, and the first one has the focus."""
    enter(page, service)
    page.locator("#go").click()

    expect(page.locator("#pictures-error")).to_have_text("Choose at least one picture.")
    expect(page.locator("#prompt-error")).to_have_text("Write what the picture should show.")
    expect(page.locator("#files")).to_be_focused()
    expect(page.locator("#prompt")).to_have_attribute("aria-invalid", "true")
    assert [] == scores


def test_a_broken_picture_says_so_and_costs_the_others_nothing(page, service, picture, tmp_path):
    """One message for all metrics of the broken one, never a 0; the other has its scores."""
    broken = tmp_path / "broken.png"
    broken.write_bytes(png()[:40])
    enter(page, service)
    fill(page, [broken, picture], "a red square")
    score(page)

    first, second = page.locator(".result").all_inner_texts()
    assert 1 == first.count("image_undecodable")
    assert "0.000" not in first
    assert "vqascore" in second
    expect(page.locator("#said")).to_contain_text("Some scores are missing.")


@pytest.mark.parametrize(
    ("field", "value"), [("prompt", "x" * 4001), ("options", '{"vqascore": {"nonsense": 1}}')]
)
def test_a_pointer_leads_to_its_field(page, service, picture, field, value):
    """The service names a place of the request: the field there says what is wrong, and has the focus."""
    enter(page, service)
    fill(page, [picture], "a red square")
    write(page, f"#{field}", value)
    refuse(page)

    expect(page.locator(f"#{field}")).to_be_focused()
    expect(page.locator(f"#{field}-error")).not_to_be_empty()
    expect(page.locator(f"#{field}")).to_have_attribute("aria-invalid", "true")
    expect(page.locator(".problem")).to_contain_text("request")
    expect(page.locator("#problem")).to_have_role("alert")


def test_a_refusal_counts_down_and_goes_on(page, locked, scores):
    """The quota is used up: the button says how long it takes, does nothing before, and then scores."""
    page.goto(locked)
    page.evaluate("key => sessionStorage.setItem('scoregate.key', key)", KEY)
    enter(page, locked)
    take_sample(page, 1)
    request = {
        "prompt": "a",
        "images": [{"part": "p"}] * (QUOTA // 3),
        "metrics": ["vqascore", "clipscore", "dsg"],
    }
    used = httpx.post(
        f"{locked}score", data={"request": json.dumps(request)}, files={"p": ("p", png())},
        headers={"X-API-Key": KEY}, timeout=60, trust_env=False,
    )  # fmt: skip
    page.evaluate("void (setInterval = tick => { window.second = tick; })")  # the test says when one is over
    refuse(page)
    page.locator(".again").click(force=True)
    waiting = page.evaluate(WAIT)
    page.title()  # the requests that it has sent are known when this returns
    asked = len(scores)
    while not result(page).count():
        page.evaluate("while (document.querySelector('.again')?.hasAttribute('aria-disabled')) second()")
        page.evaluate("document.querySelector('.again')?.click()")

    assert 200 == used.status_code, used.text
    assert len(waiting) >= 2
    assert waiting == [f"Try again in {left} s" for left in range(len(waiting), 0, -1)]
    assert 1 == asked
    expect(page.locator("#problem")).to_be_empty()


def test_a_service_that_is_not_ready_says_why(page, tmp_path):
    """In the page's head, with the reasons of /readyz; the metrics that lack a model are marked."""
    nobody = {"FAMILY": "openai", "BASE_URL": "http://127.0.0.1:9/v1", "MODEL": "x", "REQUIRED": "true"}
    settings = {f"SCOREGATE_MODELS__QUESTIONS__{name}": value for name, value in nobody.items()}
    with fake_service(tmp_path, ready=False, **settings) as running:
        enter(page, f"{running.url}/")

        expect(page.locator("#not-ready")).to_be_visible()
        expect(page.locator("#state")).to_have_text("Not ready")
        expect(page.locator("#not-ready")).to_contain_text("questions")
        expect(page.locator("#metrics")).to_contain_text("vqascore")


def test_a_service_that_is_gone_is_no_answer(page, service):
    """And the request can be sent again."""
    enter(page, service)
    take_sample(page, 1)
    page.route("**/score", lambda route: route.abort("connectionrefused"))
    refuse(page)

    expect(page.locator(".problem")).to_contain_text("The service did not answer.")
    expect(page.locator(".again")).to_have_text("Try again")
