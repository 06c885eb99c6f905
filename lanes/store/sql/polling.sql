-- What a Lane says to the database.  The decisions themselves are the functions of rules/.

-- name: enrol(site, browser, switched_off)!
-- A Site's row of shared facts, whether it needs the browser, and whether the Lane that starts now polls at all.
INSERT INTO lanes.lanes AS l (site, browser, seen_at, switched_off) VALUES (:site, :browser, lanes.now(), :switched_off)
ON CONFLICT (site) DO UPDATE SET browser = EXCLUDED.browser, seen_at = EXCLUDED.seen_at, switched_off = EXCLUDED.switched_off;

-- name: make_hosts(site, names, paces)!
-- The rows of hosts that the registry names as slower than the default: they start there.
INSERT INTO lanes.hosts (site, name, pace, ready_at)
SELECT :site, u.name, u.pace, 'infinity' FROM unnest(:names::text[], :paces::interval[]) AS u (name, pace) ORDER BY u.name
ON CONFLICT (name) DO NOTHING;

-- name: slow_hosts(names, paces)!
-- ... and never were faster.
WITH held AS MATERIALIZED (
    SELECT h.id, u.pace FROM lanes.hosts h JOIN unnest(:names::text[], :paces::interval[]) AS u (name, pace) ON u.name = h.name
    WHERE h.pace < u.pace ORDER BY h.id FOR NO KEY UPDATE OF h
)
UPDATE lanes.hosts h SET pace = held.pace FROM held WHERE h.id = held.id;

-- name: look_anew(site, reason, rested)$
-- A Lane that starts may allow other networks than the last, and its Rest be another.
SELECT lanes.look_anew(:site, :reason, :rested);

-- name: see_lane(site)!
-- Its Lane is alive.
UPDATE lanes.lanes SET seen_at = lanes.now() WHERE site = :site;

-- name: bring_home(site)$
-- Whoever has queued at a hop's host for longer than it is known where to go on.
SELECT lanes.bring_home(:site);

-- name: claim(site, rest, lease, machine, address_pace, after)^
-- One Series for one idle slot.
SELECT * FROM lanes.claim(:site, :rest, :lease, :machine, :address_pace, :after);

-- name: known(series_id, identities)^
-- Which of these identities the Series has, and whether it has any at all.
SELECT array(SELECT identity FROM lanes.identities WHERE series_id = :series_id AND identity = ANY (:identities)) AS known,
       EXISTS (SELECT FROM lanes.identities WHERE series_id = :series_id) AS any_known;

-- name: known_words(series_id, titles, volumes, numbers, labels)
-- Which of these words a Chapter bears: its title; its volume, number and label where it has none.
SELECT DISTINCT w.n FROM unnest(:titles::text[], :volumes::text[], :numbers::text[], :labels::text[]) WITH ORDINALITY
    AS w (title, volume, number, label, n)
JOIN lanes.chapters c ON c.series_id = :series_id AND c.title = w.title
    AND coalesce(CASE WHEN c.title = '' THEN c.volume END, '') = coalesce(w.volume, '')
    AND coalesce(CASE WHEN c.title = '' THEN c.number END, '') = coalesce(w.number, '')
    AND CASE WHEN c.title = '' THEN c.label ELSE '' END = w.label;

-- name: told_numbers(series_id, since)
-- Volume, number and label of the Chapters found lately.
SELECT DISTINCT volume, number, label FROM lanes.chapters
WHERE series_id = :series_id AND number IS NOT NULL AND found_at > lanes.now() - :since::interval;

-- name: latest_number(series_id)$
-- The highest number of the main line.
SELECT max(number::numeric) FROM lanes.chapters
WHERE series_id = :series_id AND label IN ('chapter', 'episode') AND number ~ '^[0-9]{1,6}([.][0-9]{1,6})?$';

-- name: hold(series_id, token, hosts)$
-- Locks what a Poll touches; whether its lease still holds.
SELECT lanes.hold(:series_id, :token, :hosts);

-- name: keep_identities(series_id, identities)
-- Identities first: those really inserted are the ones that were new.
INSERT INTO lanes.identities (series_id, identity) SELECT :series_id, unnest(:identities::uuid[]) ON CONFLICT DO NOTHING
RETURNING identity;

-- name: keep_chapters(series_id, titles, urls, published, approximate, announced, volumes, numbers, labels)
-- The Chapters whose identities were all new.
INSERT INTO lanes.chapters (series_id, found_at, title, url, published_at, approximate, announced, volume, number, label)
SELECT :series_id, lanes.now(), c.title, c.url, c.published_at, c.approximate, c.announced, c.volume, c.number, c.label
FROM unnest(:titles::text[], :urls::text[], :published::timestamptz[], :approximate::boolean[], :announced::boolean[],
            :volumes::text[], :numbers::text[], :labels::text[]) WITH ORDINALITY
     AS c (title, url, published_at, approximate, announced, volume, number, label, n)
ORDER BY n DESC
RETURNING id, announced;

-- name: by_the_clock(series_id, claimed_at)^
-- The one clock, and by how much it went back since a claim.
SELECT lanes.now() AS now, lanes.gone_back(:series_id, :claimed_at, lanes.now()) AS back;

-- name: settle$
-- Ends a Poll and records its requests, in one transaction; whether its lease still held.
WITH settled AS MATERIALIZED (
    SELECT lanes.settle(
        :series_id, :token, :claimed_at, :host_id, :hosts, :host_sents,
        :next_check_at, :rest, :failures, :failure, :failure_kind, :refusals, :good, :gone,
        :validators, :etag, :last_modified, :validators_url, :body_hash, :unconditional,
        :hint_every, :hint_skip_hours, :hint_skip_days,
        :title, :home, :lifecycle, :guid_alone, :url, :found,
        :series_wait_until, :series_wait_reason,
        :pace_before, :pace, :backoffs, :latency, :unavailable_url,
        :host_wait_until, :host_wait_reason) AS held
)
SELECT held FROM settled, lanes.record(
    :series_id, :token, :claimed_at, :site, :machine, :trigger, :address_pace, :hops, held,
    :outcome, :detail, :new_chapters, :host_wait_until, :series_wait_until, :changed, :proof, :failure_kind);

-- name: put_back$
-- Puts a Poll back and records what it sent, if anything; whether its lease still held.
WITH put AS MATERIALIZED (
    SELECT lanes.put_back(:series_id, :token, :claimed_at, :hosts, :host_sents, :wait, :reason, :address, :resume, :queue_host_id, :sent, :lost) AS held
)
SELECT held FROM put, lanes.record(
    :series_id, :token, :claimed_at, :site, :machine, :trigger, :address_pace, :hops, held, 'put back', :reason, p_proof => :proof);

-- name: host_id(site, host, pace)$
-- The id of a host, made where there is none.
SELECT lanes.place_host(:site, :host, :pace);

-- name: follow_feed$
-- A web page named its feed: its Series follows that from now on; whether the lease still held.
WITH followed AS MATERIALIZED (
    SELECT lanes.follow_feed(:series_id, :token, :claimed_at, :hosts, :host_sents, :url, :feed_host_id) AS held
)
SELECT held FROM followed, lanes.record(
    :series_id, :token, :claimed_at, :site, :machine, :trigger, :address_pace, :hops, held, 'feed found', 'the page names its feed');

-- name: take_address(host_id, address, token, address_pace)$
-- A slot of a new or changed address before it is dialled; null: go on.
SELECT lanes.take_address(:host_id, :address, :token, :address_pace);

-- name: enter(site, host, pace, series_id, token, lease_until, address_pace)^
-- The next hop's host, its buckets spent as a claim spends them.
SELECT * FROM lanes.enter(:site, :host, :pace, :series_id, :token, :lease_until, :address_pace);

-- name: move_buckets(host_id, address, sent_at, token, address_pace, patience)$
-- A request written late moves its buckets first; when it may be written.
SELECT lanes.sent(:host_id, :address, :sent_at, :token, :address_pace, :patience);

-- name: see_clock()$
-- What each Lane does at start and once a minute.
SELECT lanes.see_clock();

-- name: shift_back()$
-- The clock went back: shift what is stored; null where somebody did already.
SELECT lanes.shift_back();

-- name: make_partitions()$
-- Today's and the next days' partitions of the poll record.
SELECT lanes.make_partitions();

-- name: eligible(site)$
-- How many Series of a Site are polled at all.
SELECT count(*) FROM lanes.series s WHERE s.site = :site AND lanes.is_eligible(s);

-- name: set_gap(site, gap)!
-- The effective Gap in force from now on; one that grew counts from the last request, which spent the smaller one.
UPDATE lanes.lanes l SET gap = :gap,
    next_at = l.next_at + greatest(greatest(:gap::interval, l.owner_gap) - lanes.gap_of(l), interval '0')
WHERE l.site = :site AND l.gap IS DISTINCT FROM :gap::interval;

-- name: gauges(site, machine, rest)^
-- The row-derived gauges of a Lane: one look at each Series of its Site, whose place in the queue says first that it is not due.
-- lanes.now() is taken once, for it is a statement of its own.
WITH clock AS MATERIALIZED (SELECT n.t, lanes.browser_trouble(n.t) AS trouble FROM (SELECT lanes.now() AS t OFFSET 0) n)
SELECT count(*) AS eligible,
       count(*) FILTER (WHERE due_at IS NOT NULL AND NOT held) AS due,
       count(*) FILTER (WHERE due_at IS NOT NULL AND held) AS held,
       max(t - due_at) FILTER (WHERE NOT held) AS behind,
       max(t - due_at) FILTER (WHERE held) AS oldest_held,
       max(t - force_poll_at) FILTER (WHERE turn = 0) AS oldest_pending,
       max(refused_until) AS refused_until,
       (SELECT count(*) FROM lanes.incidents i WHERE i.ended_at IS NULL AND (i.site = :site OR i.machine = :machine)) AS incidents
FROM (
    SELECT c.t, s.force_poll_at, s.turn, lanes.is_held(s, h, l, CASE WHEN l.browser THEN c.trouble END, c.t) AS held,
           CASE WHEN (s.claimable_at <= c.t OR s.not_before > c.t) AND lanes.due(s, :rest, c.t) IS NOT NULL
               THEN greatest(lanes.due_at(s, :rest), s.added_at) END AS due_at,
           CASE WHEN greatest(l.refused_until, h.refused_until) > c.t THEN greatest(l.refused_until, h.refused_until) END
               AS refused_until
    FROM clock c CROSS JOIN lanes.series s JOIN lanes.hosts h ON h.id = s.queue_host_id JOIN lanes.lanes l ON l.site = s.site
    WHERE s.site = :site AND lanes.is_eligible(s)
    OFFSET 0
) x;
