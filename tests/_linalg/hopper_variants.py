"""Compile the kernel for Hopper GPUs as the products use it, without a GPU; print one line per variant.

Run as a process of its own, because tests without a GPU let Triton interpret kernels.
"""

from __future__ import annotations

import triton
from triton.backends.compiler import GPUTarget
from triton.experimental.gluon import language as gl
from triton.experimental.gluon._runtime import GluonASTSource

from psilearn._linalg import hopper_products as hopper
from psilearn._linalg.fused_products import GROUP, TERMS, TILE

TYPES = {"add": "*fp64", "split": "*fp16", "split rest": "*fp16"}  # of the result; else float32
VARIANTS = [  # the right factor in rows, a lower triangle on the left, only below the diagonal, what is stored
    (True, False, True, "symmetric gaussian"),
    (True, False, False, "gaussian"),
    (False, True, False, "split"),
    (False, False, False, "split rest"),
    (True, False, True, "add"),
    (True, False, False, "store"),
]


def descriptor(block: tuple[int, int]) -> str:
    """Return the type of a descriptor from which blocks are loaded."""
    layout = gl.NVMMASharedLayout.get_default_for(list(block), gl.float16)
    return f"tensordesc<fp16{list(block)},{layout!r}>"


def compile_variant(in_rows: bool, left_is_lower: bool, lower_only: bool, epilogue: str) -> str:
    """Return the PTX code of a variant."""
    kernel, result = hopper.KERNEL, TYPES.get(epilogue, "*fp32")
    left, right = descriptor((TILE, TERMS)), descriptor((TILE, TERMS) if in_rows else (TERMS, TILE))
    arguments = [left, left, right, right, result, result, "*fp32", "*fp64", *["i32"] * 5]
    constants = in_rows, left_is_lower, lower_only, epilogue, TILE, TERMS, kernel.chunk, GROUP, *kernel.constants
    names = kernel.function.arg_names
    types = [*arguments, *["constexpr"] * len(constants)]
    source = GluonASTSource(
        kernel.function,
        dict(zip(names, types, strict=True)),
        dict(zip(names[len(arguments) :], constants, strict=True)),
    )
    options = {"num_warps": kernel.options["num_warps"]}
    return triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options).asm["ptx"]


if __name__ == "__main__":
    for variant in VARIANTS:
        ptx = compile_variant(*variant)
        print(variant, ptx.count("wgmma.mma_async"), "local" if ".local" in ptx else "registers")
