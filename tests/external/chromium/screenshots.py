"""`python -m tests.external.chromium.screenshots`: docs/images, from the demo models' own scores."""

import io
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import PIL.Image
from playwright.sync_api import Browser

from demo.process import Failed, free_port, running, url, wait_until_ready
from demo.samples import FOLDER as SAMPLES
from tests.external.chromium.steps import enter, score, take_sample
from tests.process.client.cli.conftest import COMMAND
from tests.support import decision_logs
from tests.support.chromium import PHONE, chromium, opened
from tests.support.decision_logs import two_weeks
from tests.support.packages import files_of
from tests.support.pages import DOCS, fences

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
            with chromium() as browser:
                shoot(browser, f"{url(port)}/")
                shoot_report(browser, url(port), Path(folder))
                shoot_decisions(browser, Path(folder) / "decisions")
    except (Failed, AssertionError) as exc:
        print(f"screenshots: {exc}", file=sys.stderr)
        return 2
    return 0


def shoot(browser: Browser, address: str) -> None:
    """A wide window in both colours, and a phone."""
    with opened(browser) as page:
        for number in (1, SAMPLE):  # the first one of all takes longer
            enter(page, address)
            take_sample(page, number)
            score(page)
        page.mouse.move(1, 1)
        page.evaluate("scrollTo(0, 0)")
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            write(f"playground-{scheme}.png", page.screenshot())
    with opened(
        browser, **PHONE | {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2}
    ) as page:
        enter(page, address)
        take_sample(page, SAMPLE)
        score(page)
        page.locator("#out").evaluate("out => out.scrollIntoView({behavior: 'instant'})")
        write("playground-phone.png", page.screenshot())


def shoot_report(browser: Browser, address: str, folder: Path) -> None:
    """The middle of the page that the first example of docs/report.md draws."""
    shutil.copytree(SAMPLES, folder, dirs_exist_ok=True)
    for name, text in files_of("report.md").items():
        (folder / name).write_text(text, "utf-8")
    command = fences("report.md", "console")[0][1].splitlines()[0].removeprefix("$ scoregate ").split()
    subprocess.run([COMMAND, "--base-url", address, *command], cwd=folder, check=True)
    with opened(browser, viewport={"width": 1100, "height": 1440}) as page:
        page.goto((folder / "page.html").as_uri())
        page.locator("#ordering").evaluate("ordering => ordering.scrollIntoView({behavior: 'instant'})")
        write("report.png", page.screenshot())


def shoot_decisions(browser: Browser, folder: Path) -> None:
    """The top of the page that the example of docs/operations/decisions-log.md draws, of made-up rows."""
    folder.mkdir()
    names = [decision_logs.write(folder / f"decisions-{n}.sqlite3", *two_weeks(n)) for n in range(2)]
    for line in fences("operations/decisions-log.md", "console")[0][1].splitlines():
        words = line.removeprefix("$ scoregate ").split()
        command = [each for word in words for each in (names if "*" in word else [word])]
        subprocess.run([COMMAND, *command], cwd=folder, check=True)
        if "sample" in command:
            decision_logs.fill(folder / "to-label.csv")
    with opened(browser, viewport={"width": 1100, "height": 1100}) as page:
        page.goto((folder / "decisions.html").as_uri())
        write("decisions.png", page.screenshot())


def write(name: str, data: bytes) -> None:
    """A picture of a page, as small as a PNG can be."""
    path = FOLDER / name
    PIL.Image.open(io.BytesIO(data)).convert("RGB").save(path, optimize=True)
    size = path.stat().st_size
    assert size < LARGEST, f"{path} has {size} bytes"
    print(f"{path.relative_to(DOCS.parent)}: {size // 1000} kB")


if __name__ == "__main__":
    sys.exit(main())
