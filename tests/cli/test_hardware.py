"""``advisor hardware``: which cards would do."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from advisor.cli import hardware
from advisor.cli.main import main
from advisor.documents import parse
from advisor.engine import cards
from advisor.engine import plan as planning
from advisor.engine.cards import all_gpus, errors_anywhere, nodes_of, rows_on
from advisor.engine.states import Plan, State
from advisor.opening import Context, open_run
from advisor.report.style import Style
from advisor.run import Run

QLORA = """\
base_model: meta-llama/Llama-3.1-8B
learning_rate: 1e-4
datasets: [{path: a, type: alpaca}]
adapter: qlora
load_in_4bit: true
lora_r: 16
lora_alpha: 32
lora_target_linear: true
sequence_len: 4096
micro_batch_size: 1
gradient_checkpointing: true
attn_implementation: flash_attention_2
bf16: true
"""
FULL = """\
base_model: meta-llama/Llama-3.1-8B
learning_rate: 1e-5
datasets: [{path: a, type: alpaca}]
sequence_len: 4096
micro_batch_size: 4
bf16: true
attn_implementation: flash_attention_2
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "qlora.yaml").write_text(QLORA)
    (tmp_path / "full.yaml").write_text(FULL)
    return tmp_path


def said(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(main, ["hardware", *arguments, "--isolated"])
    return done.exit_code, done.output


def rows(*arguments: str) -> list[dict[str, Any]]:
    code, text = said(*arguments, "--output-format", "json")
    assert code == 0, text
    return json.loads(text)["hardware"]


def test_of_each_card_the_smallest_number_that_fits(folder: Path):
    found = rows("full.yaml", "--cards", "a100-80gb,h100,rtx-4090")
    assert len({row["hardware"].split("x ")[1] for row in found}) == len(found)
    assert all(row["needed"]["high"] <= row["usable"] for row in found)


def test_all_shows_every_number(folder: Path):
    found = [row["hardware"] for row in rows("qlora.yaml", "--cards", "a100-80gb", "--all")]
    assert sorted(found) == [f"{count}x A100-80GB SXM" for count in (1, 2, 4, 8)]


def test_a_card_that_the_config_would_stop_on_is_left_out(folder: Path):
    """bf16 and FlashAttention 2 stop on a T4."""
    code, text = said("qlora.yaml", "--cards", "t4")
    assert code == 1 and "no card" in text


def test_what_does_not_fit_as_written_is_shown_with_its_steps(folder: Path):
    (found,) = rows("full.yaml", "--cards", "rtx-4090")
    assert "gradient-checkpointing" in found["steps"] and not found["changes_training"]


def test_hours_and_cost_rank_the_rows(folder: Path):
    (folder / "prices.toml").write_text('"a100-80gb" = 9.0\nh100 = 2.0\n')
    found = rows("qlora.yaml", "--cards", "a100-80gb,h100", "--tokens", "200M", "--prices", "prices.toml")
    assert [row["hardware"] for row in found] == ["1x H100-80GB SXM", "1x A100-80GB SXM"]
    assert all(row["cost"] > 0 and row["hours"] > 0 for row in found)
    dear = {row["hardware"]: row["cost"] / row["gpu_hours"] for row in found}
    assert dear == pytest.approx({"1x H100-80GB SXM": 2.0, "1x A100-80GB SXM": 9.0})


def test_limits_leave_out_what_takes_too_long_or_costs_too_much(folder: Path):
    call = ("qlora.yaml", "--cards", "a100-80gb", "--all", "--tokens", "200M", "--price", "2")
    everything = rows(*call)
    hours = sorted(row["hours"] for row in everything)
    assert len(rows(*call, "--within", f"{hours[0] * 1.01:.2f}h")) == 1
    cost = sorted(row["cost"] for row in everything)
    assert len(rows(*call, "--under", f"{cost[0] + 0.01:.2f}")) >= 1
    assert said(*call, "--under", "0.01")[0] == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--within", "6h"), "--tokens"),
        (("--under", "50"), "--tokens"),
        (("--within", "soon", "--tokens", "1M"), "--within 6h"),
        (("--tokens", "many"), "--tokens 200M"),
        (("--cards", "h1000"), "h100"),
        (("--prices", "gone.toml"), "gone.toml"),
        (("--prices", "wrong.toml"), "wrong.toml:2"),
        (("--prices", "strange.toml"), "strange.toml:1"),
    ],
)
def test_what_cannot_be_read_is_exit_code_two(folder: Path, arguments: tuple[str, ...], message: str):
    (folder / "wrong.toml").write_text('h100 = 2.0\na100 = "cheap"\n')
    (folder / "strange.toml").write_text("abacus = 1.0\n")
    code, text = said("qlora.yaml", *arguments)
    assert code == 2 and message in text


def test_markdown_is_a_table(folder: Path):
    code, text = said("qlora.yaml", "--cards", "h100", "--output-format", "markdown")
    assert code == 0 and text.startswith("| GPUs | GiB |") and "| 1x H100-80GB SXM |" in text


def test_never_a_large_full_fine_tune_on_one_small_card(folder: Path):
    """The host of a workstation does not hold half a TiB."""
    (folder / "full.yaml").write_text(FULL.replace("8B", "70B"))
    assert all(row["changes_training"] for row in rows("full.yaml", "--cards", "rtx-3090", "--all"))


def test_estimate_takes_the_price_of_its_card_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text(
        "base_model: meta-llama/Llama-3.1-8B\nadapter: lora\nlora_r: 16\nlora_target_linear: true\nmax_steps: 100\n"
    )
    (tmp_path / "prices.toml").write_text('"a100-80gb" = 2.0\n"h200" = 4.0\n')

    def said(*options: str) -> str:
        command = ["estimate", str(tmp_path / "run.yaml"), "--isolated", "--prices", str(tmp_path / "prices.toml")]
        return " ".join(CliRunner().invoke(main, [*command, *options]).output.split())

    assert "at 4 a GPU-hour" in said("--gpus", "1x h200")
    assert "at 3 a GPU-hour" in said("--gpus", "1x h200", "--price", "3")
    assert "a GPU-hour" not in said("--gpus", "1x b200")


def test_estimate_takes_the_tables_price_where_none_is_stated(tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text(QLORA + "max_steps: 100\n")

    def said(*options: str) -> str:
        done = CliRunner().invoke(main, ["estimate", str(tmp_path / "run.yaml"), "--isolated", *options])
        return " ".join(done.output.split())

    assert re.search(
        r"about [\d.]+ to [\d.]+ USD at [\d.]+ a GPU-hour, the median of \d+ clouds, read 20", said("--gpus", "1x h200")
    )
    assert "a GPU-hour" not in said("--gpus", "1x mi325x")


ZERO = {"zero_optimization": {"stage": 3}, "bf16": {"enabled": True}, "train_micro_batch_size_per_gpu": "auto"}


@pytest.fixture
def large(folder: Path) -> str:
    """A full fine-tune that no node of eight holds with its fp32 master weights, and a host that holds nothing."""
    (folder / "ds.json").write_text(json.dumps(ZERO))
    (folder / "large.yaml").write_text(FULL.replace("8B", "70B") + "gradient_checkpointing: true\ndeepspeed: ds.json\n")
    return "1x h100 host=64GiB"


def test_several_nodes_where_one_is_too_few(large: str):
    """Sixteen cards, then more; their time takes a network."""
    (found,) = rows("large.yaml", "--gpus", large, "--cards", "h100")
    assert found["hardware"].startswith("4 nodes of 8x") and found["hours"] is None is found["tokens_per_second"]
    assert found["spec"] == "4n8x h100-80gb-sxm host=64GiB" and not found["changes_training"]
    (stated,) = rows("large.yaml", "--gpus", f"{large} net=400Gb/s", "--cards", "h100")
    assert stated["tokens_per_second"] > 0
    assert "net=400Gb/s" in said("large.yaml", "--gpus", large, "--cards", "h100")[1]


def test_one_node_where_one_does(folder: Path):
    found = rows("full.yaml", "--cards", "h100", "--all")
    assert found and not any("nodes" in row["hardware"] for row in found)


def test_sixteen_cards_in_one_machine_where_such_are_sold(folder: Path):
    found = rows("qlora.yaml", "--cards", "a100-40gb,a100-80gb", "--all")
    assert "16x A100-40GB SXM" in {row["hardware"] for row in found}
    assert "16x A100-80GB SXM" not in {row["hardware"] for row in found}


def test_a_limit_of_time_is_met_by_more_cards_of_a_plan(folder: Path):
    """With a plan one card does, too slowly; eight are within the limit."""
    call = ("full.yaml", "--cards", "a100-80gb", "--tokens", "200M")
    (slow,) = rows(*call)
    (fast,) = rows(*call, "--within", f"{slow['hours'] / 4:.2f}h")
    assert slow["hardware"].startswith("1x") and fast["hours"] <= slow["hours"] / 4


def test_no_offload_on_one_card_where_two_are_cheaper(folder: Path):
    """ZeRO's CPU optimizer costs more than a second card, of which both hold the states."""
    (found,) = rows("full.yaml", "--gpus", "1x l40s link=nvlink host=512GiB", "--cards", "l40s")
    assert not any("offload" in step for step in found["steps"]) and not found["hardware"].startswith("1x")


def test_host_memory_has_a_column_where_something_is_offloaded(folder: Path):
    (folder / "offload.yaml").write_text(FULL + "gradient_checkpointing: true\nactivation_offloading: true\n")
    code, text = said("offload.yaml", "--cards", "h100", "--output-format", "markdown")
    assert code == 0 and re.search(r"\| \d+\.\d \| ", text), text
    assert "host GiB" not in said("qlora.yaml", "--cards", "h100")[1]


def test_a_card_without_a_price_comes_after_those_that_have_one(folder: Path):
    (folder / "prices.toml").write_text('"a100-80gb" = 900.0\n')
    found = rows("qlora.yaml", "--cards", "a100-80gb,h100", "--tokens", "200M", "--prices", "prices.toml")
    assert [row["cost"] is None for row in found] == [False, True]


def test_few_plans_are_made_until_the_screen_is_full(folder: Path, monkeypatch: pytest.MonkeyPatch):
    made: list[str] = []
    plan = planning.plan_fit

    def counted(start: State, *rest: Any, **options: Any) -> Plan:
        made.append(start.run.hardware.title if start.run.hardware else "")
        return plan(start, *rest, **options)

    monkeypatch.setattr(planning, "plan_fit", counted)
    assert 8 <= len(rows("full.yaml")) <= 12
    assert len(made) < 20 and len(set(made)) == len(made)


def test_rules_are_asked_about_a_card_only_where_the_memory_is_enough(monkeypatch: pytest.MonkeyPatch):
    run = open_run(parse(FULL.encode(), "run.yaml", "yaml"), Context(gpus="1x h200")).run
    asked: list[Run] = []
    own = cards.errors_but_memory
    monkeypatch.setattr(cards, "errors_but_memory", lambda run: asked.append(run) or own(run))
    rows = rows_on(run, [place for gpu in all_gpus() for place in nodes_of(run, gpu)], errors_anywhere(run))
    enough = [row for row in rows if row.estimate.verdict == "fits"]
    assert [row for row in rows if row.fits] and 0 < len(asked) <= len(enough) + 1 < len(rows)


def answer(*arguments: str) -> dict[str, Any]:
    code, text = said(*arguments, "--output-format", "json")
    assert code == 0, text
    return json.loads(text)


def test_by_cost_from_the_table_with_three_anchors(folder: Path):
    found = answer("qlora.yaml")
    shown = found["hardware"]
    costs = [row["cost"] for row in shown if row["cost"] is not None]
    assert costs == sorted(costs) and len(shown) == 12 == len({row["hardware"] for row in shown})
    named = [word for row in shown for word in row["anchors"]]
    assert sorted(named) == ["cheapest", "fastest", "smallest"]
    assert not any("cheapest" in row["anchors"] and row["price_is_weak"] for row in shown)
    assert found["currency"] == "USD" and found["tokens_assumed"] == 100e6 and found["more"] > 0
    assert "1x RTX 4090" in {row["hardware"] for row in shown}


def test_a_card_without_a_price_is_last_and_no_anchor(folder: Path):
    found = rows("qlora.yaml", "--cards", "h100,mi325x,l40s,gb10")
    assert [row["cost"] is None for row in found] == [False, False, True, True]
    assert not any(row["anchors"] for row in found[2:])


def test_the_screen_says_currency_dates_tokens_and_what_is_left_out(folder: Path):
    code, text = said("qlora.yaml")
    words = " ".join(text.replace("note:", "").split())
    assert code == 0 and "hours and cost are of 100M tokens" in words
    assert re.search(r"US dollars \(USD\).*read 20\d\d-\d\d-\d\d to 20\d\d", words)
    assert re.search(r"\d+ more.*: --all", words) and "~ the price of two clouds alone" in words
    assert max(map(len, text.splitlines())) <= 80
    stated = said("qlora.yaml", "--price", "2", "--tokens", "1M")[1]
    assert "USD" not in stated and "$" not in stated and "100M" not in stated


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_line_is_wider_than_the_screen(width: int, folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(hardware, "own_style", lambda: Style(width=width))
    for file in ("qlora.yaml", "full.yaml"):
        text = said(file, "--cards", "rtx-4090,h100,rtx-a6000,l40s")[1]
        assert max(map(len, text.splitlines())) <= width and "cost" in text and "is" in text


def test_owned_cards_come_first(folder: Path):
    (folder / "advisor.toml").write_text('[gpus]\nowned = ["rtx-4060-ti-16gb", "Ours"]\n[gpus.Ours]\nmemory = "20GB"\n')
    done = CliRunner().invoke(main, ["hardware", "qlora.yaml", "--output-format", "json"])
    found = json.loads(done.output)["hardware"]
    assert {row["spec"] for row in found[:2]} == {"1x rtx-4060-ti-16gb", "1x ours"}
    assert [row["owned"] for row in found[:3]] == [True, True, False]
    (folder / "advisor.toml").write_text('[gpus]\nowned = ["abacus"]\n')
    done = CliRunner().invoke(main, ["hardware", "qlora.yaml"])
    assert done.exit_code == 2 and "`gpus.owned`: unknown GPU `abacus`" in done.output


def test_a_card_known_by_its_memory_has_no_time(folder: Path):
    (found,) = rows("qlora.yaml", "--cards", "24GB")
    assert (found["hardware"], found["tokens_per_second"], found["cost"]) == ("1x 24 GB card", None, None)


def test_a_run_that_starts_on_no_card_is_told_what_says_why(folder: Path):
    Path("stops.yaml").write_text(FULL.replace("meta-llama/Llama-3.1-8B", "deepseek-ai/DeepSeek-V3"))
    code, text = said("stops.yaml")
    assert code == 1
    why = "no card of the catalogue would do as it is written: 1 error stops it, see `advisor check stops.yaml`"
    assert " ".join(text.split()).endswith(why)
