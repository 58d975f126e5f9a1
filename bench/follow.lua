-- Follows links in turn. Argument: a file with one slug a line.
-- The requests are made beforehand, so that wrk has as little to do as it can.
local requests, next = {}, 0

function init(args)
  for slug in io.lines(args[1]) do
    requests[#requests + 1] = wrk.format("GET", "/" .. slug)
  end
end

function request()
  next = next % #requests + 1
  return requests[next]
end

-- A function that looks at each answer would make wrk the bottleneck. Its own
-- count of answers above 399 tells a redirect from any refusal.
function done(summary, latency)
  report(summary, latency, summary.requests - summary.errors.status, summary.errors.status)
end
