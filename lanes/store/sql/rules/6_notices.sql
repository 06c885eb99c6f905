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
