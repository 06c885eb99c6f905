-- What the owner asks.  Reads only; whatever explains uses lanes.due, lanes.due_at and lanes.gate, as the claim does.
-- Instants that are no instants ('-infinity': never yet) come back as null.

-- name: now()$
-- The one clock.
SELECT lanes.now();

-- name: standings(key, site, words, failing, sites, rests, polling)
-- How Series stand: all, or those of a key, of a Site, with a text in key, title or URL, or failing.
-- lanes.now() is taken once, here and below, for it is a statement of its own.
WITH clock AS MATERIALIZED (SELECT lanes.now() AS now),
browsers AS MATERIALIZED (
    SELECT l.site, lanes.browser_stop(l, r.rest, t.now) AS stop
    FROM lanes.lanes l CROSS JOIN clock t LEFT JOIN unnest(:sites::text[], :rests::interval[]) AS r (site, rest) ON r.site = l.site
    WHERE l.browser)
SELECT s.id, s.key, s.site, s.title, s.url, s.home, h.name AS host, t.now, s.tier, s.url <> '' AS has_url, s.bookmarks, s.paused_at,
       s.retired_at, s.retired_reason, s.lifecycle, s.lease_until, s.lease_machine, s.retry_at, s.retry_reason,
       s.failures, s.failure, s.failing_since, coalesce(s.not_before > t.now, false) AS waits, s.good_at, s.added_at,
       u.us_since, CASE lanes.gap_of(l) WHEN l.owner_gap THEN 'the owner''s word' END AS gap_bound,
       -- The bound that lanes.pace_of has to obey; its own pace is none.
       CASE lanes.pace_of(h) WHEN h.owner_pace THEN 'the owner''s word' WHEN h.crawl_delay THEN 'its crawl delay' END AS interval_bound,
       i.kind AS spared, s.refused_since, s.distrusted_at, s.distrusted_reason, s.moving_to, s.moving_since,
       nullif(s.old_url, s.url) AS old_url, r.site IS NOT NULL AS has_site,
       nullif(s.latest_checked_at, '-infinity') AS checked_at, lanes.rest_of(s, r.rest) AS rest,
       lanes.due(s, r.rest, t.now) AS due, nullif(d.at, '-infinity') AS due_at,
       s.sighted_at IS NOT NULL AND lanes.later(s.sighted_at, lanes.rest_of(s, r.rest)) = d.at AS sighted,
       (g.stop).reason AS gate_reason, nullif((g.stop).until, 'infinity') AS gate_until,
       (SELECT count(*) FROM lanes.chapters c WHERE c.series_id = s.id) AS chapters,
       (SELECT max(c.sort_at) FROM lanes.chapters c WHERE c.series_id = s.id) AS newest_at
FROM lanes.series s
JOIN lanes.hosts h ON h.id = s.queue_host_id
JOIN lanes.lanes l ON l.site = s.site
LEFT JOIN unnest(:sites::text[], :rests::interval[]) AS r (site, rest) ON r.site = s.site
LEFT JOIN lanes.addresses a ON a.address = lanes.bucket(coalesce(s.retry_address, h.address))
LEFT JOIN lanes.incidents i ON i.id = s.spared_by AND i.ended_at IS NULL
CROSS JOIN (
    -- The line of every machine that polled lately is down.
    SELECT CASE WHEN bool_and(m.us_since IS NOT NULL) THEN min(m.us_since) END AS us_since
    FROM (SELECT DISTINCT machine FROM lanes.polls WHERE claimed_at > lanes.now() - interval '5 minutes') p
    LEFT JOIN lanes.machines m USING (machine)) u
CROSS JOIN clock t
CROSS JOIN LATERAL (SELECT lanes.due_at(s, r.rest) AS at) d
LEFT JOIN browsers b ON b.site = s.site
CROSS JOIN LATERAL (SELECT lanes.gate(s, h, a.next_at, l, b.stop, :polling AND NOT l.switched_off, t.now) AS stop) g
WHERE (:key::text IS NULL OR s.key = :key)
  AND (:site::text IS NULL OR s.site = :site)
  AND (:words::text IS NULL OR strpos(lower(concat_ws(' ', s.key, s.title, s.url)), lower(:words)) > 0)
  AND (NOT :failing OR s.failures > 0)
ORDER BY s.key;

-- name: chapters(series_id, most)
-- The newest Chapters, of one Series or of all.
SELECT s.key, s.title AS series, c.title, c.url, c.published_at, c.approximate, c.found_at, c.announced, c.volume, c.number, c.label
FROM lanes.chapters c JOIN lanes.series s ON s.id = c.series_id
WHERE :series_id::bigint IS NULL OR c.series_id = :series_id
ORDER BY c.sort_at DESC, c.id DESC LIMIT :most;

-- name: attempts(series_id, most)
-- The poll record, newest first: a row for each request.
SELECT s.key, p.site, p.host, host(p.address) AS address, p.machine, p.trigger, p.claimed_at, p.hop, p.sent_at, p.ended_at, p.outcome,
       p.status, p.wire_bytes, p.new_chapters, p.detail, p.host_wait_until, p.series_wait_until
FROM lanes.polls p LEFT JOIN lanes.series s ON s.id = p.series_id
WHERE :series_id::bigint IS NULL OR p.series_id = :series_id
ORDER BY p.claimed_at DESC, p.token, p.hop DESC LIMIT :most;

-- name: first_outcome(series_id, since)^
-- How the first Poll claimed since then ended; a put back or a page that named its feed is no end yet.
SELECT outcome, status, new_chapters, detail, failure_kind FROM lanes.polls
WHERE series_id = :series_id AND claimed_at >= :since
  AND outcome NOT IN ('put back', 'redirected', 'robots', 'abandoned', 'feed found')
ORDER BY claimed_at LIMIT 1;

-- name: lane(site)^
-- A Lane's own row, what it has in hand, and its latest claim.
SELECT l.paused_at, CASE WHEN l.refused_until > lanes.now() THEN l.refused_until END AS refused_until,
       (SELECT count(*) FROM lanes.series WHERE site = l.site AND lease_until > (SELECT lanes.now())) AS in_hand,
       (SELECT claimed_at FROM lanes.polls WHERE site = l.site ORDER BY claimed_at DESC LIMIT 1) AS polled_at,
       l.seen_at, l.switched_off, l.gap, l.owner_gap
FROM lanes.lanes l WHERE l.site = :site;

-- name: followed()
-- How many Series of each Site are followed, and the key of the one among those that are polled which was lately good.
SELECT l.site, (SELECT count(*) FROM lanes.series s WHERE s.site = l.site AND s.bookmarks > 0) AS series,
       (SELECT s.key FROM lanes.series s WHERE s.site = l.site AND lanes.is_eligible(s)
        ORDER BY s.good_at DESC NULLS LAST, s.id LIMIT 1) AS lately_good
FROM lanes.lanes l ORDER BY l.site;

-- name: hosts(site, blocked, refuses)^
-- How the hosts of a Site are: each counts once, as the first of these that it is.
SELECT count(*) AS known, count(*) FILTER (WHERE how = 'blocked') AS blocked, count(*) FILTER (WHERE how = 'dead') AS dead,
       count(*) FILTER (WHERE how = 'refusing') AS refusing, count(*) FILTER (WHERE how = 'waiting') AS waiting
FROM (
    SELECT CASE
        WHEN not_before_reason = :blocked THEN 'blocked'
        WHEN dead_since IS NOT NULL THEN 'dead'
        WHEN not_before > (SELECT lanes.now()) AND not_before_reason = :refuses THEN 'refusing'
        WHEN not_before > (SELECT lanes.now()) THEN 'waiting' END AS how
    FROM lanes.hosts WHERE site = :site) x;

-- name: lines_down()
-- The machines whose line is down, and since when.
SELECT machine, us_since FROM lanes.machines WHERE us_since IS NOT NULL ORDER BY us_since;

-- name: incidents(most, open)
-- The troubles: open ones first, then the newest.
SELECT i.id, i.whose, i.machine, i.site, h.name AS host, i.kind, i.started_at, i.ended_at, i.spared, i.evidence
FROM lanes.incidents i LEFT JOIN lanes.hosts h ON h.id = i.host_id
WHERE NOT :open OR i.ended_at IS NULL
ORDER BY i.ended_at IS NOT NULL, i.started_at DESC, i.id DESC LIMIT :most;

-- name: has_reader(name)$
-- Whether there is a Reader of this name.
SELECT EXISTS (SELECT FROM lanes.readers WHERE name = :name);

-- name: notices(reader, owed, most)
-- What is owed or was told, newest first; a Notice without a Reader is the owner's.
SELECT n.id, r.name AS reader, n.kind, s.key, s.title AS series, n.body, n.made_at, n.delivered_at
FROM lanes.notices n LEFT JOIN lanes.readers r ON r.id = n.reader_id LEFT JOIN lanes.series s ON s.id = n.series_id
WHERE (:reader::text IS NULL OR r.name = :reader) AND (NOT :owed OR n.delivered_at IS NULL)
ORDER BY n.id DESC LIMIT :most;

-- name: totals()^
-- The whole installation in numbers.
SELECT lanes.now() AS now, count(*) AS series, count(*) FILTER (WHERE bookmarks > 0) AS bookmarked,
       count(*) FILTER (WHERE bookmarks > 0 AND latest_checked_at = '-infinity') AS never_checked,
       count(*) FILTER (WHERE failures > 0) AS failing, count(*) FILTER (WHERE retired_at IS NOT NULL) AS retired,
       count(*) FILTER (WHERE paused_at IS NOT NULL) AS paused, count(*) FILTER (WHERE turn = 0 AND claimable_at IS NOT NULL) AS pending,
       count(*) FILTER (WHERE not_before > (SELECT lanes.now()) AND claimable_at IS NOT NULL) AS waiting,
       count(*) FILTER (WHERE refused_since IS NOT NULL AND retired_at IS NULL) AS refused,
       count(*) FILTER (WHERE distrusted_at IS NOT NULL) AS distrusted,
       (SELECT count(*) FROM lanes.chapters) AS chapters, pg_database_size(current_database()) AS database_bytes,
       current_setting('server_version') AS postgres
FROM lanes.series;
