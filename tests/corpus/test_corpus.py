"""Every config that axolotl ships or tests: read, judged, patched, and patched no further than it says."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from advisor.documents import Document, Rename, as_path, read, write_all
from advisor.engine.answer_steps import stops_in
from advisor.engine.fix import fixed
from advisor.engine.options import Options
from advisor.errors import InputError

from .configs import (
    GPUS,
    Case,
    accepted_by_axolotl,
    case,
    config_files,
    copied,
    examples,
    folder,
    known_models,
)
from .sweep import cases as sweep_cases
from .sweep import outcome, title

pytestmark = [pytest.mark.slow, pytest.mark.skipif(folder() is None, reason="ADVISOR_CORPUS is not set")]

ERRORS_WITHOUT_A_MISTAKE = {"does-not-fit", "missing-deepspeed-file", "host-memory-exceeded"}
# For other numbers of GPUs than the tests' own, for other cards, or stopped once the model is loaded.
STOPPED_LATER = {
    ("archived/cerebras/qlora.yml", "lora-kernels-unpatchable"),
    ("archived/dbrx/fft-ds-zero3.yaml", "reentrant-zero3-lora"),
    ("archived/gptj/qlora.yml", "lora-kernels-unpatchable"),
    ("archived/starcoder2/qlora.yml", "lora-kernels-unpatchable"),
    ("distributed-parallel/llama-3_1-8b-hsdp-tp.yaml", "parallel-sizes-do-not-divide-world"),
    ("distributed-parallel/llama-3_1-8b-hsdp-tp.yaml", "tensor-parallel-stops"),
    ("falcon-h1/falcon-h1-500m-qlora.yaml", "lora-kernels-unpatchable"),
    ("falcon-h1/falcon-h1-1b-qlora.yaml", "lora-kernels-unpatchable"),
    ("falcon-h1/falcon-h1-1b-qlora-cp.yaml", "lora-kernels-unpatchable"),
    ("falcon-h1/falcon-h1-1b-deep-qlora.yaml", "lora-kernels-unpatchable"),
    ("archived/cerebras/qlora.yml", "flash-attention-unsupported"),  # xformers, which asks for key heads
    ("archived/gptj/qlora.yml", "flash-attention-unsupported"),  # xformers, of which it has no class
    ("gemma3n/gemma-3n-e2b-qlora.yml", "lora-kernels-unpatchable"),
    ("gemma3n/gemma-3n-e2b-vision-audio-qlora.yml", "lora-kernels-unpatchable"),
    ("glm_moe_dsa/glm-5.2-nvfp4-lora.yaml", "lora-kernels-unpatchable"),
    ("glm_moe_dsa/glm-5.2-nvfp4-lora.yaml", "parallel-sizes-do-not-divide-world"),
    ("gpt-oss/gpt-oss-120b-fft-fsdp2-offload.yaml", "parallel-sizes-do-not-divide-world"),
    ("internvl3_5/internvl3_5-8b-qlora.yml", "lora-kernels-unpatchable"),  # the vision tower's attention
    ("llama-3-vision/lora-11b.yaml", "lora-kernels-unpatchable"),
    ("llama-3/3b-fp8-fsdp2.yaml", "fp8-unsupported"),
    ("llama-4/do-no-use-fa2/scout-qlora-fsdp1.yaml", "flash-attention-unsupported"),
    ("llama-4/do-no-use-fa2/scout-qlora-single-h100.yaml", "flash-attention-unsupported"),
    ("llama-4/do-no-use-fa2/scout-qlora-single-h100.yaml", "lora-kernels-unpatchable"),
    ("llama-4/do-no-use-fa2/scout-vision-qlora-fsdp.yaml", "flash-attention-unsupported"),
    ("llama-4/scout-qlora-single-h100-flex.yaml", "lora-kernels-unpatchable"),  # `lora_qkv_kernel: true`, said by hand
    ("llama-4/scout-vision-qlora-fsdp2-flex.yaml", "fsdp-combination-refused"),  # by 0.19.0; the verdict is older
    ("mistral/bigstral/bigstral-ds-zero3.yaml", "reentrant-zero3-lora"),
    ("mistral/mixtral/mixtral_22.yml", "reentrant-zero3-lora"),
    ("olmo3/olmo3-7b-qlora.yaml", "lora-kernels-unpatchable"),
    ("phi/phi-qlora.yml", "lora-kernels-unpatchable"),
    ("pixtral/lora-12b.yml", "lora-kernels-unpatchable"),
    ("qwen2-vl/lora-7b.yaml", "lora-kernels-unpatchable"),
    ("qwen2_5-vl/lora-7b.yaml", "lora-kernels-unpatchable"),
    ("qwen3.5/122b-a10b-moe-qlora-fsdp.yaml", "double-checkpointing"),
    ("qwen3.5/27b-qlora-fsdp.yaml", "double-checkpointing"),
    ("qwen3.5/35b-a3b-moe-qlora-fsdp.yaml", "double-checkpointing"),
    ("trinity/trinity-nano-preview-qlora.yaml", "lora-kernels-unpatchable"),  # the gate of afmoe's attention
    ("voxtral/voxtral-mini-audio-qlora.yml", "lora-kernels-unpatchable"),
    ("voxtral/voxtral-mini-audio-qlora.yml", "lora-targets-refused"),  # names before transformers 5.10.1
    ("voxtral/voxtral-mini-qlora.yml", "lora-kernels-unpatchable"),
    ("voxtral/voxtral-mini-qlora.yml", "lora-targets-refused"),
    ("granite4/granite-4.0-tiny-fft.yaml", "packing-patch-broken"),  # AttributeError once the model is there
    ("kimi-linear/kimi-48b-lora.yaml", "kimi-linear-import"),
    ("llama-3/3b-qat-nvfp4.yaml", "qat-type-refused"),  # by torchao, once the model is there
    ("qat_nvfp4/Math-Gemma3-12B_qat.yml", "qat-type-refused"),
    ("qat_nvfp4/Math-Gemma3-27B_qat.yml", "qat-type-refused"),
    ("qat_nvfp4/Math-Qwen2.5-72B_qat.yml", "qat-type-refused"),
    ("qat_nvfp4/Qwen2.5-72B_qat.yml", "qat-type-refused"),
}
MISSING = re.compile(r"\(([\d,]+) bytes\) too much")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copied(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def cases(root: Path) -> list[Case]:
    return examples(root)


@pytest.fixture(scope="module")
def patched(cases: list[Case]) -> list[Case]:
    found = [one for one in cases if one.fixed.documents]
    assert found, "nothing was patched"
    return found


@pytest.mark.parametrize(
    ("gpus", "every"), [("4x rtx-4090", 1), ("1x rtx-3090", 2), ("2n8x h100-80gb host=1TiB", 3), ("1x v100-32gb", 3)]
)
def test_examples_are_judged_and_patched_without_an_error(root: Path, gpus: str, every: int):
    for one in examples(root, gpus, every=every):
        assert one.report.verdict in {"fits", "tight", "does-not-fit", "unknown"}
        one.fixed.diff()
        fixed(one.opened, Options(), unsafe=False).diff()


def test_what_axolotls_tests_leave_open_is_the_only_thing_that_cannot_be_read(root: Path):
    """Configs taken from axolotl's tests hold placeholders where the test computes a value."""
    refused: list[str] = []
    for file in config_files(root, "tests_inline"):
        try:
            one = case(root, file)
            assert one.report.file == str(file)
            one.fixed.diff()
        except InputError as error:
            refused += [f"{file.name}: {error.message}"] if "<expr:" not in error.message else []
    assert refused == []


def test_examples_of_known_models_get_numbers(cases: list[Case]):
    known = known_models()
    names = {one.name: one.opened.run.base_model for one in cases if one.report.estimate is None}
    assert {name: model for name, model in names.items() if model in known} == {}


def test_examples_with_numbers_get_a_verdict_unless_a_key_is_not_counted(cases: list[Case]):
    open_ = [one.report.estimate for one in cases if one.report.verdict == "unknown" and one.report.estimate]
    keys = {each.key for found in open_ for each in found.uncounted}
    assert keys <= {"fp8", "lisa_n_layers", "plugins"}
    assert len(open_) < len(cases) / 10


def test_what_axolotl_accepts_has_no_errors_but_those_that_are_proven(root: Path, cases: list[Case]):
    """Past the schema they stop the trainer, the loader or the first backward; each rule's page says where."""
    accepted = accepted_by_axolotl(root)
    errors = {
        (one.name.removeprefix("examples/"), finding.rule)
        for one in cases
        if one.name in accepted
        for finding in one.report.findings
        if finding.level == "error" and finding.rule not in ERRORS_WITHOUT_A_MISTAKE
    }
    assert errors == STOPPED_LATER


def lacks_memory(case: Case) -> bool:
    """Whether it does not fit, and all of it is counted: of what is not, no plan can say that it fits."""
    found = case.report.estimate
    return case.report.verdict == "does-not-fit" and found is not None and not found.uncounted


def test_most_runs_that_do_not_fit_are_made_to_fit(cases: list[Case]):
    lacking = [one for one in cases if lacks_memory(one)]
    made = [one for one in lacking if one.fits_when_fixed]
    assert all(one.fixed.plan.verdict in {"fits", "tight"} for one in lacking if one.fixed.plan)
    # Plans that load or offload more than a common host has are not made.
    assert len(made) >= 0.75 * len(lacking) > 0, [one.name for one in lacking if one not in made]


def test_a_run_that_cannot_be_made_to_fit_is_told_how_many_bytes_are_missing(cases: list[Case]):
    for one in cases:
        # An error that stops the run is repaired first, after which more memory may be needed.
        if lacks_memory(one) and not one.fits_when_fixed and not stops_in(one.report.findings):
            said = " ".join(line for finding in one.report.findings for line in finding.help)
            found = MISSING.search(said)
            assert found, f"{one.name}: {said}"
            assert int(found[1].replace(",", "")) > 0


def test_a_patch_keeps_the_global_batch(patched: list[Case]):
    changed = {
        one.name: (one.fixed.before.global_batch_size, one.fixed.run.global_batch_size)
        for one in patched
        if one.fixed.before.global_batch_size != one.fixed.run.global_batch_size
    }
    assert changed == {}


def test_a_patch_changes_only_the_keys_that_it_names(patched: list[Case]):
    """Told by PyYAML alone, which axolotl reads with."""
    strays: list[str] = []
    for one in patched:
        document = one.fixed.run.config
        before, after = yaml.safe_load(document.raw), yaml.safe_load(document.patched())
        strays += [f"{one.name}: {stray}" for stray in differences(before, after, paths_of(document))]
    assert strays == []


def test_a_patch_leaves_every_other_line_as_it_was(patched: list[Case]):
    strays: list[str] = []
    for one in patched:
        document = one.fixed.run.config
        allowed = lines_of(document)
        touched = {line for edit in document.edits() for line in lines_between(document, edit.start, edit.end)}
        strays += [f"{one.name}:{line}" for line in sorted(touched - allowed)]
    assert strays == []


def test_the_edits_of_a_patch_make_its_text(patched: list[Case]):
    for one in patched:
        document = one.fixed.run.config
        text = document.raw
        for edit in sorted(document.edits(), key=lambda edit: edit.start, reverse=True):
            text = text[: edit.start] + edit.text.encode() + text[edit.end :]
        assert text == document.patched(), one.name


def test_a_patch_keeps_every_comment_on_a_line_of_its_own(patched: list[Case]):
    lost: list[str] = []
    for one in patched:
        document = one.fixed.run.config
        after = {line.strip() for line in document.patched().decode().splitlines()}
        own = (line.strip() for line in document.text.splitlines())
        lost += [f"{one.name}: {line}" for line in own if line.startswith("#") and line not in after]
    assert lost == []


def test_fixing_what_was_fixed_changes_nothing_more(tmp_path: Path):
    root = copied(tmp_path)
    again: dict[str, str] = {}
    for one in examples(root):
        if one.fixed.documents:
            write_all(one.fixed.files())
            second = case(root, root / one.name).fixed
            if second.documents:
                again[one.name] = second.diff()
    assert again == {}


def test_a_written_patch_has_the_verdict_that_the_plan_promised(tmp_path: Path):
    root = copied(tmp_path)
    for one in examples(root, GPUS):
        if one.fixed.plan is None:
            continue
        write_all(one.fixed.files())
        assert case(root, root / one.name).report.verdict == one.fixed.plan.verdict, one.name


def test_one_fix_in_61_keeps_what_it_promises(tmp_path: Path):
    """On each card, safe and unsafe, strangers' configs among them; ``make sweep`` tries all of them."""
    found = {title(one): result.broken for one in list(sweep_cases(tmp_path))[::61] if (result := outcome(one))}
    assert found
    assert {name: broken for name, broken in found.items() if broken} == {}


def paths_of(document: Document) -> set[tuple[str | int, ...]]:
    """The paths that the pending changes speak of."""
    paths = {as_path(change.path) for change in document.pending}
    renamed = {(*as_path(change.path)[:-1], change.key) for change in document.pending if isinstance(change, Rename)}
    return paths | renamed


def differences(
    before: Any, after: Any, changed: set[tuple[str | int, ...]], path: tuple[str | int, ...] = ()
) -> Iterable[str]:
    """Where two values differ outside ``changed``."""
    if path in changed:
        return
    below = any(other[: len(path)] == path for other in changed)
    if below and all(value is None or isinstance(value, Mapping) for value in (before, after)):
        left, right = before or {}, after or {}
        for key in {*left, *right}:
            yield from differences(left.get(key), right.get(key), changed, (*path, key))
    elif below and isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (left, right) in enumerate(zip(before, after, strict=True)):
            yield from differences(left, right, changed, (*path, index))
    elif type(before) is not type(after) or before != after:
        yield f"{'.'.join(map(str, path))}: {before!r} -> {after!r}"


def lines_of(document: Document) -> set[int]:
    """The lines of the changed keys as they were; of a key that was not there, those of the mapping it goes into."""
    lines: set[int] = set()
    fresh = read(document.file)
    for path in paths_of(document):
        while path and fresh.key_span(path) is None:
            path = path[:-1]
        if path:
            key, value = fresh.key_span(path), fresh.span(path)
            assert key is not None and value is not None
            lines |= set(range(key.line, value.end_line + 1))
    return lines


def lines_between(document: Document, start: int, end: int) -> set[int]:
    """The lines, from 1, of which the bytes from ``start`` to ``end`` take or change anything."""
    first = document.raw.count(b"\n", 0, start) + 1
    at_start = start == 0 or document.raw[start - 1 : start] == b"\n"
    at_end = document.raw[start : start + 1] in (b"\n", b"\r", b"")
    if start == end:
        return set() if at_start or at_end else {first}
    taken = document.raw[start:end]
    last = first + taken.count(b"\n") - taken.endswith(b"\n")
    return set(range(first, last + 1))
