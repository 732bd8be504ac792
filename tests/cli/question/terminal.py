"""``advisor launch`` in a pseudo-terminal of its own."""

import os
import re
import shlex
import sys
from pathlib import Path

import pexpect

from tests.cli.prompt.terminal import STEERING, heeding_ctrl_c

CONFIG = """\
# a comment that stays
base_model: meta-llama/Llama-3.2-1B
adapter: lora
lora_r: 16
lora_alpha: 32
lora_target_linear: true
sequence_len: 4096
micro_batch_size: 4
gradient_accumulation_steps: 2
sample_packing: true
attn_implementation: flash_attention_2
gradient_checkpointing: true
datasets: [{path: tatsu-lab/alpaca, type: alpaca}]
learning_rate: 1e-5
max_steps: 500
"""
TOO_LARGE = CONFIG.replace("Llama-3.2-1B", "Llama-3.1-70B")
QUESTION = re.compile(
    r"(Apply and start\?|Apply\?|Nothing to apply\.) (\[.*\]\w+(?: \w+)?) |Apply this edit \[[a-z?,]+\]\? "
)
RANKED = {"RANK", "LOCAL_RANK", "WORLD_SIZE", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "OMPI_COMM_WORLD_RANK"}
ASKED = "Apply and start? [y]es, [n]o, [d]iff, [e]ach step, [o]ther ways "
LAUNCH = ("-m", "advisor", "launch", "--gpus", "1x rtx-4090", "--", "axolotl", "train", "run.yml")
ADVISE = "import sys; from advisor.plugins.axolotl.advise import advise; advise(prog_name='axolotl advise')"


class Terminal:
    """What a person sees of a launch, and what they type."""

    def __init__(self, folder: Path, *command: str, streams: str = "", **environment: str) -> None:
        kept = {name: value for name, value in os.environ.items() if name not in {"CI", "PRE_COMMIT", *RANKED}}
        path = f"{folder / 'bin'}{os.pathsep}{kept['PATH']}"
        self.process: pexpect.spawn[str] = pexpect.spawn(
            "bash",
            ["-c", f"{shlex.join([sys.executable, *(command or LAUNCH)])} {streams}"],
            cwd=str(folder),
            env={**kept, "TERM": "xterm", "NO_COLOR": "1", "PATH": path, "EDITOR": "false", **environment},
            encoding="utf-8",
            dimensions=(50, 120),
            timeout=60,
            preexec_fn=heeding_ctrl_c,
        )

    def asks(self) -> str:
        """All that is shown until the next question."""
        self.process.expect(QUESTION)
        return STEERING.sub("", f"{self.process.before}{self.process.after}")

    def answer(self, letter: str) -> str:
        """Types a letter; what is shown until the next question."""
        self.process.sendline(letter)
        return self.asks()

    def last(self, letter: str) -> str:
        """Types the last answer; what is shown until the end."""
        self.process.sendline(letter)
        return self.end()

    def end(self) -> str:
        """What is shown until the end."""
        self.process.expect(pexpect.EOF)
        self.process.close()
        return STEERING.sub("", f"{self.process.before}")

    @property
    def code(self) -> int | None:
        """The exit code."""
        return self.process.exitstatus
