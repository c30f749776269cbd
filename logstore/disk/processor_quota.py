"""The processors that its cgroups give this process, as `docker run --cpus=2` does; the JVM counts them so too."""

from __future__ import annotations

from functools import cache

_MOUNT, _CGROUPS = "/sys/fs/cgroup", "/proc/self/cgroup"


@cache
def processor_quota() -> int | None:
    """Return the least quota of the process's cgroup and those above it, rounded up; None without one."""
    quotas = []
    for line in _text(_CGROUPS).splitlines():
        number, controllers, path = line.split(":", 2)
        while number == "0" or "cpu" in controllers.split(","):
            if (quota := _version_2(path) if number == "0" else _version_1(path)) is not None:
                quotas.append(quota)
            if path in ("", "/"):
                break
            path = path.rpartition("/")[0]
    return min(quotas, default=None)


def _version_2(path: str) -> int | None:
    return _processors(_text(f"{_MOUNT}{path}/cpu.max").split())


def _version_1(path: str) -> int | None:
    names = ("cpu.cfs_quota_us", "cpu.cfs_period_us")
    return _processors([_text(f"{_MOUNT}/cpu{path}/{name}").strip() for name in names])


def _processors(quota_and_period: list[str]) -> int | None:
    if len(quota_and_period) != 2 or not all(map(str.isdecimal, quota_and_period)):  # "max", -1, or no such file
        return None
    quota, period = map(int, quota_and_period)
    return -(-quota // period) if period else None


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
