"""Traces of architectures that the formulas do not know: kept, found again, and asked for only where allowed."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from advisor.cli.main import main
from advisor.memory import activations
from advisor.memory.activations.from_trace import facts_of
from advisor.models import Architecture, Attention, Block, LinearShape, Mlp, WeightShape, resolve
from advisor.models.traced import AdapterFacts, Facts, Growth, LayerTrace, ModelTrace
from advisor.opening import Context, open_run
from advisor.tracing import asking, cache
from advisor.tracing.lengths import lengths_for, windows_of
from advisor.tracing.serialize import decoded, encoded

CONFIG: dict[str, Any] = {"model_type": "nobody_knows", "hidden_size": 64, "num_hidden_layers": 2, "vocab_size": 100}
YAML = "base_model: ./odd\nsequence_len: 1024\nlearning_rate: 0.00002\nbf16: true\n"
YAML += "datasets: [{path: tatsu-lab/alpaca, type: alpaca}]\n"
FACTS = Facts(
    single=False, autocast=True, fp32_weights=False, fp32_stream=False, attention="sdpa", padded=False, beyond=0
)
GPU = ("--isolated", "--gpus", "1x rtx-4090")


def grown(fixed: int, linear: int, square: int = 0) -> Growth:
    """What is kept at three lengths of a row."""
    return Growth(tuple((s, fixed + linear * s + square * s * s) for s in (1024, 2048, 4096)))


def traced(facts: Facts = FACTS, saved: Growth | None = None) -> Architecture:
    """What a trace of ``CONFIG`` could have found."""
    layer = LayerTrace(facts, saved or grown(8, 1000, 2), grown(0, 500), grown(0, 300), grown(0, 128))
    attention = Attention("softmax", 2, 2, 32, 64, 64, 64)
    linears = (LinearShape("q_proj", 64, 64, "attention"),)
    return Architecture(
        name="",
        model_type="nobody_knows",
        hidden_size=64,
        vocab_size=100,
        tied=False,
        tensors=(
            WeightShape("model.embed_tokens.weight", "embedding", (100, 64)),
            WeightShape("model.layers.*.self_attn.q_proj.weight", "attention", (64, 64), 2, linear=True),
        ),
        blocks=(Block(2, 64, attention, Mlp(256), linears, 4096, traces=(layer,)),),
        class_name="OddForCausalLM",
        trace=ModelTrace("5.16.1", (), ((facts, grown(0, 700)),)),
    )


class Asked:
    """Stands in for the process that traces."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[Facts] = []
        self.reason = ""
        monkeypatch.setattr(asking, "asked", self.answer)
        monkeypatch.setattr(asking, "installed_version", lambda: "5.16.1")

    def answer(self, _config: object, facts: Facts, *_rest: object) -> Architecture | str:
        self.calls.append(facts)
        return self.reason or traced(facts)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "config.json").write_text(json.dumps(CONFIG))
    (tmp_path / "run.yaml").write_text(YAML)
    return tmp_path


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> Asked:
    return Asked(monkeypatch)


def call(*arguments: str) -> Any:
    return CliRunner().invoke(main, [*arguments, *GPU])


def said(result: Any) -> str:
    """What was printed, on one line."""
    return " ".join(result.output.split())


def test_growth_is_exact_at_its_points_and_by_rows() -> None:
    growth = grown(8, 1000, 2)
    assert growth.at(2048, 2048) == dict(growth.points)[2048]
    assert growth.at(4 * 300, 300) == 8 + 4 * (1000 * 300 + 2 * 300**2)
    assert growth.written(512) == "1,000 + 2 S = 2,024 B/token"


def test_a_peak_is_not_taken_below_what_was_traced() -> None:
    growth = Growth(((1024, 1024 * 10), (2048, 2048 * 10), (4096, 4096 * 30)))
    assert growth.most(100, 100) == 1000
    assert growth.most(3072, 3072) == 3072 * 20
    assert growth.most(2 * 8192, 8192) == 2 * 8192 * 70


@pytest.mark.parametrize(("beyond", "windows"), [(0, ()), (0, (512,)), (512, (512, 8192)), (4095, (4095, 4110))])
def test_lengths_lie_on_one_side_of_every_window(beyond: int, windows: tuple[int, ...]) -> None:
    lengths = lengths_for(beyond, windows)
    ceiling = min((window for window in windows if window > beyond), default=1 << 40)
    assert len(set(lengths)) == 3
    assert all(beyond < length < ceiling for length in lengths)


def test_windows_are_read_from_every_section() -> None:
    config = {"sliding_window": 4096, "text_config": {"attention_chunk_size": 8192}, "use_sliding_window": True}
    assert windows_of(config) == (4096, 8192)


def test_a_trace_reads_back_as_it_was_written(folder: Path) -> None:
    adapter = AdapterFacts(16, True, 4, ("q_proj",), rank_pattern=(("v_proj", 8),))
    model = traced(replace(FACTS, adapter=adapter))
    cache.write(cache.path_for(CONFIG, FACTS, "5.16.1"), model)
    (found,) = cache.kept(CONFIG)
    assert encoded(found) == encoded(model)
    assert found.blocks[0].traces == model.blocks[0].traces
    assert decoded(json.loads(json.dumps(encoded(model)))).trace == model.trace


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"format": 1}', '{"format": 1, "model": {}}', '{"format": 99, "model": {}}']
)
def test_a_damaged_file_counts_as_absent(folder: Path, text: str) -> None:
    path = cache.path_for(CONFIG, FACTS, "5.16.1")
    cache.write(path, traced())
    path.write_text(text)
    assert cache.kept(CONFIG) == []


def test_a_trace_without_growth_counts_as_damaged(folder: Path) -> None:
    path = cache.path_for(CONFIG, FACTS, "5.16.1")
    cache.write(path, traced(saved=Growth(((1024, 1), (1024, 1), (2048, 1)))))
    assert cache.kept(CONFIG) == []


def test_a_cache_that_cannot_be_written_is_no_trouble(folder: Path, process: Asked) -> None:
    (folder / "cache").write_text("a file where a folder should be")
    assert "PyTorch" not in call("estimate", "--trace", "run.yaml").output
    assert len(process.calls) == 1


def test_the_file_changes_with_config_facts_and_version() -> None:
    paths = {
        cache.path_for(CONFIG, FACTS, "5.16.1"),
        cache.path_for(CONFIG | {"hidden_size": 128}, FACTS, "5.16.1"),
        cache.path_for(CONFIG, replace(FACTS, autocast=False), "5.16.1"),
        cache.path_for(CONFIG, replace(FACTS, adapter=AdapterFacts(16, False, 4)), "5.16.1"),
        cache.path_for(CONFIG, replace(FACTS, adapter=AdapterFacts(32, False, 4)), "5.16.1"),
        cache.path_for(CONFIG, FACTS, "5.17.0"),
    }
    assert len(paths) == 6
    assert cache.path_for(dict(reversed(CONFIG.items())), FACTS, "5.16.1") in paths


def test_without_a_trace_the_model_is_unknown_and_the_option_is_named(folder: Path) -> None:
    result = call("check", "run.yaml")
    assert result.exit_code == 0
    assert "unknown model" in result.output
    assert "--trace" in result.output
    assert "--model-config" not in result.output


def test_a_model_without_a_config_is_not_sent_to_trace(folder: Path) -> None:
    (folder / "run.yaml").write_text(YAML.replace("./odd", "nobody/knows"))
    result = call("check", "run.yaml")
    assert "--trace" not in result.output
    assert "--model-config" in result.output


def test_a_traced_model_is_asked_for_once(folder: Path, process: Asked) -> None:
    first = call("estimate", "--trace", "--ledger", "run.yaml")
    assert first.exit_code == 0, first.output
    assert "traced from transformers 5.16.1: OddForCausalLM" in said(first)
    again = call("estimate", "--trace", "--ledger", "run.yaml")
    without = call("estimate", "--ledger", "run.yaml")
    assert first.output == again.output == without.output
    assert len(process.calls) == 1


def test_the_cache_serves_runs_that_do_not_ask(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = facts_of(open_run_of(folder), ())
    cache.write(cache.path_for(CONFIG, facts, "5.16.1"), traced(facts))
    monkeypatch.setattr(asking, "asked", None)
    assert "fits" in call("check", "run.yaml").output


def open_run_of(folder: Path) -> Any:
    from advisor.documents import read

    return open_run(read(folder / "run.yaml"), Context()).run


def test_other_facts_are_traced_again_and_without_asking_scaled(folder: Path, process: Asked) -> None:
    call("check", "--trace", "run.yaml")
    lora = YAML + "adapter: lora\nlora_r: 8\nlora_alpha: 16\nlora_target_linear: true\n"
    (folder / "run.yaml").write_text(lora)
    assert "scaled by the formulas" in said(call("estimate", "--ledger", "run.yaml"))
    assert "scaled by the formulas" not in said(call("estimate", "--trace", "--ledger", "run.yaml"))
    assert [facts.adapter is None for facts in process.calls] == [True, False]
    assert "scaled by the formulas" not in said(call("estimate", "--ledger", "run.yaml"))


def test_a_newer_transformers_is_asked_again(folder: Path, process: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    call("check", "--trace", "run.yaml")
    monkeypatch.setattr(asking, "installed_version", lambda: "5.17.0")
    call("check", "--trace", "run.yaml")
    assert len(process.calls) == 2


def test_without_torch_the_remedy_is_the_extra(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "installed_version", lambda: None)
    result = CliRunner().invoke(main, ["check", "--trace", "run.yaml", *GPU])
    assert result.exit_code == 2
    assert "pip install 'axolotl-advisor[trace]'" in " ".join(result.output.split())
    assert "Traceback" not in result.output


def test_a_known_model_is_not_traced(folder: Path, process: Asked) -> None:
    (folder / "run.yaml").write_text(YAML.replace("./odd", "meta-llama/Llama-3.1-8B"))
    assert call("check", "--trace", "run.yaml").exit_code in (0, 1)
    assert process.calls == []


def test_a_model_whose_layers_are_not_compared_is_traced(folder: Path, process: Asked) -> None:
    (folder / "run.yaml").write_text(YAML.replace("./odd", "meta-llama/Llama-3.2-11B-Vision"))
    process.reason = "layer 3 does not run on text alone"
    assert "not compared with their modules; `--trace` asks" in said(call("estimate", "run.yaml"))
    text = said(call("estimate", "--trace", "run.yaml"))
    assert len(process.calls) == 1
    assert "not traced: layer 3 does not run on text alone" in text
    assert "not compared with their modules; measure a short run" in text


def test_a_trace_that_fails_leaves_the_model_unknown_and_says_why(folder: Path, process: Asked) -> None:
    process.reason = "it cannot be traced (DynamicOutputShapeException: aten.nonzero.default)"
    result = call("check", "--trace", "run.yaml")
    assert result.exit_code == 0
    assert "unknown model" in result.output
    assert "DynamicOutputShapeException" in said(result)
    assert "`--trace`" not in result.output


def test_a_failed_trace_leaves_an_approximated_model_as_it_was(folder: Path, process: Asked) -> None:
    (folder / "run.yaml").write_text(YAML.replace("./odd", "moonshotai/Kimi-Linear-48B-A3B-Instruct"))
    before = resolve("moonshotai/Kimi-Linear-48B-A3B-Instruct")
    process.reason = "tracing took more than 300 seconds"
    result = call("estimate", "--trace", "run.yaml")
    assert isinstance(before, Architecture)
    assert "unknown" not in result.output
    assert "not traced: tracing took more than 300 seconds" in said(result)


@pytest.mark.parametrize("output", ["", "not json"])
def test_a_process_that_dies_is_only_a_reason(monkeypatch: pytest.MonkeyPatch, output: str) -> None:
    class Done:
        stdout = output

    monkeypatch.setattr(asking.subprocess, "run", lambda *_a, **_k: Done())
    assert asking.asked(CONFIG, FACTS, (), "5.16.1") == "the tracing process ended without an answer"


def test_a_traced_layer_is_taken_as_traced_and_other_facts_in_proportion(folder: Path, process: Asked) -> None:
    call("check", "--trace", "run.yaml")
    run = open_run_of(folder)
    assert run.model is not None
    block = run.model.blocks[0]
    exact = activations.saved_bytes(run, block)
    assert exact == block.traces[0].saved.at(run.tokens, run.sequence_len)
    single = replace(run, precision="fp32", autocast=False)
    bare = replace(block, traces=())
    proportion = activations.saved_bytes(single, bare) / activations.saved_bytes(run, bare)
    assert activations.saved_bytes(single, block) == pytest.approx(exact * proportion, rel=1e-6)
