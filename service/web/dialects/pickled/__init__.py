"""
The dialects whose bodies are pickles: read opcode by opcode, and never unpickled.

Set `url` in flow_grpo's `unifiedreward_score_remote`, `geneval_score` and `deqa_score_remote`, and in
ddpo-pytorch's `llava_bertscore`; `PICKSCORE_URL` and the like, or `GEN_EVAL_URL`, for deepgen_rl;
`server_url` of verl-omni's HTTP scorer.

The body is a pickled dict, `{"images": [bytes, …], "prompts": [str, …]}`, and the response one with the
scores as `scores` and `outputs`, for ddpo-pytorch as `recall`, `precision` and `f1`. A path selects another
metric than that of the settings: `http://127.0.0.1:18086/clipscore`. Pictures without prompts, as from DeQA's
function, are scored by `aesthetic` (LAION's, not DeQA's), if it is served and no metric is named.

**No code of a pickle is run**: only plain values and NumPy's texts are read (ADR 0018). Rejected are arrays
of numbers, tensors and PIL images (send the bytes of a JPEG or PNG file), LLaVA's questions (send `prompts`),
keys other than `str`, and texts of more than 64 KiB.

An error is a pickled dict with `error` and `code`, of which flow_grpo only shows a missing key; the service's
log has the reason. After a 4xx all clients fail. After a 503 or 500 flow_grpo and ddpo-pytorch wait and
retry, verl-omni tries three times, and deepgen_rl fails.

One broken picture fails its request. With its default, `required: false`, verl-omni treats a failed request
as a score of 0. **Set `required: true`.** Its `pickscore_http_client` always does: use the HTTP scorer.

**GenEval**

With `meta_datas`, GenEval's metadata of each picture (`{"tag", "include", "exclude", "prompt"}`), a request
uses the metric `geneval` unless its path names another one. The response has, for each picture:

* `scores`: the mean over counts, colours and positions, which may be below 0 (`reward` in the details).
* `rewards`: 1 if it is correct by GenEval's rules. `strict_rewards`: 1 if it has exactly the wanted number of
  objects, with their colours and positions, whatever `exclude` says (`strict`).
* `group_rewards`, `group_strict_rewards`: the same by task, with -10 for pictures of another task.

`only_strict` has no effect. Set deepgen_rl's `GEN_EVAL_WORKERS` to 1; with more, its requests are rejected.
"""

from service.web.dialects.pickled.app import dialect

__all__ = ["dialect"]
