"""A real Chromium without a window, driven over the pipe of its DevTools protocol."""

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ANSWERS_WITHIN_S = 120  # two busy cores
LARGEST_READ = 2**20
OPTIONS = (
    "--headless=new",
    "--no-sandbox",  # CI is root
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--no-default-browser-check",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
KEYS = {"Enter": (13, "\r"), "Tab": (9, ""), " ": (32, " "), "ArrowRight": (39, ""), "Escape": (27, "")}

Json = dict[str, Any]


def program() -> str:
    """The path of Chromium."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    assert found, "the tests start a real Chromium: run `make chromium` first"
    return found


class Browser:
    """A page of a Chromium; *events* has all that it told, in its order."""

    def __init__(self, to: int, come: int) -> None:
        self._to, self._come, self._buffer, self._last = to, come, b"", 0
        self._session: str | None = None
        self.events: list[Json] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log", "DOM"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> Json:
        """What a command gives back.  Fails with what the browser says against it."""
        self._last += 1
        session = {"sessionId": self._session} if self._session else {}
        message = json.dumps({"id": self._last, "method": method, "params": params, **session})
        data = memoryview(message.encode() + b"\0")
        while data:
            data = data[os.write(self._to, data) :]
        while (answer := self._next()).get("id") != self._last:
            self.events.append(answer)
        assert "error" not in answer, (method, answer["error"])
        result: Json = answer["result"]
        return result

    def _next(self) -> Json:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._come], [], [], ANSWERS_WITHIN_S)
            read = os.read(self._come, LARGEST_READ) if ready else b""
            assert read, "Chromium ended, or does not answer"
            self._buffer += read
        line, _, self._buffer = self._buffer.partition(b"\0")
        told: Json = json.loads(line)
        return told

    def run(self, script: str) -> Any:
        """The value of a JavaScript expression on the page; a promise is awaited."""
        given = self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True, userGesture=True
        )
        assert "exceptionDetails" not in given, given["exceptionDetails"]
        return given["result"].get("value")

    def until(self, script: str) -> None:
        """Return as soon as an expression is true; fails with the text of the page."""
        deadline = time.monotonic() + ANSWERS_WITHIN_S
        while not self.run(f"Boolean({script})"):
            assert time.monotonic() < deadline, (script, self.run("document.body.innerText"))
            time.sleep(0.02)

    def open(self, address: str) -> None:
        """Load a page, and forget what the one before told."""
        self.call("Page.navigate", url="about:blank")
        self.until("location.href === 'about:blank'")
        self.events.clear()
        self.call("Page.navigate", url=address)
        self.until(f"location.href.startsWith({json.dumps(address)}) && document.readyState === 'complete'")

    def press(self, key: str, *, ctrl: bool = False, shift: bool = False) -> None:
        """One key of the keyboard."""
        code, text = KEYS[key]
        held = 2 * ctrl + 8 * shift
        named = {
            "key": key,
            "code": "Space" if key == " " else key,
            "windowsVirtualKeyCode": code,
            "modifiers": held,
        }
        typed = {"text": text} if text and not ctrl else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", **named, **typed)
        self.call("Input.dispatchKeyEvent", type="keyUp", **named)

    def type(self, text: str) -> None:
        """Text, where the focus is."""
        self.call("Input.insertText", text=text)

    def click(self, selector: str) -> None:
        """The mouse on the middle of an element."""
        place = self.run(
            f"(() => {{ const node = document.querySelector({json.dumps(selector)});"
            " node.scrollIntoView({block: 'center', behavior: 'instant'});"
            " const box = node.getBoundingClientRect();"
            " return {x: box.x + box.width / 2, y: box.y + box.height / 2}; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, **place, button="left", clickCount=1)

    def choose(self, selector: str, files: Sequence[Path]) -> None:
        """Files, as the dialog of a file input would give them."""
        root = self.call("DOM.getDocument")["root"]["nodeId"]
        node = self.call("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.call("DOM.setFileInputFiles", nodeId=node, files=[str(file) for file in files])

    def look(
        self, width: int, height: int, *, scheme: str = "light", scale: float = 1, phone: bool = False
    ) -> None:
        """The size of the page, and whether it is dark; nothing moves."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=scale, mobile=phone,
        )  # fmt: skip
        features = {"prefers-color-scheme": scheme, "prefers-reduced-motion": "reduce"}
        self.call(
            "Emulation.setEmulatedMedia",
            features=[{"name": name, "value": value} for name, value in features.items()],
        )

    def picture(self) -> bytes:
        """What can be seen, as a PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])

    def told(self, *methods: str) -> list[Json]:
        """What events of these kinds say."""
        self.run("1")  # what was told before has arrived
        return [event["params"] for event in self.events if event.get("method") in methods]

    def addresses(self) -> list[str]:
        """Every address that the page asked for."""
        asked = self.told("Network.requestWillBeSent")
        return [each["request"]["url"] for each in asked]

    def complaints(self) -> list[str]:
        """Errors and warnings of the page and the browser, violations of its policy among them."""
        logged = [each["entry"] for each in self.told("Log.entryAdded")]
        said = [
            f"{each['text']} {each.get('url', '')}"
            for each in logged
            if each["level"] in ("error", "warning")
        ]
        thrown = [str(each["exceptionDetails"]) for each in self.told("Runtime.exceptionThrown")]
        written = self.told("Runtime.consoleAPICalled")
        return said + thrown + [str(each["args"]) for each in written if each["type"] in ("error", "warning")]


@contextmanager
def chromium(profile: Path) -> Iterator[Browser]:
    """A page of a new Chromium with its files in *profile*; ended however the block ends."""
    (for_it, to), (come, from_it) = os.pipe(), os.pipe()
    # It reads from 3 and writes to 4: a shell moves our ends there from where they are in nobody's way.
    ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (for_it, from_it)]
    moved = f'exec "$0" "$@" 3<&{ends[0]} 4>&{ends[1]} {ends[0]}<&- {ends[1]}>&-'
    command = ["bash", "-c", moved, program(), *OPTIONS, f"--user-data-dir={profile}"]
    with (profile / "chromium.log").open("wb") as log:
        process = subprocess.Popen(command, pass_fds=ends, stdout=log, stderr=log)
    for end in (for_it, from_it, *ends):
        os.close(end)
    try:
        yield Browser(to, come)
    finally:
        os.close(to)  # it ends by itself where nobody drives it
        os.close(come)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
