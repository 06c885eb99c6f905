-- What the audit reads of the poll record: what was sent, and nothing that the claim believed.

-- name: requests(place, since, until)
-- The requests that were written, grouped by one kind of place and in the order of their sent instants.  Before `since` only those
-- are read that may still bind a later one: of the day before, for no learnt interval is longer, or with a wait that was still ahead.
-- A Series matters only where somebody asked it to wait.
SELECT place, host, series_id, machine, token::text, claimed_at, sent_at, ended_at, host_pace, host_wait_until, series_wait_until
FROM lanes.polls,
     LATERAL (SELECT CASE :place::text WHEN 'host' THEN host WHEN 'address' THEN abbrev(lanes.bucket(address)) ELSE series_id::text END
                     COLLATE "C" AS place) AS looked_at
WHERE sent_at < coalesce(:until::timestamptz, 'infinity') AND place IS NOT NULL
  AND (claimed_at >= coalesce(:since::timestamptz, '-infinity') - interval '1 day'
       OR host_wait_until > :since::timestamptz OR series_wait_until > :since::timestamptz)
  AND (:place::text <> 'series' OR series_id IN (SELECT series_id FROM lanes.polls WHERE series_wait_until IS NOT NULL))
ORDER BY place, sent_at, claimed_at, token, hop;
