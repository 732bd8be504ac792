"""EBFT: a frozen network's hidden states, by which answers are compared, and answers made at many places at once."""

from advisor.memory import loss
from advisor.memory.activations import head_saved_bytes, no_grad_peak_bytes
from advisor.memory.forward import SAVED, kept_terms, norm_text
from advisor.memory.ledger import Phase, Term
from advisor.memory.weight_groups import Weights, base_width
from advisor.models import Architecture
from advisor.record import replace
from advisor.run import Ebft, Run, Zero

NETWORK = "axolotl/core/trainers/ebft/trainer.py:114-124, strided.py:395-480@0.19.0: a frozen copy of the model"
STATES = "axolotl/core/trainers/ebft/rewards.py, extract_hidden_states@0.19.0: all states, and those chosen twice"
STRIDED = "axolotl/core/trainers/ebft/strided.py, _compute_block_rewards@0.19.0: all layers' states, and logits"
ANSWERING = "axolotl/core/trainers/ebft/strided.py, _generate_strided_blocks@0.19.0: eager attention over the whole row"
LONGEST = 2048
"""Tokens of a row that is compared: axolotl/core/training_args_base.py:78@0.19.0, which EBFT leaves as it is."""
SAMPLED = 8
"""Bytes of each logit that the last token but one was drawn from: over the temperature, and as probability."""

Terms = tuple[Term, ...]


def network_terms(run: Run, model: Architecture, weights: Weights, divisor: int) -> Terms:
    """The frozen network, where it is not the base under an adapter that can be turned off.

    Strided, another GPU's copy lies on this one where a process sees several.
    """
    if run.ebft is None or _shares_weights(run):
        return ()
    if run.ebft.stride:
        width, n, elements = 2, 1, model.parameters + sum(group.elements for group in weights.trained if run.adapter)
    else:
        width, n, elements = base_width(run), divisor, model.parameters
    text = f"{width} B x {elements:,}" + (f" / {n}" if n > 1 else "")
    return (Term("feature network", "weights", width * elements // n, text, NETWORK),)


def _shares_weights(run: Run) -> bool:
    """Whether the base serves as the frozen network."""
    alone = run.hardware is None or run.hardware.gpus_per_node == 1
    return run.adapter is not None and (alone or not (run.ebft and run.ebft.stride))


def ebft_phases(run: Run, model: Architecture, fixed: Terms) -> tuple[Phase, ...]:
    """The moments of its own: comparing answers, and making them where it strides."""
    if run.ebft is None:
        return ()
    if run.ebft.stride:
        logits = Term("log-probabilities", "loss", loss.loss_saved_bytes(run, model), "of all answers", loss.SOURCE)
        norm = Term("final norm", "activations", head_saved_bytes(run, model), norm_text(run, model), SAVED)
        compared = (*fixed, *kept_terms(run, model), norm, logits, *_strided_states(run, model, run.ebft))
        return (
            Phase("forward and loss", compared),
            Phase("generation", (*fixed, *_strided_answers(run, model, run.ebft))),
        )
    return (Phase("generation", (*fixed, *_whole_states(run, model, run.ebft))),)


def _whole_states(run: Run, model: Architecture, ebft: Ebft) -> Terms:
    """All answers of a generation go through the network at once, without autocast; PEFT's base makes logits, too."""
    assert run.rollouts is not None
    length = min(run.sequence_len, LONGEST)
    asked = replace(run, micro_batch_size=run.rollouts.rows, sequence_len=length, adapter=None, lora=None)
    working = max(no_grad_peak_bytes(asked, block) for block in model.blocks)
    width = run.compute_bytes * asked.tokens
    logits = width * model.outputs if run.adapter is not None else 0
    chosen = 2 * ebft.features * width * model.hidden_size
    return (
        Term("hidden states", "activations", *states(asked, model, run.compute_bytes), STATES),
        Term("states that are compared", "activations", max(0, chosen, working - logits), f"{chosen:,} B", STATES),
        Term("logits of answers", "loss", logits, f"{asked.tokens:,} tokens x {model.outputs:,} vocabulary", STATES),
    )


def states(run: Run, model: Architecture, width: int) -> tuple[int, str]:
    """Bytes of the hidden states before and after each layer, and their arithmetic."""
    count = model.layers + 1
    text = f"{width} B x {run.tokens:,} tokens x {model.hidden_size:,} x {count}"
    return width * run.tokens * model.hidden_size * count, text


def _strided_states(run: Run, model: Architecture, ebft: Ebft) -> Terms:
    """Documents with their answers go through the network, while the graph of the loss is kept.

    The base under an adapter gives what the trainer's wrapper turns to fp32, under a mask of its own.
    """
    shared = _shares_weights(run)
    width = run.compute_bytes + (4 if shared and run.autocast else 0)
    mask = rows(run) * (run.sequence_len + ebft.answers(run.sequence_len)) ** 2 * 2 if shared else 0
    text = f"{width} B x {run.tokens:,} tokens x {model.outputs:,} vocabulary"
    return (
        Term("hidden states", "activations", *states(run, model, width), STRIDED),
        Term("logits of answers", "loss", width * run.tokens * model.outputs, text, STRIDED),
        Term("mask", "overhead", mask, f"{mask:,} B", STRIDED),
    )


def _strided_answers(run: Run, model: Architecture, ebft: Ebft) -> Terms:
    """The last token of all answers: every row so far, in eager attention, with logits of all its tokens.

    What the token before was drawn from is still there.
    """
    places = ebft.places(run.sequence_len)
    length = run.sequence_len + places * (ebft.answer - 1)
    asked = replace(run, attention="eager", micro_batch_size=rows(run), sequence_len=length, ebft=None)
    working = max(no_grad_peak_bytes(asked, block) for block in model.blocks)
    wrapped = run.autocast and not isinstance(run.sharding, Zero)
    given, half = 4 if wrapped else run.compute_bytes, run.compute_bytes if wrapped else 0
    before = asked.tokens - rows(run) * places if ebft.answer > 1 else 0
    held = (given * before + (SAMPLED * rows(run) * places if before else 0)) * model.outputs
    logits = (given + half) * asked.tokens * model.outputs
    text = f"{given + half} B x {asked.tokens:,} tokens x {model.outputs:,} vocabulary"
    largest = (
        Term("one layer's intermediates", "activations", working, f"{asked.tokens:,} tokens", ANSWERING)
        if working > logits
        else Term("logits of answers", "loss", logits, text, ANSWERING)
    )
    mask = 2 * asked.tokens * length
    return (
        largest,
        Term("logits of the token before", "loss", held, f"{given} B x {before:,} tokens, and drawn from", ANSWERING),
        Term("mask", "overhead", mask, f"2 B x {asked.tokens:,} tokens x {length:,}", ANSWERING),
    )


def rows(run: Run) -> int:
    """Documents of a micro-step, each as often as it is answered."""
    return run.micro_batch_size * (run.ebft.samples if run.ebft else 1)


def one_graph(run: Run) -> Run:
    """The run with a single row: strided EBFT sends one row after the other, and backward comes by them so."""
    if run.ebft is None or not run.ebft.stride:
        return run
    return replace(run, micro_batch_size=1, ebft=replace(run.ebft, samples=1))
