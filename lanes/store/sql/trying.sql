-- What the owner's `lanes try` says to the database (rules/9_trying.sql decides).

-- name: enrol(site, browser)!
-- The row of a Site whose Lane has perhaps never run, and whether it needs the browser.
INSERT INTO lanes.lanes AS l (site, browser) VALUES (:site, :browser)
ON CONFLICT (site) DO UPDATE SET browser = true WHERE EXCLUDED.browser AND NOT l.browser;

-- name: visit(site, machine, gap, host_id, dial, lease, address_pace)^
-- Enters a host, or says what stands in the way.
SELECT v.*, v.stop_until - v.claimed_at AS wait FROM lanes.visit(:site, :machine, :gap, :host_id, :dial, :lease, :address_pace) v;

-- name: leave$
-- Leaves it, and records the requests.
WITH left_now AS MATERIALIZED (
    SELECT lanes.leave(
        :site, :token, :hosts, :host_sents, :host_id, :pace, :wait_until, :wait_reason, :url, :url_wait_until, :url_wait_reason)
)
SELECT lanes.record(
    0, :token, :claimed_at, :site, :machine, :trigger, :address_pace, :hops, true, :outcome, :detail, p_host_wait_until => :wait_until)
FROM left_now;
