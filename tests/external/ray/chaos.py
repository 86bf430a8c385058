"""
`make ray-chaos`: a Ray cluster of two nodes under load loses a replica, a node, and its old weights.

Every answer is compared with the one that the models gave before.  The status is 1 where one is wrong or
missing.  A caller that is refused comes back after `Retry-After`, as trainers do.
"""

import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import httpx

from tests.external.ray.services import PROFILE, Served, items
from tests.support.ray_cluster import (
    STARTED_WITHIN_S,
    Cluster,
    descendants,
    gateway,
    kill,
    ray_cluster,
    replicas,
)
from tests.support.service import series, until

CALLERS, IMAGES = 8, 32
STEADY_S = 5.0  # of load before and after each fault


class Load:
    """Callers who ask for the same images again and again, and compare."""

    def __init__(self, served: Served) -> None:
        self.served = served
        self._expected = [self._scores(served.score(items(IMAGES, IMAGES * n))) for n in range(CALLERS)]
        self._stopping = threading.Event()
        self._threads = [threading.Thread(target=self._call, args=(n,)) for n in range(CALLERS)]
        self.right = self.refused = 0
        self.faults: list[str] = []
        self.ends = [time.monotonic()]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Let every caller get the last answer."""
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def longest_gap_s(self, since: float) -> float:
        """The longest time without an answer from then on."""
        ends = [since, *(end for end in self.ends if end >= since), time.monotonic()]
        return max(later - earlier for earlier, later in pairwise(ends))

    def _call(self, caller: int) -> None:
        while not self._stopping.is_set():
            try:
                answer = self.served.score(items(IMAGES, IMAGES * caller), priority="bulk")
            except httpx.HTTPError as exc:
                self.faults.append(repr(exc))
                continue
            if answer.status_code in (429, 503):
                self.refused += 1
                time.sleep(min(float(answer.headers["retry-after"]), 2))
            elif answer.status_code != 200 or self._scores(answer) != self._expected[caller]:
                self.faults.append(f"{answer.status_code} {answer.text[:200]}")
            else:
                self.right += 1
                self.ends.append(time.monotonic())

    def _scores(self, answer: httpx.Response) -> list[float | None]:
        return [result["scores"].get("vqascore") for result in answer.json()["results"]]


def main() -> int:
    """Do all of it; the exit status."""
    with tempfile.TemporaryDirectory() as folder, ray_cluster(nodes=2) as cluster:
        profile = Path(folder, "ray.toml")
        runtime = f'[runtime]\nkind = "ray"\naddress = "{cluster.address}"'
        # Two nodes of four cores each: one can hold all of it.
        profile.write_text(
            PROFILE.format(runtime=runtime, placed="num_cpus = 0.5\nreplicas = 2", folder=folder)
        )
        cluster.deploy(profile)
        with gateway(cluster.profile(profile), Path(folder, "log")) as (_, port):
            until(lambda: asked(port) == 2, STARTED_WITHIN_S)
            load = Load(Served(port))

            def one_left() -> bool:
                return asked(port) < 2

            def updated() -> bool:
                return load.served.model().startswith("newer")

            try:
                node = cluster.nodes[1]
                assert set(replicas("vqa")) & set(descendants(node.pid)), "none of them is on that node"
                fault("kill -9 of a node", load, port, lambda: cluster.kill_node(node), one_left)
                fault("kill -9 of a replica", load, port, lambda: kill(replicas("vqa")[0]), one_left)
                fault("an update", load, port, lambda: update(cluster, profile), updated)
            finally:
                load.stop()
    print(f"{load.right} requests of {IMAGES} images right, {load.refused} refused and sent again")
    for line in load.faults[:10]:
        print(f"WRONG OR MISSING: {line}")
    return 1 if load.faults else 0


def fault(name: str, load: Load, port: int, happen: Callable[[], None], seen: Callable[[], bool]) -> None:
    """Let it happen, wait until it is *seen* and two replicas are asked again, and print the time."""
    time.sleep(STEADY_S)
    began = time.monotonic()
    with ThreadPoolExecutor(1) as pool:
        happening = pool.submit(happen)
        until(seen, 300)
        until(lambda: asked(port) == 2, 300)
        recovered = time.monotonic()
        happening.result()
    time.sleep(STEADY_S)
    gap_s = load.longest_gap_s(began)
    print(
        f"{name}: two replicas again after {recovered - began:.1f} s, "
        f"longest time without an answer {gap_s:.1f} s"
    )


def asked(port: int) -> float:
    """How many replicas of the VQA model the gateway asks."""
    return series(port, 'scoregate_replicas{model="vqa"}')


def update(cluster: Cluster, profile: Path) -> None:
    """Other weights, as far as fakes have any: another name."""
    profile.write_text(profile.read_text().replace("[models.vqa]", '[models.vqa]\nid = "newer"'))
    cluster.deploy(profile)


if __name__ == "__main__":
    sys.exit(main())
