"""What cgroups give a process, in the files of containers and of systemd."""

from __future__ import annotations

from pathlib import Path

import pytest

from logstore.disk import processor_quota as quotas
from logstore.view.parallel_scan import processor_count


@pytest.mark.parametrize(
    ("cgroups", "files", "expected"),
    [
        ("0::/\n", {"cpu.max": "200000 100000\n"}, 2),  # a container
        ("0::/\n", {"cpu.max": "150000 100000\n"}, 2),
        ("0::/\n", {"cpu.max": "50000 100000\n"}, 1),
        ("0::/\n", {"cpu.max": "max 100000\n"}, None),
        ("0::/\n", {"cpu.max": ""}, None),  # of some kernels
        ("0::/a.slice/b.scope\n", {"a.slice/b.scope/cpu.max": "max 100000", "a.slice/cpu.max": "300000 100000"}, 3),
        ("0::/a/b\n", {"a/b/cpu.max": "400000 100000", "a/cpu.max": "100000 100000"}, 1),
        ("2:cpuacct,cpu:/docker/x\n", {"cpu/cpu.cfs_quota_us": "200000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 2),
        ("2:cpu:/\n", {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, None),
        ("2:cpuset:/\n1:memory:/x\n", {"cpu/cpu.cfs_quota_us": "1", "cpu/cpu.cfs_period_us": "1"}, None),
        ("", {}, None),  # no Linux
    ],
)
def test_the_quota_is_the_least_of_the_cgroups_above(
    cgroups: str, files: dict[str, str], expected: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "cgroups").write_text(cgroups)
    monkeypatch.setattr(quotas, "_MOUNT", str(tmp_path))
    monkeypatch.setattr(quotas, "_CGROUPS", str(tmp_path / "cgroups"))
    quotas.processor_quota.cache_clear()
    try:
        assert quotas.processor_quota() == expected
        assert expected != 1 or processor_count() == 1
    finally:
        quotas.processor_quota.cache_clear()
