"""The images of an input, opened: one frame or a grid of several, references and source."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from models.images.frame_stack import FrameStack
from models.images.grid import Grid
from models.images.image import Image, ImageError
from service.images.loader import ImageLoader, ImageRef
from service.metrics.common.contract import Item
from service.observability.notes import Code, Note
from service.scoring.plan import Frame, Input
from service.serving.context import Context


@asynccontextmanager
async def opened(
    input: Input, loader: ImageLoader, context: Context
) -> AsyncIterator[tuple[Item, list[Note]]]:
    """
    Return the images of *input* with its prompt, and notes about content that they do not show.

    The memory of all pixels is reserved in one step while the context is open: two requests that each wait
    for memory that the other holds would deadlock.

    Raises a subclass of `BadImage` that names the frame, reference or source.
    """
    prompt = input.item.prompt
    if len(input.frames) == 1 and not input.references and input.source is None:
        [frame] = input.frames
        ref = input.file(frame)
        async with loader.open(ref, context) as image:
            yield Item(shown(frame, image), prompt), [*notes(input, {ref: image})]
        return
    others, files = input.others, [input.file(frame) for frame in input.frames]
    named = [*zip(files, map(input.place, input.frames), strict=True), *others]
    async with AsyncExitStack() as stack:
        read = await loader.read_together(dict(reversed(named)), stack, context)
        # Copies, since a grid releases what it has copied, and everything else is released in the end.
        frames = [*map(shown, input.frames, copies(files, read))]
        image = frames[0] if len(frames) == 1 else Grid(frames, [*map(input.place, input.frames)])
        beside = copies([ref for ref, _ in others], read)
        async with loader.pixels.reserve([image.file, *dict.fromkeys(beside)], context):
            references = tuple(beside[: len(input.references)])
            source = beside[-1] if input.source else None
            yield Item(image, prompt, references, source), [*notes(input, read)]


def copies(refs: Sequence[ImageRef], read: Mapping[ImageRef, Image]) -> list[Image]:
    """Return a new image for each of *refs*; the same file has the same one."""
    made = {ref: type(read[ref]).over(read[ref]) for ref in refs}
    return [made[ref] for ref in refs]


def shown(frame: Frame, image: Image) -> Image:
    """Return *frame* of its file *image*.  Raises `ImageError` if it has fewer."""
    return image if frame.number is None or not isinstance(image, FrameStack) else image.frame(frame.number)


def notes(input: Input, read: Mapping[ImageRef, Image]) -> Iterator[Note]:
    """Yield a note for each content of a file that is not scored, such as more frames."""
    named = [("the image", input.file(frame), frame.number is None) for frame in input.frames]
    named += [("a reference", ref, True) for ref in input.references]
    named += [("the source", input.source, True)] if input.source else []
    for name, ref, still in named:
        unseen = read[ref].unseen
        if unseen.orientation != 1:
            turned = f"was not turned by its EXIF orientation, {unseen.orientation}"
            yield Note(Code.IMAGE_ROTATED_BY_EXIF, f'{name} {turned}; orient: "exif" turns it')
        if unseen.more_frames and still:
            yield Note(Code.FRAMES_IGNORED, f"{name} has several frames; only the first was scored")
        if unseen.alpha:
            text = f"{name} has transparency, which is ignored: the colours behind it were scored"
            yield Note(Code.ALPHA_IGNORED, text)
        if unseen.grey16:
            text = f"{name} is grey of more than 8 bits: values above 255 were clipped to white"
            yield Note(Code.GREY16_CLIPPED, text)


def broken(input: Input, item: Item) -> str:
    """Return the place of a reference or source that cannot be decoded, if any.  Call it on a CPU thread."""
    images = [*item.references, *([item.source] if item.source else [])]
    for (_, place), image in zip(input.others, images, strict=True):
        try:
            image.rgb.load()
        except ImageError:
            return place
    return ""
