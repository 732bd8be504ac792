"""What the real libraries say of a run, as rules that are there for a call with ``--validate``."""

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

from advisor.engine.example import Example
from advisor.engine.rule import Hit, Rule
from advisor.record import record
from advisor.run import Run
from advisor.schemas.validate.client import Library
from advisor.schemas.validate.locate import pointed
from advisor.schemas.validate.requests import axolotl_question, deepspeed_question
from advisor.util import regex

Values = dict[str, Any]
MOST_WORDS = 300
# pydantic puts the names of types and classes into a place as well.
FIELD = regex(r"(?!(?:bool|int|float|str|dict|list|none|nullable)$)[a-z][a-z0-9_]*")
REST = """\
base_model: meta-llama/Llama-3.1-8B
datasets: [{path: tatsu-lab/alpaca, type: alpaca}]
micro_batch_size: 1
gradient_accumulation_steps: 1
learning_rate: 1e-4
"""
BUCKET = '{"train_micro_batch_size_per_gpu": "auto", "zero_optimization": {"stage": 2, "%s": 20000000}}'


@record
class _Libraries:
    """The libraries of one call. One that is not installed is an ``InputError`` when a run needs it."""

    known: dict[str, Library] = field(default_factory=dict[str, Library])

    def library(self, name: str) -> Library:
        """The library, started by the first run that needs it."""
        if name not in self.known:
            self.known[name] = Library(name, f"advisor.schemas.validate.ask_{name}")
        return self.known[name]

    def axolotl_finds(self, run: Run) -> Iterator[Hit]:
        """What axolotl's schema rejects."""
        library = self.library("axolotl")
        answer = library.says(axolotl_question(run))
        yield from hits(library, run.config, answer)
        for plugin in answer.get("left_out", ()):
            message = (
                f"`{plugin}` cannot be imported in the advisor's environment; axolotl went on without it and its keys"
            )
            number = list(run.config["plugins"]).index(plugin)
            yield Hit(f"plugins.{number}", f"{message} were not checked", level="note")

    def deepspeed_finds(self, run: Run) -> Iterator[Hit]:
        """What transformers or DeepSpeed's config class rejects."""
        if run.deepspeed is None:
            return
        library = self.library("deepspeed")
        yield from hits(library, run.deepspeed, library.says(deepspeed_question(run, run.deepspeed)))


def hits(library: Library, values: Mapping[str, Any], answer: Values) -> Iterator[Hit]:
    """An answer as hits, one a place."""
    who = f"{library.name} {library.version}"
    if answer.get("trouble"):
        message = f"{who} could not check this config: {shortened(answer['trouble'])}"
        yield Hit("", message, level="note")
    said: dict[str, list[str]] = {}
    for problem in answer.get("problems", ()):
        path = pointed(values, problem)
        words = said.setdefault(path, [])
        if (message := with_field(problem, path)) not in words:
            words.append(message)
    for path, words in said.items():
        key = f"`{path}`" if path else "this config"
        document = "deepspeed" if path and library.name == "deepspeed" else "config"
        yield Hit(path, f"{who} rejects {key}: {shortened('; '.join(words))}", document=document)


def with_field(problem: Values, path: str) -> str:
    """What one problem says, with the name of its field where the path does not end in it, as for a missing one."""
    fields = [part for part in problem["at"] if isinstance(part, str) and FIELD.fullmatch(part)]
    message: str = problem["message"]
    return message if not fields or fields[-1] in path.split(".") else f"{fields[-1]}: {message}"


def shortened(text: str) -> str:
    """In one line, and no longer than is read."""
    line = " ".join(text.split())
    return line if len(line) <= MOST_WORDS else line[: MOST_WORDS - 1] + "…"


def rules_that_ask() -> dict[str, Rule]:
    """One rule for each library."""
    libraries = _Libraries()
    axolotl = Rule(
        id="axolotl-says",
        stage="lint",
        title="axolotl's own schema rejects the config",
        finds=libraries.axolotl_finds,
        level="error",
        proof="rejects",
        why="""
            axolotl validates a config before it does anything else, and stops at the first fault. `--validate` asks
            the schema that is installed with the advisor.
        """,
        source="axolotl/utils/config/__init__.py, validate_config",
        examples=(
            Example(before=REST + "adapter: qlora", fires=True),
            Example(before=REST + "adapter: qlora\nload_in_4bit: true"),
        ),
    )
    deepspeed = Rule(
        id="deepspeed-says",
        stage="lint",
        title="DeepSpeed's own config class rejects the JSON",
        finds=libraries.deepspeed_finds,
        level="error",
        proof="rejects",
        why="""
            transformers fills in each "auto" and compares the rest with the trainer's arguments, and DeepSpeed reads
            the result when the model is already loaded. `--validate` runs the installed versions.
        """,
        source="transformers/integrations/deepspeed.py, HfTrainerDeepSpeedConfig; deepspeed/runtime/config.py",
        examples=(
            Example(before=REST + "deepspeed: ds.json", deepspeed=BUCKET % "reduce_bucket_sise", fires=True),
            Example(before=REST + "deepspeed: ds.json", deepspeed=BUCKET % "reduce_bucket_size"),
        ),
    )
    return {rule.id: rule for rule in (axolotl, deepspeed)}
