-- The browser: whether it can be asked, and the rows in which it is (DESIGN 5.6, 7).  Lock order: machine, Lane, host, address, Series,
-- browser, its pages by token.

-- Why nothing can be asked of the browser at t, and until when; null: it can be asked.  No heartbeat for 30 s: as if there were none.
-- What may need somebody's hand comes before a loss, which mends itself, and never ends sooner than it.
CREATE FUNCTION lanes.browser_trouble(t timestamptz) RETURNS lanes.stop LANGUAGE sql STABLE AS $$
    SELECT CASE
        WHEN b.trouble IS NOT NULL THEN ROW('the browser is down: ' || b.trouble,
            CASE WHEN b.trouble_until > t THEN greatest(b.trouble_until, b.browser_lost_until) END)::lanes.stop
        WHEN coalesce(b.heartbeat_at < t - interval '30 seconds', true)
            THEN ROW('the browser is down: its sidecar does not run', NULL)::lanes.stop
        WHEN b.browser_lost_until > t THEN ROW('the browser is lost', b.browser_lost_until)::lanes.stop
    END
    FROM (SELECT) one LEFT JOIN lanes.browser b ON true
$$;

-- The wake gate of a Lane: Chrome stays asleep while fewer than 5 of its Series are due, the oldest has waited under 15 minutes and nothing
-- is pending, or was put back: that had its turn, and waits for its obstacle alone.  Null: it is awake, or may wake; and where nothing is
-- due there is nobody to stop.
CREATE FUNCTION lanes.browser_asleep(p_site text, p_rest interval, t timestamptz) RETURNS lanes.stop LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_due     integer;
    v_oldest  timestamptz;
    v_turn    integer;
BEGIN
    IF EXISTS (SELECT FROM lanes.browser WHERE awake) THEN RETURN NULL; END IF;
    SELECT count(*), min(greatest(lanes.due_at(s, p_rest), s.added_at)), min(s.turn) INTO v_due, v_oldest, v_turn
    FROM lanes.series s
    WHERE s.queue_host_id IN (SELECT id FROM lanes.hosts WHERE site = p_site) AND s.claimable_at <= t
      AND lanes.due(s, p_rest, t) IS NOT NULL;
    IF v_due = 0 OR v_due >= 5 OR v_turn < 2 OR v_oldest <= t - interval '15 minutes' THEN RETURN NULL; END IF;
    RETURN ROW('Chrome sleeps: fewer than 5 are due, none for 15 minutes', v_oldest + interval '15 minutes')::lanes.stop;
END $$;

-- The browser's gate of a Lane; null: it is open, or the Lane needs no browser.
CREATE FUNCTION lanes.browser_stop(l lanes.lanes, p_rest interval, t timestamptz) RETURNS lanes.stop LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_stop lanes.stop;
BEGIN
    IF NOT l.browser THEN RETURN NULL; END IF;
    v_stop := lanes.browser_trouble(t);
    IF v_stop.reason IS NOT NULL THEN RETURN v_stop; END IF;
    RETURN lanes.browser_asleep(l.site, p_rest, t);
END $$;

-- Whether a Poll still has its host in hand.
CREATE FUNCTION lanes.is_in_hand(p_host bigint, p_token uuid, t timestamptz) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT FROM lanes.hosts WHERE id = p_host AND busy_token = p_token AND busy_until > t)
$$;

-- Asks for a page, unless nothing can be asked now: then that is returned.  What an earlier Poll of the Site left behind goes; one that
-- another process has in hand stays, and is waited for by Gaps.  p_suspect: its Series lost the browser the last time, so others go first.
CREATE FUNCTION lanes.ask_page(
    p_token uuid, p_site text, p_host bigint, p_url text, p_hosts text[], p_landmark text, p_settles_for text, p_suspect boolean
) RETURNS lanes.stop LANGUAGE plpgsql AS $$
DECLARE
    t      CONSTANT timestamptz := lanes.now();
    v_stop lanes.stop := lanes.browser_trouble(t);
BEGIN
    IF v_stop.reason IS NULL AND p_suspect THEN
        SELECT 'the browser was lost: others go first', others_until INTO v_stop FROM lanes.browser WHERE others_until > t;
    END IF;
    IF v_stop.reason IS NOT NULL THEN RETURN v_stop; END IF;
    DELETE FROM lanes.browser_pages p WHERE p.site = p_site AND NOT lanes.is_in_hand(p.host_id, p.token, t);
    INSERT INTO lanes.browser_pages (token, site, host_id, url, hosts, landmark, settles_for, suspect, asked_at)
    VALUES (p_token, p_site, p_host, p_url, p_hosts, p_landmark, p_settles_for, p_suspect, t)
    ON CONFLICT (site) DO NOTHING;
    IF NOT FOUND THEN RETURN ROW('another page of its Site is open', t + interval '10 seconds')::lanes.stop; END IF;
    PERFORM pg_notify('lanes_browser', '');
    RETURN NULL;
END $$;

-- The page that has waited longest, for an idle tab: none while the browser is lost; after that one alone, the probe, until it is answered.
-- A suspect is opened alone as well, so that no page beside it is lost with it; what waits behind it does not overtake.
CREATE FUNCTION lanes.take_page(p_patience interval) RETURNS SETOF lanes.browser_pages LANGUAGE plpgsql AS $$
DECLARE
    t        CONSTANT timestamptz := lanes.now();
    v_lost   timestamptz;
    v_in_tab boolean;
    v_alone  boolean;
BEGIN
    -- Locked until the page is taken, for another tab may take at the same instant.
    SELECT browser_lost_until INTO v_lost FROM lanes.browser
    WHERE browser_lost_until IS NOT NULL OR EXISTS (SELECT FROM lanes.browser_pages WHERE suspect) FOR NO KEY UPDATE;
    SELECT count(*) > 0, v_lost IS NOT NULL OR bool_or(suspect) INTO v_in_tab, v_alone FROM lanes.browser_pages
    WHERE taken_at IS NOT NULL AND answered_at IS NULL AND stop_reason IS NULL AND deadline_at > t;
    IF v_lost > t OR (v_in_tab AND v_alone) THEN RETURN; END IF;
    RETURN QUERY
    UPDATE lanes.browser_pages p SET taken_at = t, deadline_at = t + p_patience
    WHERE p.token = (
        SELECT q.token FROM lanes.browser_pages q
        WHERE q.taken_at IS NULL AND q.sent_at IS NULL AND lanes.is_in_hand(q.host_id, q.token, t)
        ORDER BY q.asked_at LIMIT 1 FOR UPDATE SKIP LOCKED) AND NOT (p.suspect AND v_in_tab)
    RETURNING p.*;
END $$;

-- The request of a page is about to be written: its Site's and its host's pace are spent at that instant, which is noted, and its Poll
-- holds its host and its Series as long as the tab may have it, for whoever asked may be dead.  How long to wait first; null: it may not
-- be written, and whoever asked finds why and until when in the row.
CREATE FUNCTION lanes.send_page(p_token uuid, p_patience interval) RETURNS interval LANGUAGE plpgsql AS $$
DECLARE
    t       CONSTANT timestamptz := lanes.now();
    p       lanes.browser_pages;
    h       lanes.hosts;
    v_place timestamptz;
    v_stop  lanes.stop;
BEGIN
    SELECT * INTO p FROM lanes.browser_pages WHERE token = p_token;
    v_place := lanes.sent(p.host_id, NULL, t, p_token, interval '0', p_patience);
    IF v_place - t <= p_patience THEN
        UPDATE lanes.hosts x SET busy_until = greatest(x.busy_until, p.deadline_at), ready_at = greatest(x.ready_at, p.deadline_at)
        WHERE x.id = p.host_id AND x.busy_token = p_token;
        UPDATE lanes.series SET lease_until = greatest(lease_until, p.deadline_at)
        WHERE queue_host_id = p.host_id AND lease_token = p_token;
        UPDATE lanes.browser_pages SET sent_at = v_place WHERE token = p_token;
        RETURN CASE WHEN FOUND THEN v_place - t END;
    END IF;
    SELECT * INTO h FROM lanes.hosts WHERE id = p.host_id;
    v_stop := CASE
        WHEN v_place IS NOT NULL THEN ROW('the Gap of its Site', v_place)::lanes.stop
        -- An hour at most: the owner may lift what stands there sooner, and until then its gate is shut anyway.
        WHEN h.busy_token = p_token AND h.busy_until > t
            THEN ROW(h.not_before_reason, least(h.not_before, t + interval '1 hour'))::lanes.stop
        ELSE ROW('its lease has ended', t)::lanes.stop END;
    UPDATE lanes.browser_pages SET stop_reason = v_stop.reason, stop_until = v_stop.until WHERE token = p_token;
    IF FOUND THEN PERFORM pg_notify('lanes_page_' || p.site, ''); END IF;
    RETURN NULL;
END $$;

-- A Poll whose page still queues keeps its host and its Series; false: it has lost them.
CREATE FUNCTION lanes.renew_lease(p_host bigint, p_series bigint, p_token uuid, p_lease interval) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    t CONSTANT timestamptz := lanes.now();
BEGIN
    UPDATE lanes.hosts SET busy_until = t + p_lease, ready_at = greatest(ready_at, t + p_lease)
    WHERE id = p_host AND busy_token = p_token AND busy_until > t;
    IF NOT FOUND THEN RETURN false; END IF;
    IF p_series IS NULL THEN RETURN true; END IF;
    UPDATE lanes.series SET lease_until = t + p_lease WHERE id = p_series AND lease_token = p_token AND lease_until > t;
    RETURN FOUND;
END $$;

-- The browser is lost, from now on for p_wait, and for p_others_first more for whoever may have lost it: written once, whoever notices.
-- Whether that is news; the owner is told of the first of a row.
CREATE FUNCTION lanes.lose_browser(p_wait interval, p_others_first interval) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    t        CONSTANT timestamptz := lanes.now();
    v_before timestamptz;
BEGIN
    SELECT browser_lost_until INTO v_before FROM lanes.browser FOR NO KEY UPDATE;
    IF NOT FOUND OR v_before > t THEN RETURN false; END IF;
    UPDATE lanes.browser SET browser_lost_until = t + p_wait, others_until = t + p_wait + p_others_first,
        lost_again = v_before IS NOT NULL, awake = false;
    IF v_before IS NULL THEN
        INSERT INTO lanes.notices (kind, event, body, made_at)
        VALUES ('browser lost', lanes.event('browser', 0, t), jsonb_build_object('since', t), t)
        ON CONFLICT ON CONSTRAINT one_per_reader_and_event DO NOTHING;
    END IF;
    RETURN true;
END $$;
