"""The files of the playground: who gets them, with which headers, and what is never in them."""

import re

import pytest

from service.web.routes import pages

PAGES = [name for name in sorted(pages.NAMES) if name.endswith(".html")]
SCRIPTS = [name for name in sorted(pages.NAMES) if name.endswith(".js")]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_no_script_style_or_handler_inside(name):
    """Its policy would refuse them."""
    page = (pages.FOLDER / name).read_bytes().decode()

    assert "<script type=" in page
    assert [] == re.findall(
        r"<style|\sstyle=|\son\w+=|<script(?![^>]*src=)|(?:src|href)=\"(?:https?:)?//", page
    )


@pytest.mark.parametrize("name", SCRIPTS)
def test_no_script_makes_markup_or_code_from_text(name):
    """What the service or the user wrote stays text."""
    script = (pages.FOLDER / name).read_bytes().decode()

    assert [] == re.findall(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|DOMParser"
        r"|https?://(?!www\.w3\.org/2000/svg)",  # the name of the elements of drawings
        script,
    )
