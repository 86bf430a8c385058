"""Made-up answers in the format of each released reward model: good ones, and damaged ones by reason."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

DECIMALS = (1, 1.5, 2, 2.33, 2.694700002670288, 3.0, 3.75, 4, 4.25, 5)
GRADES = ((1, 2, 3), (5, 5, 5), (4, 3, 2), (1, 1, 1), (2, 5, 1))
# Each of them is answered in words, in Chinese, with a unit or with ornaments, and never as a number.
NO_NUMBERS = (
    "four",
    "四",
    "４",
    "4/5",
    "4 out of 5",
    "4.",
    "**4**",
    "3,5",
    "about 4",
    "4 stars",
    "nan",
    "inf",
    "",
)
OUTSIDE = ("0", "0.99", "5.01", "6", "45", "-3", "1e9")
REASONS = (
    "The dog is red, and its shadow falls the wrong way.",
    "画面中的狗是红色的，但影子的方向不对。",
    "Dog: red. Score of the shadow: 2 of 10.\n\nAll else is fine.",
)


class Good(NamedTuple):
    """A text that has the form, and its answers by output."""

    text: str
    answers: Mapping[str, float | str]


class Format(NamedTuple):
    """The answers in a format: *rubric* with the number of the call, and the damaged texts by reason."""

    rubric: str
    call: int
    good: list[Good]
    damaged: Mapping[str, list[str]]


def unifiedreward() -> Format:
    """One picture, 1.x: elements of the prompt, and the last line."""
    elements = ("ocean (location): 1\nbirds (animal): 0", "海洋 (地点): 1\n鸟 (动物): 0", REASONS[2])
    good = [
        Good(f"{above}\nFinal Score: {grade}", {"grade": grade})
        for grade in DECIMALS
        for above in elements[:2]
    ]
    good += [
        Good("Final Score: 4", {"grade": 4}),
        Good(f"\n{elements[2]}\n\n final score : 4 \n", {"grade": 4}),
        Good("The final score follows.\nFinal Score: 4", {"grade": 4}),
        Good("Final Score: four, or a little more\nFinal Score: 4", {"grade": 4}),
    ]
    damaged = {
        "not_a_number": [f"{elements[0]}\nFinal Score: {words}" for words in NO_NUMBERS],
        "out_of_range": [f"{elements[1]}\nFinal Score: {grade}" for grade in OUTSIDE],
        "unknown_output": [
            *(elements[0], f"{elements[0]}\nFinal Sc", f"{elements[0]}\nFinal Score", "4"),
            *("4: Final Score", "Score: 4", "最终得分: 4", "Final Score：4", "**Final Score:** 4"),
            "Final Score is 4",
        ],
        "missing_output": ["", "\n\n"],
        "repeated_output": [
            *("Final Score: 4\nFinal Score: 5", f"Final Score: 4\n{elements[0]}\nFinal Score: 4"),
            *("Final Score: 4\nI hope this helps.", "Final Score: 4\nNote: the sky"),
        ],
    }
    return Format("unifiedreward", 0, good, damaged)


def unifiedreward_pair() -> Format:
    """Two pictures, 1.x: the conclusion in the last line."""
    said = ("Image 1 is better", "Image 2 is better", "Both images are equally good")
    longer = ("Image 1 is better than Image 2", "Image 2 is better than Image 1")
    texts = [text + stop for text in (*said, *longer) for stop in ("", ".")]
    good = [Good(text, {"winner": text}) for text in texts]
    good += [Good(f"{reason}\n{text}", {"winner": text}) for text in texts for reason in REASONS[:2]]
    damaged = {
        "not_a_label": [
            *(
                "",
                "Image 1 is",
                "Image 1",
                "1",
                "Image 3 is better",
                "Image 1 is worse.",
                "Image 2 is better!",
            ),
            *(
                "图像1更好",
                "图片 1 is better",
                "image 1 is better",
                "**Image 1 is better**",
                "Image1 is better",
            ),
            *(
                "Answer 1 is better",
                "Neither",
                "Image 1 is better and Image 2 is better",
                "better is Image 1",
            ),
            *(f"{REASONS[1]} {said[0]}", f'"{said[1]}"', "Image 1 is not better."),
            *("Video 1 is better", f"Conclusion: {said[0]}", "Images are equally good"),
        ],
        "repeated_output": [
            *(f"{said[0]}\n{said[1]}", f"{said[1]}.\n\n{said[1]}.", f"{said[2]}\n{longer[0]}"),
            f"{said[0]}.\n{REASONS[0]}",
        ],
    }
    return Format("unifiedreward_pair", 0, good, damaged)


def three_lines(first: object, second: object, third: object) -> str:
    """The answer of UnifiedReward 2.0."""
    return f"Alignment Score (1-5): {first}\nCoherence Score (1-5): {second}\nStyle Score (1-5): {third}"


def unifiedreward_2() -> Format:
    """One picture, 2.0: three lines."""
    names = ("alignment", "coherence", "style")
    triples = [*GRADES, *((a, b, 3.5) for a, b in zip(DECIMALS, DECIMALS[::-1], strict=True))]
    good = [Good(three_lines(*each), dict(zip(names, each, strict=True))) for each in triples]
    whole, lines = three_lines(4, 3, 2), three_lines(4, 3, 2).split("\n")
    expected = dict(zip(names, (4, 3, 2), strict=True))
    good += [
        *(
            Good(text, expected)
            for text in (whole.upper(), f"\n{whole}\n", "\n\n".join(lines), whole.lower())
        ),
        *(Good("\n".join(order), expected) for order in (lines[::-1], lines[1:] + lines[:1])),
    ]
    damaged = {
        "not_a_number": [three_lines(4, words, 2) for words in NO_NUMBERS],
        "out_of_range": [three_lines(4, 3, grade) for grade in OUTSIDE],
        "missing_output": [
            *("", lines[0], "\n".join(lines[:2]), "\n".join(lines[1:]), "\n".join(lines[::2])),
            " ".join(lines),
        ],
        "repeated_output": [f"{whole}\n{lines[0]}", f"{lines[0]}\n{whole}", f"{whole}\n{whole}"],
        "trailing_text": [f"{whole}\n{REASONS[0]}", f"{whole}\n{REASONS[1]}", f"{whole}\nFinal Score: 3"],
        "unknown_output": [
            *(f"{REASONS[0]}\n{whole}", f"{REASONS[1]}\n{whole}", whole.replace("Style", "风格")),
            *(whole.replace(":", "："), whole.replace(" (1-5)", ""), "4\n3\n2"),
            *(whole.replace("Style", "Physics"), f"- {whole}", "Alignment Score (1-5"),
        ],
    }
    return Format("unifiedreward_2", 0, good, damaged)


SHARES = {
    "alignment": "Alignment Score: Image 1",
    "other_alignment": "Alignment Score: Image 2",
    "coherence": "Coherence Score: Image 1",
    "other_coherence": "Coherence Score: Image 2",
    "style": "Style Score: Image 1",
    "other_style": "Style Score: Image 2",
}


def six_lines(shares: tuple[object, ...], indent: str = " ") -> str:
    """The answer of UnifiedReward 2.0 about two pictures."""
    lines = []
    for place, kind in enumerate(("Alignment", "Coherence", "Style")):
        first, second = shares[2 * place : 2 * place + 2]
        lines += [f"{kind} Score:", f"{indent}Image 1: {first}", f"{indent}Image 2: {second}"]
    return "\n".join(lines)


def unifiedreward_2_pair() -> Format:
    """Two pictures, 2.0: the shares of both under three headings."""
    halves: tuple[object, ...] = (0.4, 0.6, 0.5, 0.5, 0.7, 0.3)
    exact = (0.435699999332428, 0.564300000667572, 0.40790000557899475, 0.5920921024223328, 1, 0)
    good = [
        Good(six_lines((a / 10, 1 - a / 10, b / 10, 1 - b / 10, 0.5, 0.5)), {})
        for a in (0, 1, 4, 9)
        for b in (2, 5, 8, 10)
    ]
    good += [Good(six_lines(exact), {}), Good(six_lines(halves, ""), {}), Good(six_lines(halves, "\t"), {})]
    blocks = six_lines(halves).split("\n")
    good += [
        Good("\n".join(blocks[6:] + blocks[:6]), {}),
        Good(six_lines(halves).replace("Image", "IMAGE").replace("\n", "\n\n"), {}),
        Good("\n".join((blocks[0], blocks[2], blocks[1], *blocks[3:])), {}),
    ]
    good = [Good(text, shares_in(text)) for text, _ in good]
    whole = "\n".join(blocks)
    damaged = {
        "not_a_number": [six_lines((words, *halves[1:])) for words in (*NO_NUMBERS, "40 %", "0.4 (good)")],
        "out_of_range": [six_lines((*halves[:5], share)) for share in ("-0.1", "1.01", "3", "30", "1e3")],
        "missing_output": ["", "Alignment Score:", "\n".join(blocks[:5]), "\n".join(blocks[:8]), blocks[3]],
        "repeated_output": [f"{whole}\n{blocks[0]}", f"{whole}\n{blocks[7]}", f"{blocks[0]}\n{whole}"],
        "trailing_text": [f"{whole}\n{REASONS[0]}", f"{whole}\nImage 1 is better"],
        "unknown_output": [
            *("\n".join(blocks[1:]), whole.replace("Style Score:", "风格:"), whole.replace("Image", "图像")),
            *(whole.replace(":", "："), f"{REASONS[1]}\n{whole}", whole.replace("Image 2", "Image 3")),
            *(whole.replace("Score:", "Score"), "Image 1: 0.4\nImage 2: 0.6", "Image 1 is better."),
        ],
    }
    return Format("unifiedreward_2_pair", 0, good, damaged)


def shares_in(text: str) -> dict[str, float | str]:
    """The shares in a text of the form, by output: heading and name of a line are the title."""
    heading, found = "", {}
    for line in filter(None, map(str.strip, text.splitlines())):
        name, _, share = line.partition(":")
        if not share.strip():
            heading = name
        else:
            found[f"{heading}: {name.capitalize()}"] = float(share)
    return {output: found[title] for output, title in SHARES.items()}


def unifiedreward_think() -> Format:
    """Two pictures: reasons, and the conclusion in a tag."""
    said = ("Image 1 is better", "Image 2 is better")
    totals = "Total score:\nImage 1: 9+8+8=25\nImage 2: 7+8+5=20"
    reasons = (
        *REASONS,
        totals,
        f"{totals}\nSo Image 1 is better.",
        "I write <answer in the end.",
        "思考" * 400,
    )
    good = [
        Good(f"{opening}{reason}</think>{space}<answer>{pad}{text}{pad}</answer>", {"winner": text})
        for text in said
        for reason in reasons
        for opening, space, pad in (("<think>\n", "\n", ""), ("", "\n\n", "\n"))
    ]
    start, end = f"<think>{totals}</think>", "<answer>Image 1 is better</answer>"
    damaged = {
        "missing_mark": [
            *(
                "",
                totals,
                f"<think>{totals}",
                end,
                f"<think>{totals}{end}",
                f"{start}",
                f"{start}Image 1 is better",
            ),
            *(f"{start}<answer>Image 1 is better", f"{start}Image 1 is better</answer>", f"{end}{start}"),
            *(f"{start}<Answer>Image 1 is better</Answer>", f"{start}<think>{end}".replace("</think>", "")),
        ],
        "repeated_mark": [
            *(f"{start}{start}{end}", f"{start}{end}{end}", f"{start}<answer>{end}", f"{start}{end}</think>"),
            f"{start}<answer>Image 2 is better</answer>\n{end}",
        ],
        "trailing_text": [
            f"{start}{end} {REASONS[1]}",
            f"{start}So: {end}",
            f"{start}{end}\nImage 2 is better",
        ],
        "not_a_label": [
            f"{start}<answer>{said}</answer>"
            for said in (
                "",
                "1",
                "Image 1",
                "Image 3 is better",
                "Image 1 is better.",
                "图像1更好",
                "Both",
                "tie",
            )
        ],
    }
    return Format("unifiedreward_think", 0, good, damaged)


def editscore() -> Format:
    """An edit: reasons, and two grades to 25 in a list."""
    pairs = ((0, 0), (25, 25), (20, 3), (12.5, 7), (1, 24), (3, 20), (25, 0))

    def whole(score: object, reason: str = "The hat is red.") -> str:
        return f'{{\n"reasoning" : "{reason}",\n"score" : {score}\n}}'

    good = [
        Good(whole([*pair], reason), {"following": pair[0], "consistency": pair[1], "reason": reason})
        for pair in pairs
        for reason in ("The hat is red.", "帽子是红色的。", "score [3, 4] {so}")
    ]
    text, first = whole([20, 3]), good[6]
    good += [
        *(Good(f"```json\n{text}\n```", first.answers), Good(text.replace("\n", ""), first.answers)),
        Good('{"score": [20, 3], "reasoning": "The hat is red."}', first.answers),
    ]
    damaged = {
        "not_json": [
            *(
                "",
                text[:-1],
                text[:20],
                text.replace('",', '"'),
                text.replace('"', "'"),
                f"Sure! {text}",
                "[20, 3]",
            ),
            *(text.replace("is red", 'is "red"'), "20", "score = [20, 3]", whole("[20, 3"), whole("20, 3")),
            *(text.replace('"', "”"), whole("[二十, 3]"), "I cannot."),
        ],
        "out_of_range": [whole(each) for each in ([26, 3], [20, -1], [2500, 3], [20, 25.1], [1e9, 1])],
        "not_a_number": [
            whole(each)
            for each in ("20", '"20, 3"', '["20", 3]', "[true, 3]", "[null, 3]", "[[20], 3]", "[NaN, 3]")
        ],
        "missing_output": [whole("[]"), whole("[20]"), '{"reasoning": "x"}', '{"score": [20, 3]}', "{}"],
        "unknown_output": [
            *(whole("[20, 3, 4]"), text.replace("reasoning", "reason"), text.replace("score", "scores")),
            text.replace("reasoning", "理由"),
        ],
        "trailing_text": [f"{text}\nI hope this helps.", f"{text} 希望有帮助。"],
        "several_objects": [f"{text}\n{text}"],
        "repeated_output": [whole("[20, 3], " + '"score": [1, 2]')],
    }
    return Format("editscore", 0, good, damaged)


def visualquality(rubric: str, before: str) -> Format:
    """A grade with decimals in a tag, behind *before*."""
    grades = (*DECIMALS, 1.01, 2.5, 4.99, 3.14)
    good = [
        Good(f"{before}<answer>{pad}{grade}{pad}</answer>", {"quality": grade})
        for grade in grades
        for pad in ("", " ")
    ]
    good.append(Good(f"{before}\n\n<answer>\n4\n</answer>\n", {"quality": 4}))
    end = "<answer>4</answer>"
    damaged = {
        "not_a_number": [
            f"{before}<answer>{words}</answer>" for words in (*NO_NUMBERS, "Score: 4", "4 3", "3-4")
        ],
        "out_of_range": [f"{before}<answer>{grade}</answer>" for grade in (*OUTSIDE, "85")],
        "missing_mark": [
            "",
            "4",
            f"{before}4",
            f"{before}<answer>4",
            f"{before}4</answer>",
            f"{before}<score>4",
        ],
        "trailing_text": [f"{before}{end}.", f"{before}{REASONS[1]}{end}", f"{before}{end}\n{REASONS[0]}"],
        "repeated_mark": [
            f"{before}{end}{end}",
            f"{before}<answer>{end}",
            f"{before}<answer>5</answer> {end}",
        ],
    }
    return Format(rubric, 0, good, damaged)


def videoscore2() -> Format:
    """A film: reasons, and three lines, numbered or with ; and ,"""
    names = ("quality", "alignment", "physics")

    def lines(grades: tuple[object, ...], numbers: bool = False, ends: tuple[str, str] = ("", "")) -> str:
        titles = ("visual quality", "text-to-video alignment", "physical/common-sense consistency")
        parts = zip(titles, grades, (*ends, ""), strict=True)
        return "\n".join(
            f"{f'({place}) ' if numbers else ''}{title}: {grade}{end}"
            for place, (title, grade, end) in enumerate(parts, 1)
        )

    headed = "Visual quality: the film is sharp.\n(2) text-to-video alignment: a dog runs."
    good = [
        Good(f"<think>{reason}</think>\n\n{lines(each, numbers, ends)}", dict(zip(names, each, strict=True)))
        for each in GRADES
        for reason in (*REASONS[:2], headed)
        for numbers, ends in ((True, ("", "")), (False, ("; ", ",")))
    ]
    start, whole = f"<think>{REASONS[1]}</think>\n", lines((4, 3, 2))
    parts = whole.split("\n")
    damaged = {
        "missing_mark": ["", whole, f"<think>{REASONS[0]}", f"<think>{whole}", REASONS[1]],
        "repeated_mark": [f"{start}{start}{whole}", f"{start}{whole}</think>"],
        "not_a_number": [f"{start}{lines((4, words, 2))}" for words in (*NO_NUMBERS, "3.5", "3;;", start)][
            :-1
        ],
        "out_of_range": [f"{start}{lines((4, 3, grade))}" for grade in ("0", "6", "45", "-3")],
        "missing_output": [
            start,
            f"{start}{parts[0]}",
            start + "\n".join(parts[:2]),
            start + "\n".join(parts[1:]),
        ],
        "repeated_output": [f"{start}{whole}\n{parts[2]}", f"{start}{whole}\n{whole}"],
        "trailing_text": [f"{start}{whole}\n{REASONS[0]}", f"{start}{whole}\nOverall: 3"],
        "unknown_output": [
            *(f"{start}Scores\n{whole}", start + whole.replace("visual quality", "视觉质量")),
            *(
                start + whole.replace(":", "："),
                start + f"(2) {whole}",
                start + f"1. {whole}",
                f"{start}4, 3, 2",
            ),
            start + whole.replace("physical/common-sense", "physical"),
        ],
    }
    return Format("videoscore2", 0, good, damaged)


def formats() -> Iterator[Format]:
    """All formats."""
    yield from (unifiedreward(), unifiedreward_pair(), unifiedreward_2(), unifiedreward_2_pair())
    yield from (unifiedreward_think(), editscore(), videoscore2())
    yield visualquality("visualquality_r1", f"<think>{REASONS[1]}</think>")
    yield visualquality("visualquality_r1_direct", "")
