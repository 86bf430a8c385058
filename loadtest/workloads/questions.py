"""Eight questions about a picture, for the service and for the loop it is compared with."""

COLOURS = ("red", "green", "blue", "yellow")
TEXTS = [f"Is there a {colour} {shape}?" for colour in COLOURS for shape in ("circle", "square")]
QUESTIONS = [f"{text} Please answer yes or no." for text in TEXTS]  # in dsg's template
SET = [{"id": n, "kind": "entity", "text": text, "depends_on": []} for n, text in enumerate(TEXTS, 1)]
