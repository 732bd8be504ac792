import re
from dataclasses import replace
from pathlib import Path

import pytest

from advisor.about import VERSION
from advisor.engine.finding import Against, Finding, Fix, Place, Report
from advisor.report import render_check

from .answers import ANSWERED, HEADLINE, HOPELESS, ONLY_OTHER, WELL
from .samples import DOES_NOT_FIT, FITS, JSON_ALONE, LINT, ROOM, TIGHT


@pytest.fixture(autouse=True)
def outside_of_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GITHUB_WORKSPACE", "CI_PROJECT_DIR", "GITHUB_SHA", "CI_COMMIT_SHA"):
        monkeypatch.delenv(name, raising=False)


def comment(*reports: Report) -> str:
    return "\n" + render_check(reports, "markdown") + "\n"


def saying(message: str, diff: str = "") -> str:
    fix = Fix(True, (), diff=diff) if diff else None
    return comment(replace(LINT, findings=(Finding("a", "error", message, Place("a.yaml"), fix=fix),)))


def unfolded(text: str) -> str:
    return re.sub(r"<details>.*?</details>\n*", "", text, flags=re.DOTALL)


def test_a_sentence_a_table_what_writes_the_edits_and_the_rest_folded():
    assert (
        unfolded(comment(ANSWERED, replace(WELL, file="./configs/b.yaml")))
        == f"""
### ❌ 1 of 2 configs does not fit

| config | GPUs | GiB | tokens/s | fix |
| :-- | :-- | --: | --: | :-- |
| ❌ `llama.yaml` | 8x A100-80GB SXM | **95.0** of 78.2 | 12,000 | **1 edit, same training**: 72.1 GiB |
| ✅ `configs/b.yaml` | 8x A100-80GB SXM | 66.2 of 78.2 | 9,000 |  |

To write the edits: `advisor check --gpus '8x a100-80gb' --fix llama.yaml`

<sub>GiB: the most that one GPU needs, of what it has. advisor {VERSION}</sub>
"""
    )


def test_the_edits_are_folded_step_by_step_with_their_diff():
    shown = comment(ANSWERED)
    assert (
        "<details><summary><b><code>llama.yaml</code></b>: "
        "1 edit brings it to 72.1 of 78.2 GiB, same training</summary>\n\n" + HEADLINE
    ) in shown
    assert (
        """
| step | GiB | s a step | |
| :-- | --: | --: | :-- |
| 1. ZeRO-2 (`zero-2`) | 95.0 → 72.1 | 7.10 → 7.30 | Each GPU holds a part of the gradients. Cost: No extra traffic. |

```diff
--- llama.yaml
+++ llama.yaml
@@ -3 +3 @@
-deepspeed: a.json
+deepspeed: b.json
```
"""
        in shown
    )


def test_two_ways_are_told_apart():
    shown = comment(ONLY_OTHER)
    assert "\nNo way with the same training: 82.0 GiB at best.\n" in shown
    assert "\n**B, LoRA**: 71.0 to 72.1 GiB; `--fix --unsafe-fixes`\n" in shown


def test_edits_that_change_the_training_are_said_to():
    assert ONLY_OTHER.answer is not None
    options = (ONLY_OTHER.answer.options[0], replace(ONLY_OTHER.answer.options[1], recommended=True))
    shown = unfolded(comment(replace(ONLY_OTHER, answer=replace(ONLY_OTHER.answer, options=options))))
    assert "| 1 edit, **changes training**: 72.1 GiB |" in shown
    command = "advisor check --gpus '8x a100-80gb' --fix --unsafe-fixes llama.yaml"
    assert f"\nTo write the edits that change what is trained: `{command}`\n" in shown


def test_where_nothing_helps_the_row_says_so():
    shown = unfolded(comment(HOPELESS))
    assert "### ❌ `llama.yaml` does not fit\n" in shown and "| No edits make it fit. |" in shown
    assert "To write" not in shown


def test_a_plan_without_an_answer_is_listed_with_its_diffs():
    shown = comment(DOES_NOT_FIT)
    assert "\nThe plan: 3 steps, then fits: 22.9 to 25.1 of 78.2 GiB\n" in shown
    assert (
        "\n- 2. `gradient-checkpointing`: Keep one tensor a layer and compute the rest again "
        "(gradient checkpointing); 88.1 -> 79.0 GiB per GPU: does not fit; same training\n"
        "  - cost: about 30 % slower steps\n\n  ```diff\n  --- llama.yaml\n"
    ) in shown
    assert "\n- `zero-3`: would not lower the peak: 90.7 -> 91.2 GiB per GPU\n" in shown
    assert "\n| **backward** | **90.7** |\n" in shown


def changed(report: Report, then: Report | None, *, changed: bool = True) -> Report:
    return replace(report, against=Against("base", then, changed=changed))


def test_against_a_base_only_what_changed_is_a_row():
    others = [changed(replace(DOES_NOT_FIT, file=f"{n}.yaml", findings=()), DOES_NOT_FIT, changed=False) for n in "ab"]
    json_alone = changed(JSON_ALONE, JSON_ALONE, changed=False)
    shown = comment(changed(ANSWERED, FITS), changed(replace(WELL, file="w.yaml"), None), *others, json_alone)
    assert unfolded(shown).startswith("""
### ❌ 1 of 2 changed configs no longer fits

| config | GPUs | GiB before → after | difference | tokens/s | fix |
| :-- | :-- | --: | --: | --: | :-- |
| ❌ `llama.yaml` | 8x A100-80GB SXM | 66.2 → **95.0** of 78.2 | ▲ 28.8 | 12,000 | **1 edit, same training**: 72.1 GiB |
| ✅ `w.yaml` | 8x A100-80GB SXM | 66.2 of 78.2 (new) |  | 9,000 |  |
""")
    assert "\n- Not shown: 2 YAMLs and 1 JSON that this pull request does not change.\n" in shown
    assert "`a.yaml`" not in shown and "against <code>base</code>" in shown


@pytest.mark.parametrize(
    ("reports", "sentence"),
    [
        ([changed(FITS, FITS)], "✅ `llama.yaml` fits"),
        ([changed(FITS, FITS)] * 2, "✅ All 2 changed configs fit"),
        ([changed(DOES_NOT_FIT, FITS)] * 2, "❌ 2 of 2 changed configs no longer fit"),
        ([changed(DOES_NOT_FIT, DOES_NOT_FIT), changed(FITS, FITS)], "❌ 1 of 2 changed configs does not fit"),
        ([changed(DOES_NOT_FIT, FITS), changed(DOES_NOT_FIT, None)], "❌ 2 of 2 changed configs do not fit"),
        ([DOES_NOT_FIT, LINT, TIGHT, FITS], "❌ 1 of 4 configs does not start, 1 does not fit, 1 is near the limit"),
        ([TIGHT, TIGHT, replace(LINT, findings=())], "⚠️ 2 of 3 configs are near the limit, 1 has no verdict"),
        ([changed(FITS, FITS, changed=False)], "No config has changed"),
        ([JSON_ALONE], "No config was found"),
        ([], "No config was found"),
    ],
)
def test_the_sentence_says_what_is_true(reports: list[Report], sentence: str):
    assert comment(*reports).startswith(f"\n### {sentence}\n")


def test_a_run_that_does_not_start_says_why():
    shown = comment(LINT)
    assert (
        "| ❌ `llama.yaml` |  | does not start |  | `zero_optimization.offload_param` with stage 2; remove it (line 4) |"
        in shown
    )


def test_a_lint_finding_has_its_reason_source_and_edit():
    shown = comment(LINT)
    assert "<details><summary>1 error, 1 warning, 1 note</summary>" in shown
    assert (
        """
- `llama.yaml` line 4, **warning** `bf16-unsupported`: `bf16: true` on a V100, which has no bf16 units: \
the launch fails or crawls; use fp16
  - note: GPUs before Ampere have no bf16 units.
  - source: https://docs.nvidia.com/cuda/ampere-tuning-guide/
  - edit (changes what is trained):

  ```diff
  --- llama.yaml
  +++ llama.yaml
  @@ -4 +4,2 @@
  -bf16: true
  +bf16: false
  +fp16: true
  ```
"""
        in shown
    )


def test_notes_past_the_third_are_counted():
    notes = [Finding(f"n{n}", "note", "m", Place("llama.yaml", n + 1, 1)) for n in range(5)]
    shown = comment(replace(FITS, findings=tuple(notes)))
    assert "`n2`" in shown and "`n3`" not in shown and "\n- `llama.yaml`: 2 more notes\n" in shown


def test_what_an_option_writes_is_not_shown_twice():
    lint = replace(LINT.findings[1], rule="zero-2")
    shown = comment(replace(ANSWERED, findings=(*ANSWERED.findings, lint)))
    assert "**error** `zero-2`" in shown and "zero2.json\n" not in shown


def test_many_files_are_named_by_a_word():
    shown = comment(*(replace(ANSWERED, file=f"{n}.yaml") for n in range(4)))
    assert "To write the edits: `advisor check --gpus '8x a100-80gb' --fix FILE`" in shown


def test_suggestions_for_speed_are_folded():
    assert (
        "\nAlso possible with the memory that is left:\n\n"
        "- `larger-micro-batch`: Run the same global batch in fewer, larger steps; "
        "60.0 -> 68.0 GiB per GPU: fits; same training\n"
    ) in comment(ROOM)


def test_paths_are_those_of_annotations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    assert "| ✅ `configs/a.yaml` |" in comment(replace(FITS, file=str(tmp_path / "configs" / "a.yaml")))


def test_a_message_cannot_open_a_tag_or_mention_a_person():
    shown = saying("<b> asks @octocat about `<none>` in config.py@0.18.9")
    assert ": &lt;b> asks @&#8203;octocat about `<none>` in config.py@0.18.9\n" in shown


def test_a_fence_outlasts_the_backticks_of_a_diff():
    assert "\n  ````diff\n  +```\n  ````\n" in saying("m", "+```\n")


def test_a_pipe_in_a_name_does_not_split_its_cell():
    assert "| ✅ <code>a&#124;b.yaml</code> |" in comment(replace(FITS, file="a|b.yaml"))


def test_an_address_or_a_number_in_a_message_is_no_link():
    said = "key ![a](https://evil.example/t.png) HTTPS://evil.example www.evil.example #12 !34 &#104;ttps://e.example"
    shown = saying(f"{said} and `https://in.code`")
    outside = shown.replace("`https://in.code`", "")
    assert "`https://in.code`" in shown and "&#104;" not in shown
    assert not any(mark in outside.casefold() for mark in ("://", "www.evil", "#12", "!34", " ![a](", " [a]("))
    assert "https:&#8203;//evil.example/t.png" in outside and "www&#8203;.evil.example #&#8203;12" in outside


def test_an_address_in_a_name_is_no_link():
    assert "www.evil" not in comment(replace(FITS, file="www.evil.example`a|b.yaml")).replace("`www.evil", "")


def test_the_source_of_a_rule_stays_a_link():
    assert "- source: https://docs.nvidia.com/cuda/ampere-tuning-guide/" in comment(LINT)
