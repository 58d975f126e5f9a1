-- Follows links in turn, but every twentieth request makes one that never repeats.
-- Arguments: a file with one slug a line, and a word that sets this run apart.
-- The answers are not looked at but for wrk's own count of those above 399; that
-- links were made is for the server to say.
local requests, count, next, sent, word = {}, 0, 0, 0
local thread

function setup(t) thread = t end

function init(args)
  for slug in io.lines(args[1]) do
    count = count + 1
    requests[count] = wrk.format("GET", "/" .. slug)
  end
  word = args[2]
  prepared = os.clock()
end

local json = { ["Content-Type"] = "application/json" }

function request()
  sent = sent + 1
  if sent % 20 == 0 then
    return wrk.format("POST", "/api/links", json, '{"url":"https://example.org/' .. word .. "/" .. sent .. '"}')
  end
  next = next % count + 1
  return requests[next]
end

function done(summary, latency)
  print("prepared " .. thread:get("prepared"))
  report(summary, latency, summary.requests - summary.errors.status, summary.errors.status)
end
