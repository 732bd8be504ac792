"""``advisor launch`` in a pseudo-terminal of its own."""

import os
import re
import shlex
import sys
from pathlib import Path

from tests.cli.prompt.terminal import Asking

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


class Terminal(Asking):
    """A launch, or another ``command`` of Python; ``streams`` says where a shell leads them."""

    QUESTION = QUESTION
    DROPPED = Asking.DROPPED | RANKED

    def __init__(self, folder: Path, *command: str, streams: str = "", **environment: str) -> None:
        path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
        line = f"{shlex.join([sys.executable, *(command or LAUNCH)])} {streams}"
        super().__init__(folder, "bash", ["-c", line], 120, **{"PATH": path, **environment})
