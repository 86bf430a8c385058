"""The images that a metric gets: one frame or a grid of several, references and source."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from models.images.frame_stack import FrameStack
from models.images.grid import Grid
from models.images.image import Image, ImageError
from service.images.loader import ImageLoader, ImageRef
from service.metrics.common.contract import Item
from service.observability.notes import Code, Note
from service.scoring.frames import FrameRef, MetricInput
from service.serving.context import Context

Notes = tuple[Note, ...]


@asynccontextmanager
async def loaded(
    input: MetricInput, prompt: str, loader: ImageLoader, context: Context
) -> AsyncIterator[tuple[Item, Notes]]:
    """
    Return the images of *input*, and notes about content that they do not show.

    The memory of all pixels is reserved in one step while the context is open: two requests that each wait
    for memory that the other holds would deadlock.

    Raises a subclass of `BadImage` that names the frame, reference or source.
    """
    if len(input.frames) == 1 and not input.others:
        [ref] = input.frames
        async with loader.open(ref.image, context) as image:
            yield Item(frame(ref, image), prompt), notes(input, {ref.image: image})
        return
    places = {ref.image: ref.place for ref in reversed([*input.frames, *input.others])}
    async with AsyncExitStack() as stack:
        read = await loader.read_together(places, stack, context)
        # Copies, since a grid releases what it has copied, and everything else is released in the end.
        frames = [frame(ref, copy) for ref, copy in copies(input.frames, read)]
        image = frames[0] if len(frames) == 1 else Grid(frames, [ref.place for ref in input.frames])
        others = [copy for _, copy in copies(input.others, read)]
        async with loader.pixels.reserve([image.file, *dict.fromkeys(others)], context):
            references = tuple(others[: len(input.references)])
            source = others[-1] if input.source else None
            yield Item(image, prompt, references, source), notes(input, read)


def copies(refs: Sequence[FrameRef], read: Mapping[ImageRef, Image]) -> list[tuple[FrameRef, Image]]:
    """Pair each frame with a new image of its file; frames of one file share theirs."""
    files = {ref.image: type(read[ref.image]).over(read[ref.image]) for ref in refs}
    return [(ref, files[ref.image]) for ref in refs]


def frame(ref: FrameRef, image: Image) -> Image:
    """Return the frame that *ref* names of the file *image*.  Raises `ImageError` if there are fewer."""
    return image if ref.number is None or not isinstance(image, FrameStack) else image.frame(ref.number)


def notes(input: MetricInput, read: Mapping[ImageRef, Image]) -> Notes:
    """Return a note for each file with content that is not scored, such as more frames."""
    source = (input.source,) if input.source else ()
    named = (("the image", input.frames), ("a reference", input.references), ("the source", source))
    return tuple(note for name, refs in named for ref in refs for note in notes_of(name, ref, read))


def notes_of(name: str, ref: FrameRef, read: Mapping[ImageRef, Image]) -> Iterator[Note]:
    """Yield the notes about one frame, reference or source."""
    unseen = read[ref.image].unseen
    if unseen.orientation != 1:
        text = f'{name} was not turned by its EXIF orientation, {unseen.orientation}; orient: "exif" turns it'
        yield Note(Code.IMAGE_ROTATED_BY_EXIF, text)
    if unseen.more_frames and ref.number is None:
        yield Note(Code.FRAMES_IGNORED, f"{name} has several frames; only the first was scored")
    if unseen.alpha:
        text = f"{name} has transparency, which is ignored: the colours behind it were scored"
        yield Note(Code.ALPHA_IGNORED, text)
    if unseen.grey16:
        text = f"{name} is grey of more than 8 bits: values above 255 were clipped to white"
        yield Note(Code.GREY16_CLIPPED, text)


def broken(input: MetricInput, item: Item) -> FrameRef | None:
    """Return the reference or source that cannot be decoded, if any.  Call it on a CPU thread."""
    images = [*item.references, *([item.source] if item.source else [])]
    for ref, image in zip(input.others, images, strict=True):
        try:
            image.rgb.load()
        except ImageError:
            return ref
    return None
