"""Warnings that come with scores: a stable code and a sentence for people."""

from dataclasses import dataclass
from enum import StrEnum


class Code(StrEnum):
    """The stable code of a warning (`docs/api.md`)."""

    IMAGE_ROTATED_BY_EXIF = "image_rotated_by_exif"
    FRAMES_IGNORED = "frames_ignored"
    ALPHA_IGNORED = "alpha_ignored"
    GREY16_CLIPPED = "grey16_clipped"
    PROFILE_IGNORED = "profile_ignored"
    PROMPT_TRUNCATED = "prompt_truncated"
    QUESTION_TRUNCATED = "question_truncated"
    UNKNOWN_WORDS = "unknown_words"
    UNKNOWN_TOKENS = "unknown_tokens"
    DEMO_MODEL = "demo_model"
    NO_NLI_MODEL = "no_nli_model"
    NO_OCR_MODEL = "no_ocr_model"
    KEYWORDS_WITHOUT_QUESTION = "keywords_without_question"
    LOW_LABEL_MASS = "low_label_mass"
    QUOTES_UNBALANCED = "quotes_unbalanced"
    OPTION_UNUSED = "option_unused"
    METADATA_OF_ANOTHER_PROMPT = "metadata_of_another_prompt"
    DECIDED_BY_CASCADE = "decided_by_cascade"
    OF_THE_METRIC = "of_the_metric"  # a plug-in wrote the text


@dataclass(frozen=True, slots=True)
class Note:
    """A warning; *share* is that of unknown tokens."""

    code: Code
    text: str
    share: float | None = None

    def of_part(self, name: str) -> "Note":
        """Return a copy whose text names the part of a composite that it is about."""
        return Note(self.code, f"{name}: {self.text}", self.share)
