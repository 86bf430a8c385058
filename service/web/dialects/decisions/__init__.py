"""
Decision endpoints: typed questions about a picture, in the bodies of OpenAI, SGLang and vLLM.

Typed questions about a picture, with probabilities. `model` is the name of a VQA model in the settings, by
default the first.

* `POST /v1/decisions`: OpenAI's body (`predicate`, `choice`, `score`), or SGLang's (`yes_no`, `choice`,
  `score`), up to 400 questions.
* `POST /v1/systemone`: vLLM's and SGLang's body (`noul`, `choice`, `score`), up to 64 questions.

* An answer to `predicate`, `yes_no` or `noul` is P("Yes") of "Yes" and "No", for "Is the following true? …
  Please answer yes or no."
* One to `choice` is the probability of each option's text, divided by their sum; a VLM chooses by letter,
  among 26 at most.
* One to `score` is the probability of each level's letter, divided by their sum; the score is the mean
  level, from 0.

`label_mass`, or `x_label_mass`, is the probability of all options together. `confidence` is that of the
likeliest option, in vLLM's body over the whole vocabulary.

* **The texts are ours**, so probabilities differ from other servers'. SGLang's `temperature` (other than 1)
  and fields about its prompt format are rejected; `prompt_format_version` is 0.
* **`score` needs letters as single tokens.** Otherwise, as with the demo models, the request is 400; a
  `choice` works.
* **Exactly one picture** in the input, as base64, a `data:` URI, or a URL if allowed. The input's text is
  before each question.
* **Pictures in questions** (OpenAI's body): `instructions` as a list with `input_image` parts, up to three
  for a question and 64 different ones in all. The model sees the input's picture, then those; the input may
  have none if each question has its own. All options are then labels of one token, which takes a VLM behind
  a server; a `choice` has up to 26.
* **Limits**: 255 options of a `choice`, in SGLang's and vLLM's bodies 26; 10 levels of a `score`; 256
  messages, and 256 parts of each; 16,000 characters for a question with the text of the input, and 512,000
  for all questions of a request.
* **All questions are answered, or the request fails**, also if one is too long for the model; the error
  names it. Each question counts as one pair in a quota.
"""

from service.web.dialects.decisions.routes import dialect

__all__ = ["dialect"]
