-- What is remembered of robots.txt, by exact origin.  What follows from it is decided in lanes/core/robots.py.

-- name: known(origin)^
-- What is remembered of an origin.
SELECT origin, asked_at, again_at, status, text, read_at, crawl_delay, crawl_delay_since, unanswered_since, silence
FROM lanes.robots WHERE origin = :origin;

-- name: lock_host(host)$
-- The host of an origin, held while its crawl delay is computed.
SELECT id FROM lanes.hosts WHERE name = :host FOR NO KEY UPDATE;

-- name: ahead(at)$
-- By how much the clock went back since that instant.
SELECT lanes.ahead(:at);

-- name: keep(host_id, origin, asked_at, again_at, status, text, read_at, crawl_delay, crawl_delay_since, unanswered_since, silence)!
-- Remembers it; a worker that comes late with an older answer changes nothing.  A delay that was out of force, because another origin of
-- the host was read while this one was not fresh, is in force from now.
INSERT INTO lanes.robots AS r (
    origin, host_id, asked_at, again_at, status, text, read_at, crawl_delay, crawl_delay_since, unanswered_since, silence)
VALUES (
    :origin, :host_id, :asked_at, :again_at, :status, :text, :read_at, :crawl_delay, :crawl_delay_since, :unanswered_since, :silence)
ON CONFLICT (origin) DO UPDATE SET
    host_id = EXCLUDED.host_id, asked_at = EXCLUDED.asked_at, again_at = EXCLUDED.again_at, status = EXCLUDED.status,
    text = EXCLUDED.text, read_at = EXCLUDED.read_at, crawl_delay = EXCLUDED.crawl_delay,
    crawl_delay_since = CASE
        WHEN EXCLUDED.crawl_delay > coalesce((SELECT crawl_delay FROM lanes.hosts WHERE id = EXCLUDED.host_id), '0') THEN lanes.now()
        ELSE EXCLUDED.crawl_delay_since END,
    unanswered_since = EXCLUDED.unanswered_since, silence = EXCLUDED.silence
WHERE r.asked_at <= EXCLUDED.asked_at;

-- name: bring_in_force(host_id, sent_at)!
-- The crawl delay of a host is the largest of its origins' that are fresh: one that nobody asks any more binds nobody.  What was just
-- sent spends the bucket by it; a bucket that was spent by a longer one stays spent.
WITH delay AS (
    SELECT max(crawl_delay) AS longest FROM lanes.robots WHERE host_id = :host_id AND again_at > lanes.now()
)
UPDATE lanes.hosts h SET
    crawl_delay = delay.longest,
    next_at = greatest(h.next_at, :sent_at::timestamptz + greatest(h.pace, delay.longest, h.owner_pace))
FROM delay WHERE h.id = :host_id AND h.crawl_delay IS DISTINCT FROM delay.longest;

-- name: hold(host, at, wait, reason)!
-- A host asked to wait; a longer wait stands.
UPDATE lanes.hosts h SET not_before = w.until, not_before_reason = :reason
FROM (SELECT :at::timestamptz + :wait::interval - lanes.ahead(:at) AS until) w WHERE h.name = :host AND h.not_before < w.until;
