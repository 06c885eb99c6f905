"""The arguments of sites, site and try: the owner's commands around Sites.

Owns the words that are typed for them.  Refuses to own: the other commands and the exit codes (`parser`).
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable
from typing import Any

from lanes.cli import arguments


def add(commands: Any, command: Callable[..., ArgumentParser]) -> None:
    """Adds them to the commands; `command` makes one of them."""
    _sites(commands, command)
    _site(commands, command)
    _try(commands, command)


def _sites(commands: Any, command: Callable[..., ArgumentParser]) -> None:
    listed = command(
        commands,
        "sites",
        "lanes.cli.sites:show",
        "show every Site, its pace and how sure it is; ask whether their landmarks are still there",
        """\
        lanes sites
        lanes sites verify
        lanes sites verify royalroad --wait 60
        lanes sites --supervisord > var/sites/own.conf""",
        json=True,
    )
    listed.add_argument(
        "--supervisord",
        nargs="?",
        const="",
        metavar="SITE",
        help="print the supervisord section and the scrape target of this Site's Lane (without SITE: of each of your own)",
    )
    verify = command(
        listed.add_subparsers(metavar="verify"),
        "verify",
        "lanes.cli.verifying:verify",
        "ask for a Check now of one Series of each Site, and tell whether its landmarks were there; fails where one is gone",
        """\
        lanes sites verify
        lanes sites verify kagane --wait 180
        lanes sites verify ao3 --example""",
        json=True,
    )
    verify.add_argument("site", nargs="?", metavar="SITE", help="this Site alone")
    verify.add_argument(
        "--wait", type=arguments.seconds, default=90.0, metavar="SECONDS", help="for the Polls (default 90)"
    )
    verify.add_argument(
        "--example",
        action="store_true",
        help="where nothing is followed: ask the Site for its example, as `lanes try` does",
    )


def _site(commands: Any, command: Callable[..., ArgumentParser]) -> None:
    site = command(
        commands,
        "site",
        "lanes.cli.skeleton:new",
        "write the skeleton of a Site of your own, outside this repository",
        "lanes site new lantern --url https://lantern.example.org/serial/12",
    )
    new = command(
        site.add_subparsers(required=True, metavar="new"),
        "new",
        "lanes.cli.skeleton:new",
        "write the skeleton of a Site of your own: it works at once, on a sample that you replace by a real answer",
        """\
        lanes site new lantern --url https://lantern.example.org/serial/12
        lanes site new lantern --url https://lantern.example.org/serial/12 --browser --into ~/lantern""",
    )
    new.add_argument(
        "name", type=arguments.site_name, metavar="NAME", help="a-z, 0-9 and -; that of a shipped Site replaces it"
    )
    new.add_argument("--url", required=True, metavar="URL", help="of one Series there, as a Reader would paste it")
    kind = new.add_mutually_exclusive_group()
    for name, does in (
        ("page", "its Chapters stand in a page (the default)"),
        ("feed", "it has a feed that needs more than the Site `feeds` does"),
        ("browser", "its page shows its Chapters only after scripts ran"),
    ):
        kind.add_argument(f"--{name}", dest="kind", action="store_const", const=name, help=does)
    new.set_defaults(kind="page")
    new.add_argument("--into", metavar="DIR", help="the directory to make (default: lanes-site-NAME)")


def _try(commands: Any, command: Callable[..., ArgumentParser]) -> None:
    tried = command(
        commands,
        "try",
        "lanes.cli.trying:run",
        "show what a Site's reader sees in a URL or a file; nothing of it is stored. A URL is asked once, in its host's turn",
        """\
        lanes try royalroad https://www.royalroad.com/fiction/12345
        lanes try feeds saved.xml --url https://serial.example.org/feed
        curl --silent https://serial.example.org/feed | lanes try feeds - --json""",
        json=True,
    )
    tried.add_argument("site", metavar="SITE")
    tried.add_argument("what", metavar="URL|FILE", help="- reads standard input; a file needs no database")
    tried.add_argument(
        "--url",
        metavar="URL",
        help="of a file: where it came from; its relative links start there, and by it feeds are read as their Site's",
    )
    tried.add_argument(
        "--wait",
        type=arguments.seconds,
        default=30.0,
        metavar="SECONDS",
        help="for the host's turn (default 30); a gate that stays closed is told, with exit code 4",
    )
    tried.add_argument(
        "-n", dest="most", type=arguments.count, default=25, metavar="N", help="at most this many Chapters (default 25)"
    )
