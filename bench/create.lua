-- Makes links that never repeat. Argument: a word that sets this run apart.
-- Every answer is looked at, and some locations are printed, to be followed
-- later.
local thread

function setup(t) thread = t end

function init(args)
  word, sent, created, other, sample = args[1], 0, 0, 0, ""
  wrk.headers["Content-Type"] = "application/json"
end

function request()
  sent = sent + 1
  return wrk.format("POST", nil, nil, '{"url":"https://example.org/' .. word .. "/" .. sent .. '"}')
end

function response(status, headers)
  if status ~= 201 then
    other = other + 1
    return
  end
  created = created + 1
  if created % 500 == 1 then sample = sample .. "sample " .. headers["Location"] .. "\n" end
end

function done(summary, latency)
  io.write(thread:get("sample"))
  report(summary, latency, thread:get("created"), thread:get("other"))
end
