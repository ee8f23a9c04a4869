"""A Llama forward pass of its own for serving the small text model.

Why not transformers here: importing it takes twice as long as torch itself, which alone would break
the promise of a second start in seconds, and its per-token overhead is most of the decoding time of
a 135 M model. Same weights, same logits: a test compares both. Shapes: n rows, t tokens, d width.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from safetensors import safe_open

from agent.serving.cache import Cache
from agent.serving.manifest import CheckpointError, read_json
from agent.serving.processor import Encoded


class Weight:
    """A matrix (out, in) that multiplies fp32 rows (..., in) from the right.

    `exact` keeps fp32. Else long inputs use bf16 products, which recent CPUs have in hardware, and
    the few rows of decoding use packed fp16, which reads half the memory. Best of several on 2 busy
    cores, all matrices of 135 M weights: 250 rows 0.37 s instead of 0.97 s, 3 rows 10 ms instead of
    100 ms. Costs both copies in memory, and log-probs differ from fp32 by up to some hundredths.
    """

    def __init__(self, matrix: torch.Tensor, exact: bool) -> None:
        self.full = matrix if exact else matrix.to(torch.bfloat16)
        self.packed: Any = None
        if not exact and "fbgemm" in torch.backends.quantized.supported_engines:
            self.packed = torch.ops.quantized.linear_prepack_fp16(matrix, None)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        if self.packed is not None and x.shape[0] * x.shape[1] <= FEW_ROWS:
            result: torch.Tensor = torch.ops.quantized.linear_dynamic_fp16(x, self.packed)
            return result
        return F.linear(x.to(self.full.dtype), self.full).float()


FEW_ROWS = 16


@dataclass(slots=True)
class Layer:
    """One block; q, k and v in one matrix, gate and up in one: fewer, larger products."""

    norm_in: torch.Tensor
    qkv: Weight
    out: Weight
    norm_mlp: torch.Tensor
    gate_up: Weight
    down: Weight


@dataclass(slots=True)
class State:
    """Keys and values so far: per layer (n, key-value heads, room, head width); `length` is used."""

    keys: list[torch.Tensor]
    values: list[torch.Tensor]
    length: int


Attend = Callable[[int, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
"""(layer, queries, keys, values of the tokens read), each (n, heads, t, d) -> what is seen, alike."""


class Llama:
    """Weights of a LlamaForCausalLM folder, a LoRA adapter merged in, ready to decode."""

    def __init__(self, folder: Path, adapter: Path | None, *, exact: bool = False) -> None:
        config = read_json(folder / "config.json")
        rope = config.get("rope_parameters") or {
            "rope_theta": config.get("rope_theta", 10_000.0),
            "rope_type": "default",
        }
        if rope.get("rope_type", "default") != "default" or config.get("attention_bias"):
            raise CheckpointError(f"{folder}: only plain Llama weights are served this way")
        self.heads: int = config["num_attention_heads"]
        self.kv_heads: int = config["num_key_value_heads"]
        self.head_dim: int = config.get("head_dim") or config["hidden_size"] // self.heads
        self.eps: float = config["rms_norm_eps"]
        self.limit: int = config["max_position_embeddings"]
        self.exact = exact
        steps = torch.arange(0, self.head_dim, 2, dtype=torch.float32) / self.head_dim
        angles = torch.outer(
            torch.arange(self.limit, dtype=torch.float32), rope["rope_theta"] ** -steps
        )
        self.cos = torch.cat([angles, angles], -1).cos()
        self.sin = torch.cat([angles, angles], -1).sin()
        self._read(folder, adapter, config)

    def _read(self, folder: Path, adapter: Path | None, config: dict[str, Any]) -> None:
        change = {} if adapter is None else read_adapter(adapter)
        with safe_open(folder / "model.safetensors", "pt") as weights:

            def get(name: str) -> torch.Tensor:
                tensor = weights.get_tensor(f"{name}.weight")
                if (delta := change.pop(name, None)) is not None:
                    tensor = tensor.float() + delta
                return tensor.float()

            def pack(*names: str) -> Weight:
                return Weight(torch.cat([get(name) for name in names]), self.exact)

            embedding = get("model.embed_tokens")
            self.embedding = embedding if self.exact else embedding.to(torch.float16)
            tied = config.get("tie_word_embeddings")
            self.head = Weight(embedding if tied else get("lm_head"), self.exact)
            self.norm = get("model.norm")
            self.layers = []
            for n in range(config["num_hidden_layers"]):
                at = f"model.layers.{n}"
                self.layers.append(
                    Layer(
                        norm_in=get(f"{at}.input_layernorm"),
                        qkv=pack(*(f"{at}.self_attn.{x}_proj" for x in "qkv")),
                        out=pack(f"{at}.self_attn.o_proj"),
                        norm_mlp=get(f"{at}.post_attention_layernorm"),
                        gate_up=pack(f"{at}.mlp.gate_proj", f"{at}.mlp.up_proj"),
                        down=pack(f"{at}.mlp.down_proj"),
                    )
                )
        if change:
            raise CheckpointError(f"{adapter} changes {sorted(change)[0]}, which {folder} lacks")

    def start(self, prompt: Encoded, room: int) -> tuple[torch.Tensor, State]:
        """Read a prompt; return the logits (1, vocabulary) after it and the state for `room` more."""
        length = len(prompt.ids)
        shape = (1, self.kv_heads, length + room, self.head_dim)
        state = State(
            [torch.zeros(shape) for _ in self.layers],
            [torch.zeros(shape) for _ in self.layers],
            0,
        )
        return self._forward(torch.tensor([prompt.ids]), state), state

    def expand(self, state: State, rows: int) -> State:
        """Return a state with `rows` copies of the one row that was read."""
        return State(
            [k.repeat(rows, 1, 1, 1) for k in state.keys],
            [v.repeat(rows, 1, 1, 1) for v in state.values],
            state.length,
        )

    def step(self, tokens: torch.Tensor, state: State) -> torch.Tensor:
        """Read one token per row (n,); return the logits (n, vocabulary) after it."""
        return self._forward(tokens[:, None], state)

    def cache(self) -> Cache:
        """Return an empty cache for `read` and `advance`."""
        return Cache(len(self.layers), self.kv_heads, self.head_dim)

    def read(self, ids: Sequence[int], cache: Cache, row: int, begin: int) -> torch.Tensor:
        """Read tokens into a row that holds `begin` tokens; return the logits (1, vocabulary)."""
        count, end = len(ids), begin + len(ids)
        after = torch.full((count, end), float("-inf")).triu(begin + 1) if begin else None

        def attend(n: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            keys, values = cache.keys[n, row : row + 1], cache.values[n, row : row + 1]
            keys[:, :, begin:end], values[:, :, begin:end] = k, v
            return F.scaled_dot_product_attention(
                q,
                keys[:, :, :end],
                values[:, :, :end],
                attn_mask=after,
                is_causal=after is None and count > 1,
                enable_gqa=True,
            )

        return self._blocks(torch.tensor([ids]), self.cos[begin:end], self.sin[begin:end], attend)

    def advance(self, tokens: torch.Tensor, cache: Cache, lengths: torch.Tensor) -> torch.Tensor:
        """Read one token (n,) into each of the first n rows; return the logits (n, vocabulary).

        `lengths` (n,) is how many tokens each row holds before; rows are padded to the longest.
        """
        rows, longest = len(tokens), int(lengths.max()) + 1
        at = torch.arange(rows)
        group = self.heads // self.kv_heads
        unused = torch.arange(longest)[None] > lengths[:, None]
        mask = torch.zeros(rows, longest).masked_fill(unused, float("-inf"))[:, None, None]
        mask = mask.expand(rows, self.kv_heads, group, longest)

        def attend(n: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            keys, values = cache.keys[n], cache.values[n]
            keys[at, :, lengths], values[at, :, lengths] = k[:, :, 0], v[:, :, 0]
            # One query per head: the heads that share keys stand side by side as queries.
            seen = F.scaled_dot_product_attention(
                q.reshape(rows, self.kv_heads, group, self.head_dim),
                keys[:rows, :, :longest],
                values[:rows, :, :longest],
                attn_mask=mask,
            )
            return seen.reshape(rows, self.heads, 1, self.head_dim)

        cos, sin = self.cos[lengths][:, None, None], self.sin[lengths][:, None, None]
        return self._blocks(tokens[:, None], cos, sin, attend)

    def _forward(self, tokens: torch.Tensor, state: State) -> torch.Tensor:
        count = tokens.shape[1]
        begin, end = state.length, state.length + count

        def attend(n: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            keys, values = state.keys[n], state.values[n]
            keys[:, :, begin:end], values[:, :, begin:end] = k, v
            return F.scaled_dot_product_attention(
                q,
                keys[:, :, :end],
                values[:, :, :end],
                is_causal=count > 1,
                enable_gqa=True,
            )

        state.length = end
        return self._blocks(tokens, self.cos[begin:end], self.sin[begin:end], attend)

    def _blocks(
        self, tokens: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, attend: Attend
    ) -> torch.Tensor:
        """Run tokens (n, t) through all layers; return the logits (n, vocabulary) after the last."""
        rows, count = tokens.shape
        x = F.embedding(tokens, self.embedding).float()
        sizes = [self.heads * self.head_dim] + [self.kv_heads * self.head_dim] * 2
        for n, layer in enumerate(self.layers):
            qkv = layer.qkv(self._norm(x, layer.norm_in))
            q, k, v = (
                part.view(rows, count, -1, self.head_dim).transpose(1, 2)
                for part in torch.split(qkv, sizes, -1)
            )
            seen = attend(n, _turn(q, cos, sin), _turn(k, cos, sin), v)
            x = x + layer.out(seen.transpose(1, 2).reshape(rows, count, -1))
            gate, up = layer.gate_up(self._norm(x, layer.norm_mlp)).chunk(2, -1)
            x = x + layer.down(F.silu(gate) * up)
        return self.head(self._norm(x[:, -1:], self.norm))[:, 0]

    def _norm(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return F.rms_norm(x, (x.shape[-1],), weight, self.eps)


def _turn(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat([-second, first], -1) * sin


def read_adapter(folder: Path) -> dict[str, torch.Tensor]:
    """Return what a peft LoRA adapter adds to each weight, as {module name: (out, in)} in fp32.

    Raises CheckpointError for what a plain LoRA does not have (DoRA, per-layer ranks, biases).
    """
    config = read_json(folder / "adapter_config.json")
    for key in ("use_dora", "rank_pattern", "alpha_pattern", "modules_to_save"):
        if config.get(key):
            raise CheckpointError(f"{folder}: adapters with {key} are not served")
    root = config["r"] ** 0.5 if config.get("use_rslora") else config["r"]
    scale = config["lora_alpha"] / root
    change = {}
    with safe_open(folder / "adapter_model.safetensors", "pt") as weights:
        for name in weights.keys():  # noqa: SIM118 (not a dict)
            if not name.endswith((".lora_A.weight", ".lora_B.weight")):
                raise CheckpointError(f"{folder}: {name} is no part of a plain LoRA")
            module, found, _ = name.partition(".lora_A.")
            if found:
                a = weights.get_tensor(name).float()
                b = weights.get_tensor(name.replace(".lora_A.", ".lora_B.")).float()
                change[module.removeprefix("base_model.model.")] = (b @ a) * scale
    return change
