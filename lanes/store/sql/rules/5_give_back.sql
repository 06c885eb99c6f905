-- What was charged and was not the Series' fault goes back (DESIGN 4.4).

-- The contract of lanes.give_back(p_series, p_since, p_machine, p_hosts): everything that the Series p_series[i] was charged by Polls claimed
-- at or after p_since[i] is given back, as the poll record (polls.changed) tells it; returns how many Series got something back.
--   * p_machine not null: only what that machine charged by attempts without proof (us); null: what any machine charged (a Site).
--   * Counters: failures, failing_since, failure, failure_kind and gone_at as they stood before the first of these charges, where another
--     machine's came in between: as that left them.  Schedule: due after one Rest again, of a Site that fails after an hour at
--     least.  A Series that such a charge retired comes back, and its Notice goes; where that was delivered, its Reader is owed
--     another, that it is back.
--   * p_hosts: the hosts' intervals and backoffs as well; a host that died of them lives, and the wait that its death laid is lifted.
--   * Only what still is as the charge left it is touched: whatever anybody wrote since stands.  A record whose charge was given back
--     says so ("given back", "interval given back": [false, true]) and never counts again, so a second call does nothing.
--   * Locks: hosts by id, then Series by id.  A caller inside a settle holds the host that all p_series live on, and passes p_hosts false.
CREATE FUNCTION lanes.give_back(p_series bigint[], p_since timestamptz[], p_machine text, p_hosts boolean) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    v_hosts bigint[];
    v_given integer;
BEGIN
    SELECT coalesce(array_agg(id), '{}') INTO v_hosts FROM (
        SELECT id FROM lanes.hosts
        WHERE id IN (SELECT host_id FROM lanes.series WHERE id = ANY (p_series))
           OR (p_hosts AND name IN (SELECT c.host FROM lanes.charges(p_series, p_since, p_machine) c))
        ORDER BY id FOR NO KEY UPDATE) x;
    PERFORM 1 FROM lanes.series WHERE id = ANY (p_series) ORDER BY id FOR NO KEY UPDATE;

    v_given := lanes.give_back_series(p_series, p_since, p_machine);
    IF p_hosts THEN
        PERFORM lanes.give_back_hosts(v_hosts, p_series, p_since, p_machine);
    END IF;
    UPDATE lanes.polls p SET changed = p.changed || '{"given back": [false, true]}'
        || CASE WHEN p_hosts THEN '{"interval given back": [false, true]}'::jsonb ELSE '{}' END
    FROM lanes.charges(p_series, p_since, p_machine) c
    WHERE p.claimed_at = c.claimed_at AND p.token = c.token AND p.hop = c.hop
      AND NOT (p.changed ?& ARRAY['given back', 'interval given back']);
    UPDATE lanes.hosts h SET ready_at = least(h.ready_at, lanes.ready_at(h)) WHERE h.id = ANY (v_hosts);
    RETURN v_given;
END $$;

-- Whether a Poll raised a value: polls.changed has [before, after].
CREATE FUNCTION lanes.rose(changed jsonb, what text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN coalesce((changed -> what ->> 1)::numeric > (changed -> what ->> 0)::numeric, false);

-- The records that charged these Series, or their hosts by them.  after_all orders them truly, whatever the clock did in between.
CREATE FUNCTION lanes.charges(p_series bigint[], p_since timestamptz[], p_machine text) RETURNS TABLE (
    series_id bigint, claimed_at timestamptz, token uuid, hop smallint, host text, host_wait_until timestamptz, changed jsonb,
    after_all timestamptz
) LANGUAGE sql STABLE AS $$
    SELECT p.series_id, p.claimed_at, p.token, p.hop, p.host, p.host_wait_until, p.changed, p.claimed_at + p.shifted
    FROM unnest(p_series, p_since) AS u (id, since) JOIN lanes.polls p ON p.series_id = u.id AND p.claimed_at >= u.since
    WHERE (p_machine IS NULL OR (p.machine = p_machine AND NOT p.proof AND p.shifted = (SELECT lanes.shifted())))
      AND (lanes.rose(p.changed, 'failures') OR lanes.rose(p.changed, 'host pace') OR lanes.rose(p.changed, 'host backoffs'))
$$;

-- Counters, schedule and retirement of the Series, all locked.
CREATE FUNCTION lanes.give_back_series(p_series bigint[], p_since timestamptz[], p_machine text) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    v_given integer;
BEGIN
    WITH ours AS MATERIALIZED (
        SELECT * FROM lanes.charges(p_series, p_since, p_machine) c WHERE lanes.rose(c.changed, 'failures')
    ), others AS (  -- the last word of anybody else about a counter
        SELECT p.series_id, max(p.claimed_at + p.shifted) AS after_all
        FROM unnest(p_series, p_since) AS u (id, since) JOIN lanes.polls p ON p.series_id = u.id AND p.claimed_at >= u.since
        WHERE p.changed ? 'failures' AND NOT EXISTS (
            SELECT FROM ours o WHERE o.claimed_at = p.claimed_at AND o.token = p.token AND o.hop = p.hop)
        GROUP BY p.series_id
    ), charged AS (
        SELECT o.series_id, min(o.claimed_at) AS since,
               (array_agg(o.changed -> 'failures' ->> 0 ORDER BY o.after_all))[1]::integer AS before,
               (array_agg(o.changed -> 'failures' ->> 1 ORDER BY o.after_all DESC))[1]::integer AS after,
               (array_agg(o.changed ? 'given back' ORDER BY o.after_all DESC))[1] AS given_back,
               bool_or(o.changed ? 'retired') AS retired
        FROM ours o LEFT JOIN others x USING (series_id)
        WHERE coalesce(o.after_all > x.after_all, true)
        GROUP BY o.series_id
    ), given AS (
        UPDATE lanes.series s SET
            failures = c.before,
            failing_since = CASE WHEN c.before > 0 THEN s.failing_since END,
            failure = CASE WHEN c.before > 0 THEN coalesce(lanes.failed_before(s.id, c.since) ->> 'detail', s.failure) END,
            failure_kind = CASE WHEN c.before > 0 THEN coalesce(lanes.failed_before(s.id, c.since) ->> 'kind', s.failure_kind) END,
            gone_at = CASE WHEN s.gone_at < c.since THEN s.gone_at END,
            next_check_at = CASE
                WHEN s.tier <> 'poll' THEN NULL
                WHEN p_machine IS NULL THEN greatest(  -- its Site is looked at once an hour by each
                    least(s.next_check_at, lanes.later(s.latest_checked_at, s.rest)), lanes.later(s.latest_checked_at, '1 hour'))
                WHEN s.rest IS NULL THEN '-infinity'
                ELSE least(s.next_check_at, lanes.later(s.latest_checked_at, s.rest)) END,
            retired_at = CASE WHEN NOT (c.retired AND s.retired_at >= c.since) THEN s.retired_at END,
            retired_reason = CASE WHEN NOT (c.retired AND s.retired_at >= c.since) THEN s.retired_reason END
        FROM charged c
        WHERE s.id = c.series_id AND s.failures = c.after AND NOT c.given_back
        RETURNING s.id, c.since, c.retired AND s.retired_at IS NULL AS lives
    ), untold AS (
        DELETE FROM lanes.notices n USING given g
        WHERE g.lives AND n.series_id = g.id AND n.kind = 'stopped' AND n.made_at >= g.since AND n.delivered_at IS NULL
    ), told AS (
        INSERT INTO lanes.notices (reader_id, series_id, kind, event, body, made_at)
        SELECT n.reader_id, n.series_id, 'back again', lanes.event('back', n.series_id, lanes.now()), '{}', lanes.now()
        FROM given g JOIN lanes.notices n ON n.series_id = g.id AND n.kind = 'stopped' AND n.made_at >= g.since AND n.delivered_at IS NOT NULL
        JOIN lanes.bookmarks b ON b.reader_id = n.reader_id AND b.series_id = n.series_id AND NOT b.muted
        WHERE g.lives
        ON CONFLICT ON CONSTRAINT one_per_reader_and_event DO NOTHING
    )
    SELECT count(*) INTO v_given FROM given;
    RETURN v_given;
END $$;

-- How a Series failed last before an instant, in the record's words.
CREATE FUNCTION lanes.failed_before(p_series bigint, p_before timestamptz) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object('detail', p.detail, 'kind', p.failure_kind) FROM lanes.polls p
    WHERE p.series_id = p_series AND p.claimed_at < p_before AND lanes.rose(p.changed, 'failures') AND NOT p.changed ? 'given back'
    ORDER BY p.claimed_at DESC LIMIT 1
$$;

-- The intervals of hosts, all locked.
CREATE FUNCTION lanes.give_back_hosts(p_hosts bigint[], p_series bigint[], p_since timestamptz[], p_machine text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    WITH ours AS MATERIALIZED (
        SELECT h.id, c.* FROM lanes.charges(p_series, p_since, p_machine) c JOIN lanes.hosts h ON h.name = c.host AND h.id = ANY (p_hosts)
        WHERE lanes.rose(c.changed, 'host pace') OR lanes.rose(c.changed, 'host backoffs')
    ), others AS (  -- by Series that are not among these, too
        SELECT h.id, max(p.claimed_at + p.shifted) AS after_all
        FROM lanes.polls p JOIN lanes.hosts h ON h.name = p.host AND h.id = ANY (p_hosts)
        WHERE p.claimed_at >= (SELECT min(claimed_at) FROM ours) AND p.changed ?| ARRAY['host pace', 'host backoffs']
          AND NOT EXISTS (SELECT FROM ours o WHERE o.claimed_at = p.claimed_at AND o.token = p.token AND o.hop = p.hop)
        GROUP BY h.id
    ), widened AS (
        SELECT o.id, min(o.claimed_at) AS since,
               (array_agg(o.changed -> 'host pace' ->> 0 ORDER BY o.after_all) FILTER (WHERE o.changed ? 'host pace'))[1]::float8 AS pace,
               (array_agg(o.changed -> 'host pace' ->> 1 ORDER BY o.after_all DESC) FILTER (WHERE o.changed ? 'host pace'))[1]::float8 AS pace_left,
               (array_agg(o.changed -> 'host backoffs' ->> 0 ORDER BY o.after_all) FILTER (WHERE o.changed ? 'host backoffs'))[1]::integer AS backoffs,
               (array_agg(o.changed -> 'host backoffs' ->> 1 ORDER BY o.after_all DESC) FILTER (WHERE o.changed ? 'host backoffs'))[1]::integer AS backoffs_left,
               (array_agg(o.changed ? 'interval given back' ORDER BY o.after_all DESC))[1] AS given_back,
               array_agg(o.host_wait_until) AS waits
        FROM ours o LEFT JOIN others x ON x.id = o.id
        WHERE coalesce(o.after_all > x.after_all, true)
        GROUP BY o.id
    )
    UPDATE lanes.hosts h SET
        pace = CASE WHEN h.pace = make_interval(secs => w.pace_left) THEN make_interval(secs => w.pace) ELSE h.pace END,
        backoffs = CASE WHEN h.backoffs = w.backoffs_left THEN w.backoffs ELSE h.backoffs END,
        dead_since = CASE WHEN h.dead_since < w.since THEN h.dead_since END,
        not_before = CASE WHEN h.dead_since >= w.since AND h.not_before = ANY (w.waits) THEN '-infinity' ELSE h.not_before END,
        not_before_reason = CASE WHEN h.dead_since >= w.since AND h.not_before = ANY (w.waits) THEN NULL ELSE h.not_before_reason END
    FROM widened w
    WHERE h.id = w.id AND NOT w.given_back;
END $$;

-- It was us: what these Series seemed to say about their hosts since p_since, they did not say.  An incident of a Site that rests on
-- nothing older is withdrawn, with the word to the owner if that was not delivered.  Comes after
-- lanes.give_back, under its locks.
CREATE FUNCTION lanes.withdraw(p_series bigint[], p_since timestamptz) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_incident bigint;
BEGIN
    UPDATE lanes.hosts h SET answers = (
        SELECT coalesce(jsonb_agg(a ORDER BY n), '[]') FROM jsonb_array_elements(h.answers) WITH ORDINALITY AS e (a, n)
        WHERE NOT ((a ->> 0)::bigint = ANY (p_series) AND coalesce((a ->> 2)::timestamptz >= p_since, false)))
    WHERE h.id IN (SELECT host_id FROM lanes.series WHERE id = ANY (p_series)) AND h.answers <> '[]';
    FOR v_incident IN
        DELETE FROM lanes.incidents i
        WHERE i.whose = 'site' AND i.ended_at IS NULL AND i.started_at >= p_since
          AND i.host_id IN (SELECT host_id FROM lanes.series WHERE id = ANY (p_series))
        RETURNING i.id
    LOOP
        DELETE FROM lanes.notices WHERE event = 'incident:' || v_incident AND reader_id IS NULL AND delivered_at IS NULL;
        UPDATE lanes.series s SET
            spared_by = NULL,
            next_check_at = CASE
                WHEN s.tier <> 'poll' THEN NULL
                WHEN s.rest IS NULL THEN '-infinity'
                ELSE least(s.next_check_at, lanes.later(s.latest_checked_at, s.rest)) END
        WHERE s.spared_by = v_incident AND s.id = ANY (p_series);
    END LOOP;
    UPDATE lanes.hosts h SET failing = NULL, ready_at = least(h.ready_at, lanes.ready_at(h))
    WHERE h.failing IS NOT NULL AND h.id IN (SELECT host_id FROM lanes.series WHERE id = ANY (p_series))
      AND NOT EXISTS (SELECT FROM lanes.incidents i WHERE i.whose = 'site' AND i.host_id = h.id AND i.ended_at IS NULL);
END $$;

-- Whether a single host is all that anybody follows.
CREATE FUNCTION lanes.only_host() RETURNS boolean LANGUAGE sql STABLE AS $$
    WITH first AS (
        SELECT s.host_id FROM lanes.series s
        WHERE s.tier = 'poll' AND s.url <> '' AND s.bookmarks > 0 AND s.paused_at IS NULL AND s.retired_at IS NULL AND s.lifecycle <> 'finished'
        ORDER BY s.host_id LIMIT 1
    )
    SELECT EXISTS (SELECT FROM first) AND NOT EXISTS (
        SELECT FROM lanes.series s
        WHERE s.host_id > (SELECT host_id FROM first)
          AND s.tier = 'poll' AND s.url <> '' AND s.bookmarks > 0 AND s.paused_at IS NULL AND s.retired_at IS NULL AND s.lifecycle <> 'finished')
$$;
