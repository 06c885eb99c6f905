-- What becomes of a claimed Poll: settled, put back, recorded (DESIGN 4).
-- Everything about the Series is fenced on the lease token; what only slows a host, an address or the Series' wait never is.

-- Locks what a Poll touches, the Lanes of Sites with a Gap, hosts by id (its own home among them, where it queued elsewhere), then the
-- Series, and says whether the lease is still its own.
CREATE FUNCTION lanes.hold(p_series bigint, p_token uuid, p_hosts bigint[]) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM lanes.lanes l
    WHERE lanes.gap_of(l) IS NOT NULL AND l.site IN (SELECT site FROM lanes.hosts WHERE id = ANY (p_hosts))
    ORDER BY l.site FOR NO KEY UPDATE;
    PERFORM 1 FROM lanes.hosts WHERE id = ANY (p_hosts || (SELECT host_id FROM lanes.series WHERE id = p_series))
    ORDER BY id FOR NO KEY UPDATE;
    PERFORM 1 FROM lanes.series WHERE id = p_series AND lease_token = p_token FOR NO KEY UPDATE;
    RETURN FOUND;
END $$;

-- Whether a host belongs to the Site of a Series: at another Site's host another Lane would claim it.
CREATE FUNCTION lanes.is_own_host(p_series bigint, p_host bigint) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT FROM lanes.series s JOIN lanes.hosts h ON h.id = p_host AND h.site = s.site WHERE s.id = p_series)
$$;

-- Ends a Poll.  p_host is the host that answered; p_hosts are all that the Poll entered, p_sents when the last request to each was sent.
-- Returns whether the lease still held: where it did not, only what slows was applied.
CREATE FUNCTION lanes.settle(
    p_series bigint, p_token uuid, p_claimed_at timestamptz, p_host bigint, p_hosts bigint[], p_sents timestamptz[],
    p_next_check_at timestamptz, p_rest interval, p_failures integer, p_failure text, p_failure_kind text, p_refusals integer, p_good boolean, p_gone boolean,
    p_validators text, p_etag text, p_last_modified text, p_validators_url text, p_body_hash bytea, p_unconditional boolean,
    p_hint_every interval, p_hint_skip_hours integer, p_hint_skip_days smallint,
    p_title text, p_home text, p_lifecycle text, p_guid_alone boolean, p_url text, p_found boolean,
    p_series_wait_until timestamptz, p_series_wait_reason text,
    p_pace_before interval, p_pace interval, p_backoffs integer, p_latency interval, p_unavailable_url bytea,
    p_host_wait_until timestamptz, p_host_wait_reason text
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    t      CONSTANT timestamptz := lanes.now();
    v_held boolean := lanes.hold(p_series, p_token, p_hosts);
    v_back CONSTANT interval := lanes.gone_back(p_series, p_claimed_at, t);
    v_url  text := p_url;
    v_home bigint;
    h      lanes.hosts;
BEGIN
    IF v_back <> '0' THEN
        p_next_check_at := p_next_check_at - v_back;
        p_series_wait_until := p_series_wait_until - v_back;
        p_host_wait_until := p_host_wait_until - v_back;
        p_sents := lanes.all_back(p_sents, v_back);
    END IF;
    IF v_held THEN
        IF p_url IS NOT NULL AND (EXISTS (
            SELECT FROM lanes.series o JOIN lanes.series s ON s.id = p_series AND o.site = s.site
            WHERE md5(o.url) = md5(p_url) AND o.id <> p_series
        ) OR NOT lanes.is_own_host(p_series, p_host)) THEN v_url := NULL;  -- another Series is followed there already, or it is another Site's
        END IF;
        UPDATE lanes.series s SET
            lease_until = NULL, lease_token = NULL, lease_machine = NULL, lease_trigger = NULL, abandoned = 0,
            resume = NULL, resume_until = NULL,
            host_id = CASE WHEN v_url IS NULL THEN s.host_id ELSE p_host END,
            queue_host_id = CASE WHEN v_url IS NULL THEN s.host_id ELSE p_host END,
            next_check_at = CASE WHEN s.tier = 'poll' THEN p_next_check_at END, rest = p_rest,
            failures = p_failures, refusals = p_refusals,
            failure = CASE WHEN NOT p_good THEN coalesce(p_failure, s.failure) END,
            failure_kind = CASE WHEN NOT p_good THEN coalesce(p_failure_kind, s.failure_kind) END,
            refused_since = CASE WHEN p_refusals > 0 THEN coalesce(s.refused_since, t) END,
            spared_by = CASE WHEN NOT p_good THEN s.spared_by END,
            failing_since = CASE WHEN p_failures = 0 THEN NULL ELSE coalesce(s.failing_since, t) END,
            gone_at = CASE WHEN p_gone THEN coalesce(s.gone_at, t) WHEN p_good THEN NULL ELSE s.gone_at END,
            good_at = CASE WHEN p_good THEN t ELSE s.good_at END,
            first_good_at = CASE WHEN p_good THEN coalesce(s.first_good_at, t) ELSE s.first_good_at END,
            news_from = CASE WHEN p_good THEN coalesce(s.news_from, t) ELSE s.news_from END,
            discovering = s.discovering AND NOT p_good,
            etag = CASE p_validators WHEN 'keep' THEN s.etag WHEN 'replace' THEN p_etag END,
            last_modified = CASE p_validators WHEN 'keep' THEN s.last_modified WHEN 'replace' THEN p_last_modified END,
            validators_url = CASE p_validators WHEN 'keep' THEN s.validators_url WHEN 'replace' THEN p_validators_url END,
            body_hash = coalesce(p_body_hash, CASE WHEN p_validators <> 'forget' THEN s.body_hash END),
            unconditional_at = CASE WHEN p_unconditional AND p_good THEN t ELSE s.unconditional_at END,
            hint_every = CASE WHEN p_found THEN p_hint_every ELSE s.hint_every END,
            hint_skip_hours = CASE WHEN p_found THEN p_hint_skip_hours ELSE s.hint_skip_hours END,
            hint_skip_days = CASE WHEN p_found THEN p_hint_skip_days ELSE s.hint_skip_days END,
            title = coalesce(p_title, s.title), home = coalesce(p_home, s.home), lifecycle = coalesce(p_lifecycle, s.lifecycle),
            guid_alone = s.guid_alone AND p_guid_alone,
            url = coalesce(v_url, s.url), old_url = CASE WHEN v_url IS NULL THEN s.old_url ELSE s.url END,
            -- A wait that a late worker brought meanwhile stands.
            not_before = CASE WHEN greatest(p_series_wait_until, s.not_before) > t THEN greatest(p_series_wait_until, s.not_before) END,
            not_before_reason = CASE
                WHEN NOT coalesce(greatest(p_series_wait_until, s.not_before) > t, false) THEN NULL
                WHEN p_series_wait_until >= coalesce(s.not_before, '-infinity') THEN p_series_wait_reason
                ELSE s.not_before_reason END
        WHERE s.id = p_series
        RETURNING s.host_id INTO v_home;
    ELSIF p_series_wait_until > t THEN
        UPDATE lanes.series s SET not_before = p_series_wait_until, not_before_reason = p_series_wait_reason
        WHERE s.id = p_series AND coalesce(s.not_before, '-infinity') < p_series_wait_until;
    END IF;
    FOR i IN 1 .. cardinality(p_hosts) LOOP
        SELECT * INTO h FROM lanes.hosts WHERE id = p_hosts[i];
        IF h.id = p_host THEN
            -- What a late worker widened since the decision was made stands as well.
            h.pace := CASE WHEN v_held AND h.pace <= p_pace_before THEN p_pace ELSE greatest(h.pace, p_pace) END;
            h.backoffs := CASE WHEN v_held THEN p_backoffs ELSE greatest(h.backoffs, p_backoffs) END;
            h.latency := coalesce(p_latency, h.latency);
            IF p_good THEN h.good_sent_at := greatest(h.good_sent_at, p_sents[i]); END IF;
            IF p_unavailable_url IS NOT NULL THEN
                h.unavailable_url := p_unavailable_url;
                h.unavailable_at := t;
            END IF;
            IF p_host_wait_until > h.not_before THEN
                h.not_before := p_host_wait_until;
                h.not_before_reason := p_host_wait_reason;
            END IF;
        END IF;
        PERFORM lanes.let_go(h, p_token, p_sents[i]);
    END LOOP;
    IF v_home <> ALL (p_hosts) THEN  -- it queued under a hop's host, and is back
        PERFORM lanes.let_all_go(p_token, ARRAY[v_home], ARRAY[NULL::timestamptz]);
    END IF;
    RETURN v_held;
END $$;

-- By how much the rows were shifted back while a Poll was in hand (0: they were not, or not yet): every instant that the Poll brings is
-- from before.  Its stamp was shifted with the rows; where another claim has stamped the Series since, that is near enough.
CREATE FUNCTION lanes.gone_back(p_series bigint, p_claimed_at timestamptz, t timestamptz) RETURNS interval LANGUAGE sql STABLE AS $$
    SELECT CASE
        WHEN p_claimed_at <= t + interval '5 seconds' OR (SELECT latest_seen FROM lanes.clock) > t + interval '5 seconds' THEN interval '0'
        ELSE p_claimed_at - least(t, greatest(t - interval '1 hour', (SELECT latest_checked_at FROM lanes.series WHERE id = p_series)))
    END
$$;

CREATE FUNCTION lanes.all_back(p_instants timestamptz[], p_back interval) RETURNS timestamptz[] LANGUAGE sql IMMUTABLE AS $$
    SELECT array(SELECT x - p_back FROM unnest(p_instants) WITH ORDINALITY AS u (x, n) ORDER BY n)
$$;

-- Ends a Poll's visit to a host (whose row is held, and may have been changed in h): its bucket and its Site's Gap move to the last
-- request's own instant, it is free for the next, and its hint is computed anew from what was just written.
CREATE FUNCTION lanes.let_go(h lanes.hosts, p_token uuid, p_sent_at timestamptz) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    h.sent_at := greatest(h.sent_at, p_sent_at);
    h.next_at := greatest(h.next_at, h.sent_at + lanes.pace_of(h));
    -- The Lane is locked already.  Where it got its Gap only since, that counts from then, and whoever holds it is not waited for.
    UPDATE lanes.lanes l SET next_at = p_sent_at + lanes.gap_of(l) WHERE l.site = (
        SELECT o.site FROM lanes.lanes o
        WHERE o.site = h.site AND o.next_at < p_sent_at + lanes.gap_of(o) FOR NO KEY UPDATE SKIP LOCKED);
    IF h.busy_token = p_token THEN
        h.busy_until := '-infinity';
        h.busy_token := NULL;
    END IF;
    UPDATE lanes.hosts SET
        sent_at = h.sent_at, next_at = h.next_at, busy_until = h.busy_until, busy_token = h.busy_token,
        pace = h.pace, backoffs = h.backoffs, latency = h.latency, unavailable_url = h.unavailable_url, unavailable_at = h.unavailable_at,
        not_before = h.not_before, not_before_reason = h.not_before_reason, good_sent_at = h.good_sent_at,
        ready_at = lanes.ready_at(h),
        pending_at = (SELECT min(claimable_at) FROM lanes.series WHERE queue_host_id = h.id AND turn = 0)
    WHERE id = h.id;
END $$;

-- The same for several hosts that are only let go.
CREATE FUNCTION lanes.let_all_go(p_token uuid, p_hosts bigint[], p_sents timestamptz[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    h lanes.hosts;
BEGIN
    FOR i IN 1 .. cardinality(p_hosts) LOOP
        SELECT * INTO h FROM lanes.hosts WHERE id = p_hosts[i];
        PERFORM lanes.let_go(h, p_token, p_sents[i]);
    END LOOP;
END $$;

-- The poll record of one Poll: a row for each request that it wrote (p_hops, in order), or one without sent_at where it wrote none.
-- The last hop has the outcome.  What a worker that was given up for dead sent and was told still counts: it completes its row.
CREATE FUNCTION lanes.record(
    p_series bigint, p_token uuid, p_claimed_at timestamptz, p_site text, p_machine text, p_trigger text, p_address_pace interval,
    p_hops jsonb, p_held boolean, p_outcome text, p_detail text, p_new_chapters integer DEFAULT 0,
    p_host_wait_until timestamptz DEFAULT NULL, p_series_wait_until timestamptz DEFAULT NULL, p_changed jsonb DEFAULT '{}',
    p_proof boolean DEFAULT NULL, p_failure_kind text DEFAULT NULL
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_last CONSTANT integer := jsonb_array_length(p_hops) - 1;
    v_hop  jsonb;
BEGIN
    FOR i IN 0 .. v_last LOOP
        v_hop := p_hops -> i;
        INSERT INTO lanes.polls (
            claimed_at, token, hop, series_id, site, host, address, machine, trigger, sent_at, ended_at, status, wire_bytes,
            host_pace, address_pace, lane_gap, outcome, detail, new_chapters, host_wait_until, series_wait_until, changed, proof,
            failure_kind)
        VALUES (
            p_claimed_at, p_token, i, p_series, p_site, v_hop ->> 'host', (v_hop ->> 'address')::inet, p_machine, p_trigger,
            (v_hop ->> 'sent_at')::timestamptz, lanes.now(), (v_hop ->> 'status')::smallint, (v_hop ->> 'wire_bytes')::integer,
            (v_hop ->> 'pace')::interval, p_address_pace, (v_hop ->> 'gap')::interval,
            coalesce(v_hop ->> 'outcome', CASE WHEN i < v_last THEN 'redirected' ELSE p_outcome END),
            CASE WHEN i < v_last THEN v_hop ->> 'detail' WHEN p_held THEN p_detail ELSE concat_ws('; ', p_detail, 'too late') END,
            CASE WHEN i < v_last THEN 0 ELSE p_new_chapters END,
            coalesce((v_hop ->> 'host_wait_until')::timestamptz, CASE WHEN i = v_last THEN p_host_wait_until END),
            CASE WHEN i < v_last THEN NULL ELSE p_series_wait_until END,
            CASE WHEN i < v_last THEN '{}' ELSE p_changed END,
            CASE WHEN i < v_last THEN NULL ELSE p_proof END,
            CASE WHEN i < v_last THEN NULL ELSE p_failure_kind END)
        ON CONFLICT (claimed_at, token, hop) DO UPDATE SET
            sent_at = EXCLUDED.sent_at, address = EXCLUDED.address, ended_at = EXCLUDED.ended_at, status = EXCLUDED.status,
            wire_bytes = EXCLUDED.wire_bytes, detail = EXCLUDED.detail, host_pace = EXCLUDED.host_pace,
            lane_gap = EXCLUDED.lane_gap, host_wait_until = EXCLUDED.host_wait_until, series_wait_until = EXCLUDED.series_wait_until
        WHERE polls.outcome = 'abandoned';
    END LOOP;
END $$;

-- Puts a Poll back: nothing is counted; the earlier stamp returns unless a request was sent; p_wait from now it is due again.  Inside a
-- chain it queues under the next hop's host, where that is its own Site's: another Lane does not claim it there.  Where the chain goes on
-- is known for an hour, so nothing waits longer for it; a host that is closed until after that is not waited for: what leads there is asked
-- again when it opens, or after a day.  p_lost: its page was in a tab when the browser was lost, which is counted as if a worker had died,
-- unless the browser had not answered since the loss before, for then it may be Chrome that is broken; and what no tab showed says nothing
-- about a page.
CREATE FUNCTION lanes.put_back(
    p_series bigint, p_token uuid, p_claimed_at timestamptz, p_hosts bigint[], p_sents timestamptz[], p_wait interval, p_reason text, p_address inet,
    p_resume jsonb, p_queue_host bigint, p_sent boolean, p_lost boolean
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    t      CONSTANT timestamptz := lanes.now();
    v_held boolean := lanes.hold(p_series, p_token, p_hosts || p_queue_host);
    v_back CONSTANT interval := lanes.gone_back(p_series, p_claimed_at, t);
    v_until CONSTANT timestamptz := (
        SELECT coalesce(CASE WHEN resume_until > latest_checked_at THEN resume_until END, t + interval '1 hour')
        FROM lanes.series WHERE id = p_series);
    v_longest interval := CASE WHEN p_resume IS NOT NULL THEN interval '1 hour' END;
    v_queue bigint;
BEGIN
    IF p_resume IS NOT NULL AND EXISTS (SELECT FROM lanes.hosts WHERE id = p_queue_host AND greatest(not_before, next_at) > v_until) THEN
        p_resume := NULL; p_address := NULL; p_queue_host := NULL;
        v_longest := interval '1 day';
    END IF;
    IF v_held THEN
        UPDATE lanes.series s SET
            lease_until = NULL, lease_token = NULL, lease_machine = NULL, lease_trigger = NULL,
            abandoned = CASE
                WHEN p_lost AND NOT (SELECT lost_again FROM lanes.browser) THEN s.abandoned + 1
                WHEN (SELECT browser FROM lanes.lanes WHERE site = s.site) THEN s.abandoned
                ELSE 0 END,
            latest_checked_at = CASE WHEN p_sent THEN s.latest_checked_at ELSE s.earlier_checked_at END,
            retry_at = t + least(p_wait, v_longest), retry_reason = p_reason, retry_address = p_address,
            queue_host_id = coalesce((SELECT id FROM lanes.hosts WHERE id = p_queue_host AND site = s.site), s.host_id),
            resume = p_resume,
            resume_until = CASE WHEN p_resume IS NOT NULL THEN v_until END
        WHERE s.id = p_series
        RETURNING s.queue_host_id INTO v_queue;
    END IF;
    PERFORM lanes.let_all_go(p_token, p_hosts, lanes.all_back(p_sents, v_back));
    IF v_queue <> ALL (p_hosts) THEN
        PERFORM lanes.let_all_go(p_token, ARRAY[v_queue], ARRAY[NULL::timestamptz]);
    END IF;
    RETURN v_held;
END $$;

-- The Readers of one Series follow another from now on as well; a copy is marked, so that it can be taken back.
CREATE FUNCTION lanes.copy_bookmarks(p_from bigint, p_to bigint, t timestamptz) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO lanes.bookmarks (reader_id, series_id, bookmarked_at, muted, copied_from)
    SELECT reader_id, p_to, bookmarked_at, muted, p_from FROM lanes.bookmarks WHERE series_id = p_from
    ON CONFLICT DO NOTHING;
    UPDATE lanes.series s SET
        bookmarks = (SELECT count(*) FROM lanes.bookmarks WHERE series_id = p_to),
        bookmarked_at = CASE WHEN s.bookmarks > 0 THEN s.bookmarked_at ELSE t END,
        news_from = CASE WHEN s.bookmarks > 0 THEN s.news_from END
    WHERE s.id = p_to;
END $$;

-- A Series moves for good to p_url on p_host.  Where another Series is followed there, it retires instead and its Bookmarks are copied;
-- where that one is retired itself, nothing happens.  Returns the key of whoever is followed there now, and whether that is another.
CREATE FUNCTION lanes.adopt(p_series bigint, p_url text, p_host bigint, OUT key text, OUT merged boolean) LANGUAGE plpgsql AS $$
DECLARE
    t       CONSTANT timestamptz := lanes.now();
    v_other lanes.series;
BEGIN
    SELECT o.* INTO v_other FROM lanes.series o JOIN lanes.series s ON s.id = p_series AND s.site = o.site
    WHERE o.url = p_url AND md5(o.url) = md5(p_url) AND o.id <> p_series FOR NO KEY UPDATE OF o;
    merged := FOUND;
    IF (merged AND v_other.retired_at IS NOT NULL) OR NOT lanes.is_own_host(p_series, p_host) THEN RETURN; END IF;
    IF merged THEN PERFORM lanes.copy_bookmarks(p_series, v_other.id, t); END IF;
    UPDATE lanes.series s SET
        moving_to = NULL, moving_since = NULL, moving_polls = 0,
        retired_at = CASE WHEN merged THEN t END, retired_reason = CASE WHEN merged THEN 'moved to ' || v_other.key END,
        old_url = CASE WHEN merged THEN s.old_url ELSE s.url END, url = CASE WHEN merged THEN s.url ELSE p_url END,
        host_id = CASE WHEN merged THEN s.host_id ELSE p_host END,
        queue_host_id = CASE WHEN merged THEN s.queue_host_id ELSE p_host END
    WHERE s.id = p_series
    RETURNING CASE WHEN merged THEN v_other.key ELSE s.key END INTO adopt.key;
END $$;

-- The Series to which another was merged when it retired; null: it was not, whatever words its owner gave as a reason.
CREATE FUNCTION lanes.merged_into(p_series bigint) RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT o.id FROM lanes.series s JOIN lanes.series o ON o.key = substr(s.retired_reason, length('moved to ') + 1)
    WHERE s.id = p_series AND starts_with(s.retired_reason, 'moved to ') AND NOT s.retired_by_owner
$$;

-- Whoever lives again takes back the Bookmarks that were copied from it and are unchanged since; how many.
CREATE FUNCTION lanes.drop_copies(p_series bigint, p_other bigint) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    v_gone integer;
BEGIN
    PERFORM 1 FROM lanes.series WHERE id = p_other FOR NO KEY UPDATE;
    DELETE FROM lanes.bookmarks c USING lanes.bookmarks o
    WHERE c.series_id = p_other AND c.copied_from = p_series AND o.series_id = p_series AND o.reader_id = c.reader_id
      AND o.muted = c.muted AND o.bookmarked_at = c.bookmarked_at;
    GET DIAGNOSTICS v_gone = ROW_COUNT;
    UPDATE lanes.series SET bookmarks = bookmarks - v_gone WHERE id = p_other;
    RETURN v_gone;
END $$;

-- A Series that was given up, not by the owner, begins anew, to be looked at now; its Readers are told.
CREATE FUNCTION lanes.live_again(p_series bigint, t timestamptz) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM lanes.drop_copies(p_series, lanes.merged_into(p_series));
    UPDATE lanes.series SET
        retired_at = NULL, retired_reason = NULL, revived_at = t, failures = 0, failing_since = NULL, failure = NULL, failure_kind = NULL,
        refusals = 0, refused_since = NULL, gone_at = NULL, spared_by = NULL, moving_to = NULL, moving_since = NULL, moving_polls = 0,
        next_check_at = CASE WHEN tier = 'poll' THEN t END, force_poll_at = greatest(t, latest_checked_at + interval '1 microsecond'),
        resume = NULL, resume_until = NULL, retry_address = NULL, queue_host_id = CASE WHEN lease_token IS NULL THEN host_id ELSE queue_host_id END
    WHERE id = p_series;
    PERFORM lanes.tell_readers(p_series, 'back again', lanes.event('back', p_series, t), '{}');
END $$;

-- A web page named its feed: the Series follows that URL from now on and is due at once.  Where the feed is followed already, that Series
-- takes over the Bookmarks and this one retires, its Readers told; one that was given up lives again.  What the owner gave up stays as it
-- is, and so does the page.  Whether the lease still held.
CREATE FUNCTION lanes.follow_feed(
    p_series bigint, p_token uuid, p_claimed_at timestamptz, p_hosts bigint[], p_sents timestamptz[], p_url text, p_host bigint
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    t       CONSTANT timestamptz := lanes.now();
    v_held  boolean := lanes.hold(p_series, p_token, p_hosts || p_host);
    v_back  CONSTANT interval := lanes.gone_back(p_series, p_claimed_at, t);
    v_other lanes.series;
BEGIN
    IF v_held THEN
        SELECT o.* INTO v_other FROM lanes.series o JOIN lanes.series s ON s.id = p_series AND s.site = o.site
        WHERE o.url = p_url AND md5(o.url) = md5(p_url) FOR NO KEY UPDATE OF o;
        IF v_other.retired_by_owner THEN
            UPDATE lanes.series SET
                lease_until = NULL, lease_token = NULL, lease_machine = NULL, lease_trigger = NULL, abandoned = 0, discovering = false,
                resume = NULL, resume_until = NULL, queue_host_id = host_id
            WHERE id = p_series;
            PERFORM lanes.let_all_go(p_token, p_hosts, lanes.all_back(p_sents, v_back));
            RETURN true;
        END IF;
        IF v_other.retired_at IS NOT NULL THEN PERFORM lanes.live_again(v_other.id, t); END IF;
        IF v_other.id IS NOT NULL THEN
            PERFORM lanes.copy_bookmarks(p_series, v_other.id, t);
            PERFORM lanes.tell_readers(
                p_series, 'moved', lanes.event('moved', p_series, t), jsonb_build_object('to', v_other.key, 'merged', true));
        END IF;
        UPDATE lanes.series s SET
            lease_until = NULL, lease_token = NULL, lease_machine = NULL, lease_trigger = NULL, abandoned = 0, discovering = false,
            resume = NULL, resume_until = NULL,
            retired_at = CASE WHEN v_other.id IS NOT NULL THEN t END,
            retired_reason = 'moved to ' || v_other.key,
            old_url = s.url, url = CASE WHEN v_other.id IS NULL THEN p_url ELSE s.url END,
            host_id = CASE WHEN v_other.id IS NULL THEN p_host ELSE s.host_id END,
            queue_host_id = CASE WHEN v_other.id IS NULL THEN p_host ELSE s.host_id END,
            retry_at = CASE WHEN v_other.id IS NULL THEN t END,
            retry_reason = CASE WHEN v_other.id IS NULL THEN 'its page named this feed' END
        WHERE s.id = p_series;
    END IF;
    PERFORM lanes.let_all_go(p_token, p_hosts, lanes.all_back(p_sents, v_back));
    IF p_host <> ALL (p_hosts) THEN
        PERFORM lanes.let_all_go(p_token, ARRAY[p_host], ARRAY[NULL::timestamptz]);
    END IF;
    RETURN v_held;
END $$;
