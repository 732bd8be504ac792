"""The answers of GRPO and GDPO: seconds in which the model generates, token by token.

A roofline without a figure behind it: each token reads the weights and the keys and values of its rows.
"""

from advisor.memory.generation import cache_bytes, prompt_tokens
from advisor.memory.weight_groups import Weights
from advisor.models import Architecture
from advisor.run import Rollouts, Run, Zero
from advisor.speed.card import Card
from advisor.speed.compute import weights_of
from advisor.speed.link import Links
from advisor.speed.step_time import TimeTerm

DECODE = "arXiv:2211.05102, 2: a decoded token waits for the memory, which is read for weights, keys and values"
PREFILL = "arXiv:2001.08361, 2.1: 2 operations a weight and token"
GATHERED = "trl/models/utils.py, unwrap_model_for_generation@1.9.0: ZeRO-3's weights are gathered for the answers"


def terms(run: Run, model: Architecture, weights: Weights, card: Card, links: Links) -> list[TimeTerm]:
    """What an optimizer step's answers take; none where a server elsewhere makes them."""
    made = run.rollouts
    if made is None or made.engine == "server":
        return []
    times = run.micro_batch_size * run.gradient_accumulation_steps / made.rows / made.iterations
    prompt = prompt_tokens(run, made)
    at_once = _rows_at_once(run, model, weights, made)
    waves = made.rows / at_once
    token = _token_seconds(run, model, card, made, at_once, prompt)
    asked = 2.0 * made.rows * prompt * _active_weights(model) / card.gemm_flops(model.hidden_size)
    found = [
        TimeTerm(
            "answers, token by token",
            "rollouts",
            times * waves * made.completion * token,
            f"{times:g} x {waves:.3g} x {made.completion:,} tokens x {token * 1e3:.4g} ms, {at_once:,} rows at once",
            DECODE,
        ),
        TimeTerm("prompts", "rollouts", times * asked, f"{times:g} x {made.rows:,} x {prompt:,} tokens", PREFILL),
    ]
    if isinstance(run.sharding, Zero) and run.sharding.stage == 3 and run.world_size > 1:
        gathered = times * links.gathered(weights.bytes, run.world_size)
        found.append(TimeTerm("weights gathered to generate", "link", gathered, f"{weights.bytes:,} B", GATHERED))
    return found


def _rows_at_once(run: Run, model: Architecture, weights: Weights, made: Rollouts) -> int:
    """Rows whose keys and values vLLM has room for next to its weights; all of them where the model itself answers."""
    if made.engine == "model" or run.hardware is None:
        return made.rows
    room = made.share * run.hardware.gpu.total_bytes - run.compute_bytes * weights.elements
    return max(1, min(made.rows, int(room / max(1, run.sequence_len * cache_bytes(run, model)))))


def _token_seconds(run: Run, model: Architecture, card: Card, made: Rollouts, rows: int, prompt: int) -> float:
    """One more token of so many rows, half of the answer behind them."""
    cache = rows * (prompt + made.completion / 2) * cache_bytes(run, model)
    read = (_read_weights(run, model, made, rows) + cache) / card.bandwidth
    computed = 2.0 * rows * _active_weights(model) / card.gemm_flops(model.hidden_size)
    constants = card.constants
    if made.engine == "vllm":
        return max(read, computed) + constants.vllm_step_seconds.value
    launched = constants.forward_launches.value * constants.launch_seconds.value
    return max(read, computed, model.layers * launched)


def _read_weights(run: Run, model: Architecture, made: Rollouts, rows: int) -> float:
    """Bytes of weights that a token of so many rows reads; quantized ones are written and read as they are used."""
    dequantized = run.quantization is not None and made.engine == "model"
    elements = sum(
        block.count * min(stored, active * rows) for block in model.blocks for stored, active in weights_of(block)
    )
    return (2.5 if dequantized else 1) * run.compute_bytes * (elements + model.hidden_size * model.outputs)


def _active_weights(model: Architecture) -> float:
    """Elements that a token is multiplied with."""
    inner = sum(block.count * active for block in model.blocks for _, active in weights_of(block))
    return inner + model.hidden_size * model.outputs
