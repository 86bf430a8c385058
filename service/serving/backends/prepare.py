"""Preparation of calls, with errors of models turned into errors of the service."""

from collections.abc import Callable, Sequence

from models.core.calls import Call
from models.core.contract import ModelError, Prepared
from models.images.image import ImageError
from service.core.errors import CallRefused, ImageUndecodable, ModelFault, ScoregateError

Prepare = Callable[[Call], Prepared]


def prepare_all(prepare: Prepare, name: str, calls: Sequence[Call]) -> list[Prepared | ScoregateError]:
    """Return each call prepared for the model *name*, or its error."""
    return [prepare_one(prepare, name, call) for call in calls]


def prepare_one(prepare: Prepare, name: str, call: Call) -> Prepared | ScoregateError:
    """Return *call* prepared for the model *name*, or its error."""
    try:
        return prepare(call)
    except ScoregateError as exc:
        return exc
    except ImageError as exc:
        return ImageUndecodable(str(exc))
    except ModelError as exc:
        return CallRefused(str(exc))
    except Exception as exc:
        fault = ModelFault(f"the model {name} failed to prepare this call")
        fault.__cause__ = exc
        return fault
