"""What autograd keeps of a decoder layer, what checkpointing keeps instead, and what is live for a moment.

Formulas follow the structure of a layer, operation by operation; a traced transformers 5.16.1 agrees to the
byte.
"""

from advisor.memory.activations.backward_peak import (
    backward_peak_bytes,
    dequantized_peak_bytes,
    forward_peak_bytes,
    last_weight_bytes,
    stack_gradient_bytes,
)
from advisor.memory.activations.evaluation import no_grad_peak_bytes
from advisor.memory.activations.experts import checkpoints
from advisor.memory.activations.from_trace import facts_of, traced_source
from advisor.memory.activations.layer import (
    first_norm_bytes,
    lasting_bytes,
    own_input_bytes,
    saved_bytes,
    saved_formula,
)
from advisor.memory.activations.non_layer import (
    cached_bytes,
    checkpoint_bytes,
    head_saved_bytes,
)

__all__ = [
    "backward_peak_bytes",
    "cached_bytes",
    "checkpoint_bytes",
    "checkpoints",
    "dequantized_peak_bytes",
    "facts_of",
    "first_norm_bytes",
    "forward_peak_bytes",
    "head_saved_bytes",
    "last_weight_bytes",
    "lasting_bytes",
    "no_grad_peak_bytes",
    "own_input_bytes",
    "saved_bytes",
    "saved_formula",
    "stack_gradient_bytes",
    "traced_source",
]
