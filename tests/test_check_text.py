"""``advisor.check_text``: unsaved texts, and the whole plan as edits of them."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

import advisor
from advisor.documents import Edit
from advisor.engine.finding import Report
from advisor.errors import InputError

DATA = "datasets:\n  - path: tatsu-lab/alpaca\n    type: alpaca\nlearning_rate: 1e-5\n"
FULL = f"base_model: meta-llama/Llama-3.1-8B  # the base\nmicro_batch_size: 4\nsequence_len: 8192\n{DATA}"
GPUS = "8x a100-40gb"
ZERO_2 = json.dumps({"zero_optimization": {"stage": 2}, "bf16": {"enabled": True}}, indent=2) + "\n"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)


def applied(texts: Mapping[str, str], edits: Iterable[Edit]) -> dict[str, str]:
    """The texts after edits that are all against them as they are."""
    found = {name: text.encode() for name, text in texts.items()}
    for edit in sorted(edits, key=lambda edit: edit.start, reverse=True):
        old = b"" if edit.create else found[edit.file]
        found[edit.file] = old[: edit.start] + edit.text.encode() + old[edit.end :]
    return {name: raw.decode() for name, raw in found.items()}


def in_steps(texts: Mapping[str, str], report: Report) -> dict[str, str]:
    """The texts after each step's own edits, one step after the other."""
    for finding in report.findings:
        if finding.step is not None and finding.fix is not None:
            texts = applied(texts, finding.fix.edits)
    return dict(texts)


@pytest.mark.parametrize("deepspeed", [None, ZERO_2], ids=["without a JSON", "an unsaved JSON"])
def test_the_whole_plan_is_its_steps_and_ends_as_promised(deepspeed: str | None):
    text = FULL if deepspeed is None else f"{FULL}deepspeed: ds.json\n"
    texts = {"run.yaml": text} | ({"ds.json": deepspeed} if deepspeed else {})
    files = {name: content for name, content in texts.items() if name != "run.yaml"}
    report = advisor.check_text(text, files=files, gpus=GPUS)
    assert report.plan is not None and report.verdict == "does-not-fit"
    after = applied(texts, report.plan.edits)
    assert after == in_steps(texts, report)
    assert "# the base" in after["run.yaml"]
    again = advisor.check_text(after.pop("run.yaml"), files=after, gpus=GPUS)
    assert again.verdict == report.plan.verdict
    assert again.estimate is not None and again.estimate.needed.low == report.plan.after
    assert again.plan is None


def test_an_unsaved_json_counts_instead_of_the_one_on_disk():
    Path("ds.json").write_text(json.dumps({"zero_optimization": {"stage": 0}}))
    text = f"{FULL}deepspeed: ds.json\n"
    report = advisor.check_text(text, files={"ds.json": '{\n  "zero_optimization": {"stage": 7}\n}\n'}, gpus=GPUS)
    places = {(finding.place.file, finding.place.line) for finding in report.findings if finding.level == "error"}
    assert ("ds.json", 2) in places
    assert json.loads(Path("ds.json").read_text()) == {"zero_optimization": {"stage": 0}}


def test_names_are_relative_to_the_file():
    text = f"{FULL}deepspeed: ds.json\n"
    file = str(Path("configs/run.yaml"))
    report = advisor.check_text(text, file=file, files={"ds.json": ZERO_2}, gpus=GPUS)
    assert "missing-deepspeed-file" not in {finding.rule for finding in report.findings}
    assert "missing-deepspeed-file" in {finding.rule for finding in advisor.check_text(text, file=file).findings}


def test_a_models_config_may_be_one_of_the_texts():
    config = {
        "model_type": "llama",
        "hidden_size": 1024,
        "intermediate_size": 2816,
        "num_hidden_layers": 8,
        "num_attention_heads": 16,
        "vocab_size": 32000,
    }
    text = FULL.replace("meta-llama/Llama-3.1-8B", "acme/new")
    assert advisor.check_text(text, gpus=GPUS).verdict == "unknown"
    found = advisor.check_text(text, files={"config.json": json.dumps(config)}, model_config="config.json", gpus=GPUS)
    assert found.verdict == "fits"
    local = advisor.check_text(
        text.replace("acme/new", "./model"), files={"model/config.json": json.dumps(config)}, gpus=GPUS
    )
    assert local.estimate is not None and found.estimate is not None
    assert local.estimate.needed == found.estimate.needed


def test_settings_count_only_where_they_are_asked_for():
    Path("advisor.toml").write_text(f'gpus = "{GPUS}"\n')
    assert advisor.check_text(FULL).hardware is None
    assert advisor.check_text(FULL, settings=True).hardware == "8x A100-40GB SXM"


def test_what_cannot_be_read_has_its_place():
    with pytest.raises(InputError) as error:
        advisor.check_text("base_model: [\n", file="unsaved.yaml")
    assert (error.value.file, error.value.line) == ("unsaved.yaml", 2)
