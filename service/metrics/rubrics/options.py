"""Options of metrics that grade by rubrics: the rubric, by name or as a table, and texts of the item."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from service.core.fields import Name, Prompt, few
from service.core.settings.tree import toml_files
from service.metrics.rubrics.grading import Rating
from service.metrics.rubrics.rubric import FRAMES, Rubric, rubrics_of
from service.metrics.rubrics.tables import NONE_ABSENT, TableOptions, with_tables

MAX_DATA = 16  # texts of an item's data

RUBRICS = rubrics_of(toml_files([Path(__file__).parent]))


class JudgeOptions(TableOptions):
    """
    Options of grades by a rubric.

    Attributes:
        rubric: its name, also as `NAME@DIGEST`; a table, if the settings allow it.
        labels: of grades that are answered by one token: digits, of which 5 is the best, or letters, of
            which A is.
        data: texts of the item by name, for the placeholders `{data.NAME}` of a rubric.
    """

    option: ClassVar[str] = "rubric"
    kind: ClassVar[type] = Rubric
    tables: ClassVar[Mapping[str, Rubric]] = RUBRICS

    rubric: str = "semantic_consistency"
    labels: Literal["1-5", "A-E"] = "1-5"
    data: Annotated[dict[Name, Prompt], Field(max_length=MAX_DATA), few(MAX_DATA)] = Field({})

    @property
    def chosen(self) -> Rubric:
        """The rubric."""
        rubric: Rubric = self.table
        return rubric

    @property
    def whole(self) -> bool:
        """Whether a call of the rubric gets all frames."""
        return any(FRAMES in call.images for call in self.chosen.calls)

    @property
    def rating(self) -> Rating:
        """How items are graded."""
        return Rating(self.chosen, self.name, self.labels == "A-E", self.data)

    def overruled(self) -> dict[str, str]:
        """Return the options without effect: not every rubric has grades that are answered by one token."""
        calls = self.chosen.calls
        by_label = [call for call in calls if self.chosen.read != "written" or call.form.form == "token"]
        graded = any(output.form == "grade" for call in by_label for output in call.outputs.values())
        found = super().overruled()
        if self.whole:
            found = dict.fromkeys(found, "rubric")
        return found | ({} if graded else {"labels": "rubric"})


def options_with(
    rubrics: Mapping[str, Rubric], inline: bool, default: str, absent: Mapping[str, str] = NONE_ABSENT
) -> type[JudgeOptions]:
    """Return the options where there are these rubrics, and those *absent* for a reason."""
    return with_tables(JudgeOptions, rubrics, default, inline=inline, absent=absent)
