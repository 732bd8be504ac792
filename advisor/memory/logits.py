"""Bytes per logit of the models' own losses, by version."""

from advisor.record import record


@record(eq=False)
class Logits:
    """Bytes per logit: kept for backward, and at the peaks of forward and backward."""

    saved: int
    forward: int
    backward: int


# bf16 logits 2, fp32 copy 4, log-softmax 4; backward: log-softmax 4, its gradient 4, the logits' fp32
# gradient 4.
PADDED_LABELS = Logits(4, 10, 12)
# Labels were shifted by copying the logits, in the loss function while the model still held them in bf16.
COPIED_LOGITS = Logits(4, 14, 12)
# The model itself turned its logits to fp32, and let go of the bf16 ones.
FP32_LOGITS = Logits(4, 12, 12)
PLAIN: tuple[tuple[str, Logits], ...] = (
    ("4.49.0", PADDED_LABELS),
    ("4.46.0", COPIED_LOGITS),
    ("0", FP32_LOGITS),
)
"""From which version of transformers on: loss/loss_utils.py@4.46.0 and @4.49.0,
models/llama/modeling_llama.py@4.45.2."""

OWN_HALF = Logits(2, 6, 6)
OWN_FP32 = Logits(4, 12, 12)
"""Models that computed their loss in the precision of their logits (``Family.common_loss_since``): the logits, their
shifted copy, the log-softmax; in backward the log-softmax and two gradients. Autocast casts the copy to fp32."""
