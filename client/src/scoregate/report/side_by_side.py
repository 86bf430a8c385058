"""
The page of `scoregate versus`: pictures of one prompt side by side, in one file.

The prompts are data in the page.  Its script shows a few at a time, and draws a picture when it is seen.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any

from scoregate.evaluation.bootstrap import caution
from scoregate.evaluation.versus import Versus
from scoregate.images import digest
from scoregate.report.comparisons import pairs_table, span
from scoregate.report.html import bad, bytes_of, data_uri, document, note, safe, table, write_html
from scoregate.report.pairs import GeneratorImage, verdict
from scoregate.runs.generators import ScoredGenerator
from scoregate.runs.results import digests
from scoregate.text import Progress, number, shown

MAX_PAGE = 60_000_000  # bytes
FRAME = 40  # bytes around a picture in the page
MAX_IMAGES = 4  # pictures of a prompt and generator that are shown
PASSING_SCORE = 0.5  # a question with this score or more is passed

ThumbnailKey = tuple[str, str | None, str | None]  # generator, name and prompt of a picture


@dataclass(frozen=True)
class SideBySide:
    """
    What the page shows.

    Attributes:
        missing: a line for each kind of missing score.
        tags: the name of the pictures' tags; empty without any.
        most: prompts that are shown.
    """

    generators: Sequence[ScoredGenerator]
    metrics: Sequence[str]
    images: Sequence[GeneratorImage]
    figures: Versus
    missing: Sequence[str]
    tags: str
    most: int


@dataclass
class Side:
    """The pictures of a prompt by one generator."""

    images: list[GeneratorImage] = field(default_factory=list)

    def mean(self, metric: str) -> float | None:
        """Return the mean of the scores, None without any."""
        scores = [each.scores[metric] for each in self.images if metric in each.scores]
        return fmean(scores) if scores else None

    def question(self, metric: str, text: str) -> float | None:
        """Return the mean score of a question, None where no picture has it."""
        every = (each.questions.get(metric, {}).get(text) for each in self.images)
        scores = [score for score in every if score is not None]
        return fmean(scores) if scores else None

    @cached_property
    def shown(self) -> list[GeneratorImage]:
        """The pictures on the page."""
        return [each for each in self.images if each.image][:MAX_IMAGES]


Prompt = Mapping[str, Side]  # keys are generators


def write_side_by_side(page: Path, data: SideBySide, most: int = MAX_PAGE) -> None:
    """Write the page, of at most *most* bytes."""
    prompts = prompts_of(data)
    names = [each.name for each in data.generators]
    content = {
        "generators": [*map(shown, names)],
        "metrics": [*map(shown, data.metrics)],
        "lower": [any(metric in each.plan.lower for each in data.generators) for metric in data.metrics],
        "skill": shown(data.tags),
        "prompts": [entry_of(item, sides, data.metrics) for item, sides in prompts.items()],
    }
    head = head_of(data, len(prompts))
    body = f'{head}{CONTROLS}<main id="prompts" tabindex="-1" aria-label="Prompts"></main>\n{PAGER}'
    body += f'<script type="application/json" id="content">{in_script(content)}</script>\n'
    left = most - len(body.encode()) - len(SCRIPT.encode()) - 20_000  # the frame of all pages is smaller
    html = [body, *image_scripts(prompts, thumbnails(data, prompts, left))]
    title = f"{' and '.join(names)} side by side"
    write_html(page, document(title, "".join(html), STYLE, SCRIPT))


def prompts_of(data: SideBySide) -> dict[str, Prompt]:
    """Return the prompts of the page: of too many those with the largest differences by the first metric."""
    names = [each.name for each in data.generators]
    found: dict[str, dict[str, Side]] = {}
    for each in data.images:
        if each.item:
            sides = found.setdefault(each.item, {name: Side() for name in names})
            sides[each.generator].images.append(each)
    metric = data.metrics[0]

    def spread(item: str) -> float:
        means = [mean for side in found[item].values() if (mean := side.mean(metric)) is not None]
        return max(means) - min(means) if means else 0.0

    kept = sorted(found, key=spread, reverse=True)[: data.most]
    return {item: found[item] for item in kept}


def entry_of(item: str, sides: Prompt, metrics: Sequence[str]) -> dict[str, Any]:
    """Return a prompt as the script reads it: means and pictures by generator, and questions that differ."""
    images = [each for side in sides.values() for each in side.images]
    return {
        "text": shown(next((each.prompt for each in images if each.prompt), item)),
        "tags": [shown(tag) for tag in images[0].tags],
        "means": [[side.mean(metric) for metric in metrics] for side in sides.values()],
        "pictures": [
            [[shown(each.image), [each.scores.get(metric) for metric in metrics]] for each in side.shown]
            for side in sides.values()
        ],
        "more": [len(side.images) - len(side.shown) for side in sides.values()],
        "errors": [
            sorted(
                {shown(f"{metric}: {code}") for each in side.images for metric, code in each.errors.items()}
            )
            for side in sides.values()
        ],
        "questions": [*questions_of(sides)],
    }


def questions_of(sides: Prompt) -> Iterator[list[Any]]:
    """Yield the questions that some generator passes and another fails: metric, text, and who passes."""
    asked = {
        (metric, text): None
        for side in sides.values()
        for each in side.images
        for metric, questions in each.questions.items()
        for text in questions
    }
    for metric, text in asked:
        scores = [side.question(metric, text) for side in sides.values()]
        passed = [None if score is None else score >= PASSING_SCORE for score in scores]
        if {True, False} <= {*passed}:
            yield [shown(metric), shown(text), passed]


def thumbnails(data: SideBySide, prompts: Mapping[str, Prompt], most: int) -> dict[ThumbnailKey, str]:
    """Return the pictures of the page as addresses, in *most* bytes together; none for a changed one."""
    wanted = {
        (name, each.image, each.prompt): each.sha256
        for sides in prompts.values()
        for name, side in sides.items()
        for each in side.shown
    }
    of_one = (most / max(len(wanted), 1) - FRAME) * 3 / 4  # base64 makes 4 bytes of 3
    found: dict[ThumbnailKey, str] = {}
    with closing(Progress(len(wanted), leave=False)) as progress:
        for generator in data.generators:
            for key, address in images_of(generator, wanted, of_one):
                found[key] = address
                progress.step()
    return found


def images_of(
    generator: ScoredGenerator, wanted: Mapping[ThumbnailKey, str | None], most: float
) -> Iterator[tuple[ThumbnailKey, str]]:
    """Yield those of the *wanted* pictures that are still as they were scored."""
    for row in generator.rows():
        key = generator.name, row.image, row.prompt
        if key not in wanted:
            continue
        sha256, data = wanted[key], bytes_of(row)
        if sha256 is None or sha256 == digest(data) or sha256 in digests(row):
            yield key, data_uri(data, most)


def image_scripts(prompts: Mapping[str, Prompt], found: Mapping[ThumbnailKey, str]) -> Iterator[str]:
    """Yield the pictures of each prompt as data that the script reads when the prompt is seen."""
    for place, sides in enumerate(prompts.values()):
        addresses = [
            [found.get((name, each.image, each.prompt), "") for each in side.shown]
            for name, side in sides.items()
        ]
        yield f'<script type="application/json" id="pictures-{place}">{in_script(addresses)}</script>\n'


def in_script(content: Any) -> str:
    """Return JSON that cannot end the script around it."""
    return json.dumps(content, separators=(",", ":")).replace("<", "\\u003c")


def head_of(data: SideBySide, prompts: int) -> str:
    """Return the title, the answer of each pair, and the tables."""
    figures = data.figures
    names = " and ".join(each.name for each in data.generators)
    head = f"<header>\n<h1>{safe(names)} side by side</h1>\n"
    head += "".join(f'<p class="answer">{safe(verdict(pair))}</p>\n' for pair in figures.pairs)
    head += "".join(map(bad, data.missing))
    head += "".join(map(bad, caution(figures.prompts, "prompt").values()))
    head += means_table(data) + pairs_table(figures.pairs)
    if prompts < figures.prompts:
        head += note(
            f"Below are the {prompts:,} of {figures.prompts:,} prompts with the largest differences."
        )
    return head + "</header>\n<noscript><p class=bad>The pictures need JavaScript.</p></noscript>\n"


def means_table(data: SideBySide) -> str:
    rows = [
        [safe(each.generator), safe(each.metric), number(each.mean), span(each.interval), str(each.pictures)]
        for each in data.figures.means
    ]
    return table("Means", ["generator", "metric", "mean", "95 % interval", "pictures"], rows)


CONTROLS = """<form class="controls" aria-label="Which prompts">
<label>Metric <select id="metric"></select></label>
<label>Pair <select id="pair"></select></label>
<label>Order <select id="order"></select></label>
<label id="skill-label">Skill <select id="skill"></select></label>
<label>Text <input id="text" type="search" autocomplete="off"></label>
<p class="quiet">Arrow keys left and right turn the pages, Home and End go to the first and the last.</p>
</form>
<p id="count" role="status" class="quiet"></p>
"""
PAGER = """<nav class="pager" aria-label="Pages"><button id="before" type="button">Previous</button>
<span id="place"></span><button id="after" type="button">Next</button></nav>
"""
SCRIPT = Path(__file__).with_suffix(".js").read_text("utf-8")
STYLE = """
body { max-width: 90rem; }
.answer { margin: .25rem 0; font-weight: 600; }
.controls { display: flex; flex-wrap: wrap; gap: .5rem 1.25rem; margin: 1rem 0 0; }
.controls p { flex-basis: 100%; margin: 0; }
.controls label { display: flex; align-items: center; gap: .5rem; }
select, input, button { font: inherit; color: inherit; background: var(--card); padding: .3rem .5rem;
  border: 1px solid var(--quiet); border-radius: 6px; max-width: 16rem; }
button:disabled { opacity: .6; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
main { outline-offset: 4px; }
article { margin: 1rem 0; padding: 1rem; background: var(--card); border: 1px solid var(--line);
  border-radius: 12px; }
article h2 { font-size: 1.05rem; margin: 0; }
.sides { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(16rem, 100%), 1fr)); gap: 1rem;
  margin: .75rem 0 0; }
.sides h3 { margin: 0 0 .25rem; }
.side.better h3 { color: var(--accent); }
.several { display: flex; flex-wrap: wrap; gap: .5rem; }
.several figure { padding: 0; border: 0; }
.several img { width: 256px; height: auto; min-height: 4rem; background: var(--track); }
.questions { margin: .75rem 0 0; }
.pager { display: flex; align-items: center; gap: 1rem; margin: 1rem 0; }
"""
