"""
T5's encoder and decoder for inference (Raffel et al. 2020, section 2.1; the gated variant of 1.1).

The residual stream, norms, softmax and their statistics are float32; matrix products run in the weights'
dtype. Attention scores are not divided by sqrt(d_kv): T5 has that in its initialisation.
"""

import math
from functools import lru_cache, partial

import torch
from torch.nn import functional as F
from transformers import T5Config


class Weights:
    """
    Tensors by name, each released when it is taken.

    So a network built from them needs no memory for a second copy, even if it joins several tensors into one
    or converts them.

    Args:
        tensors: by name; those that are taken are removed.
        device, dtype: of the taken tensors.
    """

    def __init__(self, tensors: dict[str, torch.Tensor], *, device: torch.device, dtype: torch.dtype) -> None:
        self._tensors = tensors
        self.device, self.dtype = device, dtype

    def take(self, *names: str, dtype: torch.dtype | None = None) -> torch.Tensor:
        """Return the tensors *names*, joined along the first dimension."""
        parts = [self._tensors.pop(name).to(self.device, dtype or self.dtype) for name in names]
        return parts[0] if len(parts) == 1 else torch.cat(parts)


CACHED_LENGTHS = 64  # their position biases are cached


class RmsNorm:
    """Root mean square norm: float32 to the weights' dtype."""

    def __init__(self, weights: Weights, name: str, config: T5Config) -> None:
        self._scale = weights.take(f"{name}.weight", dtype=torch.float32)
        self._eps, self._dtype = config.layer_norm_epsilon, weights.dtype

    def __call__(self, states: torch.Tensor) -> torch.Tensor:
        return F.rms_norm(states, self._scale.shape, self._scale, self._eps).to(self._dtype)


class PositionBias:
    """T5's relative position bias, per head and bucket of distances, equal for all layers."""

    def __init__(self, weights: Weights, stack: str, config: T5Config, *, bidirectional: bool) -> None:
        self._table = weights.take(f"{stack}.block.0.layer.0.SelfAttention.relative_attention_bias.weight")
        # Not a method: a cycle would hold the tensors until the next garbage collection.
        made = partial(bias_line, config.relative_attention_max_distance, bidirectional)
        self._line = lru_cache(CACHED_LENGTHS)(made)

    def __call__(self, length: int) -> torch.Tensor:
        """Return the bias as a line (heads, 2 length - 1), by distance; the most negative one is first."""
        return self._line(self._table, length)


def bias_line(furthest: int, bidirectional: bool, table: torch.Tensor, length: int) -> torch.Tensor:
    """Return the bias (heads, 2 length - 1) of each distance, from the *table* (buckets, heads)."""
    distances = torch.arange(1 - length, length, device=table.device)
    buckets = bucket(distances, len(table), furthest, bidirectional)
    # Contiguous per head: fused kernels would copy any other mask in every layer.
    return table.t().index_select(1, buckets)


def square(line: torch.Tensor) -> torch.Tensor:
    """Return the bias (heads, length, length) of each query for each key, from a line of `PositionBias`."""
    # Row q of the square is the line from distance -q on: windows of the line, the last one first.
    return line.unfold(1, (line.shape[1] + 1) // 2, 1).flip(1)


def bucket(distances: torch.Tensor, buckets: int, furthest: int, bidirectional: bool) -> torch.Tensor:
    """
    Return the bucket of each distance (key minus query): one each for the near half, then logarithmic.

    Computed in float32 step by step like the reference, since rounding matters at the edges.
    """
    buckets = buckets // 2 if bidirectional else buckets
    far = distances.abs() if bidirectional else (-distances).clamp(min=0)
    near = buckets // 2
    steps = (far.float() / near).log() / math.log(furthest / near) * (buckets - near)
    # The logarithm of 0 is -inf, which cannot become an integer.
    found = torch.where(far < near, far, (near + steps.clamp(min=0).long()).clamp(max=buckets - 1))
    return found + buckets * (distances > 0) if bidirectional else found


class SelfAttention:
    """Self-attention, with the norm before and the residual after."""

    def __init__(self, weights: Weights, name: str, config: T5Config) -> None:
        self._heads = config.num_heads
        self._qkv = weights.take(*(f"{name}.SelfAttention.{part}.weight" for part in "qkv"))
        self._out = weights.take(f"{name}.SelfAttention.o.weight")
        self._norm = RmsNorm(weights, f"{name}.layer_norm", config)

    def __call__(self, states: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        """Attend within *states* (n, length, width), float32, with *bias* (n or 1, heads, length, length)."""
        rows, length, _ = states.shape
        qkv = F.linear(self._norm(states), self._qkv).view(rows, length, 3, self._heads, -1)
        query, key, value = qkv.permute(2, 0, 3, 1, 4)
        bias = bias.expand(rows, -1, -1, -1)
        seen = F.scaled_dot_product_attention(query, key, value, attn_mask=bias, scale=1.0)
        return states + F.linear(seen.transpose(1, 2).flatten(2), self._out)


class CrossAttention:
    """Attention of answers to the encoded question, with the norm before and the residual after."""

    def __init__(self, weights: Weights, name: str, config: T5Config) -> None:
        self._heads, self._head = config.num_heads, config.d_kv
        module = f"{name}.EncDecAttention"
        self._query, self._key, self._value, self._out = (
            weights.take(f"{module}.{part}.weight") for part in "qkvo"
        )
        self._norm = RmsNorm(weights, f"{name}.layer_norm", config)

    def __call__(
        self, answers: torch.Tensor, states: torch.Tensor, padding: torch.Tensor, few: bool
    ) -> torch.Tensor:
        """
        Attend from *answers* (n, tokens, width), float32, to *states* (n, length, width) at *padding* (n,
        length) 0.

        Keys and values of every state are most of a decoder's work.  For *few* tokens they are not computed:
        q . (K s) = (K^T q) . s, so the query is projected into the space of the states, and the attended
        states by V. That is less work up to d_kv tokens.
        """
        rows, tokens, _ = answers.shape
        query = F.linear(self._norm(answers), self._query).view(rows, tokens, self._heads, self._head)
        attend = self._few if few else self._many
        return answers + F.linear(attend(query, states, padding), self._out)

    def _few(self, query: torch.Tensor, states: torch.Tensor, padding: torch.Tensor) -> torch.Tensor:
        rows, tokens, heads, head = query.shape
        width = states.shape[-1]
        query = query.permute(2, 0, 1, 3).reshape(heads, rows * tokens, head)
        query = query @ self._key.view(heads, head, width)
        query = query.view(heads, rows, tokens, width).transpose(0, 1).reshape(rows, heads * tokens, width)
        scores = torch.baddbmm(padding[:, None], query, states.transpose(1, 2))
        seen = scores.softmax(-1, dtype=torch.float32).to(states.dtype) @ states
        seen = seen.view(rows, heads, tokens, width).transpose(0, 1).reshape(heads, rows * tokens, width)
        seen = seen @ self._value.view(heads, head, width).transpose(1, 2)
        return seen.view(heads, rows, tokens, head).permute(1, 2, 0, 3).reshape(rows, tokens, heads * head)

    def _many(self, query: torch.Tensor, states: torch.Tensor, padding: torch.Tensor) -> torch.Tensor:
        rows, tokens, heads, head = query.shape
        key, value = (
            F.linear(states, weight).view(rows, -1, heads, head).transpose(1, 2)
            for weight in (self._key, self._value)
        )
        mask = padding[:, None, None].expand(-1, heads, tokens, -1)
        seen = F.scaled_dot_product_attention(query.transpose(1, 2), key, value, attn_mask=mask, scale=1.0)
        return seen.transpose(1, 2).flatten(2)


class FeedForward:
    """gelu(a) * b between two projections, with the norm before and the residual after."""

    def __init__(self, weights: Weights, name: str, config: T5Config) -> None:
        module = f"{name}.DenseReluDense"
        self._in = weights.take(f"{module}.wi_0.weight", f"{module}.wi_1.weight")
        self._out = weights.take(f"{module}.wo.weight")
        self._norm = RmsNorm(weights, f"{name}.layer_norm", config)

    def __call__(self, states: torch.Tensor) -> torch.Tensor:
        gate, value = F.linear(self._norm(states), self._in).chunk(2, -1)
        return states + F.linear(gelu_new(gate).mul_(value), self._out)


def gelu_new(x: torch.Tensor) -> torch.Tensor:
    """Compute GELU by its tanh approximation: x / 2 (1 + tanh(u)), u = sqrt(2 / pi) (x + 0.044715 x^3)."""
    if x.is_cuda or x.dtype != torch.float32:
        return F.gelu(x, approximate="tanh")
    # x * sigmoid(2u) is equal and takes a CPU a third of the time.
    twice, x = 2 * math.sqrt(2 / math.pi), x.contiguous()
    return (x * x).mul_(0.044715 * twice).add_(twice).mul_(x).sigmoid_().mul_(x)


class EncoderBlock:
    """Self-attention and feed-forward."""

    def __init__(self, weights: Weights, name: str, config: T5Config) -> None:
        self._attend = SelfAttention(weights, f"{name}.layer.0", config)
        self._feed = FeedForward(weights, f"{name}.layer.1", config)

    def __call__(self, states: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return self._feed(self._attend(states, bias))


class Encoder:
    """Embeddings to states."""

    def __init__(self, weights: Weights, name: str, config: T5Config) -> None:
        self._bias = PositionBias(weights, name, config, bidirectional=True)
        blocks = [f"{name}.block.{number}" for number in range(config.num_layers)]
        self._blocks = [EncoderBlock(weights, block, config) for block in blocks]
        self._norm = RmsNorm(weights, f"{name}.final_layer_norm", config)
        self.run = EncoderBlock.__call__  # one function for all blocks, so that it is compiled once
        self.stack = Encoder.run_blocks

    def __call__(self, states: torch.Tensor, padding: torch.Tensor) -> torch.Tensor:
        """Encode *states* (n, length, width), float32, with *padding* (n, length), 0 or -inf."""
        return self.stack(self, states, padding, self._bias(states.shape[1]))

    def run_blocks(self, states: torch.Tensor, padding: torch.Tensor, line: torch.Tensor) -> torch.Tensor:
        """Encode with a *line* of the bias."""
        bias = square(line) + padding[:, None, None]
        for block in self._blocks:
            states = self.run(block, states, bias)
        return self._norm(states)


class DecoderBlock:
    """Self-attention of each answer, cross-attention, feed-forward."""

    def __init__(self, weights: Weights, name: str, config: T5Config) -> None:
        self._attend = SelfAttention(weights, f"{name}.layer.0", config)
        self._read = CrossAttention(weights, f"{name}.layer.1", config)
        self._feed = FeedForward(weights, f"{name}.layer.2", config)

    def __call__(
        self,
        answers: torch.Tensor,
        bias: torch.Tensor,
        states: torch.Tensor,
        padding: torch.Tensor,
        few: bool,
    ) -> torch.Tensor:
        rows, tokens, width = answers.shape
        answers = self._attend(answers, bias).view(states.shape[0], -1, width)
        return self._feed(self._read(answers, states, padding, few)).view(rows, tokens, width)


class Decoder:
    """Teacher-forced decoder, up to the input of the head."""

    def __init__(self, weights: Weights, name: str, config: T5Config) -> None:
        self._bias = PositionBias(weights, name, config, bidirectional=False)
        blocks = [f"{name}.block.{number}" for number in range(config.num_decoder_layers)]
        self._blocks = [DecoderBlock(weights, block, config) for block in blocks]
        self._norm = RmsNorm(weights, f"{name}.final_layer_norm", config)
        self._head = config.d_kv
        self.run = DecoderBlock.__call__
        self.stack = Decoder.run_blocks

    def __call__(self, answers: torch.Tensor, states: torch.Tensor, padding: torch.Tensor) -> torch.Tensor:
        """
        Decode the answers to n questions.

        Args:
            answers: embeddings (n * answers of a question, tokens, width), float32, padded on the right.
            states: the encoder's (n, length, width), once for all answers to a question.
            padding: (n, length), 0 or -inf.

        Returns:
            (n * answers of a question, tokens, width).
        """
        return self.stack(self, answers, states, padding, self._bias(answers.shape[1]))

    def run_blocks(
        self, answers: torch.Tensor, states: torch.Tensor, padding: torch.Tensor, line: torch.Tensor
    ) -> torch.Tensor:
        """Decode with a *line* of the bias."""
        tokens = answers.shape[1]
        later = torch.full((tokens, tokens), -math.inf, device=answers.device).triu(1)
        bias = (square(line) + later).to(states.dtype)[None]
        together = len(answers) // len(states) * tokens  # all answers to a question have so many
        few = together < self._head
        for block in self._blocks:
            answers = self.run(block, answers, bias, states, padding, few)
        return self._norm(answers)
