"""The answer: its options are what their commands write, and one of them is recommended."""

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from advisor.cli.main import main
from advisor.cli.options import config_at
from advisor.documents import Edit
from advisor.engine.answer import Answer, AnswerStep, Option
from advisor.engine.answering import answered
from advisor.engine.check import check_run
from advisor.engine.fix import fixed
from advisor.engine.options import Options
from advisor.engine.pace import Pace, more_time
from advisor.engine.what_changes import is_out_of_emulation, much_faster
from advisor.hardware import parse_hardware
from advisor.record import replace
from advisor.session import RunOptions, check_config, session_for
from advisor.util import number

from ..report.samples import FITS

ROOT = Path(__file__).parents[2]
LORA = """\
base_model: meta-llama/Llama-3.1-8B
datasets:
  - {path: tatsu-lab/alpaca, type: alpaca}
sequence_len: 4096
sample_packing: true
pad_to_sequence_len: true
micro_batch_size: 8
gradient_accumulation_steps: 1
adapter: lora
lora_r: 16
lora_alpha: 32
lora_target_linear: true
optimizer: adamw_torch_fused
learning_rate: 2e-4
bf16: true
attn_implementation: flash_attention_2
gradient_checkpointing: true
"""


@pytest.fixture(autouse=True)
def _in_the_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def answer_of(file: str, gpus: str | None = None, *, others: bool = False, ignore: tuple[str, ...] = ()) -> Answer:
    session = session_for([file], RunOptions(gpus=gpus, answers=True, ignore=ignore), detects=False)
    session = replace(session, options=replace(session.options, others=others))
    answer = check_config(config_at(file), session).report.answer
    assert answer is not None
    return answer


def sample(name: str, gpus: str | None = None, *, others: bool = False) -> Answer:
    return answer_of(f"sample_configs/{name}.yaml", gpus, others=others)


def written(folder: Path, text: str) -> str:
    (folder / "run.yaml").write_text(text, encoding="utf-8")
    return str(folder / "run.yaml")


def option(answer: Answer, letter: str) -> Option:
    (found,) = (each for each in answer.options if each.letter == letter)
    return found


def letters(answer: Answer) -> str:
    return "".join(each.letter for each in answer.options)


def test_where_the_flowcharts_choice_trains_the_same_there_is_one_option():
    answer = sample("full-8b-out-of-memory")
    assert letters(answer) == "A"
    assert option(answer, "A").fits and option(answer, "A").recommended
    assert (answer.verdict, answer.starts) == ("does-not-fit", True)
    assert answer.reason is not None and (answer.reason.where, answer.reason.phase) == ("gpu", "forward and loss")


def test_where_it_changes_training_both_ways_are_there_and_the_same_training_comes_first():
    answer = sample("zero3-70b-too-few-cards")
    assert letters(answer) == "AB"
    assert option(answer, "A").recommended and not option(answer, "B").recommended
    assert option(answer, "B").title == "LoRA"
    assert option(answer, "B").command == (
        "advisor check --fix --unsafe-fixes sample_configs/zero3-70b-too-few-cards.yaml"
    )


def test_an_option_that_is_no_way_out_stays_with_its_smallest_end():
    answer = sample("zero3-32b-small-host")
    same = option(answer, "A")
    assert same.command is None and same.end is not None and same.end.verdict == "does-not-fit"
    assert option(answer, "B").recommended
    assert answer.action.startswith("Only by changing the training: ")


def test_a_run_that_fits_has_at_most_the_faster_way():
    answer = sample("full-1b-fits")
    assert letters(answer) == "F" and answer.verdict == "fits" and answer.reason is None
    assert re.match(r"\d edits? takes? \d+% off the time, ", answer.action) and answer.action.endswith(
        "add --fix --faster"
    )
    assert letters(sample("qlora-8b-24gb")) == ""


def test_the_host_is_a_reason():
    answer = sample("zero3-32b-small-host")
    assert answer.reason is not None and answer.reason.where == "host"
    assert answer.headline.startswith("Does not fit: needs ") and "of host memory" in answer.headline


def test_other_hardware_is_made_only_where_it_is_shown_and_its_command_writes_nothing():
    answer = sample("full-8b-out-of-memory", others=True)
    assert letters(answer) == "ACC"
    for other in answer.options[1:]:
        assert other.hardware is not None and other.command is not None
        assert "--fix" not in other.command and "--gpus" in other.command


def test_without_gpus_the_need_is_said(tmp_path: Path):
    answer = answer_of(written(tmp_path, LORA))
    assert answer.reason is not None and answer.reason.where == "no-gpus"
    assert answer.needs is not None and answer.headline == f"Needs {answer.needs / 2**30:.1f} GiB on one GPU."


def test_an_unknown_model_says_how_to_make_it_known(tmp_path: Path):
    answer = answer_of(written(tmp_path, LORA.replace("meta-llama/Llama-3.1-8B", "acme/orca-9b")), "1x rtx-4090")
    assert answer.reason is not None and answer.reason.where == "unknown-model"
    assert answer.headline == "No verdict, no error: unknown model `acme/orca-9b`."
    assert answer.action == (
        "If it is a fine-tune, add a line with its base, such as `# advisor: model=Qwen/Qwen2.5-7B`. "
        "Or give its config.json with --model-config PATH, or fetch its config with --online."
    )


@pytest.mark.parametrize(("base", "would"), [("Llama-3.1-70B", "would not fit"), ("Llama-3.1-8B", "would fit")])
def test_an_unknown_model_is_judged_as_the_one_that_it_is_called_after(tmp_path: Path, base: str, would: str):
    named, taken = (
        LORA.replace("meta-llama/Llama-3.1-8B", name) for name in (f"acme/{base}-legal", f"meta-llama/{base}")
    )
    answer, known = (answer_of(written(tmp_path, text), "1x a100-80gb") for text in (named, taken))
    (needed,) = re.findall(r"needs (\d+\.\d) ", known.headline)
    assert answer.headline.startswith(
        f"No verdict, no error: unknown model `acme/{base}-legal`. As meta-llama/{base} it {would}: {needed} of "
    )


def test_a_run_that_an_error_stops_hears_the_error_first_and_the_memory_second(tmp_path: Path):
    answer = answer_of(
        written(tmp_path, LORA.replace("datasets:\n  - {path: tatsu-lab/alpaca, type: alpaca}\n", "")), "1x rtx-4090"
    )
    assert not answer.starts and answer.verdict == "does-not-fit"
    assert answer.headline.startswith("Does not start: ") and " Does not fit: " in answer.headline
    assert answer.action.startswith("Correct line 1 by hand: ") and answer.action.endswith("add --fix")
    assert not option(answer, "A").fits


NEAR = """\
base_model: Qwen/Qwen3-14B
datasets: [{path: tatsu-lab/alpaca, type: alpaca}]
output_dir: ./out
num_epochs: 1
gradient_accumulation_steps: 1
learning_rate: 1e-4
adapter: lora
lora_r: 16
lora_alpha: 32
lora_target_linear: true
sequence_len: 8192
micro_batch_size: 1
attn_implementation: flash_attention_2
"""
TWICE = """\
fsdp_version: 2
fsdp_config:
  activation_checkpointing: true
  auto_wrap_policy: TRANSFORMER_BASED_WRAP
"""


@pytest.mark.parametrize(
    ("old", "new", "headline", "action"),
    [
        (
            "type: alpaca",
            "type: sharegpt",
            "Does not start: `type: sharegpt`, since the type has been removed (line 3).",
            "--fix --unsafe-fixes repairs it in 3 edits, and changes what is trained, ",
        ),
        (
            "bf16: true\n",
            "bf16: true\nlogging_steps: 0.2\n",
            "Does not start: `logging_steps` is `0.2` (line 16). ",
            "Correct line 16 by hand: it takes an integer. ",
        ),
        (
            "lora_target_linear: true\n",
            "",
            "Does not start: `adapter: lora` without `lora_target_*` (line 9).",
            "--fix --unsafe-fixes repairs it in 3 edits, and changes what is trained, ",
        ),
    ],
)
def test_that_a_run_stops_is_said_once_and_what_to_correct_in_the_messages_words(
    tmp_path: Path, old: str, new: str, headline: str, action: str
):
    answer = answer_of(written(tmp_path, LORA.replace(old, new)), "1x rtx-4090")
    assert answer.headline.startswith(headline)
    assert answer.action.startswith(action)


def test_an_error_that_a_safe_edit_repairs_is_repaired_by_a(tmp_path: Path):
    text = LORA.replace("micro_batch_size: 8", "micro_batch_size: 1") + TWICE
    answer = answer_of(written(tmp_path, text), "2x a100-80gb")
    assert not answer.starts and answer.verdict == "fits"
    assert option(answer, "A").starts and option(answer, "A").fits
    assert answer.action.startswith("--fix repairs it in 1 edit, same training, same time; it then fits, ")


def test_memory_is_said_once_where_edits_repair_what_stops_it(tmp_path: Path):
    text = LORA.replace("micro_batch_size: 8", "micro_batch_size: 1") + TWICE
    answer = answer_of(written(tmp_path, text), "2x a100-80gb")
    assert "it then fits, " in answer.action and "Would fit" not in answer.headline
    by_hand = answer_of(written(tmp_path, text.replace("sequence_len: 4096", "sequence_len: many")), "2x a100-80gb")
    assert not by_hand.starts and "it then" not in by_hand.action


def test_time_is_told_by_the_token_where_an_edit_changes_how_many_a_step_has():
    step = AnswerStep("sequence", "", "", "", safe=False)
    longer = Option("B", "changes", "", (step,), seconds=8.0, tokens_per_second=100.0)
    assert more_time(longer, Pace(1.0, 100.0)) == ", same time a token"
    assert more_time(longer, Pace(1.0, 110.0)) == ", +10% time a token"
    assert more_time(longer, Pace(4.0, 200.0)) == ", +100% time"
    assert more_time(longer, Pace()) == ", time unknown"


def test_a_key_that_is_not_counted_leads_to_what_measures_it(tmp_path: Path):
    file = written(tmp_path, LORA + "use_eaft: true\n")
    answer = answer_of(file, "1x b300")
    assert answer.headline.startswith("No verdict, no error: `use_eaft` is not counted")
    assert answer.action.startswith("To measure it, a few steps: `advisor verify ")


def test_a_smaller_micro_batch_is_no_way_to_more_speed_where_rows_may_be_short(monkeypatch: pytest.MonkeyPatch):
    """By the times of full rows this run is a fifth faster with fewer rows at once and no checkpoints."""
    assert letters(sample("dpo-8b-full")) == "A"
    for module in ("advisor.engine.speedups", "advisor.engine.ways_out"):
        monkeypatch.setattr(f"{module}.rows_are_full", lambda run: True)
    assert letters(sample("dpo-8b-full")) == "AF"


def test_the_first_sentences_of_a_run_that_fits_count_its_warnings(tmp_path: Path):
    def said(text: str, gpus: str = "1x h100-80gb") -> str:
        return answer_of(written(tmp_path, text), gpus).headline

    assert said(LORA).endswith(" GiB are free.")
    warned = LORA.replace("sequence_len: 4096", "sequence_length: 4096")
    assert said(warned).endswith(" GiB are free. 2 warnings.")
    assert "warning" not in said(warned, "1x rtx-3060-12gb")


def test_bits_that_are_asked_for_leave_no_option_that_changes_training():
    """The finding writes the same key as the plan, which goes on from there."""
    answer = sample("qlora-moe-30b")
    assert [way.letter for way in answer.options] == ["A"]
    steps = [step.rule for step in option(answer, "A").steps]
    assert steps[0] == "quantize-moe-experts" and "larger-micro-batch" in steps


def test_a_selection_of_other_rules_wants_no_options(tmp_path: Path):
    session = session_for(["."], RunOptions(gpus="1x rtx-4090", answers=True, select=("unknown-key",)), detects=False)
    answer = check_config(config_at(written(tmp_path, LORA)), session).report.answer
    assert answer is not None and answer.options == () and answer.action == ""


def test_no_answer_is_made_where_none_is_shown(tmp_path: Path):
    session = session_for(["."], RunOptions(gpus="1x rtx-4090"), detects=False)
    assert check_config(config_at(written(tmp_path, LORA)), session).report.answer is None


def patched(text: bytes, edits: tuple[Edit, ...], file: str) -> bytes:
    for edit in sorted((edit for edit in edits if edit.file == file), key=lambda edit: -edit.start):
        text = text[: edit.start] + edit.text.encode() + text[edit.end :]
    return text


@pytest.mark.parametrize(
    ("gpus", "letter"), [("1x rtx-4090", "A"), ("1x rtx-3060", "A"), ("1x rtx-3060", "B"), ("1x a100-80gb", "F")]
)
def test_what_an_option_shows_is_what_its_command_writes(tmp_path: Path, gpus: str, letter: str):
    file = written(tmp_path, LORA)
    answer = answer_of(file, gpus)
    found = option(answer, letter)
    assert found.command is not None and found.end is not None
    expected = patched(Path(file).read_bytes(), found.edits, file)
    assert CliRunner().invoke(main, shlex.split(found.command)[1:]).exit_code in (0, 1)
    assert Path(file).read_bytes() == expected
    again = answer_of(file, gpus)
    assert again.verdict == found.verdict and again.headline.startswith("Fits")
    assert again.seconds == found.seconds


def test_the_faster_way_after_one_that_changes_the_training_says_so_and_is_written(tmp_path: Path):
    file = full(tmp_path, "meta-llama/Llama-3.1-8B")
    answer = answer_of(file, "1x a100-40gb")
    chosen, found = option(answer, "B"), option(answer, "F")
    assert chosen.recommended and found.training == "changes" and found.flags == "--fix --unsafe-fixes --faster"
    assert found.seconds < chosen.seconds and found.fits
    expected = patched(Path(file).read_bytes(), found.edits, file)
    assert CliRunner().invoke(main, shlex.split(found.command)[1:]).exit_code == 0
    assert Path(file).read_bytes() == expected
    assert answer_of(file, "1x a100-40gb").seconds == found.seconds


def test_the_words_of_the_call_are_in_the_command(tmp_path: Path):
    answer = answer_of(written(tmp_path, LORA), "1x rtx-4090", ignore=("fused-loss",))
    command = option(answer, "A").command
    assert command is not None and shlex.split(command)[:6] == [
        "advisor",
        "check",
        "--gpus",
        "1x rtx-4090",
        "--ignore",
        "fused-loss",
    ]


def test_both_commands_write_the_same_where_the_choice_trains_the_same():
    from advisor.documents import read
    from advisor.opening import Context, open_run

    opened, options = open_run(read("sample_configs/full-8b-out-of-memory.yaml"), Context()), Options(answers=True)
    report = answered(opened, options, check_run(opened, options))
    assert report.answer is not None and letters(report.answer) == "A"
    assert fixed(opened, options, unsafe=True).files() == fixed(opened, options, unsafe=False).files()


def test_next_to_the_same_training_near_the_limit_stands_the_one_that_fits(tmp_path: Path):
    answer = answer_of(written(tmp_path, NEAR), "2x rtx-4090 host=24GiB link=pcie")
    same, other = option(answer, "A"), option(answer, "B")
    assert (same.verdict, other.verdict) == ("tight", "fits") and other.recommended
    assert answer.action.startswith("Only by changing the training: ")
    assert ". Or 4 edits bring it down to " in answer.action and "(near the limit), same training" in answer.action


SHAREGPT = LORA.replace("micro_batch_size: 8", "micro_batch_size: 1").replace("type: alpaca", "type: sharegpt")
UNSLOTH = "gradient_checkpointing: unsloth"


def test_of_several_errors_the_one_that_no_edit_repairs_is_named_first(tmp_path: Path):
    text = SHAREGPT.replace("gradient_checkpointing: true", UNSLOTH)
    answer = answer_of(written(tmp_path, text), "1x a100-80gb")
    assert answer.headline.startswith("Does not start: `gradient_checkpointing` is `unsloth`")
    assert " (line 17), and 1 more error." in answer.headline
    assert answer.action == (
        "--fix --unsafe-fixes repairs 1 of 2, and changes what is trained; "
        "correct line 17 by hand: it takes `offload`, `offload_disk` or true or false."
    )
    assert answer.recommended is None and option(answer, "B").written == 1


def test_no_memory_is_promised_where_a_second_correction_is_needed(tmp_path: Path):
    bare = "base_model: meta-llama/Llama-3.1-8B\nload_in_4bit: true\nmicro_batch_size: 8\nlearning_rate: 1e-5\n"
    answer = answer_of(written(tmp_path, bare), "2x a100-80gb")
    assert " Does not fit: " in answer.headline
    assert answer.action == (
        "Correct line 1 by hand: name a dataset under `datasets`; then line 2: add `adapter: qlora`, or remove it."
    )
    assert answer.recommended is None and option(answer, "A").command is None


def test_what_is_repaired_next_to_the_one_correction_is_said(tmp_path: Path):
    text = LORA.replace("gradient_checkpointing: true", "gradient_checkpointing: true\nlogging_steps: 0.2\n" + TWICE)
    answer = answer_of(written(tmp_path, text), "2x rtx-4090")
    assert answer.action.startswith("Correct line 18 by hand: it takes an integer. ")
    assert " repair the rest and bring it down to " in answer.action and answer.action.endswith("add --fix")


def test_edits_that_let_a_run_start_that_does_not_fit_are_not_said_to_repair_it(tmp_path: Path):
    text = LORA.replace("Llama-3.1-8B", "Llama-3.1-70B").replace("adapter: lora\n", "") + TWICE
    answer = answer_of(written(tmp_path, text), "2x rtx-3060 host=16GiB")
    assert answer.recommended is not None and answer.recommended.verdict == "does-not-fit"
    assert answer.action.startswith("No edits make it fit. --fix makes it start in ")
    assert "; it then needs " in answer.action and "repair" not in answer.action


def test_the_action_says_the_time_in_per_cent(tmp_path: Path):
    assert "% time" in sample("full-8b-out-of-memory").action
    text = LORA.replace("micro_batch_size: 8", "micro_batch_size: 1") + TWICE
    assert ", same training, same time; it then fits, " in answer_of(written(tmp_path, text), "2x a100-80gb").action


def test_host_memory_is_a_price_where_it_grows():
    assert "of host memory" in sample("full-8b-out-of-memory", "2x rtx-4090").action
    assert "of host memory" not in sample("zero3-32b-small-host").action


def test_what_tidies_up_comes_last_and_is_counted_apart(tmp_path: Path):
    old = "xformers_attention:\nflash_attention: true\nevaluation_strategy: steps\neval_steps: 10\nval_set_size: 0.1\n"
    text = LORA.replace("attn_implementation: flash_attention_2\n", old).replace("size: 8", "size: 1")
    answer = answer_of(written(tmp_path, text), "1x h100-80gb")
    steps = option(answer, "F").steps
    assert [step.tidies for step in steps] == sorted(step.tidies for step in steps) and steps[-1].tidies
    assert (
        re.search(r"% off the time, same training; it then needs [\d.]+ GiB; ", answer.action)
        and " more only rename" in answer.action
    )
    assert option(answer, "F").changes == len(steps)


def test_a_way_whose_price_is_its_masters_is_called_by_it():
    assert option(sample("zero3-32b-small-host"), "B").title == "no fp32 masters"


GRPO = f"{LORA.replace('sample_packing: true', 'val_set_size: 0').replace('2e-4', '1e-5')}rl: grpo\n"
SERVED = (
    GRPO
    + "trl: {use_vllm: true, vllm_mode: server, num_generations: 8, reward_funcs: [rewards.f]}\nvllm: {tensor_parallel_size: 2}\n"
)


def test_a_server_on_a_full_host_leaves_the_other_gpus_to_train(tmp_path: Path):
    file = written(tmp_path, SERVED)
    assert "2 of the 8 GPUs are counted as the vLLM server's, so 6 train" in answer_of(file, "8x h100-80gb").assumed
    assert answer_of(file, "6x h100-80gb").assumed == ""


@pytest.mark.parametrize(
    "text",
    [
        GRPO + "trl: {use_vllm: true, vllm_server_host: vllm.example.org}\n",
        GRPO + "trl: {use_vllm: true, vllm_mode: colocate}\n",
        SERVED + "fsdp_version: 2\nfsdp_config: {offload_params: false}\ndp_shard_size: 8\n",
    ],
)
def test_all_gpus_train_where_the_server_takes_none(tmp_path: Path, text: str):
    assert answer_of(written(tmp_path, text), "8x h100-80gb").assumed == ""


def test_a_launch_trains_on_as_many_gpus_as_it_has_processes(tmp_path: Path):
    file = written(tmp_path, SERVED)
    session = session_for([file], RunOptions(), detects=False)
    launched = check_config(config_at(file), session, hardware=parse_hardware("8x h100-80gb"))
    assert launched.opened.run.world_size == 8


def test_grpo_with_a_server_starts_and_fits_after_its_fix(tmp_path: Path):
    file = written(tmp_path, SERVED)
    assert not answer_of(file, "8x h100-80gb").starts
    CliRunner().invoke(main, ["check", "--isolated", "--gpus", "8x h100-80gb", "--fix", file])
    after = answer_of(file, "8x h100-80gb")
    assert (after.starts, after.verdict) == (True, "fits")
    assert "generation_batch_size: 48" in Path(file).read_text()


PAIR = (("A", 10.0), ("B", 2.0))
EMULATED = LORA.replace("flash_attention_2", "sdpa\nsdpa_varlen: false").replace("Llama-3.1-8B", "Llama-3.2-1B")


def test_out_of_emulated_bf16_the_way_to_fp16_comes_first_and_the_same_training_is_named_next_to_it(tmp_path: Path):
    answer = answer_of(written(tmp_path, EMULATED), "1x t4")
    same, other = option(answer, "A"), option(answer, "B")
    assert same.end and other.recommended and same.seconds and other.seconds
    times = f"--fix keeps bf16, emulated: {same.seconds / other.seconds:.1f} times as slow, "
    assert ", with fp16 in place of emulated bf16, " in answer.action
    assert answer.action.endswith(f": add --fix --unsafe-fixes. {times}{number(same.end.needed.high)} GiB")
    assert option(answer_of(written(tmp_path, EMULATED), "1x rtx-3060-12gb"), "A").recommended


def test_the_same_training_comes_first_where_more_is_changed_than_emulated_bf16():
    ends = [Option(letter, "same", letter, end=FITS.estimate, command="c", seconds=s) for letter, s in PAIR]
    half, other = (AnswerStep(rule, rule, "", "", False) for rule in ("bf16-unsupported", "lora"))
    same, faster = ends
    assert is_out_of_emulation(replace(faster, steps=(half,)), same)
    assert not is_out_of_emulation(replace(faster, steps=(half, other)), same)
    on_host = replace(same, steps=(AnswerStep("offload-params", "offload-params", "", "", True),))
    assert is_out_of_emulation(replace(faster, steps=(half, other)), on_host)
    assert not is_out_of_emulation(replace(faster, steps=(other,)), on_host)
    assert not is_out_of_emulation(replace(faster, steps=(half,), seconds=6.0), same)


def test_of_two_ways_that_are_faster_the_one_that_gains_most_for_its_kind_is_named():
    same = Option("A", "same", "same training", seconds=10.0, recommended=True)
    end = FITS.estimate
    ways = [Option(letter, "same", "t", end=end, command="c", seconds=s) for letter, s in (("B", 2.0), ("F", 7.0))]
    assert " is 5.0 times as fast" in much_faster(same, [same, *ways])
    assert " is 1.4 times as fast" in much_faster(same, [same, replace(ways[0], seconds=6.0), ways[1]])
    assert much_faster(same, [same, replace(ways[1], seconds=9.0)]) == ""


def test_what_repairs_a_run_and_changes_its_training_says_what_it_changes(tmp_path: Path):
    answer = answer_of(written(tmp_path, LORA.replace("type: alpaca", "type: sharegpt")), "1x a100-80gb")
    assert ", and changes what is trained, same time; it then fits, " in answer.action
    assert answer.action.endswith(" GiB. What changes: write `type: chat_template`.")


def test_a_package_to_install_is_named_next_to_the_edits_that_need_it(tmp_path: Path):
    text = LORA.replace("adapter: lora", "adapter: qlora\nload_in_4bit: true").replace("size: 8", "size: 1")
    text = text.replace("4096", "16384").replace("steps: 1", "steps: 8") + "val_set_size: 0.02\nevals_per_epoch: 2\n"
    action = answer_of(written(tmp_path, text), "1x rtx-4090 host=128GiB").action
    assert action.endswith(", with `cut-cross-entropy` to install: add --fix")


def test_a_repaired_run_with_room_for_more_speed_says_so(tmp_path: Path):
    text = LORA.replace("size: 8", "size: 1") + "gradient_checkpointing: true\nsave_safetensors: false\n"
    answer = answer_of(written(tmp_path, text), "1x a100-80gb")
    assert [way.letter for way in answer.options] == ["A", "F"] and answer.options[0].recommended
    times = answer.options[0].seconds / answer.options[1].seconds
    assert f". --fix --faster is {times:.1f} times as fast, same training, " in answer.action


def test_of_several_edits_that_change_the_training_the_one_for_what_stops_it_is_named(tmp_path: Path):
    text = LORA.replace("type: alpaca", "type: sharegpt") + "flash_attn_rms_norm: true\n"
    action = answer_of(written(tmp_path, text), "1x a100-80gb").action
    assert ". What changes: write `type: chat_template`, and 1 more such edit" in action


def full(tmp_path: Path, model: str) -> str:
    """A full fine-tune of a model, as a file."""
    lines = [line for line in LORA.splitlines() if not line.startswith(("adapter", "lora"))]
    text = "\n".join(lines).replace("meta-llama/Llama-3.1-8B", model).replace("size: 8", "size: 1")
    return written(tmp_path, text.replace("2e-4", "1e-5").replace("steps: 1", "steps: 4"))


OFFLOADED = """
base_model: meta-llama/Llama-3.1-70B
datasets: [{path: d, type: alpaca}]
sequence_len: 4096
sample_packing: true
micro_batch_size: 1
gradient_accumulation_steps: 4
gradient_checkpointing: true
attn_implementation: flash_attention_2
bf16: true
optimizer: adamw_torch_fused
learning_rate: 1e-5
deepspeed: deepspeed_configs/zero3_bf16.json
plugins: [axolotl.integrations.liger.LigerPlugin]
liger_fused_linear_cross_entropy: true
"""


def test_where_states_go_to_the_host_what_fits_without_it_and_without_masters_is_told(tmp_path: Path):
    name = written(tmp_path, OFFLOADED)
    shown = CliRunner().invoke(main, ["check", "--isolated", "--gpus", "8x h100-80gb host=2048GiB", name]).output
    words = shown.replace("\n  ", " ")
    told = re.search(r"Not taken: Without the host, FSDP2 without .* trained; `(.*)` writes it\.", words)
    assert told is not None, shown
    command = ["check", "--isolated", "--gpus", "8x h100-80gb host=2048GiB", *told[1].split(), name]
    assert CliRunner().invoke(main, command).exit_code == 0
    assert "fsdp_version: 2" in Path(name).read_text(encoding="utf-8")


@pytest.mark.parametrize(("model", "is_told"), [("Qwen/Qwen2.5-3B", True), ("meta-llama/Llama-3.1-8B", False)])
def test_where_adapters_come_in_place_of_all_weights_what_keeps_them_is_told(tmp_path: Path, model: str, is_told: bool):
    name = full(tmp_path, model)
    shown = CliRunner().invoke(main, ["check", "--isolated", "--gpus", "1x rtx-3090", name]).output
    told = re.search(r"Not taken: All weights trained \(.*8-bit optimizer .* writes it\.", shown.replace("\n  ", " "))
    assert bool(told) == is_told
    if told is not None:
        ignored = ["--ignore", "qlora", "--ignore", "lora"]
        command = ["check", "--isolated", "--gpus", "1x rtx-3090", "--fix", "--unsafe-fixes", *ignored, name]
        assert f"`{' '.join(command[4:-1])}`" in told[0]
        assert CliRunner().invoke(main, command).exit_code == 0
        assert "adapter:" not in Path(name).read_text(encoding="utf-8")
