-- What Lanes ask of the browser sidecar, and what stands in their way while it cannot be asked (DESIGN 7).

-- browser: its pages are read through the sidecar.  Whether Chrome may stay asleep is derived from what is due, so nothing stores it.
ALTER TABLE lanes.lanes DROP COLUMN browser_asleep;
ALTER TABLE lanes.lanes ADD COLUMN browser boolean NOT NULL DEFAULT false;

-- trouble: why a sidecar that runs cannot serve, in words for the owner.  trouble_until: when it tries again, where that is known.
ALTER TABLE lanes.browser ADD COLUMN trouble text;
ALTER TABLE lanes.browser ADD COLUMN trouble_until timestamptz;
-- lost_again: it had not answered since the loss before.  others_until: until then nobody is opened whose page lost it.
ALTER TABLE lanes.browser ADD COLUMN lost_again boolean NOT NULL DEFAULT false;
ALTER TABLE lanes.browser ADD COLUMN others_until timestamptz;

-- One page that a Poll asked for, in its Lane's words, and what the tab came to.  Unlogged: a page that is lost with Postgres is put back
-- by whoever asked.  token: the lease of that Poll.
CREATE UNLOGGED TABLE lanes.browser_pages (
    token        uuid PRIMARY KEY,
    site         text NOT NULL UNIQUE REFERENCES lanes.lanes,  -- one open page per Lane
    host_id      bigint NOT NULL,
    url          text NOT NULL,
    hosts        text[] NOT NULL,
    landmark     text NOT NULL,
    settles_for  text,
    media        boolean NOT NULL,
    suspect      boolean NOT NULL DEFAULT false,               -- its last one lost the browser: it is opened alone
    asked_at     timestamptz NOT NULL,
    taken_at     timestamptz,
    deadline_at  timestamptz,                                  -- its time in the tab
    sent_at      timestamptz,
    stop_reason  text,                                         -- why it may not be sent
    stop_until   timestamptz,
    answered_at  timestamptz,
    status       smallint,
    headers      jsonb,
    final_url    text,
    html         bytea,
    held         text,
    trouble      text,
    detail       text,
    forbidden    text,
    line_proved  boolean NOT NULL DEFAULT false,
    CONSTRAINT taken_has_a_deadline CHECK (num_nulls(taken_at, deadline_at) IN (0, 2)),
    CONSTRAINT what_may_not_be_sent_was_not CHECK (
        num_nulls(stop_reason, stop_until) = 2 OR (num_nulls(stop_reason, stop_until) = 0 AND sent_at IS NULL)),
    CONSTRAINT answered_was_taken CHECK (answered_at IS NULL OR taken_at IS NOT NULL),
    CONSTRAINT an_answer_is_a_page_or_a_trouble CHECK (answered_at IS NULL OR num_nonnulls(html, trouble) = 1)
);
