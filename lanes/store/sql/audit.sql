-- What the audit reads: what was sent and answered, and what was demanded; nothing that the claim believed.

-- name: requests(place, since, until, guard)
-- The requests that were written, grouped by one kind of place and in the order of their sent instants.  Before `since` only those
-- are read that may still bind a later one: of the day before (or as far back as the owner's slowest word), for no learnt interval is
-- longer, or with a wait that was still ahead.  A Series matters only where somebody asked it to wait, a Site only where it has a Gap, was
-- stopped, or the owner spoke of it; a request counts for the Site whose host it went to.
-- Instants from before a clock that went back are shifted as the stored pace was; their Polls had ended by then, whatever latest_seen
-- missed.  A Poll whose end was before its claim was in hand meanwhile: its instants are of two clocks.
-- What a failure laid on its host and was given back binds nobody, for it may have been lifted since; nor does what our own guard laid
-- (a detail that begins with :guard), which every Lane that starts lifts.
WITH clock AS MATERIALIZED (
    SELECT lanes.shifted() AS total, (SELECT at FROM lanes.clock_shifts ORDER BY id DESC LIMIT 1) AS shifted_at
)
SELECT place, p.host, series_id, machine, token::text, claimed_at - back, sent_at - back,
       least(ended_at - back, CASE WHEN back > '0' THEN shifted_at END), outcome, host_pace, lane_gap,
       CASE WHEN NOT (outcome = 'failed' AND changed ? 'given back') THEN host_wait_until - back END, lane_wait_until - back,
       CASE WHEN NOT starts_with(coalesce(detail, ''), :guard) THEN series_wait_until - back END
FROM clock CROSS JOIN lanes.polls p
     LEFT JOIN (SELECT name, site FROM lanes.hosts) h ON :place::text = 'site' AND h.name = p.host,
     LATERAL (SELECT CASE :place::text
         WHEN 'host' THEN p.host WHEN 'address' THEN abbrev(lanes.bucket(p.address)) WHEN 'site' THEN coalesce(h.site, p.site)
         ELSE series_id::text END COLLATE "C" AS place, clock.total - p.shifted AS back) AS looked_at
WHERE sent_at - back < coalesce(:until::timestamptz, 'infinity') AND place IS NOT NULL
  AND coalesce(ended_at > claimed_at - interval '5 seconds', true)
  AND (claimed_at >= coalesce(:since::timestamptz, '-infinity') - greatest(interval '1 day', (SELECT max(at_least) FROM lanes.words))
       OR greatest(host_wait_until, lane_wait_until, series_wait_until) > :since::timestamptz)
  AND (:place::text <> 'series' OR series_id IN (SELECT series_id FROM lanes.polls WHERE series_wait_until IS NOT NULL))
  AND (:place::text <> 'site' OR place IN (
       SELECT site FROM lanes.polls WHERE lane_gap IS NOT NULL OR lane_wait_until IS NOT NULL UNION SELECT site FROM lanes.words))
ORDER BY place, sent_at - back, claimed_at - back, token, hop;

-- name: demands(place)
-- What robots.txt and the owner demand, in the order of the places of one kind: of the robots.txt only what it says now, for
-- as long as it is fresh, of the owner's words also those that have ended.
SELECT place, kind, since, until, at_least::interval
FROM (
    SELECT 'host', h.name::text, 'crawl delay', r.crawl_delay_since, r.again_at, r.crawl_delay
    FROM lanes.robots r JOIN lanes.hosts h ON h.id = r.host_id WHERE r.crawl_delay IS NOT NULL
    UNION ALL
    SELECT CASE WHEN w.site IS NULL THEN 'host' ELSE 'site' END, coalesce(w.site, h.name), 'owner''s word', w.said_at, w.ended_at, w.at_least
    FROM lanes.words w LEFT JOIN lanes.hosts h ON h.id = w.host_id
) AS demanded (what, place, kind, since, until, at_least)
WHERE what = :place::text
ORDER BY place COLLATE "C", since;
