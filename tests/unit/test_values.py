"""What a value says where nothing was said about it: never a failure, a permanent move, a machine of ours that is cut off."""

from __future__ import annotations

from datetime import timedelta

from browser_sidecar.rhythm import RHYTHM
from lanes.core import pages
from lanes.core.answer import Response, Resume, Sent, Trouble
from lanes.core.chapters import NO_HINTS, Hints, Item
from lanes.core.circumstances import Circumstances
from lanes.core.claim import NO_MEMORY, TRIED, Memory
from lanes.core.outcome import Label
from lanes.core.pace import HOST_DEFAULT, HostPace
from lanes.core.settlement import Settlement
from tests.answers import ANSWERED, STAMP, URL, a_claim, a_response


def test_a_claim_of_which_no_more_is_said_is_of_a_healthy_series_on_a_machine_that_is_not_cut_off() -> None:
    claim = a_claim()
    assert (claim.failures, claim.refusals, claim.abandoned) == (0, 0, 0)
    assert (claim.discovering, claim.us, claim.guid_alone) == (False, False, True)
    assert (claim.hints, claim.answers) == (NO_HINTS, ())


def test_a_url_that_is_tried_has_the_id_that_no_series_has() -> None:
    assert TRIED == 0


def test_nothing_is_remembered_where_there_was_no_trouble() -> None:
    nothing = Memory(retired=False, gone_at=None, moving=None, stays_off=None, distrusted=False, refused_since=None,
                     dead=False, refusing=False)  # fmt: skip
    assert nothing == NO_MEMORY


def test_a_document_without_hints_wishes_nothing() -> None:
    assert Hints(every=None, skip_hours=frozenset(), skip_days=frozenset()) == NO_HINTS


def test_an_item_of_which_no_more_is_said_has_no_date_that_could_be_approximate() -> None:
    item = Item("guid", "title", None)
    assert (item.published_at, item.approximate, item.number, item.volume, item.label) == (None, False, None, None, "")


def test_a_poll_of_which_no_more_is_said_sent_no_question_without_validators_and_met_no_refusal() -> None:
    around = Circumstances(ANSWERED, 0.5, None, HostPace())
    assert (around.unconditional, around.refusing, around.sent_at) == (False, False, None)
    assert around.interval == around.host_floor == HOST_DEFAULT


def test_a_request_of_which_no_more_is_said_brought_nothing_and_led_nowhere_for_good() -> None:
    sent = Sent(URL, "host.test", "192.0.2.1", STAMP)
    assert (sent.status, sent.wire_bytes, sent.permanent) == (None, 0, False)
    response: Response = a_response()
    assert (response.permanent, response.conditional) == (False, False)
    resume = Resume(URL, 1, permanent=False)
    assert (resume.cookies, resume.seen, resume.robots) == ((), (), False)


def test_a_settlement_of_which_no_more_is_said_judges_nobody_and_keeps_what_is_stored() -> None:
    told = Settlement(Label.UNCHANGED, None, STAMP, None, HostPace())
    assert (told.failures, told.refusals, told.good, told.gone, told.spared) == (0, 0, False, False, False)
    assert (told.forget, told.validators, told.url, told.guid_alone) == (False, None, None, True)
    assert (told.unconditional, told.chapters, told.seen, told.consequences) == (False, (), (), ())


def test_a_page_has_two_minutes_of_its_tab_inside_a_lease_that_is_renewed_and_a_lost_browser_a_quarter_of_an_hour() -> (
    None
):
    seconds = [pages.PATIENCE, pages.LEASE, pages.RENEW, pages.SETTLING, pages.LOST, pages.BEAT, pages.PLACE]
    assert [each / timedelta(seconds=1) for each in seconds] == [120, 150, 30, 30, 900, 5, 10]


def test_chrome_sleeps_after_five_idle_minutes_and_is_started_afresh_after_two_hundred_pages() -> None:
    """DESIGN 7."""
    assert (RHYTHM.beat, RHYTHM.idle, RHYTHM.patience, RHYTHM.retry, RHYTHM.pages) == (5, 300, 120, 900, 200)
    assert RHYTHM.memory < 2**30


def test_a_page_of_which_no_more_is_said_waits_for_its_landmark_alone_and_proves_nothing_of_our_line() -> None:
    asked = pages.PageAsked(a_claim().token, "site", URL, (), "main")
    assert asked.settles_for is None
    assert not pages.NotShown(Trouble.TIMEOUT, "late").line_proved
