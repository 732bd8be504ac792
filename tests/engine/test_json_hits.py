"""Where hits in a DeepSpeed config point, and which edits may land there."""

from pathlib import Path

import pytest

from advisor.documents import Remove, Set, read
from advisor.engine.fix import fixed
from advisor.engine.lint import finding_of, lint_hits
from advisor.engine.locations import json_hit
from advisor.engine.options import Options
from advisor.opening import Context, LoadedRun, open_run

MODEL = "base_model: Qwen/Qwen2.5-3B\n"
OFFLOADS = '{"zero_optimization": {"stage": 2, "offload_param": {"device": "cpu"}}, "train_batch_size": "auto"}'
RULE = "offload-param-below-stage-3"


def run_of(folder: Path, **files: str) -> LoadedRun:
    """The run of ``run.yaml`` among these files; ``_`` in a name stands for the dot."""
    for name, text in files.items():
        (folder / ".".join(name.rsplit("_", 1))).write_text(text, encoding="utf-8")
    return open_run(read(folder / "run.yaml"), Context(working_directory=str(folder), gpus="2x a100-80gb"))


def test_a_hit_in_a_json_of_the_runs_own_keeps_place_and_edits(tmp_path: Path):
    run = run_of(tmp_path, run_yaml=f"{MODEL}deepspeed: zero.json\n", zero_json=OFFLOADS).run
    hit = json_hit(run, "zero_optimization.stage", "message", Set("zero_optimization.stage", 3))
    assert (hit.document, hit.at, len(hit.edits)) == ("deepspeed", "zero_optimization.stage", 1)


def test_a_json_that_another_yaml_names_is_not_edited(tmp_path: Path):
    yaml = f"{MODEL}deepspeed: zero.json\n"
    run = run_of(tmp_path, run_yaml=yaml, other_yaml=yaml, zero_json=OFFLOADS).run
    hit = json_hit(run, "zero_optimization.stage", "message", Set("zero_optimization.stage", 3))
    assert (hit.document, hit.at, hit.edits) == ("deepspeed", "zero_optimization.stage", ())


@pytest.mark.parametrize("on_disk", [True, False])
def test_a_hit_in_one_of_axolotls_files_points_at_the_key_that_names_it(tmp_path: Path, on_disk: bool):
    files = {"zero2_json": OFFLOADS} if on_disk else {}
    run = run_of(tmp_path, run_yaml=f"{MODEL}deepspeed: zero2.json\n", **files).run
    hit = json_hit(run, "zero_optimization.stage", "message", Remove("zero_optimization.stage"))
    assert (hit.document, hit.at, hit.edits) == ("config", "deepspeed", ())


def test_an_edit_of_a_config_inside_the_yaml_lands_there_and_is_shown_so(tmp_path: Path):
    opened = run_of(tmp_path, run_yaml=f"{MODEL}deepspeed: {OFFLOADS}\n")
    options = Options(select=(RULE,))
    ((rule, hit),) = lint_hits(opened.run, options)
    finding = finding_of(opened.run, rule, hit)
    assert finding.fix is not None
    (edit,) = finding.fix.edits
    written = fixed(opened, options, unsafe=False).files()[opened.run.config.file].decode()
    assert "offload_param" not in written
    text = opened.run.config.text
    assert text[: edit.start] + edit.text + text[edit.end :] == written
