"""`python -m demo.serve [--port 8000]`: run the service and show how to ask it something."""

import argparse
import json
import shlex
import sys
from collections.abc import Sequence

from demo.pairs import METRICS
from demo.process import SERVICE, Failed, free_port, running, url, wait_until_ready
from demo.samples import FOLDER, listed

PORT = 8000


def main(argv: Sequence[str] | None = None, command: Sequence[str] = SERVICE) -> int:
    """Serve until Ctrl-C or SIGTERM, or as long as the service lives."""
    parser = argparse.ArgumentParser(prog="make serve", description=__doc__)
    parser.add_argument("--port", type=int, default=PORT, help=f"default {PORT}; 0 picks a free one")
    port = parser.parse_args(argv).port
    try:
        port = free_port(port)
        with running(port, command) as process:
            wait_until_ready(process, port)
            print(
                f"\nReady. Paste this into another shell; Ctrl-C here stops it.\n\n{curl(port)}\n", flush=True
            )
            return process.wait()
    except KeyboardInterrupt:
        return 0
    except Failed as exc:
        print(f"serve: {exc}", file=sys.stderr)
        return 2


def curl(port: int) -> str:
    """A shell line that scores a shipped picture against its right and its wrong prompt."""
    sample = listed()[0]
    items = [{"prompt": sample[which], "image": {"part": "picture"}} for which in ("right", "wrong")]
    request = json.dumps({"items": items, "metrics": list(METRICS)})
    parts = (f"request={request}", f'picture=@"{FOLDER / sample["file"]}"')
    form = " ".join(f"-F {shlex.quote(part)}" for part in parts)
    return f"curl -sS {url(port)}/score {form}"


if __name__ == "__main__":
    sys.exit(main())
