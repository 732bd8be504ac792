"""The dataset that axolotl has already tokenized for a config: where it lies, and its longest row."""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from typing import Any

from advisor.documents import Document
from advisor.run.axolotl.arrow import longest_list
from advisor.run.run import Prepared
from advisor.util import is_list, is_mapping, read_start

MULTIPLE = 64
"""What batches are padded to a multiple of: axolotl/core/builders/causal.py:386-394@0.19.0."""
MOST_STATE = 1 << 20
# axolotl/utils/data/shared.py:39-100@0.19.0.
OF_A_DATASET = ("path", "type", "shards", "conversation", "split", "temperature")
MORE_OF_THE_CONFIG = (
    "chat_template",
    "chat_template_jinja",
    "chat_template_kwargs",
    "default_system_message",
    "eot_tokens",
    "sample_packing_bin_size",
    "sample_packing_group_size",
    "sample_packing_sequentially",
    "special_tokens",
    "train_on_inputs",
)
MORE_OF_A_DATASET = (
    "chat_template",
    "chat_template_jinja",
    "data_files",
    "drop_system_message",
    "ds_type",
    "field",
    "field_chosen",
    "field_human",
    "field_messages",
    "field_model",
    "field_rejected",
    "field_thinking",
    "field_tools",
    "input_format",
    "input_transform",
    "max_completion_length",
    "message_field_training",
    "message_field_training_detail",
    "message_property_mappings",
    "name",
    "preprocess_shards",
    "revision",
    "roles",
    "roles_to_train",
    "shards_idx",
    "split_thinking",
    "step_separator",
    "template_thinking_key",
    "text_column",
    "train_on_eos",
    "train_on_eot",
    "train_on_last_step_only",
)
DEFAULTS = {"sample_packing_bin_size": 200, "sample_packing_group_size": 100_000}
"""axolotl/utils/schemas/config.py@0.19.0; they are part of the name."""
NOT_FOLLOWED = ("added_tokens_overrides", "skip_prepare_dataset", "push_dataset_to_hub", "streaming", "processor_type")
"""Keys under which no dataset is prepared on disk, or under another name."""


def prepared_rows(config: Document, working_directory: str, base: str, sequence_len: int) -> Prepared | None:
    """The longest row of the dataset below ``base`` that axolotl would load for this config; None if there is none."""
    name = dataset_hash(config)
    longest = None if name is None else longest_row(os.path.join(working_directory, base, name))
    if longest is None:
        return None
    multiple = 1 if config.get("pad_to_sequence_len") is False else MULTIPLE
    return Prepared(-(-longest // multiple) * multiple, longest, sequence_len, f"{base}/{name}")


def longest_row(folder: str) -> int | None:
    """Tokens of the longest row that ``Dataset.save_to_disk`` of Hugging Face's ``datasets`` left in a folder."""
    try:
        state: Any = json.loads(read_start(os.path.join(folder, "state.json"), MOST_STATE))
        files = [os.path.basename(one["filename"]) for one in state["_data_files"]]
        return max((longest_list(os.path.join(folder, name), "input_ids") for name in files), default=None)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def dataset_hash(config: Document) -> str | None:
    """The folder's name: ``generate_dataset_hash_from_config``, axolotl/utils/data/shared.py:640-697@0.19.0."""
    datasets = config.get("datasets")
    if not is_list(datasets) or not datasets or any(config.get(key) for key in NOT_FOLLOWED):
        return None
    kept: list[Mapping[str, object]] = []
    for one in datasets:
        if not is_mapping(one) or not isinstance(one.get("type"), str | None):
            return None
        kept.append(_as_validated(one))
    extra: dict[str, object] = {"cfg": selected(DEFAULTS | dict(config), MORE_OF_THE_CONFIG)}
    # Each has something to add: the schema writes `message_property_mappings` into all.
    of_datasets = [{"id": _base_string(one), "extra": selected(one, MORE_OF_A_DATASET)} for one in kept]
    extra["datasets"] = sorted(of_datasets, key=stable)
    flags = ("sequence_len", "sample_packing", "eval_sample_packing", "group_by_length")
    sizes = "@".join(str(({"sequence_len": 512} | dict(config)).get(key)) for key in flags)
    distilled, unique = config.get("kd_temperature") or 1.0, config.get("dataset_exact_deduplication") or False
    tokenizer = config.get("tokenizer_config") or config.get("base_model_config") or config.get("base_model")
    text = f"{sizes}@{distilled}@{unique}|{'|'.join(sorted(map(_base_string, kept)))}|{tokenizer}"
    return hashlib.md5(f"{text}|{stable(extra)}".encode(), usedforsecurity=False).hexdigest()


def _as_validated(dataset: Mapping[Any, object]) -> Mapping[str, object]:
    """A dataset as the schema leaves it: axolotl/utils/schemas/datasets.py:190-222, utils.py:8-79@0.19.0."""
    found = {str(key): value for key, value in dataset.items()}
    mappings = found.get("message_property_mappings")
    named = {str(key): value for key, value in mappings.items()} if is_mapping(mappings) else {}
    for key in ("role", "content"):
        named[key] = found.get(f"message_field_{key}") or named.get(key) or key
    found["message_property_mappings"] = named
    if found.get("type") == "chat_template" and not found.get("chat_template"):
        found["chat_template"] = "tokenizer_default"
    if found.get("chat_template_jinja") and not found.get("chat_template"):
        found["chat_template"] = "jinja"
    return found


def _base_string(dataset: Mapping[str, object]) -> str:
    """What a dataset is, in one word."""
    values = {**dataset, "temperature": dataset.get("temperature") or 1.0}
    return ":".join(str(values.get(key)) for key in OF_A_DATASET)


def selected(values: Mapping[str, object], keys: Iterable[str]) -> dict[str, object]:
    """The keys that say something."""
    plain = {key: _without_none(values.get(key)) for key in keys}
    return {key: value for key, value in plain.items() if not (value is None or value is False or value in ({}, []))}


def _without_none(value: object) -> object:
    """A value with what is None left out of its mappings, whose keys are text."""
    if is_mapping(value):
        return {str(key): kept for key, item in value.items() if (kept := _without_none(item)) is not None}
    return [_without_none(item) for item in value] if is_list(value) else value


def stable(value: object) -> str:
    """JSON with sorted keys and without blanks."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
