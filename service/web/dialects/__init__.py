"""
Other people's wire formats on the same engine, each off unless the settings list it.

```toml
[models.vqa]
family = "clip_flant5"
checkpoint = "demo:clip_flant5"

[dialects]
enabled = ["flow_factory", "unirl", "cosmos_rl", "openrlhf", "slime", "rerank", "decisions", "chat_judge"]
port = 8001         # without keys
pickle_port = 18086 # without keys
metric = "vqascore"

[dialects.options.vqascore]
output = "logit"
```

Trainers usually need log-odds, as above, for all dialects.


* **The scores are those of `POST /score`**, unchanged: give a metric whose lower scores are better a negative
  weight in a composite.
* **Requests are bulk, and wait instead of being rejected**, for room in a full queue and for scores with a
  temporary error, until the dialect's deadline: a rejection may end a training. At most 1,024 requests with
  16,384 pictures wait.
* **A trainer's request** may have `dialects.max_pictures`, in `server.body_limit_mb`: 64 MiB are some 500
  JPEGs of 512².
* **A missing score is never a 0.** It is an error of its picture if the format has such errors, else of the
  request.
* **Temporary failures return 503 with `Retry-After`**, and no other response has that header.
* **Warnings** are logged and counted. Pictures are rotated if `images.orient` is `exif`.
* **Keys apply on the main port.** The two ports of the dialects need none, and are bound to 127.0.0.1 unless
  `dialects.host` is set: restrict them to the trainer's machines.
"""
