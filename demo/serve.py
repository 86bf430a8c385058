"""`python -m demo.serve [--config PROFILE] [--port 8000]`: run the service, and show an example request."""

import argparse
import json
import shlex
import sys
from collections.abc import Callable, Sequence
from math import inf

import httpx

from demo.process import SERVICE, Failed, free_port, running, url, wait_until_ready
from demo.samples import FOLDER, listed
from demo.scoring import PROMPT_METRICS

PORT = 8000


def main(
    argv: Sequence[str] | None = None,
    command: Sequence[str] = SERVICE,
    wait: Callable[..., None] = wait_until_ready,
    say: Callable[..., None] = print,
) -> int:
    """Serve until Ctrl-C or SIGTERM, or until the service ends."""
    parser = argparse.ArgumentParser(prog="make serve", description=__doc__)
    parser.add_argument("--config", help="TOML profile; the demo profile by default")
    parser.add_argument("--port", type=int, default=PORT, help=f"default {PORT}; 0 picks a free one")
    arguments = parser.parse_args(argv)
    if arguments.config:
        command = (*command, "--config", arguments.config)
    try:
        port = free_port(arguments.port)
        with running(port, command) as process:
            wait(process, port, limit_s=inf)
            line = curl(port, served(port))
            ways = f"Open {url(port)}/ in a browser, or paste this into another shell; Ctrl-C here stops it."
            say(f"\nReady. {ways}\n\n{line}\n", flush=True)
            return process.wait()
    except KeyboardInterrupt:
        return 0
    except Failed as exc:
        print(f"serve: {exc}", file=sys.stderr)
        return 2


def served(port: int) -> list[str]:
    """Return the demo's metrics that the service on *port* has ready; all if it requires a key."""
    served = httpx.get(f"{url(port)}/models", trust_env=False).json().get("metrics", {})
    whole = {name for name, metric in served.items() if metric["ready"] and "only" not in metric}
    return [metric for metric in PROMPT_METRICS if metric in whole] or list(PROMPT_METRICS)


def curl(port: int, metrics: Sequence[str]) -> str:
    """Return a shell command that scores a sample picture with its right and its wrong prompt."""
    sample = listed()[0]
    items = [{"prompt": sample[which], "image": {"part": "picture"}} for which in ("right", "wrong")]
    request = json.dumps({"items": items, "metrics": metrics})
    parts = (f"request={request}", f'picture=@"{FOLDER / sample["file"]}"')
    form = " ".join(f"-F {shlex.quote(part)}" for part in parts)
    return f"curl -sS {url(port)}/score {form}"


if __name__ == "__main__":
    sys.exit(main())
