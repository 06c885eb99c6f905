-- Pace and blame that can be proved: whose fault a failure is, what was refused, what the owner said, what robots.txt says.
-- Every instant here is lanes.now(); what is decided from these columns is decided in lanes/core.

-- The effective Gap in force, written by its Lane, so that a hop of another Site's Lane spends it too.  A refusal window's evidence: the
-- URL (hashed) and the sent instant of the last refused read, and the sent instant of the last good one.
ALTER TABLE lanes.lanes
    ADD COLUMN gap lanes.duration,
    ADD COLUMN refused_url bytea,
    ADD COLUMN refused_at timestamptz,
    ADD COLUMN good_sent_at timestamptz;

-- answers: the last answers of distinct Series, newest last, as [series, kind of failure or null, claimed_at].  failing: the kind in which
-- the Site fails while its incident is open.
ALTER TABLE lanes.hosts
    ADD COLUMN refused_url bytea,
    ADD COLUMN refused_at timestamptz,
    ADD COLUMN good_sent_at timestamptz,
    ADD COLUMN answers jsonb NOT NULL DEFAULT '[]',
    ADD COLUMN failing text;

-- spared_by: the incident that spares the Series its failures.  stays_off: the target of a move that the owner took back.
-- retired_by_owner: no good answer revives it, only the owner does.
ALTER TABLE lanes.series
    ADD COLUMN refused_since timestamptz,
    ADD COLUMN failure_kind text,
    ADD COLUMN spared_by bigint,
    ADD COLUMN stays_off text,
    ADD COLUMN retired_by_owner boolean NOT NULL DEFAULT false,
    ADD COLUMN distrusted_reason text,
    ADD CONSTRAINT distrust_has_a_reason CHECK (num_nulls(distrusted_at, distrusted_reason) IN (0, 2));
CREATE INDEX series_refused ON lanes.series (refused_since) WHERE refused_since IS NOT NULL;
CREATE INDEX series_host ON lanes.series (host_id);
CREATE INDEX series_resumed ON lanes.series (resume_until) WHERE resume_until IS NOT NULL;

-- proof: whether the attempt proved that the line of its machine works (null: it was not tried).
ALTER TABLE lanes.polls
    ADD COLUMN proof boolean,
    ADD COLUMN failure_kind text,
    ADD COLUMN lane_wait_until timestamptz;

-- Of attempts without proof, which are few: no other record pays for it.
CREATE INDEX polls_doubted ON lanes.polls (machine, claimed_at) WHERE NOT proof;

-- One row per machine that polls: what is known of its line.  us_since: its line is down.  shaken_at: the database was away or the clock
-- jumped.  asked_at: when it last looked at a host that had answered lately, to find out.  excused_at: us ended without a proof, because
-- only one host is followed and a day is over.
CREATE TABLE lanes.machines (
    machine      lanes.word PRIMARY KEY,
    shaken_at    timestamptz,
    asked_at     timestamptz,
    asked_series bigint,
    us_since     timestamptz,
    probe_at     timestamptz,
    excused_at   timestamptz
) WITH (fillfactor = 50);

-- robots.txt by exact origin: the last copy that could be read, and when it is asked for again.
CREATE TABLE lanes.robots (
    origin             lanes.word PRIMARY KEY,
    host_id            bigint NOT NULL REFERENCES lanes.hosts ON DELETE CASCADE,
    asked_at           timestamptz NOT NULL,
    again_at           timestamptz NOT NULL,
    status             smallint,
    text               text,
    read_at            timestamptz,                  -- when `text` was got; null: no copy
    crawl_delay        lanes.crawl_delay,
    crawl_delay_since  timestamptz,
    unanswered_since   timestamptz,
    CONSTRAINT a_copy_has_an_instant CHECK (num_nulls(text, read_at) IN (0, 2)),
    CONSTRAINT a_delay_has_a_start CHECK (num_nulls(crawl_delay, crawl_delay_since) IN (0, 2))
);
CREATE INDEX robots_host ON lanes.robots (host_id);

-- What the owner said about a host or a Site, in force while ended_at is null.  It can only slow.
CREATE TABLE lanes.words (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    host_id    bigint REFERENCES lanes.hosts ON DELETE CASCADE,
    site       text REFERENCES lanes.lanes,
    at_least   lanes.duration,                       -- null: blocked
    said_at    timestamptz NOT NULL,
    ended_at   timestamptz CHECK (ended_at >= said_at),
    before_until   timestamptz,                      -- of a block: the wait that stood there before, given back where it is still ahead
    before_reason  text,
    CONSTRAINT what_stood_before_has_a_reason CHECK (num_nulls(before_until, before_reason) IN (0, 2)),
    CONSTRAINT about_a_host_or_a_site CHECK (num_nulls(host_id, site) = 1),
    CONSTRAINT only_a_host_is_blocked CHECK (at_least IS NOT NULL OR host_id IS NOT NULL)
);
CREATE UNIQUE INDEX words_in_force ON lanes.words (host_id, site, (at_least IS NULL)) NULLS NOT DISTINCT WHERE ended_at IS NULL;

-- Each time that the clock went back: when, by the new clock, and by how much every stored instant of pace was shifted.  Never pruned:
-- the poll record is not shifted, and each of its rows has only how much the clock had gone back in all when it was written.
CREATE TABLE lanes.clock_shifts (
    id    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at    timestamptz NOT NULL,
    back  interval NOT NULL CHECK (back > '0')
);
-- plpgsql, for it keeps its plan: every row of the poll record asks.
CREATE FUNCTION lanes.shifted() RETURNS interval LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
BEGIN
    RETURN (SELECT coalesce(sum(back), '0') FROM lanes.clock_shifts);
END $$;
ALTER TABLE lanes.polls ADD COLUMN shifted interval NOT NULL DEFAULT '0';
ALTER TABLE lanes.polls ALTER COLUMN shifted SET DEFAULT lanes.shifted();

-- An incident's kind is the kind of failure it is made of; told_at: its third day passed and the Readers were told; owner_told_at: a
-- refusal's first hour passed and the owner was told; over_told_at: whoever was told was told of its end.
ALTER TABLE lanes.incidents
    ADD COLUMN kind text,
    ADD COLUMN told_at timestamptz,
    ADD COLUMN owner_told_at timestamptz,
    ADD COLUMN over_told_at timestamptz;
CREATE INDEX incidents_started ON lanes.incidents (started_at DESC);

-- What `lanes upkeep` looks for: URLs that were refused alone and told, what is delivered, hosts that nothing points to.
CREATE INDEX notices_refused ON lanes.notices (series_id) WHERE kind = 'refused' AND series_id IS NOT NULL;
CREATE INDEX notices_delivered ON lanes.notices (delivered_at) WHERE delivered_at IS NOT NULL;
CREATE INDEX hosts_unused ON lanes.hosts (unused_since) WHERE unused_since IS NOT NULL;
ALTER TABLE lanes.notices SET (autovacuum_vacuum_scale_factor = 0.05);

-- Of all Series and not only of those that can be claimed: a host row that goes is looked up here by its foreign key.
DROP INDEX lanes.series_turn;
CREATE INDEX series_turn ON lanes.series (queue_host_id, turn, claimable_at);
