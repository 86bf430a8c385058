"""Services that differ in their runtime alone."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from demo.process import free_port
from tests.external.ray.services import POLICIES, PROFILE, REWARDS, Served
from tests.support.background import awaited, background
from tests.support.ray_cluster import Cluster, Profile, gateway


@pytest.fixture(scope="package")
def cluster() -> Iterator[Cluster]:
    """A Ray cluster of one node, which runs in the background."""
    with background("ray") as described:
        yield Cluster(described["directory"], described["address"])


@pytest.fixture(scope="package")
def profiles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("profiles")


@pytest.fixture(scope="package")
def local_profile(profiles: Path) -> Profile:
    """The models in the service's own process."""
    path = profiles / "local.toml"
    path.write_text((PROFILE + REWARDS).format(runtime="", placed="", folder=profiles / "local"))
    return Profile(path)


@pytest.fixture(scope="package")
def four_profile(profiles: Path) -> Profile:
    """The models in the service's own process, each with a copy on four devices, a quarter as fast each."""
    path, names = profiles / "four.toml", [f"cpu:{number}" for number in range(4)]
    placed = f"devices = {names}"
    text = (PROFILE + REWARDS).format(runtime="", placed=placed, folder=profiles / "four")
    # All four compute as fast as one does: on a busy machine the gateway fills no queue of faster ones.
    path.write_text(
        text.replace("fixed_ms = 20", "fixed_ms = 80").replace("per_call_ms = 10", "per_call_ms = 40")
    )
    return Profile(path)


@pytest.fixture(scope="package")
def ray_profile(cluster: Cluster) -> Profile:
    """The same models, deployed on the cluster."""
    return cluster.profile(Path(awaited("ray")["profile"]))


@contextmanager
def with_dialects(profile: Profile) -> Iterator[Served]:
    """A service with that profile, two policies, a dialect and the port for pickles."""
    pickle_port = free_port(0)
    dialects = {
        "SCOREGATE_DIALECTS__ENABLED": '["rerank"]',
        "SCOREGATE_DIALECTS__PICKLE_PORT": str(pickle_port),
    }
    more = Profile(profile.path, {**profile.environment, **POLICIES, **dialects})
    with gateway(more, profile.path.with_suffix(".log")) as (_, port):
        yield Served(port, pickle_port)


@pytest.fixture(scope="package")
def local(local_profile: Profile) -> Iterator[Served]:
    with with_dialects(local_profile) as service:
        yield service


@pytest.fixture(scope="package")
def four(four_profile: Profile) -> Iterator[Served]:
    with with_dialects(four_profile) as service:
        yield service


@pytest.fixture(scope="package")
def ray(ray_profile: Profile) -> Iterator[Served]:
    with with_dialects(ray_profile) as service:
        yield service


@pytest.fixture(params=["local", "four", "ray"])
def profile(request: pytest.FixtureRequest) -> Profile:
    """Each runtime's."""
    path: Profile = request.getfixturevalue(f"{request.param}_profile")
    return path


@pytest.fixture(params=["local", "four", "ray"])
def served(request: pytest.FixtureRequest) -> Served:
    """A service on each runtime, for tests that leave it as it was."""
    service: Served = request.getfixturevalue(request.param)
    return service
