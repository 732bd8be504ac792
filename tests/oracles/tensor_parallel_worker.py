# pyright: basic
"""One rank of a model that transformers cuts by its plan, on the CPU: its bytes, and what training it stops at.

``RANK`` and ``WORLD_SIZE`` say which rank; the arguments are a folder with the model's ``config.json``, and the file
that the ranks meet through. The answer is ``<rank>.json`` in that folder.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ.update(GLOO_SOCKET_IFNAME="lo", HF_HUB_OFFLINE="1")

import torch
import torch.distributed as dist
from peft import LoraConfig, get_peft_model
from transformers import AutoConfig, AutoModelForCausalLM


def local(tensor: Any) -> int:
    """Bytes of one rank's piece."""
    piece = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    return piece.numel() * piece.element_size()


def stop(work: Any) -> str:
    """The first line of what it raises."""
    try:
        work()
    except Exception as error:
        return f"{type(error).__name__}: {error}".splitlines()[0]
    return ""


def loaded(folder: Path, ranks: int) -> Any:
    """The model, cut over so many ranks."""
    return AutoModelForCausalLM.from_pretrained(folder, tp_plan="auto", tp_size=ranks, dtype=torch.bfloat16)


def hidden_of(folder: Path, targets: list[str], tokens: torch.Tensor) -> float:
    """A sum over the last layer's output, with adapters that no longer are zero."""
    torch.manual_seed(0)
    model = get_peft_model(loaded(folder, dist.get_world_size()), LoraConfig(r=4, target_modules=targets))
    for name, weight in model.named_parameters():
        if "lora_" in name:
            torch.nn.init.constant_(weight, 0.05)
    return model(tokens, output_hidden_states=True).hidden_states[1].float().sum().item()


def main(folder: Path, meeting: str) -> None:
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=world)
    saved = folder / "model"
    if rank == 0:
        torch.manual_seed(0)
        AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder), dtype=torch.bfloat16).save_pretrained(
            saved
        )
    dist.barrier()
    tokens = torch.arange(8)[None]
    found: dict[str, Any] = {"fewer": stop(lambda: loaded(saved, 2)) if world > 2 else ""}
    if world == 2:
        model = loaded(saved, world)
        weights = [weight for weight in model.parameters() if weight.requires_grad]
        model(tokens, labels=tokens).loss.backward()
        found["weights"] = sum(map(local, weights))
        found["gradients"] = sum(local(weight.grad) for weight in weights)
        found["clip"] = stop(lambda: torch.nn.utils.clip_grad_norm_(weights, 1.0))
        found["fused"] = stop(torch.optim.AdamW(weights, fused=True).step)
        plain = torch.optim.AdamW(weights, foreach=False)
        found["plain"] = stop(plain.step)
        states = [state for one in plain.state.values() for name, state in one.items() if name != "step"]
        found["states"] = sum(map(local, states))
        found["columns"] = hidden_of(saved, ["q_proj"], tokens)
        found["rows"] = hidden_of(saved, ["o_proj"], tokens)
    (folder / f"{rank}.json").write_text(json.dumps(found))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
