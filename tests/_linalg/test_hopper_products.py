"""The kernel for Hopper GPUs is compiled without a GPU; on one it is compared with the other kernel."""

import os
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton", reason="Triton is needed to compile its kernels, also without a GPU")

FIRST_VERSION = (3, 6)  # with groups of warps as the kernel uses them
if tuple(int(part) for part in triton.__version__.split(".")[:2]) < FIRST_VERSION:
    pytest.skip("Triton is older than 3.6", allow_module_level=True)


def test_all_variants_compile_without_a_gpu(tmp_path):
    environment = {**os.environ, "TRITON_INTERPRET": "0", "TRITON_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-m", "tests._linalg.hopper_variants"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 6
    # three products of 64 terms by instructions of 16, for each of two groups; accumulators stay in registers
    assert all(line.endswith(" 24 registers") for line in lines)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no GPU")
def test_a_hopper_gpu_uses_the_kernel():
    from psilearn._linalg import fused_products, hopper_products, split_products

    if torch.cuda.get_device_capability()[0] != split_products.HOPPER:
        pytest.skip("the GPU has another architecture")
    assert fused_products.fastest_kernel(0).function is hopper_products.KERNEL.function
