"""`errors.md`: the tree of errors."""

from docs.render.markdown import code, first_line, join, rest, table
from service.web.openapi import tree

INTRO = """
# Error codes

A failed request is `application/problem+json` with a `code`; in a response with status 200 an *entry* has
the `code` of a single item, picture, pair or prompt ([how errors are sent](../api.md#errors)). Codes are
stable.
"""


def page() -> str:
    """Return the page: each code with its status, in the order of the statuses."""
    errors = sorted(tree(), key=lambda error: error.status)
    rows = [
        [code(error.code), str(error.status), error.where, first_line(error.__doc__), rest(error.__doc__)]
        for error in errors
    ]
    return join(INTRO, table(["code", "status", "where", "meaning", "what to do"], rows))
