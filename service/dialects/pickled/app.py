"""
The dialects whose bodies are pickles, at `POST /` of a port of their own.

flow_grpo and ddpo-pytorch read the pickle of whatever comes back and look at no status; verl-omni and
deepgen_rl look at it.  A pickled dict with `error` and a status that is not 200 ends all of them, and
`Retry-After` makes all but deepgen_rl wait for what may pass.
"""

from types import SimpleNamespace

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from service.bootstrap import Service
from service.concurrency.disconnect import CallerGone
from service.concurrency.threads import on_thread
from service.dialects.failures import answer_to, raise_most_telling
from service.dialects.pickled.reader import read
from service.dialects.pickled.requests import Pickled, request_of
from service.dialects.pickled.writer import written
from service.dialects.scoring import Dialects, Wanted
from service.errors import Draining, MethodNotAllowed, ScoregateError
from service.metrics.contract import Score
from service.sources import Encoded

ROUTE = SimpleNamespace(path="pickle")  # in the instruments and the log


class PickleApp:
    """Answers `POST /`, and `POST /METRIC` by that metric."""

    def __init__(self, service: Service, dialects: Dialects) -> None:
        self._service, self._dialects = service, dialects

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI scope."""
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        scope["route"] = ROUTE
        try:
            status, headers, answer = 200, dict[str, str](), await self._scores(request)
        except ScoregateError as error:
            self._service.instruments.count_rejection(error)
            status, headers = answer_to(error)
            answer = written({"error": error.detail, "code": error.code})
        await Response(answer, status, headers, "application/octet-stream")(scope, receive, send)

    async def _scores(self, request: Request) -> bytes:
        """The pickled answer.  Raises the error that says most, where a picture has no score."""
        if self._service.draining:
            raise Draining
        if request.method != "POST":
            raise MethodNotAllowed("only POST is served here")
        named = request.url.path.strip("/")
        metric = self._dialects.metric_of_path(named) if named else self._dialects.metric(None)
        wanted = await self._read(request)
        outcomes = await self._dialects.scored(
            request,
            [
                Wanted(prompt, Encoded(image), (metric,))
                for image, prompt in zip(wanted.images, wanted.prompts, strict=True)
            ],
            self._service.settings.dialects.timeouts_s.pickle,
        )
        raise_most_telling((f"images/{number}", found) for number, found in enumerate(outcomes))
        found = [each[metric] for each in outcomes]
        scores = [score.value for score in found if isinstance(score, Score)]
        # Whoever reads it takes the name that it knows.
        names = ("scores", "outputs", *(("recall", "precision", "f1") if wanted.compared else ()))
        return written(dict.fromkeys(names, scores))

    async def _read(self, request: Request) -> Pickled:
        """The request.  Raises `Malformed`, `TooLarge`, `Invalid`, or `CallerGone` where it never came."""
        try:
            body = await request.body()
        except ClientDisconnect as exc:
            raise CallerGone from exc
        most = self._service.settings.server.body_limit_mb * 2**20
        # Every opcode takes some microseconds, and a small body may hold thousands.
        return await on_thread(lambda: request_of(read(body, most)))
