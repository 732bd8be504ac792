"""Published runs with a measured speed: ``speed.jsonl`` holds one group of like runs a line, with its source."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from advisor.opening import Context, config_document, open_run
from advisor.record import record
from advisor.run import Run
from advisor.run.stack import read_stack
from advisor.speed import Conditions, StepTime, step_time
from advisor.util import Buffers


@record(eq=False)
class Timed:
    """One published run. ``tokens_per_second`` is of one GPU, padding included."""

    id: str
    source: str
    gpus: str
    config: Mapping[str, Any]
    deepspeed: Mapping[str, Any] | None
    stack: Mapping[str, Any]
    conditions: Conditions
    tokens_per_second: float
    model: Mapping[str, Any] | None = None
    """The model's own config, where the catalogue has none of that name."""

    @property
    def repository(self) -> str:
        """Where the source lies: ``owner/name``, without the file."""
        return self.source.removeprefix("github:").partition(":")[0].partition("@")[0]

    def run(self) -> Run:
        """The run that was measured."""
        name = self.config["base_model"]
        texts = {f"{name}/config.json": json.dumps(self.model)} if self.model else {}
        buffers = Buffers.next_to("config.yaml", texts)
        context = Context(gpus=self.gpus, stack=read_stack(self.stack), buffers=buffers)
        return open_run(config_document(self.config, self.deepspeed), context).run

    def predicted(self) -> StepTime | None:
        """What the advisor says of it; None where it gives no time."""
        found = step_time(self.run(), self.conditions)
        return found if isinstance(found, StepTime) else None


def timed() -> Iterator[Timed]:
    """All runs of the table, in its order."""
    for line in Path(__file__).with_name("speed.jsonl").read_text(encoding="utf-8").splitlines():
        group = json.loads(line)
        conditions = Conditions(
            optimized_kernels=group["kernels"] == "optimized",
            fused_adapters=group.get("adapters") == "fused",
            attention=group.get("attention"),
            narrow_states=group.get("states") == "bf16",
        )
        for run in group["runs"]:
            sizes = {key: run[key] for key in ("sequence_len", "micro_batch_size", "gradient_accumulation_steps")}
            yield Timed(
                id=run["id"],
                source=group["source"],
                gpus=group["gpus"],
                config=group["config"] | sizes,
                deepspeed=group["deepspeed"],
                stack=group["stack"],
                conditions=conditions,
                tokens_per_second=run["tokens_per_second_per_gpu"],
                model=group.get("model"),
            )
