"""The sample configs: each keeps what its first comment promises, can be made to fit, and looks as it did."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from advisor.documents import read
from advisor.engine.answering import answered
from advisor.engine.check import check_run
from advisor.engine.finding import OF_HOST, Report
from advisor.engine.fix import fixed
from advisor.engine.fix_report import report_after
from advisor.engine.options import Options
from advisor.opening import Context, LoadedRun, open_run
from advisor.report import render_check

ROOT = Path(__file__).parents[1]
SNAPSHOTS = Path(__file__).parent / "snapshots"
SAMPLES = sorted(path.stem for path in (ROOT / "sample_configs").glob("*.yaml"))
PROMISE = re.compile(r"# (?P<reason>.+) Expect: (?P<verdict>fits|tight|does-not-fit)(?P<errors>(?:, [a-z0-9-]+)*)\.")

each_sample = pytest.mark.parametrize("name", SAMPLES)


@dataclass(frozen=True)
class Promise:
    """What the first line of a sample says of it."""

    reason: str
    verdict: str
    errors: frozenset[str]
    """In addition to the verdict's own."""


@pytest.fixture(autouse=True)
def _in_the_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    # The samples name their DeepSpeed files from here, as axolotl resolves them.
    monkeypatch.chdir(ROOT)


def opened(name: str) -> LoadedRun:
    return open_run(read(f"sample_configs/{name}.yaml"), Context())


def promise_of(name: str) -> Promise:
    text = (ROOT / "sample_configs" / f"{name}.yaml").read_text(encoding="utf-8")
    match = PROMISE.fullmatch(text.splitlines()[0])
    assert match, "the first line is `# Why it is here. Expect: fits|tight|does-not-fit[, rule of an error].`"
    errors = frozenset(match["errors"].split(", ")[1:])
    return Promise(match["reason"], match["verdict"], errors)


def errors_of(report: Report) -> set[str]:
    return {finding.rule for finding in report.findings if finding.level == "error"}


def test_there_are_samples_that_fit_and_samples_that_do_not():
    verdicts = [promise_of(name).verdict for name in SAMPLES]
    assert len(SAMPLES) >= 10
    assert min(verdicts.count("fits"), verdicts.count("does-not-fit")) >= 4


@each_sample
def test_a_sample_says_why_it_is_there_and_on_which_gpus(name: str):
    assert promise_of(name).reason
    directives = [directive.name for directive in read(f"sample_configs/{name}.yaml").directives]
    assert directives == ["gpus"]


@each_sample
def test_a_sample_has_the_verdict_and_the_errors_that_it_promises(name: str):
    promise = promise_of(name)
    report = check_run(opened(name), Options())
    assert report.verdict == promise.verdict
    by_host = OF_HOST in promise.errors
    own = {"does-not-fit"} if promise.verdict == "does-not-fit" and not by_host else set[str]()
    assert errors_of(report) == promise.errors | own


@each_sample
def test_a_sample_that_does_not_fit_is_made_to_fit(name: str):
    run = opened(name)
    result = fixed(run, Options(), unsafe=True)
    assert report_after(result, Options()).verdict in {"fits", "tight"}
    assert result.run.global_batch_size == run.run.global_batch_size
    if promise_of(name).verdict == "does-not-fit":
        assert result.files()
        assert "does-not-fit" not in errors_of(report_after(result, Options()))


@each_sample
def test_what_was_written_has_the_verdict_that_the_plan_promised(name: str, tmp_path: Path):
    result = fixed(opened(name), Options(), unsafe=True)
    promised = report_after(result, Options()).verdict
    for file, content in result.files().items():
        target = tmp_path / file
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    config = tmp_path / "sample_configs" / f"{name}.yaml"
    if not config.exists():
        pytest.skip("nothing to write")
    again = open_run(read(config), Context(working_directory=str(tmp_path)))
    named = again.run.config.get("deepspeed")
    if isinstance(named, str):
        assert again.run.zero is not None
    assert check_run(again, Options()).verdict == promised


@each_sample
def test_the_screen_of_a_sample_is_the_one_in_the_snapshot(name: str):
    run, options = opened(name), Options(answers=True)
    screen = render_check([answered(run, options, check_run(run, options))], "full") + "\n"
    snapshot = SNAPSHOTS / f"{name}.txt"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        SNAPSHOTS.mkdir(exist_ok=True)
        snapshot.write_text(screen, encoding="utf-8")
    assert snapshot.exists(), "`make snapshots` writes it"
    assert screen == snapshot.read_text(encoding="utf-8"), "read the difference; `make snapshots` accepts it"


def test_there_is_no_snapshot_of_a_sample_that_is_gone():
    names = {path.stem for path in SNAPSHOTS.glob("*.txt")}
    if os.environ.get("UPDATE_SNAPSHOTS"):
        for gone in names - set(SAMPLES):
            (SNAPSHOTS / f"{gone}.txt").unlink()
        names &= set(SAMPLES)
    assert names == set(SAMPLES)


@pytest.mark.oracle
@each_sample
def test_axolotl_accepts_a_sample_as_it_is_and_as_it_is_mended(name: str):
    run = opened(name)
    validate(run.run.config.raw)
    validate(fixed(run, Options(), unsafe=True).run.config.patched())


def validate(text: bytes) -> None:
    """Asks axolotl's own schema and validators, as on a node of eight H100s."""
    pytest.importorskip("axolotl")
    from axolotl.utils.config import validate_config
    from axolotl.utils.dict import DictDefault

    config = yaml.safe_load(text)
    # The plugins' classes need packages that only a full install of axolotl has; their keys are theirs to judge.
    own = {key: value for key, value in config.items() if key != "plugins" and not key.startswith("liger_")}
    capabilities = {"bf16": True, "fp8": True, "tf32": True, "n_gpu": 8, "compute_capability": "sm_90"}
    validate_config(DictDefault(own), capabilities=capabilities, env_capabilities={"torch_version": "2.13.0"})
