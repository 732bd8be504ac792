"""Small harms to a text: what a slip of the hand, a bad merge or a template engine does to it, and worse."""

from collections.abc import Callable
from typing import Any

Draw = Callable[[Any], Any]

SHORT = """\
null¦~¦true¦no¦auto¦"auto"¦0¦1¦-1¦-0.0¦1.5¦1e5¦1e-5¦1e400¦.nan¦.inf¦-.inf¦nan¦0x1F¦0o17¦1_000¦12:30:45¦2024-01-01
[]¦{}¦[[]]¦[1, 2]¦{a: 1}¦[null]¦{"": 1}¦[{}]¦"a¦'¦|¦>-¦? ¦&x 1¦*x¦&x [*x]¦<<: *a¦!tag 1¦!!python/object/apply:os.system [exit]
!!binary aGk=¦!!set {a}¦!!omap []¦@a¦`a`¦%a¦- a¦a: b¦a: b: c¦a #b¦#¦{{ value }}¦${HOME}¦../..¦/dev/null¦.¦é¦😀¦\ufeff¦\u2028¦\x07¦\x85
cpu¦nvme¦none¦lora¦qlora¦bf16¦fp16¦meta-llama/Llama-3.1-8B¦Qwen/Qwen3-30B-A3B¦mistralai/Mixtral-8x7B-v0.1¦ds.json¦deepspeed_configs/zero3.json
zero2.json¦flex_attention¦adamw_bnb_8bit¦muon¦galore_adamw¦grpo¦dpo¦4294967296¦18446744073709551616¦7¦3
""".replace("\n", "¦").split("¦")
LONG = ["9" * 60, "9" * 400, "9" * 5000, "1." + "0" * 400, "x" * 3000, "[" * 200, "\t", ""]
TOKENS = [*SHORT, *LONG]

LINES = [
    "adapter: lora", "adapter: qlora", "load_in_4bit: true", "load_in_8bit: true", "bf16: auto", "fp16: true",
    "deepspeed: ds.json", "deepspeed: {zero_optimization: {stage: 3}}", "deepspeed: [1]", "deepspeed: deepspeed_configs/zero2.json",
    "fsdp_config: {fsdp_version: 2, offload_params: true}", "fsdp: full_shard auto_wrap", "fsdp_version: 2",
    "rl: dpo", "rl: grpo", "rl: kto", "sample_packing: true", "sequence_len: 131072", "micro_batch_size: 64",
    "gradient_checkpointing: false", "gradient_checkpointing: offload", "context_parallel_size: 2", "tensor_parallel_size: 2",
    "dp_shard_size: 2", "expert_parallel_size: 2", "quantize_moe_experts: true", "unfrozen_parameters: [model.layers.(1|2)]",
    "optimizer: adamw_8bit", "torch_dtype: float32", "eval_batch_size: 64", "val_set_size: 0.1", "lora_target_modules: [q_proj]",
    "lora_modules_to_save: [embed_tokens, lm_head]", "plugins: [axolotl.integrations.liger.LigerPlugin]", "liger_fused_linear_cross_entropy: true",
    "base_model: x/y", "  indented: 1", "- item", "---", "...", "# advisor: ignore[does-not-fit] x", "# advisor: gpus=8x nothing",
    "# advisor: file-ignore[", "&a : 1", "? complex", "k: |", "  text", "<<: {a: 1}", "activation_offloading: true", "bnb_config_kwargs: {bnb_4bit_use_double_quant: 7}",
]  # fmt: skip


VALUES: list[Any] = [
    None, True, False, "auto", "", "cpu", "none", "nvme", "bf16", -1, 0, 1, 2, 3, 7, 1.5, -0.5, 1e300, 2**53, 2**64, 2**65, 10**400,
    float("inf"), float("nan"), [], {}, [1], ["a", None], {"a": 1}, {"stage": 3}, {"enabled": "auto"}, "x" * 500, "\x00", "é😀",
]  # fmt: skip


def harmed(draw: Draw, strategies: Any, value: Any) -> Any:
    """A JSON value with another in one place, or a key gone or under another name."""
    match value:
        case dict() if value and draw(strategies.integers(0, 4)):
            key = draw(strategies.sampled_from(sorted(value)))
            rest = {name: item for name, item in value.items() if name != key}
            match draw(strategies.integers(0, 9)):
                case 0:
                    return rest
                case 1:
                    return rest | {
                        draw(strategies.sampled_from([key[:-1], key + "s", "stage3_" + key, key.upper()])): value[key]
                    }
                case _:
                    return value | {key: harmed(draw, strategies, value[key])}
        case list() if value and draw(strategies.integers(0, 4)):
            at = draw(strategies.integers(0, len(value) - 1))
            return [*value[:at], harmed(draw, strategies, value[at]), *value[at + 1 :]]
        case _:
            return draw(strategies.sampled_from(VALUES))


def mutated(draw: Draw, strategies: Any, text: str, lines: list[str]) -> str:
    """One harm."""
    rows = text.split("\n")
    at = draw(strategies.integers(0, max(0, len(rows) - 1)))
    match draw(strategies.integers(0, 9)):
        case 0:
            del rows[at]
        case 1:
            rows.insert(at, rows[at])
        case 2:
            rows.insert(at, draw(strategies.sampled_from(lines)))
        case 3:
            rows[at] = draw(strategies.sampled_from(["", " ", "  ", "\t"])) + rows[at].lstrip()
        case 4:
            other = draw(strategies.integers(0, len(rows) - 1))
            rows[at], rows[other] = rows[other], rows[at]
        case 5 | 6 | 7:
            head, colon, tail = rows[at].partition(":")
            comma = "," if tail.rstrip().endswith(",") else ""
            rows[at] = f"{head}{colon} {draw(strategies.sampled_from(TOKENS))}{comma}"
        case 8:
            place = draw(strategies.integers(0, len(rows[at])))
            rows[at] = rows[at][:place] + draw(strategies.characters(exclude_categories=["Cs"])) + rows[at][place + 1 :]
        case _:
            rows = rows[:at]
    return "\n".join(rows)
