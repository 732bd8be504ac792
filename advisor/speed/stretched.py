"""The constants of the step time, a group of them stretched or shrunk: would a choice be another with them?"""

from collections.abc import Mapping
from functools import cache

from advisor.speed.constants import SHIPPED, Constants

STRETCHED: Mapping[str, tuple[str, ...]] = {
    "links": ("nvlink_share", "pcie_share", "slow_pcie_bytes_per_second", "network_share"),
    "element-wise": ("bandwidth_share",),
    "compute": ("gemm_share", "attention_share"),
    "hooks and launches": ("launch_seconds", "zero3_layer_seconds", "fsdp_layer_seconds"),
    "host": (
        "host_copy_share",
        "host_bytes_per_second",
        "plain_cpu_adam_elements_per_second",
    ),
}
FACTORS = (0.7, 1.4)


@cache
def sets_of_constants() -> Mapping[str, Constants]:
    """The shipped ones, and each group of them times each factor: ``links x 1.4``."""
    found = {"shipped": SHIPPED}
    for group, names in STRETCHED.items():
        for factor in FACTORS:
            values = {key: one.value * factor for key, one in SHIPPED.named().items() if key.partition(" ")[0] in names}
            found[f"{group} x {factor}"] = SHIPPED.having(values)
    return found
