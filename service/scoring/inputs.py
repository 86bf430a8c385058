"""What a metric looks at: one frame, or several as one grid; and the pictures beside it."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from models.images.frame_stack import FrameStack
from models.images.grid import Grid
from models.images.image import Image, ImageError
from service.images.loader import ImageLoader, ImageRef
from service.observability.notes import Code, Note
from service.scoring.frames import FrameRef, MetricInput
from service.serving.context import Context


@dataclass(frozen=True, slots=True)
class LoadedInput:
    """The images of a view, opened, and what of their files they do not show."""

    image: Image
    references: tuple[Image, ...] = ()
    source: Image | None = None
    notes: tuple[Note, ...] = ()


@asynccontextmanager
async def shown(view: MetricInput, pictures: ImageLoader, context: Context) -> AsyncIterator[LoadedInput]:
    """
    The images of *view*, their pixels accounted for while the context is open.

    Several are accounted for at once: two who each waited for what the other holds would wait for ever.

    Raises `BadImage`, one of its kinds, which names the frame of a grid or the picture beside the image.
    """
    if len(view.shots) == 1 and not view.beside:
        [shot] = view.shots
        async with shot.picture.held(pictures, context) as image:
            yield LoadedInput(frame(shot, image), notes=notes(view, {shot.picture: image}))
        return
    places = {shot.picture: shot.place for shot in reversed([*view.shots, *view.beside])}
    async with AsyncExitStack() as stack:
        read = await pictures.read_together(places, stack, context)
        # Images of its own, since a grid lets go of what it has copied, and all go together in the end.
        shots = [frame(shot, own) for shot, own in owned(view.shots, read)]
        image = shots[0] if len(shots) == 1 else Grid(shots, [shot.place for shot in view.shots])
        beside = [own for _, own in owned(view.beside, read)]
        async with pictures.accounted([image.file, *dict.fromkeys(beside)], context):
            references = tuple(beside[: len(view.references)])
            yield LoadedInput(image, references, beside[-1] if view.source else None, notes(view, read))


def owned(shots: Sequence[FrameRef], read: Mapping[ImageRef, Image]) -> list[tuple[FrameRef, Image]]:
    """Each shot with an image of its own of its file; frames of one film share theirs."""
    files = {shot.picture: type(read[shot.picture]).over(read[shot.picture]) for shot in shots}
    return [(shot, files[shot.picture]) for shot in shots]


def frame(shot: FrameRef, image: Image) -> Image:
    """The frame that *shot* names of the file *image*.  Raises `ImageError` where it has fewer."""
    return image if shot.number is None or not isinstance(image, FrameStack) else image.frame(shot.number)


def notes(view: MetricInput, read: Mapping[ImageRef, Image]) -> tuple[Note, ...]:
    """What of the files that were *read* for a view is not looked at."""
    source = (view.source,) if view.source else ()
    named = (("the image", view.shots), ("a reference", view.references), ("the source", source))
    return tuple(note for name, shots in named for shot in shots for note in of_shot(name, shot, read))


def of_shot(name: str, shot: FrameRef, read: Mapping[ImageRef, Image]) -> Iterator[Note]:
    """The same of one frame, or of one picture beside the image."""
    unseen = read[shot.picture].unseen
    if unseen.orientation != 1:
        told = f'{name} was not turned by its EXIF orientation, {unseen.orientation}; orient: "exif" turns it'
        yield Note(Code.IMAGE_ROTATED_BY_EXIF, told)
    if unseen.more_frames and shot.number is None:
        yield Note(Code.FRAMES_IGNORED, f"{name} has several frames, and the first alone was looked at")


def broken(view: MetricInput, seen: LoadedInput) -> FrameRef | None:
    """Which picture beside the image cannot be decoded, if one cannot.  To be run on a CPU thread."""
    images = [*seen.references, *([seen.source] if seen.source else [])]
    for shot, image in zip(view.beside, images, strict=True):
        try:
            image.rgb.load()
        except ImageError:
            return shot
    return None
