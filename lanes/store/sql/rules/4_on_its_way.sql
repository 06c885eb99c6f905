-- What a fetch in hand asks for on its way: an address, the next hop's host, to write its request (DESIGN 4, 4.3).

-- Takes a slot of an address that is new or changed for its host, before it is dialled; the host keeps it either way.
-- Null: go on; else how long until the bucket opens.
CREATE FUNCTION lanes.take_address(p_host bigint, p_address inet, p_token uuid, p_pace interval) RETURNS interval LANGUAGE plpgsql AS $$
DECLARE
    t        CONSTANT timestamptz := lanes.now();
    v_bucket CONSTANT inet := lanes.bucket(p_address);
    v_next   timestamptz;
BEGIN
    UPDATE lanes.hosts SET address = p_address, bucket = v_bucket WHERE id = p_host AND address IS DISTINCT FROM p_address;
    v_next := lanes.make_address(v_bucket, t);
    IF v_next > t THEN RETURN v_next - t; END IF;
    UPDATE lanes.addresses SET next_at = t + p_pace, used_at = t, used_by = p_token WHERE address = v_bucket;
    RETURN NULL;
END $$;

-- Locks the Lane to whose Site a host belongs, where that Site has a Gap: before its host, as everywhere.  Null: it has none.
CREATE FUNCTION lanes.lock_lane_of(p_host bigint) RETURNS lanes.lanes LANGUAGE plpgsql AS $$
DECLARE
    v_lane lanes.lanes;
BEGIN
    SELECT l.* INTO v_lane FROM lanes.lanes l
    WHERE l.site = (SELECT site FROM lanes.hosts WHERE id = p_host) AND lanes.gap_of(l) IS NOT NULL FOR NO KEY UPDATE;
    RETURN v_lane;
END $$;

-- The id of a host of p_site, made where there is none; p_pace: where the registry has it as slower than the default.  A redirect may have
-- met it first, and made it another Site's: where none of that Site's Series live, it is given to p_site, and whoever queues there in the
-- middle of a chain goes home.
CREATE FUNCTION lanes.place_host(p_site text, p_name text, p_pace interval DEFAULT NULL) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    h       lanes.hosts;
    v_homes bigint[];
BEGIN
    SELECT * INTO h FROM lanes.hosts WHERE name = p_name;
    IF NOT FOUND THEN
        INSERT INTO lanes.lanes (site) VALUES (p_site) ON CONFLICT DO NOTHING;
        INSERT INTO lanes.hosts (site, name, pace, ready_at) VALUES (p_site, p_name, coalesce(p_pace, '1 second'), 'infinity')
        ON CONFLICT DO NOTHING;
        SELECT * INTO h FROM lanes.hosts WHERE name = p_name;
    END IF;
    IF h.pace < p_pace THEN UPDATE lanes.hosts SET pace = greatest(pace, p_pace) WHERE id = h.id; END IF;
    IF h.site = p_site OR EXISTS (SELECT FROM lanes.series WHERE host_id = h.id AND site <> p_site) THEN RETURN h.id; END IF;
    INSERT INTO lanes.lanes (site) VALUES (p_site) ON CONFLICT DO NOTHING;
    v_homes := array(
        SELECT id FROM lanes.hosts
        WHERE id = h.id OR id IN (SELECT host_id FROM lanes.series WHERE queue_host_id = h.id AND site <> p_site)
        ORDER BY id FOR NO KEY UPDATE);
    UPDATE lanes.series SET queue_host_id = host_id, resume = NULL, resume_until = NULL, retry_address = NULL WHERE id = ANY (array(
        SELECT id FROM lanes.series
        WHERE queue_host_id = h.id AND site <> p_site AND host_id = ANY (v_homes) AND host_id <> h.id ORDER BY id FOR NO KEY UPDATE));
    UPDATE lanes.hosts SET ready_at = least(ready_at, lanes.now()), site = CASE WHEN id = h.id THEN p_site ELSE site END
    WHERE id = ANY (v_homes);
    RETURN h.id;
END $$;

-- Enters a host for the next hop of a redirect chain: spends its buckets as a claim does, the Gap of the host's Site among them (which
-- may be another Site than the caller's).  wait null: go on.  p_series null: a URL that the owner tries, of no Series.
CREATE FUNCTION lanes.enter(
    p_site text, p_name text, p_pace interval, p_series bigint, p_token uuid, p_lease_until timestamptz, p_address_pace interval
) RETURNS TABLE (
    host_id bigint, wait interval, reason text, address inet, pace interval, interval_in_force interval, backoffs integer, latency interval,
    refused_pace interval, refused_pace_at timestamptz, refused_paces integer, lane_gap interval, refusing boolean
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    t      CONSTANT timestamptz := lanes.now();
    l      lanes.lanes;
    h      lanes.hosts;
    v_next timestamptz;
    v_ends timestamptz;
BEGIN
    SELECT id INTO host_id FROM lanes.hosts WHERE name = p_name;
    IF NOT FOUND THEN host_id := lanes.place_host(p_site, p_name, p_pace); END IF;
    l := lanes.lock_lane_of(host_id);
    lane_gap := lanes.gap_of(l);
    SELECT * INTO h FROM lanes.hosts WHERE name = p_name FOR NO KEY UPDATE;
    address := h.address; pace := h.pace; interval_in_force := lanes.pace_of(h); backoffs := h.backoffs; latency := h.latency;
    refused_pace := h.refused_pace; refused_pace_at := h.refused_pace_at; refused_paces := h.refused_paces;
    refusing := h.refused_at IS NOT NULL OR h.refused_until IS NOT NULL;
    IF p_series IS NULL THEN
        v_ends := CASE WHEN p_lease_until > t THEN p_lease_until END;
    ELSE
        SELECT least(lease_until, p_lease_until) INTO v_ends FROM lanes.series WHERE id = p_series AND lease_token = p_token AND lease_until > t;
    END IF;
    IF v_ends IS NULL THEN
        wait := interval '1 minute'; reason := 'its lease has ended';
    ELSIF h.busy_token IS DISTINCT FROM p_token AND h.busy_until > t THEN
        -- Its holder frees it long before its lease ends: ask again in a second.
        wait := least(h.busy_until - t, interval '1 second'); reason := 'its host is being fetched';
    ELSIF l.paused_at IS NOT NULL OR l.refused_until > t THEN
        wait := CASE WHEN l.paused_at IS NULL THEN l.refused_until - t ELSE interval '1 hour' END;
        reason := CASE WHEN l.paused_at IS NULL THEN 'the Site refuses' ELSE 'the Lane is paused' END;
    ELSIF l.next_at > greatest(t, h.not_before, h.next_at) THEN
        wait := l.next_at - t; reason := 'the Gap of its Site';
    ELSIF greatest(h.not_before, h.next_at) > t THEN
        wait := least(greatest(h.not_before, h.next_at), t + interval '30 days') - t;
        reason := CASE WHEN h.not_before > t THEN h.not_before_reason ELSE 'the interval of its host' END;
    ELSIF h.address IS NOT NULL THEN
        v_next := lanes.make_address(h.bucket, t);
        IF v_next > t THEN wait := v_next - t; reason := 'the interval of its address'; END IF;
    END IF;
    IF wait IS NULL THEN
        IF lane_gap IS NOT NULL THEN UPDATE lanes.lanes SET next_at = t + lane_gap WHERE site = l.site; END IF;
        UPDATE lanes.hosts SET next_at = t + lanes.pace_of(h), sent_at = t, busy_until = v_ends, busy_token = p_token,
            ready_at = greatest(ready_at, v_ends)
        WHERE id = h.id;
        UPDATE lanes.addresses SET next_at = t + p_address_pace, used_at = t, used_by = p_token WHERE address = h.bucket;
    END IF;
    RETURN NEXT;
END $$;

-- A request that is written late moves the buckets it spends to its own instant first (DESIGN 4, Sent); only ever later; one of a Site
-- with a Gap always does.  p_address null: whoever dials it, a browser, takes no slot of an address.  Returns when it may be written: where another lease took the address's slot meanwhile, or on another host of
-- the Site the Gap, that is the next free one, which is spent only where it comes within p_patience; null: not any more, because the lease
-- has ended, its host is another's, or was told to wait.
CREATE FUNCTION lanes.sent(
    p_host bigint, p_address inet, p_sent_at timestamptz, p_token uuid, p_pace interval, p_patience interval
) RETURNS timestamptz LANGUAGE plpgsql AS $$
DECLARE
    v_bucket CONSTANT inet := lanes.bucket(p_address);
    t        CONSTANT timestamptz := lanes.now();
    v_place  timestamptz := least(p_sent_at, t + interval '5 seconds');  -- ahead of the clock: it went back meanwhile
    l        lanes.lanes := lanes.lock_lane_of(p_host);
    h        lanes.hosts;
    a        lanes.addresses;
BEGIN
    SELECT * INTO h FROM lanes.hosts
    WHERE id = p_host AND busy_token = p_token AND busy_until > t AND not_before <= t FOR NO KEY UPDATE;
    IF NOT FOUND THEN RETURN NULL; END IF;
    IF v_bucket IS NOT NULL THEN
        PERFORM lanes.make_address(v_bucket, t);
        SELECT * INTO a FROM lanes.addresses WHERE address = v_bucket;
    END IF;
    IF a.used_by IS DISTINCT FROM p_token THEN v_place := greatest(v_place, a.next_at); END IF;
    -- Whoever spends the Gap moves it to one Gap after the host's last request: further, and it was another host.
    IF l.next_at > h.sent_at + lanes.gap_of(l) THEN v_place := greatest(v_place, l.next_at); END IF;
    IF v_place - p_sent_at > p_patience THEN RETURN v_place; END IF;
    UPDATE lanes.addresses SET next_at = greatest(next_at, v_place + p_pace), used_at = v_place, used_by = p_token WHERE address = v_bucket;
    UPDATE lanes.hosts SET sent_at = greatest(h.sent_at, v_place), next_at = greatest(h.next_at, v_place + lanes.pace_of(h)) WHERE id = p_host;
    UPDATE lanes.lanes SET next_at = greatest(next_at, v_place + lanes.gap_of(l)) WHERE site = l.site;
    RETURN v_place;
END $$;
