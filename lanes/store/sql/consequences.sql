-- What else follows from a Poll: one block for each consequence, in the transaction that settled it (lanes/core/consequences.py).
-- The Lane (on a Site with a Gap), the hosts and the Series are locked already.

-- name: retire(series_id, reason)!
-- Given up: only the weekly look is left.
UPDATE lanes.series SET retired_at = lanes.now(), retired_reason = :reason, spared_by = NULL WHERE id = :series_id;

-- name: tell_readers(series_id, kind, event, body)!
-- Each Reader of the Series, once for this event.
SELECT lanes.tell_readers(:series_id, :kind, :event, :body);

-- name: tell_owner(series_id, kind, event, body)!
-- The owner, once for this event.
SELECT lanes.tell_owner(:kind, :event, :body, :series_id);

-- name: merged_into(series_id)$
-- The Series to which this one was merged when it retired; null: none.
SELECT lanes.merged_into(:series_id);

-- name: drop_copies(series_id, other_id)!
-- Takes back the Bookmarks that were copied to that one.
SELECT lanes.drop_copies(:series_id, :other_id);

-- name: revive(series_id, led_to)$
-- Lives again, if nobody revived it meanwhile, unless the owner gave it up, or a permanent redirect led to another Series, be it to where that was before it moved on
-- itself; whether it does.
UPDATE lanes.series s SET retired_at = NULL, retired_reason = NULL, revived_at = lanes.now(), gone_at = NULL
WHERE s.id = :series_id AND s.retired_at IS NOT NULL AND NOT s.retired_by_owner AND NOT EXISTS (
    SELECT FROM unnest(:led_to::text[]) led JOIN lanes.series o ON o.site = s.site AND md5(o.url) = md5(led) AND o.id <> s.id)
  AND NOT EXISTS (
    SELECT FROM lanes.series o WHERE o.key = substring(s.retired_reason FROM '^moved to (.+)$') AND o.old_url = ANY (:led_to))
RETURNING s.id;

-- name: gather(series_id, moving_to, moving_since, moving_polls)!
-- What is known of a move so far; nothing, where the Series is there already: a move inside one host is asked first at once.
UPDATE lanes.series SET moving_to = :moving_to, moving_since = :moving_since, moving_polls = :moving_polls
WHERE id = :series_id AND url IS DISTINCT FROM :moving_to;

-- name: adopt(series_id, url, host_id)^
-- The Series moves; where another is followed there it retires and its Bookmarks are copied.
SELECT * FROM lanes.adopt(:series_id, :url, :host_id);

-- name: distrust(series_id, reason)!
-- Validators that lied or never match; null: trusted again.
UPDATE lanes.series SET distrusted_at = CASE WHEN :reason::text IS NOT NULL THEN lanes.now() END, distrusted_reason = :reason
WHERE id = :series_id;

-- name: site_fails(host_id, kind, series_ids, sinces, evidence)^
-- Opens the incident of a host, gives back what its Series were charged, and says how many.
WITH opened AS (
    INSERT INTO lanes.incidents (whose, site, host_id, kind, started_at, spared, evidence)
    SELECT 'site', h.site, h.id, :kind, least(lanes.now(), (SELECT min(x) FROM unnest(:sinces::timestamptz[]) x)),
           cardinality(:series_ids::bigint[]), :evidence
    FROM lanes.hosts h WHERE h.id = :host_id
    ON CONFLICT (whose, machine, site, host_id) WHERE ended_at IS NULL DO UPDATE SET kind = EXCLUDED.kind
    RETURNING id
), failing AS (
    UPDATE lanes.hosts SET failing = :kind WHERE id = :host_id
), spared AS (
    UPDATE lanes.series SET spared_by = (SELECT id FROM opened) WHERE id = ANY (:series_ids)
)
SELECT opened.id, h.name AS host, h.site FROM opened, lanes.hosts h WHERE h.id = :host_id;

-- name: give_back(series_ids, sinces)!
-- What these Series were charged, each since its own instant.
SELECT lanes.give_back(:series_ids, :sinces, NULL, false);

-- name: spare(series_id, host_id)!
-- One more Series that its Site's open incident spares, counted once.
WITH now_spared AS (
    UPDATE lanes.series s SET spared_by = i.id FROM lanes.incidents i
    WHERE s.id = :series_id AND i.whose = 'site' AND i.host_id = :host_id AND i.ended_at IS NULL AND s.spared_by IS DISTINCT FROM i.id
    RETURNING i.id
)
UPDATE lanes.incidents SET spared = spared + 1 WHERE id IN (SELECT id FROM now_spared);

-- name: host_window(host_id, series_id)^
-- What a host remembers of refusals, and whether nobody is eligible there but the Series that read.
SELECT h.refusals, h.refused_since, h.refused_until, h.refused_url, h.refused_at, h.good_sent_at,
       NOT EXISTS (SELECT FROM lanes.series s WHERE s.host_id = h.id AND s.id <> :series_id AND lanes.is_eligible(s)) AS only_one
FROM lanes.hosts h WHERE h.id = :host_id;

-- name: lane_window(site, series_id)^
-- The same of a Lane.
SELECT l.refusals, l.refused_since, l.refused_until, l.refused_url, l.refused_at, l.good_sent_at,
       NOT EXISTS (SELECT FROM lanes.series s WHERE s.site = l.site AND s.id <> :series_id AND lanes.is_eligible(s)) AS only_one
FROM lanes.lanes l WHERE l.site = :site FOR NO KEY UPDATE;

-- name: set_host_window(host_id, refusals, since, until, url, refused_at, good_sent_at)!
-- A host's window.  hosts.not_before is the one place where it closes the gate; nothing opens it early.
UPDATE lanes.hosts h SET
    refusals = :refusals, refused_since = :since, refused_until = :until, refused_url = :url, refused_at = :refused_at,
    good_sent_at = greatest(h.good_sent_at, :good_sent_at),
    not_before_reason = CASE WHEN :until > h.not_before THEN 'the host refuses' ELSE h.not_before_reason END,
    not_before = greatest(h.not_before, :until)
WHERE h.id = :host_id;

-- name: set_lane_window(site, refusals, since, until, url, refused_at, good_sent_at)!
-- A Lane's window.
UPDATE lanes.lanes l SET
    refusals = :refusals, refused_since = :since, refused_until = :until, refused_url = :url, refused_at = :refused_at,
    good_sent_at = greatest(l.good_sent_at, :good_sent_at)
WHERE l.site = :site;

-- name: renew_hint(host_id)!
-- When a claim may find something on a host, computed anew.
UPDATE lanes.hosts h SET ready_at = lanes.ready_at(h) WHERE h.id = :host_id;

-- name: note_window(claimed_at, token, host_until, lane_until)!
-- The window that a Poll opened, in its record: what the audit holds later requests to.
UPDATE lanes.polls SET host_wait_until = greatest(host_wait_until, :host_until), lane_wait_until = :lane_until
WHERE claimed_at = :claimed_at AND token = :token AND hop = (
    SELECT max(hop) FROM lanes.polls WHERE claimed_at = :claimed_at AND token = :token);

-- name: refusing(site, host_id, since, series_id, most)!
-- The open incident of a refusal; host_id null: of the whole Lane.  Its evidence names the Series that were refused, for some live on
-- another host and were led to this one.
INSERT INTO lanes.incidents AS i (whose, site, host_id, kind, started_at, evidence)
VALUES ('refusal', :site, :host_id, 'refused', :since, jsonb_build_object('series', jsonb_build_array(:series_id::bigint)))
ON CONFLICT (whose, machine, site, host_id) WHERE ended_at IS NULL DO UPDATE SET
    evidence = i.evidence || jsonb_build_object('series', coalesce(i.evidence -> 'series', '[]') || (EXCLUDED.evidence -> 'series'))
WHERE NOT coalesce(i.evidence -> 'series' @> (EXCLUDED.evidence -> 'series') OR jsonb_array_length(i.evidence -> 'series') >= :most, false);

-- name: refused_no_more(site, host_id)^
-- Ends it.
UPDATE lanes.incidents SET ended_at = greatest(lanes.now(), started_at)
WHERE whose = 'refusal' AND site = :site AND host_id IS NOT DISTINCT FROM :host_id AND ended_at IS NULL
RETURNING id, started_at;

-- name: tell_owner_over(kind, event, body, told_event)!
-- The end of what the owner was told of, and of that alone.
SELECT lanes.tell_owner(:kind, :event, :body) FROM lanes.notices WHERE reader_id IS NULL AND event = :told_event;

-- name: learn(host_id, pace, at, times, floor)!
-- The interval at which a host refused us, and its own floor from now on: answers only narrow, so it must be above that already.  It binds
-- the very next request, whose place was settled a moment ago at the old one.
UPDATE lanes.hosts SET refused_pace = :pace, refused_pace_at = :at, refused_paces = :times, pace = greatest(pace, :floor),
    next_at = greatest(next_at, sent_at + greatest(pace, :floor, crawl_delay, owner_pace))
WHERE id = :host_id;

-- name: ease(host_id, before, pace, backoffs)!
-- A host on the way answered; what somebody widened since stands.
UPDATE lanes.hosts SET pace = :pace, backoffs = :backoffs, dead_since = NULL WHERE id = :host_id AND pace = :before;

-- name: bury(host_id, dead)!
-- A host that answers no more, or again.
UPDATE lanes.hosts SET dead_since = CASE WHEN :dead THEN coalesce(dead_since, lanes.now()) END WHERE id = :host_id;

-- name: keep_news(series_id, event, kind, chapter_ids)!
-- One Notice to each Reader of the Series for the Chapters of this Poll that were found after their Bookmark.
SELECT lanes.tell_readers(:series_id, :kind, :event, jsonb_build_object('chapters', to_jsonb(:chapter_ids::bigint[])));
