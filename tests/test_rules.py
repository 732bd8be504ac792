"""Rules: their examples are their tests, and the loader holds them to their form."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from advisor import Example, but, only, without
from advisor.cli.main import main
from advisor.engine.example import Variation, text_of
from advisor.engine.examples import failures_of, opened, outcome
from advisor.engine.labels import LONGEST, batches
from advisor.engine.pack import Pack
from advisor.engine.registry import STAGES, built_in_folder, built_in_rules, organisation_rules
from advisor.engine.rule import Rule, said
from advisor.errors import InputError
from advisor.record import replace
from advisor.run import Run

RULES = [rule for stage in STAGES for rule in built_in_rules(stage).values()]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_every_example_does_as_it_says(rule: Rule):
    assert list(failures_of(rule)) == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_every_rule_tells_what_why_and_where_from(rule: Rule):
    assert rule.title and rule.why.strip() and rule.source
    assert rule.cost or rule.stage == "lint"


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.stage == "fit"], ids=lambda rule: rule.id)
def test_every_fit_step_shows_what_it_does_to_the_peak(rule: Rule):
    numbers = [example.memory for example in rule.expanded if example.memory]
    assert numbers
    before, after = (float(part) for part in numbers[0].removesuffix(" GiB").split(" -> "))
    assert after < before


STEPS = [rule for rule in RULES if rule.stage != "lint"]
SENTENCE = 75
"""Characters of what a line of a plan says of a step."""


def labels_of(rule: Rule, folder: Path) -> Iterator[str]:
    """What the steps of a rule's own examples are called."""
    return (rule.named(*runs) for runs in ends_of(rule, folder))


def ends_of(rule: Rule, folder: Path) -> Iterator[tuple[Run, Run]]:
    """The runs before and after the steps of a rule's own examples."""
    for number, example in enumerate(example for example in rule.expanded if example.expects_finding):
        own = folder / str(number)
        own.mkdir()
        before = opened(example, own).run
        after, _ = outcome(rule, before)
        assert after is not None
        yield before, after


@pytest.mark.parametrize("rule", STEPS, ids=lambda rule: rule.id)
def test_every_step_has_a_label_that_fits_into_a_line(rule: Rule, tmp_path: Path):
    labels = list(labels_of(rule, tmp_path))
    assert labels
    for label in labels:
        assert 0 < len(label) <= LONGEST, label
        assert label != rule.title and not label.endswith(".")


@pytest.mark.parametrize("rule", STEPS, ids=lambda rule: rule.id)
def test_every_step_says_in_a_sentence_why_it_helps_and_what_it_costs(rule: Rule, tmp_path: Path):
    for runs in ends_of(rule, tmp_path):
        sentences = [said(words, *runs) for words in (rule.because, rule.price)]
        assert len(set(sentences)) == 2
        for sentence in sentences:
            assert 0 < len(sentence) <= SENTENCE and "\n" not in sentence
            assert sentence.endswith(".") and sentence[0].isupper() | sentence[0].isdigit()
            assert rule.title not in sentence


def labelled(folder: Path, rule: str, *lines: str, **given: Any) -> str:
    """What a rule calls its step from a config of a few lines."""
    known = {one.id: one for one in STEPS}[rule]
    return next(labels_of(replace(known, examples=(only(*lines, fires=True, **given),)), folder))


LLAMA = "base_model: meta-llama/Llama-3.1-8B"
ADAPTER = ("adapter: lora", "lora_r: 64", "lora_alpha: 32", "lora_target_linear: true")
OFFLOADED = '{"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"}, "offload_param": {"device": "cpu"}}, "bf16": {"enabled": true}}'


@pytest.mark.parametrize(
    ("rule", "lines", "given", "label"),
    [
        ("lora", (LLAMA,), {}, "LoRA, rank 16"),
        ("lora", (LLAMA, "load_in_4bit: true"), {}, "QLoRA, rank 16"),
        ("qlora", (LLAMA,), {}, "QLoRA: 4-bit base, rank 16"),
        ("qlora", (LLAMA, *ADAPTER), {}, "QLoRA: 4-bit base"),
        ("lora", (LLAMA, "learning_rate: 2e-5"), {}, "LoRA, r 16, learning rate 2e-5 -> 2e-4"),
        ("lora", (LLAMA, "learning_rate: 1.25e-5"), {}, "LoRA, r 16, learning rate 1.25e-4"),
        ("lora", (LLAMA, "learning_rate: 2e-4"), {}, "LoRA, rank 16"),
        ("qlora", (LLAMA, "learning_rate: 2e-5"), {}, "QLoRA, r 16, learning rate 2e-5 -> 2e-4"),
        ("qlora", (LLAMA, *ADAPTER, "learning_rate: 2e-5"), {}, "QLoRA: 4-bit base"),
        ("fused-loss", (LLAMA,), {}, "fused loss (Liger)"),
        (
            "fused-loss",
            ("base_model: CohereForAI/c4ai-command-r-v01",),
            {"gpus": ""},
            "cut cross-entropy (needs a package)",
        ),
        ("fsdp-2", (LLAMA,), {"gpus": "8x a100-80gb"}, "FSDP2"),
        (
            "fsdp-2",
            (LLAMA, "deepspeed: deepspeed_configs/zero1.json"),
            {"gpus": "8x a100-80gb"},
            "FSDP2 without DeepSpeed's fp32 masters",
        ),
        (
            "fsdp-2",
            (LLAMA, *ADAPTER, "deepspeed: deepspeed_configs/zero1.json"),
            {"gpus": "8x a100-80gb"},
            "FSDP2 in place of DeepSpeed",
        ),
        ("offload-optimizer", (LLAMA,), {}, "ZeRO-2, optimizer states on the host"),
        ("offload-optimizer", (LLAMA, "optimizer: adamw_bnb_8bit"), {}, "ZeRO-2, AdamW states on the host"),
        ("shorter-sequences", (LLAMA, "sequence_len: 8192"), {"gpus": ""}, "sequence_len 8192 -> 4096"),
        (
            "smaller-micro-batch",
            (LLAMA, "micro_batch_size: 4", "gradient_accumulation_steps: 2"),
            {"gpus": ""},
            "micro batch 4 -> 2, accumulation 2 -> 4",
        ),
        (
            "less-offload",
            (LLAMA, "deepspeed: zero.json"),
            {"gpus": "", "deepspeed": OFFLOADED},
            "optimizer states on the GPU",
        ),
        (
            "less-offload",
            (LLAMA, "deepspeed: zero.json"),
            {"gpus": "8x h200", "deepspeed": OFFLOADED},
            "weights and optimizer states on the GPU",
        ),
    ],
)
def test_a_label_names_what_is_written(
    tmp_path: Path, rule: str, lines: tuple[str, ...], given: dict[str, Any], label: str
):
    assert labelled(tmp_path, rule, *lines, **given) == label


@pytest.mark.parametrize(
    ("size", "steps", "label"),
    [
        (4, 2, "micro batch 4 -> 1, accumulation 2 -> 8"),
        (16, 1, "micro batch 16 -> 1, accumulation 16"),
        (128, 64, "micro batch 128 -> 1, accumulation 8192"),
    ],
)
def test_long_numbers_shorten_the_label_of_a_batch(run: Run, size: int, steps: int, label: str):
    before = replace(run, micro_batch_size=size, gradient_accumulation_steps=steps)
    after = replace(run, micro_batch_size=1, gradient_accumulation_steps=size * steps)
    assert batches(before, after) == label


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return opened(only(LLAMA), tmp_path).run


def test_a_rule_without_a_label_is_called_by_its_title(run: Run):
    rule = rule_of(only("base_model: gpt2"))
    assert (rule.named(run, run), said(rule.because, run, run), rule.price) == ("t", "", "")


GOOD = """
from advisor import Example, Hit, Rule
rule = Rule(id="our-rule", stage="lint", title="t", why="w", source="s",
    finds=lambda run: [Hit("base_model", "no")] if run.base_model.startswith("gpt2") else [],
    examples=(Example(before="base_model: gpt2", fires=True), Example(before="base_model: EleutherAI/pythia-14m")))
"""


def test_an_organisations_folder_is_loaded_like_our_own(tmp_path):
    (tmp_path / "our_rule.py").write_text(GOOD)
    (rule,) = organisation_rules([Pack(tmp_path)]).values()
    assert list(failures_of(rule)) == []


@pytest.mark.parametrize(
    ("name", "whose"), [("does-not-fit", "one of the advisor's own"), ("our-rule", "another of yours")]
)
def test_an_organisations_rule_replaces_no_other(tmp_path, name, whose):
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        file = tmp_path / folder / f"{name.replace('-', '_')}.py"
        file.write_text(GOOD.replace("our-rule", name))
    with pytest.raises(InputError, match=whose) as caught:
        organisation_rules([Pack(tmp_path / "one"), Pack(tmp_path / "two")])
    assert caught.value.file.endswith(file.name)


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("other_name.py", GOOD, "is not the file's name"),
        ("our_rule.py", "rule = 1", "must define `rule"),
        ("our_rule.py", "import nothing_like_this", "ModuleNotFoundError"),
        ("our_rule.py", "rule = (", "SyntaxError"),
    ],
)
def test_a_rule_file_that_breaks_the_form_is_named(tmp_path, name, text, complaint):
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=complaint) as caught:
        organisation_rules([Pack(tmp_path)])
    assert caught.value.file.endswith(name)


def test_a_stage_has_a_folder():
    for stage in STAGES:
        assert (built_in_folder() / stage).is_dir()


def test_an_example_that_lies_is_found_out(tmp_path):
    (tmp_path / "our_rule.py").write_text(GOOD.replace("EleutherAI/pythia-14m", "gpt2-xl"))
    (rule,) = organisation_rules([Pack(tmp_path)]).values()
    assert list(failures_of(rule)) == ["example 2: should be silent, but fires on\n    base_model: gpt2-xl"]


def test_a_variation_that_lies_is_shown_as_the_whole_config(tmp_path):
    first = 'Example(before="base_model: gpt2\\nlora_r: 8\\nseed: 1", fires=True)'
    text = GOOD.replace("Hit, Rule", "Hit, Rule, but, without").partition("    examples=")[0]
    (tmp_path / "our_rule.py").write_text(f'{text}    examples=({first}, but("seed: 2"), without("base_model")))')
    (rule,) = organisation_rules([Pack(tmp_path)]).values()
    shown = "\n    base_model: gpt2\n    lora_r: 8\n    seed: 2"
    assert next(failures_of(rule)) == f"example 2: should be silent, but fires on{shown}"


OLD_PACK = '''
"""In the words of 0.2.0: each example in full, an edit of every kind."""

from collections.abc import Iterator

from advisor import Example, Hit, Remove, Rename, Rule, Run, Set


def finds(run: Run) -> Iterator[Hit]:
    if run.config.get("num_epochs") == 9:
        yield Hit("num_epochs", "nine epochs", edits=(Set("num_epochs", 3),))
    if run.config.get("wandb_watch"):
        yield Hit("wandb_watch", "it is slow", edits=(Remove("wandb_watch"),))
    if run.config.get("old_name"):
        yield Hit("old_name", "it has a new name", edits=(Rename("old_name", "seed"),))


rule = Rule(
    id="house-rule", stage="lint", title="Keep to the house's rules", why="We said so.", source="our wiki", finds=finds,
    examples=(
        Example(
            gpus="2x a100-80gb",
            before="""
                base_model: gpt2
                num_epochs: 9
                wandb_watch: all
                old_name: 4
            """,
            after="""
                base_model: gpt2
                num_epochs: 3
                seed: 4
            """,
        ),
        Example(before="base_model: gpt2\\nnum_epochs: 3"),
    ),
)
'''


def test_a_pack_in_the_words_of_0_2_0_runs_unchanged(tmp_path):
    rules, config = tmp_path / "rules", tmp_path / "run.yaml"
    rules.mkdir()
    (rules / "house_rule.py").write_text(OLD_PACK)
    config.write_text("base_model: gpt2\nnum_epochs: 9\n")

    def said(*words: str) -> Result:
        return CliRunner().invoke(main, [*words])

    assert said("test", str(rules)).exit_code == 0
    assert "house-rule" in said("check", "--rules", str(rules), "--output-format", "concise", str(config)).output
    said("check", "--rules", str(rules), "--select", "house-rule", "--fix", "--unsafe-fixes", str(config))
    assert config.read_text() == "base_model: gpt2\nnum_epochs: 3\n"


IMPORTING_PACK = """
from advisor import Example, Hit, Rule
from advisor.memory.activations.deviations import family_and_norm
from advisor.run.axolotl.flags import is_on

def finds(run):
    block = run.model.blocks[0]
    if is_on(run, "flash_attention") and family_and_norm(run, block)[0] is run.model.deviations:
        yield Hit("flash_attention", "no")

rule = Rule(id="house-rule", stage="lint", title="t", why="w", source="s", finds=finds,
    examples=(
        Example(before="base_model: gpt2\\nflash_attention: 'yes'", fires=True),
        Example(before="base_model: gpt2\\nflash_attention: 'no'"),
    ))
"""


def test_a_pack_imports_what_has_another_name_now(tmp_path):
    (tmp_path / "house_rule.py").write_text(IMPORTING_PACK)
    (rule,) = organisation_rules([Pack(tmp_path)]).values()
    assert list(failures_of(rule)) == []


FULL = Example(
    before="""
        base_model: gpt2
        adapter: lora
        fsdp_config:
          reshard_after_forward: true
        num_epochs: 9
    """,
    after="""
        base_model: gpt2
        num_epochs: 3
    """,
    gpus="2x a100-80gb",
    deepspeed='{"zero_optimization": {}}',
)
SILENT = {
    "with a line of another value": (
        but("adapter: qlora"),
        "base_model: gpt2\nadapter: qlora\nfsdp_config:\n  reshard_after_forward: true\nnum_epochs: 9\n",
    ),
    "with a new key, which is the last": (
        but("rl: dpo", without=("fsdp_config",)),
        "base_model: gpt2\nadapter: lora\nnum_epochs: 9\nrl: dpo\n",
    ),
    "without a key and its block": (without("fsdp_config", "adapter"), "base_model: gpt2\nnum_epochs: 9\n"),
    "as the edit leaves it": (but(fixed=True), "base_model: gpt2\nnum_epochs: 3\n"),
    "alone": (only("base_model: gpt2", "seed: 1"), "base_model: gpt2\nseed: 1\n"),
}


def rule_of(*examples: Example | Variation) -> Rule:
    return Rule(id="our-rule", stage="lint", title="t", why="w", source="s", examples=examples)


@pytest.mark.parametrize(("example", "text"), SILENT.values(), ids=SILENT)
def test_a_variation_is_the_full_example(example: Example | Variation, text: str):
    full, silent, last = rule_of(FULL, only("base_model: gpt2"), example).expanded
    assert full is FULL and not silent.expects_finding
    assert text_of(last.before) == text
    assert not last.expects_finding and last.after is None
    if isinstance(example, Variation):
        assert (last.gpus, last.deepspeed) == (FULL.gpus, FULL.deepspeed)


def test_a_variation_takes_what_it_is_given_and_leaves_the_rest():
    (_, last) = rule_of(FULL, but(gpus="", deepspeed="", stack={"torch": "2.9"}, fires=True)).expanded
    assert (last.gpus, last.deepspeed, last.stack, last.fires) == ("", None, {"torch": "2.9"}, True)


def test_a_finding_without_an_edit_ends_as_it_begins():
    (_, last) = rule_of(FULL, but("adapter: qlora", kept=True)).expanded
    assert last.expects_finding and last.after == last.before


def test_a_pack_with_a_variation_of_nothing_is_named(tmp_path):
    (tmp_path / "our_rule.py").write_text(
        GOOD.replace("import Example", "import but, Example").replace("examples=(", "examples=(but('seed: 1'), ")
    )
    with pytest.raises(InputError, match="a variation stands before the first full example that fires") as caught:
        organisation_rules([Pack(tmp_path)])
    assert caught.value.file.endswith("our_rule.py")
