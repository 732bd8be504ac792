"""Which runs a tape covers; the rest keeps the published ranges."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from advisor.allocations.autograd import torchao
from advisor.allocations.layers.known_layers import is_latent, is_taped
from advisor.allocations.vision.image_inputs import is_known
from advisor.allocations.vision.towers import is_outside_decoder
from advisor.memory.activations.attention import lacks_kernel, masked, varlen
from advisor.memory.freezing import freezes_all
from advisor.memory.lora_targets import is_target, layers_named, ties_ends
from advisor.memory.towers import at_tower, used_towers
from advisor.memory.trl_losses import has_kernels
from advisor.memory.weights import trained_count
from advisor.models.blocks import LinearShape
from advisor.models.family import family_of
from advisor.models.layer_variant import XIELU
from advisor.record import replace

if TYPE_CHECKING:
    from advisor.models import Architecture
    from advisor.run import Lora, Run

OPTIMIZERS = frozenset({"adamw_torch", "adamw_torch_fused", "adamw_bnb_8bit", "adamw_8bit", *torchao.CODES})
SCORES = frozenset({"plain", "cut", "liger", "liger-fused"})
WIDEST = 128
"""Elements of a head whose output torch's memory-efficient kernel keeps in registers."""
PAGED = frozenset({"paged_adamw_8bit", "paged_adamw_32bit"})


def covered(run: Run) -> bool:
    """Whether a tape stands for the run."""
    return next(uncovered(run), None) is None


def uncovered(run: Run) -> Iterator[str]:
    """What of the run no tape has, as nouns."""
    if run.model is None:
        yield "an unknown model"
        return
    yield from _uncovered_model(run, run.model)
    yield from uncovered_method(run)
    if run.sharding is not None:
        yield "weights or states that are sharded"
    elif run.world_size > 1 and not _is_replicated(run):
        yield "DDP as the trainer sets it"
    if run.precision != "bf16" and not _is_scaled(run):
        yield f"training in {run.precision}"
    if run.optimizer not in OPTIMIZERS | PAGED:
        yield f"the optimizer {run.optimizer}"
    if (run.liger or "liger" in run.loss) and not _patched_by_liger(run, run.model):
        yield "Liger's kernels"
    elif run.loss not in SCORES:
        yield f"the loss `{run.loss}`"
    elif run.loss == "cut" and (run.model.family.soft_capped or run.model.variant.scales_residual):
        yield "logits that are capped or divided inside of a loss"
    if run.rl is not None and not prefers(run):
        yield "training on preferences or rewards"
    if run.classifier is not None and (run.lora is not None or run.precision != "bf16" or run.liger):
        yield "a classifier's head and loss"
    if run.fake_quantization is not None:
        yield "weights rounded in forward"
    if run.torch_compile or run.tiled_mlp_shards is not None or run.activation_offloading is not None:
        yield "compiled, tiled or offloaded layers"
    if run.stack.xielu and run.model.variant.activation == XIELU:
        yield "the fused xIELU"
    if not run.stack.at_least("transformers", run.model.family.common_loss_since or "4.46.0"):
        yield "losses of transformers before 4.46"
    if run.evaluates and run.generated_rows:
        yield "generation in evaluation"


def _is_scaled(run: Run) -> bool:
    """Whether adapters are trained under fp16's autocast; of the scaler's own there are numbers alone.

    torch/amp/grad_scaler.py@2.13.0, which refuses gradients in fp16.
    """
    return run.precision == "fp16" and run.autocast and run.lora is not None


def _is_replicated(run: Run) -> bool:
    """Whether axolotl says what DDP is to look for, and its builder for language models does.

    axolotl/core/builders/causal.py:226-268, utils/config/__init__.py:228@0.19.0.
    """
    if run.config.get("ddp_find_unused_parameters") and run.model is not None and used_towers(run, run.model):
        return False
    stated = run.config.get("ddp") is not False and run.stack.trainer == "axolotl"
    return stated and run.rl is None and run.classifier is None


def _patched_by_liger(run: Run, model: Architecture) -> bool:
    """Whether the kernels are known: the fused loss reads a head in half precision, and norms of heads are rotated."""
    wide = run.loss == "liger-fused" and (run.embeddings_fp32 or run.precision != "bf16")
    normed = any(block.attention and block.attention.query_key_norm for block in model.blocks)
    alone = normed and ("rope" in run.liger) != ("rms_norm" in run.liger)
    family = family_of(model.decoder_type or model.model_type)
    return family is not None and family.has_liger_tapes and not (wide or alone) and run.rl is None


def prefers(run: Run) -> bool:
    """Whether the steps of TRL's own loss over all logits are known: no kernels that know when adapters are off.

    axolotl's kernels compute log-probabilities.
    """
    known = run.rl in {"orpo", "simpo"} or (run.rl in {"dpo", "ipo", "kto"} and run.scores_reference)
    alone = run.rl == "kto" and run.micro_batch_size == 1  # which TRL refuses
    plain = run.loss == "plain" and run.autocast and has_kernels(run)
    return known and not alone and plain and not (run.lora and run.lora.kernels)


def _uncovered_model(run: Run, model: Architecture) -> Iterator[str]:
    """What of the model no tape has."""
    decoder = model.decoder_type or model.model_type
    family = family_of(decoder)
    if family is None or not family.has_tapes or model.trace is not None:
        yield f"the family {decoder}"
    elif any(is_outside_decoder(tensor) for tensor in model.tensors) and not (
        towers_are_unused(run, model) or has_taped_encoder(run, model)
    ):
        yield "a tower that computes, or is trained"
    elif not all(is_taped(run, block) for block in model.blocks):
        yield "some of its layers"
    elif run.attention not in {"flash", "sdpa"} and not (run.attention == "xformers" and _keys_have_all_heads(model)):
        yield f"{run.attention} attention"
    elif lacks_kernel(run):
        yield "sdpa without a kernel"
    elif not _masks_are_taped(run, model):
        yield "sdpa with such a mask"


def towers_are_unused(run: Run, model: Architecture) -> bool:
    """Whether towers lie in memory alone, frozen, and the model's own code does with text what its decoder does."""
    maskless = run.sample_packing or not model.family.own_loss
    return model.family.text_is_taped and maskless and not (run.uses_images or _trains_towers(run, model))


def has_taped_encoder(run: Run, model: Architecture) -> bool:
    """Whether images go through an encoder of a known order, of which at most adapters are trained."""
    known = is_known(model) and run.lora is not None and run.attention == "flash" and not run.sample_packing
    seen = run.uses_images and _shows_the_same(run, model) and _embeds_plainly(run, model)
    return known and seen and not (_trains_towers(run, model) or _begins_inside(run, model))


def _begins_inside(run: Run, model: Architecture) -> bool:
    """Whether gradients end at adapters within a tower, for its input needs none."""
    lora = run.lora
    found = lora is not None and any(is_target(lora, one) for one in _linears_outside_decoder(model))
    return found and not all(tower.hooked for tower in model.towers)


def _linears_outside_decoder(model: Architecture) -> Iterator[LinearShape]:
    """The linear layers of towers, and of what joins them to the decoder, by their names alone."""
    modules = (tensor.module for tensor in model.tensors if is_outside_decoder(tensor) and tensor.linear)
    yield from (LinearShape(one.rpartition(".")[2], 0, 0, "mlp", one) for one in modules)


def _trains_towers(run: Run, model: Architecture) -> bool:
    """Whether weights of towers, or of what joins them to the decoder, are trained."""
    return any(trained_count(run, tensor) for tensor in model.tensors if is_outside_decoder(tensor))


def _shows_the_same(run: Run, model: Architecture) -> bool:
    """Whether there are images, and as many in evaluation."""
    same = not run.evaluates or run.eval_batch_size == run.micro_batch_size
    return same and at_tower(run, model.towers[0]).tokens > 0


def _embeds_plainly(run: Run, model: Architecture) -> bool:
    """Whether patches are embedded by a convolution, or by a linear layer as it is."""
    linears = [one for one in _linears_outside_decoder(model) if one.name == "patch_embedding"]
    return not any(run.quantization or (run.lora and is_target(run.lora, one)) for one in linears)


def _keys_have_all_heads(model: Architecture) -> bool:
    """Whether xformers' FlashAttention gets no copies of keys: axolotl/monkeypatch/attention/xformers.py@0.19.0."""
    same = all(block.attention and block.attention.heads == block.attention.kv_heads for block in model.blocks)
    return same and model.family.xformers == "runs"


def _masks_are_taped(run: Run, model: Architecture) -> bool:
    """Whether sdpa gets no mask, or one mask for all layers, by a kernel that sums in registers."""
    layers = [block.attention for block in model.blocks if block.attention is not None]
    evaluated = replace(run, micro_batch_size=run.eval_batch_size, sequence_len=run.eval_sequence_len)
    if not any(masked(one, model.variant, layer) for one in (run, evaluated) for layer in layers):
        return True
    same = len({(layer.kind, layer.window) for layer in layers}) == 1
    # A mask is also multiplied with what Mamba reads; latent attention was recorded without one.
    others = any(block.states is not None or is_latent(block) for block in model.blocks)
    return same and not others and not varlen(run) and all(layer.head_dim <= WIDEST for layer in layers)


def _saves_tables_alone(run: Run, lora: Lora) -> bool:
    """Whether no modules but embedding and head are trained as a whole, each by itself."""
    if run.model is None or ties_ends(run, run.model):
        return False
    return set(lora.modules_to_save) <= set(run.model.family.embedding_modules)


def _trains_nothing(run: Run) -> bool:
    """Whether adapters are frozen alone, and backward reaches them by what checkpointing asks of the embedding."""
    frozen = run.model is not None and freezes_all(run, run.model)
    copies = run.lora is not None and run.lora.modules_to_save
    return frozen and run.activation_checkpointing and not copies


def uncovered_method(run: Run) -> Iterator[str]:
    """What of the adapter and the quantization no tape has."""
    lora = run.lora
    if run.quantization not in {None, "nf4", "int8"} or (run.quantization and lora is None):
        yield f"weights in {run.quantization}"
    if (
        (run.fp32_residual_stream and not run.embeddings_fp32)
        or (run.unfrozen_parameters and not _trains_nothing(run))
        or run.stack.base_dtype == "float32"
        or (run.upcasts_unquantized and run.stack.trainer != "axolotl")
    ):
        yield "other widths of weights"
    if lora is None:
        return
    blocks = run.model.blocks if run.model is not None else ()
    if not layers_named(lora) and not any(is_target(lora, linear) for block in blocks for linear in block.linears):
        yield "an adapter without targets"
    bare = any(not any(is_target(lora, linear) for linear in block.linears) for block in blocks)
    if bare and len(blocks) > 1 and not run.asks_for_gradients:
        yield "layers that keep nothing until the first adapter"
    if lora.dora or lora.target_parameters or not _saves_tables_alone(run, lora):
        yield "DoRA or trained modules"
    if layers_named(lora) and (lora.kernels or len(blocks) > 1):
        yield "fused adapters, or layers of several kinds, in some layers alone"
