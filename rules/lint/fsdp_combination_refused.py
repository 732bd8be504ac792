"""Settings that axolotl refuses with FSDP."""

from collections.abc import Iterator

from advisor import Change, Example, Hit, Remove, Rule, Run, Set, but, only
from advisor.memory import estimate
from advisor.record import replace
from advisor.run.axolotl.sharding import VERSION_KEYS, spelled

WITHOUT_FSDP = (Remove("fsdp_version"), Remove("fsdp_config"), Remove("fsdp"))
REFUSED_QUANTIZED = frozenset({"dpo", "ipo", "kto", "orpo"})
NEED_VERSION_2 = frozenset({"muon", "polora", "q_galore_adamw8bit"})
MESH = ("dp_shard_size", "dp_replicate_size", "tensor_parallel_size", "context_parallel_size")
"""Sizes that FSDP2 alone can be told."""
RESHARD = "reshard_after_forward"
"""What FSDP1 would take for the name of a strategy."""


def finds(run: Run) -> Iterator[Hit]:
    """What the schema's validators look for, by version."""
    if run.fsdp is None or not run.config.get("fsdp_config"):
        return
    if run.fsdp.version == 2:
        yield from quantized(run)
    else:
        yield from whole_matrices(run)
    yield from pinned(run)


def quantized(run: Run) -> Iterator[Hit]:
    """A quantized base under FSDP2: not loaded by one process alone in 4 bits, and not with a loss of pairs."""
    bits = next((key for key in ("load_in_4bit", "load_in_8bit") if run.is_on(key)), None)
    of_pairs = run.rl in REFUSED_QUANTIZED and not isinstance(run.config.get("fsdp_version"), str)
    loading = spelled(run, "cpu_ram_efficient_loading")
    if not of_pairs and bits == "load_in_4bit" and loading and run.config.at(loading) is True:
        name = loading.rpartition(".")[2]
        message = (
            f"`{name}: true` with `load_in_4bit` is refused by axolotl with FSDP2: it would hang; set it to `false`"
        )
        yield Hit(loading, message, (Set(loading, False),))
    if bits and of_pairs:
        refused = f"`{bits}: true` with `rl: {run.rl}` is refused by axolotl with FSDP2"
        if fits_whole(run):
            yield Hit(bits, f"{refused}; leave FSDP out: each GPU can hold the model", WITHOUT_FSDP)
        else:
            edits = version_1(run)
            yield Hit(bits, f"{refused}; {version_1_words(run)}{'' if edits else ', or use DeepSpeed'}", edits)


def version_1(run: Run) -> tuple[Change, ...]:
    """What turns FSDP2 to FSDP1; nothing where more than its own keys would have to go."""
    if needs_version_2(run) or any(run.config.get(key) not in (None, 1) for key in MESH):
        return ()
    said = next((key for key in VERSION_KEYS if run.config.at(key) is not None), VERSION_KEYS[0])
    reshard = spelled(run, RESHARD)
    return (Set(said, 1), Remove(reshard)) if reshard else (Set(said, 1),)


def version_1_words(run: Run) -> str:
    """The same in words."""
    _, _, reshard = (spelled(run, RESHARD) or "").rpartition(".")
    return f"set `fsdp_version: 1`{f' without `{reshard}`' if reshard else ''}"


def needs_version_2(run: Run) -> bool:
    """Whether the optimizer wants whole matrices."""
    name = run.config.get("optimizer")
    return isinstance(name, str) and (name in NEED_VERSION_2 or name.startswith("flash_"))


def fits_whole(run: Run) -> bool:
    """Whether each GPU can hold all of the model."""
    found = estimate(replace(run, sharding=None))
    return found is not None and found.verdict == "fits"


def whole_matrices(run: Run) -> Iterator[Hit]:
    """Optimizers that FSDP1 would hand flat slices."""
    if needs_version_2(run):
        name = run.config.get("optimizer")
        yield Hit("optimizer", f"`optimizer: {name}` is refused by axolotl with FSDP1; set `fsdp_version: 2`")


def pinned(run: Run) -> Iterator[Hit]:
    """Unpinned host memory, which FSDP2 alone knows, and for offloaded weights alone."""
    key = spelled(run, "cpu_offload_pin_memory")
    if run.fsdp is None or key is None or run.config.at(key) is not False:
        return
    name = key.rpartition(".")[2]
    if run.fsdp.version == 1:
        yield Hit(key, f"`{name}: false` is refused by axolotl with FSDP1; set `fsdp_version: 2`, or remove it")
    elif not run.fsdp.offload_params:
        yield Hit(key, f"`{name}: false` without `offload_params: true` is refused by axolotl; remove it, or set both")


PAIRS = """
    base_model: {model}
    adapter: qlora
    load_in_4bit: true
    lora_r: 16
    lora_alpha: 32
    lora_target_linear: true
    rl: kto
    remove_unused_columns: false
    sequence_len: 2048
    micro_batch_size: 1
    gradient_checkpointing: true
    attn_implementation: flash_attention_2
"""
SHARDED_PAIRS = f"""{PAIRS}    fsdp_version: 2
    fsdp_config:
      cpu_ram_efficient_loading: true
      auto_wrap_policy: TRANSFORMER_BASED_WRAP
"""
rule = Rule(
    id="fsdp-combination-refused",
    stage="lint",
    title="Settings that axolotl refuses with FSDP",
    finds=finds,
    level="error",
    proof="rejects",
    why="""
        With `cpu_ram_efficient_loading` FSDP2 lets the first process load and scatter: it packs a 4-bit base alone, the
        others wait for other shapes. DPO, IPO, KTO and ORPO on a quantized base are refused with it altogether. Muon,
        PoLoRA, Q-GaLore and the flash optimizers need whole matrices, where FSDP1 has flat slices. Host memory is left
        unpinned by FSDP2 alone, for weights that it offloads.
    """,
    safe=True,
    source="axolotl/utils/schemas/validation.py:938-942, 963-966, 1031-1036, 1066-1072, 1160-1190, 1266-1280@0.19.0",
    examples=lambda: (
        Example(
            gpus="4x a100-80gb",
            before="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: qlora
                load_in_4bit: true
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                fsdp_version: 2
                fsdp_config:
                  cpu_ram_efficient_loading: true
                  auto_wrap_policy: TRANSFORMER_BASED_WRAP
            """,
            after="""
                base_model: meta-llama/Llama-3.1-8B
                adapter: qlora
                load_in_4bit: true
                lora_r: 16
                lora_alpha: 32
                lora_target_linear: true
                fsdp_version: 2
                fsdp_config:
                  cpu_ram_efficient_loading: false
                  auto_wrap_policy: TRANSFORMER_BASED_WRAP
            """,
        ),
        Example(
            gpus="4x a100-80gb",
            before=SHARDED_PAIRS.format(model="Qwen/Qwen2.5-7B"),
            after=PAIRS.format(model="Qwen/Qwen2.5-7B"),
        ),
        Example(
            gpus="4x rtx-4090",
            before=f"{SHARDED_PAIRS.format(model='meta-llama/Llama-3.1-70B')}      reshard_after_forward: true",
            after=SHARDED_PAIRS.format(model="meta-llama/Llama-3.1-70B").replace("version: 2", "version: 1"),
        ),
        but("optimizer: muon", gpus="4x rtx-4090", kept=True),
        but("base_model: nobody/knows-this", "dp_replicate_size: 2", without=("optimizer",), kept=True),
        but("fsdp_config:\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP", without=("rl", "remove_unused_columns")),
        but(
            "adapter: lora",
            "load_in_8bit: true",
            "rl: dpo",
            "fsdp_config:\n  fsdp_version: 2\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP",
            without=("load_in_4bit", "fsdp_version"),
            fires=True,
        ),
        only(
            "base_model: Qwen/Qwen2.5-7B",
            "optimizer: muon",
            "fsdp_config:\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP",
            gpus="4x a100-80gb",
            fires=True,
        ),
        but("fsdp_version: 2", "fsdp_config:\n  cpu_offload_pin_memory: false", without=("optimizer",), fires=True),
        but(
            "base_model: meta-llama/Llama-3.1-8B",
            "adapter: qlora",
            "load_in_4bit: true",
            "lora_r: 16",
            "lora_alpha: 32",
            "lora_target_linear: true",
            "fsdp_version: 1",
            "fsdp_config:\n  cpu_ram_efficient_loading: true\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP",
            without=("optimizer",),
        ),
        but("fsdp_version: 2", "fsdp_config:\n  offload_params: true\n  cpu_offload_pin_memory: false"),
        only("base_model: Qwen/Qwen2.5-7B", "fsdp_version: 2", "fsdp_config:\n  offload_params: true", "rl: dpo"),
        but(
            "base_model: meta-llama/Llama-3.1-8B",
            "adapter: lora",
            "load_in_8bit: true",
            "lora_r: 16",
            "lora_alpha: 32",
            "lora_target_linear: true",
            "fsdp_config:\n  fsdp_version: 2",
            without=("optimizer",),
            gpus="1x a100-80gb",
        ),
        only(
            "base_model: meta-llama/Llama-3.1-8B",
            "rl: dpo",
            "fsdp_config:\n  fsdp_version: 2",
            "load_in_4bit: true",
            fires=True,
        ),
        only(
            "base_model: Qwen/Qwen2.5-7B",
            "optimizer: adamw_torch_fused",
            "fsdp_config:\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP",
        ),
        only("base_model: Qwen/Qwen2.5-7B", "fsdp_version: 2", "fsdp_config:\n  cpu_ram_efficient_loading: true"),
        only("base_model: Qwen/Qwen2.5-7B", "fsdp_version: 2", "fsdp_config:\n  cpu_offload_pin_memory: true"),
        but(
            "adapter: lora",
            "lora_r: 16",
            "lora_alpha: 32",
            "lora_target_linear: true",
            "load_in_8bit: true",
            'fsdp_version: "2"',
            "fsdp_config:\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP",
            without=("load_in_4bit",),
        ),
        but(
            "adapter: qlora",
            "lora_r: 16",
            "lora_alpha: 32",
            "lora_target_linear: true",
            "fsdp_version: 2",
            "fsdp_config:\n  cpu_ram_efficient_loading: false",
            without=("rl",),
        ),
        only("base_model: Qwen/Qwen2.5-7B", "optimizer: muon", "fsdp: [full_shard, auto_wrap]", gpus="4x a100-80gb"),
    ),
)
