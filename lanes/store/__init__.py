"""The only door to Postgres: named SQL, and verbs that speak the values of `lanes.core`."""
