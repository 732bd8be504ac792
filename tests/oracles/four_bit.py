# pyright: basic, reportMissingImports=false
"""What bitsandbytes' 4-bit linears do with tensors, on a machine without its kernels."""

from typing import Any

import torch


class Product(torch.autograd.Function):
    """A product with a weight that is unpacked for it and again for its gradient, and kept by neither.

    bitsandbytes/autograd/_functions.py, MatMul4Bit@0.49.1.
    """

    @staticmethod
    def forward(context: Any, inputs: Any, weight: Any, bias: Any) -> Any:
        """The product."""
        context.weight = weight
        return torch.nn.functional.linear(inputs, weight.to(inputs.dtype), bias)

    @staticmethod
    def backward(context: Any, gradient: Any) -> Any:
        """The gradient of the input."""
        return torch.matmul(gradient, context.weight.to(gradient.dtype)), None, None


class Linear4bit(torch.nn.Module):
    """Computes in half precision and returns the dtype that it was given.

    bitsandbytes/nn/modules.py:550-557, Linear4bit.forward@0.49.1.
    """

    def __init__(self, linear: torch.nn.Linear) -> None:
        super().__init__()
        self.weight, self.bias = linear.weight, linear.bias
        self.in_features, self.out_features = linear.in_features, linear.out_features

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """The product, in the dtype of the input."""
        bias = None if self.bias is None else self.bias.to(torch.bfloat16)
        return Product.apply(inputs.to(torch.bfloat16), self.weight, bias).to(inputs.dtype)


def quantized(model: torch.nn.Module) -> None:
    """Puts 4-bit linears in the place of all but those of adapters, and of the head."""
    ends = {id(model.get_output_embeddings())}  # pyright: ignore[reportCallIssue]
    for path, module in list(model.named_modules()):
        if isinstance(module, torch.nn.Linear) and "lora_" not in path and id(module) not in ends:
            parent, _, name = path.rpartition(".")
            setattr(model.get_submodule(parent), name, Linear4bit(module))
