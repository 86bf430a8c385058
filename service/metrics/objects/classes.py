"""GenEval's classes of objects (those of COCO), and their names in detectors."""

from collections.abc import Sequence

from service.core.errors import UnknownClass

# fmt: off
CLASSES = (
    "person", "bicycle", "car", "motorcycle", "airplane", "bus", "train", "truck", "boat", "traffic light",
    "fire hydrant", "stop sign", "parking meter", "bench", "bird", "cat", "dog", "horse", "sheep", "cow",
    "elephant", "bear", "zebra", "giraffe", "backpack", "umbrella", "handbag", "tie", "suitcase", "frisbee",
    "skis", "snowboard", "sports ball", "kite", "baseball bat", "baseball glove", "skateboard", "surfboard",
    "tennis racket", "bottle", "wine glass", "cup", "fork", "knife", "spoon", "bowl", "banana", "apple",
    "sandwich", "orange", "broccoli", "carrot", "hot dog", "pizza", "donut", "cake", "chair", "couch",
    "potted plant", "bed", "dining table", "toilet", "tv", "laptop", "computer mouse", "tv remote",
    "computer keyboard", "cell phone", "microwave", "oven", "toaster", "sink", "refrigerator", "book",
    "clock", "vase", "scissors", "teddy bear", "hair drier", "toothbrush",
)
# fmt: on

# COCO's names that differ from GenEval's, and names of Pascal VOC in some checkpoints.
OTHER_NAMES = {
    "airplane": "aeroplane",
    "computer keyboard": "keyboard",
    "computer mouse": "mouse",
    "couch": "sofa",
    "dining table": "diningtable",
    "motorcycle": "motorbike",
    "potted plant": "pottedplant",
    "tv": "tvmonitor",
    "tv remote": "remote",
}


def names_of(labels: Sequence[str]) -> dict[str, str]:
    """Return GenEval's name for each of a detector's labels; the label itself if there is none."""
    others = {other: name for name, other in OTHER_NAMES.items()}
    return {label: others.get(label, label) for label in labels}


def check_known(classes: Sequence[str], known: Sequence[str], whose: str) -> None:
    """Raise `UnknownClass` for the first of *classes* that is not *known*."""
    for name in classes:
        if name not in known:
            raise UnknownClass(f"{name!r} is not a class of {whose}")
