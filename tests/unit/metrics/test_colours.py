"""What CLIP is asked about the colour of an object."""

from service.metrics.objects.colours import COLOURS, texts_of


def test_each_colour_is_asked_for_in_three_templates_two_of_which_name_the_class():
    """As in the released code, which calls anything an object in the third."""
    texts = texts_of("dog")

    assert ["a photo of a red dog", "a photo of a red-colored dog", "a photo of a red object"] == texts[:3]
    assert len(texts) == 3 * len(COLOURS) == 3 * len(set(COLOURS))
    assert all(f" {colour} dog" in texts[3 * n] for n, colour in enumerate(COLOURS))
