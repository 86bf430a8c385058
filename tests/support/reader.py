"""Reads a page."""

from html.parser import HTMLParser


class Reader(HTMLParser):
    """Text, attributes, and tags left open."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.text, self.tags, self.open, self.attributes = "", [], [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, text):
        self.text += text
