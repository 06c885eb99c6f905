-- The last answers of a host, whose row is locked (lanes.store.judging).

-- name: standing(host_id)^
-- They, those of them that are of Series which are polled there, and in which kind its Site fails.
SELECT h.answers, h.failing, (
    SELECT coalesce(jsonb_agg(a ORDER BY n), '[]')
    FROM jsonb_array_elements(h.answers) WITH ORDINALITY AS e (a, n)
    JOIN lanes.series s ON s.id = (a ->> 0)::bigint AND s.host_id = h.id AND lanes.is_eligible(s)) AS standing
FROM lanes.hosts h WHERE h.id = :host_id;

-- name: remember(host_id, answers)!
-- The last answers of distinct Series of a host.
UPDATE lanes.hosts SET answers = :answers WHERE id = :host_id;

-- name: site_heals(host_id)^
-- Ends the open incident of a host; null where there is none.
WITH healed AS (
    UPDATE lanes.hosts SET failing = NULL WHERE id = :host_id RETURNING id, name, site
), unspared AS (
    UPDATE lanes.series SET spared_by = NULL WHERE host_id = :host_id AND spared_by IS NOT NULL
)
UPDATE lanes.incidents i SET ended_at = greatest(lanes.now(), i.started_at)
FROM healed h WHERE i.whose = 'site' AND i.host_id = h.id AND i.ended_at IS NULL
RETURNING i.id, h.name AS host, h.site, i.kind, i.started_at, i.spared;

-- name: tell_owner(kind, event, body)!
-- The owner, once for this event.
SELECT lanes.tell_owner(:kind, :event, :body);
