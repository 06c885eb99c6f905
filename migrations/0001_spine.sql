-- The tables of the spine.  They carry from the start what later rules need (gates, put back, poll record, incidents, Notices),
-- because a column that is added to a hot table later is a long lock on somebody's only server.
-- Functions that decide (due, gate, claim, settle) are code, not tables: they live in lanes/store/sql/rules/ and `lanes migrate`
-- replaces them after the migrations.

CREATE SCHEMA IF NOT EXISTS lanes;

-- One row: the clock.  Tests (and an independent verifier) move time with
--   UPDATE lanes.clock SET test_offset = '2 hours';
-- latest_seen is the latest lanes.now() any Lane saw: a clock set back is noticed by it.
CREATE TABLE lanes.clock (
    only_row     boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    test_offset  interval NOT NULL DEFAULT '0',
    latest_seen  timestamptz NOT NULL DEFAULT '-infinity'
);
INSERT INTO lanes.clock DEFAULT VALUES;

-- The one clock of the whole system: statement time plus the test offset.
CREATE FUNCTION lanes.now() RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE
    RETURN (SELECT statement_timestamp() + c.test_offset FROM lanes.clock c);

-- An instant plus a duration, by the clock and not by the calendar, so that it is truly immutable and fit for a generated column.
CREATE FUNCTION lanes.later(t timestamptz, duration interval) RETURNS timestamptz LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (t AT TIME ZONE 'UTC' + duration) AT TIME ZONE 'UTC';

-- What one value must be is said once, as a domain: it is checked when the value is given, not at every update of its row.
CREATE DOMAIN lanes.word AS text CHECK (VALUE <> '');
CREATE DOMAIN lanes.number_of AS integer CHECK (VALUE >= 0);
CREATE DOMAIN lanes.duration AS interval CHECK (VALUE > '0');
CREATE DOMAIN lanes.series_key AS text CHECK (VALUE ~ '^[a-z0-9][a-z0-9-]{0,99}$');
CREATE DOMAIN lanes.tier AS text CHECK (VALUE IN ('poll', 'push'));
CREATE DOMAIN lanes.lifecycle AS text CHECK (VALUE IN ('ongoing', 'hiatus', 'finished'));
CREATE DOMAIN lanes.host_name AS text CHECK (VALUE <> '' AND VALUE = lower(VALUE));
CREATE DOMAIN lanes.host_pace AS interval CHECK (VALUE >= '0');
CREATE DOMAIN lanes.crawl_delay AS interval CHECK (VALUE >= '0' AND VALUE <= '1 hour');
CREATE DOMAIN lanes.hint AS interval CHECK (VALUE > '0' AND VALUE <= '24 hours');
CREATE DOMAIN lanes.hours_of_day AS integer CHECK (VALUE BETWEEN 0 AND 16777215);  -- bit n: hour n, UTC
CREATE DOMAIN lanes.days_of_week AS smallint CHECK (VALUE BETWEEN 0 AND 127);      -- bit 0: Monday

-- The key of an address bucket: an IPv4 address by itself (behind NAT64 too), an IPv6 address by its /64.
CREATE FUNCTION lanes.bucket(address inet) RETURNS inet LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE
        WHEN family(address) = 4 THEN set_masklen(address, 32)
        WHEN set_masklen(address, 128) << '64:ff9b::/96' THEN '0.0.0.0'::inet + (set_masklen(address, 128) - '64:ff9b::'::inet)
        ELSE set_masklen(network(set_masklen(address, 64))::inet, 64)
    END;

-- One row per registered Site: what its Lane shares between processes and keeps over restarts.
CREATE TABLE lanes.lanes (
    site           lanes.word PRIMARY KEY,
    next_at        timestamptz NOT NULL DEFAULT '-infinity',  -- the Gap's bucket
    refused_until  timestamptz,
    refused_since  timestamptz,
    refusals       lanes.number_of NOT NULL DEFAULT 0,
    paused_at      timestamptz,
    seen_at        timestamptz,                               -- when its Lane last kept house, once a minute
    switched_off   boolean NOT NULL DEFAULT false,            -- the Lane started last has the kill switch set: for whoever explains
    owner_gap      lanes.duration, -- the owner's word, can only slow
    browser_asleep boolean NOT NULL DEFAULT false
) WITH (fillfactor = 50);

-- The one row about the browser sidecar; absent until a sidecar has run.
CREATE TABLE lanes.browser (
    only_row            boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    heartbeat_at        timestamptz NOT NULL,
    awake               boolean NOT NULL DEFAULT false,
    version             text,
    browser_lost_until  timestamptz
);

-- A host is a name (without scheme and port) and belongs to one Site.
-- What decides between two claims stands here: busy_until, next_at, not_before, ready_at.
CREATE TABLE lanes.hosts (
    id                 bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    site               text NOT NULL REFERENCES lanes.lanes,
    name               lanes.host_name NOT NULL UNIQUE,
    address            inet,                                             -- last dialled
    bucket             inet,                                             -- the bucket of that address
    pace               lanes.host_pace NOT NULL DEFAULT '1 second',  -- the host interval, before its lower bounds
    crawl_delay        lanes.crawl_delay,
    owner_pace         lanes.duration, -- the owner's word, can only slow
    next_at            timestamptz NOT NULL DEFAULT '-infinity',         -- the host bucket
    sent_at            timestamptz,
    busy_until         timestamptz NOT NULL DEFAULT '-infinity',         -- one fetch per host at a time
    busy_token         uuid,
    not_before         timestamptz NOT NULL DEFAULT '-infinity',
    not_before_reason  text,
    ready_at           timestamptz NOT NULL DEFAULT '-infinity',         -- a hint: early at will, late only by a booked place
    pending_at         timestamptz,
    latency            interval,                                         -- smoothed
    backoffs           lanes.number_of NOT NULL DEFAULT 0, -- in a row, at the ceiling
    dead_since         timestamptz,
    refused_pace       interval,                                         -- where the host last refused us
    refused_pace_at    timestamptz,
    refused_paces      lanes.number_of NOT NULL DEFAULT 0,
    unavailable_url    bytea,                                            -- the URL (hashed) of the last 503, and when
    unavailable_at     timestamptz,
    refused_until      timestamptz,
    refused_since      timestamptz,
    refusals           lanes.number_of NOT NULL DEFAULT 0,
    unused_since       timestamptz,
    CONSTRAINT an_address_has_a_bucket CHECK (num_nulls(address, bucket) IN (0, 2)),
    CONSTRAINT a_wait_has_a_reason CHECK ((not_before = '-infinity') = (not_before_reason IS NULL)),
    CONSTRAINT in_hand_has_a_token CHECK ((busy_until = '-infinity') = (busy_token IS NULL))
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX hosts_ready ON lanes.hosts (site, ready_at);
CREATE INDEX hosts_pending ON lanes.hosts (site, ready_at) WHERE pending_at IS NOT NULL;
CREATE INDEX hosts_bucket ON lanes.hosts (bucket, ready_at) WHERE bucket IS NOT NULL;

-- The address buckets.  IPv6 by its /64.
CREATE TABLE lanes.addresses (
    address       inet PRIMARY KEY,
    next_at       timestamptz NOT NULL DEFAULT '-infinity',
    booked_until  timestamptz NOT NULL DEFAULT '-infinity',
    used_at       timestamptz NOT NULL,
    used_by       uuid                                        -- the lease that spent it last
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX addresses_used ON lanes.addresses (used_at);

CREATE TABLE lanes.series (
    id                   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key                  lanes.series_key NOT NULL UNIQUE,
    site                 text NOT NULL REFERENCES lanes.lanes,
    host_id              bigint NOT NULL REFERENCES lanes.hosts,
    queue_host_id        bigint NOT NULL REFERENCES lanes.hosts,  -- where it queues: host_id, or the host of a redirect chain's next hop
    url                  text NOT NULL,
    old_url              text,
    title                text,
    home                 text,
    tier                 lanes.tier NOT NULL DEFAULT 'poll',
    lifecycle            lanes.lifecycle NOT NULL DEFAULT 'ongoing',
    bookmarks            lanes.number_of NOT NULL DEFAULT 0,
    bookmarked_at        timestamptz,
    added_at             timestamptz NOT NULL DEFAULT lanes.now(),
    paused_at            timestamptz,
    retired_at           timestamptz,
    retired_reason       text,
    refusals             lanes.number_of NOT NULL DEFAULT 0,  -- of its URL alone, in a row
    revived_at           timestamptz,
    discovering          boolean NOT NULL DEFAULT true,    -- a web page may still be asked for its feed, until the first good Poll
    -- schedule
    next_check_at        timestamptz DEFAULT '-infinity',
    rest                 lanes.duration,      -- the adaptive interval of `feeds`; null where the registry's Rest rules
    latest_checked_at    timestamptz NOT NULL DEFAULT '-infinity',
    earlier_checked_at   timestamptz NOT NULL DEFAULT '-infinity',   -- the stamp before this claim's, given back by a put back
    force_poll_at        timestamptz,
    sighted_at           timestamptz,
    sightings            lanes.number_of NOT NULL DEFAULT 0,
    not_before           timestamptz,
    not_before_reason    text,
    -- the lease
    lease_until          timestamptz,
    lease_token          uuid,
    lease_machine        text,
    lease_trigger        text,
    abandoned            lanes.number_of NOT NULL DEFAULT 0,
    -- put back
    retry_at             timestamptz,
    retry_reason         text,
    retry_address        inet,
    resume               jsonb,
    resume_until         timestamptz,
    -- counters
    failures             lanes.number_of NOT NULL DEFAULT 0,
    failing_since        timestamptz,
    failure              text,
    good_at              timestamptz,                      -- the last good answer
    first_good_at        timestamptz,
    gone_at              timestamptz,                      -- the first 410 in a row
    news_from            timestamptz,                      -- null: the next good Poll records what is there and tells nobody
    -- what goes back to the server, and only to the URL that gave it
    etag                 text,
    last_modified        text,
    validators_url       text,
    body_hash            bytea,
    unconditional_at     timestamptz,
    distrusted_at        timestamptz,                      -- validators that lied
    hint_every           lanes.hint,
    hint_skip_hours      lanes.hours_of_day NOT NULL DEFAULT 0,
    hint_skip_days       lanes.days_of_week NOT NULL DEFAULT 0,
    guid_alone           boolean NOT NULL DEFAULT true,    -- false for good once one document gave one guid to two titles
    moving_to            text,
    moving_since         timestamptz,
    moving_polls         smallint NOT NULL DEFAULT 0,
    -- Its place in its host's queue, kept by place_in_queue() below: whose turn (0 pending, 1 put back, 2 anything else), and the instant
    -- from which a claim may take it (null: never).  They restate lanes.due() for the one index that a claim descends; on a Site of one
    -- host, whose Rest is not stored, a lower bound.
    turn                 smallint NOT NULL DEFAULT 2,
    claimable_at         timestamptz,
    CONSTRAINT push_is_never_polled CHECK ((tier = 'push') = (next_check_at IS NULL)),
    CONSTRAINT a_lease_has_a_token_and_a_holder CHECK (num_nulls(lease_until, lease_token, lease_machine) IN (0, 3)),
    CONSTRAINT a_wait_has_a_reason CHECK (num_nulls(not_before, not_before_reason) IN (0, 2)),
    CONSTRAINT a_put_back_has_a_reason CHECK (num_nulls(retry_at, retry_reason) IN (0, 2)),
    CONSTRAINT a_resume_is_forgotten CHECK (num_nulls(resume, resume_until) IN (0, 2)),
    CONSTRAINT retirement_has_a_reason CHECK (num_nulls(retired_at, retired_reason) IN (0, 2)),
    CONSTRAINT failing_has_a_start CHECK ((failures = 0) = (failing_since IS NULL)),
    CONSTRAINT validators_have_a_url CHECK (validators_url IS NOT NULL OR num_nonnulls(etag, last_modified) = 0)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE UNIQUE INDEX series_url ON lanes.series (site, md5(url)) WHERE url <> '';
CREATE INDEX series_turn ON lanes.series (queue_host_id, turn, claimable_at) WHERE claimable_at IS NOT NULL;

-- A trigger and not generated columns: those cost twice the update itself, because their expression is parsed anew by each statement.
CREATE FUNCTION lanes.place_in_queue() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.turn := CASE
        WHEN NEW.retired_at IS NULL AND NEW.force_poll_at > NEW.latest_checked_at THEN 0
        WHEN NEW.retry_at IS NOT NULL THEN 1
        ELSE 2 END;
    NEW.claimable_at := CASE WHEN NEW.tier = 'poll' AND NEW.url <> '' AND NEW.bookmarks > 0 AND NEW.paused_at IS NULL THEN greatest(
        NEW.not_before, NEW.lease_until, NEW.retry_at,
        CASE
            WHEN NEW.turn = 0 THEN NEW.force_poll_at
            WHEN NEW.retry_at IS NOT NULL THEN NEW.retry_at
            WHEN NEW.lease_until IS NOT NULL THEN NEW.lease_until
            ELSE least(
                lanes.later(NEW.latest_checked_at, '168 hours'),
                CASE WHEN NEW.retired_at IS NULL AND NEW.lifecycle <> 'finished' THEN greatest(
                    NEW.next_check_at,
                    lanes.later(NEW.latest_checked_at, coalesce(NEW.rest, '0')),
                    lanes.later(NEW.sighted_at, coalesce(NEW.rest, '0')))
                END)
        END)
    END;
    RETURN NEW;
END $$;
CREATE TRIGGER place_in_queue BEFORE INSERT OR UPDATE ON lanes.series FOR EACH ROW EXECUTE FUNCTION lanes.place_in_queue();

CREATE TABLE lanes.chapters (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    series_id     bigint NOT NULL REFERENCES lanes.series ON DELETE CASCADE,
    title         text NOT NULL,
    url           text,
    published_at  timestamptz,
    approximate   boolean NOT NULL DEFAULT false,
    found_at      timestamptz NOT NULL,
    announced     boolean NOT NULL,                  -- false: first sight or back-fill, nobody was told
    volume        text,
    number        text,
    label         text NOT NULL DEFAULT '',
    -- Where it stands in a list: a date in the future sorts by first sight (CASES F9).
    sort_at       timestamptz NOT NULL GENERATED ALWAYS AS (least(coalesce(published_at, found_at), found_at)) STORED
);
CREATE INDEX chapters_series ON lanes.chapters (series_id, sort_at DESC);
CREATE INDEX chapters_found ON lanes.chapters (found_at DESC);

-- Every identity a Chapter was ever seen with, hashed, for ever: it outlives the Chapter's text (chapter_id null when pruned).
CREATE TABLE lanes.identities (
    series_id   bigint NOT NULL REFERENCES lanes.series ON DELETE CASCADE,
    identity    uuid NOT NULL,
    PRIMARY KEY (series_id, identity)
);

CREATE TABLE lanes.readers (
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name      text NOT NULL UNIQUE CHECK (name <> ''),
    added_at  timestamptz NOT NULL DEFAULT lanes.now()
);
INSERT INTO lanes.readers (name) VALUES ('owner');

CREATE TABLE lanes.bookmarks (
    reader_id      bigint NOT NULL REFERENCES lanes.readers ON DELETE CASCADE,
    series_id      bigint NOT NULL REFERENCES lanes.series ON DELETE CASCADE,
    bookmarked_at  timestamptz NOT NULL DEFAULT lanes.now(),
    muted          boolean NOT NULL DEFAULT false,
    copied_from    bigint REFERENCES lanes.series ON DELETE SET NULL,
    PRIMARY KEY (reader_id, series_id)
);
CREATE INDEX bookmarks_series ON lanes.bookmarks (series_id);

-- The poll record: one row per request of a Poll (hop 0 first), one row without sent_at for a Poll that wrote none.
-- The last hop of a Poll carries its outcome; `changed` says what the Poll changed and what stood there before.
CREATE TABLE lanes.polls (
    claimed_at        timestamptz NOT NULL,
    token             uuid NOT NULL,
    hop               smallint NOT NULL DEFAULT 0,
    series_id         bigint NOT NULL,
    site              text NOT NULL,
    host              text NOT NULL,
    address           inet,
    machine           text NOT NULL,
    trigger           text NOT NULL,
    sent_at           timestamptz,
    ended_at          timestamptz,
    outcome           text NOT NULL,
    status            smallint,
    wire_bytes        integer NOT NULL DEFAULT 0,
    new_chapters      integer NOT NULL DEFAULT 0,
    detail            text,
    host_pace         interval NOT NULL,          -- the host interval in force at the claim, all its lower bounds included
    address_pace      interval NOT NULL,
    lane_gap          interval,
    host_wait_until   timestamptz,                -- the wait this answer laid on its host, and on its Series
    series_wait_until timestamptz,
    changed           jsonb NOT NULL DEFAULT '{}',
    PRIMARY KEY (claimed_at, token, hop)
) PARTITION BY RANGE (claimed_at);
-- Strays: a day without a partition of its own loses nothing.
CREATE TABLE lanes.polls_stray PARTITION OF lanes.polls DEFAULT;
CREATE INDEX polls_series ON lanes.polls (series_id, claimed_at DESC);

-- One trouble of us or of a Site.
CREATE TABLE lanes.incidents (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    whose       text NOT NULL CHECK (whose IN ('us', 'site', 'refusal')),
    machine     text,
    site        text REFERENCES lanes.lanes,
    host_id     bigint REFERENCES lanes.hosts ON DELETE CASCADE,
    started_at  timestamptz NOT NULL,
    ended_at    timestamptz CHECK (ended_at >= started_at),
    spared      integer NOT NULL DEFAULT 0 CHECK (spared >= 0),
    evidence    jsonb NOT NULL DEFAULT '{}',
    CONSTRAINT us_is_a_machine CHECK ((whose = 'us') = (machine IS NOT NULL)),
    CONSTRAINT a_site_is_named CHECK (whose = 'us' OR site IS NOT NULL)
);
CREATE UNIQUE INDEX incidents_open ON lanes.incidents (whose, machine, site, host_id) NULLS NOT DISTINCT WHERE ended_at IS NULL;

-- One thing owed to one Reader, or to the owner (reader_id null).
CREATE TABLE lanes.notices (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    reader_id     bigint REFERENCES lanes.readers ON DELETE CASCADE,
    series_id     bigint REFERENCES lanes.series ON DELETE CASCADE,
    kind          text NOT NULL CHECK (kind <> ''),
    event         text NOT NULL CHECK (event <> ''),
    body          jsonb NOT NULL DEFAULT '{}',
    made_at       timestamptz NOT NULL,
    delivered_at  timestamptz,
    CONSTRAINT one_per_reader_and_event UNIQUE NULLS NOT DISTINCT (reader_id, event)
);
CREATE INDEX notices_owed ON lanes.notices (reader_id, id) WHERE delivered_at IS NULL;

-- Which edition of the deciding functions (lanes/store/sql/rules/) is in force.
CREATE TABLE lanes.rules (
    only_row  boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    edition   text NOT NULL
);
