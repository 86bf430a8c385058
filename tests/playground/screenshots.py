"""`python -m tests.playground.screenshots`: the pictures of docs/images, from the demo models' own scores."""

import io
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import PIL.Image

from demo.process import Failed, free_port, running, url, wait_until_ready
from demo.samples import FOLDER as SAMPLES
from tests.client.cli.conftest import COMMAND
from tests.docs.packages import files_of
from tests.docs.pages import DOCS, fences
from tests.playground.steps import RESULT, enter, take_sample
from tests.support.browser import Browser, chromium

FOLDER = DOCS / "images"
LARGEST = 200_000  # bytes of a picture
SAMPLE = 2  # whose prompt is right in one half


def main() -> int:
    """Start the demo service and a Chromium, and write the pictures."""
    FOLDER.mkdir(exist_ok=True)
    try:
        port = free_port(0)
        with tempfile.TemporaryDirectory() as folder, running(port, log=Path(folder) / "log") as process:
            wait_until_ready(process, port)
            with chromium(Path(folder)) as browser:
                shoot(browser, f"{url(port)}/")
                shoot_report(browser, url(port), Path(folder))
    except (Failed, AssertionError) as exc:
        print(f"screenshots: {exc}", file=sys.stderr)
        return 2
    return 0


def shoot(browser: Browser, address: str) -> None:
    """A wide window in both colours, and a phone."""
    browser.look(1280, 900)
    for number in (1, SAMPLE):  # the first one of all takes longer
        enter(browser, address)
        take_sample(browser, number)
        browser.click("#go")
        browser.until(RESULT)
    browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=1, y=1)
    for scheme in ("light", "dark"):
        browser.look(1280, 900, scheme=scheme)
        browser.run("scrollTo(0, 0)")
        write(f"playground-{scheme}.png", browser.picture())
    browser.look(390, 844, scale=2, phone=True)
    browser.run("document.querySelector('#out').scrollIntoView({behavior: 'instant'})")
    write("playground-phone.png", browser.picture())


def shoot_report(browser: Browser, address: str, folder: Path) -> None:
    """The middle of the page that the first example of docs/report.md draws."""
    shutil.copytree(SAMPLES, folder, dirs_exist_ok=True)
    for name, text in files_of("report.md").items():
        (folder / name).write_text(text, "utf-8")
    command = fences("report.md", "console")[0][1].splitlines()[0].removeprefix("$ scoregate ").split()
    subprocess.run([COMMAND, "--base-url", address, *command], cwd=folder, check=True)
    browser.look(1100, 1440)
    browser.open((folder / "page.html").as_uri())
    browser.run("document.querySelector('#ordering').scrollIntoView({behavior: 'instant'})")
    write("report.png", browser.picture())


def write(name: str, data: bytes) -> None:
    """A picture of a page, as small as a PNG can be."""
    path = FOLDER / name
    PIL.Image.open(io.BytesIO(data)).convert("RGB").save(path, optimize=True)
    size = path.stat().st_size
    assert size < LARGEST, f"{path} has {size} bytes"
    print(f"{path.relative_to(DOCS.parent)}: {size // 1000} kB")


if __name__ == "__main__":
    sys.exit(main())
