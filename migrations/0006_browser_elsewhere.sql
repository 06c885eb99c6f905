-- What nothing holds in the browser that pages are opened in, in words for its owner, who may have forgotten where it runs.

ALTER TABLE lanes.browser ADD COLUMN not_held text;  -- null: all that its pages ask for is judged
