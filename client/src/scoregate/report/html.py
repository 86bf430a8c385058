"""
HTML pages in one file, without links, in light or dark mode: their frame, style and pieces.

Every text of others goes through `safe`.
"""

import base64
import io
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from html import escape
from importlib.util import find_spec
from math import inf
from pathlib import Path

from scoregate.data.rows import Row, kind_of
from scoregate.text import shown

POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
SIDE_PIXELS = 256  # pixels
MAX_PIXELS = 100_000_000  # a larger picture is not decoded
QUALITIES = (
    (85, SIDE_PIXELS),
    (60, SIDE_PIXELS),
    (35, SIDE_PIXELS),
    (35, 128),
    (35, 64),
)  # qualities of JPEG, each with the side in pixels
BROWSER_FORMATS = {"jpeg", "png", "gif", "bmp", "webp", "avif"}  # browsers show these


def safe(text: object) -> str:
    """Escape *text* for HTML, also characters that turn or break lines."""
    return escape(shown(text))


def write_html(path: Path, page: str) -> None:
    """Write a page; what UTF-8 cannot have, such as half of a surrogate pair, stands there escaped."""
    path.write_text(page, "utf-8", errors="backslashreplace")


def document(title: str, body: str, style: str = "", script: str = "") -> str:
    """
    Return a page.

    Args:
        body: HTML.
        style: rules after those of all pages.
        script: the only one that the browser runs.
    """
    policy = f"{POLICY}; script-src 'sha256-{hash_of(script)}'" if script else POLICY
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{safe(title)}</title>\n<style>{STYLE}{style}</style>\n</head>\n<body>\n{body}"
        f"{f'<script>{script}</script>' if script else ''}</body>\n</html>\n"
    )


def hash_of(script: str) -> str:
    """Return the hash by which a page's policy allows a script."""
    return base64.b64encode(sha256(script.encode()).digest()).decode()


def in_sections(title: str, head: str, sections: Mapping[str, tuple[str, str]], style: str = "") -> str:
    """
    Return a page of sections, with links to them below its head.

    Args:
        head: HTML below the title.
        sections: heading and body, both HTML, by id.
    """
    links = "".join(f'<li><a href="#{id}">{heading}</a></li>' for id, (heading, _) in sections.items())
    drawn = "".join(
        f'<section id="{id}" aria-labelledby="{id}-title">\n'
        f'<h2 id="{id}-title">{heading}</h2>\n{body}</section>\n'
        for id, (heading, body) in sections.items()
    )
    return document(
        title,
        f"<header>\n<h1>{safe(title)}</h1>\n{head}</header>\n"
        f'<nav aria-label="Sections"><ul>{links}</ul></nav>\n<main>\n{drawn}</main>\n',
        style,
    )


def note(text: str) -> str:
    """Return a line in small print; *text* is HTML."""
    return f'<p class="quiet">{text}</p>\n'


def table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[str]], kind: str = "") -> str:
    """Return a table whose first column names its rows; all arguments are HTML."""
    head = "".join(f'<th scope="col">{each}</th>' if each else "<td></td>" for each in heads)
    body = "".join(
        f'<tr><th scope="row">{cells[0]}</th>{"".join(f"<td>{cell}</td>" for cell in cells[1:])}</tr>\n'
        for cells in rows
    )
    drawn = (
        f'<table class="{kind}">\n<caption>{caption}</caption>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table>\n"
    )
    return region(caption, drawn)


def region(label: str, body: str) -> str:
    """Return *body* in a box that scrolls sideways, also with the keyboard."""
    return f'<div class="wide" role="group" tabindex="0" aria-label="{label}">\n{body}</div>\n'


def bad(text: object) -> str:
    """Return a line that warns."""
    return f'<p class="bad">{safe(text)}</p>\n'


def facts(of: Mapping[str, object], kind: str = "") -> str:
    """Return names with their texts, without those that are empty."""
    listed = "".join(f"<dt>{safe(name)}</dt><dd>{safe(text)}</dd>" for name, text in of.items() if text != "")
    return f'<dl class="{kind}">{listed}</dl>\n' if kind else f"<dl>{listed}</dl>\n"


def image(address: str, prompt: str, *, lazy: bool = False) -> str:
    """Return a picture by its address, or a line that there is none; *lazy* ones are decoded when in view."""
    if not address:
        return '<p class="none">no picture to show</p>'
    return f'<img src="{address}" alt="{safe(prompt)}"{" loading=lazy" * lazy}>'


def bytes_of(row: Row) -> bytes:
    """Return the bytes of a row's picture; empty if unreadable."""
    try:
        return row.read()
    except (OSError, ValueError):
        return b""


def data_uri(file: bytes, most: float = inf) -> str:
    """Return the picture as the address of an image; empty if it can't be shown in *most* bytes."""
    small = thumbnail(file, most) if find_spec("PIL") else file
    kind = kind_of(small)
    return (
        f"data:image/{kind};base64,{base64.b64encode(small).decode()}"
        if kind in BROWSER_FORMATS and len(small) <= most
        else ""
    )


def thumbnail(file: bytes, most: float = inf, pixels: int = MAX_PIXELS) -> bytes:
    """
    Return a small JPEG of what is scored: no orientation, no transparency.  Empty if it can't be read.

    Args:
        most: bytes that it may have; its quality is lowered to that, and then its size.
        pixels: that *file* may have at most.
    """
    from PIL import Image

    try:
        with Image.open(io.BytesIO(file)) as image:
            if image.width * image.height > pixels:
                return b""
            image.draft("RGB", (2 * SIDE_PIXELS, 2 * SIDE_PIXELS))
            small = image.convert("RGB")
    except Exception:  # Pillow's readers raise whatever a broken file makes them
        return b""
    small.thumbnail((SIDE_PIXELS, SIDE_PIXELS))
    found = b""
    for quality, side in QUALITIES:
        small.thumbnail((side, side))
        written = io.BytesIO()
        small.save(written, "JPEG", quality=quality)
        if len(found := written.getvalue()) <= most:
            break
    return found


STYLE = """
:root { color-scheme: light dark; --paper: #f6f6f3; --card: #fff; --ink: #1b1d20; --quiet: #575c64;
  --line: #e2e2dc; --accent: #0b6e5f; --track: #e7e7e2; --bad: #ad3420; }
@media (prefers-color-scheme: dark) { :root { --paper: #121315; --card: #1b1d20; --ink: #ececea;
  --quiet: #a4a8af; --line: #2e3136; --accent: #56c8b2; --track: #33363b; --bad: #f29683; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 70rem; padding: 1.5rem 1rem 4rem; background: var(--paper);
  color: var(--ink); font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif;
  overflow-wrap: anywhere; -webkit-text-size-adjust: 100%; }
h1 { margin: 0 0 1rem; font-size: 1.5rem; font-weight: 650; }
h2 { margin: 0 0 .75rem; font-size: 1.15rem; font-weight: 650; }
h3 { margin: 1rem 0 .5rem; font-size: 1rem; font-weight: 600; }
section { margin: 1.25rem 0; padding: 1.25rem; background: var(--card); border: 1px solid var(--line);
  border-radius: 12px; }
a { color: var(--accent); text-underline-offset: .2em; }
nav ul { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; margin: 1rem 0; padding: 0; list-style: none; }
small, .quiet, .none, dt, caption { color: var(--quiet); }
.quiet { margin: .5rem 0 0; font-size: .87rem; max-width: 60rem; }
.bad { color: var(--bad); margin: .25rem 0; }
dl { display: grid; grid-template-columns: auto 1fr; gap: .15rem 1rem; margin: .5rem 0; }
dd { margin: 0; font-variant-numeric: tabular-nums; }
.wide { overflow-x: auto; margin: .5rem 0 1rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
caption { padding: .25rem 0; text-align: left; font-weight: 600; }
th, td { padding: .3rem .75rem .3rem 0; border-bottom: 1px solid var(--line); text-align: left;
  vertical-align: middle; }
th { font-weight: 500; }
thead th { color: var(--quiet); font-size: .85rem; }
.gallery { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(15rem, 100%), 1fr));
  gap: 1rem; }
figure { margin: 0; padding: .75rem; background: var(--card); border: 1px solid var(--line);
  border-radius: 8px; font-size: .92rem; }
img { display: block; max-width: 100%; max-height: 16rem; }
ol, ul { margin: .25rem 0; padding-left: 1.25rem; }
b { font-weight: 600; }
@media print { body { background: none; } section { break-inside: avoid; border: 0; padding: 0; } }
"""
