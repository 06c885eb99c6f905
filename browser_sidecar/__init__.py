"""The process that will own Chrome for Sites that need a browser.  Lanes never import it: they ask by rows."""
