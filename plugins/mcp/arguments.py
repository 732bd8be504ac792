"""The arguments of the tools, each with what an agent reads of it."""

from typing import Annotated, Literal

from pydantic import Field

Config = Annotated[str | None, Field(description="text of an axolotl YAML; or give `path`")]
Path = Annotated[str | None, Field(description="file of the YAML, below the server's root; or give `config`")]
Gpus = Annotated[
    str | None,
    Field(description='"8x a100-80gb", "2n8x h100-80gb host=1TiB", "1x rtx-4090 free=20GiB"; "2x 48GB" for any card'),
]
Files = Annotated[dict[str, str] | None, Field(description="unsaved DeepSpeed JSONs: name as in the YAML -> text")]
Model = Annotated[
    str | None, Field(description="for an unknown model: its config.json, or the published model it is a fine-tune of")
]
Ledger = Annotated[bool, Field(description="also each term with arithmetic and source")]
Choice = Annotated[
    Literal["A", "B", "F"],
    Field(description="the option of `check`: A same training, B changes training (ask the user), F faster, by A or B"),
]
Text = Annotated[bool, Field(description="also the whole new files")]
Key = Annotated[Literal["micro_batch_size", "sequence_len"], Field(description="of which the largest value is asked")]
Log = Annotated[str | None, Field(description="text with the traceback; or give `log_path`")]
LogPath = Annotated[str | None, Field(description="file of the log, below the server's root; or give `log`")]
Cards = Annotated[str | None, Field(description='only these cards: "rtx-4090,l40s"')]
Tokens = Annotated[str | None, Field(description='tokens of one epoch: "200M"; without it cost is of 100M')]
TokensInAll = Annotated[str | None, Field(description='tokens trained in all epochs: "20M"; adds hours and cost')]
Price = Annotated[float | None, Field(description="of one GPU-hour, instead of the shipped prices in USD")]
BaseModel = Annotated[str, Field(description='"Qwen/Qwen3-8B", or a folder with a config.json')]
Data = Annotated[str | None, Field(description="file of rows below the root: JSON lines, CSV, Parquet, text")]
Method = Annotated[str, Field(description="auto, full, lora, qlora; dpo for pairs")]
RowsAs = Annotated[
    str | None, Field(description="what the rows are, where they leave it open: an error names the words")
]
Length = Annotated[int | None, Field(description="tokens of a row, instead of what rows and card suggest", ge=64)]
Hours = Annotated[float | None, Field(description="the time that the run may take")]
RuleName = Annotated[str, Field(description="as findings and steps have it: zero-2")]
