"""`make docs`: strict about links, and complete without any other host."""

import json
import re
from urllib.parse import unquote

import pytest

from tests.process.docs.site import build, collect
from tests.support.pages import PAGES, ROOT


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The built site's folder."""
    folder = tmp_path_factory.mktemp("docs")
    collect(folder)
    done = build(folder)
    assert not done.returncode, done.stdout
    return folder / "site"


@pytest.fixture(scope="module")
def html(site):
    """The text of each page of the site, by its path."""
    return {path: path.read_text("utf-8") for path in site.rglob("*.html")}


def test_every_page_is_in_the_site_and_in_its_search(site):
    """At its path in the repository. README.md of a folder is the folder's index.html."""
    entries = json.loads((site / "search.json").read_text("utf-8"))["items"]
    found = {entry["location"].partition("#")[0] for entry in entries}
    names = [re.sub(r"README\.md$", "index.md", str(path.relative_to(ROOT))) for path in PAGES]

    assert {name.removesuffix(".md") + ".html" for name in names} <= found


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("score folder pictures csv prompts", "guides/score-a-folder"),
        ("image dataset resume shards", "guides/million-pictures"),
        ("audit replay new model", "operations/decisions-log"),
        ("jupyter colab notebook array", "guides/notebook"),
        ("webdataset img2dataset parquet shards filter dataset million", "guides/million-pictures"),
        ("flux sd3.5 qwen-image reward grpo diffusers", "trainers/index"),
        ("kubernetes helm autoscaling replicas", "operations/kubernetes"),
        ("429 503 lane_full retry-after", "guides/troubleshooting"),
        ("threshold filter users fail closed", "guides/online-filter"),
        ("two generators better difference interval", "guides/compare-generators"),
        ("run geneval my checkpoint", "benchmarks"),
        ("write custom scorer package", "add-a-metric"),
        ("load weights huggingface hub", "add-a-model"),
        ("vqascore rtx 4090 vram", "guides/hardware"),
        ("alert fires latency oncall", "operations/runbooks"),
        ("bring custom scoring function", "add-a-metric"),
        ("moderation log approved image", "operations/decisions-log"),
        ("too many requests backoff", "guides/troubleshooting"),
        ("rescore past decisions new checkpoint", "operations/decisions-log"),
        ("curate training data threshold annotation", "guides/million-pictures"),
        ("grpo reward server installing url", "guides/rl-reward"),
        ("detect reward hacking python metrics", "guides/reward-hacking"),
        ("custom rubric vlm pairwise comparison", "guides/your-own-judge"),
    ],
)
def test_the_search_finds_a_page_by_the_words_of_people(site, words, name):
    """The section at the beginning of that page has all of them: a result has every word."""
    entries = json.loads((site / "search.json").read_text("utf-8"))["items"]
    first = next(entry for entry in entries if entry["location"] == f"docs/{name}.html")
    indexed = f"{first['title']} {first['text']}".lower()

    assert [] == [word for word in words.split() if word not in indexed]


def test_no_page_loads_anything_from_another_host(html):
    """No fonts, scripts, styles or pictures; and no diagrams, whose script the theme would load."""
    loads = re.compile(r"""<(?!a\b)[^>]*?(?:src|href)=["']?(?:https?:)?//|@import|class="mermaid""")

    assert {} == {path: found[0] for path, text in html.items() if (found := loads.search(text))}


def test_every_link_of_the_site_leads_to_a_file(html):
    """Including those to files that are no pages."""
    targets = {
        (path, target)
        for path, text in html.items()
        if path.name != "404.html"
        for target in re.findall(r'(?:href|src)="([^":#?]+)[^":]*"', text)
    }

    assert [] == [str(target) for target in targets if not (target[0].parent / unquote(target[1])).exists()]


def test_a_link_without_a_target_fails_the_build(tmp_path):
    """With the page's name in the message."""
    collect(tmp_path)
    with (tmp_path / "pages/docs/client.md").open("a", encoding="utf-8") as page:
        page.write("\nSee [nothing](api.md#no-such-heading).\n")
    done = build(tmp_path)

    assert done.returncode
    assert "docs/client.md" in done.stdout
