-- Why a robots.txt gave no answer the last time, in words: while it has never given one, pages wait, and the owner asks why.

ALTER TABLE lanes.robots ADD COLUMN silence text;  -- null: it answered
