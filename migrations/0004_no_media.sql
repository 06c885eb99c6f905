-- Pictures, films and fonts are loaded for no page: no list of Chapters needs them, and a browser started without pictures spares a fifth of
-- what a page costs the sidecar.
ALTER TABLE lanes.browser_pages DROP COLUMN media;
