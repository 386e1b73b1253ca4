"""The decoder-only Transformer, with a form of position of `position.FORMS`."""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from musictx.errors import ConfigError
from musictx.model.attention import AUTO, IMPLEMENTATIONS
from musictx.model.cache import Cache, KVCache, indices
from musictx.model.keyboard import KeyboardState
from musictx.model.position import FORMS, timed_forms
from musictx.model.position.form import Form
from musictx.model.prompt_cache import PromptCache
from musictx.model.settings import TransformerSettings, one_of


@dataclass(frozen=True)
class TransformerConfig(TransformerSettings):
    """The model to train: a Transformer.

    Raises ConfigError for impossible sizes.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("position", self.position, FORMS)
        if self.clock == "time" and not FORMS[self.position].timed:
            able = f"index, or position={' or '.join(timed_forms())}"
            raise ConfigError("clock", got="time", why=f"position={self.position} counts tokens", allowed=able)
        one_of("TransformerConfig.attention", self.attention, (AUTO, *IMPLEMENTATIONS))

    @property
    def reach(self) -> int | None:
        """The number of positions; None: unlimited."""
        limit = FORMS[self.position].limit
        return getattr(self, limit) if limit else None

    def check_reach(self, n_tokens: int) -> None:
        """Raises ConfigError if a stream of so many tokens has too few positions."""
        if self.reach is not None and n_tokens > self.reach:
            why = f"{n_tokens} tokens are more than position={self.position} has"
            hint = "take a shorter piece, a smaller segment= or another position="
            raise ConfigError(FORMS[self.position].limit or "", got=self.reach, why=why, hint=hint)


class SwiGLU(nn.Module):
    """(…, 2F) -> (…, F): one half gates the other (Shazeer 2020, equation 5)."""

    def forward(self, x: Tensor) -> Tensor:
        content, gate = x.chunk(2, -1)
        return content * F.silu(gate)


class ShortConv(nn.Module):
    """x (B, T, C) -> x plus a weighted sum of the last `width` tokens, each channel by itself. So heads compare whole
    notes (So et al. 2021 put it after the projections)."""

    def __init__(self, width: int, channels: int) -> None:
        super().__init__()
        self.width = width
        # the last row is for the token itself; with zeros a model that gains this begins as the same model
        self.weight = nn.Parameter(torch.zeros(width, channels))

    def forward(self, x: Tensor, before: Tensor | None) -> Tensor:
        """`before` (B, width - 1, C) are the tokens before x; None: zeros."""
        if before is None:
            before = x.new_zeros(len(x), self.width - 1, x.shape[2])
        window, t = torch.cat([before, x], 1), x.shape[1]
        for shift, weight in enumerate(self.weight.to(x.dtype)):
            x = x + weight * window[:, shift : shift + t]
        return x


class Block(nn.Module):
    """Attention, then an MLP, each on the normed stream and added to it; `norm=post` norms the sums (Vaswani et al.
    2017)."""

    def __init__(self, config: TransformerConfig, layer: int) -> None:
        """Layers after 0 may mix the values of layer 0 into their own."""
        super().__init__()
        c, gated = config.d_model, config.mlp == "swiglu"
        self.config, self.layer, self.post = config, layer, config.norm == "post"
        self.norm_1, self.norm_2 = nn.LayerNorm(c), nn.LayerNorm(c)
        self.qkv, self.project = nn.Linear(c, 3 * c), nn.Linear(c, c)
        self.up, self.down = nn.Linear(c, config.d_ff * (1 + gated)), nn.Linear(config.d_ff, c)
        self.activate = {"swiglu": SwiGLU, "gelu": nn.GELU, "relu": nn.ReLU}[config.mlp]()
        self.conv = ShortConv(config.conv, c) if config.conv > 1 else None
        self.gain = nn.Parameter(torch.ones(config.n_heads)) if config.qk_norm else None
        self.shares = nn.Parameter(torch.tensor([0.5, 0.5])) if config.value_residual and layer else None
        self.attend = FORMS[config.position].build(config)
        self.dropout = nn.Dropout(config.dropout)

    def forward(
        self, x: Tensor, first_v: Tensor | None, at: Tensor, cache: Cache | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """The stream (B, T, C), and the first layer's values (B, H, T, D) if layers mix them in. `at` (B or 1, T) is
        the clock."""
        output, first_v = self.look_back(x, first_v, at, cache)
        return self.feed(self.add(x, output)), first_v

    def look_back(
        self, x: Tensor, first_v: Tensor | None, at: Tensor, cache: Cache | None
    ) -> tuple[Tensor, Tensor | None]:
        """Causal attention's output (B, H, T, D), and the first layer's values."""
        q, k, v = self.heads(x, first_v, cache)
        if self.config.value_residual and first_v is None:
            first_v = v
        phase = self.attend.phase(at, k.dtype)
        k, masked, age = self.attend.keys(k, phase), None, None
        if cache is not None:
            k, v = cache.append(self.layer, k, v)
            masked, age = cache.masked, cache.age
            if isinstance(cache, PromptCache):
                q = self.attend.queries(q, phase)
                return cache.attend(self.layer, q, k, v, self.attend.scale), first_v
        return self.attend(q, k, v, phase, self.attention_dropout, masked, age), first_v

    @property
    def attention_dropout(self) -> float:
        return self.config.attention_dropout if self.training else 0.0

    def heads(self, x: Tensor, first_v: Tensor | None, cache: Cache | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values (B, H, T, D) of the stream (B, T, C), without their positions."""
        x = x if self.post else self.norm_1(x)
        if self.conv is not None:
            x = self.conv(x, None if cache is None else cache.before(self.layer, x, self.conv.width - 1))
        q, k, v = self.qkv(x).view(*x.shape[:2], 3, self.config.n_heads, -1).permute(2, 0, 3, 1, 4)
        if self.gain is not None:  # Henry et al. 2020
            q = (F.rms_norm(q, q.shape[-1:]) * self.gain[:, None, None]).to(v.dtype)  # autocast may have widened it
            k = F.rms_norm(k, k.shape[-1:]).to(v.dtype)
        if self.shares is not None:  # Zhou et al. 2024, section 3
            assert first_v is not None
            own, first = self.shares.to(v.dtype)
            v = own * v + first * first_v
        return q, k, v

    def add(self, x: Tensor, output: Tensor) -> Tensor:
        """Adds attention's output (B, H, T, D) to the stream (B, T, C)."""
        joined: Tensor = x + self.dropout(self.project(output.transpose(1, 2).flatten(2)))
        return self.norm_1(joined) if self.post else joined

    def feed(self, x: Tensor) -> Tensor:
        """Adds the MLP's output to the stream (B, T, C)."""
        mixed: Tensor = x + self.dropout(self.down(self.activate(self.up(x if self.post else self.norm_2(x)))))
        return self.norm_2(mixed) if self.post else mixed


def initialise(model: nn.Module, config: TransformerConfig) -> None:
    """Draws all weights but those that the form of position sets itself."""
    preset = FORMS[config.position].preset
    for name, p in model.named_parameters():
        if name.endswith("conv.weight"):
            nn.init.zeros_(p)
        elif p.dim() >= 2 and not name.endswith(preset):
            # the residual stream sums 2·layers projections: keep its variance at that of one projection (GPT-2)
            into_stream = name.endswith(("project.weight", "down.weight"))
            nn.init.normal_(p, std=0.02 / math.sqrt(2 * config.n_layers) if into_stream else 0.02)
        elif name.endswith("bias"):
            nn.init.zeros_(p)


class Transformer(nn.Module):
    """ids (B, T) -> logits (B, T, V). Obeys `musictx.model.protocol.LanguageModel`."""

    pace: Tensor  # (V,) how far each id moves the clock, where that is musical time

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config, self.cycle, self.reach = config, config.cycle, config.reach
        # how many tokens back it looks in endless music: no farther than in training, or the music would come to rest
        # (docs/results.md)
        self.window = config.trained_length or config.reach or 2 * config.max_distance
        if config.clock == "time":
            self.register_buffer("pace", torch.zeros(config.vocab_size))
        self.places = FORMS[config.position].embedding(config)
        if config.cycle > 1:
            self.place = nn.Embedding(config.cycle, config.d_model)
        self.embed = nn.Embedding(config.vocab_size, config.d_model)  # also the output head
        self.dropout = nn.Dropout(config.dropout)
        blocks = [Block(config, layer) for layer in range(config.n_layers)]
        self.key_width, self.blocks = blocks[0].attend.key_width, nn.ModuleList(blocks)
        self.norm = nn.Identity() if config.norm == "post" else nn.LayerNorm(config.d_model)
        self.keyboard = None
        if config.keyboard != "none":
            self.keyboard = KeyboardState(config.vocab_size, config.d_model)
        initialise(self, config)
        if self.keyboard is not None:
            self.keyboard.initialise()

    def forward(self, ids: Tensor) -> Tensor:
        return self._run(ids, None)

    def init_state(self, batch: int, max_T: int, rolling: bool = False) -> KVCache:
        c = self.config
        widths = self.key_width, c.d_model // c.n_heads
        return KVCache.empty(c.n_layers, batch, c.n_heads, max_T, widths, self.embed.weight.detach(), rolling)

    @property
    def shares_prompts(self) -> bool:
        """Whether rows may read a prompt together: on a CPU, where logits are products of queries and keys."""
        plain = FORMS[self.config.position].forward is Form.forward
        return plain and self.embed.weight.device.type == "cpu"

    def prefill(self, ids: Tensor, state: Cache) -> Tensor:
        return self._run(ids, state)[:, -1]

    def step(self, ids: Tensor, state: Cache) -> Tensor:
        return self._run(ids[:, None], state)[:, -1]

    def _run(self, ids: Tensor, cache: Cache | None) -> Tensor:
        t = ids.shape[1]
        self.config.check_reach(t if cache is None else cache.length + t)
        index = indices(0, t, ids.device) if cache is None else cache.begin(t)  # (B or 1, T)
        at = index
        if self.config.clock == "time":
            at = self.pace[ids].double().cumsum(1) + (cache.clock if cache is not None else 0)  # (B, T)
        x = self.embed(ids)
        if self.cycle > 1:
            x = x + self.place((index.long() - 1) % self.cycle)  # the token after BOS has place 0
        if self.places is not None:
            x = self.places(x, index)
        x = self.dropout(x)  # (B, T, C)
        first_v = None
        for block in self.blocks:
            x, first_v = block(x, first_v, at, cache)
        if cache is not None:
            cache.advance(t, at[:, -1:].expand_as(cache.clock))
            x = x[:, -1:]  # the head needs only the last position
        y = self.norm(x)
        logits = F.linear(y, self.embed.weight)  # (B, T, V)
        return logits if self.keyboard is None else self.keyboard.add_logits(logits, y, ids, cache)
