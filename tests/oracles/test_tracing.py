# pyright: basic
"""The tracer against the formulas, on families that both know; and models that only transformers knows, end to end."""

import json
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from advisor.memory import activations  # noqa: E402
from advisor.memory.activations.from_trace import facts_of  # noqa: E402
from advisor.models import Block, describe  # noqa: E402
from advisor.models.traced import Facts  # noqa: E402
from advisor.tracing.__main__ import answered  # noqa: E402
from advisor.tracing.asking import asked  # noqa: E402
from advisor.tracing.kernels import delta_rule  # noqa: E402
from advisor.tracing.lengths import windows_of  # noqa: E402
from advisor.tracing.measure import measured  # noqa: E402
from advisor.tracing.modules import UntraceableError, config_from  # noqa: E402

from .families import EAGER, FAMILIES, described, run_of  # noqa: E402
from .trace import Setting  # noqa: E402

pytestmark = pytest.mark.oracle

FP32 = torch.float32
FACTS = Facts(
    single=False, autocast=True, fp32_weights=False, fp32_stream=False, attention="sdpa", padded=False, beyond=0
)
SMALL = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 64,
}
LORA = Setting(adapter="all-linear", dropout=0.1)
SETTINGS: dict[str, Setting] = {
    "full": Setting(),
    "full, no autocast": Setting(autocast=False),
    "full, fp32": Setting(weights=FP32, autocast=False),
    "full, fp32 weights": Setting(weights=FP32),
    "full, eager": Setting(attention="eager"),
    "full, flash": Setting(attention="flash"),
    "full, mask": Setting(padding_mask=True),
    "LoRA": LORA,
    "LoRA, no dropout": Setting(adapter="all-linear"),
    "LoRA, bf16 adapters": replace(LORA, autocast=False, adapter_fp32=False),
    "LoRA on queries and values": Setting(adapter=("q_proj", "v_proj")),
}
PLAIN = ("llama", "qwen3_moe", "gemma3", "qwen3", "phi3", "gpt_neox", "starcoder2", "olmo2", "cohere", "mixtral")
SCALARS = 64
"""Bytes of single numbers that a step holds: the loss, its gradient."""


@pytest.fixture
def ours() -> Any:
    """A family's config, and its formulas and trace under a setting."""

    def make(
        name: str, setting: Setting, length: int, rows: int = 1, **facts: Any
    ) -> tuple[Any, list[tuple[Block, Block]]]:
        config = FAMILIES[name](3).to_dict()
        run = run_of(described(FAMILIES[name]), setting, rows=rows, length=length, **facts)
        assert run.model is not None
        windows = windows_of(config)
        model = measured(config, facts_of(run, windows), windows)
        traced = replace(run, model=replace(run.model, trace=model.trace))
        return traced, list(zip(run.model.blocks, model.blocks, strict=True))

    return make


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_the_inventory_of_the_tracer_is_that_of_the_tables(name):
    config = FAMILIES[name](3).to_dict()
    table = describe(config, name, "test")
    facts = facts_of(run_of(table, Setting(attention="eager" if name in EAGER else "sdpa")), ())
    found = measured(config, facts, ())
    assert found.parameters == table.parameters
    assert {(t.name, t.shape, t.linear): t.count for t in found.tensors} == {
        (t.name, t.shape, t.linear): t.count for t in table.tensors
    }
    for kind in ("embedding", "head", "norm", "experts"):
        assert found.by_kind.get(kind, 0) == table.by_kind.get(kind, 0), kind
    assert [(b.count, b.hidden, b.parameters) for b in found.blocks] == [
        (b.count, b.hidden, b.parameters) for b in table.blocks
    ]
    assert (found.tied, found.vocab_size, found.hidden_size) == (table.tied, table.vocab_size, table.hidden_size)


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("case", ["full", "full, no autocast", "LoRA"])
def test_a_traced_family_keeps_what_the_formulas_say(ours, name, case):
    if case == "LoRA" and name == "mixtral":
        pytest.skip("its formula stands for adapters on attention alone")
    run, blocks = ours(name, SETTINGS[case], length=300)
    for table, found in blocks:
        assert activations.saved_bytes(run, found) == activations.saved_bytes(run, table)
        assert activations.checkpoint_bytes(run, found) == activations.checkpoint_bytes(run, table)


@pytest.mark.parametrize("case", SETTINGS)
def test_every_way_to_train_is_traced_as_the_formulas_have_it(ours, case):
    run, [(table, found)] = ours("llama", SETTINGS[case], length=3000)
    assert activations.saved_bytes(run, found) == activations.saved_bytes(run, table)
    working = activations.backward_peak_bytes(run, found) - activations.backward_peak_bytes(run, table)
    gradient_of_a = 2 * 16 * 640
    # Shared out over tokens between two lengths, a fixed amount comes out a little larger than it is.
    assert 0 <= working <= SCALARS + 1.5 * gradient_of_a
    outside = activations.head_saved_bytes(run, run.model)
    assert outside == pytest.approx(activations.head_saved_bytes(run, replace(run.model, trace=None)), abs=SCALARS)


def test_a_stream_in_fp32_is_traced(ours):
    run, [(table, found)] = ours("mistral", Setting(), length=300, fp32_residual_stream=True)
    assert activations.saved_bytes(run, found) == activations.saved_bytes(run, table)


def test_rows_are_added_up(ours):
    run, [(table, found)] = ours("llama", Setting(padding_mask=True), length=700, rows=3)
    assert activations.saved_bytes(run, found) == activations.saved_bytes(run, table)


@pytest.mark.parametrize("length", [48, 64, 2000])
def test_a_window_counts_where_rows_are_longer(ours, length):
    run, [(table, found)] = ours("mistral with a window", Setting(), length=length)
    assert activations.saved_bytes(run, found) == activations.saved_bytes(run, table)


def test_layers_that_differ_are_traced_apart():
    config = transformers.Gemma3TextConfig(
        num_hidden_layers=7,
        hidden_size=192,
        num_attention_heads=6,
        num_key_value_heads=2,
        intermediate_size=640,
        head_dim=48,
        vocab_size=64,
        sliding_window=512,
        tie_word_embeddings=False,
    ).to_dict()
    table = describe(config, "gemma3", "test")
    run = run_of(table, Setting(), length=2000)
    found = measured(config, facts_of(run, (512,)), (512,))
    run = replace(run, model=replace(table, trace=found.trace))
    assert [b.count for b in found.blocks] == [b.count for b in table.blocks] == [6, 1]
    kept = [activations.saved_bytes(run, block) for block in found.blocks]
    assert kept == [activations.saved_bytes(run, block) for block in table.blocks]
    assert kept[0] > kept[1]


def test_the_delta_rule_keeps_what_its_kernel_keeps():
    rows, length, heads, width, wide = 1, 128, 4, 16, 32
    query, key = (torch.zeros(rows, length, heads, width, dtype=torch.bfloat16, requires_grad=True) for _ in range(2))
    value = torch.zeros(rows, length, heads, wide, dtype=torch.bfloat16, requires_grad=True)
    gate = torch.zeros(rows, length, heads, requires_grad=True)
    beta = torch.zeros(rows, length, heads, dtype=torch.bfloat16, requires_grad=True)
    kept: list[int] = []
    with torch.autograd.graph.saved_tensors_hooks(lambda one: kept.append(one.nbytes) or one, lambda one: one):
        output, _ = delta_rule(query, key, value, g=gate, beta=beta, use_qk_l2norm_in_kernel=True)
    per_head = 2 * (2 * width + wide) + 4 + 2 + 2 * 64 + 2 * 4
    assert sum(kept) == length * heads * per_head
    assert output.shape == value.shape
    output.sum().backward()
    assert query.grad.shape == query.shape


MODELS: dict[str, dict[str, Any]] = {
    # adept/persimmon-8b-base
    "persimmon": {
        "architectures": ["PersimmonForCausalLM"],
        "model_type": "persimmon",
        "vocab_size": 262144,
        "hidden_size": 4096,
        "intermediate_size": 16384,
        "num_hidden_layers": 36,
        "num_attention_heads": 64,
        "max_position_embeddings": 16384,
        "hidden_act": "relu2",
        "qk_layernorm": True,
    },
    # openbmb/MiniCPM3-4B, without its own code
    "minicpm3": {
        "architectures": ["MiniCPM3ForCausalLM"],
        "auto_map": {"AutoModelForCausalLM": "modeling_minicpm.MiniCPM3ForCausalLM"},
        "model_type": "minicpm3",
        "vocab_size": 73448,
        "hidden_size": 2560,
        "intermediate_size": 6400,
        "num_hidden_layers": 62,
        "num_attention_heads": 40,
        "num_key_value_heads": 40,
        "q_lora_rank": 768,
        "kv_lora_rank": 256,
        "qk_nope_head_dim": 64,
        "qk_rope_head_dim": 32,
    },
    # upstage/Solar-Open-100B
    "solar_open": {
        "architectures": ["SolarOpenForCausalLM"],
        "model_type": "solar_open",
        "vocab_size": 196608,
        "hidden_size": 4096,
        "moe_intermediate_size": 1280,
        "num_hidden_layers": 48,
        "num_attention_heads": 64,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "n_routed_experts": 128,
        "n_shared_experts": 1,
        "num_experts_per_tok": 8,
    },
}
YAML = """\
base_model: ./model
sequence_len: 4096
micro_batch_size: 1
gradient_accumulation_steps: 8
optimizer: adamw_torch_fused
learning_rate: 0.0002
datasets: [{path: tatsu-lab/alpaca, type: alpaca}]
adapter: lora
lora_r: 32
lora_alpha: 64
lora_dropout: 0.05
lora_target_linear: true
bf16: true
gradient_checkpointing: true
evals_per_epoch: 1
val_set_size: 0.1
"""
COMMAND = """
import sys

if "blocked" in sys.argv:
    sys.argv.remove("blocked")
    sys.modules["torch"] = sys.modules["transformers"] = None
from advisor.cli.main import main

try:
    main()
finally:
    heavy = [name for name in ("torch", "transformers") if sys.modules.get(name) is not None]
    print("loaded", *heavy, file=sys.stderr)
"""


def advisor(folder: Path, *arguments: str) -> tuple[int, str]:
    """The command in a process of its own, which never loads torch; its code, and what it says."""
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, *arguments, "--isolated"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr.splitlines()[-1].strip() == "loaded", done.stderr
    return done.returncode, done.stdout


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_COLOR", "1")
    (tmp_path / "run.yaml").write_text(YAML)
    return tmp_path


def with_model(folder: Path, config: dict[str, Any]) -> None:
    (folder / "model").mkdir()
    (folder / "model" / "config.json").write_text(json.dumps(config))


def elements(config: dict[str, Any]) -> int:
    values = {key: value for key, value in config.items() if key not in ("auto_map", "model_type")}
    made = transformers.AutoConfig.for_model(config["model_type"], **values)
    with torch.device("meta"):
        return transformers.AutoModelForCausalLM.from_config(made).num_parameters()


@pytest.mark.parametrize("name", MODELS)
def test_a_model_that_only_transformers_knows_gets_a_verdict_and_keeps_it_without_torch(folder, name):
    with_model(folder, MODELS[name])
    wide, small = ("--gpus", "8x b200"), ("--gpus", "1x rtx-4090")
    code, before = advisor(folder, "check", "run.yaml", *small)
    assert (code, "unknown model" in before, "--trace" in before) == (0, True, True)
    code, first = advisor(folder, "estimate", "run.yaml", "--output-format", "json", "--trace", *wide)
    assert code in (0, 1)
    phases = {phase["name"]: phase for phase in json.loads(first)["memory"]["phases"]}
    loaded = phases["load"]["terms"][0]["bytes"]
    assert loaded >= 2 * elements(MODELS[name])
    sources = {term["source"] for phase in phases.values() for term in phase["terms"]}
    assert f"traced from transformers {transformers.__version__}" in sources
    again = advisor(folder, "estimate", "run.yaml", "--output-format", "json", "blocked", *wide)
    assert again == (code, first)
    code, told = advisor(folder, "check", "run.yaml", "blocked", *small)
    assert (code, "oes not fit" in told) == (1, name != "minicpm3") or (code, name) == (0, "minicpm3")


def test_code_of_a_repository_is_never_run(folder):
    (folder / "ran").unlink(missing_ok=True)
    with_model(
        folder, {"model_type": "brand_new", "auto_map": {"AutoConfig": "code.C", "AutoModelForCausalLM": "code.M"}}
    )
    (folder / "model" / "code.py").write_text(f"open({str(folder / 'ran')!r}, 'w')\n")
    code, told = advisor(folder, "check", "run.yaml", "--trace", "--gpus", "1x h200")
    assert code == 0
    assert "unknown model" in told
    assert "trust_remote_code" in told
    assert not (folder / "ran").exists()


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"model_type": "brand_new"}, "has no model type 'brand_new' either"),
        ({"hidden_size": 64}, "names no model_type"),
        ({"model_type": "persimmon", "num_hidden_layers": 10**9}, "1000000000 layers"),
        ({"model_type": "t5"}, "no causal language model"),
        ({"model_type": "jetmoe", "num_hidden_layers": 2}, "DataDependentOutputException"),
        ({"model_type": "persimmon", "hidden_size": "wide"}, "cannot be traced"),
    ],
)
def test_what_cannot_be_traced_is_said(config, reason):
    facts = facts_of(run_of(described(FAMILIES["llama"]), Setting()), ())
    told = asked(config, facts, (), transformers.__version__)
    assert isinstance(told, str)
    assert reason in told


def test_rotary_sections_that_a_short_config_leaves_out_are_filled_in():
    config = config_from(
        {"model_type": "qwen2_5_vl", "text_config": {"hidden_size": 768, "num_attention_heads": 12, "vocab_size": 64}}
    )
    assert sum(config.get_text_config().rope_parameters["mrope_section"]) == 32


def test_an_error_that_begins_with_an_empty_line_still_says_something(monkeypatch):
    """As transformers has it of packages that a model needs."""

    def fails(*_asked: object) -> None:
        raise ImportError("\nTimmWrapperModel requires the timm library")

    monkeypatch.setattr("advisor.tracing.measure.measured", fails)
    said = answered({"config": {}, "facts": asdict(FACTS), "windows": []})
    assert said == {"reason": "it cannot be traced (ImportError: TimmWrapperModel requires the timm library)"}


def test_layers_that_read_images_are_not_traced():
    config = transformers.MllamaConfig(
        text_config={"num_hidden_layers": 10, "cross_attention_layers": [3, 8], **SMALL, "pad_token_id": 0},
        vision_config={"hidden_size": 64, "num_hidden_layers": 1, "num_global_layers": 1, "attention_heads": 4},
    ).to_dict()
    with pytest.raises(UntraceableError, match="does not run on text alone"):
        measured(config, FACTS, ())
