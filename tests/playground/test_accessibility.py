"""axe finds nothing, in every state and colour; nothing is cut off on a phone; no word is only a colour."""

import pytest

from tests.playground.steps import PROBLEM, RESULT, enter, pick, take_sample, write
from tests.support.axe import violations
from tests.support.browser import Browser

pytestmark = pytest.mark.integration


def empty(browser: Browser) -> None:
    """The page as it opens, with all that can be opened."""
    browser.run("document.querySelector('.more').open = true")
    browser.click("#key-toggle")


def scored(browser: Browser) -> None:
    """A score with all its details."""
    take_sample(browser, 1)
    browser.click("#go")
    browser.until(RESULT)
    browser.run("document.querySelectorAll('details').forEach(details => details.open = true)")


def ranked(browser: Browser) -> None:
    """An order of three."""
    take_sample(browser, 4)
    browser.click("#go")
    browser.until(RESULT)


def found(browser: Browser) -> None:
    """Boxes over a picture, with all fields for what else metrics look at."""
    pick(browser, "geneval", "judge")
    take_sample(browser, 1)
    write(browser, "#geneval", '{"tag": "colors", "include": [{"class": "dog", "count": 1, "color": "red"}]}')
    browser.click("#go")
    browser.until(RESULT)
    browser.run("document.querySelectorAll('details').forEach(details => details.open = true)")


def refused(browser: Browser) -> None:
    """A problem with a pointer."""
    take_sample(browser, 1)
    browser.run("document.querySelector('#options').value = '{\"vqascore\": 1}'")
    browser.click("#go")
    browser.until(PROBLEM)


STATES = [empty, scored, ranked, found, refused]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
def test_axe_finds_nothing(browser, service, state, scheme):
    """Labels, roles, order of headings, and contrast of at least 4.5 to 1."""
    browser.look(1280, 900, scheme=scheme)
    enter(browser, service)
    state(browser)

    assert [] == violations(browser)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_the_page_about_the_api(browser, service, scheme):
    """Its tables, too."""
    browser.look(1280, 900, scheme=scheme)
    browser.open(f"{service}playground/docs.html")
    browser.until("document.querySelectorAll('#schemas article').length")

    assert [] == violations(browser)


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
def test_nothing_is_cut_off_on_a_phone(browser, service, state):
    """At 360 pixels nothing has to be moved sideways."""
    browser.look(360, 740, phone=True)
    enter(browser, service)
    state(browser)

    assert 360 == browser.run("document.documentElement.scrollWidth")


def test_nothing_moves_for_those_who_asked_for_that(browser, service):
    """`prefers-reduced-motion`, which the browser of the tests asks for."""
    enter(browser, service)
    scored(browser)

    assert 0 == browser.run("document.getAnimations().length")


def test_a_words_score_is_also_text(browser, service):
    """For those who cannot see colours."""
    enter(browser, service)
    scored(browser)

    words = browser.run("[...document.querySelectorAll('.word:not(.unasked)')].map(word => word.textContent)")
    assert words
    assert all("(" in word for word in words)
