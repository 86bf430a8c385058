"""What is wrong with published answers, in one line."""

from pydantic import ValidationError


def first_fault(exc: ValidationError) -> str:
    """Return the field and the message of the first error."""
    first = exc.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, first['loc'])) or 'the line'}: {first['msg']}"
