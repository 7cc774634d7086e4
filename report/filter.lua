-- Gives the classes of report.md their form: elements of HTML in the page, functions of print.typ in print.

local in_print = FORMAT:match("typst") ~= nil
local boxes = { figure = true, caption = true, source = true, statement = true, concerns = true, lead = true }
local marks = { value = true, interval = true, hash = true, new = true, cell = true }

local function around(first, content, last, raw)
  local out = pandoc.List({ raw(FORMAT, first) })
  out:extend(content)
  out:insert(raw(FORMAT, last))
  return out
end

function Span(element)
  if not in_print then
    return nil
  end
  local name = element.classes[1]
  -- The semicolon ends the call: a bracket that follows would continue it.
  if name == "verdict" then
    return around('#verdict("' .. element.classes[2] .. '")[', element.content, "];", pandoc.RawInline)
  elseif marks[name] then
    return around("#" .. name .. "[", element.content, "];", pandoc.RawInline)
  end
end

function Div(element)
  local name = element.classes[1]
  if in_print and boxes[name] then
    local label = element.identifier ~= "" and (" <" .. element.identifier .. ">") or ""
    return around("#" .. name .. "-box[", element.content, "]" .. label, pandoc.RawBlock)
  elseif name == "figure" then
    return around('<figure id="' .. element.identifier .. '">', element.content, "</figure>", pandoc.RawBlock)
  elseif name == "caption" then
    return around("<figcaption>", element.content, "</figcaption>", pandoc.RawBlock)
  end
end
