"""
`python -m tests.support.servers FOLDER NAME...`: start slow servers one after another, end them with stdin.

Each is described by FOLDER/NAME.json from the moment when it answers, and ended when FOLDER/NAME.over is
there.  One that takes CPU time when idle starts when FOLDER/NAME.wanted is there.  FOLDER/failed says why no
more start.
"""

import json
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from demo.process import free_port
from models.checkpoints.locate import DEMO
from tests.external.ray.services import PROFILE, REWARDS
from tests.support.ray_cluster import ray_cluster
from tests.support.tiny_lfm2_vl import make_lfm2_vl
from tests.support.tiny_llava import add_head, make_llava
from tests.support.tiny_qwen3_vl import make_qwen3_vl, reranker_options
from tests.support.vllm_server import vllm, vllm_template

SOCKET = "vllm.sock"  # of the process that vLLMs are forks of
LOOK_S = 1  # between looks for servers that are wanted or over
BUSY_WHEN_IDLE = {"ray"}  # it takes a tenth of a core

Start = Callable[[ExitStack, Path], dict[str, Any]]


def serve(stack: ExitStack, checkpoint: Path, log: Path, *more: str) -> dict[str, Any]:
    """Start a vLLM; return its description once it is ready."""
    server = stack.enter_context(vllm(log.with_name(SOCKET), checkpoint, free_port(0), log, *more))
    server.wait()
    return {"checkpoint": str(checkpoint), "port": server.port, "log": str(log)}


def template(stack: ExitStack, folder: Path) -> dict[str, Any]:
    """Start what all vLLMs are forks of."""
    return {"socket": str(stack.enter_context(vllm_template(folder / SOCKET)))}


def llm(stack: ExitStack, folder: Path) -> dict[str, Any]:
    """Start the shipped question LLM."""
    return serve(stack, DEMO / "question_llm", folder / "llm.log")


def vlm(stack: ExitStack, folder: Path) -> dict[str, Any]:
    """Start a tiny random LLaVA."""
    make_llava(folder / "vlm")
    return serve(stack, folder / "vlm", folder / "vlm.log")


def decisions(stack: ExitStack, folder: Path) -> dict[str, Any]:
    """Start a tiny random LFM2-VL, which vLLM serves as a decision endpoint too."""
    make_lfm2_vl(folder / "decisions")
    return serve(stack, folder / "decisions", folder / "decisions.log")


def reward(stack: ExitStack, folder: Path) -> dict[str, Any]:
    """Start a tiny random LLaVA with a head of two outputs."""
    make_llava(folder / "reward")
    add_head(folder / "reward", 2)
    options = ("--runner", "pooling", "--convert", "classify")
    return serve(stack, folder / "reward", folder / "reward.log", *options)


def qwen_vlm(stack: ExitStack, folder: Path) -> dict[str, Any]:
    """Start a tiny random Qwen3-VL."""
    make_qwen3_vl(folder / "qwen_vlm")
    return serve(stack, folder / "qwen_vlm", folder / "qwen_vlm.log")


def embedder(stack: ExitStack, folder: Path) -> dict[str, Any]:
    """Start a tiny random Qwen3-VL as an embedder."""
    make_qwen3_vl(folder / "embedder")
    return serve(stack, folder / "embedder", folder / "embedder.log", "--runner", "pooling")


def reranker(stack: ExitStack, folder: Path) -> dict[str, Any]:
    """Start a tiny random Qwen3-VL as a reranker."""
    make_qwen3_vl(folder / "reranker")
    options = reranker_options(folder / "pair.jinja")
    return serve(stack, folder / "reranker", folder / "reranker.log", *options)


def ray(stack: ExitStack, folder: Path) -> dict[str, Any]:
    """Start a Ray cluster of one node, and deploy timed fakes on it."""
    cluster = stack.enter_context(ray_cluster())
    profile = folder / "ray.toml"
    runtime = f'[runtime]\nkind = "ray"\naddress = "{cluster.address}"'
    text = PROFILE.format(runtime=runtime, placed="num_cpus = 0.5", folder=folder / "ray")
    profile.write_text(text + REWARDS.format(placed="num_cpus = 0.1"))  # two are left for Ray Data
    cluster.deploy(profile)
    return {"directory": cluster.directory, "address": cluster.address, "profile": str(profile)}


STARTS: dict[str, Start] = {
    "ray": ray,
    "template": template,
    "llm": llm,
    "reward": reward,
    "vlm": vlm,
    "decisions": decisions,
    "qwen_vlm": qwen_vlm,
    "embedder": embedder,
    "reranker": reranker,
}


def end_with_stdin() -> None:
    """Raise SIGTERM when whoever holds the other end closes it or dies."""
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGTERM)


def start(name: str, stack: ExitStack, folder: Path) -> None:
    """Start a server, and describe it once it answers."""
    try:
        described = STARTS[name](stack, folder)
        unfinished = folder / f"{name}.part"
        unfinished.write_text(json.dumps(described))
        unfinished.rename(folder / f"{name}.json")
    except Exception:
        (folder / "failed").write_text(traceback.format_exc())
        raise


def main() -> None:
    """Start what is named, wait for the end of stdin."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    threading.Thread(target=end_with_stdin, daemon=True).start()
    folder, names = Path(sys.argv[1]), sys.argv[2:]

    def may_start(name: str) -> bool:
        return name not in BUSY_WHEN_IDLE or (folder / f"{name}.wanted").exists()

    with ExitStack() as stack:
        running = {name: stack.enter_context(ExitStack()) for name in names}
        waiting = [*names]
        while True:
            for name in names:
                if (folder / f"{name}.over").exists():
                    running[name].close()
            if ready := next(filter(may_start, waiting), ""):
                waiting.remove(ready)
                start(ready, running[ready], folder)
            else:
                time.sleep(LOOK_S)


if __name__ == "__main__":
    main()
