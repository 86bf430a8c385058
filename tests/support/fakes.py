"""The family `fake` with switches: its models can be held, fail, and keep what they were given."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

from models.core.calls import GenerateCall, RewardCall
from models.core.contract import Prepared
from models.core.outcomes import Reward, Text
from models.families.fake import model as fake
from models.families.fake.model import chance

HELD_S = 100  # at most, so that a test that fails ends


class FakeModel(fake.FakeModel):
    """
    Scores batches with `answer(call)`.

    Attributes:
        batches: the calls of each batch that was scored.
        hold: while it is cleared, a batch waits on its device.
        held: whether one does.
        fault: what to raise for a batch that holds a call, None for nothing.
    """

    role = "vqa"

    def __init__(self) -> None:
        super().__init__(self.role)
        self.batches: list[list[Any]] = []
        self.hold = threading.Event()
        self.hold.set()
        self.held = False
        self.fault: Callable[[Any], Exception | None] = lambda call: None

    def score(self, batch: Sequence[Prepared]) -> list[Any]:
        calls = [prepared.data for prepared in batch]
        self.held = not self.hold.is_set()
        self.hold.wait(HELD_S)
        self.held = False
        self.batches.append(calls)
        for call in calls:
            if fault := self.fault(call):
                raise fault
        return super().score(batch)

    @property
    def calls(self) -> list[Any]:
        """Every call but the warm-up's."""
        example = self.example()
        return [call for batch in self.batches for call in batch if call != example]


class FakeVqa(FakeModel):
    """P(Yes) from the image's digest and the question."""


class FakeClip(FakeModel):
    """A unit vector from the content."""

    role = "clip"


class FakeOcr(FakeModel):
    """Reads something from the image's digest."""

    role = "ocr"


class FakeEmbedding(FakeModel):
    """A unit vector from the text."""

    role = "embedding"


class FakeArtifact(FakeModel):
    """An artifact ratio from the image's digest."""

    role = "artifact"

    def answer(self, call: RewardCall) -> Reward:
        return Reward((chance(call.image.digest),))


class FakeSafety(FakeArtifact):
    """A safety score from the image's digest."""

    role = "safety"


class FakeDetector(FakeModel):
    """Finds each of its labels or not, by the image's digest."""

    role = "detector"


class FakeImageReward(FakeModel):
    """A reward from the image's digest and the prompt."""

    role = "imagereward"


class FakeHpsv3(FakeImageReward):
    """The same, with an uncertainty."""

    role = "hpsv3"


class FakeHpsv3pp(FakeImageReward):
    """The same, with a capability."""

    role = "hpsv3pp"


class FakeEditReward(FakeModel):
    """Rewards from the digests of the image and its source, and the prompt."""

    role = "editreward"


class FakeVideoAlign(FakeModel):
    """Rewards from the digests of the frames, and the prompt."""

    role = "videoalign"


class FakeItm(FakeImageReward):
    """The same, as the logit of a match."""

    role = "itm"


class FakeReward(FakeImageReward):
    """The same, as a served reward model."""

    role = "reward"


class FakeReranker(FakeModel):
    """A probability from the digest of the picture and the prompt."""

    role = "reranker"


class FakeAesthetic(FakeModel):
    """A reward from the image's digest."""

    role = "aesthetic"


class FakeQuestionLLM(FakeModel):
    """Asks for every noun after an article; `texts` overrides what it writes for a prompt."""

    role = "questions"

    def __init__(self) -> None:
        super().__init__()
        self.texts: dict[str, str] = {}

    def answer(self, call: GenerateCall) -> Text:
        prompt = call.user.split("prompt: ", 1)[1]
        return Text(self.texts[prompt]) if prompt in self.texts else super().answer(call)


def new_fakes() -> dict[str, FakeModel]:
    """A model for each role that most tests ask, by its configured name."""
    return {"clip": FakeClip(), "vqa": FakeVqa(), "questions": FakeQuestionLLM()}
