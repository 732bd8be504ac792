"""What activation offloading leaves on the card: TRL's hooks for saved tensors, and axolotl's for layer inputs.

TRL's hooks hold for backward too. A reentrant checkpoint recomputes under them: what the layer saves travels again,
frozen half-precision weights as well, since autograd saves them transposed; what comes back stays until the next
layer is through, because its graph is not the one that the hooks clear up after
(trl/models/activation_offloading.py@1.9.0, ``unpack_tensor_with_streams``).
"""

from advisor.memory.activations import backward_peak_bytes, checkpoint_bytes, no_grad_peak_bytes, saved_bytes
from advisor.memory.ledger import Term
from advisor.memory.lora_targets import is_target
from advisor.models import Architecture, Block
from advisor.run import Offloading, Run

ON_THE_WAY: dict[Offloading, int] = {"saved-tensors": 5, "legacy": 1, "hidden-states": 2}
"""Tensors that the forward still holds: axolotl/core/trainers/mixins/activation_checkpointing.py:147-154@0.19.0,
monkeypatch/checkpoint_activation_offload.py:84-92@0.19.0. Without streams each copy is waited for."""
TRL = "trl/models/activation_offloading.py@1.9.0: tensors on their way to the host"
BROUGHT_BACK = "trl/models/activation_offloading.py@1.9.0: what came back for a layer goes when the next is through"


def recomputes_under_hooks(run: Run) -> bool:
    """Whether the hooks send away and bring back what a recomputed layer saves."""
    return run.adapter is not None and run.reentrant and run.activation_offloading in {"saved-tensors", "legacy"}


def inputs_on_the_way(run: Run, model: Architecture, *, backward: bool = False) -> Term:
    """Layer inputs that are still on the card while the rest travels; backward begins with letting them go."""
    one = max(checkpoint_bytes(run, block) for block in model.blocks)
    count = 1 if backward else min(limit(run), model.layers)
    return Term("layer inputs on their way to the host", "activations", count * one, f"{one:,} B x {count}", TRL)


def limit(run: Run) -> int:
    """Tensors on their way at most."""
    return ON_THE_WAY[run.activation_offloading] if run.activation_offloading is not None else 0


def brought_back_terms(run: Run, model: Architecture, block: Block) -> tuple[Term, ...]:
    """In addition to one recomputed layer: the layer that backward has passed, and both layers' frozen weights."""
    if not recomputes_under_hooks(run) or run.activation_offloading == "legacy":
        return ()
    held, layer = min(2, model.layers), saved_bytes(run, block)
    again = weight_bytes(run, block) + _read_again_bytes(run, block)
    text = f"{layer:,} B x {held - 1} layer passed + {again:,} B of weights and of what is read twice x {held}"
    return (Term("brought back for backward", "activations", (held - 1) * layer + held * again, text, BROUGHT_BACK),)


def weight_bytes(run: Run, block: Block) -> int:
    """Half-precision weights that one layer's linears save: adapters, and frozen ones that are not quantized.

    bitsandbytes keeps its own out of autograd's hands: bitsandbytes/autograd/_functions.py, MatMul4Bit@0.50.2.
    """
    inside = [linear for linear in block.linears if not (linear.kind == "mlp" and block.mlp and block.mlp.experts)]
    frozen = 0 if run.quantization is not None else sum(linear.n_in * linear.n_out for linear in inside)
    lora = run.lora
    adapters = sum(lora.rank * (one.n_in + one.n_out) for one in inside if is_target(lora, one)) if lora else 0
    return run.compute_bytes * (frozen + adapters)


def _read_again_bytes(run: Run, block: Block) -> int:
    """What adapters read together, and save without a cast of their own: it comes back for each of them."""
    if run.lora is None or run.autocast:
        return 0
    readers = [one.kind for one in block.linears if one.n_in == block.hidden and is_target(run.lora, one)]
    copies = sum(max(0, readers.count(kind) - 1) for kind in ("attention", "mlp"))
    return copies * run.compute_bytes * block.hidden * run.tokens


def passing_working(run: Run, block: Block) -> Term:
    """One layer's backward where each saved tensor comes back alone."""
    bytes_ = max(backward_peak_bytes(run, block), no_grad_peak_bytes(run, block))
    return Term("gradients of intermediates", "activations", bytes_, f"{run.tokens:,} tokens", TRL)
