"""The settings table: what it takes, what it refuses, and in which words."""

from __future__ import annotations

from ipaddress import ip_network
from pathlib import Path

import pytest

from lanes.errors import SettingsError
from lanes.settings import TABLE, Settings, without_password


def problems(**environ: str) -> list[str]:
    with pytest.raises(SettingsError) as refused:
        Settings.load(environ)
    return refused.value.problems


def test_an_empty_environment_gives_the_defaults_and_the_embedded_server(tmp_path: Path) -> None:
    settings = Settings.load({"LANES_DATA_DIR": str(tmp_path), "PATH": "/bin", "LATEST_CHAPTER_OTHER": "not ours"})
    assert settings.embedded
    assert settings.database_url == f"postgresql://lanes@/lanes?host={tmp_path}/postgres-data"
    assert (settings.fetch_slots, settings.poll_enabled, settings.metrics_port, settings.allow_networks) == (
        16,
        True,
        9600,
        (),
    )
    assert settings.machine


def test_every_value_is_read_in_its_kind() -> None:
    settings = Settings.load(
        {
            "LANES_CONTACT": "you@example.org",
            "LANES_DATABASE_URL": "postgresql://u:p@one:5432,two:5433/lanes?target_session_attrs=read-write",
            "LANES_FETCH_SLOTS": "4",
            "LANES_ALLOW_NETWORKS": "127.1.0.0/16, fd00::/8",
            "LANES_MACHINE": "attic",
            "LANES_METRICS_BIND": "::1",
            "LANES_LOG_LEVEL": "debug",
        }
    )
    assert not settings.embedded
    assert settings.polling_contact() == "you@example.org"
    assert settings.allow_networks == (ip_network("127.1.0.0/16"), ip_network("fd00::/8"))
    assert (settings.fetch_slots, settings.machine, settings.log_level) == (4, "attic", "DEBUG")
    assert settings.metrics_port_of("lane-feeds") == 9610


def test_an_empty_value_counts_as_absent() -> None:
    assert Settings.load({"LANES_FETCH_SLOTS": "", "LANES_CONTACT": " "}).contact is None


def test_all_problems_are_told_at_once_each_with_its_variable() -> None:
    told = problems(LANES_FETCH_SLOTS="65", LANES_POLL_ENABLED="maybe", LANES_FETCH_SLOT="3", LANES_LOG_LEVEL="loud")
    assert [line.split()[0] for line in told] == [
        "LANES_FETCH_SLOT",
        "LANES_POLL_ENABLED",
        "LANES_FETCH_SLOTS",
        "LANES_LOG_LEVEL",
    ]
    assert "did you mean LANES_FETCH_SLOTS?" in told[0]


def test_only_a_name_that_is_really_near_is_suggested() -> None:
    near, far = problems(LANES_CONTCAT="you@example.org", LANES_CONTEXT_SIZE="1")
    assert "did you mean" not in far
    assert "lanes.env.example" in far
    assert "did you mean LANES_CONTACT?" in near


@pytest.mark.parametrize("word", ["COOLDOWN", "BROWSER_COOLDOWN", "INTERVAL", "BATCH", "STAGGER"])
def test_a_deleted_pace_variable_is_refused_by_name(word: str) -> None:
    """CASES B17"""
    (line,) = problems(**{f"LATEST_CHAPTER_POLL_{word}": "20s"})
    assert line.startswith(f"LATEST_CHAPTER_POLL_{word} ")
    assert "registry" in line


@pytest.mark.parametrize("name", ["LANES_POLL_ENABLED", "LATEST_CHAPTER_POLL_ENABLED"])
@pytest.mark.parametrize("word", ["false", "False", "0", "no", "off"])
def test_either_kill_switch_stops_claims(name: str, word: str) -> None:
    """CASES B17"""
    other = {"LANES_POLL_ENABLED", "LATEST_CHAPTER_POLL_ENABLED"} - {name}
    assert not Settings.load({name: word, other.pop(): "true"}).poll_enabled


def test_a_kill_switch_that_cannot_be_read_is_refused_under_its_own_name() -> None:
    (line,) = problems(LATEST_CHAPTER_POLL_ENABLED="flase")
    assert line.startswith("LATEST_CHAPTER_POLL_ENABLED must be true or false")


def test_polling_without_a_contact_is_refused_with_the_remedy() -> None:
    with pytest.raises(SettingsError, match=r"LANES_CONTACT=you@example\.org"):
        Settings.load({}).polling_contact()


@pytest.mark.parametrize(
    "contact", ["you", "you@", "you@example.org\r\nX: y", "ftp://example.org", "a b@example.org", "jürgen@example.org"]
)
def test_a_contact_that_no_site_owner_could_use_is_refused(contact: str) -> None:
    (line,) = problems(LANES_CONTACT=contact)
    assert line.startswith("LANES_CONTACT must be")


@pytest.mark.parametrize("slots", ["0", "65", "-1", "1.5", "1_6", "٣", "9" * 40])
def test_slots_are_a_whole_number_from_1_to_64(slots: str) -> None:
    assert problems(LANES_FETCH_SLOTS=slots) == ["LANES_FETCH_SLOTS must be a whole number from 1 to 64."]


def test_a_secret_may_stand_in_a_file(tmp_path: Path) -> None:
    secret = tmp_path / "url"
    secret.write_text("postgresql://lanes:hush@db/lanes\n")
    assert Settings.load({"LANES_DATABASE_URL_FILE": str(secret)}).database_url == "postgresql://lanes:hush@db/lanes"
    assert "both set" in problems(LANES_DATABASE_URL_FILE=str(secret), LANES_DATABASE_URL="postgresql://x/y")[0]
    assert "LANES_DATABASE_URL_FILE" in problems(LANES_DATABASE_URL_FILE=str(tmp_path / "none"))[0]


def test_only_secrets_have_a_file_twin() -> None:
    assert problems(LANES_CONTACT_FILE="/x")[0].startswith("LANES_CONTACT_FILE is not a setting")


@pytest.mark.parametrize(
    "url", ["mysql://u:hush@db/x", "hush", "postgresql://u:hush@[db/x", "postgresql://u:hush@ex\u2100mple/x"]
)
def test_a_bad_database_url_is_refused_without_being_shown(url: str) -> None:
    (line,) = problems(LANES_DATABASE_URL=url)
    assert line.startswith("LANES_DATABASE_URL must be a URL")
    assert "hush" not in line


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://u:p@ss@db:5432/x", "postgresql://u:***@db:5432/x"),
        ("postgresql://u:p@one,two:1/x?sslpassword=p&a=b", "postgresql://u:***@one,two:1/x?sslpassword=***&a=b"),
        ("postgresql://lanes@/lanes?host=/run/db", "postgresql://lanes@/lanes?host=/run/db"),
        ("postgresql:///lanes?password=p", "postgresql:///lanes?password=***"),
    ],
)
def test_a_database_url_is_shown_without_its_passwords(url: str, shown: str) -> None:
    assert without_password(url) == shown
    assert Settings.load({"LANES_DATABASE_URL": url}).database_place() == shown


def test_the_table_names_each_variable_once_and_every_default_is_valid() -> None:
    names = [setting.name for setting in TABLE]
    assert len(set(names)) == len(names)
    for setting in TABLE:
        assert not setting.default or setting.parse(setting.default) is not None
