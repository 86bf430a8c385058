"""Services that differ in their runtime alone."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.runtimes.services import PROFILE, Served
from tests.support.ray_cluster import Cluster, Profile, gateway, ray_cluster


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A Ray cluster of one node."""
    with ray_cluster() as started:
        yield started


@pytest.fixture(scope="session")
def profiles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("profiles")


@pytest.fixture(scope="session")
def local_profile(profiles: Path) -> Profile:
    """The models in the service's own process."""
    path = profiles / "local.toml"
    path.write_text(PROFILE.format(runtime="", placed="", folder=profiles / "local"))
    return Profile(path)


@pytest.fixture(scope="session")
def ray_profile(profiles: Path, cluster: Cluster) -> Profile:
    """The same models, deployed on the cluster."""
    path = profiles / "ray.toml"
    runtime = f'[runtime]\nkind = "ray"\naddress = "{cluster.address}"'
    path.write_text(PROFILE.format(runtime=runtime, placed="num_cpus = 0.5", folder=profiles / "ray"))
    cluster.deploy(path)
    return cluster.profile(path)


@pytest.fixture(scope="session")
def local(local_profile: Profile) -> Iterator[Served]:
    with gateway(local_profile, local_profile.path.with_suffix(".log")) as (_, port):
        yield Served(port)


@pytest.fixture(scope="session")
def ray(ray_profile: Profile) -> Iterator[Served]:
    with gateway(ray_profile, ray_profile.path.with_suffix(".log")) as (_, port):
        yield Served(port)


@pytest.fixture(params=["local", "ray"])
def profile(request: pytest.FixtureRequest) -> Profile:
    """Each runtime's."""
    path: Profile = request.getfixturevalue(f"{request.param}_profile")
    return path


@pytest.fixture(params=["local", "ray"])
def served(request: pytest.FixtureRequest) -> Served:
    """A service on each runtime, for tests that leave it as it was."""
    service: Served = request.getfixturevalue(request.param)
    return service
