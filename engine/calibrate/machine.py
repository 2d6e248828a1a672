"""What this machine is: processor, memory, load, versions of the libraries that measure."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path
from typing import Any

import numpy as np

from hitproof.spec.rates import Machine

__all__ = ["cache_bytes", "describe_machine", "memory_bytes"]

_CPU_INFO = Path("/proc/cpuinfo")
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


def describe_machine(torch: Any = None) -> Machine:
    """The machine as it is now; no name of the host or of a user is told.

    Args:
        torch: The library, where it is at hand; names the accelerator.
    """
    has_gpu = torch is not None and torch.cuda.is_available()
    return Machine(
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        cpu=_cpu(),
        cores=_cores(),
        memory_bytes=memory_bytes(),
        load=round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        python=platform.python_version(),
        numpy=np.__version__,
        torch=None if torch is None else str(torch.__version__),
        accelerator=str(torch.cuda.get_device_name(0)) if has_gpu else None,
    )


def memory_bytes() -> int | None:
    """Bytes of main memory, None where the system does not tell."""
    try:
        found = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None
    return found if found > 0 else None


def cache_bytes(folder: Path = _CACHES) -> int | None:
    """Bytes of the largest processor cache, None where the system does not tell."""
    sizes = []
    for file in folder.glob("index*/size"):
        found = re.fullmatch(r"([0-9]{1,9})([KMG])\s*", _text(file))
        if found:
            sizes.append(int(found[1]) * {"K": 2**10, "M": 2**20, "G": 2**30}[found[2]])
    return max(sizes, default=None)


def _cpu() -> str:
    found = re.search(r"^model name\s*:\s*(.+)$", _text(_CPU_INFO), re.MULTILINE)
    return (found[1].strip() if found else platform.processor() or platform.machine() or "unknown")[:200]


def _cores() -> int:
    usable = getattr(os, "sched_getaffinity", None)
    return len(usable(0)) if usable is not None else os.cpu_count() or 1


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""
