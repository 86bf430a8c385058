"""What a metric looks at: one frame, or several as one grid."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from models.film import Film
from models.grid import Grid
from models.image import Image
from service.context import Context
from service.frames import Shot, View
from service.items import Pictures


@asynccontextmanager
async def shown(view: View, pictures: Pictures, context: Context) -> AsyncIterator[Image]:
    """
    The image of *view*, its pixels accounted for while the context is open.

    Raises `BadImage`, one of its kinds, which names the frame of a grid.
    """
    if len(view) == 1:
        [shot] = view
        async with shot.picture.held(pictures, context) as image:
            yield frame(shot, image)
        return
    places = {shot.picture: shot.place for shot in reversed(view)}
    async with AsyncExitStack() as stack:
        read = await pictures.read_together(places, stack, context)
        # Images of its own, since a grid lets go of what it has copied.
        files = {picture: type(image).over(image) for picture, image in read.items()}
        grid = Grid([frame(shot, files[shot.picture]) for shot in view], [shot.place for shot in view])
        async with pictures.accounted(grid, context):
            yield grid


def frame(shot: Shot, image: Image) -> Image:
    """The frame that *shot* names of the file *image*.  Raises `ImageError` where it has fewer."""
    return image if shot.number is None or not isinstance(image, Film) else image.frame(shot.number)
