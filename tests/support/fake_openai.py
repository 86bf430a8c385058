"""
A fake OpenAI-compatible server on a real socket, for the faults that a sound one doesn't have.

What it answers and keeps depends on the body: pytest-httpserver could replace its socket and nothing else.
"""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from zlib import crc32

from models.core.examples import IMAGE, OTHER_IMAGE, TEXTS
from models.families.openai.vlm import data_uri

Answer = tuple[int, Any]  # status, and JSON, text or chunks of bytes
OTHERS = {"Yes": [5], "No": [6], **{label: [30 + n] for n, label in enumerate("12345ABCDE")}}
SLEEP = {"/sleep?level=1": True, "/wake_up": False}  # vLLM's routes for operators
KNOWN, OTHER = (each.once(data_uri, data_uri).partition(",")[2] for each in (IMAGE, OTHER_IMAGE))


class FakeOpenAI:
    """
    Answers `POST chat/completions` with `chat(body)`, `POST /classify` with `classify(body)`, `POST score`
    with `rerank(body)`, `POST embeddings` with `embed(body)`, and `POST decisions` with probabilities that
    depend on the questions: the word REFUSE in one is refused, BAD makes it 400.

    It keeps what it was sent, and the paths of GET requests.  What a service asks about its known pictures is
    answered by `known(body)`, and by `decide_known(body)` where it is a decision; both are kept apart.

    `models` is what it lists, `tokens` what `/tokenize` knows (None: it has no such route), and `pieces` how
    some tokens are written.
    """

    def __init__(self, port: int = 0) -> None:
        self.models: Answer = (200, {"object": "list", "data": [{"id": "m"}]})
        self.tokens: dict[str, list[int]] | None = {"Yes": [5], "No": [6], "maybe so": [7, 8]}
        self.pieces: dict[int, str] = {}
        self.chat: Callable[[dict[str, Any]], Answer] = lambda body: (200, said("{}"))
        self.classify: Callable[[dict[str, Any]], Answer] = lambda body: (404, {})
        self.rerank: Callable[[dict[str, Any]], Answer] = lambda body: (404, {})
        self.embed: Callable[[dict[str, Any]], Answer] = lambda body: (404, {})
        self.known: Callable[[dict[str, Any]], Answer] = lambda body: (200, plausible(body))
        self.decide_known: Callable[[dict[str, Any]], Answer] = decide_known
        self.checks: list[dict[str, Any]] = []
        self.sleeps: bool | None = None  # None: it has no such route
        self.operated = 200  # the status of `/sleep` and `/wake_up`
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.looks: list[str] = []
        self.gone = threading.Event()  # stops answers without end
        self._server = ThreadingHTTPServer(("127.0.0.1", port), handler(self))

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    @contextmanager
    def running(self) -> Iterator["FakeOpenAI"]:
        thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield self
        finally:
            self.gone.set()
            self._server.shutdown()
            self._server.server_close()
            thread.join()


def handler(fake: FakeOpenAI) -> type[BaseHTTPRequestHandler]:
    """The request handler of *fake*."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            fake.looks.append(self.path)
            if self.path == "/is_sleeping" and fake.sleeps is not None:
                self._send((200, {"is_sleeping": fake.sleeps}))
            else:
                self._send(fake.models if self.path == "/v1/models" else (404, {}))

        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["content-length"]))
            if self.path in SLEEP:
                if fake.sleeps is not None:
                    fake.sleeps = SLEEP[self.path]
                self._send((404, {}) if fake.sleeps is None else (fake.operated, ""))
                return
            body = json.loads(content)
            if self.path == "/tokenize":
                known = fake.tokens
                if known is None:
                    self._send((404, {}))
                    return
                text = body["prompt"]
                ids = known[text] if text in known else OTHERS.get(text, [90])
                self._send((200, {"tokens": ids, "token_strs": [fake.pieces.get(id, str(id)) for id in ids]}))
                return
            routes = {
                "/v1/score": fake.rerank,
                "/v1/embeddings": fake.embed,
                "/v1/chat/completions": fake.chat,
                "/classify": fake.classify,
                "/v1/decisions": decisions,
            }
            if KNOWN in (sent := json.dumps(body)) or OTHER in sent:
                fake.checks.append(body)
                self._send((fake.decide_known if self.path == "/v1/decisions" else fake.known)(body))
                return
            answers = routes[self.path]
            fake.headers.append({name.lower(): value for name, value in self.headers.items()})
            fake.bodies.append(body)
            self._send(answers(body))

        def _send(self, answer: Answer) -> None:
            status, content = answer
            self.close_connection = True
            self.send_response(status)
            self.send_header("connection", "close")
            if isinstance(content, dict | str):
                data = (content if isinstance(content, str) else json.dumps(content)).encode()
                self.send_header("content-length", str(len(data)))
                content = [data]
            self.end_headers()
            try:
                for chunk in content:
                    self.wfile.write(chunk)
            except OSError:
                pass  # the other side has heard enough

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler


def decisions(body: dict[str, Any]) -> Answer:
    """The answers of a decision endpoint."""
    if any("BAD" in question["instructions"] for question in body["questions"]):
        return 400, {"error": {"message": "a question is too long"}}
    return 200, {"answers": [decided(question) for question in body["questions"]]}


def decide_known(body: dict[str, Any]) -> Answer:
    """The answer of a decision endpoint to a known question, which depends on the picture."""
    return 200, {"answers": [{"probability": 0.9 if KNOWN in json.dumps(body) else 0.1}]}


def said(text: str | None, finish: str = "stop") -> dict[str, Any]:
    """A chat completion that says *text*."""
    return {"choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": finish}]}


def weighed(**logprobs: float) -> dict[str, Any]:
    """A chat completion with those log-probabilities for its first token; `id5` is token 5."""
    entries = [
        {"token": f"token_id:{name[2:]}" if name.startswith("id") else name, "logprob": value}
        for name, value in logprobs.items()
    ]
    return {
        "choices": [{"message": {"content": "Yes"}, "logprobs": {"content": [{"top_logprobs": entries}]}}]
    }


def plausible(body: dict[str, Any]) -> dict[str, Any]:
    """What a sound model says of the known picture: a chat's first token, and a head's number beside it."""
    true = TEXTS[0] in json.dumps(body)
    yes, no = (-0.1, -2.5) if true else (-2.5, -0.1)
    labels = {label: -3.0 for label in "12345ABCDE"}
    said = weighed(
        **{"Yes": yes, "No": no, "id5": yes, "id6": no, **labels}, **{f"id{n}": -3.0 for n in range(30, 40)}
    )
    return {**said, "data": [{"probs": [1.0, 0.5] if true else [-1.0, 0.25]}]}


def decided(question: Mapping[str, Any]) -> dict[str, Any]:
    """What a decision endpoint answers: a probability that depends on the question's text."""
    if "REFUSE" in question["instructions"]:
        return {"type": "refusal", "name": question["name"]}
    share = (crc32(question["instructions"].encode()) % 997 + 1) / 999
    if question["type"] == "predicate":
        return {"probability": share}
    shares = [share, *[(1 - share) / (len(question["choices"]) - 1)] * (len(question["choices"]) - 1)]
    values = [each["value"] for each in question["choices"]]
    listed = [{"value": value, "probability": each} for value, each in zip(values, shares, strict=True)]
    return {"probabilities": listed}
