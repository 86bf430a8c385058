"""Services that differ in their runtime alone."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.external.ray.services import PROFILE, Served
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
    path.write_text(PROFILE.format(runtime="", placed="", folder=profiles / "local"))
    return Profile(path)


@pytest.fixture(scope="package")
def four_profile(profiles: Path) -> Profile:
    """The models in the service's own process, each with a copy on four devices."""
    path, names = profiles / "four.toml", [f"cpu:{number}" for number in range(4)]
    placed = f"devices = {names}"
    path.write_text(PROFILE.format(runtime="", placed=placed, folder=profiles / "four"))
    return Profile(path)


@pytest.fixture(scope="package")
def ray_profile(cluster: Cluster) -> Profile:
    """The same models, deployed on the cluster."""
    return cluster.profile(Path(awaited("ray")["profile"]))


@pytest.fixture(scope="package")
def local(local_profile: Profile) -> Iterator[Served]:
    with gateway(local_profile, local_profile.path.with_suffix(".log")) as (_, port):
        yield Served(port)


@pytest.fixture(scope="package")
def four(four_profile: Profile) -> Iterator[Served]:
    with gateway(four_profile, four_profile.path.with_suffix(".log")) as (_, port):
        yield Served(port)


@pytest.fixture(scope="package")
def ray(ray_profile: Profile) -> Iterator[Served]:
    with gateway(ray_profile, ray_profile.path.with_suffix(".log")) as (_, port):
        yield Served(port)


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
