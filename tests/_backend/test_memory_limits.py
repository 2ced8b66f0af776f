"""The memory that a process can still allocate: control groups of both versions, resource limits, the machine."""

import subprocess
import sys

import pytest

from psilearn._backend.memory_limits import cgroup_free, host_available_bytes, machine_free, resource_limits_free

GB = 10**9
V2_MOUNT = "35 31 0:32 {top} {point} rw,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate"
V1_MOUNT = "36 31 0:33 {top} {point} rw,relatime - cgroup cgroup rw,memory"
CPU_MOUNT = "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu"


@pytest.fixture
def system(tmp_path):
    """A folder that stands for / and a function that writes files into it."""

    def write(files):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{text}\n")
        return tmp_path

    return write


def group(folder, limit, used, active=0, inactive=0, version=2):
    prefix = "" if version == 2 else "total_"
    names = ("memory.max", "memory.current") if version == 2 else ("memory.limit_in_bytes", "memory.usage_in_bytes")
    stat = f"file 999999999999\n{prefix}active_file {active}\n{prefix}inactive_file {inactive}"
    return {f"{folder}/{names[0]}": limit, f"{folder}/{names[1]}": used, f"{folder}/memory.stat": stat}


def test_the_smallest_limit_on_the_path_of_the_group_counts(system):
    root = system(
        {
            "proc/self/cgroup": "0::/batch/job/step",
            "proc/self/mountinfo": V2_MOUNT.format(top="/", point="/sys/fs/cgroup"),
            **group("sys/fs/cgroup/batch", "max", 9 * GB),
            **group("sys/fs/cgroup/batch/job", 8 * GB, 3 * GB, active=GB // 2, inactive=GB // 2),
            **group("sys/fs/cgroup/batch/job/step", 20 * GB, GB),
            **group("sys/fs/cgroup/other", GB, GB),
        }
    )
    assert sorted(cgroup_free(root)) == [6 * GB, 19 * GB]
    assert host_available_bytes(root) == 6 * GB


def test_version_1_is_found_among_other_controllers(system):
    root = system(
        {
            "proc/self/cgroup": "5:cpu,cpuacct:/somewhere/else\n4:memory:/slurm/uid_1\n1:name=systemd:/\n0::/",
            "proc/self/mountinfo": "\n".join([CPU_MOUNT, V1_MOUNT.format(top="/", point="/sys/fs/cgroup/memory")]),
            **group("sys/fs/cgroup/memory", 9223372036854771712, GB, version=1),
            **group("sys/fs/cgroup/memory/slurm", 5 * GB, 4 * GB, active=GB, version=1),
            **group("sys/fs/cgroup/memory/slurm/uid_1", 3 * GB, 2 * GB, version=1),
        }
    )
    assert sorted(cgroup_free(root))[:2] == [GB, 2 * GB]


def test_both_versions_at_once(system):
    mounts = [V1_MOUNT.format(top="/", point="/sys/fs/cgroup/memory")]
    mounts += [V2_MOUNT.format(top="/", point="/sys/fs/cgroup/unified")]
    root = system(
        {
            "proc/self/cgroup": "4:memory:/a\n0::/b",
            "proc/self/mountinfo": "\n".join(mounts),
            **group("sys/fs/cgroup/memory/a", 4 * GB, GB, version=1),
            **group("sys/fs/cgroup/unified/b", 5 * GB, GB),
        }
    )
    assert sorted(cgroup_free(root)) == [3 * GB, 4 * GB]


@pytest.mark.parametrize(
    ("path", "top"),
    [
        ("/docker/0af3", "/docker/0af3"),  # the group as seen from outside, its own folder mounted
        ("/docker/0af3", "/kubepods/other"),  # a path outside of what is mounted
        ("/../../host/group", "/"),  # a process that was moved into the namespace
        ("/", "/"),
    ],
)
def test_in_a_container_the_mount_is_the_group(path, top, system):
    root = system(
        {
            "proc/self/cgroup": f"0::{path}",
            "proc/self/mountinfo": V2_MOUNT.format(top=top, point="/sys/fs/cgroup"),
            **group("sys/fs/cgroup", 2 * GB, GB),
        }
    )
    assert cgroup_free(root) == [GB]


def test_a_group_inside_the_mounted_one_is_found_below_a_point_with_a_space(system):
    root = system(
        {
            "proc/self/cgroup": "0::/pod/inner",
            "proc/self/mountinfo": V2_MOUNT.format(top="/pod", point="/mnt/control\\040groups"),
            **group("mnt/control groups/inner", 3 * GB, GB),
        }
    )
    assert cgroup_free(root) == [2 * GB]


def test_resource_limits_count_what_is_used_already(system):
    limits = "Limit                     Soft Limit           Hard Limit           Units     \n"
    limits += "Max data size             3000000000           unlimited            bytes     \n"
    limits += "Max address space         7000000000           8000000000           bytes     "
    root = system({"proc/self/limits": limits, "proc/self/status": "VmSize:\t2000000 kB\nVmData:\t 1000000 kB"})
    assert resource_limits_free(root) == [7 * GB - 2_048_000_000, 3 * GB - 1_024_000_000]
    assert host_available_bytes(root) == 3 * GB - 1_024_000_000


def test_without_limits_the_machine_decides(system):
    unlimited = "Max address space         unlimited            unlimited            bytes     "
    root = system({"proc/self/limits": unlimited, "proc/self/status": "VmSize: 1 kB", "proc/self/cgroup": "0::/"})
    assert host_available_bytes(root) is None
    system({"proc/meminfo": "MemTotal: 4 kB\nMemAvailable:   2000 kB"})
    assert machine_free(root) == host_available_bytes(root) == 2_048_000


def test_use_above_the_limit_leaves_nothing(system):
    root = system(
        {
            "proc/self/cgroup": "0::/",
            "proc/self/mountinfo": V2_MOUNT.format(top="/", point="/sys/fs/cgroup"),
            **group("sys/fs/cgroup", GB, 2 * GB),
        }
    )
    assert cgroup_free(root) == [0]


@pytest.mark.skipif(sys.platform != "linux", reason="the files of Linux")
def test_a_real_limit_of_the_address_space():
    script = """
import resource
from psilearn._backend.memory_limits import host_available_bytes
resource.setrlimit(resource.RLIMIT_AS, (2**33, 2**33))
before = host_available_bytes()
block = bytearray(10**8)
print(before, host_available_bytes())
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    before, after = map(int, run.stdout.split())
    assert before < 2**33
    assert 0.9e8 < before - after < 1.1e8
