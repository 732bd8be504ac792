# pyright: basic
"""The loss's bytes per logit against traces: from two vocabularies, so that all else cancels."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("accelerate")

from accelerate.utils.operations import convert_to_fp32  # noqa: E402

from advisor.memory import loss  # noqa: E402
from advisor.run import Rollouts  # noqa: E402
from advisor.run.stack import Stack  # noqa: E402
from tests.allocations.preferences import log_probabilities as by_kernel  # noqa: E402

from .families import described, family, run_of  # noqa: E402
from .trace import Setting, trace  # noqa: E402

pytestmark = pytest.mark.oracle

VOCABULARIES = (16384, 32768)
HIDDEN, LENGTH = 64, 512
FP32 = torch.float32


def make(vocabulary, name="LlamaConfig", **more):
    heads = {"num_attention_heads": 2, "num_key_value_heads": 2, "intermediate_size": 128}
    smallest = family(name, hidden_size=HIDDEN, **heads, **more)

    def config(layers):
        made = smallest(layers)
        made.vocab_size = vocabulary
        return made

    return config


def peaks(setting, rows=1, name="LlamaConfig", **more):
    """Bytes at the forward's peak, saved, and at the backward's peak, each by vocabulary."""
    found = []
    for vocabulary in VOCABULARIES:
        result = trace(make(vocabulary, name, **more)(2), setting, rows=rows, length=LENGTH // rows)
        marks = result.marks
        forward = result.peak(marks["forward end 1"], marks["forward done"])
        if setting.evaluation:
            found.append((forward, 0, 0))
            continue
        found.append((forward, result.saved_bytes, result.peak(marks["backward"], marks["backward 1"])))
    return found


def per_logit(values):
    """Bytes per token for each further entry of the vocabulary."""
    return (values[1] - values[0]) / (LENGTH * (VOCABULARIES[1] - VOCABULARIES[0]))


def formulas(setting, rows=1, length=LENGTH, **facts):
    """The same three, by the advisor's formulas."""
    found = []
    for vocabulary in VOCABULARIES:
        model = described(make(vocabulary), 2)
        run = run_of(model, setting, rows=rows, length=length, **facts)
        forward, backward = (
            loss.loss_forward_peak_bytes(run, model),
            loss.loss_backward_peak_bytes(run, model),
        )
        found.append((forward, loss.loss_saved_bytes(run, model), backward))
    return found


def slopes(found):
    """Bytes per logit: of the forward's peak, saved, and of the backward's peak."""
    return [per_logit([one[index] for one in found]) for index in range(3)]


SETTINGS = {
    "autocast": Setting(),
    "as the trainer wraps it": Setting(converts_outputs=True),
    "engine": Setting(autocast=False),
    "mean over the batch": Setting(num_items=False),
    "fp32 weights": Setting(weights=FP32),
    "fp32": Setting(weights=FP32, autocast=False),
    "LoRA": Setting(adapter="all-linear"),
}


@pytest.mark.parametrize("case", SETTINGS)
def test_plain_cross_entropy_takes_the_bytes_per_logit_of_the_table(case):
    assert slopes(peaks(SETTINGS[case])) == pytest.approx(slopes(formulas(SETTINGS[case])), abs=0.01)


def test_evaluation_takes_ten_bytes_a_logit():
    setting = Setting(evaluation=True, converts_outputs=True)
    models = [described(make(vocabulary), 2) for vocabulary in VOCABULARIES]
    formula = [loss.evaluation_loss_bytes(run_of(model, setting, length=LENGTH), model) for model in models]
    assert per_logit([one[0] for one in peaks(setting)]) == per_logit(formula) == 10


class Gather(torch.autograd.Function):
    """aten/src/ATen/native/TensorAdvancedIndexing.cpp, gather_backward@2.13.0: in place, but for fake tensors."""

    @staticmethod
    def forward(context, values, index):
        context.save_for_backward(values, index)
        return torch.gather(values, -1, index)

    @staticmethod
    def backward(context, gradient):
        values, index = context.saved_tensors
        return torch.zeros(values.shape, dtype=values.dtype).scatter_add_(-1, index, gradient), None


class LogSumExp(torch.autograd.Function):
    """aten/src/ATen/native/ReduceOps.cpp, logsumexp_out_impl; FunctionsManual.cpp, logsumexp_backward@2.13.0."""

    @staticmethod
    def forward(context, values):
        largest = values.amax(-1, keepdim=True)
        flat = largest.squeeze(-1)
        sizes = flat.abs()
        infinite = sizes == float("inf")
        del sizes
        flat.masked_fill_(infinite, 0)
        del infinite
        powers = (values - largest).exp_()
        result = powers.sum(-1)
        del powers
        result.log_().add_(flat)
        context.save_for_backward(values, result)
        return result

    @staticmethod
    def backward(context, gradient):
        values, result = context.saved_tensors
        shifted = values - result.unsqueeze(-1)  # C++ keeps both to the end of the expression
        powers = shifted.exp()
        return gradient.unsqueeze(-1) * powers


def no_entropy(_logits):
    """axolotl's kernel takes it of rows wherever they lie (axolotl/monkeypatch/trainer/utils.py:109-162@0.19.0)."""


def log_probabilities(logits, labels):
    """TRL's selective_log_softmax (trl/trainer/utils.py@1.9.0)."""
    if logits.dtype == FP32:
        chosen = Gather.apply(logits, labels[..., None]).squeeze(-1)
        return chosen - torch.stack([LogSumExp.apply(row) for row in logits])
    chosen = []
    for row, label in zip(logits, labels, strict=True):
        logarithms = row.log_softmax(-1)
        chosen.append(logarithms.gather(-1, label[:, None]))
    return torch.stack(chosen).squeeze(-1)


def entropy(logits):
    """TRL's entropy_from_logits (trl/trainer/utils.py@1.9.0)."""
    for part in logits.reshape(-1, logits.shape[-1]).split(loss.ENTROPY_ROWS):
        logarithms = part.log_softmax(-1)
        (logarithms.exp() * logarithms).sum(-1)


KERNELS = {True: (by_kernel, no_entropy), False: (log_probabilities, entropy)}
STACKS = {True: Stack(padding="full"), False: Stack(padding="full", trainer="hf-trainer")}
"""With axolotl's kernels, and with TRL's own functions."""
own_functions = pytest.mark.parametrize("kernels", [True, False], ids=["axolotl's kernels", "TRL's functions"])


def unchanged(outputs):
    """Without autocast accelerate wraps nothing."""
    return outputs


PRECISIONS = {
    "autocast": (convert_to_fp32, {}),
    "engine": (unchanged, {"autocast": False}),
    "fp32": (unchanged, {"autocast": False, "weights": FP32}),
}
precisions = pytest.mark.parametrize("precision", PRECISIONS)


def row_by_row(outputs_of, with_reference, functions):
    """A preference loss in TRL 1.9.0's steps: log-probabilities, a reference, metrics of logits."""
    log_probabilities, entropy = functions

    def compute(model, tokens):
        logits, labels = outputs_of(model(input_ids=tokens)).logits[:, :-1], tokens[:, 1:]
        difference = log_probabilities(logits, labels).sum()
        if with_reference:
            with torch.no_grad():
                reference = outputs_of(model(input_ids=tokens)).logits[:, :-1]
                expected = log_probabilities(reference, labels).sum()
            difference = difference - expected
        result = -torch.nn.functional.logsigmoid(difference)
        entropy(logits.detach())
        logits.detach().chunk(2)[0].clone().mean(-1)
        return result

    return compute


@pytest.mark.parametrize("with_reference", [True, False], ids=["dpo", "no reference"])
@precisions
@own_functions
def test_preference_loss_takes_the_bytes_per_logit_of_the_table(kernels, precision, with_reference):
    outputs_of, facts = PRECISIONS[precision]
    setting = Setting(**facts, loss=row_by_row(outputs_of, with_reference, KERNELS[kernels]))
    traced = peaks(setting, rows=4)
    # Two pairs are four rows.
    facts = {"rl": "dpo", "scores_reference": with_reference, "stack": STACKS[kernels]}
    formula = formulas(setting, rows=2, length=LENGTH // 4, **facts)
    assert slopes(traced) == pytest.approx(slopes(formula), rel=0.02)


def unpaired(outputs_of, with_reference, functions):
    """KTO's loss of rows that are all wanted: trl/trainer/kto_trainer.py:1478-1660@1.9.0."""
    log_probabilities, entropy = functions

    def unmatched(model, tokens):
        with torch.no_grad():
            return log_probabilities(outputs_of(model(input_ids=tokens)).logits[:, :-1], tokens[:, 1:]).sum()

    def compute(model, tokens):
        kl = unmatched(model, tokens)
        outputs = outputs_of(model(input_ids=tokens))
        logits, labels = outputs.logits[:, :-1], tokens[:, 1:]
        difference = log_probabilities(logits, labels).sum()
        if with_reference:
            kl = kl - unmatched(model, tokens)
            with torch.no_grad():
                reference = outputs_of(model(input_ids=tokens)).logits[:, :-1]
                expected = log_probabilities(reference, labels).sum()
            difference = difference - expected
        result = 1 - torch.sigmoid(difference - kl)
        entropy(logits.detach())
        chosen = logits.detach().index_select(0, torch.arange(len(tokens)))
        chosen.reshape(-1, chosen.shape[-1]).clone().mean(-1)
        return result

    return compute


@pytest.mark.parametrize("with_reference", [True, False], ids=["kto", "precomputed"])
@precisions
@own_functions
def test_kto_takes_the_bytes_per_logit_of_the_table(kernels, precision, with_reference):
    outputs_of, facts = PRECISIONS[precision]
    setting = Setting(**facts, loss=unpaired(outputs_of, with_reference, KERNELS[kernels]))
    traced = peaks(setting, rows=4)
    facts = {"rl": "kto", "scores_reference": with_reference, "stack": STACKS[kernels]}
    formula = formulas(setting, rows=4, length=LENGTH // 4, **facts)
    assert slopes(traced) == pytest.approx(slopes(formula), rel=0.02)


def odds(outputs_of, cross_entropy, log_probabilities):
    """ORPO's and CPO's loss: trl/experimental/orpo/orpo_trainer.py:748-846, cpo/cpo_trainer.py:807-865@1.9.0."""

    def likelihood(logits, labels):
        shifted = logits[..., :-1, :].contiguous()
        return torch.nn.CrossEntropyLoss()(shifted.view(-1, shifted.shape[-1]), labels[:, 1:].reshape(-1))

    def compute(model, tokens):
        logits = outputs_of(model(input_ids=tokens)).logits
        half = len(tokens) // 2
        first = likelihood(logits[:half], tokens[:half]) if cross_entropy else torch.zeros(())
        found = log_probabilities(logits[:, :-1], tokens[:, 1:]).mean(-1)
        return first - torch.nn.functional.logsigmoid(found[:half] - found[half:]).mean()

    return compute


@pytest.mark.parametrize("pairs", [1, 2, 4])
@precisions
@own_functions
@pytest.mark.parametrize(("rl", "both"), [("orpo", True), ("simpo", True), ("simpo", False)])
def test_odds_ratios_take_the_bytes_per_logit_of_the_table(rl, both, kernels, precision, pairs):
    if precision == "fp32" and not (kernels or both):
        pytest.skip("TRL's powers of one row are counted as those of one of two")
    outputs_of, facts = PRECISIONS[precision]
    setting = Setting(**facts, loss=odds(outputs_of, both, KERNELS[kernels][0]))
    traced = peaks(setting, rows=2 * pairs)
    facts = {"rl": rl, "chosen_cross_entropy": both, "stack": STACKS[kernels]}
    formula = formulas(setting, rows=pairs, length=LENGTH // (2 * pairs), **facts)
    expected = slopes(formula)
    if kernels and both:  # what records has the gradients of all and of chosen logits added into a new tensor
        expected[2] *= 3 / 2.5
    assert slopes(traced) == pytest.approx(expected, rel=0.02)


def test_capped_logits_keep_their_tanh():
    setting = Setting(attention="eager")
    traced = peaks(setting, name="Gemma2Config", head_dim=32, full=True)
    model = [described(make(v, "Gemma2Config", head_dim=32, full=True), 2) for v in VOCABULARIES]
    formula = [loss.loss_saved_bytes(run_of(m, setting, length=LENGTH), m) for m in model]
    assert per_logit([one[1] for one in traced]) == pytest.approx(per_logit(formula), abs=0.01)


COMPLETION = 100


def policy(outputs_of, functions):
    """GRPO's loss of one answer a row in TRL 1.9.0's steps: trl/trainer/grpo_trainer.py:1499-1533,2990-3100."""
    log_probabilities, entropy = functions

    def compute(model, tokens):
        logits = outputs_of(model(input_ids=tokens, logits_to_keep=COMPLETION + 1)).logits[:, :-1]
        logits.div_(0.7)
        found = log_probabilities(logits, tokens[:, -COMPLETION:])
        with torch.no_grad():
            entropy(logits)
        return -torch.min((found - found.detach()).exp(), torch.ones(())).mean()

    return compute


@pytest.mark.parametrize("rows", [1, 4])
@precisions
@own_functions
def test_grpo_takes_the_bytes_per_logit_of_the_table(kernels, precision, rows):
    outputs_of, facts = PRECISIONS[precision]
    setting = Setting(**facts, loss=policy(outputs_of, KERNELS[kernels]))
    traced = peaks(setting, rows=rows)
    facts = {"rl": "grpo", "rollouts": Rollouts("server", rows, COMPLETION), "stack": STACKS[kernels]}
    formula = formulas(setting, rows=rows, length=LENGTH // rows, **facts)
    assert slopes(traced) == pytest.approx(slopes(formula), rel=0.02)
