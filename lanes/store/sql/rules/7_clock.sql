-- The clock that went back, and the poll record's days.

-- By how much an instant that was taken a moment ago is ahead of the clock: it went back since, and what is stored was shifted already.
CREATE FUNCTION lanes.ahead(p_at timestamptz) RETURNS interval LANGUAGE sql STABLE AS $$
    SELECT CASE
        WHEN p_at <= lanes.now() + interval '5 seconds' OR (SELECT latest_seen FROM lanes.clock) > lanes.now() + interval '5 seconds'
        THEN interval '0'
        ELSE p_at - lanes.now() END
$$;

-- The last answers of a host, since when each fails shifted.
CREATE FUNCTION lanes.answers_back(p_answers jsonb, p_back interval) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT coalesce(jsonb_agg(
        CASE WHEN a ->> 2 IS NULL THEN a ELSE jsonb_set(a, '{2}', to_jsonb((a ->> 2)::timestamptz - p_back)) END ORDER BY n), '[]')
    FROM jsonb_array_elements(p_answers) WITH ORDINALITY AS x (a, n)
$$;

-- The clock went back: shifts every stored instant of pace by the difference, in one transaction, so that nobody is silenced.  All rows are
-- locked first, in the one order, because an UPDATE of a whole table goes by its own.
CREATE FUNCTION lanes.shift_back() RETURNS interval LANGUAGE plpgsql AS $$
DECLARE
    t      CONSTANT timestamptz := lanes.now();
    v_back interval;
BEGIN
    SELECT greatest(c.latest_seen, t) - t INTO v_back FROM lanes.clock c FOR UPDATE;
    IF v_back <= interval '5 seconds' THEN RETURN NULL; END IF;
    PERFORM FROM lanes.machines ORDER BY machine FOR NO KEY UPDATE;
    PERFORM FROM lanes.lanes ORDER BY site FOR NO KEY UPDATE;
    PERFORM FROM lanes.hosts ORDER BY id FOR NO KEY UPDATE;
    PERFORM FROM lanes.addresses ORDER BY address FOR NO KEY UPDATE;
    PERFORM FROM lanes.series ORDER BY id FOR NO KEY UPDATE;
    PERFORM FROM lanes.browser FOR NO KEY UPDATE;
    PERFORM FROM lanes.browser_pages ORDER BY token FOR NO KEY UPDATE;
    UPDATE lanes.clock SET latest_seen = t;
    INSERT INTO lanes.clock_shifts (at, back) VALUES (t, v_back);
    UPDATE lanes.machines SET shaken_at = t, asked_at = asked_at - v_back, us_since = us_since - v_back, probe_at = probe_at - v_back,
        excused_at = excused_at - v_back;
    UPDATE lanes.lanes SET next_at = next_at - v_back, refused_until = refused_until - v_back, refused_since = refused_since - v_back,
        refused_at = refused_at - v_back, good_sent_at = good_sent_at - v_back;
    UPDATE lanes.browser SET heartbeat_at = heartbeat_at - v_back, browser_lost_until = browser_lost_until - v_back,
        trouble_until = trouble_until - v_back, others_until = others_until - v_back;
    UPDATE lanes.browser_pages SET asked_at = asked_at - v_back, taken_at = taken_at - v_back, deadline_at = deadline_at - v_back,
        sent_at = sent_at - v_back, stop_until = stop_until - v_back;
    UPDATE lanes.hosts SET next_at = next_at - v_back, sent_at = sent_at - v_back, not_before = not_before - v_back,
        ready_at = ready_at - v_back, busy_until = busy_until - v_back, pending_at = pending_at - v_back,
        unavailable_at = unavailable_at - v_back, refused_until = refused_until - v_back, refused_since = refused_since - v_back,
        refused_pace_at = refused_pace_at - v_back, refused_at = refused_at - v_back, good_sent_at = good_sent_at - v_back,
        dead_since = dead_since - v_back, answers = lanes.answers_back(answers, v_back);
    UPDATE lanes.addresses SET next_at = next_at - v_back, booked_until = booked_until - v_back, used_at = used_at - v_back;
    UPDATE lanes.robots SET asked_at = asked_at - v_back, again_at = again_at - v_back, read_at = read_at - v_back,
        crawl_delay_since = crawl_delay_since - v_back, unanswered_since = unanswered_since - v_back;
    UPDATE lanes.words SET said_at = said_at - v_back, ended_at = ended_at - v_back, before_until = before_until - v_back;
    UPDATE lanes.incidents SET started_at = started_at - v_back, ended_at = ended_at - v_back, told_at = told_at - v_back,
        owner_told_at = owner_told_at - v_back, over_told_at = over_told_at - v_back;
    UPDATE lanes.series SET next_check_at = next_check_at - v_back, latest_checked_at = latest_checked_at - v_back,
        earlier_checked_at = earlier_checked_at - v_back, force_poll_at = force_poll_at - v_back, sighted_at = sighted_at - v_back,
        not_before = not_before - v_back, lease_until = lease_until - v_back, retry_at = retry_at - v_back,
        resume_until = resume_until - v_back, bookmarked_at = bookmarked_at - v_back, revived_at = revived_at - v_back,
        unconditional_at = unconditional_at - v_back, failing_since = failing_since - v_back, gone_at = gone_at - v_back,
        moving_since = moving_since - v_back, refused_since = refused_since - v_back;
    RETURN v_back;
END $$;

-- Notes that this instant was seen; the clock of latest_seen never goes back by this.
CREATE FUNCTION lanes.see_clock() RETURNS void LANGUAGE sql AS $$
    UPDATE lanes.clock SET latest_seen = lanes.now() WHERE latest_seen < lanes.now()
$$;

-- Makes today's and the next two days' partitions of the poll record.  A day that already has strays keeps them where they are.
-- Rows are only ever added to a day, which is dropped whole: reading it all again to vacuum it would be for nothing.
CREATE FUNCTION lanes.make_partitions() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    d    date;
    name text;
BEGIN
    FOR d IN SELECT (lanes.now() AT TIME ZONE 'UTC')::date + n FROM generate_series(0, 2) n LOOP
        name := 'polls_' || to_char(d, 'YYYYMMDD');
        CONTINUE WHEN to_regclass('lanes.' || name) IS NOT NULL
            OR EXISTS (SELECT FROM lanes.polls_stray WHERE claimed_at >= d::timestamp AT TIME ZONE 'UTC'
                                                       AND claimed_at < (d + 1)::timestamp AT TIME ZONE 'UTC');
        EXECUTE format('CREATE TABLE IF NOT EXISTS lanes.%I PARTITION OF lanes.polls FOR VALUES FROM (%L) TO (%L) '
                       'WITH (autovacuum_vacuum_insert_threshold = -1)',
                       name, d::timestamp AT TIME ZONE 'UTC', (d + 1)::timestamp AT TIME ZONE 'UTC');
    END LOOP;
END $$;
