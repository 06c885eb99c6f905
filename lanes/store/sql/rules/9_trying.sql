-- A URL that the owner tries: it is fetched as a Poll's is, of no Series (lanes try).  Nothing of what it finds is stored; what it spends,
-- what it was told to wait and its requests are.

-- Enters a host that the owner tries, as a claim would: every gate of its Lane and of the host holds, and the same is spent.  stop null:
-- the rest is a Poll's.  While the line of the machine is down, its one probe a minute is a Poll's too.  p_gap is the registry's, for a
-- Site whose Lane has not run yet; p_dial the address that was waited for, if any.
-- A host at which another Site has Series is not entered: what is sent there moves that Site's Gap and not this one's.
CREATE FUNCTION lanes.visit(
    p_site text, p_machine text, p_gap interval, p_host bigint, p_dial inet, p_lease interval, p_address_pace interval
) RETURNS TABLE (
    stop text, stop_until timestamptz, claimed_at timestamptz, token uuid, host_pace interval, lane_gap interval, address inet,
    pace interval, latency interval, backoffs integer, unavailable_url bytea, unavailable_at timestamptz
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    t        CONSTANT timestamptz := lanes.now();
    v_stop   lanes.stop;
    v_bucket inet;
    v_next   timestamptz;
    v_token  CONSTANT uuid := gen_random_uuid();
    l        lanes.lanes;
    h        lanes.hosts;
BEGIN
    claimed_at := t;
    IF t < (SELECT latest_seen FROM lanes.clock) - interval '5 seconds' THEN
        stop := 'the clock went back, which the next claim of a Lane mends'; RETURN NEXT; RETURN;
    END IF;
    IF EXISTS (SELECT FROM lanes.machines WHERE machine = p_machine AND us_since IS NOT NULL) THEN
        stop := 'our own line is down: one Poll a minute until it is back'; RETURN NEXT; RETURN;
    END IF;
    PERFORM FROM lanes.lanes x
    WHERE x.site = p_site AND (lanes.gap_of(x) IS NOT NULL OR p_gap IS NOT NULL) FOR NO KEY UPDATE;
    UPDATE lanes.lanes x SET gap = p_gap WHERE x.site = p_site AND x.gap IS NULL AND p_gap IS NOT NULL;
    SELECT * INTO l FROM lanes.lanes WHERE site = p_site;
    SELECT * INTO h FROM lanes.hosts WHERE id = p_host FOR NO KEY UPDATE;
    IF h.site <> p_site THEN
        stop := 'its host belongs to the Site ' || h.site || ': try it there, or remove what that Site follows there';
        RETURN NEXT; RETURN;
    END IF;
    v_bucket := lanes.bucket(coalesce(p_dial, h.address));
    IF v_bucket IS NOT NULL THEN v_next := lanes.make_address(v_bucket, t); END IF;
    v_stop := lanes.gate(
        NULL::lanes.series, h, v_next, l, CASE WHEN l.browser THEN lanes.browser_trouble(t) END, NOT l.switched_off, t);
    lane_gap := lanes.gap_of(l);
    IF v_stop.reason IS NOT NULL THEN
        stop := v_stop.reason; stop_until := nullif(v_stop.until, 'infinity'); RETURN NEXT; RETURN;
    END IF;

    UPDATE lanes.lanes x SET next_at = t + lane_gap WHERE x.site = p_site AND lane_gap IS NOT NULL;
    UPDATE lanes.hosts x SET next_at = t + lanes.pace_of(h), sent_at = t, busy_until = t + p_lease, busy_token = v_token,
        ready_at = greatest(x.ready_at, t + p_lease)
    WHERE x.id = h.id;
    UPDATE lanes.addresses x SET next_at = t + p_address_pace, used_at = t, used_by = v_token WHERE x.address = v_bucket;
    token := v_token; host_pace := lanes.pace_of(h); address := h.address;
    pace := h.pace; latency := h.latency; backoffs := h.backoffs;
    unavailable_url := h.unavailable_url; unavailable_at := h.unavailable_at;
    RETURN NEXT;
END $$;

-- Leaves every host that such a URL entered.  p_host answered: it is slowed as any answer slows it, never sped, and told to wait if it said
-- so; a wait of that very URL is its Series', where one is followed there.
CREATE FUNCTION lanes.leave(
    p_site text, p_token uuid, p_hosts bigint[], p_sents timestamptz[], p_host bigint, p_pace interval,
    p_wait_until timestamptz, p_wait_reason text, p_url text, p_url_wait_until timestamptz, p_url_wait_reason text
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM lanes.hold(NULL, p_token, p_hosts);
    UPDATE lanes.hosts SET
        pace = greatest(pace, p_pace),
        not_before_reason = CASE WHEN p_wait_until > not_before THEN p_wait_reason ELSE not_before_reason END,
        not_before = greatest(not_before, p_wait_until)
    WHERE id = p_host;
    UPDATE lanes.series SET not_before = p_url_wait_until, not_before_reason = p_url_wait_reason
    WHERE site = p_site AND url = p_url AND md5(url) = md5(p_url) AND coalesce(not_before, '-infinity') < p_url_wait_until;
    PERFORM lanes.let_all_go(p_token, p_hosts, p_sents);
END $$;
