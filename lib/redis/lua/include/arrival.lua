-- Returns until when a waiter counts as alive that arrived with this fence and has no entry in "…:alive": fences count
-- up from the time in µs, less at most the second since a client advanced the counter.
local function aliveByArrival(fence)
  return math.floor(fence / 1000) + ALIVE_MS
end
