"""
The numbers of calls by other code than the service's: that of transformers, or recorded ones.

A reference takes a checkpoint and returns the function that takes one call.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer
from transformers import (
    AutoConfig,
    AutoImageProcessor,
    AutoModel,
    AutoModelForImageClassification,
    AutoModelForImageTextToText,
    AutoModelForSequenceClassification,
    AutoProcessor,
    AutoTokenizer,
    BlipForQuestionAnswering,
    BlipImageProcessorPil,
    T5ForConditionalGeneration,
)

from models.core.calls import ContrastCall, LabelCall
from models.families.blip_itm.model import KINDS as MATCHERS
from models.families.clip_flant5.tokens import T5Tokenizer
from models.families.instructblip.model import NETWORKS
from models.images.image import Image
from tests.support.artifact_checkpoints import network as artifact_network
from tests.support.blip_checkpoints import DEC, PIECES
from tests.support.image_classifiers import LABELS, UNSAFE

Reference = Callable[[Path], Callable[[Any], Sequence[float] | None]]


def recorded(calls: Sequence[Any], rows: Sequence[Sequence[float]]) -> Reference:
    """The *rows* of numbers that the released code gave the *calls*."""
    found = {id(call): row for call, row in zip(calls, rows, strict=True)}
    return lambda directory: lambda call: found[id(call)]


def matching(directory):
    """The logit of a match minus that of none; or the cosine, of BLIP-2's queries the largest, and both."""
    kind = AutoConfig.from_pretrained(directory).model_type
    network = MATCHERS[kind].network.from_pretrained(directory).eval()
    words, pixels = (each.from_pretrained(directory) for each in (AutoTokenizer, BlipImageProcessorPil))
    head, output = ("use_itm_head", "itm_score")
    if kind == "blip-2":
        head, output = ("use_image_text_matching_head", "logits_per_image")

    @torch.inference_mode()
    def of(call):
        text = words(call.prompt, return_tensors="pt")
        inputs = {"input_ids": text.input_ids, "attention_mask": text.attention_mask}
        inputs["pixel_values"] = pixels(images=call.image.rgb, return_tensors="pt").pixel_values
        none, match = network(**inputs, **{head: True})[output][0].tolist()
        if not isinstance(call, ContrastCall):
            return [match - none]
        return [network(**inputs, **{head: False})[output].item(), none, match]

    return of


def blip_answers(directory):
    """The log-probabilities of an answer's tokens, and of yes and no."""
    network = BlipForQuestionAnswering.from_pretrained(directory).eval()
    words, processor = (each.from_pretrained(directory) for each in (AutoTokenizer, BlipImageProcessorPil))

    @torch.inference_mode()
    def log_prob(call, answer):
        text = words(call.question, return_tensors="pt")
        text["input_ids"][0, 0] = DEC + 1  # [ENC], as in BLIP's released code
        pixels = processor(images=call.image.rgb, return_tensors="pt").pixel_values
        labels = torch.tensor([[DEC, *answer]])
        # the loss is the mean over the answer's tokens
        return -network(**text, pixel_values=pixels, labels=labels).loss.item() * len(answer)

    def of(call):
        answer = words(call.answer).input_ids[1:]
        sums = [log_prob(call, answer[: count + 1]) for count in range(len(answer))]
        each = [after - before for before, after in zip([0, *sums], sums, strict=False)]
        return each + [log_prob(call, words(word).input_ids[1:2]) for word in ("yes", "no")]

    return of


def flant5_answers(directory):
    """The log-probabilities of an answer's tokens, and of yes and no."""
    kind = AutoConfig.from_pretrained(directory).model_type
    network = NETWORKS[kind].from_pretrained(directory).eval()
    processor = BlipImageProcessorPil.from_pretrained(directory)
    words = T5Tokenizer(PIECES)

    @torch.inference_mode()
    def of(call):
        text = torch.tensor([[network.config.image_token_id] * 4 + words.encode(call.question)])
        answer = words.encode(call.answer)
        inputs = {"pixel_values": processor(images=call.image.rgb, return_tensors="pt").pixel_values}
        inputs |= {"input_ids": text, "labels": torch.tensor([answer])}
        if kind == "instructblip":
            instruction = AutoTokenizer.from_pretrained(directory / "qformer_tokenizer")
            read = instruction(call.question, return_tensors="pt")
            inputs |= {"qformer_input_ids": read.input_ids, "qformer_attention_mask": read.attention_mask}
        log_probs = network(**inputs).logits[0].log_softmax(-1)
        first = [words.encode(word)[0] for word in ("yes", "no")]
        return [*log_probs[range(len(answer)), answer].tolist(), *log_probs[0, first].tolist()]

    return of


class QwenReference:
    """A Qwen's own processor and forward pass; special tokens in a text are not text to it."""

    def __init__(self, directory):
        self.processor = AutoProcessor.from_pretrained(directory)
        self.network = AutoModelForImageTextToText.from_pretrained(directory, dtype=torch.float32).eval()

    def inputs(self, call):
        """Those of a chat."""
        shown = (*getattr(call, "before", ()), call.image, call.question)
        content = [
            {"type": "image", "image": each.rgb}
            if isinstance(each, Image)
            else {"type": "text", "text": each}
            for each in shown
        ]
        return self.processor.apply_chat_template(
            [{"role": "user", "content": content}],
            tokenize=True,
            add_generation_prompt=True,
            return_dict=True,
            return_tensors="pt",
        )

    @torch.inference_mode()
    def log_probs(self, call, label):
        """Those of a label's tokens, each given the ones before."""
        inputs = self.inputs(call)
        added = self.processor.tokenizer(label, return_tensors="pt", add_special_tokens=False).input_ids
        inputs["input_ids"] = torch.cat([inputs["input_ids"], added], 1)
        inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
        kinds = inputs["mm_token_type_ids"]
        inputs["mm_token_type_ids"] = torch.cat([kinds, torch.zeros_like(added)], 1)
        logits = self.network(**inputs).logits[0, -1 - added.shape[1] : -1].log_softmax(-1)
        return logits.gather(1, added[0][:, None])[:, 0].tolist()

    def __call__(self, call):
        """The log-probabilities of labels or of an answer and of Yes and No."""
        if "<|" in call.question:
            return None
        labels = call.labels if isinstance(call, LabelCall) else (call.answer, "Yes", "No")
        return [number for label in labels for number in self.log_probs(call, label)]


def entailment(directory):
    """The share of the label "entailment", the second one."""
    network = AutoModelForSequenceClassification.from_pretrained(directory).eval()
    words = Tokenizer.from_file(str(directory / "tokenizer.json"))

    @torch.inference_mode()
    def of(call):
        text = words.encode(call.premise, call.hypothesis)
        inputs = {"input_ids": torch.tensor([text.ids])}
        if network.config.type_vocab_size > 1:
            assert {0, 1} == set(text.type_ids)
            inputs["token_type_ids"] = torch.tensor([text.type_ids])
        return [network(**inputs).logits.softmax(-1)[0, 1].item()]

    return of


def written_entailment(directory):
    """The probability of "1" as the first token after `premise: … hypothesis: …`, as TRUE was taught."""
    network = T5ForConditionalGeneration.from_pretrained(directory).eval()
    words = Tokenizer.from_file(str(directory / "tokenizer.json"))

    @torch.inference_mode()
    def of(call):
        text = words.encode(f"premise: {call.premise} hypothesis: {call.hypothesis}").ids[1:]  # without <s>
        inputs = {"input_ids": torch.tensor([text]), "decoder_input_ids": torch.tensor([[0]])}
        return [network(**inputs).logits.softmax(-1)[0, 0, words.encode("1").ids[1]].item()]

    return of


def mean_state(directory):
    """The mean of a text's last states, at length 1."""
    network = AutoModel.from_pretrained(directory).eval()
    words = Tokenizer.from_file(str(directory / "tokenizer.json"))

    @torch.inference_mode()
    def of(call):
        ids = torch.tensor([words.encode(call.text).ids])
        mean = network(input_ids=ids).last_hidden_state[0].mean(0)
        return (mean / mean.norm()).tolist()

    return of


def label_shares(directory):
    """The probabilities of all labels of a picture."""
    network = AutoModelForImageClassification.from_pretrained(directory).eval()
    processor = AutoImageProcessor.from_pretrained(directory)

    @torch.inference_mode()
    def of(picture):
        return network(**processor(images=picture, return_tensors="pt")).logits[0].softmax(-1).tolist()

    return of


def unsafe_shares(directory):
    """One minus the probabilities of the unsafe labels, and each of them."""
    shares_of = label_shares(directory)

    def of(call):
        shares = dict(zip(LABELS, shares_of(call.image.rgb), strict=True))
        each = [shares[label] for label in UNSAFE]
        return [1 - sum(each), *each]

    return of


MEAN, DEVIATION = np.array([123.675, 116.28, 103.53]), np.array([58.395, 57.12, 57.375])


def artifact_ratio(directory):
    """The share of pixels of artifacts: pictures are stretched and normalised as by the released code."""
    network = artifact_network()

    @torch.inference_mode()
    def of(call):
        pixels = (np.array(call.image.rgb.resize((512, 512))) - MEAN) / DEVIATION
        logits = network(torch.tensor(pixels.transpose(2, 0, 1), dtype=torch.float32)[None]).logits
        return [logits.argmax(1).float().mean().item()]

    return of
