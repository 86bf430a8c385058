"""`make docs`: the pages as a site in build/site, with search and without any other host."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.support.pages import DOCS, LINK, PAGES, ROOT

SETTINGS = DOCS / "site.toml"
INDEX = DOCS / "README.md"
# Words that people type, by a word of ours.
TYPED = {
    "picture": "image photo",
    "data set": "dataset",
    "generator": "model checkpoint",
    "checkpoint": "weights model",
    "weights": "checkpoint model",
    "people": "human user",
    "go on": "resume",
    "continues": "resume",
    "plug-in": "plugin custom",
    "your own": "custom my bring",
    "own metric": "scorer scoring function",
    "24 gb": "vram 3090 4090 rtx",
    "retry-after": "backoff retry retries",
    "decide again": "rescore past replay",
    "figure": "number",
    "label": "annotation annotate labeled labelled",
    "threshold": "cutoff",
    "filter": "clean curate discard drop filtering remove",
    "bad": "low quality poor",
    "training set": "finetuning finetune",
    "install": "installing",
    "reward hacking": "detect collapse gaming function overoptimization warning",
    "rises": "goes up",
    "replay": "backtest history",
    "watch": "monitor",
    "product": "multiply",
    "webdataset": "laion",
    "weighted sum": "plus combine",
    "rubric": "criteria",
    "address": "endpoint url http",
    "score": "scoring",
    "new model": "updated upgraded",
    "weight": "combine weighted",
    "judge": "llm vlm",
    "compare": "comparison pairwise",
    "alert": "pager alarm oncall",
    "audit": "trail moderation",
    "accepted or rejected": "approved",
    "hugging": "huggingface",
    "add a": "custom",
}


def main() -> int:
    """Build the site and print how to open it."""
    collect(ROOT / "build")
    done = build(ROOT / "build")
    sys.stderr.write(done.stdout)
    if not done.returncode:
        print("The site is in build/site. Serve it: python3 -m http.server --directory build/site 8080")
    return done.returncode


def collect(folder: Path) -> None:
    """Copy the pages to *folder*/pages, and write the generator's settings beside them."""
    for name in ("pages", "site"):
        shutil.rmtree(folder / name, ignore_errors=True)
    for source in files():
        copy = folder / "pages" / source.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, copy)
    settings = SETTINGS.read_text("utf-8").replace("[project]\n", f"[project]\nnav = [{navigation()}]\n", 1)
    (folder / "zensical.toml").write_text(settings, "utf-8")


def build(folder: Path) -> subprocess.CompletedProcess[str]:
    """Build *folder*/site with Zensical, which fails if a link has no target."""
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
    env = {**os.environ, "NO_COLOR": "1"}
    done = subprocess.run(
        command, cwd=folder, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    if not done.returncode:
        widen(folder / "site" / "search.json")
    return done


def widen(index: Path) -> None:
    """Let a search find the beginning of a written page by words of all its sections, and by those typed.

    A result is a section that has every word that was typed.
    """
    search = json.loads(index.read_text("utf-8"))
    pages: dict[str, list[dict[str, str]]] = {}
    for section in search["items"]:
        pages.setdefault(section["location"].partition("#")[0], []).append(section)
    for path, (first, *others) in pages.items():
        if path.startswith("docs/") and not path.startswith(("docs/adr/", "docs/reference/")):
            text = " ".join([first["text"], *(f"{other['title']} {other['text']}" for other in others)])
            typed = (words for ours, words in TYPED.items() if ours in f"{first['title']} {text}".lower())
            first["text"] = f"{text} <p>{' '.join(typed)}</p>"
    index.write_text(json.dumps(search), "utf-8")


def files() -> set[Path]:
    """Return the pages and the files that they link to. A path in the site is that in the repository."""
    links = ((page, target) for page in PAGES for target in LINK.findall(page.read_text("utf-8")))
    linked = {(page.parent / target.partition("#")[0]).resolve() for page, target in links}
    return {*PAGES, *(path for path in linked if path.is_file())}


def navigation() -> str:
    """Return the pages of the index as TOML, by task; a page stands in the first section that has it."""
    index, shown, nav = INDEX.read_text("utf-8"), {INDEX}, [json.dumps(str(INDEX.relative_to(ROOT)))]
    for task, text in re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", index, re.MULTILINE | re.DOTALL):
        linked = [(DOCS / target.partition("#")[0]).resolve() for target in LINK.findall(text)]
        pages = [path for path in dict.fromkeys(linked) if path.is_file() and path not in shown]
        shown.update(pages)
        nav.append(f"{{{json.dumps(task)} = {json.dumps([str(path.relative_to(ROOT)) for path in pages])}}}")
    return ", ".join(['"README.md"', *nav])


if __name__ == "__main__":
    sys.exit(main())
