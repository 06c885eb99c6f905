-- When is a Series due, and what stands in its way.  Each is one text, used by the claim, by `lanes why` and by every page that
-- explains, so that they cannot disagree (DESIGN 4.2).

-- Why a gate is closed, and until when (null: until somebody opens it).
DO $$ BEGIN CREATE TYPE lanes.stop AS (reason text, until timestamptz); EXCEPTION WHEN duplicate_object THEN NULL; END $$;

-- Rest of a Series: its own stored interval on `feeds`, else the registry's, stretched by the Series' phase of up to 10 %.
CREATE FUNCTION lanes.rest_of(s lanes.series, site_rest interval) RETURNS interval LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN coalesce(s.rest, site_rest * (1 + (s.id * 7919 % 1000) / 10000.0));

-- Is it polled at all: in poll tier, with a URL and a Bookmark, not paused, finished or retired.
CREATE FUNCTION lanes.is_eligible(s lanes.series) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN s.tier = 'poll' AND s.url <> '' AND s.bookmarks > 0
        AND s.paused_at IS NULL AND s.retired_at IS NULL AND s.lifecycle <> 'finished';

-- Why a Series is due at t, or null.
CREATE FUNCTION lanes.due(s lanes.series, site_rest interval, t timestamptz) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE
        WHEN s.tier <> 'poll' OR s.url = '' OR s.bookmarks = 0 OR s.paused_at IS NOT NULL THEN NULL
        WHEN s.lease_until > t THEN NULL
        WHEN s.retry_at > t THEN NULL  -- put back: its obstacle still stands
        WHEN s.force_poll_at > s.latest_checked_at AND s.retired_at IS NULL THEN 'pending'
        WHEN s.retry_at <= t THEN 'put back'
        WHEN s.lease_until <= t THEN 'abandoned'
        WHEN s.retired_at IS NULL AND s.lifecycle <> 'finished' AND s.next_check_at <= t
             AND lanes.later(s.latest_checked_at, lanes.rest_of(s, site_rest)) <= t
             AND coalesce(lanes.later(s.sighted_at, lanes.rest_of(s, site_rest)) <= t, true) THEN 'its time'
        WHEN lanes.later(s.latest_checked_at, '168 hours') <= t THEN 'weekly look'
    END;

-- From when a Series is due, if nothing changes; null: never.  A Check now counts from its request, a bookmark or revival from itself.
CREATE FUNCTION lanes.due_at(s lanes.series, site_rest interval) RETURNS timestamptz LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE
        WHEN s.tier <> 'poll' OR s.url = '' OR s.bookmarks = 0 OR s.paused_at IS NOT NULL THEN NULL
        WHEN s.force_poll_at > s.latest_checked_at AND s.retired_at IS NULL THEN greatest(s.force_poll_at, s.retry_at, s.lease_until)
        WHEN s.retry_at IS NOT NULL THEN greatest(s.retry_at, s.lease_until)
        WHEN s.lease_until IS NOT NULL THEN s.lease_until
        ELSE greatest(s.bookmarked_at, s.revived_at, least(
            lanes.later(s.latest_checked_at, '168 hours'),
            CASE WHEN s.retired_at IS NULL AND s.lifecycle <> 'finished' THEN greatest(
                s.next_check_at,
                lanes.later(s.latest_checked_at, lanes.rest_of(s, site_rest)),
                lanes.later(s.sighted_at, lanes.rest_of(s, site_rest)))
            END))
    END;

-- The host interval in force: its adaptive pace and every lower bound.
CREATE FUNCTION lanes.pace_of(h lanes.hosts) RETURNS interval LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN greatest(h.pace, h.crawl_delay, h.owner_pace);

-- The Gap in force of a Site, the owner's word included; null: it has none.
CREATE FUNCTION lanes.gap_of(l lanes.lanes) RETURNS interval LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN greatest(l.gap, l.owner_gap);

-- Is a Series that is due kept from being polled by more than its turn: a pause, a refusal, a lost browser (browser: why it cannot be asked,
-- as lanes.browser_trouble says it), a wait, a dead host, the owner's word.
CREATE FUNCTION lanes.is_held(s lanes.series, h lanes.hosts, l lanes.lanes, browser lanes.stop, t timestamptz) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN l.paused_at IS NOT NULL OR coalesce(l.refused_until > t, false) OR (browser).reason IS NOT NULL OR h.not_before > t OR coalesce(s.not_before > t, false);

-- What stands around a Series at t: the first gate that speaks, in the one fixed order, or null.  address_next is the bucket of the
-- address that would be dialled; browser is what lanes.browser_stop says of its Lane; polling is the kill switch.  Nothing opens a gate early.
CREATE FUNCTION lanes.gate(
    s lanes.series, h lanes.hosts, address_next timestamptz, l lanes.lanes, browser lanes.stop, polling boolean, t timestamptz
) RETURNS lanes.stop LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE
        WHEN NOT polling THEN ROW('polling is switched off', NULL)::lanes.stop
        WHEN l.paused_at IS NOT NULL THEN ROW('the Lane is paused', NULL)::lanes.stop
        WHEN l.refused_until > t THEN ROW('the Site refuses', l.refused_until)::lanes.stop
        WHEN (browser).reason IS NOT NULL THEN browser
        WHEN s.not_before > t THEN ROW(s.not_before_reason, s.not_before)::lanes.stop
        WHEN h.not_before > t THEN ROW(h.not_before_reason, h.not_before)::lanes.stop
        WHEN l.next_at > t THEN ROW('the Gap of its Site', l.next_at)::lanes.stop
        WHEN h.next_at > t THEN ROW('the interval of its host', h.next_at)::lanes.stop
        WHEN address_next > t THEN ROW('the interval of its address', address_next)::lanes.stop
        WHEN h.busy_until > t THEN ROW('its host is being fetched', h.busy_until)::lanes.stop
    END;

-- The instant from which a claim may find something on a host: the later of the host's gates and its earliest due Series.
CREATE FUNCTION lanes.ready_at(h lanes.hosts) RETURNS timestamptz LANGUAGE sql STABLE
    RETURN greatest(h.busy_until, h.next_at, h.not_before, coalesce(least(
        (SELECT min(claimable_at) FROM lanes.series WHERE queue_host_id = h.id AND turn = 0),
        (SELECT min(claimable_at) FROM lanes.series WHERE queue_host_id = h.id AND turn = 1),
        (SELECT min(claimable_at) FROM lanes.series WHERE queue_host_id = h.id AND turn = 2)), 'infinity'));
