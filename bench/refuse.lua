-- Asks for a link again and again where none will be made. The request is always
-- the same, and the answers are not looked at but for wrk's own count of those
-- above 399: at these rates wrk would be the bottleneck otherwise.
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.body = '{"url":"https://example.org/refused"}'

function done(summary, latency)
  report(summary, latency, summary.errors.status, summary.requests - summary.errors.status)
end
