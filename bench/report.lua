-- What every script ends with: one line of figures for the program that started
-- wrk. Times are in microseconds.
function report(summary, latency, wanted, other)
  local e = summary.errors
  print(string.format("figures %d %d %d %d %d %d %d",
    wanted, other, e.connect + e.read + e.write, e.timeout, summary.duration,
    latency:percentile(50), latency:percentile(99)))
end
