"""What backends share: the preparation of calls, with errors of models as the service's."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

from models.core.calls import Call
from models.core.contract import ModelError, Prepared
from models.images.formats.contract import DecoderKilled
from models.images.image import ImageError
from service.core.errors import CallRefused, ImageUndecodable, ModelFault, NotReady, ScoregateError

Prepare = Callable[[Call], Prepared]


def prepare_all(prepare: Prepare, name: str, calls: Sequence[Call]) -> list[Prepared | ScoregateError]:
    """Return each call prepared for the model *name*, or its error."""
    prepared: list[Prepared | ScoregateError] = []
    for call in calls:
        try:
            prepared.append(prepare(call))
        except ScoregateError as exc:
            prepared.append(exc)
        except ImageError as exc:
            prepared.append(not_decoded(exc))
        except ModelError as exc:
            prepared.append(CallRefused(str(exc)))
        except Exception as exc:
            fault = ModelFault(f"the model {name} failed to prepare this call")
            fault.__cause__ = exc
            prepared.append(fault)
    return prepared


@contextmanager
def images_in_use(calls: Sequence[Call]) -> Iterator[None]:
    """Keep the pixels of *calls*, and the memory reserved for them, while the context is open."""
    with ExitStack() as stack:
        for image in {image for call in calls for image in call.images}:
            stack.enter_context(image.in_use())
        yield


def not_decoded(error: ImageError) -> ScoregateError:
    """Return the service's error for a picture without pixels: temporary if its decoder was killed."""
    return (NotReady if isinstance(error, DecoderKilled) else ImageUndecodable)(str(error))


def decoding_s(calls: Sequence[Call], since: float) -> float:
    """Return the seconds from *since*, by `time.monotonic`, in which the images of *calls* were decoded."""
    times = [file.decode_time for file in {image.file for call in calls for image in call.images}]
    return sum(max(0.0, time.began + time.seconds - max(since, time.began)) for time in times)
