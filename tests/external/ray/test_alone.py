"""
A cluster that the service starts itself.

This file comes before the others, whose cluster has not been started yet: it takes CPU time when idle.
"""

import os
import subprocess
import sys

from tests.external.ray.services import Served, items
from tests.support.ray_cluster import FEW_PROCESSES, Profile, gateway, listening

ALONE = """
[runtime]
kind = "ray"

[cache]
questions = "sqlite:///{folder}/questions.sqlite3"

[models.vqa]
family = "fake"
num_cpus = 0.5
"""

# Calls of the ports that Ray Serve opens for each replica, as somebody makes them who has no token.
STRANGER = """
import sys, grpc
from ray.serve.generated import serve_pb2, serve_pb2_grpc
for port in sys.argv[1:]:
    stub = serve_pb2_grpc.ASGIServiceStub(grpc.insecure_channel(f"127.0.0.1:{port}"))
    try:
        stub.HandleRequest(serve_pb2.ASGIRequest(), timeout=20)
        print("OK")
    except grpc.RpcError as error:
        print(error.code().name)
"""


def test_a_cluster_of_its_own_is_closed_to_other_machines(tmp_path):
    """But for one port of each replica, which Serve opens everywhere: it asks for a token."""
    profile = Profile(tmp_path / "alone.toml", FEW_PROCESSES)
    profile.path.write_text(ALONE.format(folder=tmp_path))
    with gateway(profile, tmp_path / "log") as (process, port):
        score = Served(port).score(items(1)).json()["results"][0]["scores"]
        open_to_all = [each for each in listening(process.pid) if not each.address.is_loopback]
        without_token = {key: value for key, value in os.environ.items() if not key.startswith("RAY_")}
        stranger = subprocess.run(
            [sys.executable, "-c", STRANGER, *(str(each.port) for each in open_to_all)],
            env=without_token,
            capture_output=True,
            text=True,
            timeout=120,
        )

    assert "vqascore" in score
    assert all("ServeReplica" in each.command for each in open_to_all)
    assert ["UNAUTHENTICATED"] * len(open_to_all) == stranger.stdout.split()
