"""What goes wrong is said beside what it is about, with a way on."""

import json

import httpx
import pytest

from tests.conftest import png
from tests.playground.conftest import KEY, QUOTA, served
from tests.playground.steps import PROBLEM, RESULT, enter, fill, take_sample, text

AGAIN = "document.querySelector('.again')"

pytestmark = pytest.mark.integration


def test_what_is_missing_is_named_before_anything_is_sent(browser, service):
    """Both fields say it, and the first one has the focus."""
    enter(browser, service)
    browser.click("#go")

    assert "Choose at least one picture." == text(browser, "#pictures-error")
    assert "Write what the picture should show." == text(browser, "#prompt-error")
    assert "files" == browser.run("document.activeElement.id")
    assert "true" == browser.run("document.querySelector('#prompt').getAttribute('aria-invalid')")
    assert [] == [each for each in browser.addresses() if each.endswith("/score")]


def test_a_broken_picture_says_so_and_costs_the_others_nothing(browser, service, picture, tmp_path):
    """One message for all metrics of the broken one, never a 0; the other has its scores."""
    broken = tmp_path / "broken.png"
    broken.write_bytes(png()[:40])
    enter(browser, service)
    fill(browser, [broken, picture], "a red square")
    browser.click("#go")
    browser.until(RESULT)

    first, second = browser.run("[...document.querySelectorAll('.result')].map(card => card.innerText)")
    assert 1 == first.count("image_undecodable")
    assert "0.000" not in first
    assert "vqascore" in second
    assert "Some scores are missing." in text(browser, "#said")


@pytest.mark.parametrize(
    ("field", "value", "focus"),
    [("prompt", "x" * 4001, "prompt"), ("options", '{"vqascore": {"nonsense": 1}}', "options")],
)
def test_a_pointer_leads_to_its_field(browser, service, picture, field, value, focus):
    """The service names a place of the request: the field there says what is wrong, and has the focus."""
    enter(browser, service)
    fill(browser, [picture], "a red square")
    browser.run(f"document.querySelector('#{field}').value = {json.dumps(value)}")
    browser.click("#go")
    browser.until(PROBLEM)

    assert focus == browser.run("document.activeElement.id")
    assert text(browser, f"#{field}-error")
    assert "true" == browser.run(f"document.querySelector('#{field}').getAttribute('aria-invalid')")
    assert "request" in text(browser, ".problem")
    assert "alert" == browser.run("document.querySelector('#problem').getAttribute('role')")


def test_a_refusal_counts_down_and_goes_on(browser, locked):
    """The quota is used up: the button says how long it takes, does nothing before, and then scores."""
    browser.open(locked)
    browser.run(f"sessionStorage.setItem('scoregate.key', {json.dumps(KEY)})")
    enter(browser, locked)
    take_sample(browser, 1)
    request = {
        "prompt": "a",
        "images": [{"part": "p"}] * (QUOTA // 3),
        "metrics": ["vqascore", "clipscore", "dsg"],
    }
    used = httpx.post(
        f"{locked}score", data={"request": json.dumps(request)}, files={"p": ("p", png())},
        headers={"X-API-Key": KEY}, timeout=60, trust_env=False,
    )  # fmt: skip
    browser.run("void (setInterval = tick => { window.second = tick; })")  # the test says when one is over
    browser.click("#go")
    browser.until(PROBLEM)
    waiting = []
    while browser.run(f"{AGAIN}.hasAttribute('aria-disabled')"):
        waiting.append(text(browser, ".again"))
        browser.click(".again")
        browser.run("second()")
    asked = [each for each in browser.addresses() if each.endswith("/score")]
    while browser.run(f"!{RESULT}"):
        browser.run(f"while ({AGAIN}?.hasAttribute('aria-disabled')) second()")
        browser.run(f"{AGAIN}?.click()")

    assert 200 == used.status_code, used.text
    assert len(waiting) >= 2
    assert waiting == [f"Try again in {left} s" for left in range(len(waiting), 0, -1)]
    assert 1 == len(asked)
    assert "" == text(browser, "#problem")


def test_a_service_that_is_not_ready_says_why(browser, tmp_path):
    """In the page's head, with the reasons of /readyz; the metrics that lack a model are marked."""
    nobody = {"FAMILY": "openai", "BASE_URL": "http://127.0.0.1:9/v1", "MODEL": "x", "REQUIRED": "true"}
    settings = {f"SCOREGATE_MODELS__QUESTIONS__{name}": value for name, value in nobody.items()}
    with served(tmp_path, ready=False, **settings) as address:
        enter(browser, address)
        browser.until("!document.querySelector('#not-ready').hidden")

        assert "Not ready" == text(browser, "#state")
        assert "questions" in text(browser, "#not-ready")
        assert "vqascore" in text(browser, "#metrics")


def test_a_service_that_is_gone_is_no_answer(browser, tmp_path):
    """And the request can be sent again."""
    with served(tmp_path) as address:
        enter(browser, address)
        take_sample(browser, 1)
    browser.click("#go")
    browser.until(PROBLEM)

    assert "The service did not answer." in text(browser, ".problem")
    assert "Try again" == text(browser, ".again")
