"""The admin in a real browser: what an operator does there, with scripts and without."""

from __future__ import annotations

import time
from contextlib import suppress
from datetime import timedelta

import pytest
from django.urls import reverse
from selenium.common.exceptions import TimeoutException
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from project.accounts.models import User
from tests.admin.conftest import ENTITY, LIST, detail
from tests.browser.conftest import PASSWORD
from tests.testapp.models import Order, Plan, Seat
from timeline.models import ScheduledTask
from timeline.shortcuts import cancel, emit, explain, schedule, start

# Which names and signs of the picture lie on each other, and what lies outside of its frame.
GEOMETRY = """
const box = (one) => one.getBoundingClientRect();
const meet = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
const shown = (one) => box(one).width > 0;
const frame = box(document.querySelector(".tl-picture"));
const all = (what) => [...document.querySelectorAll(`.tl-picture ${what}`)].filter(shown);
const [names, signs, words] = [all(".tl-lane-text"), all(".tl-sign"), all(".tl-mark-text")];
return {
  signs: signs.length,
  words: words.length,
  collisions: [...names, ...words].flatMap((name) => [...signs, ...names, ...words]
    .filter((other) => other !== name && meet(box(name), box(other))).map((other) => name.textContent)),
  outside: [...all("text"), ...signs]
    .filter((one) => box(one).left < frame.left || box(one).right > Math.min(frame.right, innerWidth))
    .map((one) => one.textContent),
};
"""


def greeting_of(order):
    return ScheduledTask.objects.for_entity(order).get(task_key="care.greet", revision=1)


def see_through_a_day(browser, orders):
    """Filter, search, cancel with a reason, see it in the log, redrive."""
    order = orders[1]
    browser.open(LIST)
    browser.click(".tl-folded summary")
    browser.choose("#tl-task", "care.greet")
    browser.click(".tl-go button")
    browser.wait_for(".tl-chips")
    assert "care.call" not in browser.find(".tl-rows").text

    browser.click(".tl-folded summary")
    browser.type("#tl-q", f"testapp.order {order.pk}")
    browser.click(".tl-go button")
    browser.wait_for_text("1 task on this page")
    browser.click("tbody [type=checkbox]")
    browser.click("button[value=cancel]")
    browser.type("#id_reason", "the customer called")
    browser.click(".tl-main")
    browser.wait_for(".messagelist .success")
    assert "1 task was cancelled." in browser.text

    browser.open(detail(greeting_of(order)))
    assert "the customer called" in browser.text
    assert "eva@example.com" in browser.text

    browser.click("button[value=redrive]")
    browser.type("#id_reason", "the customer called again")
    browser.click(".tl-main")
    browser.wait_for(".messagelist .success")
    assert ScheduledTask.objects.get(task_key="care.greet", revision=2).actor == "eva@example.com"


def pages(browser, staff, orders):
    """Go to one page after the other; each is told apart by its name."""
    cancel(greeting_of(orders[1]), reason="the customer called")
    start("renewal_of_a_subscription", orders[2])
    call = ScheduledTask.objects.get(task_key="care.call")
    for given in ("", "?state=all", "?state=all&timeline=care&day=2026-03-04", "?state=overdue", "?q=17"):
        browser.open(f"{LIST}{given}")
        yield f"list{given}"
    for task in (call, greeting_of(orders[0]), greeting_of(orders[1])):
        browser.open(detail(task))
        yield f"task {task.state}"
    start("seating", Seat.objects.create(plan=Plan.objects.create(user=staff)))
    for entity in (*orders, staff, Order.objects.create()):
        browser.open(f"{ENTITY}?label={entity._meta.label_lower}&id={entity.pk}")
        yield f"entity {entity}"
    greeting, ended = greeting_of(orders[0]), greeting_of(orders[1])
    for action, task in (("move", call), ("cancel", greeting), ("run_now", greeting), ("redrive", ended)):
        browser.open(detail(task))
        browser.click(f"button[value={action}]")
        browser.wait_for("#id_reason")
        yield action
        browser.click(".tl-main")
        browser.wait_for(".tl-errors")
        yield f"{action} with a mistake"
    browser.open(LIST)
    browser.driver.delete_all_cookies()
    browser.wait_for("[data-timeline-said] a")
    yield "list after the session"


def focused(browser):
    return browser.driver.switch_to.active_element


def tab(browser):
    """
    Go on to the next element; give whether the focus went on. It follows the key a moment later: who asks before that would
    press once too often. A page that is still being loaded may not hear a key.
    """
    before = focused(browser)
    press(browser, Keys.TAB)
    with suppress(TimeoutException):
        return WebDriverWait(browser.driver, 2).until(lambda _driver: focused(browser) != before)
    return False


def press(browser, *keys):
    ActionChains(browser.driver).send_keys(*keys).perform()


class TestByKeys:
    def test_the_rows_are_near(self, start_browser, staff, orders):
        """Two links skip what is before: Django's to the content, and ours to the tasks."""
        browser = start_browser()
        browser.log_in(staff)
        browser.open(LIST)

        for words, place in (("Skip to main content", "#content-start"), ("Skip to the tasks", "#tl-tasks")):
            while focused(browser).text != words:
                tab(browser)
            press(browser, Keys.ENTER)
            browser.wait_for(f"{place}:focus")  # Browsers go there a moment after the key.
        presses = 0
        while focused(browser).get_attribute("type") != "checkbox":
            presses += tab(browser)

        assert presses <= 6

    def test_a_mistake_is_where_the_focus_is(self, start_browser, staff, orders):
        """Scripts or not."""
        browser = start_browser(scripts=False)
        browser.log_in(staff)
        browser.open(detail(greeting_of(orders[0])))
        browser.click("button[value=cancel]")

        browser.click(".tl-main")

        browser.wait_for_focus(".tl-errors")
        press(browser, Keys.TAB, Keys.ENTER)
        browser.wait_for_focus("#id_reason")


class TestUpdates:
    @pytest.mark.parametrize("place", ["button[value=move]", "tbody [type=checkbox]"])
    def test_leave_the_focus_where_it_is(self, start_browser, staff, orders, clock, place):
        """Also the first one after the page was opened."""
        browser = start_browser()
        browser.log_in(staff)
        browser.open(LIST)
        browser.wait_for_text("4 tasks on this page")
        browser.driver.execute_script("document.querySelector(arguments[0]).focus()", place)

        schedule("care.call", orders[0], at=clock.now + timedelta(days=300), key="later")
        browser.wait_for_text("5 tasks on this page")

        assert focused(browser) == browser.find(place)

    def test_offer_no_pause_without_scripts(self, start_browser, staff, orders):
        browser = start_browser(scripts=False)
        browser.log_in(staff)

        browser.open(LIST)

        assert not browser.find("[data-timeline-pause]").is_displayed()

    def test_pause_for_the_session(self, start_browser, staff, orders):
        browser = start_browser()
        browser.log_in(staff)
        browser.open(LIST)
        browser.click("[data-timeline-pause]")
        browser.open(LIST)
        browser.wait_for_text("Go on updating")

        cancel(greeting_of(orders[0]), reason="elsewhere")
        time.sleep(2.5)
        assert "4 tasks on this page" in browser.text

        browser.click("[data-timeline-pause]")
        browser.wait_for_text("3 tasks on this page")

    def test_say_that_the_session_has_ended(self, start_browser, staff, orders):
        browser = start_browser()
        browser.log_in(staff)
        browser.open(f"{LIST}?timeline=care")
        browser.driver.delete_all_cookies()

        browser.wait_for_text("You are logged out: this page is not brought up to date any more.")
        browser.follow("Log in again")
        browser.type("[name=username]", staff.email)
        browser.type("[name=password]", PASSWORD)
        browser.click("[type=submit]")
        browser.wait_for(".tl-chips")

    def test_say_that_the_right_was_taken_away(self, start_browser, staff, orders):
        browser = start_browser()
        browser.log_in(staff)
        browser.open(LIST)
        User.objects.update(is_superuser=False)

        browser.wait_for_text("You may not see this page any more")

    def test_bring_an_empty_list_its_buttons(self, start_browser, staff, clock):
        browser = start_browser()
        browser.log_in(staff)
        browser.open(LIST)
        browser.wait_for_text("Nothing is ahead.")

        emit("order.placed", Order.objects.create())

        browser.click("tbody [type=checkbox]")
        browser.click("button[value=cancel]")
        browser.wait_for("#id_reason")


class TestThePicture:
    @pytest.mark.parametrize("width", [390, 1000, 1280])
    def test_is_whole_and_no_name_is_on_a_sign(self, start_browser, staff, orders, clock, width):
        """Also where signs are so near to each other that on a phone there is no room for words between them."""
        for days in (3, 5, 7, 9):
            schedule("care.call", orders[0], at=clock.now + timedelta(days=days))
        browser = start_browser(width=width)
        browser.log_in(staff)
        browser.open(f"{ENTITY}?label=testapp.order&id={orders[0].pk}")

        found = browser.driver.execute_script(GEOMETRY)

        assert found["signs"] >= 7
        assert (found["words"] > 3) == (width > 600)
        assert found["collisions"] == []
        assert found["outside"] == []


# Of each table of what an entity has: how wide its narrowest cell with several words is.
NARROWEST = """
const cells = [...document.querySelectorAll(".tl-items td")].filter((cell) => cell.textContent.trim().includes(" "));
return Math.min(...cells.map((cell) => cell.getBoundingClientRect().width));
"""
# How far the words of a first row's time and task are from standing on one line.
BESIDE = """
const foot = (cell) => {
  const range = document.createRange();
  range.selectNode(document.createTreeWalker(cell, NodeFilter.SHOW_TEXT).nextNode());
  return range.getBoundingClientRect().bottom;
};
const [when, what] = document.querySelectorAll(".tl-items tbody tr:first-child td");
return Math.abs(foot(when) - foot(what));
"""


COLUMNS = """
const heads = [...document.querySelectorAll(".tl-items th:nth-child(3)")];
return heads.map((head) => Math.round(head.getBoundingClientRect().left - head.closest("table").getBoundingClientRect().left));
"""


class TestTables:
    def test_have_their_columns_below_each_other(self, start_browser, staff, orders):
        start("renewal_of_a_subscription", orders[2])
        cancel(greeting_of(orders[2]), reason="the customer called")
        browser = start_browser()
        browser.log_in(staff)

        browser.open(f"{ENTITY}?label=testapp.order&id={orders[2].pk}")

        ahead, past = browser.driver.execute_script(COLUMNS)
        assert ahead == past

    def test_leave_each_column_its_room(self, start_browser, staff, orders):
        start("renewal_of_a_subscription", orders[2])
        browser = start_browser()
        browser.log_in(staff)

        browser.open(f"{ENTITY}?label=testapp.order&id={orders[2].pk}")

        assert browser.driver.execute_script(NARROWEST) > 120

    def test_say_on_a_phone_which_time_is_which(self, start_browser, staff, orders):
        """Their heads are not shown there."""
        browser = start_browser(width=390)
        browser.log_in(staff)

        browser.open(f"{ENTITY}?label=testapp.order&id={orders[2].pk}")

        shown = "return [...document.querySelectorAll('td[data-name]')].map((one) => getComputedStyle(one, '::before').content)"
        assert browser.driver.execute_script(shown) == ['"Started: "', '"Ended: "']

    def test_have_what_is_on_a_line_on_one_line(self, start_browser, staff, orders):
        browser = start_browser(width=390)
        browser.log_in(staff)

        browser.open(f"{ENTITY}?label=testapp.order&id={orders[2].pk}")

        assert browser.driver.execute_script(BESIDE) <= 1


class TestOnPaper:
    def test_tables_stay_tables(self, start_browser, staff, orders):
        """A sheet is as narrow as a phone held across, which has cards in their place."""
        browser = start_browser(width=717)
        browser.log_in(staff)
        browser.open(LIST)
        browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})

        row = browser.find(".tl-rows tbody tr")
        head = browser.find(".tl-rows thead")

        assert (row.value_of_css_property("display"), head.value_of_css_property("position")) == ("table-row", "static")
        assert browser.width_needed() <= 717

    def test_there_is_what_one_can_read_and_nothing_to_press(self, start_browser, staff, orders):
        browser = start_browser(dark=True)
        browser.log_in(staff)
        for path, there in ((LIST, ".tl-rows"), (detail(greeting_of(orders[0])), ".tl-trace")):
            browser.open(path)
            browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})

            assert browser.find(there).is_displayed()
            pressed = browser.driver.find_elements(
                By.CSS_SELECTOR, "button, input, select, #nav-sidebar, #header, .breadcrumbs"
            )
            assert [one.tag_name for one in pressed if one.is_displayed()] == []
            assert browser.find(there).value_of_css_property("color") == "rgba(0, 0, 0, 1)"


class TestADay:
    def test_goes_well_with_scripts(self, start_browser, staff, orders):
        browser = start_browser()
        browser.log_in(staff)

        see_through_a_day(browser, orders)

        assert browser.complaints() == []
        assert browser.strangers() == set()

    def test_goes_well_without(self, start_browser, staff, orders):
        browser = start_browser(scripts=False)
        browser.log_in(staff)

        see_through_a_day(browser, orders)

        assert browser.strangers() == set()

    def test_is_told_by_rows_that_move_on_their_own(self, start_browser, staff, orders):
        """The list follows what happens elsewhere, without a reload; it rests while somebody chooses."""
        browser = start_browser()
        browser.log_in(staff)
        browser.open(LIST)
        browser.wait_for_text("4 tasks on this page")

        cancel(greeting_of(orders[0]), reason="elsewhere")
        browser.wait_for_text("3 tasks on this page")
        assert browser.complaints() == []

    def test_leads_from_an_account_to_its_timeline(self, start_browser, staff):
        browser = start_browser()
        browser.log_in(staff)
        browser.open(reverse("admin:accounts_user_change", args=[staff.pk]))

        browser.click(".timelinelink")

        browser.wait_for_text("Timeline of eva@example.com")
        assert browser.complaints() == []


class TestEveryPage:
    @pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)], ids=["desk-light", "phone-dark"])
    def test_keeps_nobody_out(self, start_browser, staff, orders, width, dark):
        """Nothing of level A or AA for axe-core, no sideways scrolling, no complaint in the console."""
        browser = start_browser(width=width, dark=dark)
        browser.log_in(staff)

        for _page in pages(browser, staff, orders):
            assert browser.barriers() == []
            assert browser.width_needed() <= width
            assert browser.complaints() == []

    def test_tells_the_same_story_as_the_command(self, start_browser, staff, orders):
        browser = start_browser()
        browser.log_in(staff)
        call = ScheduledTask.objects.get(task_key="care.call")

        browser.open(detail(call))
        browser.click(".tl-card > details summary")

        for line in explain(call).splitlines():
            assert line.replace(" UTC", "") in browser.text  # Which zone that is, the page says once.


class TestKeysOfTheList:
    @pytest.fixture
    def browser(self, start_browser, staff, orders):
        browser = start_browser()
        browser.log_in(staff)
        browser.open(LIST)
        browser.wait_for("[data-timeline-keys-show]:not([hidden])")
        return browser

    def press(self, browser, *keys):
        ActionChains(browser.driver).send_keys(*keys).perform()

    def place(self, browser):
        """Which row has the focus, from 0; -1: none."""
        rows = "[...document.querySelectorAll('#tl-tasks tbody tr')]"
        return browser.driver.execute_script(f"return {rows}.indexOf(document.activeElement.closest('tr'))")

    def chosen(self, browser):
        return len(browser.driver.find_elements(By.CSS_SELECTOR, "[name=task][type=checkbox]:checked"))

    def test_go_from_row_to_row_choose_and_open(self, browser):
        self.press(browser, "jjj")
        assert self.place(browser) == 2
        self.press(browser, "k")
        assert self.place(browser) == 1
        self.press(browser, "x")
        assert self.chosen(browser) == 1
        browser.find("#tl-tasks tr:nth-child(1) [type=checkbox]")
        where = browser.driver.switch_to.active_element.get_attribute("href")

        self.press(browser, Keys.ENTER)

        browser.wait_for_address(where)

    def test_stay_where_they_are_at_the_ends(self, browser):
        self.press(browser, "jk")
        assert self.place(browser) == 0
        self.press(browser, "j" * 20)
        assert self.place(browser) == 3

    def test_are_letters_where_somebody_writes(self, browser):
        browser.type("#tl-find", "jx?")

        assert browser.find("#tl-find").get_attribute("value") == "jx?"
        assert (self.place(browser), self.chosen(browser)) == (-1, 0)
        assert not browser.find("[data-timeline-keys]").is_displayed()

    def test_are_told_and_can_be_turned_off(self, browser):
        self.press(browser, "?")
        assert browser.find("[data-timeline-keys]").is_displayed()
        assert browser.barriers() == []
        browser.click("[data-timeline-keys-on]")
        browser.click("[data-timeline-keys] button")
        self.press(browser, "j")
        assert self.place(browser) == -1

        browser.open(LIST)
        browser.click("[data-timeline-keys-show]")

        assert not browser.find("[data-timeline-keys-on]").is_selected()
        assert browser.complaints() == []

    def test_all_that_are_shown_are_chosen_by_one_click(self, browser):
        browser.click("[data-timeline-all]")
        assert (self.chosen(browser), browser.find("[data-timeline-all]").text) == (4, "Choose none")
        browser.click("#tl-tasks [type=checkbox]")
        assert browser.find("[data-timeline-all]").text == "Choose all 4 shown"
        browser.click("[data-timeline-all]")
        browser.click("[data-timeline-all]")

        assert self.chosen(browser) == 0
        assert "chosen" not in browser.driver.current_url


def test_all_that_are_shown_are_chosen_without_a_script(start_browser, staff, orders):
    browser = start_browser(scripts=False)
    browser.log_in(staff)
    browser.open(LIST)
    browser.follow("Choose all 4 shown")
    browser.wait_for("[name=task]:checked")
    browser.click("button[value=cancel]")

    browser.wait_for_text("Cancel 4 tasks")


@pytest.mark.parametrize("width", [1280, 390])
def test_what_is_clicked_in_the_list_has_24_pixels(start_browser, staff, orders, width):
    browser = start_browser(width=width)
    browser.log_in(staff)
    browser.open(f"{LIST}?state=all")
    small = """
    const what = "#tl-tasks a, #tl-tasks .tl-pick label, .tl-chips a, .tl-pages a, .tl-actions button, .tl-folded summary";
    return [...document.querySelectorAll(what)].map((each) => [each.outerHTML, each.getBoundingClientRect()])
      .filter(([_text, box]) => box.width && (box.height < 23.9 || box.width < 23.9)).map(([text]) => text);
    """

    assert browser.driver.execute_script(small) == []


def test_the_first_task_stands_high(start_browser, staff, orders):
    browser = start_browser()
    browser.log_in(staff)
    browser.open(LIST)
    browser.wait_for("[data-timeline-pause]:not([hidden])")

    top = "return document.querySelector('#tl-tasks tbody tr').getBoundingClientRect().top"
    assert browser.driver.execute_script(top) <= 420
