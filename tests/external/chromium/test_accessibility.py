"""axe finds nothing, in every state and colour; nothing is cut off on a phone; no word is only a colour."""

import pytest
from playwright.sync_api import expect

from tests.external.chromium.steps import enter, pick, refuse, score, take_sample, unfold, write
from tests.support.axe import violations_in_both_schemes, violations_of_a_long_page
from tests.support.chromium import PHONE


def empty(page):
    """The page as it opens, with all that can be opened."""
    page.locator(".more").evaluate("more => more.open = true")
    page.locator("#key-toggle").click()


def scored(page):
    """A score with all its details."""
    take_sample(page, 1)
    score(page)
    unfold(page)


def ranked(page):
    """An order of three."""
    take_sample(page, 4)
    score(page)


def found(page):
    """Boxes over a picture, with all fields for what else metrics look at."""
    pick(page, "geneval", "judge")
    take_sample(page, 1)
    write(page, "#geneval", '{"tag": "colors", "include": [{"class": "dog", "count": 1, "color": "red"}]}')
    score(page)
    unfold(page)


def refused(page):
    """A problem with a pointer."""
    take_sample(page, 1)
    page.locator("#options").evaluate("options => options.value = '{\"vqascore\": 1}'")
    refuse(page)


STATES = [empty, scored, ranked, found, refused]


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
def test_axe_finds_nothing(page, service, state):
    """Labels, roles, order of headings, and contrast of at least 4.5 to 1."""
    enter(page, service)
    state(page)

    assert [] == violations_in_both_schemes(page)


def test_axe_finds_nothing_on_the_page_about_the_api(page, service):
    """Its tables, too."""
    page.goto(f"{service}playground/docs.html")
    page.locator("#schemas article").first.wait_for()

    assert [] == violations_of_a_long_page(page)


@pytest.mark.parametrize("window", [PHONE], ids=["phone"])
@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
def test_nothing_is_cut_off_on_a_phone(page, service, state):
    """At 360 pixels nothing has to be moved sideways."""
    enter(page, service)
    state(page)

    assert 360 == page.evaluate("document.documentElement.scrollWidth")


def test_nothing_moves_for_those_who_asked_for_that(page, service):
    """`prefers-reduced-motion`, which the browser of the tests asks for."""
    enter(page, service)
    scored(page)

    assert 0 == page.evaluate("document.getAnimations().length")


def test_a_words_score_is_also_text(page, service):
    """For those who cannot see colours."""
    enter(page, service)
    scored(page)

    words = page.locator(".word:not(.unasked)")
    expect(words).not_to_have_count(0)
    assert all("(" in word for word in words.all_text_contents())
