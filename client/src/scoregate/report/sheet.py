"""The contact sheet of a data set: one page without another file, the worst pictures first."""

import base64
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from importlib.util import find_spec
from pathlib import Path

from scoregate.data.datasets import Dataset
from scoregate.data.rows import Row, kind_of
from scoregate.runs.lines import Line
from scoregate.runs.plan import Plan
from scoregate.runs.summary import Kind, kinds_of
from scoregate.settings import setting, whole
from scoregate.text import document, number, safe

SIDE = 256  # pixels
MAX_PIXELS = 100_000_000  # a larger picture is not decoded
SHOWN = {"jpeg", "png", "gif", "bmp", "webp", "avif"}  # by browsers


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """Settings of the page."""

    html: Path | None = setting(
        "write a page of pictures, the worst first", default=None, metavar="FILE", parse=Path
    )
    html_pictures: int = setting(
        "pictures on that page at most (default %(default)s)", default=500, metavar="N", parse=whole
    )


def write_sheet(
    path: Path, dataset: Dataset, plan: Plan, lines: Callable[[], Iterator[Line]], limit: int
) -> None:
    """
    Write a page of the *limit* worst rows by the first metric; those without a score come first.

    Args:
        lines: the results of *dataset*, in its order; iterated three times.
    """
    first = plan.metrics[0]
    sign = -1 if first in plan.lower else 1
    worst = nsmallest(limit, lines(), key=lambda line: badness(line, first, sign))
    rows = {line["row"] for line in worst}
    pictures = {row.number: data_uri(bytes_of(row)) for row in dataset if row.number in rows}
    html = page(worst, pictures, first, sum(1 for _ in lines()), kinds_of(lines()))
    path.write_text(html, "utf-8", errors="backslashreplace")


def badness(line: Line, metric: str, sign: int) -> tuple[bool, float, int]:
    """Return the sort key: worst first, then in row order."""
    score = line["scores"].get(metric)
    return score is not None, sign * (score or 0.0), line["row"]


def bytes_of(row: Row) -> bytes:
    """Return the picture's bytes; empty if unreadable."""
    try:
        return row.read()
    except (OSError, ValueError):
        return b""


def page(
    worst: list[Line], pictures: Mapping[int, str], metric: str, rows: int, kinds: Sequence[Kind]
) -> str:
    """Return the page."""
    title = f"The {len(worst)} worst of {rows}" if len(worst) < rows else f"All {rows}, the worst first"
    head = f"<h1>{safe(title)}</h1>\n<p>By {safe(metric)}; rows without a score come first.</p>\n"
    head += "".join(f'<p class="bad">{safe(each)}</p>\n' for each in kinds)
    figures = "".join(figure(line, pictures.get(line["row"], "")) for line in worst)
    return document(f"Scoregate: {title}", STYLE, f"{head}<main>\n{figures}</main>\n")


def figure(line: Line, picture: str) -> str:
    """Return a row: its picture, its prompt, its scores and its errors."""
    prompt = safe(line["prompt"] or "")
    image = (
        f'<img src="{picture}" alt="{prompt}" loading="lazy">'
        if picture
        else '<p class="none">no picture to show</p>'
    )
    scores = "".join(f"<dt>{safe(m)}</dt><dd>{number(score)}</dd>" for m, score in line["scores"].items())
    errors = "".join(
        f'<dt>{safe(m)}</dt><dd class="bad">{safe(error["code"])}: {safe(error["detail"])}</dd>'
        for m, error in line["errors"].items()
    )
    noted = "".join(f"<dt>warning</dt><dd>{safe(each['text'])}</dd>" for each in line.get("warnings", []))
    name = f"row {line['row']}" + (f", {safe(line['image'])}" if line["image"] else "")
    caption = f"<b>{prompt}</b><dl>{scores}{errors}{noted}</dl><small>{name}</small>"
    return f"<figure>\n{image}\n<figcaption>{caption}</figcaption>\n</figure>\n"


STYLE = """
:root { color-scheme: light dark; --paper: #f7f7f5; --card: #fff; --ink: #24262a; --quiet: #62666d;
  --line: #e4e4e0; --bad: #a5352c; }
@media (prefers-color-scheme: dark) { :root { --paper: #17181b; --card: #202226; --ink: #e6e6e3;
  --quiet: #9a9da3; --line: #33363b; --bad: #f08a80; } }
body { margin: 2rem auto; max-width: 80rem; padding: 0 1rem; background: var(--paper); color: var(--ink);
  font: 15px/1.45 system-ui, sans-serif; }
h1 { margin: 0; font-size: 1.4rem; }
main { display: grid; grid-template-columns: repeat(auto-fill, minmax(15rem, 1fr)); gap: 1rem; }
figure { margin: 0; padding: .75rem; background: var(--card); border: 1px solid var(--line);
  border-radius: 8px; overflow-wrap: anywhere; }
img { display: block; max-width: 100%; max-height: 16rem; margin: 0 auto .5rem; }
b { font-weight: 600; }
dl { display: grid; grid-template-columns: auto 1fr; gap: .1rem .75rem; margin: .4rem 0; }
dt, small, p, .none { color: var(--quiet); }
dd { margin: 0; font-variant-numeric: tabular-nums; }
.bad { color: var(--bad); }
"""


def data_uri(picture: bytes) -> str:
    """Return the picture as the address of an image; empty if it can't be shown."""
    small = thumbnail(picture) if find_spec("PIL") else picture
    kind = kind_of(small)
    return f"data:image/{kind};base64,{base64.b64encode(small).decode()}" if kind in SHOWN else ""


def thumbnail(picture: bytes) -> bytes:
    """Return a small JPEG of what is scored: no orientation, no transparency.  Empty if it can't be read."""
    from PIL import Image

    try:
        with Image.open(io.BytesIO(picture)) as image:
            if image.width * image.height > MAX_PIXELS:
                return b""
            image.draft("RGB", (2 * SIDE, 2 * SIDE))
            small = image.convert("RGB")
    except Exception:  # Pillow's readers raise whatever a broken file makes them
        return b""
    small.thumbnail((SIDE, SIDE))
    file = io.BytesIO()
    small.save(file, "JPEG", quality=85)
    return file.getvalue()
