"""A value that axolotl does not take for its key."""

import re
from collections.abc import Iterator

from advisor import Example, Hit, Rule, Run, but, is_list, only
from advisor.run.axolotl.flags import plugin_names
from advisor.schemas.refusals import hits, refused

KERNELS = "KernelsPlugin"


def finds(run: Run) -> Iterator[Hit]:
    """Each value of the table; a rate and patterns that are none; and numbers that need more than a comparison."""
    yield from hits(run, "value-refused")
    yield from rates(run)
    yield from patterns(run)
    if KERNELS in plugin_names(run.config):
        yield from kernel_numbers(run)


def rates(run: Run) -> Iterator[Hit]:
    """A text that Python makes no number of (axolotl/utils/schemas/training.py:280-285@0.19.0)."""
    rate = run.config.get("learning_rate")
    if isinstance(rate, str) and rate and not is_number(rate):
        point = rate.replace(",", ".")
        remedy = f"write `{point}`" if is_number(point) else "write a number, such as `2e-5`"
        yield Hit("learning_rate", refused(run, f"`learning_rate: {rate[:40]}`", "it is no number", remedy))


def is_number(text: str) -> bool:
    """Whether Python reads a text as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def patterns(run: Run) -> Iterator[Hit]:
    """PEFT takes names of modules for regular expressions."""
    listed = run.config.get("lora_target_modules")
    for number, name in enumerate(listed if is_list(listed) else ()):
        if isinstance(name, str) and not is_pattern(name):
            yield Hit(
                f"lora_target_modules.{number}",
                refused(run, f"`{name}`", "it is no regular expression", "write the module's name, or correct it"),
            )


def is_pattern(name: str) -> bool:
    """Whether a text can be read as a regular expression; most need no reading."""
    if name.replace("_", "").isalnum():
        return True
    try:
        re.compile(name)
    except re.error:
        return False
    return True


def kernel_numbers(run: Run) -> Iterator[Hit]:
    """A step or a share of all steps, and a size, of which axolotl looks at the type as well."""
    start = run.config.get("nvfp4_merge_aware_start_step")
    if run.config.get("nvfp4_merge_aware") and not is_start(start):
        because = "it is neither a step nor a share of the steps between 0 and 1"
        key = "nvfp4_merge_aware_start_step"
        yield Hit(key, refused(run, f"`{key}: {start}`", because, "write for example `100` or `0.1`", "0.18.0"))
    size = run.config.get("moe_dequant_chunk_size")
    if size is not None and not is_size(size):
        because = "it must be a whole number of 1 at least"
        key = "moe_dequant_chunk_size"
        yield Hit(key, refused(run, f"`{key}: {size}`", because, "write one, or remove it", "0.18.0"))


def is_start(value: object) -> bool:
    """axolotl/integrations/kernels/args.py:124-134@0.19.0."""
    if isinstance(value, bool):
        return False
    if isinstance(value, float):
        return 0 < value < 1
    return not isinstance(value, int) or value >= 0


def is_size(value: object) -> bool:
    """axolotl/integrations/kernels/args.py:166-185@0.19.0."""
    try:
        number = float(value) if isinstance(value, (int, float, str)) and not isinstance(value, bool) else 0.0
    except ValueError:
        return False
    return number >= 1 and number.is_integer()


rule = Rule(
    id="value-refused",
    stage="lint",
    title="A value that axolotl does not take for its key",
    finds=finds,
    level="error",
    proof="rejects",
    why="""
        Of the right type, and still refused: a string that axolotl does not accept there, a number out of its
        range, a kernel that the card or the version of torch does not have.
    """,
    safe=True,
    source="axolotl/utils/schemas/config.py:1594-2213@0.19.0, line by line in advisor/schemas/refusals.jsonl",
    examples=lambda: (
        Example(
            before="""
                base_model: Qwen/Qwen2.5-7B
                save_safetensors: false
            """,
            after="""
                base_model: Qwen/Qwen2.5-7B
            """,
        ),
        but("adapter: dora", "lora_r: 16", "lora_alpha: 32", fires=True, fixed=True),
        but(
            "adapter: lora",
            "lora_r: 16",
            "lora_alpha: 32",
            'lora_target_modules: [q_proj, "layers[.*"]',
            fires=True,
            fixed=True,
        ),
        Example(
            before="""
                base_model: Qwen/Qwen2.5-7B
                neftune_noise_alpha: -1
            """,
            after="""
                base_model: Qwen/Qwen2.5-7B
            """,
        ),
        but("learning_rate: auto", fires=True, fixed=True),
        but("learning_rate: 0,0002", fires=True, fixed=True),
        but('learning_rate: "2e-5"', fixed=True),
        but('learning_rate: ""', fixed=True),
        but("attn_implementation: fp8", fires=True, fixed=True),
        but("qat:\n  weight_dtype: int3", fires=True, fixed=True),
        but(
            "adapter: lora",
            "lora_r: 16",
            "lora_alpha: 32",
            "lora_target_modules: [q_proj, 'layers\\.\\d+\\.mlp']",
            "save_safetensors: true",
            "neftune_noise_alpha: 5",
        ),
        but("moe_dequant_chunk_size: 0", fixed=True),
        but(
            "plugins:\n  - axolotl.integrations.kernels.KernelsPlugin",
            "moe_dequant_chunk_size: 0",
            fires=True,
            fixed=True,
        ),
        but(
            "plugins:\n  - axolotl.integrations.kernels.KernelsPlugin",
            "moe_dequant_chunk_size: 1.5",
            fires=True,
            fixed=True,
        ),
        but("plugins:\n  - axolotl.integrations.kernels.KernelsPlugin", "moe_dequant_chunk_size: 64", fixed=True),
        but("plugins:\n  - axolotl.integrations.kernels.KernelsPlugin", "use_scattermoe: true", fixed=True),
        but(
            "plugins:\n  - axolotl.integrations.kernels.KernelsPlugin",
            "nvfp4_merge_aware: true",
            "nvfp4_merge_aware_start_step: 0.1",
            fixed=True,
        ),
        but(
            "plugins:\n  - axolotl.integrations.kernels.KernelsPlugin",
            "nvfp4_merge_aware: true",
            "nvfp4_merge_aware_start_step: 1.5",
            fires=True,
            fixed=True,
        ),
        but(
            "plugins:\n  - axolotl.integrations.kernels.KernelsPlugin",
            "nvfp4_merge_aware: true",
            "nvfp4_merge_aware_start_step: true",
            fires=True,
            fixed=True,
        ),
        but(
            "plugins:\n  - axolotl.integrations.kernels.KernelsPlugin",
            "nvfp4_merge_aware: true",
            "nvfp4_merge_aware_start_step: 100",
            fixed=True,
        ),
        but(
            "plugins:\n  - axolotl.integrations.kernels.KernelsPlugin",
            "nvfp4_merge_aware: true",
            "nvfp4_merge_aware_start_step: soon",
            fixed=True,
        ),
        but("plugins:\n  - axolotl.integrations.kernels.KernelsPlugin", "nvfp4_merge_aware_start_step: -1", fixed=True),
        only(
            "base_model: meta-llama/Llama-3.1-8B",
            "adapter: lora",
            "lora_r: 16",
            "lora_alpha: 32",
            "lora_target_modules:\n  - 1",
        ),
    ),
)
