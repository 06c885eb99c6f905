"""Rows for the benches, made in bulk by SQL: following is not what they measure."""

from __future__ import annotations

import psycopg


def follow_all(url: str, hosts: int, feeds: int, port: int) -> None:
    """Follows every feed of the small internet's bench world: hosts from 127.1.1.1 on, paths /0, /1, ..."""
    with psycopg.connect(url) as connection:
        connection.execute(
            """
            INSERT INTO lanes.hosts (site, name, ready_at)
            SELECT 'feeds', host('127.1.1.1'::inet + n), lanes.now() FROM generate_series(0, %(hosts)s - 1) n
            """,
            {"hosts": hosts},
        )
        connection.execute(
            """
            INSERT INTO lanes.robots (origin, host_id, asked_at, again_at, status, text, read_at)
            SELECT 'http://' || name || ':' || %(port)s, id, lanes.now(), lanes.now() + '1 year', 404, '', lanes.now() FROM lanes.hosts
            """,
            {"port": str(port)},
        )
        _follow(connection, feeds, f"'http://' || h.name || ':{port}/' || n")


def follow_shape(url: str, series: int, hosts: int, *, addresses: int, giant: bool) -> None:
    """Series over hosts in the shapes of DESIGN 12: `addresses` 0 gives each host its own, -n lets the first n hosts share
    one; `giant` lets the first host own a fifth of all Series."""
    with psycopg.connect(url) as connection:
        connection.execute(
            """
            INSERT INTO lanes.hosts (site, name, ready_at, pace, address, bucket)
            SELECT 'feeds', 'h' || n || '.example', lanes.now() - random() * interval '1 hour', '0', a, lanes.bucket(a)
            FROM generate_series(1, %(hosts)s) n,
                 LATERAL (SELECT '10.0.0.0'::inet + CASE WHEN n <= -%(addresses)s THEN 0 ELSE n END AS a) x
            """,
            {"hosts": hosts, "addresses": addresses},
        )
        ordinary = series * 4 // 5 if giant else series
        _follow(connection, ordinary // hosts, "'https://' || h.name || '/' || n")
        if giant:
            connection.execute(
                """
                INSERT INTO lanes.series (key, site, host_id, queue_host_id, url, bookmarks, rest, next_check_at, latest_checked_at)
                SELECT 'giant-' || n, 'feeds', h.id, h.id, 'https://' || h.name || '/g' || n, 1, '1 hour',
                       lanes.now() - random() * interval '1 hour', lanes.now() - interval '3 hours'
                FROM generate_series(1, %(giant)s) n, (SELECT * FROM lanes.hosts ORDER BY id LIMIT 1) h
                """,
                {"giant": series // 5},
            )


def _follow(connection: psycopg.Connection, feeds: int, place: str) -> None:
    connection.execute(
        f"""
        INSERT INTO lanes.series (key, site, host_id, queue_host_id, url, bookmarks, rest, next_check_at, latest_checked_at)
        SELECT 's' || h.id || '-' || n, 'feeds', h.id, h.id, {place}, 1, '2 minutes',
               lanes.now() - random() * interval '1 hour', lanes.now() - interval '3 hours'
        FROM lanes.hosts h, generate_series(0, %(feeds)s - 1) n
        """,
        {"feeds": feeds},
    )
