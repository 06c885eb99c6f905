-- What `lanes upkeep` asks and writes: what comes of age, and what goes.  Lock order: hosts by id, then Series by id.

-- name: troubles()
-- The incidents of Sites and the refusal windows that go on.
SELECT i.id, i.whose, i.site, h.name AS host, i.kind, i.started_at, lanes.now() - i.started_at AS age,
       i.owner_told_at IS NOT NULL AS owner_told
FROM lanes.incidents i LEFT JOIN lanes.hosts h ON h.id = i.host_id
WHERE i.whose IN ('site', 'refusal') AND i.ended_at IS NULL
ORDER BY i.id;

-- name: tell_of_trouble(incident_id, age, kind, event, body, most_named)!
-- Each Reader of Series that are silent in it for so long, once: one Notice that names them.  Who bookmarks later is not told.
WITH named AS (
    SELECT b.reader_id, s.id, s.key, s.title, row_number() OVER (PARTITION BY b.reader_id ORDER BY s.id) AS n
    FROM lanes.incidents i, lanes.series_of(i) s JOIN lanes.bookmarks b ON b.series_id = s.id AND NOT b.muted
    WHERE i.id = :incident_id AND i.ended_at IS NULL AND i.started_at <= (SELECT lanes.now()) - :age::interval
      AND lanes.silent_since(s, i.started_at) <= (SELECT lanes.now()) - :age::interval
      AND coalesce(b.bookmarked_at <= i.told_at, true)
      AND NOT EXISTS (SELECT FROM lanes.notices n WHERE n.reader_id = b.reader_id AND n.event = :event)
), marked AS (
    UPDATE lanes.incidents SET told_at = lanes.now() WHERE id = :incident_id AND told_at IS NULL
)
INSERT INTO lanes.notices (reader_id, series_id, kind, event, body, made_at)
SELECT reader_id, CASE WHEN count(*) = 1 THEN min(id) END, :kind, :event,
       :body::jsonb || jsonb_build_object('count', count(*), 'series',
           jsonb_agg(jsonb_build_object('key', key, 'title', title) ORDER BY n) FILTER (WHERE n <= :most_named)),
       lanes.now()
FROM named GROUP BY reader_id ORDER BY reader_id
ON CONFLICT ON CONSTRAINT one_per_reader_and_event DO NOTHING;

-- name: ended()
-- The incidents and refusal windows of which Readers were told, and nobody yet that they are over.
SELECT i.id, i.whose, i.site, h.name AS host, i.kind, i.started_at, lanes.now() - i.started_at AS age,
       i.owner_told_at IS NOT NULL AS owner_told
FROM lanes.incidents i LEFT JOIN lanes.hosts h ON h.id = i.host_id
WHERE i.ended_at IS NOT NULL AND i.over_told_at IS NULL AND i.told_at IS NOT NULL
ORDER BY i.id;

-- name: tell_of_end(incident_id, event_told, kind, event, body, most_named)!
-- Each Reader who was told of it, for those of the Series it was about that they still follow and that were not given up meanwhile.
WITH marked AS (
    UPDATE lanes.incidents SET over_told_at = lanes.now() WHERE id = :incident_id AND over_told_at IS NULL RETURNING *
), named AS (
    SELECT b.reader_id, s.id, s.key, s.title, row_number() OVER (PARTITION BY b.reader_id ORDER BY s.id) AS n
    FROM marked m
    JOIN lanes.notices told ON told.event = :event_told AND told.reader_id IS NOT NULL
    JOIN lanes.bookmarks b ON b.reader_id = told.reader_id AND NOT b.muted
    JOIN lanes.series s ON s.id = b.series_id AND s.retired_at IS NULL AND s.site = m.site
        AND (s.host_id = coalesce(m.host_id, s.host_id) OR m.evidence -> 'series' @> to_jsonb(s.id))
        AND NOT lanes.was_stopped(told, s.id)
        AND ((told.body ->> 'count')::integer > :most_named  -- then it did not name them all
             OR told.body -> 'series' @> jsonb_build_array(jsonb_build_object('key', s.key)))
)
INSERT INTO lanes.notices (reader_id, series_id, kind, event, body, made_at)
SELECT reader_id, CASE WHEN count(*) = 1 THEN min(id) END, :kind, :event,
       :body::jsonb || jsonb_build_object('count', count(*), 'series',
           jsonb_agg(jsonb_build_object('key', key, 'title', title) ORDER BY n) FILTER (WHERE n <= :most_named)),
       lanes.now()
FROM named GROUP BY reader_id ORDER BY reader_id
ON CONFLICT ON CONSTRAINT one_per_reader_and_event DO NOTHING;

-- name: mark_owner_told(incident_id)!
-- The owner was told that it refuses us.
UPDATE lanes.incidents SET owner_told_at = lanes.now() WHERE id = :incident_id;

-- name: tell_owner(kind, event, body)!
-- One Notice to the owner.
SELECT lanes.tell_owner(:kind, :event, :body);

-- name: given_up(incident_id, age, most)
-- Series that are silent in an incident or a refusal window for this long, counted for each from when it came into it.
SELECT s.id, s.host_id, i.started_at AS since
FROM lanes.incidents i, lanes.series_of(i) s
WHERE i.id = :incident_id AND i.ended_at IS NULL AND i.started_at <= (SELECT lanes.now()) - :age::interval
  AND lanes.hopeless_since(s, i.started_at) <= (SELECT lanes.now()) - :age::interval
ORDER BY s.id LIMIT :most;

-- name: refused_alone(age, most)
-- Series whose own URL has been refused for this long, outside any refusal of their host or Site.
SELECT s.id, s.host_id, s.refused_since AS since
FROM lanes.series s
WHERE s.refused_since <= lanes.now() - :age::interval AND lanes.hopeless_since(s, s.refused_since) <= (SELECT lanes.now()) - :age::interval
  AND NOT lanes.is_refused_in_company(s)
ORDER BY s.id LIMIT :most;

-- name: deserted()
-- The incidents and refusal windows that go on where nothing is polled any more.
SELECT i.id, i.whose, i.site, h.name AS host, i.kind, i.started_at, lanes.now() - i.started_at AS age,
       i.owner_told_at IS NOT NULL AS owner_told
FROM lanes.incidents i LEFT JOIN lanes.hosts h ON h.id = i.host_id
WHERE i.whose IN ('site', 'refusal') AND i.ended_at IS NULL
  AND NOT EXISTS (SELECT FROM lanes.series_of(i) s WHERE lanes.is_eligible(s))
ORDER BY i.id;

-- name: hold_lane(incident_id)!
-- Locks the Lane of an incident of a whole Site before it.
SELECT FROM lanes.lanes WHERE site = (SELECT site FROM lanes.incidents WHERE id = :incident_id AND host_id IS NULL) FOR NO KEY UPDATE;

-- name: hold_place(incident_id)$
-- Locks the host of an incident before it; its id.
SELECT id FROM lanes.hosts WHERE id = (SELECT host_id FROM lanes.incidents WHERE id = :incident_id) FOR NO KEY UPDATE;

-- name: end_deserted(incident_id)$
-- Ends it, and no Reader is told that anything came back; null where something is polled there again.  Of a refusal nothing is
-- remembered but a wait that is still ahead.
WITH ended AS (
    UPDATE lanes.incidents i SET ended_at = greatest(lanes.now(), started_at), over_told_at = lanes.now()
    WHERE i.id = :incident_id AND i.ended_at IS NULL AND NOT EXISTS (SELECT FROM lanes.series_of(i) s WHERE lanes.is_eligible(s))
    RETURNING i.id, i.whose, i.site, i.host_id
), judged AS (
    UPDATE lanes.hosts h SET failing = NULL, answers = '[]' FROM ended e WHERE e.whose = 'site' AND h.id = e.host_id
), forgot AS (
    UPDATE lanes.hosts h SET refusals = 0, refused_since = NULL, refused_url = NULL, refused_at = NULL,
        refused_until = CASE WHEN h.refused_until > lanes.now() THEN h.refused_until END
    FROM ended e WHERE e.whose = 'refusal' AND h.id = e.host_id
), forgot_lane AS (
    UPDATE lanes.lanes l SET refusals = 0, refused_since = NULL, refused_url = NULL, refused_at = NULL,
        refused_until = CASE WHEN l.refused_until > lanes.now() THEN l.refused_until END
    FROM ended e WHERE e.whose = 'refusal' AND e.host_id IS NULL AND l.site = e.site
)
SELECT id FROM ended;

-- name: tell_of_refused_alone(age, kind)!
-- Readers of Series whose own URL has been refused for this long, outside any refusal of their host or Site, once.  Named by the
-- last good answer before it: an instant that no shift of the clock changes.
INSERT INTO lanes.notices (reader_id, series_id, kind, event, body, made_at)
SELECT b.reader_id, s.id, :kind, lanes.event('refused', s.id, s.good_at),
       jsonb_build_object('site', s.site, 'host', h.name, 'since', s.refused_since, 'alone', true, 'count', 1,
                          'series', jsonb_build_array(jsonb_build_object('key', s.key, 'title', s.title))),
       lanes.now()
FROM lanes.series s JOIN lanes.hosts h ON h.id = s.host_id JOIN lanes.bookmarks b ON b.series_id = s.id AND NOT b.muted
WHERE s.refused_since <= lanes.now() - :age::interval AND lanes.silent_since(s, s.refused_since) <= (SELECT lanes.now()) - :age::interval
  AND NOT lanes.is_refused_in_company(s)
  AND NOT EXISTS (
      SELECT FROM lanes.notices n WHERE n.reader_id = b.reader_id AND n.event = lanes.event('refused', s.id, s.good_at))
ORDER BY s.id, b.reader_id
ON CONFLICT ON CONSTRAINT one_per_reader_and_event DO NOTHING;

-- name: tell_of_taken_back(kind)!
-- Readers who were told that its URL is refused alone, once it gave a good answer; where it was given up first, its revival tells them.
INSERT INTO lanes.notices (reader_id, series_id, kind, event, body, made_at)
SELECT told.reader_id, s.id, :kind, regexp_replace(told.event, '^refused', 'back'), told.body, lanes.now()
FROM lanes.notices told JOIN lanes.series s ON s.id = told.series_id
JOIN lanes.bookmarks b ON b.reader_id = told.reader_id AND b.series_id = s.id AND NOT b.muted
WHERE told.kind = 'refused' AND told.series_id IS NOT NULL AND starts_with(told.event, 'refused:')
  AND s.retired_at IS NULL AND told.event <> lanes.event('refused', s.id, s.good_at)
  AND NOT EXISTS (
      SELECT FROM lanes.notices n WHERE n.reader_id = told.reader_id AND n.event = regexp_replace(told.event, '^refused', 'back'))
  AND NOT lanes.was_stopped(told, s.id)
ORDER BY s.id, told.reader_id
ON CONFLICT ON CONSTRAINT one_per_reader_and_event DO NOTHING;

-- name: hold_hosts(host_ids)
-- Locks these hosts, in order.
SELECT id FROM lanes.hosts WHERE id = ANY (:host_ids) ORDER BY id FOR NO KEY UPDATE;

-- name: hold_silent(series_ids, sinces, age)
-- Locks those of these Series that have still not given a good answer, in order.
SELECT s.id, w.since
FROM lanes.series s JOIN unnest(:series_ids::bigint[], :sinces::timestamptz[]) AS w (id, since) ON w.id = s.id
WHERE lanes.hopeless_since(s, w.since) <= (SELECT lanes.now()) - :age::interval
ORDER BY s.id FOR NO KEY UPDATE OF s;

-- name: now()$
-- The one clock.
SELECT lanes.now();

-- name: retire(series_ids, at, reason)!
-- Gives these Series up; their weekly look is left.
UPDATE lanes.series SET retired_at = :at, retired_reason = :reason, spared_by = NULL WHERE id = ANY (:series_ids);

-- name: tell_readers(series_id, kind, event, body)!
-- One Notice to each Reader of the Series.
SELECT lanes.tell_readers(:series_id, :kind, :event, :body);

-- name: lost_machines(silent)
-- Machines whose line went down, and which have not asked for so long whether it works again.
SELECT machine FROM lanes.machines
WHERE us_since <= lanes.now() - :silent::interval AND coalesce(probe_at <= lanes.now() - :silent::interval, true) ORDER BY machine;

-- name: end_us(machine, silent)^
-- Nothing is known of its line any more: its incident is over; null where it is there again, or had none.
WITH lost AS (
    UPDATE lanes.machines SET us_since = NULL, probe_at = NULL
    WHERE machine = :machine AND us_since <= lanes.now() - :silent::interval
      AND coalesce(probe_at <= lanes.now() - :silent::interval, true)
    RETURNING machine
)
UPDATE lanes.incidents i SET ended_at = greatest(lanes.now(), i.started_at) FROM lost
WHERE i.whose = 'us' AND i.machine = lost.machine AND i.ended_at IS NULL RETURNING i.id, i.spared;

-- name: prune_machines(unused_for, most)!
-- Machines that polled nothing for so long, as far as the poll record goes back; one that comes back is enrolled anew.
DELETE FROM lanes.machines WHERE machine IN (
    SELECT machine FROM lanes.machines m
    WHERE us_since IS NULL AND coalesce(greatest(shaken_at, asked_at, excused_at) <= lanes.now() - :unused_for::interval, true)
      AND NOT EXISTS (SELECT FROM lanes.polls p WHERE p.machine = m.machine AND p.claimed_at > lanes.now() - :unused_for::interval)
    ORDER BY machine LIMIT :most FOR UPDATE SKIP LOCKED);

-- name: owed()^
-- How many Notices wait for delivery, and for how long the oldest has.
SELECT count(*) AS owed, lanes.now() - min(made_at) AS oldest FROM lanes.notices WHERE delivered_at IS NULL;

-- name: record_days()
-- The partitions of the poll record with their sizes in bytes; the strays' has no day.
SELECT c.relname AS name, to_date(substring(c.relname FROM '^polls_(\d{8})$'), 'YYYYMMDD') AS day, pg_total_relation_size(c.oid) AS bytes
FROM pg_inherits p JOIN pg_class c ON c.oid = p.inhrelid
WHERE p.inhparent = 'lanes.polls'::regclass ORDER BY day NULLS FIRST;

-- name: oldest_stray()$
-- The day of the oldest record that has no partition.
SELECT (min(claimed_at) AT TIME ZONE 'UTC')::date FROM lanes.polls_stray;

-- name: prune_strays(before, most)!
-- Records without a partition that are of an earlier day.
DELETE FROM lanes.polls_stray WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM lanes.polls_stray WHERE claimed_at < :before ORDER BY claimed_at LIMIT :most));

-- name: prune_addresses(idle, most)!
-- Address rows that nobody has used, or waits for, for a while.
DELETE FROM lanes.addresses WHERE address IN (
    SELECT address FROM lanes.addresses
    WHERE used_at <= lanes.now() - :idle::interval AND greatest(next_at, booked_until) <= (SELECT lanes.now())
    ORDER BY used_at LIMIT :most FOR UPDATE SKIP LOCKED);

-- name: note_unused(after, most)$
-- Walks the hosts by id: since when no Series, bookmarked or not, has pointed to each.  Returns where to go on; null: at the end.
-- Values and not EXISTS: of two EXISTS a hash of all Series would be made for each page.
WITH page AS (
    SELECT id, unused_since,
           coalesce((SELECT s.id FROM lanes.series s WHERE s.host_id = h.id LIMIT 1),
                    (SELECT s.id FROM lanes.series s WHERE s.queue_host_id = h.id LIMIT 1)) IS NOT NULL AS used
    FROM lanes.hosts h WHERE id > :after ORDER BY id LIMIT :most
), held AS (
    SELECT id FROM lanes.hosts WHERE id IN (SELECT id FROM page WHERE used = (unused_since IS NOT NULL))
    ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
), noted AS (
    UPDATE lanes.hosts h SET unused_since = CASE WHEN h.unused_since IS NULL THEN lanes.now() END FROM held WHERE h.id = held.id
)
SELECT max(id) FROM page;

-- name: hold_unused(unused_for, named, most)
-- Locks hosts that no Series has pointed to for so long, unless they hold the owner's word or a running wait, or are named; nor was any
-- asked lately, as a hop of somebody's redirects is, whose pace would be forgotten.
SELECT id FROM lanes.hosts h
WHERE unused_since <= lanes.now() - :unused_for::interval AND coalesce(sent_at <= (SELECT lanes.now()) - :unused_for::interval, true)
  AND greatest(next_at, busy_until, not_before, refused_until) <= (SELECT lanes.now())
  AND name <> ALL (:named::text[]) AND owner_pace IS NULL AND NOT EXISTS (SELECT FROM lanes.words w WHERE w.host_id = h.id AND w.ended_at IS NULL)
ORDER BY unused_since LIMIT :most FOR UPDATE SKIP LOCKED;

-- name: prune_hosts(host_ids)!
-- Forgets these hosts, and with each its robots.txt and its incidents; one to which a Series came meanwhile stays.
DELETE FROM lanes.hosts h WHERE id = ANY (:host_ids)
  AND NOT EXISTS (SELECT FROM lanes.series s WHERE s.host_id = h.id) AND NOT EXISTS (SELECT FROM lanes.series s WHERE s.queue_host_id = h.id);

-- name: prune_incidents(kept, most)!
-- Incidents that ended long ago.
DELETE FROM lanes.incidents WHERE id IN (
    SELECT id FROM lanes.incidents WHERE ended_at <= (SELECT lanes.now()) - :kept::interval ORDER BY started_at LIMIT :most);

-- name: prune_notices(kept, most)!
-- Notices that were delivered long ago, but for those by which it is known who is to be told of an incident's end.
DELETE FROM lanes.notices WHERE id IN (
    SELECT n.id FROM lanes.notices n
    WHERE n.delivered_at <= lanes.now() - :kept::interval
      AND NOT EXISTS (
          SELECT FROM lanes.incidents i
          WHERE (i.ended_at IS NULL OR (i.told_at IS NOT NULL AND i.over_told_at IS NULL)) AND n.event = 'incident:' || i.id)
    ORDER BY n.delivered_at LIMIT :most);
