# pyright: basic, reportMissingImports=false
"""``python -m tests.oracles.inductor``: the code that inductor writes for a GPU, where there is none.

Functions are traced on the CPU; then tensors with dimensions are said to lie on an H100, and code is written but not
run. A process of its own, since all of torch is then of another mind.
"""

import json
import math
import re
import sys
from types import SimpleNamespace
from typing import Any

H100 = SimpleNamespace(
    name="NVIDIA H100",
    major=9,
    minor=0,
    multi_processor_count=132,
    total_memory=80 << 30,
    regs_per_multiprocessor=65536,
    max_threads_per_multi_processor=2048,
    max_threads_per_block=1024,
    shared_memory_per_block=48 << 10,
    shared_memory_per_block_optin=227 << 10,
    warp_size=32,
    L2_cache_size=50 << 20,
)


class WrittenError(Exception):
    """Carries the code out of the compiler."""


def pretend() -> None:
    """Makes torch believe in a GPU and in Triton."""
    import torch
    import torch._dynamo.device_interface as interface
    import torch._inductor.codegen.cuda_combined_scheduling
    import torch._inductor.codegen.triton
    import torch._inductor.compile_fx as compiler
    import torch._inductor.scheduler as scheduler
    import torch.utils._triton as triton
    from torch._inductor.graph import GraphLowering
    from torch._subclasses.fake_tensor import FakeTensor

    from .no_triton import Finder

    card: Any = torch.cuda
    card._get_device_properties = card.get_device_properties = lambda *_: H100
    card.get_device_capability = lambda *_: (9, 0)
    card.current_device = lambda: 0
    cuda: Any = interface.CudaInterface
    for name, answer in {"get_device_properties": H100, "is_available": True, "current_device": 0}.items():
        setattr(cuda, name, staticmethod(lambda *_, answer=answer: answer))
    cuda.device_count = staticmethod(lambda: 1)
    cuda.get_compute_capability = staticmethod(lambda *_: 90)
    cuda.is_triton_capable = staticmethod(lambda *_: True)
    cuda.raise_if_triton_unavailable = staticmethod(lambda *_: None)
    cuda.Worker.get_device_properties = staticmethod(lambda *_: H100)
    compiler._check_triton_bf16_support = lambda _graph: None
    for module in (scheduler, triton):
        module.has_triton = lambda *_: True  # type: ignore[assignment]
    triton.has_triton_package = lambda: True  # type: ignore[assignment]
    triton.triton_hash_with_backend = lambda: ""  # type: ignore[assignment]
    sys.meta_path.insert(0, Finder())

    def moved(value: Any) -> Any:
        if isinstance(value, FakeTensor) and value.ndim:
            value.fake_device = torch.device("cuda", 0)
        return value

    prepare, write = GraphLowering.__init__, GraphLowering.codegen

    def prepared(self: Any, module: Any, example_inputs: Any = None, *args: Any, **options: Any) -> None:
        for node in module.graph.nodes:
            torch.utils._pytree.tree_map(moved, node.meta.get("val"))
        torch.utils._pytree.tree_map(moved, example_inputs)
        prepare(self, module, example_inputs, *args, **options)

    def written(self: Any) -> None:
        raise WrittenError(write(self)[0].value)

    GraphLowering.__init__, GraphLowering.codegen = prepared, written  # type: ignore[method-assign, assignment]


def code_of(function: Any, arguments: list[Any]) -> str:
    """What inductor writes for a function of fake tensors."""
    from torch._inductor.compile_fx import compile_fx
    from torch.fx.experimental.proxy_tensor import make_fx

    try:
        compile_fx(make_fx(function)(*arguments), arguments)
    except Exception as error:
        found: Any = error
        while found is not None and not isinstance(found, WrittenError):
            found = getattr(found, "inner_exception", None) or found.__cause__
        if found is None:
            raise
        return str(found)
    raise AssertionError("it was compiled")


WIDTHS = {"float32": 4, "int64": 8, "int32": 4, "bfloat16": 2, "uint8": 1}
MADE = re.compile(r"^\s+(buf\d+) = empty_strided_cuda\(\((.*?)\), \(.*?\), torch\.(\w+)\)", re.MULTILINE)


def allocations(code: str) -> list[tuple[str, int]]:
    """What the code makes, with its bytes, and what it lets go of, with 0."""
    found: list[tuple[str, int]] = []
    made: set[str] = set()
    for line in code[code.index("def call") : code.index("def get_args")].splitlines():
        match = MADE.match(line)
        if match:
            name, shape, kind = match.groups()
            made.add(name)
            found.append((name, WIDTHS[kind] * math.prod(int(one) for one in shape.split(",") if one.strip())))
        elif line.strip().removeprefix("del ") in made:
            found.append((line.strip().removeprefix("del "), 0))
    return found


def low_bit_step(optimizer: str, shape: tuple[int, ...], width: str) -> list[tuple[str, int]]:
    """torchao's step of one weight, with blocks of 256."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torchao.optim import subclass_4bit, subclass_8bit, subclass_fp8
    from torchao.optim.adam import single_param_adam

    for module in (subclass_4bit, subclass_8bit):
        module.get_qmap_signed()
        module.get_qmap_unsigned()
    pretend()
    count, kind = math.prod(shape), getattr(torch, width)
    with FakeTensorMode():
        scales = [torch.empty(count // 256) for _ in range(2)]
        weight, gradient = (torch.empty(shape, dtype=kind) for _ in range(2))
        numbers = [torch.tensor(0.0), torch.tensor(0.0)]

        def step(weight: Any, gradient: Any, count_: Any, rate: Any, *parts: Any) -> tuple[()]:
            states = [state(*parts[index::2], signed) for index, signed in ((0, True), (1, False))]
            single_param_adam(weight, gradient, count_, *states, None, rate, 0.9, 0.999, 0.01, 1e-8, True, False)
            return ()

        match optimizer:
            case "adamw_torch_8bit":
                codes, values = [torch.empty(shape, dtype=torch.uint8) for _ in range(2)], 256

                def state(*parts: Any) -> Any:
                    return subclass_8bit.OptimState8bit(*parts, dtype=kind)
            case "adamw_torch_4bit":
                codes, values = [torch.empty(count // 2, dtype=torch.uint8) for _ in range(2)], 16

                def state(*parts: Any) -> Any:
                    return subclass_4bit.OptimState4bit(*parts, torch.Size(shape), dtype=kind)
            case _:
                codes, values = [torch.empty(shape, dtype=torch.float8_e4m3fn) for _ in range(2)], 0

                def state(*parts: Any) -> Any:
                    return subclass_fp8.OptimStateFp8(*parts[:2], dtype=kind)

        tables = [torch.empty(values) for _ in range(2)] if values else []
        return allocations(code_of(step, [weight, gradient, *numbers, *codes, *scales, *tables]))


if __name__ == "__main__":
    name, width, *sizes = sys.argv[1:]
    print(json.dumps(low_bit_step(name, tuple(map(int, sizes)), width)))
