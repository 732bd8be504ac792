from dataclasses import replace

from advisor.engine.finding import Finding, Fix, Place, Report
from advisor.report import render_check

from .samples import DOES_NOT_FIT, FITS, LINT, ROOM


def comment(*reports: Report) -> str:
    return "\n" + render_check(reports, "markdown") + "\n"


def saying(message: str, diff: str = "") -> str:
    fix = Fix(True, (), diff=diff) if diff else None
    return comment(replace(LINT, findings=(Finding("a", "error", message, Place("a.yaml"), fix=fix),)))


def test_a_plan_is_a_comment_with_diffs_and_folded_details():
    expected = """
### advisor

| config | GPUs | verdict | needed per GPU, GiB | usable, GiB |
| --- | --- | --- | ---: | ---: |
| `llama.yaml` | 8x A100-80GB SXM | **does not fit** | 90.7 to 95.0 | 78.2 |

**error** `does-not-fit` at `llama.yaml:3:12`: 90.7 to 95.0 GiB needed, 78.2 GiB usable on each of 8x A100-80GB SXM

- help: 8x H200-141GB would do without any edit
- note: skip this check with `# advisor: ignore[does-not-fit] reason` on this line

#### Plan for `llama.yaml`: 3 steps, then fits: 22.9 to 25.1 of 78.2 GiB

**1. `zero-2`** Shard optimizer states and gradients across the GPUs (ZeRO-2)<br>90.7 -> 88.1 GiB per GPU: does not fit; same training<br>Cost: no extra traffic

```diff
--- /dev/null
+++ llama.zero-2.json
@@ -0,0 +1,3 @@
+{
+  "zero_optimization": {"stage": 2}
+}
--- llama.yaml
+++ llama.yaml
@@ -3 +3 @@
-deepspeed: deepspeed_configs/zero1.json
+deepspeed: llama.zero-2.json
```

**2. `gradient-checkpointing`** Keep one tensor a layer and compute the rest again (gradient checkpointing)<br>88.1 -> 79.0 GiB per GPU: does not fit; same training<br>Cost: about 30 % slower steps

```diff
--- llama.yaml
+++ llama.yaml
@@ -4,0 +5 @@
+gradient_checkpointing: true
```

**3. `lora`** Train low-rank adapters instead of all weights (LoRA)<br>79.0 -> 22.9 GiB per GPU: fits; changes what is trained<br>Cost: adapters only: less capacity to learn; the learning rate is left as it is

```diff
--- llama.yaml
+++ llama.yaml
@@ -5,0 +6 @@
+adapter: lora
```

<details><summary>skipped</summary>

- `zero-3`: would not lower the peak: 90.7 -> 91.2 GiB per GPU

</details>

<details><summary>memory of <code>llama.yaml</code> by part</summary>

| part | GiB |
| --- | ---: |
| weights | 15.0 |
| gradients | 15.0 |
| optimizer | 11.2 |
| activations | 46.9 |
| loss | 0.0 |
| overhead | 2.6 |
| **backward** | **90.7** |

</details>

1 error, 3 notes. 2 safe edits (`--fix`), 1 changes what is trained (`--unsafe-fixes`).
"""
    assert comment(DOES_NOT_FIT) == expected


def test_a_row_a_file():
    rows = comment(FITS, LINT).splitlines()[3:7]
    assert rows == [
        "| config | GPUs | verdict | needed per GPU, GiB | usable, GiB |",
        "| --- | --- | --- | ---: | ---: |",
        "| `llama.yaml` | 8x A100-80GB SXM | **fits** | 61.0 to 66.2 | 78.2 |",
        "| `llama.yaml` |  | **unknown** |  |  |",
    ]


def test_a_lint_finding_has_its_reason_source_and_edit():
    assert """
**warning** `bf16-unsupported` at `llama.yaml:4:7`: `bf16: true` on a V100, which has no bf16 units: \
the launch fails or crawls; use fp16

- note: GPUs before Ampere have no bf16 units.
- source: https://docs.nvidia.com/cuda/ampere-tuning-guide/

edit (changes what is trained)

```diff
--- llama.yaml
+++ llama.yaml
@@ -4 +4,2 @@
-bf16: true
+bf16: false
+fp16: true
```
""" in comment(LINT)


def test_suggestions_for_speed_are_folded():
    assert (
        "<details><summary>also possible with the memory that is left</summary>\n\n"
        "- `larger-micro-batch`: Run the same global batch in fewer, larger steps; "
        "60.0 -> 68.0 GiB per GPU: fits; same training\n"
    ) in comment(ROOM)


def test_a_message_cannot_open_a_tag_or_mention_a_person():
    shown = saying("<b> asks @octocat about `<none>` in config.py@0.18.9")
    assert ": &lt;b> asks @&#8203;octocat about `<none>` in config.py@0.18.9\n" in shown


def test_a_fence_outlasts_the_backticks_of_a_diff():
    assert "\n````diff\n+```\n````\n" in saying("m", "+```\n")


def test_a_pipe_in_a_name_does_not_split_its_cell():
    assert "| <code>a&#124;b.yaml</code> |" in comment(replace(FITS, file="a|b.yaml"))


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
