"""Attacks by bodies in the formats of trainers and rerankers: b, c, d, f and m."""

import socket
import struct
import time
from contextlib import ExitStack

import orjson

from demo.process import HOST
from loadtest.attacks.bodies import counted
from loadtest.attacks.target import Target, base64_of, jpeg, target
from loadtest.report import Report
from loadtest.servers import cpu_s

LARGE = 60 * 2**20
ENTRIES = 590_000


def pickles(report: Report) -> None:
    """Send pickles with a name of 60 MB, and a float with as many digits."""
    name = b"ab." * (LARGE // 3)
    bodies = {
        "stack_global": b"\x80\x04X" + struct.pack("<I", len(name)) + name + b"X\x01\0\0\0x\x93.",
        "global": b"\x80\x02c" + name + b"\nx\n.",
        "float": b"F" + b"1" * LARGE + b"\n.",
    }
    with target({}) as server:
        for kind, body in bodies.items():
            for callers in (1, 6):
                with server.measured() as impact:
                    asks = [lambda body=body: server.send("POST", "/", body, server.pickles)] * callers
                    statuses = server.at_once(asks, wait_s=60)
                suffix = "" if callers == 1 else f"_x{callers}"
                report.add(f"b_{kind}{suffix}_livez_ms", impact.worst_ms, "ms", counted(statuses))
                report.add(
                    f"b_{kind}{suffix}_grown_mb",
                    impact.grown_mb - callers * LARGE / 2**20,
                    "MB",
                    "beyond the bodies",
                )


def entries(report: Report) -> None:
    """Send more entries than a request may have."""
    ask = {"history": [{}], "required_rewards": [f"{number:x}" for number in range(64)]}
    bodies = {
        "c_score": ("/v1/score", {"text_1": "a", "text_2": [""] * ENTRIES}, 4),
        "c_rerank": ("/v1/rerank", {"query": "a", "documents": [""] * ENTRIES}, 4),
        "c_compute": ("/compute", {"prompt": ["a"] * 290_000, "image": [""] * 290_000}, 1),
        "d_unirl": ("/unirl/score", {"requests": [ask] * 8600}, 1),
    }
    with target({}) as server:
        for name, (path, body, callers) in bodies.items():
            data, sizes = orjson.dumps(body), list[int]()

            def post(path: str = path, data: bytes = data, sizes: list[int] = sizes) -> tuple[int, bytes]:
                status, answer = server.post(path, data)
                sizes.append(len(answer))
                return status, answer

            with server.measured() as impact:
                statuses = server.at_once([post] * callers, wait_s=60)
            report.add(f"{name}_livez_ms", impact.worst_ms, "ms", counted(statuses))
            report.add(
                f"{name}_grown_mb", impact.grown_mb, "MB", f"{max(sizes, default=0)} bytes in the answer"
            )


def waiters(report: Report) -> None:
    """Open 1,500 connections that wait at `/compute` for a full bulk lane."""
    image = base64_of(jpeg())
    with (
        target({"SCOREGATE_QUEUE__MAX_COST": "20000"}, model_ms=500) as server,
        ExitStack() as open_ones,
    ):
        calm = server.score_s(image)
        for number in range(200):
            if fill(server, number, image, open_ones):
                break
        with server.measured() as impact:
            body = orjson.dumps({"prompt": [f"{n}" for n in range(128)], "image": [image] * 128})
            for _ in range(1500):
                open_ones.enter_context(sent(server.dialects, "/compute", body, 600_000))
            wait_until_read(server.pid)
        with server.measured() as resting:
            time.sleep(10)
            neighbour = server.score_s(image)
    report.add("f_waiting_cpu", resting.cpu_s / resting.wall_s, "cores")
    report.add("f_neighbour_over_calm", neighbour / calm, "", f"{1000 * neighbour:.1f} ms")
    report.add("f_livez_ms", impact.worst_ms, "ms")


def wait_until_read(pid: int) -> None:
    """Wait until the server takes less than 0.2 s of CPU a second, as the requests are read; 60 s at most."""
    for _ in range(60):
        before = cpu_s(pid)
        time.sleep(1)
        if cpu_s(pid) - before < 0.2:
            return


def echoes(report: Report) -> None:
    """Send values that no JSON encoder writes, in fields that are echoed."""
    image = base64_of(jpeg()).encode()
    unirl = (
        b'{"requests":[{"history":[{"text":"a","image_b64":"%s"}],'
        b'"required_rewards":["vqascore"],"request_id":%s}]}'
    )
    rerank = b'{"query":"a","return_documents":true,"documents":[{"image":"%s","t":%s}]}'
    with target({}) as server:
        for path, body in (("/unirl/score", unirl), ("/v1/rerank", rerank)):
            statuses = [
                server.post(path, body % (image, value))[0]
                for value in (b"1180591620717411303424", b'"\\ud800"')
            ]
            name = path.split("/")[1 if "unirl" in path else 2]
            report.add(f"m_{name}_refused", statuses.count(422), "of 2", counted(statuses))


def fill(server: Target, number: int, image: str, open_ones: ExitStack) -> bool:
    """Send bulk work; return True if it was refused because the lane is full."""
    items = [{"prompt": f"{number}.{item}", "image": image} for item in range(64)]
    body = {"items": items, "metrics": ["vqascore"], "priority": "bulk", "timeout_ms": 600_000}
    connection = open_ones.enter_context(sent(server.port, "/score", orjson.dumps(body), 600_000))
    connection.settimeout(0.15)
    try:
        return bool(connection.recv(100))
    except TimeoutError:
        return False


def sent(port: int, path: str, body: bytes, timeout_ms: int) -> socket.socket:
    """Send a request without reading the response; return its connection."""
    connection = socket.create_connection((HOST, port))
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    head += f"X-Request-Timeout-Ms: {timeout_ms}\r\nContent-Length: {len(body)}\r\n\r\n"
    connection.sendall(head.encode() + body)
    return connection
