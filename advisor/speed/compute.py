"""Kernels of one micro-step on the card: matrix products, attention, and what only moves bytes."""

from collections.abc import Iterable, Iterator
from functools import cached_property

from advisor.memory.activations import checkpoints
from advisor.memory.activations.attention import is_plain
from advisor.memory.activations.dispatched import with_computed
from advisor.memory.activations.tiles import tiles
from advisor.memory.lora_targets import is_target, rank_at, ties_ends
from advisor.models import Architecture
from advisor.models.blocks import Attention, Block, LinearShape
from advisor.record import record
from advisor.run import Lora, Run
from advisor.speed.card import Card
from advisor.speed.constants import Constants
from advisor.speed.step_time import Conditions, Kind

GEMM = "arXiv:2001.08361, 2.1: 2 operations a weight and token forward, 4 backward, 2 where the weight is frozen"
ATTENTION = "arXiv:2307.08691, 4.1: 4 x keys x width operations a token, 2.5 times as many backward"
TRAFFIC = "modeling_llama.py in transformers: what each operation reads and writes, counted"
HEAD = "cross entropy: what it reads and writes of each logit"
INT8 = "arXiv:2208.07339, 3: a mixed-precision decomposition of the input"
QLORA = "arXiv:2305.14314, 3: weights are dequantized for each pass"
LORA = "arXiv:2106.09685, 4.1: two narrow products for each target"
NORM_BYTES = {"rms": 36, "layer": 8, "none": 0}
"""Of an element and forward pass: RMSNorm is seven operations in fp32, LayerNorm one kernel."""
RESIDUAL_BYTES, ROTARY_BYTES = 12, 20
GATED_BYTES, PLAIN_BYTES = 10, 4
BACKWARD_TRAFFIC = 1.5
"""Element-wise traffic of a backward pass, in forward passes."""
NARROW_SHARE = 0.5
"""Share of the tensor rate that LoRA's narrow products reach."""


@record(eq=False)
class Amount:
    """What one kind of kernel does in a micro-step: operations at a rate, and bytes over a bandwidth."""

    name: str
    kind: Kind
    operations: float
    rate: float
    bytes: float
    bandwidth: float
    source: str

    @property
    def seconds(self) -> float:
        """One after the other."""
        return self.operations / self.rate + self.bytes / self.bandwidth

    @property
    def formula(self) -> str:
        """The arithmetic, without the parts that are nothing."""
        computed = f"{self.operations / 1e12:.4g} T operations / {self.rate / 1e12:.4g} TFLOPS"
        moved = f"{self.bytes / 1e9:.4g} GB / {self.bandwidth / 1e9:.4g} GB/s"
        return " + ".join(text for text, part in ((computed, self.operations), (moved, self.bytes)) if part)


@record(eq=False)
class Work:
    """One micro-step of a run on a card."""

    run: Run
    model: Architecture
    card: Card
    conditions: Conditions

    @property
    def constants(self) -> Constants:
        """Those of the card."""
        return self.card.constants

    @cached_property
    def forwards(self) -> int:
        """Forward passes: the one that is trained, a recomputation, a reference's, one over vLLM's answers.

        trl/trainer/grpo_trainer.py, _generate_and_score_completions@1.9.0: vLLM's own probabilities are corrected. KTO
        scores answers that belong to other prompts as well (kto_trainer.py, _compute_kl_logps).
        """
        scored = self.run.rollouts is not None and self.run.rollouts.engine != "model"
        references = self.run.scores_reference
        unmatched = 1 + references if self.run.rl == "kto" else 0
        return 1 + checkpoints(self.run) + references + scored + unmatched

    @cached_property
    def is_fused(self) -> bool:
        """Whether element-wise operations run in few kernels."""
        liger = {"rms_norm", "glu", "rope"} <= self.run.liger
        return self.conditions.optimized_kernels or self.run.torch_compile or liger

    @cached_property
    def blocks(self) -> list[Block]:
        """The layers, with what each GPU computes of experts that are spread."""
        return [with_computed(self.run, block) for block in self.model.blocks]

    def amounts(self) -> list[Amount]:
        """All kernels, those of one name as one."""
        return summed([*(amount for block in self.blocks for amount in self.of_block(block)), *self.of_head()])

    def of_block(self, block: Block) -> Iterator[Amount]:
        """All layers of one shape."""
        yield self.linears(block)
        yield self.elementwise(block)
        if block.attention is not None:
            yield self.attention(block, block.attention)
        if self.run.lora is not None:
            yield self.adapters(block, self.run.lora)
        if self.run.quantization in self.constants.dequantize_cost:
            yield self.dequantization(block)
        elif self.is_int8:
            yield self.int8(block)

    def again(self, block: Block) -> list[LinearShape]:
        """The linears of a tiled MLP, whose forward its backward runs once more: ulysses_sp.py:854-973@0.18.9.

        The number of tiles is agreed upon by a number that all GPUs exchange, too little to count.
        """
        return [linear for linear in block.linears if linear.kind == "mlp"] if tiles(self.run, block) else []

    def amount(
        self, name: str, kind: Kind, source: str, *, operations: float = 0, rate: float = 0, moved: float = 0
    ) -> Amount:
        """An amount at this card's bandwidth."""
        bandwidth = self.card.elementwise_bandwidth if kind == "element-wise" else self.card.bandwidth
        return Amount(name, kind, operations, rate or self.card.tensor_flops, moved, bandwidth, source)

    def linears(self, block: Block) -> Amount:
        """Matrix products, and what each of them reads and writes."""
        backward = 1 if self.run.adapter else 2
        passes = block.count * (self.forwards + backward)
        in_int8 = self.forwards * (1 - 1 / self.constants.int8_gemm_rate.value) if self.is_int8 else 0.0
        computed = passes - block.count * in_int8
        weights = weights_of(block)
        widths = sum(linear.n_in + linear.n_out for linear in block.linears)
        again = block.count * sum(linear.n_in * linear.n_out for linear in self.again(block))
        rewritten = block.count * sum(linear.n_in + linear.n_out for linear in self.again(block))
        moved = passes * (sum(stored for stored, _ in weights) + self.run.tokens * widths)
        return self.amount(
            "linear layers",
            "compute",
            GEMM,
            operations=2.0 * self.run.tokens * (computed * sum(active for _, active in weights) + again),
            rate=self.card.gemm_flops(self.model.hidden_size),
            moved=2.0 * (moved + again + self.run.tokens * rewritten),
        )

    def attention(self, block: Block, attention: Attention) -> Amount:
        """Scores and their product with the values, over the keys that a token sees."""
        operations = 4.0 * self.run.tokens * self.keys(attention) * attention.query_width * self.unevenness(attention)
        passes = block.count * (self.forwards + 2.5)
        return self.amount("attention", "compute", ATTENTION, operations=passes * operations, rate=self.attention_rate)

    def unevenness(self, attention: Attention) -> float:
        """How much more the last GPU of a context-parallel group computes than the average one.

        Rows are cut in order, so its tokens see the most keys: (2n - 1) / n of the average of n
        (axolotl/utils/ctx_managers/sequence_parallel.py:131-140@0.19.0). Packed rows are many short ones.
        """
        ranks = self.run.context_parallel_size
        even = self.run.sample_packing or self.conditions.balanced_rows
        return 1.0 if even or attention.window is not None else 2 - 1 / ranks

    def keys(self, attention: Attention) -> float:
        """Keys of an average token: half of its document under the causal mask, or a window."""
        causal = (self.conditions.document_len or self.run.sequence_len) / 2
        if attention.kind in {"linear", "ssm", "conv"}:
            return min(causal, self.constants.chunk.value)
        return causal if attention.window is None else min(causal, attention.window)

    @property
    def attention_rate(self) -> float:
        """Operations a second of the kernel in use."""
        if is_plain(self.run) or self.conditions.attention == "masked":
            return self.card.tensor_flops * self.constants.masked_attention_share.value
        older = self.conditions.attention == "flash-1"
        return self.card.attention_flops * (self.constants.flash_1_share.value if older else 1.0)

    def elementwise(self, block: Block) -> Amount:
        """Norms, rotary embedding, residuals and activation: bytes alone."""
        mixer, mlp = block.attention, block.mlp
        moved = (block.norms * NORM_BYTES[block.norm] + RESIDUAL_BYTES) * block.hidden
        if mixer is not None:
            moved += ROTARY_BYTES * (mixer.query_width + mixer.key_width)
        inner = 0
        if mlp is not None:
            inner = mlp.width * max(1, mlp.experts_per_token) + mlp.shared_width
            inner *= GATED_BYTES if mlp.gated else PLAIN_BYTES
        passes = (self.forwards + BACKWARD_TRAFFIC) * (moved + inner) + (inner if self.again(block) else 0)
        passes *= block.count * (self.constants.fused_share.value if self.is_fused else 1.0)
        return self.amount("norms and activation", "element-wise", TRAFFIC, moved=self.run.tokens * passes)

    def adapters(self, block: Block, lora: Lora) -> Amount:
        """LoRA's narrow products, and the copies and casts around them, of which fused kernels save half."""
        targets = [linear for linear in block.linears if is_target(lora, linear)]
        passes, again = self.forwards + 2, self.again(block)
        turns = [(linear, passes + (linear in again)) for linear in targets]
        widths = sum(count * (linear.n_in + linear.n_out) for linear, count in turns)
        inner = sum(count * rank_at(lora, linear.path) * (linear.n_in + linear.n_out) for linear, count in turns)
        tokens = block.count * self.run.tokens
        moved = self.constants.adapter_bytes.value * widths * (0.5 if self.fuses_adapters(lora) else 1.0)
        rate = self.card.tensor_flops * NARROW_SHARE
        return self.amount(
            "adapters", "element-wise", LORA, operations=tokens * 2.0 * inner, rate=rate, moved=tokens * moved
        )

    def fuses_adapters(self, lora: Lora) -> bool:
        """Whether LoRA has kernels of its own: axolotl's, or another framework's, most often over quantized weights."""
        over_quantized = self.conditions.optimized_kernels and self.run.quantization is not None
        return bool(lora.kernels) or over_quantized or self.conditions.fused_adapters

    def dequantization(self, block: Block) -> Amount:
        """Quantized weights are read and written out in half precision before each product."""
        cost = self.constants.dequantize_cost[str(self.run.quantization)].value
        with_experts = self.run.quantize_moe_experts or self.run.quantization == "gptq"
        linear = sum(one.n_in * one.n_out for one in block.linears)
        elements = sum(stored for stored, _ in weights_of(block)) if with_experts else linear
        again = sum(one.n_in * one.n_out for one in self.again(block))
        read = block.count * ((self.forwards + 1) * elements + again)
        return self.amount("dequantization", "element-wise", QLORA, moved=read * 2.5 * cost)

    @property
    def is_int8(self) -> bool:
        """Whether the products of the forward are taken in int8, and those of the backward in half precision."""
        return self.run.quantization == "int8"

    def int8(self, block: Block) -> Amount:
        """What is around the int8 products: inputs quantized but for outliers, outputs scaled, weights cast back."""
        made, cast = self.constants, self.constants.int8_cast_bytes.value if self.run.precision == "bf16" else 0.0
        of_input, of_output = made.int8_input_bytes.value + cast, made.int8_output_bytes.value + cast
        moved = sum(of_input * one.n_in + of_output * one.n_out for one in block.linears)
        weights = made.int8_weight_bytes.value * sum(one.n_in * one.n_out for one in block.linears)
        moved = block.count * (self.forwards * self.run.tokens * moved + weights)
        return self.amount("int8", "element-wise", INT8, moved=moved)

    def of_head(self) -> Iterator[Amount]:
        """The output layer, which is not checkpointed, and the loss over its logits."""
        lora, loss = self.run.lora, self.run.loss
        trained = lora is None or "lm_head" in lora.modules_to_save or ties_ends(self.run, self.model)
        logits = self.run.tokens * self.model.outputs
        passes = (3 if trained else 2) + (loss == "cut")
        rate = self.card.gemm_flops(self.model.hidden_size)
        operations = passes * 2.0 * logits * self.model.hidden_size
        yield self.amount("output layer", "compute", GEMM, operations=operations, rate=rate)
        kind = {"cut": "cut", "liger-fused": "fused", "chunked": "fused"}.get(loss, "plain")
        kind = "fused" if kind == "plain" and self.conditions.optimized_kernels else kind
        yield self.amount("loss", "element-wise", HEAD, moved=self.constants.logit_bytes[kind].value * logits)

    def launches(self) -> float:
        """Operations that the host starts, in forward operations' time."""
        count = sum(block.count * self.block_launches(block) for block in self.model.blocks)
        return count * (self.constants.fused_launches.value if self.is_fused else 1.0)

    def block_launches(self, block: Block) -> float:
        """Those of one layer."""
        forward = self.constants.forward_launches.value
        if self.run.lora is not None:
            forward += self.constants.adapter_launches.value * sum(
                is_target(self.run.lora, one) for one in block.linears
            )
        if self.run.quantization is not None:
            each = self.constants.int8_launches if self.is_int8 else self.constants.dequantize_launches
            forward += each.value * len(block.linears)
        return forward * (self.forwards + self.constants.backward_launches.value)


def weights_of(block: Block) -> list[tuple[float, float]]:
    """Elements of a layer's matrices: those that are read, and those that a token is multiplied with."""
    found = [(float(one.n_in * one.n_out), float(one.n_in * one.n_out)) for one in block.linears]
    mlp = block.mlp
    if mlp is not None and mlp.experts:
        expert = (3 if mlp.gated else 2) * block.hidden * mlp.width
        found.append((float(expert * mlp.experts), float(expert * mlp.experts_per_token)))
    return found


def summed(amounts: Iterable[Amount]) -> list[Amount]:
    """Amounts of one name as one."""
    totals: dict[str, Amount] = {}
    for one in amounts:
        if one.name in totals:
            before = totals[one.name]
            operations, moved = before.operations + one.operations, before.bytes + one.bytes
            one = Amount(one.name, one.kind, operations, one.rate, moved, one.bandwidth, one.source)
        totals[one.name] = one
    return list(totals.values())
