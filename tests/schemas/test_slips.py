"""Slips that strangers made: each is an error at its line that says what was meant, and no edit is promised in vain."""

import pytest

import advisor

HEAD = (
    "base_model: Qwen/Qwen3-8B\nmicro_batch_size: 1\ngradient_accumulation_steps: 4\nnum_epochs: 1\noutput_dir: out\n"
)
DATA = "datasets:\n  - path: someone/chats\n    type: chat_template\n"
RATE = "learning_rate: 2e-5\n"


def found(text: str, rule: str) -> list[str]:
    """The messages of a rule's errors."""
    report = advisor.check_text(text)
    return [one.message for one in report.findings if one.rule == rule and one.level == "error"]


@pytest.mark.parametrize(
    ("text", "rule", "says"),
    [
        (f"chat_template: qwen2_5\n{RATE}{DATA}", "wrong-type", "is `qwen_25` meant?"),
        (f"chat_template: phi_4\n{RATE}{DATA}", "wrong-type", "it takes `alpaca`, "),
        (f"chat_template: llama-3\n{RATE}{DATA}", "wrong-type", "is `llama3` meant?"),
        (f"chat_template: mistral\n{RATE}{DATA}", "wrong-type", "`mistral_v2v3`"),
        (f"{RATE}{DATA}    chat_template: qwen3.5\n", "unknown-chat-template", "is `qwen3_5` meant?"),
        (f"{RATE}{DATA.replace('chat_template', 'chat_templat')}", "unknown-dataset-type", "is `chat_template` meant?"),
        (f"{RATE}{DATA}lr_scheduler: cosin\n", "unknown-lr-scheduler", "is `cosine` meant?"),
        (f"learning_rate: auto\n{DATA}", "value-refused", "it is no number"),
        (f"learning_rate: 0,0002\n{DATA}", "value-refused", "write `0.0002`"),
    ],
)
def test_a_slip_is_an_error_that_says_what_was_meant(text: str, rule: str, says: str):
    (message,) = found(HEAD + text, rule)
    assert says in message


@pytest.mark.parametrize("lacking", ["micro_batch_size", "gradient_accumulation_steps"])
def test_one_size_of_the_batch_alone_is_refused_before_0_19(lacking: str):
    text = "".join(line for line in (HEAD + RATE + DATA).splitlines(True) if lacking not in line)
    old = advisor.check_text(text, stack={"axolotl": "0.18.0"})
    assert [one.rule for one in old.findings if one.level == "error"] == ["batch-size-keys"]
    assert found(text, "batch-size-keys") == []


def test_a_key_below_another_is_led_to_its_own_level():
    text = f"{HEAD}{RATE}{DATA}special_tokens:\n  eot_tokens: ['<|im_end|>']\n"
    report = advisor.check_text(text)
    (finding,) = [one for one in report.findings if one.rule == "unknown-key"]
    assert "it belongs at the top level" in finding.message
    assert finding.fix is not None


def test_no_key_is_renamed_to_one_that_refuses_its_value():
    text = f"{HEAD}{RATE}{DATA}special_tokens:\n  eos_tokens: ['<|im_end|>']\n"
    (finding,) = [one for one in advisor.check_text(text).findings if one.rule == "unknown-key"]
    assert "is `eos_token` meant?" in finding.message
    assert finding.fix is None
