"""What answering takes: the keys and values of every token so far, ZeRO-3's whole model, or vLLM's share."""

from advisor.memory.activations import no_grad_peak_bytes
from advisor.memory.deepspeed import gathers
from advisor.memory.ledger import Phase, Term
from advisor.memory.liger_policy import scores_again, scoring_bytes
from advisor.memory.loss import scored_tokens
from advisor.memory.weight_groups import Weights
from advisor.models import Architecture
from advisor.record import replace
from advisor.run import Rollouts, Run

CACHE = "transformers/cache_utils.py, DynamicLayer.update@5.16.1: a row's keys and values are copied as it grows"
VLLM_NAME = "vLLM"
Terms = tuple[Term, ...]
GATHERED = "trl/models/utils.py, unwrap_model_for_generation@1.9.0: ZeRO-3's weights are whole until the last answer"
VLLM = (
    "vllm/v1/worker/utils.py:217-237, gpu_worker.py:285,407-411@0.17.0: this share of the whole card, in the process"
    " that trains; trl/generation/vllm_generation.py:351-370@1.9.0"
)
SCORED = "trl/trainer/grpo_trainer.py:2557-2567, _get_per_token_logps_and_entropies@1.9.0"
WORKING = "the prompt's pass through one layer, without gradients"


def generation_terms(run: Run, model: Architecture, weights: Weights) -> tuple[Term, ...]:
    """The worst moment of evaluation by generating."""
    whole = run.gathers_to_generate
    return answering(run, model, weights, run.generated_rows, run.eval_sequence_len, run.generated_tokens, whole)


def rollout_phase(run: Run, model: Architecture, weights: Weights, fixed: Terms, loaded: Terms) -> tuple[Phase, ...]:
    """GRPO's answers, which vLLM needs awake: with ``fixed`` as they are made, and with ``loaded`` as it starts."""
    made = run.rollouts
    if made is None:
        return ()
    scored = _scoring_phase(run, model, (*fixed, *resident_vllm(run)))
    return (*_answer_phase(run, model, weights, fixed, loaded, made), *scored)


def _scoring_phase(run: Run, model: Architecture, fixed: Terms) -> tuple[Phase, ...]:
    """The pass without gradients whose logits a fused loss does not spare; without one the loss takes more."""
    if run.loss != "liger-fused" or not scores_again(run):
        return ()
    tokens = scored_tokens(run)
    text = f"{tokens:,} tokens x {model.outputs:,} vocabulary"
    logits = Term("logits of older answers", "loss", scoring_bytes(run, model, tokens), text, SCORED)
    return (Phase("generation", (*fixed, logits)),)


def _answer_phase(
    run: Run, model: Architecture, weights: Weights, fixed: Terms, loaded: Terms, made: Rollouts
) -> tuple[Phase, ...]:
    """The answers themselves."""
    if made.engine == "server":
        return ()
    if made.engine == "vllm":
        starts = Phase("generation", (*loaded, *_vllm_terms(run)))
        return (max(starts, Phase("generation", (*fixed, *_vllm_terms(run))), key=lambda phase: phase.bytes),)
    moment = answering(run, model, weights, made.rows, prompt_tokens(run, made), made.completion, whole=True)
    return (Phase("generation", (*fixed, *moment)),)


def prompt_tokens(run: Run, made: Rollouts) -> int:
    """What the answer leaves of a row to its prompt."""
    return max(1, run.sequence_len - made.completion)


def resident_vllm(run: Run) -> tuple[Term, ...]:
    """vLLM's share where it does not sleep while the model is trained."""
    return () if run.rollouts is None or run.rollouts.sleeps else _vllm_terms(run)


def _vllm_terms(run: Run) -> tuple[Term, ...]:
    """vLLM's weights and cache in the process that trains: a share of the card's memory, whatever else is on it."""
    if run.rollouts is None or run.hardware is None or run.rollouts.engine != "vllm":
        return ()
    share, card = run.rollouts.share, run.hardware.gpu.total_bytes
    return (Term(VLLM_NAME, "overhead", round(share * card), f"{share:g} x {card:,} B of the card", VLLM),)


def answering(
    run: Run, model: Architecture, weights: Weights, rows: int, prompt: int, answer: int, whole: bool
) -> tuple[Term, ...]:
    """Rows answered at once: the prompts' own pass, and the cache at its fullest."""
    asked = replace(run, micro_batch_size=rows, sequence_len=prompt)
    working = max(no_grad_peak_bytes(asked, block) for block in model.blocks)
    gathered = weights.bytes if whole and gathers(run) else 0
    return (
        *_cache_terms(run, model, rows * (prompt + answer)),
        Term("one layer's intermediates", "activations", working, f"{asked.tokens:,} tokens", WORKING),
        Term("weights gathered to generate", "weights", gathered, f"{gathered:,} B", GATHERED),
    )


def cached_layers(model: Architecture) -> list[tuple[int, int]]:
    """How many layers have keys and values of their own, and the elements of a token in each."""
    return [
        (b.count, b.attention.key_width + b.attention.value_width)
        for b in model.blocks
        if b.attention and b.attention.own_keys
    ]


def cache_bytes(run: Run, model: Architecture) -> int:
    """Bytes of keys and values of one token in all layers."""
    return run.compute_bytes * sum(count * elements for count, elements in cached_layers(model))


def _cache_terms(run: Run, model: Architecture, tokens: int) -> tuple[Term, ...]:
    """Keys and values of all tokens in all layers, and one layer's twice while a token is added."""
    width, layers = run.compute_bytes, cached_layers(model)
    each, widest = sum(count * both for count, both in layers), max((both for _, both in layers), default=0)
    text = f"{width} B x {tokens:,} tokens x ({each:,} in all layers + {widest:,})"
    return (Term("key-value cache", "activations", width * tokens * (each + widest), text, CACHE),)
