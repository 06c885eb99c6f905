"""Memory and idle CPU of a Lane: PSS of six idle Lane processes side by side, as they would share their imports.

Owns starting them and reading /proc.  Refuses to own: judging the figures.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import psutil

from bench.server import ServerCpu, database, server

LANES = 6
SETTLE = 8.0
WATCH = 60.0


def main() -> None:
    """Prints the table."""
    with server() as admin, database(admin) as url:
        lanes = [_start(url, number) for number in range(LANES)]
        try:
            time.sleep(SETTLE)
            cpu = ServerCpu(url)
            own, theirs = sum(map(_cpu, lanes)), cpu.seconds()
            time.sleep(WATCH)
            minute = 60 / WATCH
            pss = [psutil.Process(lane.pid).memory_full_info().pss / 2**20 for lane in lanes]
            print(f"\nmemory and idle CPU, {LANES} Lanes of `feeds` without a Series, after {SETTLE + WATCH:.0f} s")
            print(f"PSS of a Lane, MiB: least {min(pss):.1f}, most {max(pss):.1f}, all {sum(pss):.1f}")
            print(f"CPU seconds a minute: one Lane {(sum(map(_cpu, lanes)) - own) * minute / LANES:.3f}, ", end="")
            print(f"the database for all {LANES} {(cpu.seconds() - theirs) * minute:.3f}")
        finally:
            for lane in lanes:
                lane.send_signal(signal.SIGTERM)
            for lane in lanes:
                lane.wait(60)


def _start(url: str, number: int) -> subprocess.Popen[bytes]:
    environment = os.environ | {
        "LANES_DATABASE_URL": url,
        "LANES_CONTACT": "bench@example.org",
        "LANES_MACHINE": f"bench-{number}",
        "LANES_METRICS_PORT": str(19600 + number * 100),
        "LANES_LOG_LEVEL": "ERROR",
    }
    return subprocess.Popen([sys.executable, "-m", "lanes", "lane", "feeds"], env=environment)


def _cpu(lane: subprocess.Popen[bytes]) -> float:
    times = psutil.Process(lane.pid).cpu_times()
    return times.user + times.system
