"""The order in which the real trainer calls: the peaks are read before a log resets them."""

from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.oracle

STEPS, WORST = 5, 3


def test_the_worst_step_and_a_worse_evaluation_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: Any):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    from advisor.plugins.axolotl.callback import Peaks, Watch

    counters = {"peak": 0, "step": 0}
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda: counters["peak"])
    monkeypatch.setattr(torch.cuda, "max_memory_reserved", lambda: counters["peak"] + 1)
    seen: list[int] = []

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(1))

        def forward(self, x: Any, labels: Any = None) -> Any:
            counters["step"] += self.training
            used = 20 if not self.training else 10 if counters["step"] == WORST else 1
            counters["peak"] = max(counters["peak"], used)
            return {"loss": (self.weight * x).sum()}

    class Trainer(transformers.Trainer):
        def log(self, *arguments: Any, **more: Any) -> None:
            """As axolotl's: the counters are reset before callbacks hear of the log."""
            counters["peak"] = 0
            seen.append(peaks.allocated)
            super().log(*arguments, **more)

    peaks = Peaks()
    watch = Watch(None, None, peaks, record=False)  # type: ignore[arg-type]
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path),
        max_steps=STEPS,
        logging_steps=1,
        eval_strategy="steps",
        eval_steps=4,
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
    )
    rows = [{"x": torch.ones(1), "labels": torch.ones(1)}] * 64
    Trainer(Model(), arguments, train_dataset=rows, eval_dataset=rows[:2], callbacks=[watch]).train()
    assert seen[:4] == [1, 1, 10, 10]
    assert peaks.allocated == 20
    assert peaks.reserved == 21
    assert "not measured" in caplog.text  # there was nothing to compare with, and training went on
