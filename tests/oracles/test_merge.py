"""A tiny tied model, really trained with saved ends and merged as axolotl merges: what the loss is before and after."""

import importlib
import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("peft")
pytestmark = pytest.mark.oracle

CHANCE, HIDDEN = 64, 32
"""Entries of the vocabulary, and their width."""


def merging() -> ModuleType:
    """axolotl's merge without its command line, which asks for packages that are not installed here."""
    package = importlib.util.find_spec("axolotl")
    if package is None or not package.submodule_search_locations:
        pytest.skip("axolotl is not installed")
    file = Path(package.submodule_search_locations[0]) / "cli" / "utils" / "lora_merge.py"
    spec = importlib.util.spec_from_file_location("lora_merge", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def trained_and_merged(folder: Path, saved: list[str], *, tying: bool) -> tuple[int, float, float]:
    """Trained elements, and the loss of the trained batch before and after the merge."""
    torch: Any = importlib.import_module("torch")
    peft: Any = importlib.import_module("peft")
    transformers: Any = importlib.import_module("transformers")
    torch.manual_seed(0)
    sizes = {"hidden_size": HIDDEN, "intermediate_size": 64, "num_hidden_layers": 2, "head_dim": 8}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64}
    config = transformers.Qwen3Config(vocab_size=CHANCE, tie_word_embeddings=True, dtype="float32", **sizes, **heads)
    base = transformers.Qwen3ForCausalLM(config)
    base.save_pretrained(folder / "base")
    lora = peft.LoraConfig(
        r=4, lora_alpha=8, target_modules=["q_proj"], modules_to_save=saved, ensure_weight_tying=tying
    )
    model = peft.get_peft_model(base, lora)
    weights = [one for one in model.parameters() if one.requires_grad]
    elements = sum(one.numel() for one in weights)
    rows = torch.randint(0, CHANCE, (4, 16))
    optimizer = torch.optim.AdamW(weights, lr=1e-2)
    for _ in range(100):
        model(input_ids=rows, labels=rows).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    before = model(input_ids=rows, labels=rows).loss.item()
    model.save_pretrained(folder / "adapter")
    merging().merge_lora_sharded_efficient(folder / "base", folder / "adapter", folder / "merged")
    merged = transformers.Qwen3ForCausalLM.from_pretrained(folder / "merged")
    return elements, before, merged(input_ids=rows, labels=rows).loss.item()


@pytest.mark.slow
@pytest.mark.parametrize("saved", [["embed_tokens", "lm_head"], ["lm_head"], ["embed_tokens"]], ids="-".join)
def test_a_tied_model_keeps_its_loss_through_the_merge_only_where_the_ends_stay_tied(tmp_path: Path, saved: list[str]):
    untied, before, after = trained_and_merged(tmp_path / "untied", list(saved), tying=False)
    assert after > before + 0.5
    tied, before, after = trained_and_merged(tmp_path / "tied", list(saved), tying=True)
    assert after == pytest.approx(before, abs=0.01)
    assert untied - tied == (len(saved) - 1) * CHANCE * HIDDEN
