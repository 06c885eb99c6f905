-- What a Lane asks of the browser, and what the sidecar answers (rules/8_browser.sql decides).

-- name: ask_page(token, site, host_id, url, hosts, landmark, settles_for, suspect)^
-- Asks for a page; why not, where nothing can be asked now, and how long that lasts.
SELECT a.reason AS trouble, a.until - lanes.now() AS wait, lanes.now() AS at
FROM lanes.ask_page(:token, :site, :host_id, :url, :hosts, :landmark, :settles_for, :suspect) a;

-- name: look_at_page(token)^
-- How a page stands, and the browser with it; what is put back waits for a loss too, where another trouble has no end.
SELECT p.*, lanes.now() AS at, lanes.now() - p.asked_at AS waited,
       p.stop_until - lanes.now() AS stop_wait, b.reason AS trouble_now, greatest(b.until, lost.until) - lanes.now() AS wait,
       lost.until IS NOT NULL AS lost
FROM lanes.browser_pages p CROSS JOIN lanes.browser_trouble(lanes.now()) b
    LEFT JOIN (SELECT browser_lost_until AS until FROM lanes.browser WHERE browser_lost_until > lanes.now()) lost ON true
WHERE p.token = :token;

-- name: renew_lease(host_id, series_id, token, lease)$
-- Holds host and Series on; whether they were still held.
SELECT lanes.renew_lease(:host_id, :series_id, :token, :lease);

-- name: withdraw_page(token, host_id, asked_at)$
-- Nobody waits for it any more; when it was sent.  Where its row went with a sidecar or with Postgres, its host says that: nobody else
-- moves that while the Poll has it in hand.
WITH gone AS (
    DELETE FROM lanes.browser_pages WHERE token = :token RETURNING sent_at
)
SELECT sent_at FROM gone
UNION ALL
SELECT sent_at FROM lanes.hosts
WHERE id = :host_id AND busy_token = :token AND sent_at > :asked_at AND NOT EXISTS (SELECT FROM gone);

-- name: clear_pages()!
-- What was asked of a sidecar that is gone.  What it sent stays for its reader, who must learn that, and what it answered or may not send;
-- no tab has it.
WITH held AS MATERIALIZED (
    SELECT token FROM lanes.browser_pages WHERE answered_at IS NULL AND stop_reason IS NULL ORDER BY token FOR UPDATE
), unsent AS (
    DELETE FROM lanes.browser_pages p USING held WHERE p.token = held.token AND p.sent_at IS NULL
)
UPDATE lanes.browser_pages p SET taken_at = NULL, deadline_at = NULL FROM held WHERE p.token = held.token AND p.sent_at IS NOT NULL;

-- name: leave_page(token, why)!
-- No tab has it any more, and it has no answer: whoever asked is told why, and learns whether it was sent.
WITH unsent AS (
    UPDATE lanes.browser_pages SET stop_reason = :why, stop_until = lanes.now()
    WHERE token = :token AND sent_at IS NULL AND stop_reason IS NULL AND answered_at IS NULL RETURNING site
), sent AS (
    UPDATE lanes.browser_pages SET taken_at = NULL, deadline_at = NULL, detail = :why
    WHERE token = :token AND sent_at IS NOT NULL AND answered_at IS NULL RETURNING site
)
SELECT pg_notify('lanes_page_' || site, '') FROM (TABLE unsent UNION ALL TABLE sent) one;

-- name: beat(awake, version, not_held)^
-- The sidecar lives, and can serve; until when the browser is lost, and whether that is over.
INSERT INTO lanes.browser (heartbeat_at, awake, version, not_held) VALUES (lanes.now(), :awake, :version, :not_held)
ON CONFLICT (only_row) DO UPDATE SET heartbeat_at = EXCLUDED.heartbeat_at, awake = EXCLUDED.awake, version = EXCLUDED.version,
    not_held = EXCLUDED.not_held, trouble = NULL, trouble_until = NULL
RETURNING browser_lost_until AS until, browser_lost_until <= lanes.now() AS over;

-- name: unable(trouble, wait)!
-- The sidecar lives, and cannot serve; wait: after which it tries again, where that is known.
INSERT INTO lanes.browser (heartbeat_at, trouble, trouble_until) VALUES ('-infinity', :trouble, lanes.now() + :wait)
ON CONFLICT (only_row) DO UPDATE SET
    heartbeat_at = '-infinity', awake = false, trouble = EXCLUDED.trouble, trouble_until = EXCLUDED.trouble_until;

-- name: sweep_pages()!
-- A minute past its time, or an hour after it was asked for, nobody comes back for a page; one that somebody has locked goes later.
DELETE FROM lanes.browser_pages WHERE token IN (
    SELECT token FROM lanes.browser_pages
    WHERE deadline_at < lanes.now() - interval '1 minute' OR asked_at < lanes.now() - interval '1 hour'
    FOR UPDATE SKIP LOCKED);

-- name: take_page(patience)^
-- The page that has waited longest, for an idle tab.
SELECT * FROM lanes.take_page(:patience);

-- name: send_page(token, patience)$
-- How long to wait before the page's request is written; null: it may not be, and whoever asked is told why.
SELECT lanes.send_page(:token, :patience);

-- name: answer_page(token, status, headers, final_url, html, held, trouble, detail, forbidden, line_proved, later)!
-- What a tab came to, and how much later than noted its last request was written.
WITH answered AS (
    UPDATE lanes.browser_pages SET
        answered_at = lanes.now(), sent_at = sent_at + :later, status = :status, headers = :headers, final_url = :final_url, html = :html, held = :held,
        trouble = :trouble, detail = :detail, forbidden = :forbidden, line_proved = :line_proved
    WHERE token = :token AND taken_at IS NOT NULL RETURNING site
)
SELECT pg_notify('lanes_page_' || site, '') FROM answered;

-- name: find_browser()!
-- A browser that answers is not lost.
UPDATE lanes.browser SET browser_lost_until = NULL, lost_again = false WHERE browser_lost_until <= lanes.now();

-- name: lose_browser(wait, others_first)$
-- Whether that is news.
SELECT lanes.lose_browser(:wait, :others_first);

-- name: browser()^
-- The browser as the owner sees it; no row: no sidecar has ever run.
SELECT b.awake, b.version, nullif(b.heartbeat_at, '-infinity') AS heartbeat_at, b.not_held, s.reason AS trouble, s.until,
       (SELECT count(*) FROM lanes.browser_pages) AS pages
FROM (SELECT) one LEFT JOIN lanes.browser b ON true CROSS JOIN lanes.browser_trouble(lanes.now()) s;
