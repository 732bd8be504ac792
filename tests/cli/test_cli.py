"""The command line's contract: exit codes, files, formats."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from advisor.cli.check import MOST_REPLAYED
from advisor.cli.main import main

ROOMY = ("--gpus", "8x a100-80gb", "--ignore", "fused-kernels")
FULL = """\
# a comment that stays
base_model: meta-llama/Llama-3.1-8B
attn_implementation: flash_attention_2
optimizer: adamw_torch_fused
sequence_len: 4096
micro_batch_size: 4  # rows
gradient_accumulation_steps: 2
sample_packing: true
datasets: [{path: tatsu-lab/alpaca, type: alpaca}]
learning_rate: 1e-5
"""
FITS = (
    FULL
    + "adapter: qlora\nload_in_4bit: true\nlora_r: 16\nlora_alpha: 32\nlora_target_linear: true\ngradient_checkpointing: true\n"
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("ADVISOR_GPUS", "ADVISOR_FAIL_ON", "ADVISOR_FLOWCHART", "ADVISOR_OUTPUT_FORMAT"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "full.yaml").write_text(FULL)
    (tmp_path / "fits.yaml").write_text(FITS)
    return tmp_path


def run(*arguments: str, stdin: bytes | None = None):
    return CliRunner().invoke(main, list(arguments), input=stdin)


def test_a_run_that_fits_is_one_line_and_exit_code_zero(folder):
    result = run("check", "fits.yaml", "--gpus", "1x h200")
    assert result.exit_code == 0
    assert result.output.startswith("Fits: needs ") and "on 1x H200." in result.output


def test_a_run_that_does_not_fit_is_an_error_with_a_plan(folder):
    result = run("check", "full.yaml", *ROOMY)
    assert result.exit_code == 1
    for part in ("Does not fit: needs ", "2 edits bring it down to ", "--fix", "->", "same training", "ZeRO-2"):
        assert part in result.output


def test_exit_zero_hides_findings_and_never_trouble(folder):
    assert run("check", "full.yaml", *ROOMY, "--exit-zero").exit_code == 0
    assert run("check", "nothing.yaml", "--exit-zero").exit_code == 2


def test_without_hardware_it_still_lints_and_says_how(folder):
    result = run("check", "fits.yaml")
    assert result.exit_code == 0
    assert result.output.startswith("Needs ") and "--gpus" in result.output


def test_fail_on_moves_the_line(folder):
    assert run("check", "fits.yaml").exit_code == 0
    assert run("check", "fits.yaml", "--fail-on", "note").exit_code == 1


def test_fix_writes_safe_edits_alone_and_is_done_after_once(folder):
    result = run("check", "full.yaml", *ROOMY, "--fix")
    assert result.exit_code == 0, result.output
    text = (folder / "full.yaml").read_text()
    assert "# a comment that stays" in text and "adapter" not in text
    assert "deepspeed: full.zero-2.json" in text
    assert json.loads((folder / "full.zero-2.json").read_text())["zero_optimization"]["stage"] == 2
    again = run("check", "full.yaml", *ROOMY, "--fix")
    assert again.exit_code == 0 and (folder / "full.yaml").read_text() == text


def test_safe_steps_that_do_not_suffice_write_nothing_and_say_what_would(folder):
    result = run("check", "full.yaml", "--gpus", "1x rtx-4090 host=32GiB", "--fix")
    assert result.exit_code == 1
    assert (folder / "full.yaml").read_text() == FULL
    assert "--unsafe-fixes" in result.output


def test_unsafe_fixes_go_further(folder):
    result = run("check", "full.yaml", "--gpus", "1x rtx-4090 host=32GiB", "--fix", "--unsafe-fixes")
    assert result.exit_code == 0, result.output
    assert "adapter: " in (folder / "full.yaml").read_text()


def test_diff_writes_nothing_and_exits_with_one(folder):
    result = run("check", "full.yaml", *ROOMY, "--diff")
    assert result.exit_code == 1
    assert "+++ b/full.yaml" in result.output and "+deepspeed: full.zero-2.json" in result.output
    assert sorted(path.name for path in folder.iterdir()) == ["fits.yaml", "full.yaml"]


def test_output_dir_leaves_the_originals_alone(folder):
    result = run("check", "full.yaml", *ROOMY, "--fix", "--output-dir", "patched")
    assert result.exit_code == 0, result.output
    assert (folder / "full.yaml").read_text() == FULL
    assert "deepspeed: patched/full.zero-2.json" in (folder / "patched" / "full.yaml").read_text()
    assert (folder / "patched" / "full.zero-2.json").exists()


JSON = '{"zero_optimization": {"stage": 2}, "train_micro_batch_size_per_gpu": "auto"}'


def test_output_dir_takes_the_json_along_that_lies_next_to_the_yaml(folder):
    (folder / "sub").mkdir()
    (folder / "sub" / "a.yaml").write_text(FULL + "deepspeed: ds.json\n")
    (folder / "sub" / "ds.json").write_text(JSON)
    result = run("check", "sub", "--gpus", "8x h200", "--fix", "--unsafe-fixes", "--output-dir", "patched")
    assert (folder / "sub" / "ds.json").read_text() == JSON
    assert "gradient_clipping" in (folder / "patched" / "ds.json").read_text()
    again = run("check", "patched", "--gpus", "8x h200")
    assert "missing-deepspeed-file" not in result.output + again.output
    assert again.output.count("warning[") == result.output.count("warning[")


def test_a_json_that_two_named_is_left_to_the_one_that_stays_with_it(folder):
    (folder / "full.yaml").unlink()
    small = FULL.replace("size: 4", "size: 1").replace("4096", "8192") + "gradient_checkpointing: true\n"
    for name, text in (("a", small), ("b", FITS)):
        (folder / f"{name}.yaml").write_text(text + "deepspeed: ds.json\n")
    (folder / "ds.json").write_text(JSON)
    call = ("check", "a.yaml", "b.yaml", "--gpus", "8x a100-40gb", "--fix", "--unsafe-fixes")
    run(*call, "--select", "zero-3,gradient-clipping-off")
    written = {path.name: path.read_text() for path in folder.iterdir()}
    users = [name for name in ("a.yaml", "b.yaml") if "deepspeed: ds.json" in written[name]]
    assert len(users) == 1 and "gradient_clipping" in written["ds.json"]
    run(*call, "--select", "zero-3,gradient-clipping-off")
    assert {path.name: path.read_text() for path in folder.iterdir()} == written


def test_where_a_text_leaves_no_place_for_edits_the_findings_stand_without(folder):
    (folder / "odd.yaml").write_text("? complex\n" + FULL)
    result = run("check", "odd.yaml", "--gpus", "1x rtx-4090")
    assert result.exit_code == 1 and "Does not fit" in result.output and "step by step" not in result.output
    assert "cannot be edited" not in result.output


def test_output_dir_keeps_files_of_one_name_apart(folder):
    for name in ("a", "b"):
        (folder / name).mkdir()
        (folder / name / "c.yaml").write_bytes((folder / "full.yaml").read_bytes())
    result = run("check", "a", "b", *ROOMY, "--fix", "--output-dir", "patched")
    assert result.exit_code in (0, 1)
    assert (folder / "patched" / "a" / "c.yaml").is_file()
    assert (folder / "patched" / "b" / "c.yaml").is_file()


def test_standard_input_is_patched_to_standard_output(folder):
    result = run("check", "-", *ROOMY, "--fix", stdin=FULL.encode())
    assert result.exit_code == 0
    assert result.stdout.startswith("# a comment that stays\nbase_model:")
    assert "deepspeed: config.zero-2.json" in result.stdout


def test_several_formats_in_one_call(folder):
    result = run("check", "full.yaml", *ROOMY, "--output-format", "concise", "--output-format", "json=out.json")
    report = json.loads((folder / "out.json").read_text())
    assert result.exit_code == 1 and "full.yaml:2:" in result.output
    assert report["version"] == 1 and report["runs"][0]["verdict"] == "does-not-fit"
    steps = [finding for finding in report["runs"][0]["findings"] if finding["level"] == "note" and finding["fix"]]
    assert steps and all(step["fix"]["edits"] for step in steps)


def test_the_edits_of_the_json_turn_one_file_into_the_next(folder):
    report = json.loads(run("check", "full.yaml", *ROOMY, "--output-format", "json").output)
    files = {"full.yaml": (folder / "full.yaml").read_bytes()}
    for finding in report["runs"][0]["findings"]:
        for edit in reversed((finding["fix"] or {}).get("edits", [])):
            old = b"" if edit["create"] else files[edit["file"]]
            files[edit["file"]] = old[: edit["start"]] + edit["text"].encode() + old[edit["end"] :]
    assert run("check", "full.yaml", *ROOMY, "--fix").exit_code == 0
    assert files == {name: (folder / name).read_bytes() for name in files}


@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "full.yaml", "--gpus", "8x nothing-like-this"),
        ("check", "full.yaml", "--output-format", "xml"),
        ("check", "full.yaml", "--select", "no-such-rule"),
        ("check", "full.yaml", "--flowchart", "nope", "--gpus", "1x t4"),
        ("check", "full.yaml", "--unsafe-fixes"),
        ("check", "full.yaml", "--stack", "tronch=2"),
        ("check", "."[1:] or "missing.yaml"),
        ("estimate", "full.yaml", "--gpus", "8x nothing-like-this"),
        ("rule", "zero2"),
        ("check", "--no-such-option"),
    ],
)
def test_what_cannot_run_exits_with_two_and_no_traceback(folder, arguments):
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (b"base_model: [", ":1:14"),
        (b"base_model: x\nmicro_batch_size: }\n", ":2:19"),
        (b"base_model: \xff\n", ":1"),
        (b"base_model: !!python/object/apply:os.system ['true']\n", ":1:13"),
    ],
)
def test_bad_input_names_file_and_line_and_nothing_is_written(folder, content, place):
    (folder / "bad.yaml").write_bytes(content)
    result = run("check", "bad.yaml", *ROOMY, "--fix")
    assert result.exit_code == 2
    assert "bad.yaml" + place in result.output
    assert (folder / "bad.yaml").read_bytes() == content


def test_one_bad_file_does_not_keep_the_others_from_being_checked(folder):
    (folder / "bad.yaml").write_text("base_model: [")
    result = run("check", ".", "--gpus", "1x h200")
    assert result.exit_code == 2
    assert "fits.yaml: Fits" in result.output and "bad.yaml" in result.output


def test_a_yaml_without_a_base_model_is_passed_over(folder):
    (folder / "other.yaml").write_text("a: 1\n")
    result = run("check", "other.yaml")
    assert result.exit_code == 0 and result.stdout == "" and "nothing to check" in result.stderr


def test_an_ignore_keeps_a_finding_quiet_and_an_idle_one_is_a_warning(folder):
    (folder / "full.yaml").write_text(
        FULL.replace("Llama-3.1-8B", "Llama-3.1-8B  # advisor: ignore[does-not-fit] measured")
    )
    assert run("check", "full.yaml", *ROOMY).exit_code == 0
    (folder / "fits.yaml").write_text("# advisor: file-ignore[does-not-fit] why not\n" + FITS)
    result = run("check", "fits.yaml", "--gpus", "1x h200", "--fail-on", "warning")
    assert result.exit_code == 1 and "unused-ignore" in result.output


def test_hardware_is_read_from_a_comment_and_the_option_wins(folder):
    (folder / "fits.yaml").write_text("# advisor: gpus=1x h200\n" + FITS)
    assert "on 1x H200." in run("check", "fits.yaml").output
    assert "1x RTX 3090" in run("check", "fits.yaml", "--gpus", "1x rtx-3090").output


def test_settings_are_found_and_isolated_passes_them_over(folder):
    (folder / "advisor.toml").write_text('gpus = "1x h200"\nfail-on = "note"\n')
    assert "on 1x H200." in run("check", "fits.yaml").output
    assert "Say which GPUs you have" in run("check", "fits.yaml", "--isolated").output


def test_an_organisations_rules_speak_with_ours(folder):
    (folder / "ours").mkdir()
    (folder / "ours" / "no_llama.py").write_text(
        "from advisor import Example, Hit, Rule\n"
        "rule = Rule(id='no-llama', stage='lint', level='error', title='t', why='w', source='s',\n"
        "    finds=lambda run: [Hit('base_model', 'use ours')] if 'llama' in run.base_model else [],\n"
        "    examples=(Example(before='base_model: meta-llama/Llama-3.1-8B', fires=True), Example(before='base_model: gpt2')))\n"
    )
    (folder / "advisor.toml").write_text('rules = ["./ours"]\n')
    assert run("trust").exit_code == 0
    result = run("check", "fits.yaml", "--gpus", "1x h200")
    assert result.exit_code == 1 and "use ours [no-llama]" in result.output
    assert run("test", "ours").exit_code == 0


def test_estimate_shows_parts_and_phases_and_answers_with_its_exit_code(folder):
    fits = run("estimate", "fits.yaml", "--gpus", "1x h200")
    full = run("estimate", "full.yaml", "--gpus", "1x rtx-4090")
    assert (fits.exit_code, full.exit_code) == (0, 1)
    for part in ("weights", "optimizer", "activations", "peak", "forward and loss"):
        assert part in fits.output
    ledger = run("estimate", "fits.yaml", "--gpus", "1x h200", "--ledger").output
    assert "quantized linear layers" in ledger and "axolotl/loaders/model.py" in ledger


def test_a_rule_has_a_page_and_all_have_a_list(folder):
    page = run("rule", "zero-2")
    assert page.exit_code == 0 and "arxiv.org/abs/1910.02054" in page.output
    listed = run("rule")
    assert "zero-2" in listed.output and "does-not-fit" in listed.output


def test_nothing_heavy_is_imported_on_the_fast_path(folder):
    code = (
        "import sys; from click.testing import CliRunner; from advisor.cli.main import main\n"
        "CliRunner().invoke(main, ['check', 'full.yaml', '--gpus', '8x a100-80gb'])\n"
        "print(sorted(set(sys.modules) & {'torch', 'transformers', 'deepspeed', 'pydantic', 'jsonschema', 'numpy'}))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"


def test_the_package_runs_as_a_module(folder):
    (folder / "bad.yaml").write_text("base_model: [")
    done = subprocess.run([sys.executable, "-m", "advisor", "check", "bad.yaml"], capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.startswith("error: not YAML")


def test_a_rules_reason_is_left_to_the_whole_report(folder):
    (folder / "twice.yaml").write_text(FULL + "context_parapllel_size: 2\nsequence_lenn: 4096\n")
    result = run("check", "twice.yaml", *ROOMY, "--select", "unknown-key")
    assert result.output.count("[unknown-key]") == 2
    assert "= note: " not in result.output


@pytest.mark.parametrize("blank", ["deepspeed:", "fsdp_config:", "deepspeed:\nfsdp_config:"])
def test_what_is_said_of_the_whole_run_points_at_something(folder, blank):
    text = f"{blank}\nbase_model: meta-llama/Llama-3.1-8B\nmicro_batch_size: 8\nsequence_len: 4096\n"
    (folder / "blank.yaml").write_text(text)
    result = run("check", "blank.yaml", "--gpus", "1x rtx-3060", "--output-format", "concise")
    line = 2 + blank.count("\n")
    assert f"blank.yaml:{line}:13: error[does-not-fit]" in result.output


@pytest.mark.parametrize("command", ["check", "estimate"])
def test_a_card_that_a_name_leaves_open_is_said_on_the_screen(folder: Path, command: str):
    said = " ".join(run(command, "fits.yaml", "--isolated", "--gpus", "8x a100").output.split())
    assert "`a100` is read as A100-80GB SXM; if you mean another, write `a100-40gb-sxm`" in said
    assert "is read as" not in run(command, "fits.yaml", "--isolated", *ROOMY).output


@pytest.mark.parametrize("price", ["inf", "nan", "-1"])
def test_a_price_is_a_number_that_ends(folder: Path, price: str):
    result = run("estimate", "fits.yaml", "--gpus", "1x h200", "--tokens", "1M", "--price", price)
    assert result.exit_code == 2 and "price" in result.output and "Traceback" not in result.output


def test_beyond_the_first_few_json_has_the_published_range_and_the_same_verdict(folder: Path):
    for number in range(MOST_REPLAYED + 1):
        (folder / f"fits-{number}.yaml").write_text(FITS)
    files = (f"fits-{number}.yaml" for number in range(MOST_REPLAYED + 1))
    found = [
        one["memory"] | {"verdict": one["verdict"], "seconds": one["time"]["step"]}
        for one in json.loads(run("check", *files, "--gpus", "1x h200", "--output-format", "json").output)["runs"]
    ]
    assert [one["basis"]["ranges"] for one in found] == ["replay"] * MOST_REPLAYED + ["published"]
    said = [{key: one[key] for key in ("verdict", "needed", "allocated_peak", "phases", "seconds")} for one in found]
    assert said[-1] == said[0]
