-- The line of one machine: what its last attempts were, and what follows from them.  lanes.core.line decides.

-- name: enrol(machine)!
-- The row of a machine that polls.
INSERT INTO lanes.machines (machine) VALUES (:machine) ON CONFLICT DO NOTHING;

-- name: machine(machine)^
-- What is known of it, locked; and whether a single host is all that anybody follows.
SELECT m.shaken_at, m.asked_at, m.asked_series, m.us_since, m.excused_at, lanes.only_host() AS only_host, lanes.now() AS now
FROM lanes.machines m WHERE m.machine = :machine FOR NO KEY UPDATE OF m;

-- name: proved_at(machine, since)$
-- Its last attempt that proved its line: the key of the record read backwards, for nearly every attempt does.  What was recorded before
-- the clock went back is forgotten: its order is not known any more.
SELECT claimed_at FROM lanes.polls
WHERE machine = :machine AND proof AND claimed_at BETWEEN :since AND lanes.now() AND shifted = (SELECT lanes.shifted())
ORDER BY claimed_at DESC LIMIT 1;

-- name: unproved(machine, since, most)
-- Its attempts without proof, newest first.
SELECT claimed_at, series_id, host, detail,
       (changed ? 'failures' AND NOT changed ? 'given back')
       OR (changed ?| ARRAY['host pace', 'host backoffs'] AND NOT changed ? 'interval given back') AS charged
FROM lanes.polls
WHERE machine = :machine AND NOT proof AND claimed_at > :since AND claimed_at <= lanes.now() AND shifted = (SELECT lanes.shifted())
ORDER BY claimed_at DESC LIMIT :most;

-- name: asked_elsewhere(machine, series_id, asked_at)$
-- Whether another machine took the question.
SELECT EXISTS (SELECT FROM lanes.polls WHERE series_id = :series_id AND claimed_at > :asked_at AND machine <> :machine);

-- name: askable(machine, apart_from, lately, most)^
-- The Series that gave this machine its last good answer at another host than these, if nothing but Rest stands around it; in_hand: it is
-- being asked already.
SELECT s.id, s.host_id, s.site, s.lease_token IS NOT NULL AS in_hand
FROM (
    SELECT series_id, claimed_at FROM lanes.polls
    WHERE machine = :machine AND claimed_at BETWEEN lanes.now() - :lately AND lanes.now() AND outcome IN ('new', 'unchanged')
    ORDER BY claimed_at DESC LIMIT :most
) p
JOIN lanes.series s ON s.id = p.series_id
JOIN lanes.hosts h ON h.id = s.host_id AND h.id = s.queue_host_id
JOIN lanes.lanes l ON l.site = s.site
WHERE h.name <> ALL (:apart_from)
  AND s.tier = 'poll' AND s.url <> '' AND s.bookmarks > 0 AND s.paused_at IS NULL AND s.retired_at IS NULL
  AND (s.lease_token IS NULL OR (s.lease_machine = :machine AND s.lease_until > (SELECT lanes.now())))
  AND s.retry_at IS NULL AND s.failures = 0
  AND coalesce(s.not_before <= (SELECT lanes.now()), true) AND h.not_before <= (SELECT lanes.now())
  AND l.paused_at IS NULL AND coalesce(l.refused_until <= (SELECT lanes.now()), true)
ORDER BY p.claimed_at DESC LIMIT 1;

-- name: lock_host(host_id)!
-- Host before Series.
SELECT FROM lanes.hosts WHERE id = :host_id FOR NO KEY UPDATE;

-- name: ask(series_id, reason)$
-- Due now, Rest notwithstanding; null where it was claimed meanwhile.
UPDATE lanes.series SET retry_at = lanes.now(), retry_reason = :reason WHERE id = :series_id AND lease_token IS NULL RETURNING id;

-- name: hurry(host_id)!
-- Its host goes before all that wait, as one with something pending does; buckets and waits stay in force.
UPDATE lanes.hosts SET pending_at = coalesce(pending_at, lanes.now()), ready_at = least(ready_at, lanes.now()) WHERE id = :host_id;

-- name: asked(machine, series_id)!
-- Whom it asked, and when.
UPDATE lanes.machines SET asked_at = lanes.now(), asked_series = :series_id WHERE machine = :machine;

-- name: cut_off(machine, since)!
-- Its line is down.
UPDATE lanes.machines SET us_since = coalesce(us_since, :since), excused_at = NULL WHERE machine = :machine;

-- name: give_back(series_ids, sinces, machine)$
-- What this machine charged without proof; how many Series got theirs back.
SELECT lanes.give_back(:series_ids, :sinces, :machine, true);

-- name: withdraw(series_ids, since)!
-- What these Series seemed to say about their Sites, they did not say.
SELECT lanes.withdraw(:series_ids, :since);

-- name: incident(machine, since, spared, evidence)^
-- The one open incident of a machine.
INSERT INTO lanes.incidents (whose, machine, started_at, spared, evidence) VALUES ('us', :machine, :since, :spared, :evidence)
ON CONFLICT (whose, machine, site, host_id) WHERE ended_at IS NULL DO UPDATE SET spared = incidents.spared + EXCLUDED.spared
RETURNING id;

-- name: tell_owner(kind, event, body)!
-- The owner, once for this event.
SELECT lanes.tell_owner(:kind, :event, :body);

-- name: restore(machine)!
-- Its line works.
UPDATE lanes.machines SET us_since = NULL, probe_at = NULL, excused_at = NULL WHERE machine = :machine;

-- name: excuse(machine)!
-- A day is over without a proof, and only one host is followed.
UPDATE lanes.machines SET us_since = NULL, probe_at = NULL, excused_at = lanes.now() WHERE machine = :machine;

-- name: incident_over(machine)^
-- Its open incident ends.
UPDATE lanes.incidents SET ended_at = greatest(lanes.now(), started_at) WHERE whose = 'us' AND machine = :machine AND ended_at IS NULL
RETURNING id, spared;

-- name: shaken(machine, at)!
-- The database was away, or the clock jumped; null: just now.
INSERT INTO lanes.machines AS m (machine, shaken_at) VALUES (:machine, coalesce(:at, lanes.now()))
ON CONFLICT (machine) DO UPDATE SET shaken_at = greatest(m.shaken_at, EXCLUDED.shaken_at);
