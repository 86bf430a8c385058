"""Lists in requests, which may be long and may be full of faults."""

from typing import Annotated, Any

from pydantic import (
    BeforeValidator,
    Field,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)
from pydantic_core import PydanticCustomError

from service.core.fields import schema_keywords

ENOUGH = 1_000  # faults of the entries of a list
FAULTS = "faults"  # the key of a validation's context that counts the faults of a list's entries


def listed(entry: Any, most: int) -> Any:
    """Build the type of a list of 1 to *most* entries; a longer one is refused without reading it."""

    def counted(values: Any) -> Any:
        if isinstance(values, list) and len(values) > most:
            message = "has {given} entries; at most {most} are allowed"
            raise PydanticCustomError("too_many_items", message, {"given": len(values), "most": most})
        return values

    checked = Annotated[entry, WrapValidator(unless_enough_is_wrong)]
    return Annotated[
        list[checked], Field(min_length=1), BeforeValidator(counted), schema_keywords(maxItems=most)
    ]


def unless_enough_is_wrong(entry: Any, check: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
    """Check an entry, unless earlier ones have enough faults: a problem names 20 and counts the rest."""
    found = info.context if info.context is not None else {}
    if found.get(FAULTS, 0) >= ENOUGH:
        return entry
    try:
        return check(entry)
    except ValidationError as exc:
        found[FAULTS] = found.get(FAULTS, 0) + exc.error_count()
        raise
