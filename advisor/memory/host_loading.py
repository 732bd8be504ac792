"""Host memory of a node while its processes load a model that FSDP or ZeRO-3 cuts."""

from advisor.memory.activations.experts import stacks
from advisor.memory.ledger import HostTerm
from advisor.memory.lora_targets import stacked
from advisor.memory.weight_groups import base_width
from advisor.models import Architecture
from advisor.models.family import family_of
from advisor.run import Fsdp, Run

MERGED = "experts, stacked by each rank"
MERGED_ONCE = "experts, stacked by one process"
CAST = "weights in another dtype than their files'"
ZEROS = "zeros of the other processes"
MERGING = (
    "transformers/integrations/deepspeed.py:386-428,463-464, transformers/modeling_utils.py:4477-4490@5.16.1; "
    "https://github.com/huggingface/transformers/issues/47514"
)
BY_FSDP = (
    "axolotl/loaders/model.py:705-713,995-1004@0.19.0: on the host; "
    "transformers/core_model_loading.py:1236-1241,1604@5.16.1: files are mapped, stacks and casts are made"
)
FILLED = (
    "transformers/modeling_utils.py:4790-4796@5.16.1, axolotl/loaders/patch_manager.py:425-438@0.19.0; "
    "https://github.com/huggingface/transformers/pull/45649"
)
FILLS = "5.6.0"
"""From this transformers on the other processes write zeros, where they only reserved memory before."""
STORED = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}


def loading_terms(run: Run, model: Architecture, local: int) -> tuple[HostTerm, ...]:
    """Memory of the node's processes while they load: nothing where tensors stay in mapped files.

    Of a split checkpoint each rank of ZeRO-3 stacks the experts of all layers before the first weight is handed out,
    also those that only rank 0 copies; what it does not stack lies in files that are mapped, and can be dropped.
    """
    if run.quantization is not None:
        return ()
    if run.zero_stage == 3:
        made = _stacks(run, model)
        text = f"2 B x {made:,} x {local} ranks, while loading"
        return (HostTerm(MERGED, 2 * made * local, False, text, MERGING),) if made else ()
    cuts = run.world_size > 1 and run.tensor_parallel_size == 1 and run.stack.trainer == "axolotl"
    return _under_fsdp(run, run.fsdp, model, local) if run.fsdp is not None and cuts else ()


def _under_fsdp(run: Run, fsdp: Fsdp, model: Architecture, local: int) -> tuple[HostTerm, ...]:
    """FSDP's processes load on the host: one of them alone where loading is efficient, and the others get zeros.

    With an adapter axolotl leaves those of the others on meta; FSDP1 lets them read the files all the same.
    """
    width, copies = base_width(run), 2 if run.reference_model else 1
    cast = model.dtype != STORED[run.precision]
    made = model.parameters if cast else _stacks(run, model)
    once = fsdp.cpu_ram_efficient_loading and fsdp.version == 2
    ranks = 1 if once else local
    name = CAST if cast else MERGED_ONCE if once else MERGED
    text = f"{width} B x {made:,} x {ranks * copies}, while loading"
    own = HostTerm(name, width * made * ranks * copies, False, text, BY_FSDP)
    filled = fsdp.cpu_ram_efficient_loading and run.adapter is None and run.stack.at_least("transformers", FILLS)
    others = (local - 1) * copies if filled else 0
    text = f"{width} B x {model.parameters:,} x {others} processes, while loading"
    zeros = HostTerm(ZEROS, width * model.parameters * others, False, text, FILLED)
    return tuple(term for term in (own, zeros) if term.bytes)


def _stacks(run: Run, model: Architecture) -> int:
    """Elements of the experts that transformers stacks out of a checkpoint that has them one by one."""
    decoder = family_of(model.decoder_type) if model.decoder_type else None
    merges = model.family.merges_experts or (decoder is not None and decoder.merges_experts)
    if not merges or not stacked(run):
        return 0
    return sum(block.count * sum(stacks(block).values()) for block in model.blocks)
