-- The claim: whose turn, which Series, what it spends (DESIGN 4.1).  One call, one short transaction.  Lock order: machine (while its
-- line is down), Lane (where its Site has a Gap), host, address, Series.

-- Gives the ready hosts of a closed address places 0.5 s apart, at most 10 minutes ahead, so that the next claims look elsewhere.
-- Only a hint: the address bucket alone decides.  A host with something pending gets the very next instant.
CREATE FUNCTION lanes.book(p_bucket inet, p_next timestamptz, p_pace interval, t timestamptz) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_tail   timestamptz;
    v_placed integer;
BEGIN
    SELECT greatest(booked_until, p_next) INTO v_tail FROM lanes.addresses WHERE address = p_bucket;
    WITH ready AS (
        SELECT id, pending_at, ready_at FROM lanes.hosts
        WHERE bucket = p_bucket AND ready_at <= t
        ORDER BY ready_at LIMIT 500 FOR NO KEY UPDATE SKIP LOCKED
    ), placed AS (
        SELECT id, pending_at IS NOT NULL AS pending, row_number() OVER (ORDER BY pending_at IS NULL, ready_at) - 1 AS n FROM ready
    )
    UPDATE lanes.hosts h
    SET ready_at = CASE WHEN p.pending THEN p_next ELSE least(v_tail + p.n * p_pace, t + interval '10 minutes') END
    FROM placed p WHERE h.id = p.id;
    GET DIAGNOSTICS v_placed = ROW_COUNT;
    UPDATE lanes.addresses SET booked_until = least(v_tail + v_placed * p_pace, t + interval '10 minutes') WHERE address = p_bucket;
END $$;

-- The bucket of an address that nobody used lately: made, locked and read anew, since another may just have made and spent it.
CREATE FUNCTION lanes.make_address(p_bucket inet, t timestamptz) RETURNS timestamptz LANGUAGE plpgsql AS $$
DECLARE
    v_next timestamptz;
BEGIN
    LOOP
        INSERT INTO lanes.addresses (address, used_at) VALUES (p_bucket, t) ON CONFLICT DO NOTHING;
        SELECT next_at INTO v_next FROM lanes.addresses WHERE address = p_bucket FOR NO KEY UPDATE;
        EXIT WHEN FOUND;  -- else it was pruned between the two
    END LOOP;
    RETURN v_next;
END $$;

-- What is remembered of trouble with a Series, its host and its Lane, or null where nothing is: so it is for nearly every Poll.
-- Durations in seconds.
CREATE FUNCTION lanes.memory(s lanes.series, h lanes.hosts, l lanes.lanes) RETURNS jsonb LANGUAGE sql STABLE
    RETURN CASE WHEN
        s.retired_at IS NOT NULL OR s.gone_at IS NOT NULL OR s.moving_to IS NOT NULL OR s.stays_off IS NOT NULL
        OR s.distrusted_at IS NOT NULL OR s.refused_since IS NOT NULL OR s.failure_kind IS NOT NULL OR s.spared_by IS NOT NULL
        OR h.refused_pace IS NOT NULL OR h.dead_since IS NOT NULL
        OR h.refused_at IS NOT NULL OR h.refused_until IS NOT NULL OR l.refused_at IS NOT NULL OR l.refused_until IS NOT NULL
    THEN jsonb_strip_nulls(jsonb_build_object(
        'retired', s.retired_at IS NOT NULL OR NULL, 'gone_at', s.gone_at,
        'moving_to', s.moving_to, 'moving_since', s.moving_since, 'moving_polls', s.moving_polls, 'stays_off', s.stays_off,
        'distrusted', s.distrusted_at IS NOT NULL OR NULL, 'refused_since', s.refused_since,
        'refused_pace', extract(epoch FROM h.refused_pace), 'refused_pace_at', h.refused_pace_at, 'refused_paces', h.refused_paces,
        'dead', h.dead_since IS NOT NULL OR NULL,
        'refusing', h.refused_at IS NOT NULL OR h.refused_until IS NOT NULL OR l.refused_at IS NOT NULL OR l.refused_until IS NOT NULL
            OR NULL))
    END;

-- Which Series of a host on a Site of one host, where the registry's Rest rules: pending (the oldest request first), put back, then
-- whatever has waited more than one further Rest (the longest first: nobody starves), then most Bookmarks, then longest unchecked.
CREATE FUNCTION lanes.next_of(p_host bigint, p_rest interval, t timestamptz) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN (
        SELECT id FROM (
            SELECT s.id, s.turn, s.force_poll_at, s.retry_at, s.bookmarks, s.latest_checked_at,
                   greatest(lanes.due_at(s, p_rest), s.added_at) AS due_at, lanes.rest_of(s, p_rest) AS rest
            FROM lanes.series s
            WHERE s.queue_host_id = p_host AND s.claimable_at <= t
                -- Cheaply first: what rests is neither of these, and most do.
                AND (s.turn < 2 OR s.lease_until IS NOT NULL
                     OR lanes.later(s.latest_checked_at, least(coalesce(s.rest, p_rest), '168 hours')) <= t)
                AND lanes.due(s, p_rest, t) IS NOT NULL
        ) x
        ORDER BY turn,
            CASE turn WHEN 0 THEN force_poll_at WHEN 1 THEN retry_at ELSE CASE WHEN due_at < t - rest THEN due_at END END NULLS LAST,
            bookmarks DESC, latest_checked_at, id
        LIMIT 1);
END $$;

-- Nothing of a host can be taken at t: its hint becomes the later of its gates and its earliest due instant, at least p_pause away.  With
-- the registry's Rest at hand that is exact, else it is what lanes.ready_at() knows.
CREATE FUNCTION lanes.pass_over(h lanes.hosts, p_rest interval, t timestamptz, p_pause interval) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE lanes.hosts SET ready_at = greatest(t + p_pause, CASE
        WHEN p_rest IS NULL THEN lanes.ready_at(h)
        ELSE greatest(h.busy_until, h.next_at, h.not_before, coalesce(
            (SELECT min(greatest(lanes.due_at(s, p_rest), s.not_before)) FROM lanes.series s WHERE s.queue_host_id = h.id), 'infinity'))
        END)
    WHERE id = h.id;
END $$;

-- One Series for one idle slot.  p_rest: the registry's, on a Site of one host (null: each Series has its own).  verdict: claimed (the columns after host_ready_at are the Poll), booked or moved (ask again at once),
-- none (sleep for wait, null: until something changes), clock (the clock went back: shift first).  p_after bounds the scan from below by the ready_at taken last.
CREATE FUNCTION lanes.claim(
    p_site text, p_rest interval, p_lease interval, p_machine text, p_address_pace interval, p_after timestamptz
) RETURNS TABLE (
    verdict text, wait interval, host_ready_at timestamptz,
    series_id bigint, key text, token uuid, trigger text, claimed_at timestamptz, url text, host_id bigint, host text, host_pace interval,
    lane_gap interval, address text, dial text, resume jsonb, etag text, last_modified text, validators_url text, body_hash bytea,
    unconditional_at timestamptz, rest interval, failures integer, refusals integer, failing_since timestamptz, good_at timestamptz,
    news_from timestamptz, guid_alone boolean, hint_every interval, hint_skip_hours integer, hint_skip_days smallint, discovering boolean,
    abandoned integer, lapsed boolean, pace interval, latency interval, backoffs integer, unavailable_url bytea, unavailable_at timestamptz,
    answers jsonb, failing text, us boolean, memory jsonb
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    t         CONSTANT timestamptz := lanes.now();
    m         lanes.machines;
    l         lanes.lanes;
    h         lanes.hosts;
    s         lanes.series;
    v_seen    timestamptz;
    v_down    boolean;
    v_gap     interval;
    v_browser lanes.stop;
    v_series  bigint;
    v_lost    boolean;
    v_astray  boolean;
    v_dial    inet;
    v_bucket  inet;
    v_next    timestamptz;
    v_token   CONSTANT uuid := gen_random_uuid();
BEGIN
    SELECT c.latest_seen, m.us_since IS NOT NULL INTO v_seen, v_down
    FROM lanes.clock c LEFT JOIN lanes.machines m ON m.machine = p_machine;
    IF t < v_seen - interval '5 seconds' THEN
        verdict := 'clock'; RETURN NEXT; RETURN;
    END IF;
    -- While the line of its machine is down, one Poll a minute of all its Lanes is the probe.
    IF v_down THEN
        SELECT * INTO m FROM lanes.machines WHERE machine = p_machine FOR NO KEY UPDATE SKIP LOCKED;
        IF NOT FOUND OR (m.us_since IS NOT NULL AND m.probe_at > t) THEN
            verdict := 'none';
            wait := coalesce(m.probe_at - t, interval '1 second');
            RETURN NEXT; RETURN;
        END IF;
    END IF;
    SELECT * INTO l FROM lanes.lanes WHERE site = p_site;
    IF lanes.gap_of(l) IS NOT NULL THEN
        SELECT * INTO l FROM lanes.lanes WHERE site = p_site FOR NO KEY UPDATE;
        v_gap := lanes.gap_of(l);
    END IF;
    IF l.paused_at IS NOT NULL OR l.refused_until > t OR l.next_at > t THEN
        verdict := 'none';
        wait := CASE WHEN l.paused_at IS NULL THEN greatest(l.refused_until, l.next_at) - t END;
        RETURN NEXT; RETURN;
    END IF;
    IF l.browser THEN
        v_browser := lanes.browser_stop(l, p_rest, t);
        IF v_browser.reason IS NOT NULL THEN
            verdict := 'none';
            wait := v_browser.until - t;
            RETURN NEXT; RETURN;
        END IF;
    END IF;

    -- Whose turn: hosts with something pending first, then the host that has been ready longest.
    SELECT * INTO h FROM lanes.hosts
    WHERE site = p_site AND pending_at IS NOT NULL AND ready_at <= t
    ORDER BY ready_at LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        SELECT * INTO h FROM lanes.hosts
        WHERE site = p_site AND ready_at <= t AND ready_at >= p_after
        ORDER BY ready_at LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED;
    END IF;
    IF NOT FOUND THEN
        verdict := 'none';
        wait := (SELECT nullif(min(ready_at), 'infinity') FROM lanes.hosts WHERE site = p_site AND ready_at > t) - t;
        RETURN NEXT; RETURN;
    END IF;

    -- Which Series there: on `feeds` pending or put back, else longest due.
    IF greatest(h.busy_until, h.next_at, h.not_before) > t THEN
        v_series := NULL;
    ELSIF p_rest IS NULL THEN
        SELECT x.id INTO v_series FROM (
            (SELECT id, turn FROM lanes.series WHERE queue_host_id = h.id AND turn = 0 AND claimable_at <= t ORDER BY claimable_at LIMIT 1)
            UNION ALL
            (SELECT id, turn FROM lanes.series WHERE queue_host_id = h.id AND turn = 1 AND claimable_at <= t ORDER BY claimable_at LIMIT 1)
            UNION ALL
            (SELECT id, turn FROM lanes.series WHERE queue_host_id = h.id AND turn = 2 AND claimable_at <= t ORDER BY claimable_at LIMIT 1)
        ) x ORDER BY x.turn LIMIT 1;
    ELSE
        v_series := lanes.next_of(h.id, p_rest, t);
    END IF;
    IF v_series IS NULL THEN
        PERFORM lanes.pass_over(h, p_rest, t, interval '10 milliseconds');
        verdict := 'moved'; RETURN NEXT; RETURN;
    END IF;
    -- Under its host's lock nobody else moves its lease, where it queues, or where it goes on.
    SELECT lease_token IS NOT NULL, resume_until <= t AND host_id <> h.id,
           CASE WHEN coalesce(resume_until > t, true) THEN retry_address END,
           CASE WHEN resume_until <= t OR retry_address IS NULL THEN h.bucket ELSE lanes.bucket(retry_address) END
    INTO v_lost, v_astray, v_dial, v_bucket FROM lanes.series WHERE id = v_series;
    IF v_bucket IS NOT NULL THEN
        SELECT next_at INTO v_next FROM lanes.addresses WHERE address = v_bucket FOR NO KEY UPDATE;
        IF NOT FOUND THEN v_next := lanes.make_address(v_bucket, t); END IF;
        IF v_next > t THEN
            PERFORM lanes.book(v_bucket, v_next, p_address_pace, t);
            -- This host may wait for another address than its own, or stand behind the 500: it makes room all the same.
            UPDATE lanes.hosts SET ready_at = v_next WHERE id = h.id AND ready_at <= t;
            verdict := 'booked'; RETURN NEXT; RETURN;
        END IF;
    END IF;
    IF v_lost OR v_astray THEN
        SELECT * INTO s FROM lanes.series WHERE id = v_series FOR NO KEY UPDATE;
    END IF;

    RETURN QUERY WITH series AS (
        UPDATE lanes.series s SET
            earlier_checked_at = s.latest_checked_at, latest_checked_at = t,
            lease_until = t + p_lease, lease_token = v_token, lease_machine = p_machine, lease_trigger = lanes.due(s, p_rest, t),
            abandoned = s.abandoned + v_lost::integer,
            retry_at = NULL, retry_reason = NULL, retry_address = NULL
        WHERE s.id = v_series AND s.queue_host_id = h.id AND NOT v_astray
          AND lanes.due(s, p_rest, t) IS NOT NULL AND (lanes.gate(s, h, v_next, l, v_browser, true, t)).reason IS NULL
        RETURNING
            'claimed'::text, NULL::interval, greatest(h.ready_at, '2000-01-01Z'),
            s.id, s.key::text, v_token, s.lease_trigger, t, s.url, h.id, h.name::text, lanes.pace_of(h),
            v_gap, host(h.address), host(v_dial), CASE WHEN s.resume_until > t THEN s.resume END,
            s.etag, s.last_modified, s.validators_url, s.body_hash,
            s.unconditional_at, s.rest::interval, s.failures::integer, s.refusals::integer, s.failing_since, s.good_at,
            s.news_from, s.guid_alone, s.hint_every::interval, s.hint_skip_hours::integer, s.hint_skip_days::smallint, s.discovering,
            s.abandoned::integer, v_lost, h.pace::interval, h.latency, h.backoffs::integer, h.unavailable_url, h.unavailable_at,
            h.answers, h.failing, m.us_since IS NOT NULL, lanes.memory(s, h, l)
    ), host AS (
        UPDATE lanes.hosts SET
            next_at = t + lanes.pace_of(h), sent_at = t, busy_until = t + p_lease, busy_token = v_token, ready_at = t + p_lease,
            pending_at = CASE WHEN h.pending_at IS NOT NULL THEN
                (SELECT min(claimable_at) FROM lanes.series WHERE queue_host_id = h.id AND turn = 0 AND id <> v_series) END
        FROM series WHERE hosts.id = h.id
    ), address AS (
        UPDATE lanes.addresses SET next_at = t + p_address_pace, used_at = t, used_by = v_token
        FROM series WHERE addresses.address = v_bucket
    )
    SELECT * FROM series;
    IF FOUND THEN
        IF v_lost THEN PERFORM lanes.record_abandoned(s, h, v_gap); END IF;
        IF v_gap IS NOT NULL THEN UPDATE lanes.lanes SET next_at = t + v_gap WHERE site = p_site; END IF;
        IF m.us_since IS NOT NULL THEN
            UPDATE lanes.machines SET probe_at = t + interval '1 minute' WHERE machine = p_machine;
        END IF;
        RETURN;
    END IF;

    IF v_astray THEN
        -- Where to go on is forgotten: it is asked from its own URL again, in its own host's turn, which is locked without waiting.
        UPDATE lanes.hosts SET ready_at = least(ready_at, t)
        WHERE id = (SELECT id FROM lanes.hosts WHERE id = s.host_id FOR NO KEY UPDATE SKIP LOCKED);
        IF FOUND THEN
            UPDATE lanes.series SET resume = NULL, resume_until = NULL, retry_address = NULL, queue_host_id = s.host_id WHERE id = v_series;
        END IF;
    END IF;
    PERFORM lanes.pass_over(h, p_rest, t, CASE WHEN v_astray THEN interval '10 milliseconds' ELSE interval '1 second' END);
    verdict := 'moved'; RETURN NEXT;
END $$;

-- A worker died with this lease: its attempt goes into the record (whether it wrote a request is not known).
CREATE FUNCTION lanes.record_abandoned(s lanes.series, h lanes.hosts, p_gap interval) RETURNS void LANGUAGE sql AS $$
    INSERT INTO lanes.polls (
        claimed_at, token, series_id, site, host, address, machine, trigger, outcome, host_pace, address_pace, lane_gap, ended_at)
    VALUES (s.latest_checked_at, s.lease_token, s.id, s.site, h.name, h.address, s.lease_machine, s.lease_trigger, 'abandoned',
            lanes.pace_of(h), '0', p_gap, s.lease_until)
    ON CONFLICT DO NOTHING
$$;

-- Where a chain goes on is known for an hour.  Whoever queues at a hop's host longer than that comes home, whatever closes that host; at
-- most 500 at a time, and none whose hosts are locked.
CREATE FUNCTION lanes.bring_home(p_site text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    t       CONSTANT timestamptz := lanes.now();
    v_ids   bigint[] := array(
        SELECT id FROM lanes.series
        WHERE resume_until <= t AND site = p_site AND queue_host_id <> host_id AND coalesce(lease_until <= t, true) LIMIT 500);
    v_hosts bigint[];
    s       lanes.series;
    h       lanes.hosts;
BEGIN
    IF v_ids = '{}' THEN RETURN; END IF;
    v_hosts := array(
        SELECT id FROM lanes.hosts
        WHERE id IN (SELECT unnest(ARRAY[host_id, queue_host_id]) FROM lanes.series WHERE id = ANY (v_ids))
        ORDER BY id FOR NO KEY UPDATE SKIP LOCKED);
    FOR s IN
        SELECT * FROM lanes.series
        WHERE id = ANY (v_ids) AND resume_until <= t AND coalesce(lease_until <= t, true)
          AND host_id = ANY (v_hosts) AND queue_host_id = ANY (v_hosts)
        ORDER BY id FOR NO KEY UPDATE
    LOOP
        IF s.lease_token IS NOT NULL THEN
            SELECT * INTO h FROM lanes.hosts WHERE id = s.queue_host_id;
            PERFORM lanes.record_abandoned(s, h, NULL);
        END IF;
        UPDATE lanes.series SET resume = NULL, resume_until = NULL, retry_address = NULL, queue_host_id = s.host_id WHERE id = s.id;
    END LOOP;
    UPDATE lanes.hosts SET ready_at = least(ready_at, t) WHERE id = ANY (v_hosts);
END $$;

-- A Lane starts: other networks may be allowed now, so whoever waits for our own guard is looked at again; and where the registry's Rest
-- rules (p_rested), so is every host, for it may be shorter now.
CREATE FUNCTION lanes.look_anew(p_site text, p_reason text, p_rested boolean) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    t        CONSTANT timestamptz := lanes.now();
    v_series bigint[] := array(
        SELECT id FROM lanes.series WHERE site = p_site AND not_before > t AND starts_with(not_before_reason, p_reason) AND tier = 'poll');
    v_hosts  bigint[] := array(
        SELECT id FROM lanes.hosts
        WHERE (p_rested AND site = p_site) OR id IN (SELECT queue_host_id FROM lanes.series WHERE id = ANY (v_series))
        ORDER BY id FOR NO KEY UPDATE);
BEGIN
    v_series := array(
        SELECT id FROM lanes.series
        WHERE id = ANY (v_series) AND starts_with(not_before_reason, p_reason) AND queue_host_id = ANY (v_hosts)
        ORDER BY id FOR NO KEY UPDATE);
    UPDATE lanes.series SET not_before = NULL, not_before_reason = NULL, next_check_at = t WHERE id = ANY (v_series);
    UPDATE lanes.hosts SET ready_at = least(ready_at, t) WHERE id = ANY (v_hosts);
END $$;
