"""Own Sites as an owner installs them: a directory for the import path, with modules and the metadata of their distributions.

Owns how they are laid down.  Refuses to own: what is right about them.
"""

from __future__ import annotations

import itertools
import textwrap
from pathlib import Path

_COUNT = itertools.count()

SOUND = """
    from datetime import timedelta

    from lanes.core.chapters import Document, Item
    from lanes.sites.site import Site

    SITE = Site(
        name={name!r},
        recognise=lambda url: url if url.startswith("http://{host}") else None,
        read=lambda body, content_type, url, at: Document((Item("1", body.decode(), None),)),
        accept="text/plain",
        hosts=({host!r},),
        {more}
    )
"""
"""The source of an own Site that can be used."""


def sound(name: str, host: str, more: str = "") -> str:
    """That, with its name, its host, and further arguments."""
    return SOUND.format(name=name, host=host, more=more)


BY_BROWSER = """
    import re
    from datetime import timedelta

    from lanes.core.chapters import Document, Item, NotRecognised
    from lanes.sites.site import Rendering, Site


    def read(body, content_type, url, at):
        found = re.findall(r'<p class="chapter">(.*?)</p>', body.decode())
        items = tuple(Item(title, title, url) for title in found)
        return Document(items, "The Ferry") if items else NotRecognised("no Chapter in it")


    SITE = Site(
        name={name!r},
        recognise=lambda url: url if url.startswith("http://{host}") else None,
        read=read,
        accept="text/html",
        hosts=({host!r},),
        gap=timedelta(seconds=1),
        rendering=Rendering(landmark=".chapter"),
        example="http://{host}{rest}",
    )
"""
"""One whose pages are read through the browser: their Chapters are what scripts wrote into them."""


def by_browser(name: str, host: str, rest: str = "/title") -> str:
    """That, with its name and its host; `rest` of its example's URL."""
    return BY_BROWSER.format(name=name, host=host, rest=rest)


def install(place: Path, name: str, source: str, *, distribution: str = "my-sites", value: str = "SITE") -> None:
    """Lays down a distribution of one module whose entry point is called `name`."""
    module = f"own_{name.replace('-', '_')}_{next(_COUNT)}"
    (place / f"{module}.py").write_text(textwrap.dedent(source), encoding="utf-8")
    metadata = place / f"{distribution.replace('-', '_')}_{module}-1.5.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.5\n", encoding="utf-8")
    (metadata / "entry_points.txt").write_text(f"[lanes.sites]\n{name} = {module}:{value}\n", encoding="utf-8")
