-- What is owed becomes a row, in the transaction that made it true, once per Reader and event (DESIGN 8).

-- To each Reader with a Bookmark on the Series that is not muted.
CREATE FUNCTION lanes.tell_readers(p_series bigint, p_kind text, p_event text, p_body jsonb) RETURNS void LANGUAGE sql AS $$
    INSERT INTO lanes.notices (reader_id, series_id, kind, event, body, made_at)
    SELECT reader_id, series_id, p_kind, p_event, p_body, lanes.now() FROM lanes.bookmarks WHERE series_id = p_series AND NOT muted
    ON CONFLICT ON CONSTRAINT one_per_reader_and_event DO NOTHING
$$;

-- To the owner.
CREATE FUNCTION lanes.tell_owner(p_kind text, p_event text, p_body jsonb, p_series bigint DEFAULT NULL) RETURNS void LANGUAGE sql AS $$
    INSERT INTO lanes.notices (series_id, kind, event, body, made_at)
    VALUES (p_series, p_kind, p_event, p_body, lanes.now())
    ON CONFLICT ON CONSTRAINT one_per_reader_and_event DO NOTHING
$$;

-- The event of something that befell one Series at one instant (null: never): the same words as lanes.core.notices.
CREATE FUNCTION lanes.event(p_what text, p_series bigint, p_at timestamptz) RETURNS text LANGUAGE sql STABLE PARALLEL SAFE
    RETURN p_what || ':' || p_series || ':' || coalesce(to_char(p_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US') || '+00:00', 'never');

-- Since when a Series is silent in a trouble that began at p_since; null: nobody looks at it.  From its own last good answer where that
-- came later: a trouble does not reach all Series at once, and what began it may be older than the rest.
CREATE FUNCTION lanes.silent_since(s lanes.series, p_since timestamptz) RETURNS timestamptz LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN s.tier = 'poll' AND s.url <> '' AND s.bookmarks > 0 AND s.paused_at IS NULL AND s.retired_at IS NULL
        THEN greatest(p_since, s.good_at) END;

-- Since when that counts toward giving it up: it may have been added, bookmarked or revived in the middle of it (CASES A8).
CREATE FUNCTION lanes.hopeless_since(s lanes.series, p_since timestamptz) RETURNS timestamptz LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN lanes.silent_since(s, p_since) IS NOT NULL
        THEN greatest(p_since, s.good_at, s.added_at, s.bookmarked_at, s.revived_at) END;

-- The Series where an incident or a refusal window is: of its host, or of its whole Site; and those refused there that redirects led
-- to it from hosts of their own.  Of three parts, so that it becomes part of the
-- statement that asks, and that one finds by host what it looks for.
CREATE FUNCTION lanes.series_of(i lanes.incidents) RETURNS SETOF lanes.series LANGUAGE sql STABLE AS $$
    SELECT s.* FROM lanes.series s WHERE s.host_id = i.host_id
    UNION ALL
    SELECT s.* FROM lanes.series s WHERE i.host_id IS NULL AND s.site = i.site
    UNION ALL
    SELECT s.* FROM lanes.series s
    WHERE i.whose = 'refusal' AND s.host_id <> i.host_id AND s.refusals > 0
      AND s.id IN (SELECT (e #>> '{}')::bigint FROM jsonb_path_query(i.evidence, '$.series[*]') e)
$$;

-- Whether a refusal of its host, its Site or a host to which it is led is under way: then it is not refused alone.
CREATE FUNCTION lanes.is_refused_in_company(s lanes.series) RETURNS boolean LANGUAGE sql STABLE
    RETURN EXISTS (
        SELECT FROM lanes.incidents i
        WHERE i.whose = 'refusal' AND i.ended_at IS NULL AND i.site = s.site
          AND (coalesce(i.host_id, s.host_id) = s.host_id OR i.evidence -> 'series' @> to_jsonb(s.id)));

-- Whether the Reader of a Notice was told later on that this Series stopped: its revival, and not the end of a trouble, is the news then.
CREATE FUNCTION lanes.was_stopped(told lanes.notices, p_series bigint) RETURNS boolean LANGUAGE sql STABLE
    RETURN EXISTS (
        SELECT FROM lanes.notices n
        WHERE n.reader_id = told.reader_id AND n.series_id = p_series AND n.kind = 'stopped' AND n.id > told.id);
