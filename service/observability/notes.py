"""Warnings that come with scores: a stable code and a sentence for people."""

from dataclasses import dataclass
from enum import StrEnum


class Code(StrEnum):
    """
    The stable code of a warning: what the score that it comes with rests on.

    Attributes:
        image_rotated_by_exif: is of a picture as stored, which viewers rotate or mirror.
        frames_ignored: is of the first frame of an animation, or the first page of a TIFF.
        alpha_ignored: is of the colours behind transparency, often black. A channel of alpha that is opaque
            everywhere has no warning.
        grey16_clipped: is of a grey picture of more than 8 bits, with values above 255 white.
        profile_ignored: is of colours that the ICC profile in the file shows otherwise, by its primaries or
            its description.
        prompt_truncated: is of a prompt cut at a model's maximum length, or at an end token in it.
        question_truncated: rests on a question cut at a model's maximum length.
        unknown_words: may rest on words that a model was not trained on, as most with demo models.
        unknown_tokens: rests on text that the tokenizer cannot represent (`share` of the tokens), as FlanT5
            with Chinese, Cyrillic, emoji or braces.
        demo_model: rests on a demo model, and means nothing for real pictures.
        demo_checklist: is of the demo's checklist, and means nothing for real pictures.
        no_nli_model: counts questions that the prompt does not entail, too.
        no_ocr_model: has text read by the VQA model.
        keywords_without_question: does not cover all words of the prompt.
        low_label_mass: is from labels to which the model gave little probability.
        choice_unclear: counts a written answer as the choice that is nearest by little (`tifa`).
        quotes_unbalanced: is of a prompt with a single double quote (`ocr`).
        option_unused: does not depend on an option, because of another one.
        metadata_of_another_prompt: uses GenEval metadata of another prompt.
        decided_by_cascade: is the cascade's, because the time ran out.
        of_the_metric: has a warning of a plug-in.
    """

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
    DEMO_CHECKLIST = "demo_checklist"
    NO_NLI_MODEL = "no_nli_model"
    NO_OCR_MODEL = "no_ocr_model"
    KEYWORDS_WITHOUT_QUESTION = "keywords_without_question"
    LOW_LABEL_MASS = "low_label_mass"
    CHOICE_UNCLEAR = "choice_unclear"
    QUOTES_UNBALANCED = "quotes_unbalanced"
    OPTION_UNUSED = "option_unused"
    METADATA_OF_ANOTHER_PROMPT = "metadata_of_another_prompt"
    DECIDED_BY_CASCADE = "decided_by_cascade"
    OF_THE_METRIC = "of_the_metric"


@dataclass(frozen=True, slots=True)
class Note:
    """A warning; *share* is that of unknown tokens."""

    code: Code
    text: str
    share: float | None = None

    def of_part(self, name: str) -> "Note":
        """Return a copy whose text names the part of a composite that it is about."""
        return Note(self.code, f"{name}: {self.text}", self.share)
