"""`python -m tests.smallnet demo|bench|plain`: the small internet as a process of its own, until SIGTERM or SIGINT.

Owns the command line.  Refuses to own: the worlds.  Must never break: the one line on standard output, written when everything listens,
is JSON with the port; sentences for people go to standard error.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import threading
from pathlib import Path

from . import bench, demo
from .control import open_control, summary
from .feeds import write_opml
from .net import Smallnet
from .standins import write_sites
from .steps import Step, ok


def main() -> None:
    """Build the world that was asked for and serve it."""
    asked = _arguments()
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    with Smallnet(asked.port, journal=asked.record, keep_headers=asked.scenario != "bench") as net:
        if asked.scenario == "bench":
            world = bench.build(net, asked.hosts, asked.feeds, share=asked.share)
            open_control(net, world.verbs())
            _ready(asked, net, world.outlines)
            stop.wait()
        elif asked.scenario == "demo":
            town = demo.build(net)
            if asked.sites is not None:
                demo.add_stand_ins(town, net)
                write_sites(asked.sites, {site: each.origin for site, each in town.stand_ins.items()})
            open_control(net, {"refuse": lambda said: _refuse(town, said)})
            _ready(asked, net, town.outlines)
            _publish_until(stop, net, town, asked)
        else:
            open_control(net)
            _ready(asked, net, [])
            stop.wait()
        _say(asked, json.dumps(summary(net, asked.minimum)))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.smallnet", description="A little internet on 127.1.0.0/16.")
    parser.add_argument("scenario", choices=("demo", "bench", "plain"))
    parser.add_argument("--port", type=int, default=0, help="the common port (default: a free one)")
    parser.add_argument("--record", type=Path, help="write every request here, as JSON lines")
    parser.add_argument("--opml", type=Path, help="write the feeds of the scenario here")
    parser.add_argument("--sites", type=Path, help="demo: write the Sites whose stand-ins it has here, for PYTHONPATH")
    parser.add_argument("--every", type=float, default=3.0, help="demo: seconds between new Chapters")
    parser.add_argument("--hosts", type=int, default=500, help="bench: hosts, each on its own address")
    parser.add_argument("--feeds", type=int, default=10, help="bench: feeds of each host")
    parser.add_argument(
        "--share", type=float, default=0.0, help="bench: share of repeated requests that find a new item"
    )
    parser.add_argument(
        "--minimum", type=float, default=1.0, help="seconds from start to start that the summary holds hosts to"
    )
    parser.add_argument("--verbose", action="store_true", help="a sentence for every event, and the summary at the end")
    return parser.parse_args()


def _refuse(town: demo.Demo, said: dict[str, str]) -> Step:
    town.stand_ins[said["site"]].refuses = said["value"] == "yes"
    return ok("done", "text/plain")


def _ready(asked: argparse.Namespace, net: Smallnet, outlines: list[tuple[str, str]]) -> None:
    if asked.opml is not None:
        write_opml(asked.opml, outlines)
    print(json.dumps({"port": net.port, "control": net.anchor.url("/-/"), "feeds": len(outlines)}), flush=True)


def _publish_until(stop: threading.Event, net: Smallnet, town: demo.Demo, asked: argparse.Namespace) -> None:
    told = early = 0
    while not stop.wait(asked.every):
        _say(asked, town.publish())
        finished = net.record.finished[told:]
        told += len(finished)
        for visit in finished:
            _say(asked, f"{visit.host} was asked for {visit.path} and answered {visit.status}.")
        if town.asks_to_wait.early > early:
            early = town.asks_to_wait.early
            _say(asked, f"The host that asks to wait was asked too early, {early} times by now.")


def _say(asked: argparse.Namespace, sentence: str) -> None:
    if asked.verbose:
        print(sentence, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
