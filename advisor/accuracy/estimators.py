"""What a user would ask instead: other tools' formulas, in bytes on each GPU."""

from collections.abc import Callable

from advisor.accuracy.judging import Judged

Estimator = Callable[[Judged], float | None]
ADVISOR = "advisor"


def ours(case: Judged) -> float:
    """The advisor's allocated peak."""
    return case.estimated


def _deepspeed_estimate(case: Judged) -> float | None:
    """estimate_zero2/3_model_states_mem_needs: stage_1_and_2.py:2890-2907, stage3.py:3455-3491@0.18.9."""
    zero, model = case.run.zero, case.run.model
    assert model is not None
    if zero is None or zero.stage < 2:
        return None
    states = 18 * model.parameters / case.run.world_size
    if zero.stage == 2:
        return 2 * model.parameters + (0 if zero.offload_optimizer != "gpu" else states)
    if zero.offload_optimizer != "gpu":
        states = 0 if zero.offload_params != "gpu" else 2 * model.parameters / case.run.world_size
    return 4 * model.largest_tensor + states


def _accelerate_estimate(case: Judged) -> float | None:
    """``accelerate estimate-memory``: training with Adam on one GPU (commands/estimate.py:224-254@1.13.0).

    Twice the fp32 weights in half precision, four times in fp32; batch, adapter and sharding do not enter.
    """
    assert case.run.model is not None
    return (16 if case.run.precision == "fp32" else 8) * case.run.model.parameters


def _sixteen_bytes(case: Judged) -> float | None:
    """16 bytes a parameter (arXiv 1910.02054, section 3.1), divided where everything is sharded."""
    assert case.run.model is not None
    sharded = case.run.fsdp is not None or case.run.zero_stage == 3
    return 16 * case.run.model.parameters / (case.run.shard_size if sharded else 1)


ESTIMATORS: dict[str, Estimator] = {
    ADVISOR: ours,
    "DeepSpeed's estimate_zero2/3": _deepspeed_estimate,
    "accelerate estimate-memory": _accelerate_estimate,
    "16 bytes a parameter": _sixteen_bytes,
}
