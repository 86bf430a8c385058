"""What these tests look for is found where it is, so that finding nothing means something."""

import pytest

from tests.support.axe import LOOKS, OF_COLOURS, violations, violations_in_both_schemes
from tests.support.chromium import complaints, opened


def test_warnings_errors_and_violations_of_the_policy_are_complaints(page, service):
    """Each is written once by the page that has none of them."""
    page.goto(service)
    assert [] == complaints(page)
    page.evaluate("console.warn('careful')")
    page.evaluate("document.body.setAttribute('style', 'color: red')")
    with page.expect_event("pageerror"):
        page.evaluate("void setTimeout(() => { throw new Error('thrown'); })")

    careful, policy, thrown = complaints(page)
    assert ("careful", "thrown") == (careful, thrown)
    assert "Content Security Policy" in policy


def test_a_page_that_asks_another_host_fails_its_test(chrome, service):
    """Even for what its policy has blocked."""

    def ask() -> None:
        with opened(chrome) as page:
            page.goto(service)
            page.evaluate("void (new Image().src = 'http://127.0.0.2/')")

    with pytest.raises(AssertionError, match=r"http://127\.0\.0\.2/"):
        ask()


def test_axe_finds_a_colour_that_is_too_pale(page, service):
    """As the first of its rules for people who see little."""
    page.goto(service)
    page.locator("h1").evaluate("title => title.style.color = '#ccc'")

    [found] = violations(page)
    assert found.startswith("color-contrast: ['<h1")


def test_axe_finds_a_colour_that_is_too_pale_when_it_is_dark_only(page, service):
    """The page is looked at in both schemes."""
    page.goto(service)
    page.locator("h1").evaluate("title => title.style.color = 'light-dark(black, #333)'")

    assert [] == violations(page)
    assert violations_in_both_schemes(page)


def test_axe_finds_one_pale_cell_among_thousands_that_look_alike(page, service):
    """A text in colours of its own is a look of its own."""
    page.goto(f"{service}playground/docs.html")
    page.locator("#schemas article").first.wait_for()
    page.locator("#schemas tbody td:first-child").nth(99).evaluate("cell => cell.append('pale')")
    page.locator("#schemas tbody td:first-child").nth(99).evaluate("cell => cell.style.color = '#ccc'")

    [found] = violations(page, *OF_COLOURS, within=LOOKS)
    assert found.startswith("color-contrast: ['<td")
