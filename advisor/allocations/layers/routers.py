"""How tokens choose their experts, as transformers 5.16.1 computes it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from advisor.allocations.autograd.autograd import Node, Tape, Tensor, node_for
from advisor.allocations.autograd.operations import FULL, LONG, cast, matmul, saving_result, scaled, squared_relu
from advisor.allocations.layers.experts import Routed, gathered
from advisor.allocations.layers.layers import Gated, PlainFeed
from advisor.allocations.layers.softmax_routers import WAYS, quotient, softmax, total
from advisor.memory.weights import quantized_width
from advisor.models.blocks import LinearShape

if TYPE_CHECKING:
    from advisor.allocations.autograd.linears import EightBit
    from advisor.allocations.layers.experts import Route, Stack
    from advisor.allocations.layers.loading import Loader
    from advisor.models import Block, WeightShape


GATE = 3
"""Where the linears of an MLP that every token passes end with its gate."""


def _grouped_sigmoid(weight: Tensor, experts: int, each: int) -> Route:
    """Sigmoids, of one group of experts: models/glm4_moe/modeling_glm4_moe.py, Glm4MoeTopkRouter.forward@5.16.1."""
    return partial(_by_sigmoid, weight=weight, experts=experts, each=each)


def _grouped_softmax(weight: Tensor, experts: int, each: int) -> Route:
    """Probabilities, of one group of experts: models/mistral4, Mistral4TopkRouter.forward@5.16.1."""
    return partial(_by_grouped_softmax, weight=weight, experts=experts, each=each)


def _by_grouped_softmax(
    tape: Tape, x: Tensor, weight: Tensor, experts: int, each: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Logits, and weights and numbers of the chosen experts."""
    tokens = x.count * experts // weight.count
    logits = matmul(tape, x, weight, experts)
    scores = saving_result(tape, cast(tape, logits, FULL))
    kept, mask = _best_group(tape, tokens, experts, scores)
    chances = tape.new(tokens * experts, FULL)
    excluded = saving(tape, scores, mask)
    del mask
    weights, chosen = _of_best(tape, scores, tokens * each)
    alone = total(tape, weights, tokens)
    whole = tape.new(tokens, FULL)  # and a number, so that none is divided by zero
    whole.node = alone.node
    del alone
    weights = quotient(tape, weights, whole, in_place=True)
    weights = scaled(tape, weights)
    del kept, chances, excluded, whole
    return logits, weights, chosen


def _sigmoid_shares(weight: Tensor, experts: int, each: int) -> Route:
    """Sigmoids over their sum, which is fp32: models/lfm2_moe, Lfm2MoeTopKRouter.forward@5.16.1."""
    return partial(_by_shares, weight=weight, experts=experts, each=each)


def _by_shares(tape: Tape, x: Tensor, weight: Tensor, experts: int, each: int) -> tuple[Tensor, Tensor, Tensor]:
    """Logits, and weights and numbers of the chosen experts."""
    tokens = x.count * experts // weight.count
    logits = matmul(tape, x, weight, experts)
    scores = saving_result(tape, logits)
    biased = tape.new(tokens * experts, FULL)
    values, chosen = tape.new(tokens * each, FULL), tape.new(tokens * each, LONG)
    ranked = saving(tape, scores, chosen)
    weights = gathered(tape, scores, chosen, tokens * each)
    del scores
    total = summed(tape, weights, tokens)
    weights = quotient(tape, weights, total, in_place=False)
    del total
    weights = scaled(tape, weights)
    del biased, values, ranked
    return logits, weights, chosen


ROUTES = {
    "grouped sigmoid": _grouped_sigmoid,
    "grouped softmax": _grouped_softmax,
    "sigmoid shares": _sigmoid_shares,
    **{name: partial(softmax, way=name) for name in WAYS},
}
"""By ``Taped.routes``."""


def _by_sigmoid(tape: Tape, x: Tensor, weight: Tensor, experts: int, each: int) -> tuple[Tensor, Tensor, Tensor]:
    """Logits, and weights and numbers of the chosen experts."""
    tokens = x.count * experts // weight.count
    wide, exact = cast(tape, x, FULL), cast(tape, weight, FULL)
    logits = matmul(tape, wide, exact, experts)
    del wide, exact
    scores = saving_result(tape, logits)
    biased = tape.new(tokens * experts, FULL)
    kept, mask = _best_group(tape, tokens, experts, scores)
    biased = tape.new(tokens * experts, FULL)
    excluded = saving(tape, scores, mask)
    del mask
    weights, chosen = _of_best(tape, scores, tokens * each)
    total = summed(tape, weights, tokens)
    weights = quotient(tape, weights, total, in_place=True)
    weights = scaled(tape, weights)
    del kept, biased, excluded, total
    return logits, weights, chosen


def _of_best(tape: Tape, scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Scores of the best experts, which are ranked by other numbers, and which they are."""
    values, chosen = tape.new(count, FULL), tape.new(count, LONG)
    ranked = saving(tape, scores, chosen)
    del values, ranked
    return gathered(tape, scores, chosen, count), chosen


def _best_group(tape: Tape, tokens: int, experts: int, scores: Tensor) -> tuple[list[object], Tensor]:
    """What names and the graph keep of the choice of a group, and which experts are out of it."""
    values, numbers = tape.new(2 * tokens, FULL), tape.new(2 * tokens, LONG)
    kept: list[object] = [saving(tape, scores, numbers)]
    del numbers
    kept.append(tape.new(tokens, FULL))
    del values
    values, numbers = tape.new(tokens, FULL), tape.new(tokens, LONG)
    kept.append(saving(tape, scores, numbers))
    del values
    kept += [numbers, tape.new(tokens, FULL)]
    inside = tape.new(tokens * experts, 1)
    mask = tape.new(tokens * experts, 1)
    del inside
    return kept, mask


def saving(tape: Tape, scores: Tensor, *tensors: Tensor) -> Node | None:
    """A node that saves tensors and that no gradient reaches."""
    node = node_for(tape, lambda _node, _given: (None,), scores)
    if node is not None:
        node.keep(tape, *tensors)
    return node


def summed(tape: Tape, weights: Tensor, tokens: int) -> Tensor:
    """The sum of a token's weights, which autocast makes fp32, and a number."""

    def back(_node: Node, _given: list[Tensor]) -> tuple[Tensor]:
        return (tape.new(count, width),)

    count, width = weights.count, weights.width
    wide = FULL if tape.autocast else width
    first = tape.new(tokens, wide)
    total = tape.new(tokens, wide)
    del first
    total.node = node_for(tape, back, weights)
    return total


def routed(loader: Loader, block: Block, biased: set[str]) -> Routed:
    """The experts of a layer, with their weights in the order of the modules."""
    mlp = block.mlp
    assert mlp is not None, "known_layers.is_routed"
    stacks = [tensor for tensor in loader.model.tensors if tensor.kind == "experts"]
    first = loader.taped.routes in WAYS
    weight = router(loader) if first else None
    gate_up, down = (stack(loader, tensor) for tensor in stacks)
    weight = weight or router(loader)
    shapes = [linear for linear in block.linears if linear.kind == "mlp"]
    made = [loader.linear(shape, bias=shape.name in biased) for shape in shapes]
    route = ROUTES[loader.taped.routes](weight, mlp.experts, mlp.experts_per_token)
    of_experts = (route, gate_up, down, mlp.latent or block.hidden, mlp.width, mlp.experts)
    if not mlp.gated:
        narrow = (made[2], made[3]) if mlp.latent else None
        return Routed(*of_experts, PlainFeed(made[0], made[1], squared_relu), narrow=narrow, halves=False)
    shared = Gated(made[0], made[1], made[2]) if made else None
    return Routed(*of_experts, shared, made[GATE] if len(made) > GATE else None)


def router(loader: Loader) -> Tensor:
    """A router's weight."""
    tensor = next(tensor for tensor in loader.model.tensors if tensor.kind == "router")
    weight = loader.plain(tensor.numel, tensor.module)
    loader.to_cast.append((weight, loader.final[tensor.module]))
    return weight


def stack(loader: Loader, tensor: WeightShape) -> Stack:
    """One side of all experts: as it is, or quantized and unpacked when a forward asks for it."""
    if quantized_width(loader.run, tensor) is None:
        weight = loader.plain(tensor.numel, tensor.module)
        return lambda _tape: weight
    shape = LinearShape("experts", tensor.shape[-1], tensor.numel // tensor.shape[-1], "experts")
    if loader.run.quantization == "int8":
        return partial(_from_bytes, kept=loader.eight_bit(shape, None))
    return loader.four_bit(shape, None).dequantized


def _from_bytes(tape: Tape, kept: EightBit) -> Tensor:
    """In fp32, times a factor a row, and a number: bitsandbytes/functional.py, int8_vectorwise_dequant@0.50.2."""
    scaled_rows = tape.new(kept.n_in * kept.n_out, FULL)
    result = tape.new(kept.n_in * kept.n_out, FULL)
    del scaled_rows
    return result
