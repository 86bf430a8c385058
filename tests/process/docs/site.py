"""`make docs`: the pages as a site in build/site, with search and without any other host."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.support.pages import DOCS, LINK, PAGES, ROOT, rows

SETTINGS = DOCS / "site.toml"
README = ROOT / "README.md"


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
    return subprocess.run(
        command, cwd=folder, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


def files() -> set[Path]:
    """Return the pages and the files that they link to. A path in the site is that in the repository."""
    links = ((page, target) for page in PAGES for target in LINK.findall(page.read_text("utf-8")))
    linked = {(page.parent / target.partition("#")[0]).resolve() for page, target in links}
    return {*PAGES, *(path for path in linked if path.is_file())}


def navigation() -> str:
    """Return the pages of README's table *Read on* as TOML, with a section for each row."""
    table = README.read_text("utf-8").split("\n## Read on\n", 1)[1].split("\n## ", 1)[0]
    sections = [(cells[0], re.findall(r"\(([\w/.-]+\.md)\)", cells[1])) for cells in rows(table) if cells[0]]
    nav = [f"{{{json.dumps(name, ensure_ascii=False)} = {json.dumps(pages)}}}" for name, pages in sections]
    return ", ".join(['"README.md"', *nav])


if __name__ == "__main__":
    sys.exit(main())
