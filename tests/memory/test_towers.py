"""Activations of towers, for images of a stated or an assumed size."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from advisor.cli.main import main
from advisor.memory import estimate
from advisor.memory.ledger import Estimate, Term
from advisor.models.tower import Grid
from advisor.opening import Context, config_document, open_run
from advisor.run import Images
from advisor.session.images import read_images

GEMMA: dict[str, Any] = {
    "base_model": "google/gemma-3-4b-it",
    "processor_type": "AutoProcessor",
    "datasets": [{"path": "org/data", "type": "chat_template"}],
    "learning_rate": 1e-4,
    "sequence_len": 2048,
    "micro_batch_size": 1,
    "bf16": True,
    "adapter": "lora",
    "lora_r": 16,
    "lora_alpha": 32,
    "lora_target_modules": r"model.language_model.layers.[\d]+.self_attn.(q|v)_proj",
    "skip_prepare_dataset": True,
    "remove_unused_columns": False,
}
CHECKPOINTED = GEMMA | {"gradient_checkpointing": True}
FULL = {key: value for key, value in GEMMA.items() if "lora" not in key and key != "adapter"}
PATCHES, LAYERS, WIDTH = 4096, 27, 1152
"""Of Gemma 3's tower, whatever the image."""


def of(config: dict[str, Any], images: Images | None = None) -> Estimate:
    found = estimate(open_run(config_document(config), Context(gpus="1x h200", images=images)).run)
    assert found is not None
    return found


def towers(found: Estimate, phase: str = "backward") -> dict[str, Term]:
    terms = next(one.terms for one in found.phases if one.name == phase)
    return {term.name: term for term in terms if "tower" in term.name and term.part == "activations"}


def test_without_a_processor_no_image_is_counted():
    text = {key: value for key, value in GEMMA.items() if key != "processor_type"}
    assert not towers(of(text))
    assert of(text).images is None


def test_a_frozen_tower_keeps_what_adapters_make_it_keep():
    found = towers(of(GEMMA))
    frozen = 16 * WIDTH + 16 + 2 * 4304 + 4 * 16
    assert found["vision tower's activations"].bytes == LAYERS * PATCHES * frozen
    assert found["vision tower's input"].bytes == 4 * 3 * 896 * 896


def test_checkpointing_keeps_inputs_of_the_towers_layers():
    assert towers(of(CHECKPOINTED))["vision tower's layer inputs"].bytes == LAYERS * PATCHES * 2 * WIDTH


def test_a_tower_that_is_neither_trained_nor_under_an_adapter_keeps_its_input_alone():
    assert set(towers(of(FULL | {"freeze_mm_modules": True}))) == {"vision tower's input"}
    assert "vision tower's activations" in towers(of(FULL))


def test_more_rows_and_images_keep_more():
    one = towers(of(GEMMA))["vision tower's activations"].bytes
    assert towers(of(GEMMA | {"micro_batch_size": 3}))["vision tower's activations"].bytes == 3 * one
    assert towers(of(GEMMA, Images(4, 64, 64, "--images")))["vision tower's activations"].bytes == 4 * one


def test_no_images_take_nothing():
    assert not towers(of(GEMMA, read_images("0x0x0")))


def test_adapters_on_a_tower_keep_their_inputs():
    inside = of(GEMMA | {"lora_target_linear": True, "lora_target_modules": None})
    more = towers(inside)["vision tower's activations"].bytes - towers(of(GEMMA))["vision tower's activations"].bytes
    assert more > LAYERS * PATCHES * 2 * (2 * WIDTH + 4304)


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (GEMMA, "one image of 1024x1024 a row (assumed)"),
        (GEMMA | {"image_size": 512}, "one image of 512x512 a row (image_size)"),
        (GEMMA | {"image_size": [640, 480]}, "one image of 640x480 a row (image_size)"),
    ],
)
def test_the_ledger_says_which_image_is_counted(config: dict[str, Any], said: str):
    found = of(config)
    assert said in towers(found)["vision tower's activations"].formula
    assert any(said in note for note in found.notes)


SHAPES = [
    (Grid("fixed", 14, side=896), (1000, 300), (1, 4096), 4096),
    (Grid("fixed", 14, side=336, extra=1), (1000, 300), (1, 577), 576),
    (Grid("near", 14, 2, most=12_845_056), (1024, 768), (1, 74 * 54), 37 * 27),
    (Grid("near", 14, 2, most=28 * 28 * 100), (2800, 2800), (1, 20 * 20), 100),
    (Grid("longest", 16, 2, side=1024), (2048, 1024), (1, 64 * 32), 32 * 16),
    (Grid("tiles", 14, 2, side=448, most=12, extra=1), (448, 448), (1, 1025), 256),
    (Grid("tiles", 14, 2, side=448, most=12, extra=1), (896, 448), (3, 1025), 768),
    (Grid("tiles", 14, 2, side=448, most=12, extra=1), (1344, 1344), (10, 1025), 2560),
    (Grid("split", 14, 3, side=384, most=4), (1024, 1024), (17, 729), 17 * 81),
    (Grid("split", 14, 3, side=384, most=4), (1000, 300), (9, 729), 9 * 81),
    (Grid("padded", 1, 2, most=1500), (1, 1), (1, 1500), 375),
]


@pytest.mark.parametrize(("grid", "image", "sequences", "tokens"), SHAPES)
def test_an_image_is_cut_into_patches(grid: Grid, image: tuple[int, int], sequences: tuple[int, int], tokens: int):
    assert grid.sequences(*image) == sequences
    assert grid.tokens(*image) == tokens


def asked(tmp_path: Path, *options: str, command: str = "estimate") -> tuple[int, str]:
    file = tmp_path / "run.yaml"
    file.write_text(yaml.safe_dump(CHECKPOINTED), encoding="utf-8")
    found = CliRunner().invoke(main, [command, str(file), "--gpus", "1x h200", "--isolated", *options])
    return found.exit_code, found.output


@pytest.mark.parametrize("command", ["check", "estimate"])
def test_images_are_stated_on_the_command_line(tmp_path: Path, command: str):
    code, output = asked(tmp_path, "--images", "3x800x600", "--output-format", "json", command=command)
    assert code == 0
    answer = json.loads(output)
    memory = (answer["runs"][0] if command == "check" else answer)["memory"]
    assert memory["images"] == {"count": 3, "width": 800, "height": 600, "origin": "--images"}
    assert not any("image" in part["what"] for part in memory["basis"]["parts"])


def test_an_assumed_image_makes_the_estimate_approximate(tmp_path: Path):
    basis = json.loads(asked(tmp_path, "--output-format", "json")[1])["memory"]["basis"]
    assert basis["kind"] == "approximate"
    assert {"what": "one image of 1024x1024 a row (assumed)", "remedy": "state them: `--images 2x1024x768`"} in basis[
        "parts"
    ]


@pytest.mark.parametrize("text", ["2", "x", "2x0x5", "-1x2x3", "1x1x1x1"])
def test_images_that_are_no_number_and_size_are_refused(tmp_path: Path, text: str):
    code, output = asked(tmp_path, f"--images={text}")
    assert code == 2
    assert "is not a number and a size" in output


def test_the_pixels_of_all_micro_steps_lie_on_the_gpu_at_once():
    one = towers(of(GEMMA))["vision tower's input"].bytes
    assert towers(of(GEMMA | {"gradient_accumulation_steps": 4}))["vision tower's input"].bytes == 4 * one


def test_what_embeddings_return_is_a_leaf_under_adapters_alone():
    def words(config: dict[str, Any]) -> list[int]:
        terms = next(one.terms for one in of(config).phases if one.name == "backward")
        return [term.bytes for term in terms if term.name == "words' embeddings"]

    assert words(CHECKPOINTED) == [2 * 2560 * 2048]
    assert towers(of(CHECKPOINTED))["vision tower's embedding"].bytes == 2 * WIDTH * PATCHES
    assert not words(FULL)
    assert not words(CHECKPOINTED | {"lora_modules_to_save": ["embed_tokens"]})


@pytest.mark.parametrize("config", [GEMMA, CHECKPOINTED | {"base_model": "google/gemma-3n-E2B-it"}])
def test_what_embeddings_return_is_counted_once_next_to_images(config: dict[str, Any]):
    terms = next(one.terms for one in of(config).phases if one.name == "backward")
    kept = [term.name for term in terms if term.part == "activations" and "embedding" in term.name]
    assert [name for name in kept if "tower" not in name] == ["words' embeddings"]


def test_layers_that_follow_a_tower_have_no_embedding_of_their_own():
    llama = CHECKPOINTED | {"base_model": "meta-llama/Llama-3.2-11B-Vision-Instruct"}
    terms = next(one.terms for one in of(llama).phases if one.name == "backward")
    assert len([term for term in terms if "tower's embedding" in term.name]) == 1


def test_patches_are_kept_for_the_last_norm_and_for_their_mean():
    assert towers(of(CHECKPOINTED))["vision tower's last norms"].bytes == 2 * 4 * WIDTH * PATCHES


def test_the_inputs_of_8_bit_layers_outlive_checkpoints_by_hooks():
    eight = CHECKPOINTED | {"load_in_8bit": True}
    hooks = eight | {"gradient_checkpointing_kwargs": {"use_reentrant": False}}
    assert "vision tower's inputs of 8-bit linear layers" in towers(of(hooks))
    reentrant = eight | {"gradient_checkpointing_kwargs": {"use_reentrant": True}}
    assert "vision tower's inputs of 8-bit linear layers" not in towers(of(reentrant))


def test_a_norm_that_stays_in_fp32_makes_a_towers_stream_fp32():
    pixtral = CHECKPOINTED | {"base_model": "mistral-community/pixtral-12b"}
    half = towers(of(pixtral))["vision tower's layer inputs"].bytes
    quantized = towers(of(pixtral | {"adapter": "qlora", "load_in_4bit": True}))["vision tower's layer inputs"].bytes
    assert quantized == 2 * half


def test_sound_is_counted_by_clips():
    found = towers(of(CHECKPOINTED | {"base_model": "mistralai/Voxtral-Mini-3B-2507"}))
    assert found["audio tower's layer inputs"].bytes == 32 * 1500 * 2 * 1280
    assert "of one clip of 30 s a row" in found["audio tower's layer inputs"].formula


def test_a_frozen_tower_whose_embedding_transformers_does_not_find_keeps_its_input_alone():
    qwen = GEMMA | {"base_model": "Qwen/Qwen3-VL-8B-Instruct"}
    assert set(towers(of(qwen))) == {"vision tower's input"}
    inside = qwen | {"lora_target_modules": ["attn.qkv"]}
    assert "vision tower's activations" in towers(of(inside))
    reentrant = inside | {"gradient_checkpointing": True}
    assert set(towers(of(reentrant))) == {"vision tower's input"}
    free = reentrant | {"gradient_checkpointing_kwargs": {"use_reentrant": False}}
    assert "vision tower's layer inputs" in towers(of(free))


def test_siglip_2_gets_tiles():
    tiles = of(GEMMA | {"base_model": "LiquidAI/LFM2-VL-450M"}, Images(1, 1024, 512, "--images"))
    assert "3,072 patches" in towers(tiles)["vision tower's activations"].formula


def test_tiles_on_a_canvas_attend_under_a_mask_and_no_checkpoint_frees_their_layers():
    found = towers(of(CHECKPOINTED | {"base_model": "meta-llama/Llama-3.2-11B-Vision-Instruct"}))
    patches = 4 * 1608
    assert found["vision tower's mask"].bytes == 2 * patches**2
    assert "x 6,432 patches x 32 layers" in found["vision tower's activations"].formula
    assert "x 6,432 patches x 8 layers" in found["last layers of the vision tower's activations"].formula


def test_a_tower_that_is_no_stack_of_layers_is_counted_as_it_was_traced():
    gemma = {"base_model": "google/gemma-3n-E2B-it"}
    frozen = towers(of(GEMMA | gemma), "forward and loss")
    assert set(frozen) <= {"vision tower's input", "one layer of the vision tower", "audio tower's input"}
    trained = towers(of(FULL | gemma))["vision tower's activations"]
    assert trained.bytes == 256 * 32_332_784
    assert "traced" in trained.formula


def test_an_ear_takes_half_a_minute():
    found = towers(of(FULL | {"base_model": "google/gemma-4-E2B-it"}))
    assert "153,231" not in found["audio tower's activations"].formula
    assert found["audio tower's activations"].bytes == 12 * 750 * 229_007
    assert found["vision tower's input"].bytes == 4 * 3 * 16 * 16 * 2520
