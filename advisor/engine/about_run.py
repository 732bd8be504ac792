"""What a run is in a line, and the files that findings about it point into."""

from advisor.run import Fsdp, Run, Zero


def summary(run: Run) -> str:
    """The run in one line."""
    if run.is_json_alone:
        return "DeepSpeed config"
    method = {"lora": "LoRA", "qlora": "QLoRA"}.get(run.adapter or "", "full fine-tune")
    if run.rl:
        method = f"{run.rl.upper()}, {method}"
    match run.sharding:
        case Zero(stage=stage):
            sharding = f"ZeRO-{stage}"
        case Fsdp(version=version):
            sharding = f"FSDP{version}"
        case None:
            sharding = "DDP" if run.world_size > 1 else ""
    parts = [
        method,
        run.precision,
        sharding,
        f"seq {run.sequence_len}",
        f"micro batch {run.micro_batch_size}",
    ]
    return ", ".join(part for part in (*parts, f"global batch {run.global_batch_size}") if part)


def texts(run: Run) -> dict[str, str]:
    """The files that findings point into, with the byte order marks that the places of edits count."""
    documents = [run.config]
    if run.deepspeed is not None and not run.deepspeed.document.is_new and not run.has_foreign_json:
        documents.append(run.deepspeed.document)
    return {document.file: "\ufeff" * bool(document.source.text.bom) + document.text for document in documents}
