// Draws every panel, and lets the controls of a figure choose the frame that its panels show. (Callbacks of bokeh's own
// are compiled in the browser, which the page's policy does not allow.)

function drawFigures(items) {
  Bokeh.set_log_level("warn");
  for (const item of items) {
    const drawn = Bokeh.embed.embed_item(item);
    if (item.frames) drawn.then((views) => follow(item, views.get_by_id(item.root_id).model.document));
  }
  for (const slider of document.querySelectorAll(".controls input")) {
    const tell = () => {
      const text = JSON.parse(slider.dataset.values)[slider.value];
      slider.setAttribute("aria-valuetext", text);
      slider.nextElementSibling.value = text;
    };
    slider.addEventListener("input", tell);
    tell();
  }
}

// Keeps a panel at the frame that its figure's controls ask for; the last control runs fastest.
function follow(item, drawing) {
  const figure = document.getElementById(item.target_id).closest("figure");
  const controls = [...figure.querySelectorAll(".controls [data-values]")];
  const show = () => {
    let frame = 0;
    for (const control of controls) {
      frame = frame * JSON.parse(control.dataset.values).length + Number(control.value);
    }
    for (const [source, columns] of Object.entries(item.frames[frame])) {
      const data = Object.entries(columns).map(([name, values]) => [name, values.map((value) => value ?? NaN)]);
      drawing.get_model_by_id(source).data = Object.fromEntries(data);
    }
  };
  for (const control of controls) control.addEventListener("input", show);
  show(); // some browsers keep the controls where they were when a page is loaded again
}
