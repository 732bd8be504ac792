# pyright: basic, reportMissingImports=false
"""What the kernels of mamba-ssm allocate and keep: Mamba-2's fused mixer, its chunked scan, and Mamba's selective scan.

Every name and moment follows mamba_ssm/ops/triton/ssd_combined.py and ops/selective_scan_interface.py@2.3.2.
"""

from typing import Any

import torch

from advisor.memory.activations.state_spaces import MULTIPROCESSORS, SCANNED

FP32 = torch.float32


class Sizes:
    """Widths of a scan over ``rows`` of ``length``, and what is made of them."""

    def __init__(self, rows: int, length: int, heads: int, head: int, groups: int, state: int, chunk: int) -> None:
        self.tokens = (rows, length)
        self.heads, self.head, self.groups, self.state, self.chunk = heads, head, groups, state, chunk
        self.chunks = -(-length // chunk)
        shares = max(min(-(-rows * self.chunks * heads // MULTIPROCESSORS), heads // groups), 1)
        self.splits = -(-(heads // groups) // shares)

    def steps(self) -> Any:
        """One fp32 number a head and token."""
        return torch.empty(self.tokens[0], self.heads, self.chunks, self.chunk, dtype=FP32)

    def states(self, dtype: Any = FP32) -> Any:
        """The state at the start of each chunk."""
        return torch.empty(self.tokens[0], self.chunks, self.heads, self.head * self.state, dtype=dtype)

    def scores(self, splits: int = 1) -> Any:
        """Products of all pairs of one chunk."""
        return torch.empty(self.tokens[0], self.chunks, splits, self.groups, self.chunk, self.chunk, dtype=FP32)

    def output(self, dtype: Any) -> Any:
        """As wide as what is scanned."""
        return torch.empty(*self.tokens, self.heads * self.head, dtype=dtype)

    def shared(self) -> Any:
        """Gradients of B or C: a sum for each share of heads, and their sum."""
        parts = torch.empty(*self.tokens, self.splits, self.groups * self.state, dtype=FP32)
        return parts.sum(2)


def scanned(sizes: Sizes, dtype: Any) -> Any:
    """The forward of a scan: ``_mamba_chunk_scan_combined_fwd``."""
    kept = [sizes.steps(), sizes.steps()]
    states = sizes.states()
    states = sizes.states(dtype)
    scores = sizes.scores()
    output = sizes.output(dtype)
    del kept, states, scores
    return output


def _scanned_backward(sizes: Sizes, dtype: Any) -> None:
    """Its backward, which computes states and scores again: ``_mamba_chunk_scan_combined_bwd``."""
    kept = [sizes.steps(), sizes.steps(), sizes.scores()]
    states = sizes.states()
    states = sizes.states()
    before = sizes.states()
    before, states = sizes.states(dtype), sizes.states(dtype)
    kept += [sizes.steps(), sizes.shared(), sizes.steps(), sizes.shared(), sizes.steps()]
    kept.append(sizes.scores(sizes.splits).sum(2))
    blocks = torch.empty(sizes.tokens[0], sizes.heads, sizes.chunks, -(-sizes.chunk // 32), sizes.chunk, dtype=FP32)
    kept.append(blocks.sum(3))
    del kept, states, before, blocks


class _SplitScan(torch.autograd.Function):
    """Convolution, scan, gated norm and last projection in one: ``MambaSplitConv1dScanCombinedFn``.

    Kept: what the first projection gave, the scan's output, and one root a group of the norm.
    """

    @staticmethod
    def forward(context: Any, sizes: Sizes, projected: Any, *weights: Any) -> Any:
        """The output of the last projection.

        ``weights``: the convolution's two, three numbers a head, the norm's, and the last projection's two.
        """
        convolution, *_, norm, out, _ = weights
        convolved = projected.new_empty(*sizes.tokens, convolution.shape[0])
        output = scanned(sizes, projected.dtype)
        gated = torch.empty_like(output)
        roots = torch.empty(*sizes.tokens, sizes.groups, dtype=FP32) if norm is not None else None
        if torch.is_autocast_enabled("cpu"):
            gated, out = gated.to(torch.bfloat16), out.to(torch.bfloat16)
        context.sizes = sizes
        context.save_for_backward(projected, output, roots, *weights[:-2], out, weights[-1])
        del convolved
        return torch.nn.functional.linear(gated, out)

    @staticmethod
    def backward(context: Any, gradient: Any) -> Any:
        """Gradients of the first projection and of the weights; the last projection's input is computed again."""
        projected, output, _roots, *weights = context.saved_tensors
        convolution, *_, norm, out, bias = weights
        sizes: Sizes = context.sizes
        again = torch.empty_like(output)
        convolved = projected.new_empty(*sizes.tokens, convolution.shape[0])
        given, of_convolved = torch.empty_like(projected), torch.empty_like(convolved)
        of_gated = torch.matmul(gradient, out)
        of_output = [torch.empty_like(output)]  # by the norm's backward, or with the output again by that of the gate
        of_output += [] if norm is not None else [torch.empty_like(output)]
        _scanned_backward(sizes, output.dtype)
        of_out = torch.empty_like(out)
        update = torch.empty_like(of_convolved)
        of_weights = [None if one is None else torch.empty_like(one) for one in weights[:-2]]
        of_bias = None if bias is None else torch.empty_like(bias)
        del again, convolved, of_convolved, of_gated, of_output, update
        return None, given, *of_weights, of_out, of_bias


def split_scan(
    zxbcdt: Any,
    conv1d_weight: Any,
    conv1d_bias: Any,
    dt_bias: Any,
    A: Any,  # noqa: N803
    D: Any,  # noqa: N803
    chunk_size: int,
    rmsnorm_weight: Any = None,
    outproj_weight: Any = None,
    outproj_bias: Any = None,
    headdim: int = 0,
    ngroups: int = 1,
    **_options: Any,
) -> Any:
    """In place of ``mamba_split_conv1d_scan_combined``."""
    state = (conv1d_weight.shape[0] - len(D) * headdim) // ngroups // 2
    rows, length, _ = zxbcdt.shape
    sizes = Sizes(rows, length, len(D), headdim, ngroups, state, chunk_size)
    small = conv1d_bias, dt_bias, A, D
    return _SplitScan.apply(sizes, zxbcdt, conv1d_weight, *small, rmsnorm_weight, outproj_weight, outproj_bias)


class _ChunkScan(torch.autograd.Function):
    """The scan alone: ``MambaChunkScanCombinedFn``. Kept: its inputs and output, steps and their sums."""

    @staticmethod
    def forward(context: Any, hidden: Any, _steps: Any, b: Any, c: Any, sizes: Sizes) -> Any:
        """The output, as wide as the input."""
        output = scanned(sizes, hidden.dtype).view(hidden.shape)
        context.sizes = sizes
        context.save_for_backward(output, hidden, sizes.steps(), sizes.steps(), b, c)
        return output

    @staticmethod
    def backward(context: Any, _gradient: Any) -> Any:
        """Gradients of the inputs."""
        output, hidden, steps, _, b, c = context.saved_tensors
        sizes: Sizes = context.sizes
        of_steps = hidden.new_empty(*sizes.tokens, sizes.heads)
        given = torch.empty_like(b), torch.empty_like(c), torch.empty_like(hidden)
        copied = steps.clone()
        _scanned_backward(sizes, output.dtype)
        del copied
        return given[2], of_steps, given[0], given[1], None


def chunk_scan(hidden_states: Any, dt: Any, A: Any, B: Any, C: Any, chunk_size: int, **_options: Any) -> Any:  # noqa: ARG001, N803
    """In place of ``mamba_chunk_scan_combined``."""
    rows, length, heads, head = hidden_states.shape
    sizes = Sizes(rows, length, heads, head, B.shape[2], B.shape[3], chunk_size)
    return _ChunkScan.apply(hidden_states, dt, B, C, sizes)


class _SelectiveScan(torch.autograd.Function):
    """Mamba's scan with its gate: ``SelectiveScanFn``.

    Kept: its inputs, made contiguous along the row, its output before the gate, and a state for each 2,048 tokens.
    """

    @staticmethod
    def forward(context: Any, hidden: Any, steps: Any, a: Any, b: Any, c: Any, gate: Any) -> Any:
        """The gated output."""
        hidden, steps, b, c, gate = (one.contiguous() for one in (hidden, steps, b, c, gate))
        rows, width, length = hidden.shape
        output, gated = torch.empty_like(steps), torch.empty_like(gate)
        states = torch.empty(rows, width, -(-length // SCANNED), 2 * a.shape[-1], dtype=FP32)
        context.save_for_backward(hidden, steps, a, b, c, gate, states, output)
        return gated

    @staticmethod
    def backward(context: Any, gradient: Any) -> Any:
        """Gradients of the inputs; those of B and C in fp32."""
        gradient = gradient.contiguous()
        hidden, steps, a, b, c, gate, *_ = context.saved_tensors
        of_gate, of_hidden, of_steps = (torch.empty_like(one) for one in (gate, hidden, steps))
        of_a, of_b, of_c = (torch.zeros_like(one, dtype=FP32) for one in (a, b, c))
        return of_hidden, of_steps, of_a, of_b, of_c, of_gate


def selective_scan(hidden_states: Any, dt: Any, A: Any, B: Any, C: Any, z: Any = None, **_options: Any) -> Any:  # noqa: N803
    """In place of ``selective_scan_fn``."""
    return _SelectiveScan.apply(hidden_states, dt, A, B, C, z)
