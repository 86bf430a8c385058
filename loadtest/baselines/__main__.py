"""
`python -m loadtest.baselines --server bare|one-by-one|timer --port P`: run one of the servers.

**bare** checks the body, decodes base64 and returns a constant: the minimum cost of such an endpoint.
**one-by-one** decodes and scores pair after pair in FastAPI's threads, with a lock for the device.
**timer** batches by size and time.
"""

import argparse
import time
from collections.abc import Callable

import uvicorn

from loadtest.baselines import unbatched
from loadtest.baselines.app import Scorer, app
from loadtest.baselines.timer import Timer


def main() -> None:
    """Serve until SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", choices=("bare", "one-by-one", "timer"), required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--fixed-ms", type=float, default=20)
    parser.add_argument("--per-call-ms", type=float, default=6)
    parser.add_argument("--max-items", type=int, default=32)
    arguments = parser.parse_args()

    def hold(calls: int) -> None:
        time.sleep((arguments.fixed_ms + arguments.per_call_ms * calls) / 1000)

    servers: dict[str, Callable[[], Scorer]] = {
        "bare": lambda: unbatched.bare,
        "one-by-one": lambda: unbatched.one_by_one(hold),
        "timer": lambda: Timer(hold, arguments.max_items).score,
    }
    score = servers[arguments.server]()
    uvicorn.run(app(score), host="127.0.0.1", port=arguments.port, access_log=False)


if __name__ == "__main__":
    main()
