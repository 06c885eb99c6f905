-- The owner's and the Readers' verbs.  Each makes what it changes visible to the claim: whatever lets a Series be due, or a gate open,
-- sooner lowers its host's ready_at to now (DESIGN 4.1).  Lock order: hosts by id, then Series by id.

-- name: enrol_sites(sites, browsers)!
-- The Lanes' rows of these Sites, and which of them need the browser.
INSERT INTO lanes.lanes AS l (site, browser)
SELECT site, bool_or(browser) FROM unnest(:sites::text[], :browsers::boolean[]) AS u (site, browser) GROUP BY site ORDER BY site
ON CONFLICT (site) DO UPDATE SET browser = true WHERE EXCLUDED.browser AND NOT l.browser;

-- name: enrol_hosts(sites, hosts)!
-- The rows of these hosts; nothing is ready there yet.  In one order, so that two imports never wait for each other.
INSERT INTO lanes.hosts (site, name, ready_at)
SELECT DISTINCT ON (name) site, name, 'infinity'::timestamptz FROM unnest(:sites::text[], :hosts::text[]) AS w (site, name) ORDER BY name
ON CONFLICT DO NOTHING;

-- name: hosts_of(hosts)
-- The ids of these hosts, and whose they are.
SELECT name, id, site FROM lanes.hosts WHERE name = ANY (:hosts);

-- name: taken(sites, hosts)
-- Hosts at which Series of another Site live, and some of these: a host gives turns to one Lane alone.
SELECT h.name AS host, s.site, count(*) AS series, (array_agg(s.key ORDER BY s.id))[1] AS key
FROM (SELECT DISTINCT site, host FROM unnest(:sites::text[], :hosts::text[]) AS u (site, host)) w
JOIN lanes.hosts h ON h.name = w.host AND h.site <> w.site JOIN lanes.series s ON s.host_id = h.id AND s.site <> w.site
GROUP BY h.name, s.site ORDER BY h.name;

-- name: place_host(site, name)$
-- A host that is another Site's becomes this one's, where none of the other's Series live.
SELECT lanes.place_host(:site, :name);

-- name: urls_of(site)
-- The URLs of a Site's Series, and then those that they had.
SELECT u.url FROM lanes.series s CROSS JOIN LATERAL (VALUES (0, s.url), (1, s.old_url)) AS u (n, url)
WHERE s.site = :site AND u.url <> '' ORDER BY u.n, s.id;

-- name: respell(series_ids, urls)
-- Series that were never read take another spelling of their URL, where no other has it.
UPDATE lanes.series s SET url = w.url FROM unnest(:series_ids::bigint[], :urls::text[]) AS w (id, url)
WHERE s.id = w.id AND s.first_good_at IS NULL AND NOT EXISTS (SELECT FROM lanes.series o WHERE o.site = s.site AND md5(o.url) = md5(w.url))
RETURNING s.id, s.url;

-- name: moved_from(urls)
-- Which of these URLs a Series was followed by before it moved, and where it is now.
SELECT DISTINCT ON (old_url) old_url, url FROM lanes.series WHERE old_url = ANY (:urls) ORDER BY old_url, id;

-- name: lock_hosts(host_ids, sites, urls)!
-- Locks these hosts and those under which Series of these URLs queue.
SELECT id FROM lanes.hosts
WHERE id = ANY (:host_ids) OR id IN (
    SELECT s.queue_host_id FROM unnest(:sites::text[], :urls::text[]) AS w (site, url)
    JOIN lanes.series s ON s.site = w.site AND md5(s.url) = md5(w.url))
ORDER BY id FOR NO KEY UPDATE;

-- name: insert_series(keys, sites, host_ids, urls, titles, rests)
-- Series that are followed for the first time; those whose URL or key is taken are left out.
INSERT INTO lanes.series (key, site, host_id, queue_host_id, url, title, rest)
SELECT key, site, host_id, host_id, url, title, rest
FROM unnest(:keys::text[], :sites::text[], :host_ids::bigint[], :urls::text[], :titles::text[], :rests::interval[])
     AS w (key, site, host_id, url, title, rest)
ORDER BY key
ON CONFLICT DO NOTHING RETURNING id;

-- name: series_of(sites, urls)
-- The Series of these URLs, locked.
SELECT s.id, s.key, s.site, s.url FROM lanes.series s
WHERE (s.site, md5(s.url)) IN (SELECT site, md5(url) FROM unnest(:sites::text[], :urls::text[]) AS w (site, url))
ORDER BY s.id FOR NO KEY UPDATE;

-- name: bookmark(reader, series_ids)
-- Bookmarks that were missing; the first of a Series makes its next good Poll a first sight, and lets it be due.
WITH held AS (
    INSERT INTO lanes.bookmarks (reader_id, series_id)
    SELECT r.id, w.id FROM lanes.readers r, unnest(:series_ids::bigint[]) AS w (id) WHERE r.name = :reader
    ON CONFLICT DO NOTHING RETURNING series_id
), counted AS (
    UPDATE lanes.series s SET
        bookmarks = s.bookmarks + 1,
        news_from = CASE WHEN s.bookmarks > 0 THEN s.news_from END,
        bookmarked_at = CASE WHEN s.bookmarks > 0 THEN s.bookmarked_at ELSE lanes.now() END,
        -- What was given up long ago may live again: whoever asks for it anew need not wait for the weekly look.
        retry_at = CASE WHEN s.retired_at IS NULL OR s.retired_by_owner THEN s.retry_at ELSE lanes.now() END,
        retry_reason = CASE WHEN s.retired_at IS NULL OR s.retired_by_owner THEN s.retry_reason ELSE 'bookmarked anew' END
    FROM held WHERE s.id = held.series_id RETURNING s.id, s.host_id, s.queue_host_id
), woken AS (
    UPDATE lanes.hosts h SET ready_at = least(h.ready_at, lanes.now()), unused_since = NULL
    WHERE h.id IN (SELECT host_id FROM counted UNION SELECT queue_host_id FROM counted)
)
SELECT id FROM counted;

-- name: find(word)^
-- The Series that has this key or this URL.
SELECT id, key, site, url FROM lanes.series WHERE key = :word
UNION ALL
SELECT s.id, s.key, s.site, s.url FROM lanes.lanes l JOIN lanes.series s ON s.site = l.site AND md5(s.url) = md5(:word) LIMIT 1;

-- name: lock_hosts_of(series_id)!
-- Locks the hosts of a Series: its own and the one under which it queues.
SELECT h.id FROM lanes.hosts h
WHERE h.id IN (SELECT unnest(ARRAY[host_id, queue_host_id]) FROM lanes.series WHERE id = :series_id)
ORDER BY h.id FOR NO KEY UPDATE;

-- name: lock_series(series_id)$
-- Locks a Series, after its hosts; the host where it lives.
SELECT host_id FROM lanes.series WHERE id = :series_id FOR NO KEY UPDATE;

-- name: force_poll(series_id, anew)!
-- Check now: one stamp, later than the last one whatever the clock's resolution; anew: without validators.
UPDATE lanes.series SET force_poll_at = greatest(lanes.now(), latest_checked_at + interval '1 microsecond'),
    unconditional_at = CASE WHEN NOT :anew THEN unconditional_at END
WHERE id = :series_id;

-- name: pause(series_id)$
-- Null where it was paused already.
UPDATE lanes.series SET paused_at = lanes.now() WHERE id = :series_id AND paused_at IS NULL RETURNING id;

-- name: resume(series_id)$
-- Null where it was not paused.
UPDATE lanes.series SET paused_at = NULL WHERE id = :series_id AND paused_at IS NOT NULL RETURNING id;

-- name: wake_host(series_id)!
-- What the claim must see after a verb that made a Series due sooner.
UPDATE lanes.hosts h SET ready_at = least(h.ready_at, lanes.now()),
    pending_at = least(h.pending_at, CASE WHEN s.turn = 0 AND s.claimable_at IS NOT NULL THEN s.force_poll_at END)
FROM lanes.series s WHERE s.id = :series_id AND h.id = s.queue_host_id;

-- name: pause_lane(site)$
-- Null where it was paused already.
UPDATE lanes.lanes SET paused_at = lanes.now() WHERE site = :site AND paused_at IS NULL RETURNING site;

-- name: resume_lane(site)$
-- Null where it was not paused.  No ready_at is lowered: a paused Lane claims nothing, so its pause has moved none.
UPDATE lanes.lanes SET paused_at = NULL WHERE site = :site AND paused_at IS NOT NULL RETURNING site;

-- name: drop_bookmark(reader, series_id)$
-- Null where this Reader held none; else how many others hold one.
WITH gone AS (
    DELETE FROM lanes.bookmarks WHERE series_id = :series_id AND reader_id = (SELECT id FROM lanes.readers WHERE name = :reader)
    RETURNING series_id
)
UPDATE lanes.series s SET bookmarks = s.bookmarks - 1 FROM gone WHERE s.id = gone.series_id RETURNING s.bookmarks;

-- name: purge(series_id)$
-- Deletes a Series that nobody holds, with all that was found there; null where somebody does.  Its attempts stay in the poll record.
DELETE FROM lanes.series WHERE id = :series_id AND bookmarks = 0 RETURNING host_id;

-- name: note_unused(host_id)!
-- A host that no Series points to any more is forgotten some day.
UPDATE lanes.hosts SET unused_since = lanes.now()
WHERE id = :host_id AND NOT EXISTS (SELECT FROM lanes.series WHERE host_id = :host_id OR queue_host_id = :host_id);

-- name: stand(reader, sites, urls)
-- Which of these URLs are followed, and which of those this Reader has bookmarked.
SELECT w.n, b.series_id IS NOT NULL AS bookmarked
FROM unnest(:sites::text[], :urls::text[]) WITH ORDINALITY AS w (site, url, n)
JOIN lanes.series s ON s.site = w.site AND md5(s.url) = md5(w.url)
LEFT JOIN lanes.bookmarks b ON b.series_id = s.id AND b.reader_id = (SELECT id FROM lanes.readers WHERE name = :reader);
