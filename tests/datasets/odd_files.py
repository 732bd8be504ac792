"""Files in odd shapes that people really have, and what `advisor new -y` makes of them: written before its code."""

import csv
import gzip
import io
import json
from collections.abc import Callable
from typing import Any, NamedTuple

LLAMA, BASE = "meta-llama/Llama-3.1-8B-Instruct", "meta-llama/Llama-3.1-8B"
QWEN, QWEN_BASE = "Qwen/Qwen3-8B", "Qwen/Qwen3-8B-Base"
QWEN25, MISTRAL, GEMMA = "Qwen/Qwen2.5-7B-Instruct", "mistralai/Mistral-7B-Instruct-v0.3", "google/gemma-2-9b-it"
PHI, SMALL = "microsoft/Phi-3.5-mini-instruct", "Qwen/Qwen2.5-0.5B-Instruct"

ASK = ["What is the capital of France?", "Name three primes.", "Why is the sky blue?", "Translate 'dog' to German."]
SAY = ["Paris.", "Two, three and five.", "Air scatters blue light more than red.", "Hund."]
Row = dict[str, Any]


class OddFile(NamedTuple):
    """One case: who trains what where, and what must come of it."""

    name: str
    model: str
    gpus: str
    file: str
    content: str | bytes
    means: Row
    """What the config must mean, as `meaning` says it; `{"stops": word}` where it must be asked or refused."""
    options: tuple[str, ...] = ()


def each(make: Callable[[str, str], Row], times: int = 6) -> list[Row]:
    """Rows of the four questions and answers."""
    return [make(f"{ASK[i % 4]} ({i})", f"{SAY[i % 4]} ({i})") for i in range(4 * times)]


def lines(rows: list[Any]) -> str:
    """JSONL."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def table(rows: list[Row], delimiter: str = ",", end: str = "\n") -> str:
    """CSV, as an export of a table writes it."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), delimiter=delimiter, lineterminator=end)
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def turns(role: str, content: str, user: str, model: str, ask: str, say: str) -> list[Row]:
    """Two turns."""
    return [{role: user, content: ask}, {role: model, content: say}]


def openai(ask: str, say: str) -> list[Row]:
    """Two turns in OpenAI's words."""
    return turns("role", "content", "user", "assistant", ask, say)


def sharegpt(ask: str, say: str) -> list[Row]:
    """Two turns in ShareGPT's words."""
    return turns("from", "value", "human", "gpt", ask, say)


TOOL = {"type": "function", "function": {"name": "now", "description": "The time", "parameters": {"type": "object"}}}
CALLED = [
    {"role": "user", "content": "What time is it?"},
    {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": "1", "type": "function", "function": {"name": "now", "arguments": "{}"}}],
    },
    {"role": "tool", "tool_call_id": "1", "content": "12:00"},
    {"role": "assistant", "content": "Noon."},
]
CHATML = "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n{}<|im_end|>\n"
HH = "\n\nHuman: {}\n\nAssistant: "
SYSTEM = {"role": "system", "content": "Answer briefly."}
CHAT = {"kind": "chat", "field": "messages", "role": "role", "content": "content", "trains": ["assistant"]}
SHARE = {"kind": "chat", "field": "conversations", "role": "from", "content": "value", "trains": ["assistant"]}
PAIRS = {"kind": "dpo"}


def asks(ask: str, say: str, **fields: str) -> Row:
    """What a question and its answer in two columns mean."""
    return {"kind": "answer", "asks": ask, "says": say, **fields}


FILES = [
    # Chats
    OddFile("openai", QWEN, "24GB", "rows.jsonl", lines(each(lambda a, s: {"messages": openai(a, s)})), CHAT),
    OddFile(
        "openai with more columns (ultrachat)",
        LLAMA,
        "24GB",
        "ultrachat.jsonl",
        lines(each(lambda a, s: {"prompt": a, "prompt_id": "f0e3", "messages": openai(a, s)})),
        CHAT,
    ),
    OddFile(
        "sharegpt",
        LLAMA,
        "1x h100-80gb",
        "sharegpt.json",
        json.dumps(each(lambda a, s: {"id": "x_0", "conversations": sharegpt(a, s)})),
        SHARE,
    ),
    OddFile(
        "sharegpt with a system column",
        MISTRAL,
        "24GB",
        "sharegpt.jsonl",
        lines(each(lambda a, s: {"system": "Be brief.", "conversations": sharegpt(a, s)})),
        SHARE,
    ),
    OddFile(
        "roles user and model (Gemini's)",
        GEMMA,
        "1x a100-80gb",
        "gemini.jsonl",
        lines(each(lambda a, s: {"messages": turns("role", "content", "user", "model", a, s)})),
        CHAT,
    ),
    OddFile(
        "roles human and bot",
        QWEN,
        "24GB",
        "bot.jsonl",
        lines(each(lambda a, s: {"conversation": turns("speaker", "text", "human", "bot", a, s)})),
        {"kind": "chat", "field": "conversation", "role": "speaker", "content": "text", "trains": ["bot"]},
    ),
    OddFile(
        "roles user and ai",
        PHI,
        "24GB",
        "ai.jsonl",
        lines(each(lambda a, s: {"dialogue": turns("role", "content", "user", "ai", a, s)})),
        CHAT | {"field": "dialogue"},
    ),
    OddFile(
        "roles nobody knows",
        QWEN,
        "24GB",
        "novel.jsonl",
        lines(each(lambda a, s: {"messages": turns("role", "content", "Alice", "Bob", a, s)})),
        {"stops": "role"},
    ),
    OddFile(
        "oasst's prompter",
        LLAMA,
        "24GB",
        "oasst.jsonl",
        lines(each(lambda a, s: {"messages": turns("role", "text", "prompter", "assistant", a, s)})),
        CHAT | {"content": "text"},
    ),
    OddFile(
        "content in parts",
        QWEN25,
        "24GB",
        "parts.jsonl",
        lines(each(lambda a, s: {"messages": openai([{"type": "text", "text": a}], s)})),
        CHAT,
    ),  # pyright: ignore[reportArgumentType]
    OddFile(
        "messages as a JSON string",
        QWEN,
        "24GB",
        "strings.jsonl",
        lines(each(lambda a, s: {"messages": json.dumps(openai(a, s))})),
        CHAT,
    ),
    OddFile(
        "tool calls with tools", QWEN, "24GB", "tools.jsonl", lines([{"messages": CALLED, "tools": [TOOL]}] * 12), CHAT
    ),
    OddFile(
        "bare lists of turns",
        QWEN,
        "24GB",
        "bare.jsonl",
        lines([openai(a, s) for a, s in zip(ASK, SAY, strict=True)]),
        {"stops": "list"},
    ),
    OddFile(
        "a system turn in some",
        SMALL,
        "16GB",
        "system.jsonl",
        lines(each(lambda a, s: {"messages": openai(a, s)}) + [{"messages": [SYSTEM, *openai("Hi", "Hello.")]}] * 6),
        CHAT,
    ),
    OddFile(
        "one object with the list inside",
        QWEN,
        "24GB",
        "export.json",
        json.dumps({"version": "1.0", "data": each(lambda a, s: {"messages": openai(a, s)})}),
        {"stops": "data"},
    ),
    OddFile(
        "indented JSON with a BOM",
        QWEN,
        "24GB",
        "bom.json",
        "\ufeff" + json.dumps(each(lambda a, s: {"messages": openai(a, s)}), indent=2),
        CHAT,
    ),
    OddFile(
        "blank lines and CRLF",
        QWEN,
        "24GB",
        "crlf.jsonl",
        lines(each(lambda a, s: {"messages": openai(a, s)})).replace("\n", "\r\n\r\n"),
        CHAT,
    ),
    OddFile("JSONL in a .json", QWEN, "24GB", "lines.json", lines(each(lambda a, s: {"messages": openai(a, s)})), CHAT),
    OddFile(
        "some rows lack the key",
        QWEN,
        "24GB",
        "lacking.jsonl",
        lines([*each(lambda a, s: {"messages": openai(a, s)}), {"note": "todo"}]),
        {"stops": "25"},
    ),
    OddFile(
        "chat and alpaca in one file",
        QWEN,
        "24GB",
        "mixed.jsonl",
        lines(each(lambda a, s: {"messages": openai(a, s)}) + each(lambda a, s: {"instruction": a, "output": s})),
        {"stops": "messages"},
    ),
    # Questions with answers
    OddFile(
        "alpaca, base",
        BASE,
        "24GB",
        "alpaca.json",
        json.dumps(each(lambda a, s: {"instruction": a, "input": "", "output": s})),
        asks("instruction", "output", more="input"),
    ),
    OddFile(
        "alpaca, chat",
        LLAMA,
        "24GB",
        "alpaca.json",
        json.dumps(each(lambda a, s: {"instruction": a, "input": "", "output": s})),
        asks("instruction", "output", more="input"),
    ),
    OddFile(
        "alpaca as CSV, quotes and newlines",
        QWEN_BASE,
        "24GB",
        "alpaca.csv",
        table(each(lambda a, s: {"instruction": f'{a}\n"please"', "input": "", "output": f"{s}\n\n1, 2"})),
        asks("instruction", "output", more="input"),
    ),
    OddFile(
        "a spreadsheet's CSV: BOM and CRLF",
        QWEN,
        "24GB",
        "faq.csv",
        "\ufeff" + table(each(lambda a, s: {"question": a, "answer": s}), end="\r\n"),
        asks("question", "answer"),
    ),
    OddFile(
        "a CSV with semicolons",
        QWEN,
        "24GB",
        "faq.csv",
        table(each(lambda a, s: {"question": a, "answer": s}), ";"),
        {"stops": "column"},
    ),
    OddFile(
        "dolly",
        BASE,
        "1x h100-80gb",
        "dolly.jsonl",
        lines(each(lambda a, s: {"instruction": a, "context": "", "response": s, "category": "open_qa"})),
        asks("instruction", "response", more="context"),
    ),
    OddFile(
        "openorca",
        MISTRAL,
        "24GB",
        "orca.jsonl",
        lines(each(lambda a, s: {"id": "niv.1", "system_prompt": "Be brief.", "question": a, "response": s})),
        asks("question", "response", system="system_prompt"),
    ),
    OddFile(
        "gsm8k",
        QWEN25,
        "24GB",
        "gsm8k.jsonl",
        lines(each(lambda a, s: {"question": a, "answer": f"{s}\n#### 5"})),
        asks("question", "answer"),
    ),
    OddFile(
        "prompt and completion (OpenAI's old)",
        BASE,
        "24GB",
        "old.jsonl",
        lines(each(lambda a, s: {"prompt": f"{a}\n\n###\n\n", "completion": f" {s}"})),
        asks("prompt", "completion"),
    ),
    OddFile(
        "code: prompt and response",
        QWEN25,
        "24GB",
        "code.jsonl",
        lines(each(lambda a, s: {"prompt": a, "response": f"```python\nprint('{s}')\n```"})),
        asks("prompt", "response"),
    ),
    OddFile(
        "squad: answers nested",
        QWEN,
        "24GB",
        "squad.jsonl",
        lines(
            each(
                lambda a, s: {
                    "id": "5",
                    "title": "France",
                    "context": "Paris is big.",
                    "question": a,
                    "answers": {"text": [s], "answer_start": [0]},
                }
            )
        ),
        {"stops": "answers"},
    ),
    OddFile(
        "columns nobody knows",
        QWEN,
        "24GB",
        "faq.jsonl",
        lines(each(lambda a, s: {"frage": a, "antwort": s})),
        {"stops": "frage"},
    ),
    # Text
    OddFile(
        "text",
        BASE,
        "1x h100-80gb",
        "books.jsonl",
        lines([{"text": f"Chapter {i}. It rained. " * 40} for i in range(20)]),
        {"kind": "text", "field": "text"},
    ),
    OddFile(
        "code as content (the stack)",
        QWEN_BASE,
        "24GB",
        "stack.jsonl",
        lines([{"content": f"def f{i}():\n    return {i}\n", "size": 20, "lang": "Python"} for i in range(20)]),
        {"kind": "text", "field": "content"},
    ),
    OddFile(
        "a plain .txt",
        BASE,
        "24GB",
        "book.txt",
        "It was a dark night.\n\nIt rained all day.\n" * 30,
        {"kind": "text", "field": "text"},
    ),
    OddFile(
        "finished ChatML text",
        QWEN_BASE,
        "24GB",
        "chatml.jsonl",
        lines(each(lambda a, s: {"text": CHATML.format(a, s)})),
        {"kind": "text", "field": "text"},
    ),
    # Preferences
    OddFile(
        "ultrafeedback binarized",
        QWEN,
        "1x h100-80gb",
        "uf.jsonl",
        lines(
            each(lambda a, s: {"prompt": a, "chosen": openai(a, s), "rejected": openai(a, "No."), "score_chosen": 8.0})
        ),
        PAIRS,
    ),
    OddFile(
        "hh-rlhf: whole dialogues as text",
        LLAMA,
        "24GB",
        "hh.jsonl",
        lines(each(lambda a, s: {"chosen": HH.format(a) + s, "rejected": HH.format(a) + "No."})),
        {"stops": "prompt"},
    ),
    OddFile(
        "capybara: whole conversations",
        LLAMA,
        "1x a100-80gb",
        "capy.jsonl",
        lines(each(lambda a, s: {"source": "Airoboros", "chosen": openai(a, s), "rejected": openai(a, "No.")})),
        PAIRS,
    ),
    OddFile(
        "orca pairs",
        MISTRAL,
        "24GB",
        "orca_dpo.jsonl",
        lines(each(lambda a, s: {"system": "", "question": a, "chosen": s, "rejected": "No."})),
        PAIRS,
    ),
    OddFile(
        "sharegpt pairs",
        QWEN,
        "24GB",
        "pairs.jsonl",
        lines(
            each(
                lambda a, s: {
                    "conversations": sharegpt(a, s)[:1],
                    "chosen": {"from": "gpt", "value": s},
                    "rejected": {"from": "gpt", "value": "No."},
                }
            )
        ),
        {"stops": "role"},
    ),
    OddFile(
        "kto-mix: labels",
        QWEN,
        "24GB",
        "kto.jsonl",
        lines(
            [
                {"prompt": a, "completion": s, "label": i % 2 == 0}
                for i, (a, s) in enumerate(zip(ASK * 5, SAY * 5, strict=True))
            ]
        ),
        {"kind": "kto"},
    ),
    OddFile(
        "answers with a score",
        QWEN,
        "24GB",
        "scores.jsonl",
        lines(
            [{"prompt": a, "completion": s, "label": 0.25 * i} for i, (a, s) in enumerate(zip(ASK, SAY, strict=True))]
        ),
        {"stops": "label"},
    ),
    # What can not be read
    OddFile("an empty file", QWEN, "24GB", "empty.jsonl", "", {"stops": "row"}),
    OddFile(
        "half a line",
        QWEN,
        "24GB",
        "torn.jsonl",
        lines(each(lambda a, s: {"messages": openai(a, s)})) + '{"messages": [',
        {"stops": "25"},
    ),
    OddFile(
        "gzip",
        QWEN,
        "24GB",
        "rows.jsonl.gz",
        gzip.compress(lines(each(lambda a, s: {"messages": openai(a, s)})).encode()),
        CHAT,
    ),
    OddFile(
        "Latin-1", QWEN, "24GB", "latin.jsonl", lines([{"text": "caf\u00e9"}] * 5).encode("latin-1"), {"stops": "UTF-8"}
    ),
    OddFile(
        "a tokenized file",
        QWEN,
        "24GB",
        "ids.jsonl",
        lines([{"input_ids": [1, 2, 3], "attention_mask": [1, 1, 1], "labels": [-100, 2, 3]}] * 10),
        {"kind": "ids"},
    ),
]
