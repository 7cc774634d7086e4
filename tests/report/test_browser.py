"""The page in a real browser with the network cut."""

import pytest

pytestmark = pytest.mark.browser

LAPTOP, PHONE = (1280, 900), (390, 844)
DRAWN = "() => document.querySelectorAll('.panel > *').length === document.querySelectorAll('.panel').length"
# Where a panel draws the first of its simulated points, in the window.
POINT = """id => {
  const view = Bokeh.index.roots.find(view => view.el.parentElement.id === id);
  const points = view.model.renderers.find(renderer => renderer.glyph.type === 'Scatter');
  const [x, y] = [points.glyph.x.field, points.glyph.y.field].map(name => points.data_source.data[name][0]);
  const frame = view.frame, box = view.el.getBoundingClientRect();
  return [box.x + frame.x_scale.compute(x), box.y + frame.y_scale.compute(y)];
}"""
# Where a panel draws the fixed point, and everything that it draws.
SHOWN = """id => {
  const view = Bokeh.index.roots.find(view => view.el.parentElement.id === id);
  const renderers = view.model.renderers, columns = renderer => renderer.data_source.data;
  const star = columns(renderers.find(renderer => renderer.glyph.marker?.value === 'star'));
  const values = renderers.flatMap(renderer => Object.values(columns(renderer)).flatMap(column => [...column]));
  if (values.includes(null)) throw new Error('a gap in a line must be NaN: null is drawn as 0');
  return [star.busy[0], JSON.stringify(values)];
}"""
TOOLTIP = """id => {
  const seek = node => [...node.children].some(child =>
    child.classList.contains('bk-Tooltip') || (child.shadowRoot && seek(child.shadowRoot)) || seek(child));
  return [...document.querySelectorAll('.bk-Tooltip')].length > 0 || seek(document.getElementById(id));
}"""


@pytest.fixture(params=[LAPTOP, PHONE], ids=["laptop", "phone"])
def page(request, browser, built):
    """The report, opened offline; asking for anything, or any error on the console, fails the test afterwards."""
    width, height = request.param
    context = browser.new_context(viewport={"width": width, "height": height}, offline=True)
    opened = context.new_page()
    asked, errors = [], []
    opened.on("request", lambda r: asked.append(r.url) if r.url.split(":")[0] not in ("file", "data", "blob") else None)
    opened.on("request", lambda r: asked.append(r.url) if r.resource_type != "document" else None)
    opened.on("console", lambda message: errors.append(message.text) if message.type in ("error", "warning") else None)
    opened.on("pageerror", lambda error: errors.append(str(error)))
    opened.goto((built / "report.html").as_uri())
    opened.wait_for_function(DRAWN)
    yield opened
    context.close()
    assert asked == []
    assert errors == []


def test_every_panel_is_drawn(page):
    assert page.locator(".panel").count() > 10
    sizes = page.evaluate("[...document.querySelectorAll('.panel > *')].map(e => e.getBoundingClientRect().width)")
    assert min(sizes) > 250


def test_nothing_scrolls_sideways(page):
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_the_table_is_in_view_of_its_column(page):
    width = page.viewport_size["width"]
    boxes = page.evaluate("[...document.querySelectorAll('.claims td')].map(e => e.getBoundingClientRect().right)")
    assert max(boxes) <= width


def test_a_point_answers_to_the_pointer(page):
    target = "fig-idle-0"
    page.locator(f"#{target}").scroll_into_view_if_needed()
    page.wait_for_timeout(300)
    x, y = page.evaluate(POINT, target)
    page.mouse.move(x - 30, y - 30)
    page.mouse.move(x, y)
    page.wait_for_function(TOOLTIP, arg=target)


def test_controls_exchange_what_the_panels_show(page):
    figure = page.locator("#fig-portrait")
    slider, select = figure.get_by_label("load λ"), figure.get_by_label("probes per job d")
    shown = [page.evaluate(SHOWN, f"fig-portrait-{k}") for k in range(2)]
    assert [at for at, _ in shown] == [0.9, 0.9]
    assert figure.locator(".controls output").inner_text() == "0.9"
    picture = page.locator("#fig-portrait-0")
    picture.scroll_into_view_if_needed()
    before = picture.screenshot()
    slider.focus()
    page.keyboard.press("ArrowLeft")
    assert figure.locator(".controls output").inner_text() == slider.get_attribute("aria-valuetext") == "0.48"
    moved = [page.evaluate(SHOWN, f"fig-portrait-{k}") for k in range(2)]
    assert [at for at, _ in moved] == [0.48, 0.48]
    assert not {values for _, values in shown} & {values for _, values in moved}
    page.wait_for_timeout(300)
    assert picture.screenshot() != before
    select.select_option(label="1")
    other = [page.evaluate(SHOWN, f"fig-portrait-{k}") for k in range(2)]
    assert [at for at, _ in other] == [0.48, 0.48]
    assert not {values for _, values in other} & {values for _, values in moved}
    select.select_option(label="2")
    slider.focus()
    page.keyboard.press("ArrowRight")
    assert [page.evaluate(SHOWN, f"fig-portrait-{k}") for k in range(2)] == shown


def test_every_slider_and_list_changes_its_figure(page):
    for figure in page.locator("figure:has(.controls)").all():
        picture = figure.locator(".panels")
        picture.scroll_into_view_if_needed()
        for control in figure.locator(".controls [data-values]").all():
            before, at = picture.screenshot(), int(control.input_value())
            control.focus()
            page.keyboard.press("Home" if at else "End")
            assert int(control.input_value()) != at
            page.wait_for_timeout(300)
            assert picture.screenshot() != before


def test_claims_can_be_reached_by_keyboard(page):
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    for _ in range(30):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.getAttribute('href')") == "#claim-P1":
            break
    page.keyboard.press("Enter")
    assert page.evaluate("location.hash") == "#claim-P1"
