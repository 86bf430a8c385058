"""The sections of the settings about scores and decisions: rubrics, checklists, question styles, policies."""

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from models.core.settings import Section
from service.core.settings import Given, SettingsError
from service.core.settings.sections import MAX_TIMEOUT_MS


class JudgeSettings(Section):
    """Rubrics by which vision-language models grade."""

    rubrics: list[Path] = Field(
        [], description="Folders of rubrics: each file NAME.toml is one, read at the start."
    )
    prompts: Given[Path] = Field(
        Path("prompts"), description="Folder of the instructions that were copied from models' releases."
    )
    allow_inline: bool = Field(
        False,
        description="Requests may bring a rubric of their own, of at most 64 KiB, 8 calls and 16 outputs. Of "
        "any rubric, the instructions of a call have at most 65,536 characters with the item's "
        "texts filled in.",
    )


class ChecklistSettings(Section):
    """Fixed yes/no questions with weights."""

    folders: list[Path] = Field(
        [], description="Folders of checklists: each file NAME.toml is one, read at the start."
    )
    allow_inline: bool = Field(
        False, description="Requests may bring a checklist of their own, of at most 64 questions."
    )


Files = Path | dict[str, Path]
StyleName = Annotated[str, StringConstraints(pattern="^[a-z][a-z0-9_]{0,63}$")]


class StyleSettings(Section):
    r"""
    A question style with your instructions, or a paper's, for a metric's option `style` and for `POST
    /questions`.

    ```text
    [questions.styles.tifa_released]
    parser = "tifa_lines"
    instructions = "/etc/scoregate/tifa.txt"
    ```

    A request names it as `{"tifa": {"style": "tifa_released"}}`. A parser with several calls needs a table
    of files, by the call's name:

    * `dsg`, `tifa` (also for `soft_tifa`), `vq2`, `skills`, each for the metric of that name: one call; the
      files are the system message, and the answer is JSON, as for the service's own instructions.
    * `gecko`: the calls `keywords` and `questions`, likewise.
    * `dsg_lines` for `dsg`: the calls `tuples`, `questions` and `dependencies`. A user message has the
      files, `input: PROMPT`, the tuples and `output: `; the answer has a number, a bar and a text in each
      line.
    * `tifa_lines` for `tifa` and `soft_tifa`: one call. A user message has the files, `Description: PROMPT`
      and `Entities`; the answer has `About …:`, `Q:`, `Choices:` and `A:`.
    * `gecko_lines` for `gecko`: the calls `keywords` and `questions`. A user message has the files,
      `Description:`, the prompt and the labelled prompt; the answers are `{1}[word, type, 0.8]`, and then
      as for `tifa_lines`.
    * `skills_uids` for `skills`: one call; the files are the system message, and the answer is the released
      code's JSON.

    NAME is as for composites. After a change of the files, the parser or NAME, sets are written anew. A
    style cannot be combined with options that change the instructions: `dsg.generation`, `tifa.verify`,
    `skills.singular`. `tifa_lines` and `gecko_lines` drop repeated questions, and those without choices or
    whose answer is no choice.

    **The papers' instructions** are files of their repositories:

    * DSG, three calls. In a checkout of [j-min/DSG](https://github.com/j-min/DSG) with pandas and tqdm:

    ```text
    from dsg import query_utils as dsg
    for call, name in {"tuples": "TUPLE", "questions": "QUESTION", "dependencies": "DEPENDENCY"}.items():
        prompt = dsg.make_prompt(getattr(dsg, f"_{name}_EXAMPLES"), "", getattr(dsg, f"_{name}_PREAMBLE"))
        instructions, rest = prompt.split("\n\n", 1)
        open(f"{call}.txt", "w").write(instructions)
        open(f"{call}-examples.txt", "w").write(rest.rpartition("\n\ninput: ")[0])
    ```

    ```text
    [questions.styles.dsg_released]
    parser = "dsg_lines"
    instructions = { tuples = "tuples.txt", questions = "questions.txt", dependencies = "dependencies.txt" }

    [questions.styles.dsg_released.examples]
    tuples = "tuples-examples.txt"
    questions = "questions-examples.txt"
    dependencies = "dependencies-examples.txt"
    ```

    * TIFA: `instructions` is the variable `prompt` of `tifascore/question_gen.py` in
      [Yushi-Hu/tifa](https://github.com/Yushi-Hu/tifa), without the empty line and `Description: ` at its
      end.
    * Gecko: listings 3 and 4 of the paper's appendix C, each without the last `Description:`, are the files
      of `keywords` and `questions`.
    * Skill-aligned: `assets/tagging_prompts/prompt_v8.1.txt` of the archive that
      [abdo-eldesokey/skill-aligned-eval](https://github.com/abdo-eldesokey/skill-aligned-eval) links, for
      `skills_uids` (not tried here).
    * VQ² has no prompt for an LLM ([wysiwyr](https://github.com/yonatanbitton/wysiwyr), `vq2_zeroshot/`).
      Send its pairs as `question_set`.
    """

    parser: str = Field(description="The form of the messages and of the LLM's answers.")
    instructions: Files = Field(
        description="The file with the text before the prompt; for several calls a table of files."
    )
    examples: Files | None = Field(
        None, description="Likewise files with in-context examples, which follow the instructions."
    )


class QuestionSettings(Section):
    """
    How question sets are written.

    Attributes:
        styles: the profile's own styles, by name.
    """

    styles: dict[StyleName, StyleSettings] = Field({})


LoggedPrompts = Literal["text", "digest", "off"]


class DecisionSettings(Section):
    """
    Where decisions are logged, and what of them.

    The file has a table `decisions` with these columns:

    | column | value |
    |---|---|
    | `decision_id` | The id of the decision in the response. |
    | `time`, `milliseconds` | Seconds since 1970, and from the request's first byte to the decision. |
    | `request_id`, `caller_id`, `key_name` | The request, the caller's `id` of the item, the key's name. |
    | `policy`, `decision`, `reason`, `because` | The policy's id, the decision, and why. |
    | `scores`, `errors`, `skipped`, `models` | As JSON, by metric or model; `skipped` were not started. |
    | `picture` | SHA-256 of the bytes that were sent, not the picture. Empty if they were never read. |
    | `audit` | Of audited items: `selected`, then `complete` or `failed`. |
    | `prompt`, `prompt_digest` | By `prompts` the text, its SHA-256, or neither. |

    A process locks the file `NAME.lock` for its lifetime; another process with the same setting ends at its
    start with status 75. Rows are written on a thread of their own, four times a second. No decision waits
    for them or fails with them:

    | fault | effect |
    |---|---|
    | `kill -9` | The rows of the last second at most are lost; the file stays whole. |
    | a power cut | The last rows that were not on the disk are lost; the file stays whole. |
    | a full or broken disk | Rows of that time are lost. |
    | the file is deleted or moved | Rows are lost, and labels refused, until the next start. |
    | a slow disk, or a locked file | Up to 10,000 rows wait in memory; others are lost. |

    Lost rows are counted in `scoregate_decisions_unlogged_total`, and a warning in the log of the process
    says so, once a minute at most.
    """

    log: Given[str | None] = Field(
        None,
        pattern="^sqlite:///.",
        description="A SQLite file of this process alone, `sqlite:///PATH` (four slashes before an absolute "
        "path). Not set: nothing is logged.",
    )
    prompts: LoggedPrompts = Field(
        "text", description="Of prompts: the `text`, the SHA-256 of it (`digest`), or nothing (`off`)."
    )
    keep_days: int = Field(90, ge=1, le=36_500, description="Days until a row is deleted.")
    audit: float = Field(
        0.0,
        ge=0,
        le=1,
        description="The share of the items that get every metric of their policies after the answer.",
    )

    @model_validator(mode="after")
    def _log_of_audits(self) -> Self:
        if self.audit and not self.log:
            raise ValueError("audit needs decisions.log, where its scores are stored")
        return self

    @property
    def path(self) -> Path | None:
        """The SQLite file.  Raises `SettingsError` if the home directory is needed and unknown."""
        try:
            return Path(self.log.removeprefix("sqlite:///")).expanduser() if self.log else None
        except RuntimeError as exc:
            raise SettingsError(f"decisions.log: {self.log}: {exc}") from exc


PolicyName = Annotated[str, StringConstraints(pattern="^[a-z][a-z0-9_]{0,63}$")]


class PolicySettings(Section):
    """
    The conditions of one policy, by which `POST /decide` accepts, reviews or rejects.

    NAME is as for composites. The expressions have names of metrics and of outputs such as `judge.quality`,
    numbers, `+ - * /`, `min`, `max`, `mean`, `sqrt`, comparisons, `and`, `or`, `not`.

    The service does not start with an unknown metric, one without a model, or a comparison that is never true
    by the metric's range. It warns of a metric that is compared the wrong way round.
    """

    accept: str = Field(description="Condition of items that are accepted.")
    review: str | None = Field(None, description="Condition of those of the others that people review.")
    without_score: Literal["accept", "review", "reject"] = Field(
        "reject",
        description="The decision where the known scores do not decide: `accept`, `review` or `reject`.",
    )
    unreadable: Literal["review", "reject"] = Field(
        "reject", description="The decision about a picture that cannot be read: `review` or `reject`."
    )
    rank_by: str | None = Field(
        None, description="Formula that orders the accepted items of a group, the largest first."
    )
    timeout_ms: int = Field(
        1000, ge=1, le=MAX_TIMEOUT_MS, description="Time for a decision; a request may name a shorter one."
    )
    options: dict[str, dict[str, Any]] = Field(
        {}, description="Options by metric: `[policies.NAME.options.METRIC]`."
    )
