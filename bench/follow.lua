-- Asks for slugs in turn. Arguments: a file with one slug a line, the method, and
-- whether they are to be "found" or "missing".
-- The requests are made beforehand, so that wrk has as little to do as it can.
local requests, count, next = {}, 0, 0
local thread

function setup(t) thread = t end

function init(args)
  for slug in io.lines(args[1]) do
    count = count + 1
    requests[count] = wrk.format(args[2], "/" .. slug)
  end
  expected = args[3] -- not local, so that done can get it
  prepared = os.clock()
end

function request()
  next = next % count + 1
  return requests[next]
end

-- A function that looks at each answer would make wrk the bottleneck. Its own
-- count of answers above 399 tells a redirect from any refusal.
function done(summary, latency)
  print("prepared " .. thread:get("prepared"))
  local fine, refused = summary.requests - summary.errors.status, summary.errors.status
  if thread:get("expected") == "missing" then fine, refused = refused, fine end
  report(summary, latency, fine, refused)
end
