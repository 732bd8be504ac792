"""What the advisor writes is what axolotl's own schema accepts."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

from advisor.documents import read, write_all
from advisor.engine.example import Example, text_of
from advisor.engine.examples import opened
from advisor.engine.fix import fixed
from advisor.engine.options import Options
from advisor.engine.registry import built_in_rules, flowcharts
from advisor.engine.rule import Rule
from advisor.engine.steps import alternatives
from advisor.opening import Context, open_run
from advisor.run.build import edited

from ..corpus.configs import GPUS, Case, accepted_by_axolotl, examples, patched_examples
from .asking import REST, Axolotl, Configs, error_rules, whole

pytestmark = pytest.mark.oracle

SAMPLES = sorted((Path(__file__).parents[2] / "sample_configs").glob("*.y*ml"))
# Accepted where torchao is installed; and by axolotl 0.18, before it refused 4 bits with FSDP2 loading on one rank.
NO_LONGER_ACCEPTED = {"examples/llama-3/3b-fp8-fsdp2.yaml", "examples/llama-4/scout-vision-qlora-fsdp2-flex.yaml"}
# Imports half of the trainer's stack, at a depth where a stand-in does not do.
NOT_IMPORTABLE = {"axolotl.integrations.diffusion.DiffusionPlugin"}


@pytest.fixture(scope="session")
def accepted(axolotl: Axolotl, corpus: Path) -> set[str]:
    """The examples that axolotl accepts here as they are."""
    configs = {one.name: yaml.safe_load(one.opened.run.config.raw) for one in examples(corpus)}
    found = configs.keys() - axolotl.rejected(configs, corpus).keys()
    assert found, "axolotl accepts no example at all"
    return set(found)


def patched_configs(cases: Iterable[Case], names: set[str]) -> Configs:
    """The values of each patched YAML, read as axolotl reads them."""
    return {one.name: yaml.safe_load(one.fixed.run.config.patched()) for one in cases if one.name in names}


def test_the_oracle_tells_good_from_bad(axolotl: Axolotl, tmp_path: Path):
    good = REST | {"base_model": "meta-llama/Llama-3.1-8B"}
    liger = {"plugins": ["axolotl.integrations.liger.LigerPlugin"]}
    configs = {
        "good": good,
        "4 and 8 bits": good | {"adapter": "qlora", "load_in_8bit": True},
        "deepspeed and fsdp": good | {"deepspeed": "zero1.json", "fsdp": ["full_shard"]},
        "plugin, good": good | liger | {"liger_fused_linear_cross_entropy": True},
        "plugin, bad": good | liger | {"liger_fused_linear_cross_entropy": {"not": "a flag"}},
        "good again": good,
    }
    rejected = axolotl.rejected(configs, tmp_path)
    assert rejected.keys() == {"4 and 8 bits", "deepspeed and fsdp", "plugin, bad"}


def test_the_oracle_agrees_with_what_is_known_of_the_examples(accepted: set[str], corpus: Path):
    assert accepted_by_axolotl(corpus) - accepted <= NO_LONGER_ACCEPTED


def test_plugins_are_judged_though_their_packages_are_not_installed(axolotl: Axolotl, corpus: Path):
    left_out = {
        plugin
        for one in examples(corpus)
        for plugin in axolotl.says(yaml.safe_load(one.opened.run.config.raw), corpus).without
    }
    assert left_out <= NOT_IMPORTABLE


@pytest.mark.parametrize("flowchart", sorted(flowcharts()))
def test_patched_examples_are_accepted(axolotl: Axolotl, accepted: set[str], corpus: Path, flowchart: str):
    patched = patched_examples(corpus, GPUS, flowchart, every=1 if flowchart == "default" else 3)
    for one in patched:
        write_all({document.file: document.patched() for document in one.fixed.documents if document.is_new})
    axolotl.must_accept(patched_configs(patched, accepted), corpus)


@pytest.mark.parametrize("gpus", ["1x rtx-3090", "1x v100-32gb", "8x a100-80gb"])
def test_examples_patched_for_other_hardware_are_accepted(
    axolotl: Axolotl, accepted: set[str], corpus: Path, gpus: str
):
    configs = patched_configs(patched_examples(corpus, gpus, every=2), accepted)
    axolotl.must_accept(configs, corpus, int(gpus.partition("x")[0]))


@pytest.mark.parametrize(
    "rule",
    [rule for stage in ("fit", "speed") for rule in built_in_rules(stage).values()],
    ids=lambda rule: rule.id,
)
def test_each_step_alone_is_accepted_wherever_it_applies(
    axolotl: Axolotl, accepted: set[str], corpus: Path, rule: Rule
):
    """The mildest and the strongest alternative on every example, whether or not a plan would take it."""
    configs: dict[str, Any] = {}
    for one in examples(corpus):
        run = one.opened.run
        if one.name not in accepted or run.model is None or not rule.when(run):
            continue
        offered = alternatives(rule, run)
        for edits in (offered[0], offered[-1]) if offered else ():
            after = edited(run, edits, rule.id).config
            configs[f"{one.name}: {dict(edits)}"] = yaml.safe_load(after.patched())
    axolotl.must_accept(configs, corpus)


def test_examples_of_steps_are_accepted(axolotl: Axolotl, shown: list[Any], tmp_path: Path):
    """Before, unless a rule of ours refuses it too, and after. Lint rules are judged with their proofs."""
    configs: dict[str, Any] = {}
    for one in shown:
        if one.rule.stage == "lint":
            continue
        folder = tmp_path / one.name.replace(":", "-")
        folder.mkdir()
        if not error_rules(opened(one.example, folder).run):
            configs[f"{one.name} before"] = whole(yaml.safe_load(text_of(one.example.before)))
        if one.example.after is not None:
            configs[f"{one.name} after"] = whole(yaml.safe_load(text_of(one.example.after)))
    axolotl.must_accept(configs, tmp_path)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.name)
def test_samples_are_accepted_as_they_are_and_patched(axolotl: Axolotl, sample: Path):
    opened = open_run(read(sample), Context(working_directory=str(sample.parent), default_gpus=GPUS))
    after = fixed(opened, Options(), unsafe=True).run.config.patched()
    configs = {"as it is": yaml.safe_load(sample.read_bytes()), "patched": yaml.safe_load(after)}
    axolotl.must_accept(configs, sample.parent)


@pytest.mark.parametrize("rule", ["lora", "qlora"])
@pytest.mark.parametrize(
    ("lines", "rate"),
    [
        ("learning_rate: 2e-5", 2e-4),
        ("learning_rate: '2e-5'", 2e-4),
        ("learning_rate: 0.00002", 2e-4),
        ("learning_rate: 2.0e-05", 2e-4),
        ("learning_rate: 5e-7\nrl: dpo", 5e-6),
        ("learning_rate: 0.0000005\nrl: dpo", 5e-6),
    ],
)
def test_the_learning_rate_of_an_adapter_is_a_number_to_axolotl(
    axolotl: Axolotl, tmp_path: Path, rule: str, lines: str, rate: float
):
    before = opened(Example(f"base_model: Qwen/Qwen2.5-0.5B\n{lines}\n"), tmp_path).run
    (edits,) = alternatives(built_in_rules("fit")[rule], before)
    values = yaml.safe_load(edited(before, edits, rule).config.patched())
    assert (type(values["learning_rate"]), values["learning_rate"]) == (float, rate)
    answer = axolotl.says(whole(values), tmp_path)
    assert answer.ok, answer.error


@pytest.mark.parametrize("rule", ["hsdp", "hpz"])
def test_what_regroups_the_gpus_of_several_nodes_is_accepted(axolotl: Axolotl, tmp_path: Path, rule: str):
    regrouping = built_in_rules("speed")[rule]
    before = opened(regrouping.expanded[0], tmp_path).run
    (edits,) = alternatives(regrouping, before)
    values = whole(yaml.safe_load(edited(before, edits, rule).config.patched()))
    assert before.world_size == 32
    axolotl.must_accept({"as it was": whole(before.config), rule: values}, tmp_path, before.world_size)
