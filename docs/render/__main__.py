"""`make reference`."""

from docs.render import write

write()
