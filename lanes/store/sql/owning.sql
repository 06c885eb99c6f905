-- The owner's word on hosts and Sites, and what the owner does by hand to a Series that stopped or moved.  Each makes what it changes
-- visible to the claim (DESIGN 4.1).  Lock order: Lane, hosts by id, Series by id.

-- name: host(name)^
-- A host, locked; how many Series are asked there.
SELECT h.id, h.site, h.name, (SELECT count(*) FROM lanes.series WHERE host_id = h.id) AS series
FROM lanes.hosts h WHERE h.name = :name FOR NO KEY UPDATE;

-- name: make_host(site, name)!
-- A host that nobody follows yet: its row is there for the owner's word alone, and may go once that is over.
INSERT INTO lanes.hosts (site, name, ready_at, unused_since) VALUES (:site, :name, 'infinity', lanes.now()) ON CONFLICT DO NOTHING;

-- name: enrol_site(site)!
-- The row of its Lane.
INSERT INTO lanes.lanes (site) VALUES (:site) ON CONFLICT DO NOTHING;

-- name: lane(site)^
-- A Lane, locked; how many Series it polls.
SELECT l.site, (SELECT count(*) FROM lanes.series WHERE site = l.site) AS series FROM lanes.lanes l WHERE l.site = :site FOR NO KEY UPDATE;

-- name: hosts_below(name)
-- The hosts that are followed under a domain, for whoever names that and means them.
SELECT name FROM lanes.hosts h
WHERE right(h.name, length(:name) + 1) = '.' || :name AND EXISTS (SELECT FROM lanes.series s WHERE s.host_id = h.id) ORDER BY name LIMIT 20;

-- name: words()
-- The owner's words in force, oldest first.
SELECT coalesce(w.site, h.name) AS about, w.site IS NOT NULL AS is_site, w.at_least::interval AS at_least, w.said_at,
       (SELECT count(*) FROM lanes.series s WHERE CASE WHEN w.site IS NULL THEN s.host_id = h.id ELSE s.site = w.site END) AS series
FROM lanes.words w LEFT JOIN lanes.hosts h ON h.id = w.host_id
WHERE w.ended_at IS NULL ORDER BY w.said_at, w.id;

-- name: slow_word(host_id, site)$
-- The interval that the owner has laid there; null: none.
SELECT at_least::interval FROM lanes.words
WHERE host_id IS NOT DISTINCT FROM :host_id AND site IS NOT DISTINCT FROM :site AND at_least IS NOT NULL AND ended_at IS NULL;

-- name: end_slow_word(host_id, site)$
-- The interval that ends; null: there was none.
UPDATE lanes.words SET ended_at = greatest(lanes.now(), said_at)
WHERE host_id IS NOT DISTINCT FROM :host_id AND site IS NOT DISTINCT FROM :site AND at_least IS NOT NULL AND ended_at IS NULL
RETURNING at_least::interval;

-- name: say(host_id, site, at_least)!
-- A word is kept for good, over or not.
INSERT INTO lanes.words (host_id, site, at_least, said_at) VALUES (:host_id, :site, :at_least, lanes.now());

-- name: slow_host(host_id, at_least)$
-- A lower bound of the host's interval, counted from its last request on; the interval now in force.
UPDATE lanes.hosts h SET owner_pace = :at_least,
    next_at = greatest(h.next_at, h.sent_at + greatest(:at_least::interval, lanes.pace_of(h)))
WHERE h.id = :host_id RETURNING lanes.pace_of(h)::interval;

-- name: free_host(host_id)!
-- The lower bound goes.
UPDATE lanes.hosts SET owner_pace = NULL WHERE id = :host_id;

-- name: hasten_host(host_id)$
-- The host's next request comes as early as its interval now in force allows, which is told.
UPDATE lanes.hosts h SET next_at = least(h.next_at, h.sent_at + lanes.pace_of(h)), ready_at = least(h.ready_at, lanes.now())
WHERE h.id = :host_id RETURNING lanes.pace_of(h)::interval;

-- name: slow_lane(site, at_least)$
-- A lower bound of the Lane's Gap, counted from its last request on (from now where it had no Gap: its slots claim side by side); the Gap
-- now in force.
UPDATE lanes.lanes l SET owner_gap = :at_least, next_at = greatest(l.next_at, :at_least::interval + CASE
    WHEN lanes.gap_of(l) IS NULL THEN lanes.now() ELSE (SELECT max(sent_at) FROM lanes.hosts WHERE site = l.site) END)
WHERE l.site = :site RETURNING lanes.gap_of(l)::interval;

-- name: free_lane(site, gap)!
-- The lower bound goes, and its next request comes as early as the registry's `gap` allows (null: it has none).
UPDATE lanes.lanes l SET owner_gap = NULL, next_at = least(l.next_at, coalesce(
    (SELECT max(sent_at) FROM lanes.hosts WHERE site = l.site) + :gap::interval, '-infinity'))
WHERE l.site = :site;

-- name: block(host_id, reason)$
-- Nothing is asked there any more; what waited there before is kept in the word.  Null: it was blocked already.
WITH before AS (
    SELECT not_before, not_before_reason FROM lanes.hosts WHERE id = :host_id AND not_before > lanes.now()
), said AS (
    INSERT INTO lanes.words (host_id, said_at, before_until, before_reason)
    SELECT :host_id, lanes.now(), before.not_before, before.not_before_reason FROM (SELECT) one LEFT JOIN before ON true
    ON CONFLICT DO NOTHING RETURNING host_id
)
UPDATE lanes.hosts SET not_before = 'infinity', not_before_reason = :reason FROM said WHERE id = said.host_id RETURNING id;

-- name: unblock(host_id, refuses)^
-- What stands there instead: the longest wait that is still ahead of those that stood there before, that a Poll in hand at the block
-- brought after it, or that a refusal laid; null: nothing.  No row: it was not blocked.
WITH word AS (
    UPDATE lanes.words SET ended_at = greatest(lanes.now(), said_at) WHERE host_id = :host_id AND at_least IS NULL AND ended_at IS NULL
    RETURNING said_at, before_until, before_reason
), waits AS (
    SELECT before_until AS until, before_reason AS reason, 1 AS rank FROM word
    UNION ALL
    SELECT refused_until, :refuses::text, 2 FROM lanes.hosts WHERE id = :host_id
    UNION ALL
    SELECT p.host_wait_until, 'the host asked to wait: ' || coalesce(p.detail, p.outcome), 3
    FROM word, lanes.hosts h JOIN lanes.polls p ON p.host = h.name
    WHERE h.id = :host_id AND p.claimed_at BETWEEN word.said_at - interval '10 minutes' AND word.said_at
), longest AS (
    SELECT until, reason FROM waits WHERE until > lanes.now() ORDER BY until DESC, rank LIMIT 1
)
UPDATE lanes.hosts h SET
    not_before = coalesce(longest.until, '-infinity'), not_before_reason = longest.reason, ready_at = least(h.ready_at, lanes.now())
FROM word LEFT JOIN longest ON true
WHERE h.id = :host_id RETURNING longest.until, longest.reason;

-- name: place_host(site, name)$
-- The id of a host, made where there is none.
SELECT lanes.place_host(:site, :name);

-- name: lock(series_ids, host_ids)!
-- Locks these hosts, and those of these Series, by id; then the Series.
WITH hosts AS MATERIALIZED (
    SELECT h.id FROM lanes.hosts h
    WHERE h.id = ANY (:host_ids) OR h.id IN (SELECT unnest(ARRAY[host_id, queue_host_id]) FROM lanes.series WHERE id = ANY (:series_ids))
    ORDER BY h.id FOR NO KEY UPDATE)
SELECT count(*) FROM hosts;

-- name: lock_series(series_ids)
-- Locks these Series by id.
SELECT id, key, site, url, old_url, host_id, retired_at, retired_reason FROM lanes.series WHERE id = ANY (:series_ids)
ORDER BY id FOR NO KEY UPDATE;

-- name: series(series_id)^
-- What is decided from before anything is locked.
SELECT id, site, url, old_url, retired_reason FROM lanes.series WHERE id = :series_id;

-- name: by_url(site, url)$
-- The key of the Series that is followed there.
SELECT key FROM lanes.series WHERE site = :site AND md5(url) = md5(:url);

-- name: retire(series_id, reason)$
-- Gives a Series up; when.  A Poll that was put back is not carried out any more.
UPDATE lanes.series SET retired_at = lanes.now(), retired_reason = :reason, retired_by_owner = true, spared_by = NULL, queue_host_id = host_id,
    retry_at = NULL, retry_reason = NULL, retry_address = NULL, resume = NULL, resume_until = NULL
WHERE id = :series_id RETURNING retired_at;

-- name: revive(series_id, stays_off)$
-- Takes a Series back as if it had never failed, to be looked at now; when.
UPDATE lanes.series SET
    retired_at = NULL, retired_reason = NULL, retired_by_owner = false, revived_at = lanes.now(), stays_off = coalesce(:stays_off, stays_off),
    failures = 0, failing_since = NULL, failure = NULL, failure_kind = NULL, refusals = 0, refused_since = NULL, gone_at = NULL,
    spared_by = NULL, abandoned = 0, moving_to = NULL, moving_since = NULL, moving_polls = 0,
    next_check_at = CASE WHEN tier = 'poll' THEN lanes.now() END,
    force_poll_at = greatest(lanes.now(), latest_checked_at + interval '1 microsecond')
WHERE id = :series_id RETURNING revived_at;

-- name: merged_into(series_id)$
-- The Series to which this one was merged when it retired, not by its owner's words; null: none.
SELECT lanes.merged_into(:series_id);

-- name: drop_copies(series_id, other_id)$
-- Deletes the Bookmarks that were copied from a Series to another and are unchanged since; how many.
SELECT lanes.drop_copies(:series_id, :other_id);

-- name: go_back(series_id, host_id)!
-- A Series returns to its old URL, which is asked now (and, where that is a web page, for its feed again), and stays off the one it leaves.  A Poll in hand there writes nothing more to it.
UPDATE lanes.series SET
    url = old_url, stays_off = url, old_url = NULL, host_id = :host_id, queue_host_id = :host_id,
    moving_to = NULL, moving_since = NULL, moving_polls = 0, discovering = true,
    etag = NULL, last_modified = NULL, validators_url = NULL, body_hash = NULL,
    lease_until = NULL, lease_token = NULL, lease_machine = NULL, lease_trigger = NULL, abandoned = 0,
    retry_at = NULL, retry_reason = NULL, retry_address = NULL, resume = NULL, resume_until = NULL,
    next_check_at = CASE WHEN tier = 'poll' THEN lanes.now() END,
    force_poll_at = greatest(lanes.now(), latest_checked_at + interval '1 microsecond')
WHERE id = :series_id;

-- name: note_use(left_id, host_id)!
-- The host that is asked is used; the one that was left may be used no more.
UPDATE lanes.hosts h SET unused_since = CASE
    WHEN h.id = :host_id OR EXISTS (SELECT FROM lanes.series WHERE host_id = h.id OR queue_host_id = h.id) THEN NULL
    ELSE coalesce(h.unused_since, lanes.now()) END
WHERE h.id IN (:left_id, :host_id);

-- name: wake(series_id)!
-- What the claim must see after a verb that made a Series due sooner.
UPDATE lanes.hosts h SET ready_at = least(h.ready_at, lanes.now()),
    pending_at = least(h.pending_at, CASE WHEN s.turn = 0 AND s.claimable_at IS NOT NULL THEN s.force_poll_at END)
FROM lanes.series s WHERE s.id = :series_id AND h.id = s.queue_host_id;

-- name: tell_readers(series_id, kind, event, body)!
-- Its Readers are owed a Notice.
SELECT lanes.tell_readers(:series_id, :kind, :event, :body);
